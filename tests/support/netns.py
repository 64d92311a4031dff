# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts in network namespaces, joined by veth pairs, with faults on the wire.

    with Pair() as (a, b):
        a.run(["ping", "-c", "1", b.address()])
        Child([*b.prefix, "program"], log)
        a.drop("udp dport 18777")

The hosts have eth0, eth1 ... with 10.99.NIC.1 and .2, fd99:NIC::1 and ::2. Nothing
leads from them to this machine's own network.

Loss needs nftables only, which every kernel has. Delay, duplicates and reordering need
sch_netem: a program that uses netem() calls ensure_netem() first, which runs it in a
guest where the machine's kernel has none.
"""

import os
import re
import sys

from proc import TOP, run, wait_until
from tap import Skip


def _ip(*argv):
    run(["ip", *argv], check=True)


def drop_rules(nic, match="", percent=100):
    """For nft: lose this share of what comes in on @nic and matches (nft's words; ARP
    too if empty). Replaces what was lost before."""
    chance = f"numgen random mod 100 < {percent}" if percent < 100 else ""
    table = f"table netdev faults_{nic}"
    return (f"{table}\ndelete {table}\n{table} {{\n\tchain drops {{\n"
            f"\t\ttype filter hook ingress device {nic} priority 0\n"
            f"\t\t{match} {chance} counter drop\n\t}}\n}}\n")


def ensure_netem():
    """Go on in a guest if the kernel here has no sch_netem. To be called before
    anything is printed; does not return in that case."""
    with Pair() as (a, _):
        missing = a.try_netem("delay 1ms")
    if missing:
        inside = os.path.join(TOP, "tests", "guest", "inside")
        os.execv(inside, [inside, os.path.abspath(sys.argv[0]), *sys.argv[1:]])


class Host:
    def __init__(self, name, number, namespace):
        self.name = name
        self.number = number
        self.namespace = namespace
        self.prefix = ["ip", "netns", "exec", namespace]

    def address(self, nic=0, family=4):
        if family == 6:
            return f"fd99:{nic}::{self.number}"
        return f"10.99.{nic}.{self.number}"

    def link_local(self, nic=0):
        """With its zone, as the other host would have to write it."""
        out = self.sh(["ip", "-6", "-o", "addr", "show", "dev", f"eth{nic}"])
        return re.search(r"inet6 (fe80:\S+)/", out).group(1) + f"%eth{nic}"

    def run(self, argv, seconds=60):
        """(status, output, error output)."""
        return run([*self.prefix, *argv], seconds)

    def sh(self, argv, seconds=60):
        """The output of a command that must succeed."""
        return run([*self.prefix, *argv], seconds, check=True)[1]

    def link(self, up, nic=0):
        self.sh(["ip", "link", "set", f"eth{nic}", "up" if up else "down"])

    def drop(self, match="", nic=0, percent=100):
        """Lose this share of what comes in on the interface and matches."""
        run([*self.prefix, "nft", "-f", "-"], check=True,
            stdin=drop_rules(f"eth{nic}", match, percent))

    def drop_off(self, nic=0):
        self.sh(["nft", "delete", "table", "netdev", f"faults_eth{nic}"])

    def try_netem(self, what, nic=0):
        """None, or why it cannot be had."""
        rc, _, err = self.run(["tc", "qdisc", "replace", "dev", f"eth{nic}", "root",
                               "netem", *what.split()])
        return err.strip() if rc else None

    def netem(self, what, nic=0):
        """Treat what this host sends: "delay 20ms 5ms", "duplicate 5%", ..."""
        error = self.try_netem(what, nic)
        if error:
            raise AssertionError(f"netem {what}: {error}")

    def netem_off(self, nic=0):
        self.sh(["tc", "qdisc", "del", "dev", f"eth{nic}", "root"])


class Pair:
    """Two hosts named a and b; a context manager."""

    def __init__(self, nics=1):
        self.nics = nics
        stem = f"fabd{os.getpid()}"
        self.hosts = [Host(name, number, stem + name)
                      for number, name in ((1, "a"), (2, "b"))]

    def __enter__(self):
        rc, _, err = run(["ip", "netns", "add", self.hosts[0].namespace])
        if rc:
            raise Skip("no network namespaces here: " + err.strip())
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_exc):
        self._remove()

    def __iter__(self):
        return iter(self.hosts)

    def _build(self):
        a, b = self.hosts
        _ip("netns", "add", b.namespace)
        for host in self.hosts:
            # Else a link-local address is of no use for two seconds.
            host.sh(["sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad"])
        for nic in range(self.nics):
            # Made under a name that is free here too: older kernels look here first.
            name = f"{a.namespace[4:]}.{nic}"
            _ip("link", "add", name, "netns", a.namespace, "type", "veth",
                "peer", "name", name, "netns", b.namespace)
            for host in self.hosts:
                host.sh(["ip", "link", "set", name, "name", f"eth{nic}"])
        for host in self.hosts:
            host.sh(["ip", "link", "set", "lo", "up"])
            for nic in range(self.nics):
                name = f"eth{nic}"
                host.sh(["ip", "addr", "add", host.address(nic) + "/24", "dev", name])
                # nodad: an address under test for duplicates cannot be bound.
                host.sh(["ip", "addr", "add", host.address(nic, 6) + "/64", "dev", name,
                         "nodad"])
                host.link(True, nic)
        for host in self.hosts:
            wait_until(lambda h=host: self._settled(h), 10, f"links of {host.name} up")

    @staticmethod
    def _settled(host):
        links = host.sh(["ip", "-o", "link", "show", "type", "veth"])
        addresses = host.sh(["ip", "-6", "-o", "addr", "show"])
        return "state DOWN" not in links and "tentative" not in addresses

    def _remove(self):
        # Deleting a namespace removes the links in it once its processes have ended.
        for host in self.hosts:
            run(["ip", "netns", "del", host.namespace])

    def partition(self, on):
        """Nothing passes in either direction; the links stay up."""
        for host in self.hosts:
            for nic in range(self.nics):
                host.drop(nic=nic) if on else host.drop_off(nic)
