# SPDX-License-Identifier: BSD-2-Clause
"""Hosts with fabd in network namespaces, over udp alone, each the other's peer.

    with Pair() as pair, two_hosts(pair, link) as (a, b):
        well(a), well(b)
"""

import contextlib

from fabd import Fabd

# A busy machine may keep a process waiting for some of these 100 ms. Hosts that are lost
# again and again in one run would be damped.
PROBE = {"HeartbeatSec": "100ms", "DetectMultiplier": "10",
         "BackoffMinSec": "200ms", "BackoffMaxSec": "1s", "PingSec": "1s", "FlapSuppress": "0"}


def config_of(own, other, addresses, probe=None, fabd=None, peer=None):
    """@addresses: a list, an address a rail."""
    return {"Fabd": fabd or {}, "Probe": {**PROBE, **(probe or {})},
            f"Peer {other}": {"Address": addresses, **(peer or {})}}


def host(ns, other, addresses, **kwargs):
    """A Fabd in the namespace of @ns, a Host, with one peer; not started."""
    config = config_of(ns.name, other, addresses, **kwargs)
    # No device and no worker is wanted here.
    return Fabd(ns.name, config, prefix=ns.prefix, mad_worker="/nonexistent/fabd-mad")


@contextlib.contextmanager
def two_hosts(pair, addresses, **kwargs):
    """@addresses(host): those by which the other one has it as a peer."""
    a, b = pair
    with host(a, "b", addresses(b), **kwargs) as first, \
            host(b, "a", addresses(a), **kwargs) as second:
        yield first, second


def conns(fabd, **match):
    return [c for c in fabd.ask("ListConnections")
            if all(c[k] == v for k, v in match.items())]


def tx(fabd, rail="0"):
    found, = conns(fabd, direction="tx", rail=rail)
    return found


# A machine that held a process up makes a connection slow, or lossy, for a minute.
WELL_SECONDS = 90


def well(fabd, count=2, seconds=WELL_SECONDS):
    """Wait until all connections are well; those."""
    found = fabd.wait_for("ListConnections", lambda cs: len(cs) == count and all(
        c["connected"] and c["verdict"] == "ok" for c in cs), seconds)
    return {(c["direction"], c["rail"]): c for c in found}


def verdict(fabd, *wanted, rail="0", seconds=15):
    """Wait until the tx on the rail has one of these verdicts; it."""
    def judged(cs):
        return [c for c in cs if c["direction"] == "tx" and c["rail"] == rail and
                c["verdict"] in wanted]
    return judged(fabd.wait_for("ListConnections", judged, seconds))[0]


def verdicts_seen(watch, key=None):
    """The verdicts of tx connections that a Watch has recorded."""
    return [e["to"] for _, e in watch.events if e["kind"] == "connection"
            and e["change"] == "verdict" and ":tx:" in e["name"]
            and (key is None or e["name"] == key)]
