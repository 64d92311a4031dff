# SPDX-License-Identifier: BSD-2-Clause
"""What MADs a program sent, as libumad_tap.so wrote them down.

    tap = MadTap(sim.path("mads"))
    worker = sim.wrapper("h1", MAD_WORKER, **tap.wrap())
    ... run ...
    tap.check_read_only()
"""

import collections
import os

from proc import BUILD
from tap import Skip, check

LIBRARY = os.path.join(BUILD, "tests", "support", "libumad_tap.so")

Mad = collections.namedtuple("Mad", "mgmt_class method attribute modifier route")

LID_ROUTED, SA, PERF, DIRECTED = 0x01, 0x03, 0x04, 0x81
GET, SET, GET_TABLE, REPORT_RESP = 0x01, 0x02, 0x12, 0x86
INFORM_INFO = 0x0003
NODE_DESC, NODE_INFO, SWITCH_INFO, PORT_INFO = 0x10, 0x11, 0x12, 0x15

# All that may ever leave this host: queries, the subscription for notices where it is
# switched on, and the receipt for a notice.
ALLOWED = {(LID_ROUTED, GET), (DIRECTED, GET), (PERF, GET), (SA, GET), (SA, GET_TABLE),
           (SA, REPORT_RESP)}


class MadTap:
    def __init__(self, path):
        if not os.path.exists(LIBRARY):
            raise Skip(f"{LIBRARY} was not built")
        self.path = path

    def wrap(self):
        """The arguments of Sim.wrapper() and Sim.diag() that put the tap in."""
        return {"preload": [LIBRARY], "extra": {"UMAD_TAP": self.path}}

    def mads(self):
        """Every MAD so far, in the order in which they were sent."""
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="ascii") as f:
            rows = [line.split() for line in f]
        return [Mad(*(int(word, 16) for word in row[:4]), row[4]) for row in rows]

    def count(self):
        """How many there were so far."""
        try:
            with open(self.path, "rb") as f:
                return f.read().count(b"\n")
        except FileNotFoundError:
            return 0

    def forget(self):
        """Begin again. Programs that run go on writing to the file."""
        if os.path.exists(self.path):
            os.truncate(self.path, 0)

    def check_read_only(self, subscribes=False):
        """No Set was sent but InformInfo, and that only where it was switched on; and
        nothing else that could change anything. How many MADs that is said of."""
        mads = self.mads()
        check(mads, "no MAD was written down: the tap was not in the way")
        bad = collections.Counter(
            f"class 0x{m.mgmt_class:02x} method 0x{m.method:02x} "
            f"attribute 0x{m.attribute:04x}" for m in mads if not allowed(m, subscribes))
        check(not bad, f"MADs that only a subnet manager may send: {dict(bad)}")
        return len(mads)


def allowed(mad, subscribes):
    if (mad.mgmt_class, mad.method, mad.attribute) == (SA, SET, INFORM_INFO):
        return subscribes
    return (mad.mgmt_class, mad.method) in ALLOWED
