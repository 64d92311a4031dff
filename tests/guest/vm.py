# SPDX-License-Identifier: BSD-2-Clause
"""Guests with Debian's own kernel, soft-RoCE and soft-iWARP, one or two on one wire.

    with Guests(2) as guests:
        a, b = guests
        a.sh("rdma link add rxe0 type rxe netdev eth0")
        pid = b.spawn("rping -s -a 10.99.0.2 -C 3")
        a.call(some_function, 1, 2)   # a top-level function of the test, in the guest

A guest sees the host's root file system with a tmpfs over it, so what was built on the
host runs inside; nothing it writes there reaches the host. /shared is one folder that
both guests and the host (Guests.shared) write. The guests have eth0, eth1 ... with the
addresses 10.99.NIC.1 and 10.99.NIC.2. A step takes about ten times as long as on
the host: compile outside, and give generous limits.
"""

import json
import os
import shutil
import socket
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
from proc import Child, run, wait_until  # noqa: E402
from tap import Skip  # noqa: E402

AGENT = os.path.join(HERE, "agent.py")
BOOT_SECONDS = 180
# Variables that mean the same in a guest.
PASSED_ON = ("FABD_BUILD", "FABD_LONG", "ASAN_OPTIONS", "UBSAN_OPTIONS")
APPEND = ("console=ttyS0 quiet loglevel=4 mitigations=off nokaslr panic=-1 "
          "tsc=reliable no_timer_check rcupdate.rcu_expedited=1 random.trust_cpu=on "
          "audit=0 selinux=0 apparmor=0")


class GuestError(AssertionError):
    """A call raised in the guest; the text is its traceback."""


def setup():
    """Make the kernel and the initial RAM disk, or find them made. Their folder."""
    if not shutil.which("qemu-system-x86_64"):
        raise Skip("qemu-system-x86_64 is not installed")
    rc, out, err = run([os.path.join(HERE, "setup")], seconds=900)
    if rc:
        raise AssertionError("tests/guest/setup failed:\n" + err)
    return out.strip()


class Guest:
    """One virtual machine. Made by Guests."""

    def __init__(self, name, number, nics, directory, shared, kit, smp, memory,
                 systemd):
        self.name = name
        self.number = number
        self.dir = directory
        self.shared = shared
        self.kit = kit
        self.nics = nics
        self.smp = smp
        self.memory = memory
        self.systemd = systemd
        self.qemu = None
        self._socket = None
        self._calls = {}
        self._last_id = 0
        self._lock = threading.Lock()
        self._ready = threading.Event()
        os.makedirs(directory, exist_ok=True)

    def address(self, nic=0):
        return f"10.99.{nic}.{self.number}"

    # ---- power

    def _argv(self):
        modules = f"{self.kit}/kernel/lib/modules"
        append = (f"{APPEND} guest.host={self.name} guest.agent={AGENT} "
                  f"guest.modules={modules}")
        if self.systemd:
            append += " guest.systemd=1"
        argv = [
            "qemu-system-x86_64", "-machine", "q35",
            "-accel", os.environ.get("FABD_GUEST_ACCEL", "tcg,thread=multi"),
            "-cpu", "max", "-smp", self.smp, "-m", self.memory,
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-serial", f"file:{self.dir}/console",
            "-kernel", f"{self.kit}/vmlinux", "-initrd", f"{self.kit}/initrd.cpio",
            "-append", append,
            "-qmp", f"unix:{self.dir}/qmp,server=on,wait=off",
            "-device", "virtio-rng-pci",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,path={self.dir}/agent,server=on,wait=off",
            "-device", "virtserialport,chardev=agent,name=agent",
        ]
        for tag, path, extra in (("root", "/", ",readonly=on,multidevs=remap"),
                                 ("shared", self.shared, "")):
            argv += ["-fsdev", f"local,id={tag},path={path},security_model=none{extra}",
                     "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        for index, netdev in enumerate(self.nics):
            mac = f"52:54:00:00:{index:02x}:{self.number:02x}"
            argv += ["-netdev", f"{netdev},id=n{index}",
                     "-device", f"virtio-net-pci,netdev=n{index},mac={mac},"
                                f"id=nic{index}"]
        return argv

    def power_on(self):
        """Start; boot() waits for the end of it."""
        for leftover in ("qmp", "agent"):
            if os.path.exists(os.path.join(self.dir, leftover)):
                os.unlink(os.path.join(self.dir, leftover))
        self._ready.clear()
        self.qemu = Child(self._argv(), os.path.join(self.dir, "qemu.log"))

    def boot(self):
        """Wait until the guest takes calls, and give its interfaces their addresses."""
        self._connect()
        wait_until(self._is_ready, BOOT_SECONDS, f"guest {self.name} boots", step=0.05)
        self._request(AGENT, "environment", (
            {k: os.environ[k] for k in PASSED_ON if k in os.environ},), 60)
        batch = "".join(f"addr add {self.address(i)}/24 dev eth{i}\n"
                        f"link set eth{i} up\n" for i in range(len(self.nics)))
        self.sh("ip -batch -", stdin=batch)

    def _is_ready(self):
        if self.qemu.rc is not None:
            raise AssertionError(f"guest {self.name} ended while booting\n"
                                 f"{self.qemu.output()}{self.console()}")
        return self._ready.is_set()

    def power_off(self):
        """At once, as if the cord was pulled."""
        if self.qemu:
            self.qemu.kill()
            self.qemu = None
        if self._socket:
            self._socket.close()
            self._socket = None

    def reset(self):
        self.power_off()
        self.power_on()
        self.boot()

    def console(self):
        """What the kernel said: empty unless it warned."""
        try:
            with open(os.path.join(self.dir, "console"), errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    # ---- calls into the guest

    def _connect(self):
        path = os.path.join(self.dir, "agent")

        def connect():
            if self.qemu.rc is not None:
                raise AssertionError("qemu ended:\n" + self.qemu.output())
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(path)
            except OSError:
                s.close()
                return None
            return s
        self._socket = wait_until(connect, 30, "qemu opens the agent's port")
        threading.Thread(target=self._receive, args=(self._socket,),
                         daemon=True).start()

    def _receive(self, s):
        try:
            with s.makefile("r", errors="replace") as lines:
                for line in lines:
                    answer = json.loads(line)
                    if answer["id"] == 0:
                        self._ready.set()
                        continue
                    call = self._calls.pop(answer["id"], None)
                    if call:
                        call["answer"] = answer
                        call["done"].set()
        except OSError:
            pass
        for call in list(self._calls.values()):
            call["done"].set()

    def call(self, func, *args, seconds=60):
        """Call @func, a top-level function of the test's file, in the guest. Arguments
        and result travel as JSON."""
        return self._request(func.__code__.co_filename, func.__name__, args, seconds)

    def _request(self, path, name, args, seconds):
        call = {"done": threading.Event(), "answer": None}
        with self._lock:
            self._last_id += 1
            ident = self._last_id
            self._calls[ident] = call
            line = json.dumps({"id": ident, "file": os.path.abspath(path), "func": name,
                               "args": args})
            self._socket.sendall(line.encode() + b"\n")
        call["done"].wait(seconds)
        answer = call["answer"]
        if answer is None:
            ended = self.qemu is None or self.qemu.rc is not None
            raise GuestError(f"guest {self.name}, {name}: " +
                             ("the guest ended" if ended else f"over {seconds} s") +
                             f"\n{self.console()}")
        if answer.get("skip") is not None:
            raise Skip(answer["skip"])
        if "error" in answer:
            raise GuestError(f"guest {self.name}:\n{answer['error']}")
        return answer["value"]

    def run(self, command, seconds=60, stdin=""):
        """A list, or a string for bash: (status, output, error output)."""
        return tuple(self._request(AGENT, "run", (command, seconds, stdin),
                                   seconds + 30))

    def sh(self, command, seconds=60, stdin=""):
        """The output of a command that must succeed."""
        rc, out, err = self.run(command, seconds, stdin)
        if rc:
            raise GuestError(f"guest {self.name}: {command}: status {rc}\n{out}{err}")
        return out

    def job(self, script, *args, seconds=120):
        """Run a bash script of the host: (status, output, error output)."""
        return self.run(["bash", os.path.abspath(script), *args], seconds)

    def spawn(self, command, log="/dev/null"):
        """Start in the background; @log is a file in the guest. The process id."""
        return self._request(AGENT, "spawn", (command, log), 60)

    def wait(self, pid, seconds=60):
        """The exit status of what spawn() started."""
        rc = self._request(AGENT, "wait", (pid, seconds), seconds + 30)
        if rc is None:
            raise GuestError(f"guest {self.name}: {pid} not ended after {seconds} s")
        return rc

    def kill(self, pid, name="SIGKILL"):
        self._request(AGENT, "kill", (pid, name), 60)

    def read(self, path):
        return self._request(AGENT, "read", (path,), 60)

    def at_most(self, seconds):
        """The limit for what takes at most so long on a machine at rest: longer where
        processes start slowly now, as on a host that is busy."""
        out = self.sh("s=$EPOCHREALTIME; for i in 1 2 3 4; do rdma link show >/dev/null; "
                      "done; echo $s $EPOCHREALTIME")
        start, end = map(float, out.split())
        return seconds + 4 * (end - start)

    def journal(self, *arguments, seconds=120):
        """journalctl's output; all that was logged before this call is in it. journald
        can be many seconds behind, so what is not there without a sync may still come."""
        for argv in (["--sync"], ["--no-pager", *arguments]):
            rc, out, err = self.run(["journalctl", *argv], seconds)
            if rc:
                raise GuestError(f"guest {self.name}: journalctl {argv}: {rc}\n{out}{err}")
        return out

    # ---- faults

    def qmp(self, command, **arguments):
        """One command to the machine itself, such as set_link."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(os.path.join(self.dir, "qmp"))
            with s.makefile("rw") as f:
                f.readline()
                for request in ({"execute": "qmp_capabilities"},
                                {"execute": command, "arguments": arguments}):
                    f.write(json.dumps(request) + "\n")
                    f.flush()
                    answer = {}
                    while not answer.keys() & {"return", "error"}:
                        answer = json.loads(f.readline())
                    if "error" in answer:
                        raise GuestError(f"qmp {command}: {answer['error']}")
        return answer["return"]

    def cable(self, plugged, nic=0):
        """Plug or pull the cable of an interface."""
        self.qmp("set_link", name=f"nic{nic}", up=plugged)


class Guests:
    """One or two guests named a and b, booted together; a context manager."""

    def __init__(self, count=2, nics=1, smp=1, memory=1024, systemd=False):
        kit = setup()
        # Short, as the paths of sockets may have 107 characters.
        self.dir = tempfile.mkdtemp(prefix="fabd-guest-")
        self.shared = os.path.join(self.dir, "shared")
        os.mkdir(self.shared)
        self.guests = []
        for number in range(1, count + 1):
            netdevs = [self._netdev(count, number, nic) for nic in range(nics)]
            self.guests.append(Guest(
                "ab"[number - 1], number, netdevs,
                os.path.join(self.dir, "ab"[number - 1]), self.shared, kit,
                smp, memory, systemd))

    def _netdev(self, count, number, nic):
        if count == 1:
            return f"hubport,hubid={nic}"
        here, there = (f"{self.dir}/wire{nic}.{n}" for n in (number, 3 - number))
        return (f"dgram,local.type=unix,local.path={here},"
                f"remote.type=unix,remote.path={there}")

    def __enter__(self):
        try:
            for guest in self.guests:
                guest.power_on()
            for guest in self.guests:
                guest.boot()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_exc):
        self.stop()

    def __iter__(self):
        return iter(self.guests)

    def __getitem__(self, index):
        return self.guests[index]

    def stop(self):
        for guest in self.guests:
            guest.power_off()
        shutil.rmtree(self.dir, ignore_errors=True)

    def each(self, func):
        """Call @func(guest) for all at the same time; the results in order."""
        results = [None] * len(self.guests)
        errors = []

        def one(index):
            try:
                results[index] = func(self.guests[index])
            except BaseException as e:
                errors.append(e)
        threads = [threading.Thread(target=one, args=(i,))
                   for i in range(len(self.guests))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return results

    def jobs(self, script_a, script_b, seconds=120):
        """A job for each at the same time: [(status, output, error output)] * 2.
        In a job, tests/guest/barrier waits for the other one."""
        scripts = {"a": script_a, "b": script_b}
        return self.each(lambda g: g.job(scripts[g.name], seconds=seconds))
