#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A MAD worker that plays what it is told, for MadWorker=. Run by fabd with --fd N.

    MadWorker = script("garbage", directory, "short")    # what script() returns

It begins well: hello, and a port that is up. What it does wrong is the scene. Each start is a line in DIRECTORY/starts; from the third start on it
does nothing wrong, so that a test sees the replacement work.
"""

import ctypes as c
import os
import shlex
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import madmsg as mm  # noqa: E402

GOOD_FROM = 3
ACTIVE, LINK_UP = 4, 5
NO_VERBS = 4
# Of a port: what only verbs could tell (bits of enum wm_port_bit).
MTU_WIDTH_SPEED_CAPS_NETDEV_VLS = 0x372


def script(scene, directory, *args):
    """Write a program that plays the scene; its path."""
    path = os.path.join(directory, f"fake-{scene}-{'-'.join(args)}.sh")
    with open(path, "w") as f:
        f.write("#!/bin/sh\nexec /usr/bin/python3 "
                + " ".join(shlex.quote(a) for a in (os.path.abspath(__file__), scene,
                                                    directory, *args)) + ' "$@"\n')
    os.chmod(path, 0o755)
    return path


def starts(directory):
    try:
        with open(os.path.join(directory, "starts")) as f:
            return len(f.readlines())
    except FileNotFoundError:
        return 0


class Worker:
    def __init__(self, fd):
        self.sock = socket.socket(fileno=fd)
        self.generation = 0

    def raw(self, data):
        self.sock.send(data)

    def send(self, kind, body, size=None, **header):
        size = c.sizeof(body) if size is None else size
        values = {"magic": mm.MAGIC, "version": mm.VERSION, "type": kind,
                  "length": size, "generation": self.generation, **header}
        body.h = mm.Header(**values)
        self.raw(bytes(body)[:size])

    def hello(self, **fields):
        values = {"pid": os.getpid(), "kind": 1, "release": b"fake", **fields}
        self.send(mm.HELLO, mm.Hello(**values))

    def port(self, device, number, guid, **fields):
        """A port that is up. Umad only: what verbs would know is missing."""
        values = {"device": device, "device_index": 0xFFFFFFFF, "port": number,
                  "has_smi": 0, "link_layer": 1, "state": ACTIVE, "phys_state": LINK_UP,
                  "lid": 7, "sm_lid": 1, "port_guid": guid, "missing": MTU_WIDTH_SPEED_CAPS_NETDEV_VLS,
                  "missing_why": NO_VERBS, **fields}
        self.send(mm.PORT, mm.Port(**values))

    def init(self):
        self.generation = mm.Header.from_buffer_copy(self.sock.recv(65536)).generation

    def begin(self):
        self.hello()
        self.port(b"good0", 1, 0x1001)

    def serve(self, told=lambda kind: None):
        """Answer pings until main goes; @told of the kind of all that comes."""
        while True:
            data = self.sock.recv(65536)
            if not data:
                sys.exit(0)
            head = mm.Header.from_buffer_copy(data)
            told(head.type)
            if head.type == mm.PING:
                self.pong(mm.Ping.from_buffer_copy(data).seq)

    def pong(self, seq):
        self.send(mm.PONG, mm.Pong(seq=seq))


# ---- what can be wrong with a message

def oversized(w):
    w.raw(b"\x5a" * 60000)


def short(w):
    w.raw(b"\x5a" * 7)


def magic(w):
    w.send(mm.PONG, mm.Pong(), magic=0x12345678)


def version(w):
    w.send(mm.PONG, mm.Pong(), version=99)


def length(w):
    w.send(mm.PONG, mm.Pong(), length=4)


def main_only(w):
    body, size = mm.batch([mm.smp_get(1, 0x15)], b"good0", 1)
    w.send(mm.SMP_GETS, body, size)


def unknown_type(w):
    w.send(4711, mm.Bare())


def port_0(w):
    w.port(b"good0", 0, 0x1001)


def port_255(w):
    w.port(b"good0", 255, 0x1001)


def lmc_9(w):
    w.port(b"good0", 1, 0x1001, lmc=9)


def link_layer_9(w):
    w.port(b"good0", 1, 0x1001, link_layer=9)


def no_name(w):
    w.port(b"", 1, 0x1001)


def no_end_of_text(w):
    w.port(b"x" * 64, 1, 0x1001)


def gids_flood(w):
    for _ in range(20):
        w.send(mm.GIDS, mm.Gids(device=b"good0", port=1, first=1, n=64))


def pkeys_flood(w):
    for _ in range(8):
        w.send(mm.PKEYS, mm.Pkeys(device=b"good0", port=1, first=1, n=256))


def gids_too_many(w):
    w.send(mm.GIDS, mm.Gids(device=b"good0", port=1, n=65))


def batch_status(w):
    body, size = mm.results([mm.SmpResult(id=1), mm.SmpResult(id=2, status=99)])
    w.send(mm.SMP_RESULTS, body, size)


def batch_of_none(w):
    body, size = mm.results([])
    w.send(mm.SMP_RESULTS, body, size)


def batch_too_short(w):
    body, size = mm.results([mm.SmpResult(id=1)])
    body.n = 2
    w.send(mm.SMP_RESULTS, body, size)


def answer_length(w):
    w.send(mm.MAD_ANSWER, mm.Answer(id=1, length=100, total=200))


def more_beyond(w):
    w.send(mm.MAD_MORE, mm.More(id=1, offset=100, total=100, length=1),
           mm.More.data.offset + 1)


def goodbye_why(w):
    w.send(mm.GOODBYE, mm.Goodbye(why=99))


def exits(_w):
    sys.exit(3)


GARBAGE = {f.__name__: f for f in (
    oversized, short, magic, version, length, main_only, unknown_type, port_0, port_255,
    lmc_9, link_layer_9, no_name, no_end_of_text, gids_flood, pkeys_flood, gids_too_many,
    batch_status, batch_of_none, batch_too_short, answer_length, more_beyond,
    goodbye_why, exits)}


def garbage(w, directory, kind):
    w.begin()
    if starts(directory) < GOOD_FROM:
        GARBAGE[kind](w)


def mute(w, directory):
    """Says hello, then nothing."""
    w.begin()
    while starts(directory) < GOOD_FROM and w.sock.recv(65536):
        pass


def deaf(w, directory):
    """Takes requests of MADs and never answers one."""
    w.hello()
    w.port(b"good0", 1, 0x1001, has_smi=int(starts(directory) < GOOD_FROM))


def early(w, directory):
    """Speaks before its hello."""
    if starts(directory) < GOOD_FROM:
        w.port(b"good0", 1, 0x1001)
    w.begin()


# ---- a device that lies

def lying(w, _directory):
    w.begin()
    w.port(b"zero0", 1, 0)
    w.port(b"twin0", 1, 0x2002)
    w.port(b"twin1", 1, 0x2002)
    for number in range(1, 255):
        w.port(b"many0", number, 0x3000 + number)
    w.port(b"odd0", 1, 0x4001, state=77, phys_state=200, lid=0xFFFFFFFF,
           sm_lid=0xFFFF, netdev=b"\xff\xfe\x01\x1b[2J", netdev_index=4242, missing=0,
           width=0xAA, speed=0xFFFFFFFF, max_mtu=99, active_mtu=0, vl_code=77)
    w.port(b"bad\x1b[31m\xff\n0", 1, 0x5001)


# ---- two devices; the second one has news with each ping, until it is unplugged

def chatty(w, directory):
    w.begin()
    w.port(b"good1", 1, 0x1002)
    lid = 7
    unplugged = False

    def told(kind):
        nonlocal lid, unplugged
        if not unplugged and os.path.exists(os.path.join(directory, "unplug")):
            unplugged = True
            w.send(mm.PORT_GONE, mm.PortGone(device=b"good1", port=1))
            w.send(mm.PORT_GONE, mm.PortGone(device=b"good1", port=0))
        if kind == mm.POLL:
            w.port(b"good0", 1, 0x1001)
        if kind in (mm.PING, mm.POLL) and not unplugged:
            lid = 7 + (lid - 6) % 100
            w.port(b"good1", 1, 0x1002, lid=lid)
    w.serve(told)


# ---- a device with so many ports, for hosts whose rails are tied to it

def rails(w, _directory, count):
    w.hello()
    for number in range(1, int(count) + 1):
        w.port(b"good0", number, 0x1000 + number, lid=6 + number)


SCENES = {"rails": rails, "garbage": garbage, "mute": mute, "deaf": deaf,
          "early": early, "lying": lying, "chatty": chatty}


def main():
    scene, directory, *args = sys.argv[1:-2]
    w = Worker(int(sys.argv[-1]))
    with open(os.path.join(directory, "starts"), "a") as f:
        f.write(f"{os.getpid()}\n")
    w.init()
    SCENES[scene](w, directory, *args)
    w.serve()


if __name__ == "__main__":
    main()
