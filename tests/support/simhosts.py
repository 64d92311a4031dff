# SPDX-License-Identifier: BSD-2-Clause
"""Hosts with fabd on a simulated fabric that probe each other over loopback.

    with Sim() as sim:
        a, b = two_hosts(sim, "alpha2", "beta1")
        with a, b:
            connected(a), connected(b)
"""

import os

from fabd import MAD_WORKER, Fabd

PORT = "ibsim0/1"


def loopback(number):
    """An address of this machine that no other process here uses."""
    pid = os.getpid()
    return f"127.{1 + pid // 250 % 250}.{1 + pid % 250}.{number}"


def host_config(own, peers, probe=None):
    """@peers: {name: address}."""
    config = {
        "Fabd": {"ControlAddress": own, "WorkerBackoffMaxSec": "1s"},
        f"Port {PORT}": {"Address": own},
        # A busy machine may keep a process waiting for some of these 100 ms.
        "Probe": {"HeartbeatSec": "100ms", "DetectMultiplier": "10",
                  "BackoffMaxSec": "1s", "Source": own, "FlapSuppress": "0",
                  **(probe or {})},
    }
    for name, address in peers.items():
        config[f"Peer {name}"] = {"Address": address}
    return config


def two_hosts(sim, first, second, probe=None, base=1, mad_worker=MAD_WORKER):
    """The Fabds of two hosts, each the other's peer, not started."""
    own = {first: loopback(base), second: loopback(base + 1)}
    pairs = ((first, second), (second, first))
    return [Fabd(name, host_config(own[name], {other: own[other]}, probe),
                 mad_worker=sim.wrapper(name, mad_worker))
            for name, other in pairs]


def connections(fabd):
    """{direction: connection} of a host with one peer."""
    return {c["direction"]: c for c in fabd.ask("ListConnections")}


# A machine that held a process up makes a connection slow, or lossy, for a minute.
WELL_SECONDS = 90


def connected(fabd, seconds=WELL_SECONDS):
    """Wait until both directions are well; the connections."""
    found = fabd.wait_for("ListConnections", lambda conns: len(conns) == 2 and all(
        c["connected"] and c["verdict"] == "ok" for c in conns), seconds)
    return {c["direction"]: c for c in found}


def verdict(fabd, peer, wanted, seconds=10):
    """Wait for the verdict of a peer; that peer."""
    peers = fabd.wait_for("ListPeers", lambda peers: any(
        p["name"] == peer and p["verdict"] == wanted for p in peers), seconds)
    return next(p for p in peers if p["name"] == peer)
