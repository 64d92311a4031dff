# SPDX-License-Identifier: BSD-2-Clause
"""A fabd that sweeps a simulated subnet, and what fabctl says of the fabric.

    with Sim(net.write(folder)) as sim:
        sim.opensm_start(HOST)
        with sweeper(sim, HOST) as fabd:
            sweep(fabd)
            check_same_topology(saved(fabd), Diag(sim, HOST).ibnetdiscover(), "all")
"""

import json
import os

from fabd import MAD_WORKER, Fabd
from ibdiag import topology
from madtap import MadTap
from proc import wait_until
from simhosts import loopback
from tap import check, check_equal

SWEEP_SECONDS = 120
ROLLING = 20  # after so many sweeps everything was read again


def sweeper(sim, host, config=None, tapped=True, mad_worker=MAD_WORKER, number=1):
    """The Fabd of @host, not started; every MAD that it sends is written down, unless it
    is to be timed: then @tapped is False. Its tap is fabd.tap."""
    tap = MadTap(sim.path(f"mads-{host}-{number}")) if tapped else None
    wrapper = sim.wrapper(host, mad_worker, **(tap.wrap() if tap else {}))
    rows = {"Fabd": {"ControlAddress": loopback(number), "WorkerBackoffMaxSec": "1s"},
            # As fast as it goes, and only when it is told to.
            "Ports": {"Sweep": "subnet", "SweepSec": "1h", "SweepMadsPerSec": "0"}}
    for section, more in (config or {}).items():
        rows.setdefault(section, {}).update(more)
    fabd = Fabd(host, rows, mad_worker=wrapper)
    fabd.tap = tap
    return fabd


def ctl(fabd, *argv, seconds=SWEEP_SECONDS):
    """The output of a fabctl that succeeds."""
    rc, out, err = fabd.fabctl(*argv, seconds=seconds)
    check_equal(rc, 0, f"fabctl {' '.join(argv)}: {out}{err}")
    return out


def ctl_json(fabd, *argv):
    """The object that `fabctl -j fabric ...` prints, alone or as the only one of a
    list."""
    value = json.loads(ctl(fabd, "-j", "fabric", *argv))
    if isinstance(value, list):
        check_equal(len(value), 1, f"fabctl -j fabric {' '.join(argv)}: objects")
        value = value[0]
    return value


def sweep(fabd, cold=True):
    """Sweep now, to the end; its last_sweep."""
    ctl(fabd, "fabric", "sweep", *(["--cold"] if cold else []))
    last = ctl_json(fabd)["last_sweep"]
    check_equal(last["kind"], "full" if cold else "incremental", "kind of sweep")
    return last


def swept(fabd, seconds=SWEEP_SECONDS):
    """Wait until the first sweep has ended; its last_sweep."""
    def ended():
        rc, out, _err = fabd.fabctl("-j", "fabric")
        value = json.loads(out) if rc == 0 else {}
        value = value[0] if isinstance(value, list) else value
        return value.get("last_sweep")
    return wait_until(ended, seconds, f"first sweep of {fabd.name}", step=0.05)


def saved(fabd):
    """The text of `fabctl fabric save FILE`."""
    path = fabd.path("saved.topo")
    ctl(fabd, "fabric", "save", path)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    os.unlink(path)
    return text


def port(fabd, node, number):
    return ctl_json(fabd, "port", f"{node}/{number}")


def nodes(fabd):
    """{description: FabricNode}."""
    return {n["node_desc"]: n for n in fabd.ask("ListFabricNodes")}


def links_of(text):
    """{(description, port): (description, port)} of a topology file, from both ends."""
    return {(node["desc"], number): (far["peer_desc"], far["peer_port"])
            for node in topology(text).values() for number, far in node["links"].items()}


def check_no_errors(fabd):
    """The last sweep had an answer from everything it asked."""
    last = ctl_json(fabd)["last_sweep"]
    check(not last["errors"], f"errors of the sweep: {last}\n"
          + fabd.fabctl("fabric", "errors")[1])
    return last
