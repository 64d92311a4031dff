# SPDX-License-Identifier: BSD-2-Clause
"""A fabd that runs in a guest, steered from the host.

    fabd = InnerFabd(guest, "a", {"Probe": {"Transports": "rc udp"}, ...})
    fabd.start()
    fabd.wait_for("GetStatus", lambda status: status["peers"]["ok"] == 1, 30)
    when, event = fabd.event(after, "connection", to="connected")

The functions down to the class run in the guest, where the events are stamped: what is
timed does not wait for the way to the host.
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "support"))
from fabd import Fabd  # noqa: E402
from proc import Timeout, wait_until  # noqa: E402

_fabd = None
_watch = None


def _start(name, config, arguments, prefix):
    """Every start of this guest's fabd is in the same folder, so state is kept."""
    global _fabd, _watch
    _fabd = Fabd(name, config, directory="/tmp/fabd", arguments=arguments,
                 prefix=prefix)
    _fabd.start(seconds=60)
    _watch = _fabd.watch()
    return _fabd.pid


def _ask(method, parameters):
    return _fabd.ask(method, **parameters)


def _events(first):
    return _watch.events[first:]


def _event(after, kind, fields):
    """Looked for from the end: what is asked for is new."""
    found = None
    for when, event in reversed(list(_watch.events)):
        if when <= after:
            break
        if event["kind"] == kind and all(event.get(k) == v for k, v in fields.items()):
            found = [when, event]
    return found


def _state_at(when, name):
    """The state that connection @name had then."""
    state = None
    for at, event in list(_watch.events):
        if at >= when:
            break
        if (event["kind"], event["name"], event["change"]) == ("connection", name,
                                                               "state"):
            state = event["to"]
    return state


def _log():
    return _fabd.log()


def _stop(seconds):
    return _fabd.stop(seconds)


def _kill():
    """[time of the kill, exit status]."""
    now = time.monotonic()
    return [now, _fabd.kill()]


def _signal(number):
    _fabd.child.signal(number)


def _reload(config):
    _fabd.reloaded(config)


def _fabctl(argv, seconds):
    return list(_fabd.fabctl(*argv, seconds=seconds))


def now():
    return time.monotonic()


def timed(command):
    """Run a shell command in the guest; the time just before it."""
    start = time.monotonic()
    if os.system(command):
        raise AssertionError(f"failed: {command}")
    return start


class InnerFabd:
    def __init__(self, guest, name, config=None, arguments=(), prefix=()):
        self.guest = guest
        self.name = name
        self.config = config or {}
        self.arguments = list(arguments)
        self.prefix = list(prefix)
        self.pid = None

    def start(self):
        self.pid = self.guest.call(_start, self.name, self.config, self.arguments,
                                   self.prefix, seconds=120)

    def stop(self, seconds=30):
        return self.guest.call(_stop, seconds, seconds=seconds + 30)

    def kill(self):
        """kill -9; the guest's time at which it was done."""
        return self.guest.call(_kill)[0]

    def signal(self, number):
        self.guest.call(_signal, int(number))

    def reload(self, config):
        """With @config's sections in the place of the present ones."""
        self.guest.call(_reload, config)

    def ask(self, method, **parameters):
        return self.guest.call(_ask, method, parameters)

    def fabctl(self, *argv, seconds=30):
        return tuple(self.guest.call(_fabctl, argv, seconds, seconds=seconds + 30))

    def log(self):
        return self.guest.call(_log)

    def wait_for(self, method, probe, seconds, **parameters):
        """Ask until @probe(answer) is true; that answer."""
        last = None

        def asked():
            nonlocal last
            last = self.ask(method, **parameters)
            return probe(last)
        try:
            wait_until(asked, seconds, f"guest {self.guest.name}: {method}", step=0.05)
        except Timeout as e:
            raise Timeout(f"{e}\nlast answer: {last}\n{self.log()}") from None
        return last

    def event(self, after, kind, seconds=10, **fields):
        """The first event that came later than @after (the guest's time), of this kind
        and with these fields: (time, event)."""
        def found():
            return self.guest.call(_event, after, kind, fields)
        try:
            return wait_until(found, seconds, f"event {kind} {fields}", step=0.05)
        except Timeout as e:
            last = "\n".join(str(x) for x in self.guest.call(_events, -40))
            raise Timeout(f"{e}; the last events:\n{last}\n{self.log()}") from None

    def was_connected(self, when, name):
        """Was the connection with the key @name connected at that time?"""
        return self.guest.call(_state_at, when, name) in ("connected", "connected_ping")
