# SPDX-License-Identifier: BSD-2-Clause
"""Children that cannot outlive the test, and waiting with a deadline."""

import atexit
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("FABD_BUILD", os.path.join(TOP, "build"))

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_children = []


class Timeout(AssertionError):
    """What was waited for did not come in time."""


def wait_until(probe, seconds, what, step=0.01):
    """Call @probe until it returns something true, and return that."""
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() >= deadline:
            raise Timeout(f"{what}: not within {seconds} s")
        time.sleep(step)


def _set_pdeathsig():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _die_with_parent():
    """The preexec_fn of a child. The kernel takes the thread for the parent, so a child
    of a thread that may end first is left to the exit handler below."""
    main = threading.current_thread() is threading.main_thread()
    return _set_pdeathsig if main else None


class Child:
    """A program with its output in a file. Ended by its pid, at the latest at exit."""

    def __init__(self, argv, log, env=None, cwd=None, stdin=subprocess.DEVNULL,
                 pass_fds=()):
        self.argv = [str(a) for a in argv]
        self.log = str(log)
        with open(self.log, "ab") as out:
            self.popen = subprocess.Popen(
                self.argv, stdin=stdin, stdout=out, stderr=subprocess.STDOUT, env=env,
                cwd=cwd, pass_fds=pass_fds, preexec_fn=_die_with_parent())
        _children.append(self)

    @property
    def pid(self):
        return self.popen.pid

    @property
    def rc(self):
        """The exit status, minus the signal's number, or None while it runs."""
        return self.popen.poll()

    def output(self):
        with open(self.log, "r", errors="replace") as f:
            return f.read()

    def signal(self, number):
        if self.rc is None:
            os.kill(self.pid, number)

    def wait(self, seconds):
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Timeout(f"{self.argv[0]} did not end within {seconds} s") from None

    def stop(self, seconds=10):
        """SIGTERM, and SIGKILL if that is not obeyed. Returns the exit status."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self):
        self.signal(signal.SIGKILL)
        return self.popen.wait()


def _end_all():
    for child in reversed(_children):
        child.kill()


def _on_term(_number, _frame):
    sys.exit(143)


atexit.register(_end_all)
signal.signal(signal.SIGTERM, _on_term)


def descriptors(pid):
    """How many files the process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def rss_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    raise AssertionError(f"process {pid} has no memory: it has ended")


def cpu_seconds(pid):
    """User and system time of all its threads."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(argv, seconds=60, env=None, cwd=None, stdin=None, check=False):
    """Run to the end; (status, output, error output), as text."""
    done = subprocess.run(
        [str(a) for a in argv], timeout=seconds, env=env, cwd=cwd, text=True,
        errors="replace", input=stdin if stdin is not None else "",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_die_with_parent())
    if check and done.returncode:
        raise AssertionError(f"{' '.join(done.args)}: status {done.returncode}\n"
                             f"{done.stdout}{done.stderr}")
    return done.returncode, done.stdout, done.stderr
