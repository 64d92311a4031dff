# SPDX-License-Identifier: BSD-2-Clause
"""Fabrics of any size for ibsim: what they are made of, and the file that says so.

    net = fat_tree(leaves=6, spines=3, hosts=15)
    with Sim(net.write(folder), large=net.large) as sim:
        ...

The same arguments make the same file. h1 comes first in it, so that a client that names
no node sits there. GUIDs and LIDs are the simulator's own affair.
"""

import collections
import itertools
import os
import random

# What a port may be made of: (width, speed, extended speed) as bits of PortInfo, enabled
# on both ends. A link takes the best that both ends have.
WIDTH_1X, WIDTH_4X, WIDTH_8X, WIDTH_12X = 1, 2, 4, 8
SDR, DDR, QDR = 1, 2, 4
FDR, EDR, HDR = 1, 2, 4
PLAIN = (WIDTH_4X, SDR | DDR | QDR, FDR | EDR)
# No two neighbours in this list make the same link, and none of them is PLAIN.
MIXED = ((WIDTH_1X | WIDTH_4X, QDR, EDR), (WIDTH_1X, SDR, 0), (WIDTH_12X, SDR | DDR, 0),
         (WIDTH_4X, SDR | DDR | QDR, FDR), (WIDTH_8X, QDR, 0),
         (WIDTH_1X | WIDTH_4X, SDR | DDR | QDR, HDR), (WIDTH_1X, QDR, FDR | EDR))

# What ibsim takes without being told more.
IBSIM_NODES, IBSIM_SWITCHES, IBSIM_PORTS = 2048, 256, 13312


class Topology:
    """Nodes in the order in which they were added, and the links between them."""

    def __init__(self):
        self.nodes = {}  # name: (kind, number of ports)
        self.peers = {}  # (name, port): (name, port)
        self.rates = {}  # (name, port): (width, speed, extended speed)

    def ca(self, name, ports=1):
        self.nodes[name] = ("Ca", ports)

    def switch(self, name, ports):
        if not 1 <= ports <= 254:
            raise ValueError(f"{name}: {ports} ports")
        self.nodes[name] = ("Switch", ports)

    def link(self, a, b, rate=None, rate_b=None):
        """@a, @b: (name, port). @rate: of both ends, unless the other has its own."""
        for end in (a, b):
            if not 1 <= end[1] <= self.nodes[end[0]][1]:
                raise ValueError(f"{end}: no such port")
            if end in self.peers:
                raise ValueError(f"{end} has a link")
        self.peers[a], self.peers[b] = b, a
        for end, own in ((a, rate), (b, rate_b or rate)):
            if own:
                self.rates[end] = own

    def free_port(self, name):
        """The lowest port of a node without a link."""
        return next(p for p in range(1, self.nodes[name][1] + 1)
                    if (name, p) not in self.peers)

    def names(self, kind):
        return [name for name, (k, _) in self.nodes.items() if k == kind]

    @property
    def hosts(self):
        return self.names("Ca")

    @property
    def switches(self):
        return self.names("Switch")

    def links(self):
        """Each link once: ((name, port), (name, port))."""
        return [(a, b) for a, b in self.peers.items() if a < b]

    def route(self, start, goal):
        """A shortest directed route as smpquery takes it, "0,1,7", from a host's port 1.
        Nothing is routed through a host."""
        seen, queue = {start: "0"}, collections.deque([start])
        while queue and goal not in seen:
            name = queue.popleft()
            kind, count = self.nodes[name]
            for port in range(1, count + 1 if kind == "Switch" or name == start else 1):
                peer = self.peers.get((name, port))
                if peer and peer[0] not in seen and (kind == "Switch" or port == 1):
                    seen[peer[0]] = f"{seen[name]},{port}"
                    queue.append(peer[0])
        return seen[goal]

    @property
    def ports(self):
        """As ibsim counts them: port 0 of a switch too."""
        return sum(n + (kind == "Switch") for kind, n in self.nodes.values())

    @property
    def large(self):
        """ibsim must be told to make room."""
        return (len(self.nodes) > IBSIM_NODES or self.ports > IBSIM_PORTS
                or len(self.switches) > IBSIM_SWITCHES)

    def text(self):
        """The file for ibsim. Every link is written at both of its ends."""
        lines = ["# SPDX-License-Identifier: BSD-2-Clause"]
        for name, (kind, count) in self.nodes.items():
            lines += ["", f'{kind}\t{count} "{name}"']
            for port in range(1, count + 1):
                peer = self.peers.get((name, port))
                if peer:
                    lines.append(f'[{port}]\t"{peer[0]}"[{peer[1]}]'
                                 + _options(self.rates.get((name, port), PLAIN)))
        return "\n".join(lines) + "\n"

    def write(self, directory, name="topo.net"):
        path = os.path.join(directory, name)
        with open(path, "w") as f:
            f.write(self.text())
        return path


def _options(rate):
    return "\t" + " ".join(f"{letter}={bits}" for letter, bits in zip("wse", rate))


def fat_tree(leaves, spines, hosts, trunk=1, leaf_ports=None, rates=None):
    """Two levels: each leaf has @hosts hosts and @trunk links to every spine. @rates:
    of the links in turn, PLAIN if none."""
    net = Topology()
    rate = _turns(rates)
    for i in range(leaves * hosts):
        net.ca(f"h{i + 1}")
    for i in range(leaves):
        net.switch(f"leaf{i + 1}", leaf_ports or hosts + spines * trunk)
    for i in range(spines):
        net.switch(f"spine{i + 1}", leaves * trunk)
    for leaf in range(leaves):
        for i in range(hosts):
            net.link((f"h{leaf * hosts + i + 1}", 1), (f"leaf{leaf + 1}", i + 1),
                     next(rate))
        for spine, t in itertools.product(range(spines), range(trunk)):
            net.link((f"leaf{leaf + 1}", hosts + spine * trunk + t + 1),
                     (f"spine{spine + 1}", leaf * trunk + t + 1), next(rate))
    return net


def fat_tree3(pods, leaves, aggs, cores, hosts, rates=None):
    """Three levels: in each pod every leaf is linked to every aggregation switch, and
    aggregation switch i to the i-th group of @cores core switches."""
    net = Topology()
    rate = _turns(rates)
    for i in range(pods * leaves * hosts):
        net.ca(f"h{i + 1}")
    for pod in range(pods):
        for i in range(leaves):
            net.switch(f"leaf{pod + 1}-{i + 1}", hosts + aggs)
        for i in range(aggs):
            net.switch(f"agg{pod + 1}-{i + 1}", leaves + cores)
    for group, i in itertools.product(range(aggs), range(cores)):
        net.switch(f"core{group + 1}-{i + 1}", pods)
    for pod in range(pods):
        for leaf in range(leaves):
            first = (pod * leaves + leaf) * hosts
            for i in range(hosts):
                net.link((f"h{first + i + 1}", 1), (f"leaf{pod + 1}-{leaf + 1}", i + 1),
                         next(rate))
            for agg in range(aggs):
                net.link((f"leaf{pod + 1}-{leaf + 1}", hosts + agg + 1),
                         (f"agg{pod + 1}-{agg + 1}", leaf + 1), next(rate))
        for agg, core in itertools.product(range(aggs), range(cores)):
            net.link((f"agg{pod + 1}-{agg + 1}", leaves + core + 1),
                     (f"core{agg + 1}-{core + 1}", pod + 1), next(rate))
    return net


def torus(dims, hosts=1, rates=None):
    """A switch with @hosts hosts at each point of a grid whose edges are joined; @dims:
    its lengths, at least 2 each (at 2 there are two links between the same two)."""
    net = Topology()
    rate = _turns(rates)
    points = list(itertools.product(*(range(d) for d in dims)))
    for i in range(len(points) * hosts):
        net.ca(f"h{i + 1}")
    for point in points:
        net.switch(_torus_name(point), 2 * len(dims) + hosts)
    for number, point in enumerate(points):
        for axis, length in enumerate(dims):
            other = list(point)
            other[axis] = (other[axis] + 1) % length
            net.link((_torus_name(point), 2 * axis + 1),
                     (_torus_name(other), 2 * axis + 2), next(rate))
        for i in range(hosts):
            net.link((f"h{number * hosts + i + 1}", 1),
                     (_torus_name(point), 2 * len(dims) + i + 1), next(rate))
    return net


def _torus_name(point):
    return "sw" + "-".join(str(x) for x in point)


def multiport(groups, ports, hosts, spines, rates=None):
    """Hosts with several ports, as GPU servers have: in each group @hosts hosts, port i
    of each on the group's leaf i; all leaves on all spines."""
    net = Topology()
    rate = _turns(rates)
    for i in range(groups * hosts):
        net.ca(f"h{i + 1}", ports)
    for group, port in itertools.product(range(groups), range(ports)):
        net.switch(f"leaf{group + 1}-{port + 1}", hosts + spines)
    for spine in range(spines):
        net.switch(f"spine{spine + 1}", groups * ports)
    for group, port in itertools.product(range(groups), range(ports)):
        leaf = f"leaf{group + 1}-{port + 1}"
        for i in range(hosts):
            net.link((f"h{group * hosts + i + 1}", port + 1), (leaf, i + 1), next(rate))
        for spine in range(spines):
            net.link((leaf, hosts + spine + 1),
                     (f"spine{spine + 1}", group * ports + port + 1), next(rate))
    return net


def random_fabric(seed, switches, hosts, extra, ports=36, rates=None):
    """A random tree of switches with @extra more links, some of them beside others, and
    hosts anywhere; the same seed makes the same fabric."""
    rng = random.Random(seed)
    net = Topology()
    rate = _turns(rates)
    for i in range(hosts):
        net.ca(f"h{i + 1}")
    for i in range(switches):
        net.switch(f"sw{i + 1}", ports)
    pairs = [(i, rng.randrange(i)) for i in range(1, switches)]
    pairs += [rng.sample(range(switches), 2) for _ in range(extra)]
    ends = [(f"sw{a + 1}", f"sw{b + 1}") for a, b in pairs]
    ends += [(f"h{i + 1}", f"sw{rng.randrange(switches) + 1}") for i in range(hosts)]
    for a, b in ends:
        net.link((a, net.free_port(a)), (b, net.free_port(b)), next(rate))
    return net


def _turns(rates):
    return itertools.cycle(rates or (None,))


# Sizes that the tests name: about 100, 700 and 1,900 to 2,000 nodes of each kind.
NETS = {
    "fat-tree-100": lambda: fat_tree(6, 3, 15),  # 99
    "fat-tree-700": lambda: fat_tree(36, 18, 18),  # 702
    "fat-tree-2000": lambda: fat_tree(100, 18, 18),  # 1918
    "fat-tree3-100": lambda: fat_tree3(4, 3, 2, 2, 6),  # 96
    "fat-tree3-700": lambda: fat_tree3(8, 6, 6, 3, 12),  # 690
    "fat-tree3-2000": lambda: fat_tree3(12, 12, 6, 6, 12),  # 1980
    "torus-100": lambda: torus((7, 7)),  # 98
    "torus-700": lambda: torus((5, 5, 7), hosts=3),  # 700
    "torus-2000": lambda: torus((7, 7, 10), hosts=3),  # 1960
    "multiport-100": lambda: multiport(5, 4, 15, 5),  # 100
    "multiport-700": lambda: multiport(20, 4, 30, 8),  # 688
    "multiport-2000": lambda: multiport(25, 4, 72, 8),  # 1908
    "mixed-100": lambda: fat_tree(6, 3, 15, rates=MIXED),
    "mixed-700": lambda: fat_tree3(8, 6, 6, 3, 12, rates=MIXED),
    "mixed-2000": lambda: torus((7, 7, 10), hosts=3, rates=MIXED),
    "random-200": lambda: random_fabric(200, 40, 160, 30),
}
