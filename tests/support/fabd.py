# SPDX-License-Identifier: BSD-2-Clause
"""A fabd in the foreground with a configuration of its own.

    config = {"Probe": {"HeartbeatSec": "100ms"},
              "Peer b": {"Address": ["10.0.0.2", "10.0.1.2"]}}
    with Fabd("a", config, mad_worker=sim.wrapper("alpha1", MAD_WORKER)) as fabd:
        fabd.wait_for("GetStatus", lambda status: status["peers"]["ok"] == 1, 10)
        port = fabd.ask("GetPort", port="mlx5_0/1")

Everything it writes is below its own folder, so that several run side by side.
"""

import json
import os
import re
import shutil
import signal
import tempfile
import threading
import time

from proc import BUILD, Child, Timeout, run, wait_until
from varlink import Client

FABD = os.path.join(BUILD, "daemon", "fabd")
FABCTL = os.path.join(BUILD, "cli", "fabctl")
RDMA_WORKER = os.path.join(BUILD, "daemon", "rdma", "fabd-rdma")
MAD_WORKER = os.path.join(BUILD, "daemon", "mad", "fabd-mad")

SANITIZER = re.compile(r"ERROR: \w+Sanitizer|: runtime error: ")


def config_text(config):
    """{section: {key: value, or a list of values}} as the file that says so."""
    lines = []
    for section, rows in config.items():
        lines.append(f"[{section}]")
        for key, values in rows.items():
            for value in values if isinstance(values, list) else [values]:
                lines.append(f"{key}={value}")
        lines.append("")
    return "\n".join(lines)


class Watch:
    """The events of one Monitor call, each with the time at which it came here:
    (seconds of the monotonic clock, event). A context manager."""

    def __init__(self, path, parameters):
        self.events = []
        self._client = Client(path, seconds=None)
        replies = self._client.stream("io.fabd.Monitor", parameters)
        # The first reply says where the stream begins; no event is missed after it.
        self.start = next(replies)["event"]
        self._thread = threading.Thread(target=self._record, args=(replies,),
                                        daemon=True)
        self._thread.start()

    def _record(self, replies):
        try:
            for reply in replies:
                self.events.append((time.monotonic(), reply["event"]))
        except (OSError, ValueError):
            return  # closed, by us or with the daemon

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.close()

    def close(self):
        self._client.shutdown()
        self._thread.join()
        self._client.close()

    def wait_for(self, probe, seconds, first=0):
        """The first event from number @first on for which @probe(event) is true:
        (time, event)."""
        def found():
            return next((e for e in self.events[first:] if probe(e[1])), None)
        try:
            return wait_until(found, seconds, "an event", step=0.002)
        except Timeout as e:
            raise Timeout(f"{e}; events: {self.events[first:]}") from None


# What it saves is synced to the disk: the disk of a busy machine must not hold up the one
# under test.
SHM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Fabd:
    def __init__(self, name, config=None, directory=None, rdma_worker=None,
                 mad_worker=None, arguments=(), prefix=(), env=None):
        """@prefix: a command to run it under (ip netns exec, valgrind, strace)."""
        self.name = name
        self._own_dir = directory is None
        self.dir = directory or tempfile.mkdtemp(prefix=f"fabd-{name}-", dir=SHM)
        os.makedirs(self.dir, exist_ok=True)
        self.config = {"Fabd": {
            "NodeName": name,
            "ListenStream": self.path("fabd.sock"),
            "AdminListenStream": self.path("fabd-admin.sock"),
            "StateDirectory": self.path("state"),
            "RdmaWorker": rdma_worker or RDMA_WORKER,
            "MadWorker": mad_worker or MAD_WORKER,
            "MadMode": "spawn",
        }}
        for section, rows in (config or {}).items():
            self.config.setdefault(section, {}).update(rows)
        self.arguments = list(arguments)
        self.prefix = list(prefix)
        self.env = env
        self.child = None
        self.started = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_exc):
        """Stops it; a bad end, or a sanitizer's report, is a failed test."""
        rc = self.stop()
        log = self.log()
        if self._own_dir:
            shutil.rmtree(self.dir, ignore_errors=True)
        if kind is None and (rc or SANITIZER.search(log)):
            raise AssertionError(f"fabd {self.name} ended with status {rc}:\n{log}")

    def path(self, name):
        return os.path.join(self.dir, name)

    @property
    def conf_file(self):
        return self.path("fabd.conf")

    @property
    def admin_socket(self):
        return self.config["Fabd"]["AdminListenStream"]

    @property
    def query_socket(self):
        return self.config["Fabd"]["ListenStream"]

    @property
    def pid(self):
        return self.child.pid

    # ---- life

    def write_config(self):
        os.makedirs(self.path("state"), exist_ok=True)
        with open(self.conf_file, "w") as f:
            f.write(config_text(self.config))

    def argv(self):
        return [*self.prefix, FABD, f"--config={self.conf_file}", *self.arguments]

    def start(self, seconds=20):
        """Start, and wait until its socket answers."""
        self.write_config()
        self.started = time.monotonic()
        self.child = Child(self.argv(), self.path("log"), env=self.env, cwd=self.dir)

        def answers():
            self._check_running()
            try:
                Client(self.admin_socket).close()
                return True
            except OSError:
                return False
        wait_until(answers, seconds, f"fabd {self.name} listens on its socket")

    def _check_running(self):
        if self.child.rc is not None:
            raise AssertionError(f"fabd {self.name} ended with {self.child.rc}:\n"
                                 + self.log())

    def reload(self, config=None):
        """SIGHUP, with @config's sections put in the place of the present ones."""
        self.config.update(config or {})
        self.write_config()
        self.child.signal(signal.SIGHUP)

    def reloaded(self, config=None):
        """The same, and wait until it is done: the status."""
        with self.watch() as seen:
            self.reload(config)
            seen.wait_for(lambda e: e["kind"] == "config", 10)
        return self.ask("GetStatus")

    def stop(self, seconds=10):
        """SIGTERM; the exit status. One that does not obey is killed, and that is an
        error: a unit stop must end in time."""
        if not self.child:
            return None
        child, self.child = self.child, None
        child.signal(signal.SIGTERM)
        try:
            return child.wait(seconds)
        except Timeout:
            child.kill()
            raise Timeout(f"fabd {self.name} ignored SIGTERM for {seconds} s\n"
                          + child.output()) from None

    def kill(self):
        """kill -9, as if it crashed."""
        child, self.child = self.child, None
        return child.kill()

    def log(self):
        with open(self.path("log"), errors="replace") as f:
            return f.read()

    # ---- talk

    def client(self, seconds=10):
        return Client(self.admin_socket, seconds)

    def call(self, method, parameters=None):
        """The reply's parameters as they came; @method with its interface."""
        with self.client() as client:
            return client.call(method, parameters)

    def stream(self, method, parameters=None, seconds=10):
        """The replies of one call with `more`, to the last."""
        with self.client(seconds) as client:
            yield from client.stream(method, parameters)

    def ask(self, method, **parameters):
        """What io.fabd's @method answers: the object or the list itself."""
        answer = self.call("io.fabd." + method, parameters)
        if len(answer) != 1:
            raise AssertionError(f"{method}: one value expected: {answer}")
        return next(iter(answer.values()))

    def wait_for(self, method, probe, seconds, step=0.02, **parameters):
        """Ask until @probe(answer) is true; that answer."""
        last = None

        def asked():
            nonlocal last
            self._check_running()
            last = self.ask(method, **parameters)
            return probe(last)
        try:
            wait_until(asked, seconds, f"fabd {self.name}: {method} {parameters}", step)
        except Timeout as e:
            raise Timeout(f"{e}\nlast answer: {json.dumps(last, indent=1)}\n"
                          + self.log()) from None
        return last

    def watch(self, **parameters):
        """Record what io.fabd.Monitor streams from now on: a Watch, to be closed."""
        return Watch(self.admin_socket, parameters)

    def fabctl(self, *argv, seconds=20):
        """(status, output, error output)."""
        return run([FABCTL, f"--socket={self.query_socket}",
                    f"--admin-socket={self.admin_socket}", *argv], seconds)
