# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts that probe each other: two guests with a fabd in each.

    pair = Pair(guests, "rxe")
    pair.add(pair.a), pair.add(pair.b)      # the RDMA device r0 on eth0
    pair.start()
    pair.wait_connected()
    pair.b.sh("ip link set eth0 down")
    pair.wait_verdict(pair.fabd_b, {"local_port"}, "rc")
"""

import re

from inner import InnerFabd

KINDS = ("rxe", "siw")

# Soft-RoCE on a message whose address was removed before it was sent.
EXPECTED = re.compile(r"rdma_rxe: (qp#\d+ Failed allocating skb$|no route to |"
                      r"Host not reachable)")


def complaints(guest):
    """What the guest's kernel warned of, but for what the faults bring about."""
    return [line for line in guest.console().splitlines()
            if line.strip() and not EXPECTED.search(line.strip())]


def count(value):
    """What a list or the lines of a text number."""
    return len(value.splitlines() if isinstance(value, str) else value)


class Pair:
    def __init__(self, guests, kind, nics=1, probe=None, rows=None,
                 transports=("rc", "udp")):
        """@probe: rows of [Probe]; @rows: of [Fabd]."""
        self.guests = guests
        self.a, self.b = guests
        self.kind = kind
        self.nics = nics
        self.transports = transports
        self.probe = {"HeartbeatSec": "100ms", "BackoffMaxSec": "2", "FlapSuppress": "0",
                      "Transports": " ".join(transports), **(probe or {})}
        # A worker of a guest that the host keeps waiting takes long to say its first word.
        self.rows = {"WorkerSilenceSec": "10s", **(rows or {})}
        self.fabd_a = InnerFabd(self.a, "a", self.config(self.a))
        self.fabd_b = InnerFabd(self.b, "b", self.config(self.b))
        self.fabds = (self.fabd_a, self.fabd_b)

    def config(self, guest):
        other = self.b if guest is self.a else self.a
        return {"Fabd": self.rows, "Probe": self.probe,
                f"Peer {other.name}": {
                    "Address": [other.address(nic) for nic in range(self.nics)]}}

    def other(self, fabd):
        return self.fabd_b if fabd is self.fabd_a else self.fabd_a

    # ---- devices

    def add(self, guest, device="r0", netdev="eth0"):
        guest.sh(f"rdma link add {device} type {self.kind} netdev {netdev}")

    def delete(self, guest, device="r0"):
        """Seconds it took by the guest's clock."""
        return float(guest.sh(f"s=$EPOCHREALTIME; timeout 30 rdma link delete {device} "
                              "|| exit 1; e=$EPOCHREALTIME; "
                              "echo $s $e | awk '{ print $2 - $1 }'"))

    # ---- life

    def start(self):
        for fabd in self.fabds:
            fabd.start()

    def stop(self):
        return [fabd.stop() for fabd in self.fabds]

    # ---- connections

    def connections(self, fabd, transport=None, rail=None, direction=None):
        return [c for c in fabd.ask("ListConnections")
                if transport in (None, c["transport"]) and rail in (None, c["rail"]) and
                direction in (None, c["direction"])]

    def tx(self, fabd, transport, rail="0"):
        return self.connections(fabd, transport, rail, "tx")[0]

    def _all_connected(self, found, per_nic):
        return len(found) >= self.nics * per_nic and all(
            c["connected"] and not c["late"] for c in found)

    def wait_connected(self, seconds=60, fabds=None, transports=None):
        """Both directions of each transport over each interface."""
        transports = transports or self.transports
        for fabd in fabds or self.fabds:
            fabd.wait_for("ListConnections", lambda all_of: self._all_connected(
                [c for c in all_of if c["transport"] in transports],
                2 * len(transports)), seconds)

    def wait_lost(self, fabd, transport, seconds=30, rail="0"):
        """Until none of these is connected."""
        fabd.wait_for("ListConnections", lambda all_of: not any(
            c["connected"] for c in all_of
            if c["transport"] == transport and c["rail"] == rail), seconds)

    def wait_verdict(self, fabd, wanted, transport, seconds=30, direction="tx",
                     rail="0"):
        """The connection that has come to one of the verdicts @wanted, by itself: the
        same fault may hold it under its port or its peer."""
        def judged(all_of):
            found = [c for c in all_of if c["transport"] == transport and
                     c["direction"] == direction and c["rail"] == rail]
            return found and found[0]["own_verdict"] in wanted and found[0]
        return judged(fabd.wait_for("ListConnections", judged, seconds))

    def tally(self, fabd, transport=None, rail=None):
        """{direction and transport and rail: (connects, losses)}"""
        return {(c["direction"], c["transport"], c["rail"]): (c["connects"], c["losses"])
                for c in self.connections(fabd, transport, rail)}

    # ---- processes and what they hold

    def workers(self, fabd, device):
        return [w for w in fabd.ask("GetStatus")["workers"]
                if w["kind"] == "rdma" and w["device"] == device]

    def worker(self, fabd, device="r0"):
        return self.workers(fabd, device)[0]

    def wait_worker(self, fabd, device="r0", after=0, seconds=30):
        """A running worker of a later generation than @after."""
        def running(status):
            return next((w for w in status["workers"]
                         if w["kind"] == "rdma" and w["device"] == device and
                         w["state"] == "running" and w["generation"] > after), None)
        return running(fabd.wait_for("GetStatus", running, seconds))

    def resources(self, guest):
        """What the kernel holds for RDMA in this guest."""
        return {kind: count(guest.sh(f"rdma res show {kind}"))
                for kind in ("qp", "cm_id", "cq", "pd", "mr", "ctx")}

    def descriptors(self, guest, pid):
        return count(guest.sh(f"ls /proc/{pid}/fd"))

    def rss_kib(self, guest, pid):
        return int(guest.sh(f"awk '/^VmRSS:/ {{ print $2 }}' /proc/{pid}/status"))
