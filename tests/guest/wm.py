# SPDX-License-Identifier: BSD-2-Clause
"""A device worker in a guest, with this module in the place of main.

    w = Worker(guest, "rxe0")           # started, its first facts have come
    w.tell("listen 10.99.0.1 18777")
    w.wait({"type": "LISTENING"})       # the first message with all of these since the mark
    w.mark()                            # from here on

The functions without a class run in the guest, called by the agent; what they keep in
_drivers lasts until the guest ends.
"""

import json
import os
import subprocess
import threading
import time

from proc import BUILD

DRIVER = os.path.join(BUILD, "tests/support/wm-driver")
WORKER = os.path.join(BUILD, "daemon/rdma/fabd-rdma")
_drivers = {}


# ---- in the guest

class _Driver:
    def __init__(self, argv, log):
        with open(log, "ab") as err:
            self.popen = subprocess.Popen(argv, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=err, text=True)
        self.messages = []
        self.news = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.popen.stdout:
            with self.news:
                self.messages.append(json.loads(line))
                self.news.notify_all()


def _spawn(key, argv, log):
    _drivers[key] = _Driver(argv, log)


def _tell(key, lines):
    stdin = _drivers[key].popen.stdin
    stdin.write("".join(line + "\n" for line in lines))
    stdin.flush()
    return time.monotonic_ns()


def _matches(message, want):
    return all(message.get(k) == v for k, v in want.items())


def _wait(key, want, start, seconds):
    """[index, message] of the first from @start on, or None."""
    driver = _drivers[key]
    deadline = time.monotonic() + seconds
    with driver.news:
        at = start
        while True:
            while at < len(driver.messages):
                if _matches(driver.messages[at], want):
                    return [at, driver.messages[at]]
                at += 1
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            driver.news.wait(left)


def _messages(key, start):
    return _drivers[key].messages[start:]


def _close(key):
    _drivers[key].popen.stdin.close()


def _pid(key):
    return _drivers[key].popen.pid


# ---- on the host

class Worker:
    count = 0
    all = []

    def __init__(self, guest, device, poll_ms=1000, index="any", limit=0, argv=(),
                 ready=True, counters_ms=0):
        Worker.count += 1
        Worker.all.append(self)
        self.guest = guest
        self.device = device
        self.key = f"{device}#{Worker.count}"
        self.log = f"/tmp/worker.{Worker.count}.log"
        self.start = 0
        program = WORKER
        if argv: # another user may be kept out of the folder that this tree is in
            program = "/tmp/fabd-rdma"
            guest.sh(f"install -m 755 {WORKER} {program}")
        guest.call(_spawn, self.key, [DRIVER, *argv, program], self.log)
        self.tell(f"init {device} {index} {poll_ms} {limit} {counters_ms}")
        if ready:
            self.pid = self.wait({"type": "HELLO"})["pid"]
            self.wait({"type": "PKEYS", "port": 1})

    def tell(self, *lines):
        """The guest's clock when it was told, in ns."""
        return self.guest.call(_tell, self.key, lines)

    def mark(self):
        self.start = len(self.guest.call(_messages, self.key, 0))

    def find(self, want, seconds=0):
        found = self.guest.call(_wait, self.key, want, self.start, seconds,
                                seconds=seconds + 60)
        return found and found[1]

    def wait(self, want, seconds=20):
        found = self.find(want, seconds)
        if found:
            return found
        raise AssertionError(f"{self.key} of guest {self.guest.name}: no {want} within "
                             f"{seconds} s; it said\n{self.said()}\n"
                             f"{self.guest.read(self.log)}")

    def event(self, event, conn, seconds=20, **more):
        return self.wait({"type": "EP_EVENT", "event": event, "conn": conn, **more},
                         seconds)

    def messages(self):
        return self.guest.call(_messages, self.key, self.start)

    def said(self):
        return "\n".join(json.dumps(m) for m in self.messages()
                         if m.get("event") != "STATS")

    def driver_pid(self):
        return self.guest.call(_pid, self.key)

    def findings(self):
        """What a sanitizer build has to say."""
        log = self.guest.read(self.log)
        return log if "Sanitizer" in log or "runtime error" in log else ""

    def kill(self, name="SIGKILL"):
        self.guest.kill(self.pid, name)

    def close(self):
        """Close the pair. How the worker ended."""
        self.guest.call(_close, self.key)
        return self.wait({"type": "ENDED"})
