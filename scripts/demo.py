# SPDX-License-Identifier: BSD-2-Clause
"""What scripts/demo shows, once everything is built: on a simulated InfiniBand fabric,
or (--rdma) on soft-RoCE in two guests."""

import json
import os
import signal
import statistics
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "support"))
sys.path.insert(0, os.path.join(TOP, "tests", "guest"))

PROBE = {"HeartbeatSec": "100ms", "DetectMultiplier": "3", "BackoffMaxSec": "2"}
# One host of the two sweeps, though both have these lines. The limit's window is short,
# so that one sees it end.
FABRIC = {"Ports": {"Sweep": "subnet", "SweepHosts": "alpha2", "SweepSec": "10s",
                    "CountersSec": "1s"},
          "Health": {"Limit": "symbol_error 100/4s", "StableSec": "1s"}}
LINKS = 6  # of the fabric, with all its cables


def say(text):
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}",
          flush=True)


def show(host, fabctl, *argv, status=0):
    """Run fabctl on a host and print what it prints. @status: what it has to end with."""
    print(f"{host}$ fabctl {' '.join(argv)}".rstrip(), flush=True)
    rc, out, err = fabctl(*argv)
    print(out + err, flush=True)
    if rc != status:
        raise SystemExit(f"fabctl {' '.join(argv)} ended with status {rc}")


def connected(count):
    """Whether so many connections to peers are up, for ListConnections."""
    def probe(connections):
        up = [c for c in connections if c["direction"] == "tx" and c["connected"]]
        return len(up) == count
    return probe


def median_rtt(connections):
    rtts = [c["rtt_ns"]["p50"] for c in connections if c["rtt_ns"]]
    return statistics.median(rtts) / 1000 if rtts else 0


# ---- the simulated fabric


def fabric(stay):
    from fabd import MAD_WORKER, Fabd
    from sim import Sim

    base = os.getpid() % 250
    here, there = f"127.77.{base}.1", f"127.77.{base}.2"

    def host(sim, name, own, peer, address):
        config = {"Fabd": {"ControlAddress": own}, "Probe": PROBE, **FABRIC,
                  "Port ibsim0/1": {"Address": own, "Rail": "0"},
                  f"Peer {peer}": {"Address": address, "Source": own}}
        return Fabd(name, config, mad_worker=sim.wrapper(name, MAD_WORKER))

    say("A fabric of two switches and four hosts (ibsim), with a subnet manager (OpenSM)")
    with Sim("two-switches") as sim:
        sim.opensm_start("alpha1")
        a = host(sim, "alpha2", here, "beta1", there)
        b = host(sim, "beta1", there, "alpha2", here)
        with a, b:
            for fabd in (a, b):
                fabd.wait_for("ListConnections", connected(1), 20)
                fabd.wait_for("ListPorts", lambda ports: ports and
                              all(p["link_exists"] for p in ports), 20)
            # A minute's figures of round trips are empty in the first second.
            a.wait_for("ListConnections", lambda cs: any(
                c["rtt_ns"] and c["rtt_ns"]["samples"] > 10 for c in cs), 20)
            peers_tour(sim, a, b)
            counters_tour(sim, a)
            subnet_tour(sim, a)
            if stay:
                stay_here(sim, [(f.name, f.admin_socket, f.query_socket)
                                for f in (a, b)])


def peers_tour(sim, a, b):
    say("Host alpha2: its port, and the switch port across the wire")
    show("alpha2", a.fabctl)
    show("alpha2", a.fabctl, "port")
    show("alpha2", a.fabctl, "port", "ibsim0/1")
    say("Its peer beta1, probed over loopback, with round trips")
    show("alpha2", a.fabctl, "peer")
    show("alpha2", a.fabctl, "connection")

    say("The cable of beta1 is pulled")
    with a.watch() as seen_a, b.watch() as seen_b:
        start = time.monotonic()
        sim.unlink("beta1", 1)
        at, _ = seen_b.wait_for(lambda e: e["kind"] == "port" and e["to"] == "bad", 20)
        print(f"beta1  noticed its port after {1000 * (at - start):.0f} ms")
        at, event = seen_a.wait_for(lambda e: e["change"] == "verdict" and
                                    e["to"] == "remote_port", 20)
        print(f"alpha2 knew after {1000 * (at - start):.0f} ms whose fault it is: "
              f"{event['why']}\n")
    show("beta1", b.fabctl)
    show("beta1", b.fabctl, "port", "--not-ok")
    show("alpha2", a.fabctl, "peer", "--not-ok")

    say("The cable is back")
    start = time.monotonic()
    sim.relink("beta1", 1)
    for fabd in (a, b):
        fabd.wait_for("ListConnections", connected(1), 30)
    print(f"connected again, by itself, after {time.monotonic() - start:.1f} s\n")
    for fabd in (a, b):
        fabd.wait_for("GetStatus", lambda s: s["health"] == "ok", 30)
    show("alpha2", a.fabctl)
    show("beta1", b.fabctl, "connection")


def counters_tour(sim, a):
    say("Symbol errors at the port of alpha2: 100 in 4 s are allowed here")
    register = a.ask("GetPortCounters", port="ibsim0/1")["counters"][0]["raw"] or 0
    sim.counter("alpha2", 1, "PortCounters.SymbolErrorCounter", register + 500)
    a.wait_for("GetPort", lambda p: p["health"] == "degraded", 10, port="ibsim0/1")
    show("alpha2", a.fabctl)
    show("alpha2", a.fabctl, "port", "--not-ok")
    show("alpha2", a.fabctl, "port", "counters", "ibsim0/1", "--since", "1m")
    start = time.monotonic()
    a.wait_for("GetPort", lambda p: p["health"] == "ok", 30, port="ibsim0/1")
    print(f"no more of them came: ok again, by itself, after "
          f"{time.monotonic() - start:.0f} s", flush=True)


def subnet_tour(sim, a):
    from proc import wait_until

    saved = os.path.join(a.dir, "before.topo")

    say("The whole subnet, swept from alpha2 alone (Sweep=subnet, SweepHosts=alpha2)")
    show("alpha2", a.fabctl, "fabric", "sweep", "--cold")
    show("alpha2", a.fabctl, "fabric", "links")
    show("alpha2", a.fabctl, "fabric", "nodes")
    show("alpha2", a.fabctl, "fabric", "route", "alpha2", "beta1")
    show("alpha2", a.fabctl, "fabric", "save", saved)

    say("One of the two cables between the switches is pulled")
    sim.unlink("leaf1", 8)
    show("alpha2", a.fabctl, "fabric", "sweep", "--cold")
    show("alpha2", a.fabctl, "fabric", "diff", saved, status=1)
    print("and put back", flush=True)
    sim.relink("leaf1", 8)

    def healed():
        fabric = json.loads(a.fabctl("-j", "fabric", "sweep", "--cold")[1])
        return fabric["links"] == LINKS and not fabric["links_degraded"]
    wait_until(healed, 30, "all links of the fabric", step=0.2)
    show("alpha2", a.fabctl, "fabric", "diff", saved)


TRY = {
    "alpha2": ("", "port -v", "peer", "-p connection", "monitor",
               "port set ibsim0/1 health bad for 1m", "port set ibsim0/1 health auto",
               "reset beta1", "port counters ibsim0/1 --since 10m -v", "fabric",
               "fabric links", "fabric nodes", "fabric errors", "fabric sa",
               "fabric port leaf1/2", "fabric route alpha2 beta1",
               "fabric save /tmp/fabric.topo", "fabric diff /tmp/fabric.topo",
               "fabric graph --format svg > /tmp/fabric.svg", "fabric sweep --cold"),
    "beta1": ("", "peer", "fabric"),
}


def stay_here(sim, hosts):
    say("It goes on running. Try, in another terminal:")
    print(f"export PATH={os.path.join(TOP, 'build', 'cli')}:$PATH")
    for name, admin, query in hosts:
        print(f"# as host {name}")
        print(f"export FABD_SOCKET={query}")
        print(f"export FABD_ADMIN_SOCKET={admin}")
        for line in TRY[name]:
            print(f"fabctl {line}".rstrip())
    print("# break things, and mend them")
    for line in ('Unlink "beta1"[1]', 'ReLink "beta1"[1]',
                 'PerformanceSet "alpha2"[1] PortCounters.SymbolErrorCounter=9999'):
        print(f"echo '{line}' > {sim.path('console')}")
    print("Ctrl-C ends it.", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        signal.pause()
    except KeyboardInterrupt:
        print()


# ---- soft-RoCE in two guests


def rdma(stay):
    from inner import InnerFabd
    from vm import Guests

    say("Two virtual machines on one wire, soft-RoCE on each (this takes a minute)")
    with Guests(2) as guests:
        fabds = []
        for guest, peer, address in ((guests[0], "b", "10.99.0.2"),
                                     (guests[1], "a", "10.99.0.1")):
            guest.sh("rdma link add rxe0 type rxe netdev eth0")
            config = {"Probe": {**PROBE, "Transports": "rc udp"},
                      f"Peer {peer}": {"Address": address}}
            fabds.append(InnerFabd(guest, guest.name, config))
        for fabd in fabds:
            fabd.start()
        for fabd in fabds:
            fabd.wait_for("ListConnections", connected(2), 60)
        rdma_tour(guests, *fabds)
        if stay:
            ask_guests(fabds)
        for fabd in fabds:
            fabd.stop()


def rdma_tour(guests, a, b):
    a.wait_for("ListConnections", lambda cs: all(
        c["rtt_ns"] and c["rtt_ns"]["samples"] > 10
        for c in cs if c["direction"] == "tx"), 60)
    say("Guest a: its port, and its peer over rdma_cm and verbs (rc), beside plain udp")
    for argv in ((), ("port",), ("peer",), ("connection",)):
        show("a", a.fabctl, *argv)
    rtt = median_rtt([c for c in a.ask("ListConnections") if c["transport"] == "rc"])
    print(f"median round trip over rc: {rtt:.0f} us (under software emulation)")

    say("The cable of b is pulled")
    from inner import now
    after = guests[0].call(now)
    guests[1].cable(False)
    at, event = a.event(after, "connection", seconds=20, change="state",
                        to="fabric_reset")
    print(f"a noticed after {1000 * (at - after):.0f} ms: {event['name']}\n")
    b.wait_for("ListConnections", lambda cs: all(
        c["verdict"] == "local_port" for c in cs if c["direction"] == "tx"), 30)
    a.wait_for("ListConnections", lambda cs: all(
        c["verdict"] not in ("ok", "degraded", "unknown")
        for c in cs if c["direction"] == "tx"), 90)
    show("b", b.fabctl)
    show("b", b.fabctl, "peer")
    show("a", a.fabctl, "peer")

    say("The cable is back")
    start = time.monotonic()
    guests[1].cable(True)
    for fabd in (a, b):
        fabd.wait_for("ListConnections", connected(2), 60)
    print(f"connected again, by itself, after {time.monotonic() - start:.1f} s\n")
    show("a", a.fabctl, "peer")


def ask_guests(fabds):
    say("It goes on running. Type: GUEST FABCTL-ARGUMENTS, as in `a port -v`; end: Ctrl-D")
    by_name = {f.name: f for f in fabds}
    for line in sys.stdin:
        name, *argv = line.split() or ["a"]
        if name not in by_name:
            print(f"guests: {' '.join(by_name)}")
            continue
        _rc, out, err = by_name[name].fabctl(*argv)
        print(out + err, flush=True)


def main():
    (rdma if "--rdma" in sys.argv[1:] else fabric)("--stay" in sys.argv[1:])
    say("done")


if __name__ == "__main__":
    main()
