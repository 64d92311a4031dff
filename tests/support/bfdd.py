# SPDX-License-Identifier: BSD-2-Clause
"""FRR's bfdd in the namespaces of a Pair, alone, with a session per pair of addresses.

    with Sessions(pair, 100) as (a, b):
        a.up(), rss_kib(a.pid)
"""

import contextlib
import os
import shutil
import tempfile

from proc import Child, run, wait_until
from tap import Skip

BFDD = "/usr/lib/frr/bfdd"
PER_NET = 250


def _address(host, i):
    return f"10.98.{128 * (host.number - 1) + i // PER_NET}.{1 + i % PER_NET}"


class Bfdd:
    def __init__(self, host, other, count, interval_ms):
        self.host = host
        self.dir = tempfile.mkdtemp(prefix="fabd-bfdd-")
        peers = "".join(
            f" peer {_address(other, i)} local-address {_address(host, i)}\n"
            f"  receive-interval {interval_ms}\n  transmit-interval {interval_ms}\n"
            "  detect-multiplier 3\n !\n" for i in range(count))
        with open(self.path("conf"), "w") as f:
            f.write(f"bfd\n{peers}!\n")
        os.mkdir(self.path("vty"))
        os.chmod(self.dir, 0o755)
        run(["chown", "-R", "frr:frr", self.dir], check=True)
        self.child = Child([*host.prefix, BFDD, "-f", self.path("conf"), "-i",
                            self.path("pid"), "--vty_socket", self.path("vty"), "-z",
                            self.path("zserv"), "--bfdctl", self.path("ctl"), "-A",
                            "127.0.0.1", "-P", "0"], self.path("out"))

    @property
    def pid(self):
        return self.child.pid

    def path(self, name):
        return os.path.join(self.dir, name)

    def up(self):
        """How many sessions are."""
        out = self.host.run(["vtysh", "--vty_socket", self.path("vty"), "-c",
                             "show bfd peers brief"])[1]
        return sum(line.split()[-1:] == ["up"] for line in out.splitlines())

    def stop(self):
        self.child.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


@contextlib.contextmanager
def sessions(pair, count, interval_ms=1000, seconds=120):
    """Both daemons, all sessions up."""
    if not os.access(BFDD, os.X_OK):
        raise Skip("no bfdd here: Debian's package frr")
    a, b = pair
    for host in (a, b):
        run([*host.prefix, "ip", "-batch", "-"], check=True, stdin="".join(
            f"addr replace {_address(host, i)}/16 dev eth0\n" for i in range(count)))
    both = []
    try:
        for host, other in ((a, b), (b, a)):
            both.append(Bfdd(host, other, count, interval_ms))
        wait_until(lambda: all(d.up() == count for d in both), seconds,
                   f"{count} sessions of bfdd are up", step=0.5)
        yield both
    finally:
        for daemon in both:
            daemon.stop()
