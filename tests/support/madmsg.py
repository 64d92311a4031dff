# SPDX-License-Identifier: BSD-2-Clause
"""Messages of proto/worker.h as fabd-mad and main exchange them, and a main made of them."""

import ctypes as c
import select
import socket
import time

from proc import Timeout

MAGIC, VERSION = 0x4642574D, 4
(INIT, PING, POLL, LISTEN, _UNLISTEN, _EP_START, _EP_PROBE, _EP_HEARTBEAT, _EP_RESET,
 _EP_PING, SMP_GETS, MAD_SEND, EXIT) = range(1, 14)
(HELLO, PONG, DEVICE, PORT, GIDS, PKEYS, PORT_GONE, _LISTENING, _EP_EVENT, _EP_ROUNDS,
 SMP_RESULTS, MAD_MORE, MAD_ANSWER, NOTICE, COUNTERS, _DROPS, GOODBYE) = range(64, 81)
(OK, TIMEOUT, BAD_STATUS, BAD_ANSWER, SEND_FAILED, NO_PORT, NO_PERMISSION) = range(7)
GOODBYE_ASKED, _GOODBYE_GONE, GOODBYE_WRONG_DEVICE, GOODBYE_FAILED = range(4)
DR_SMP, LID_SMP, PMA, SA = range(4)
GET, SET, GET_TABLE = 0x01, 0x02, 0x12
NODE_DESC, NODE_INFO, SWITCH_INFO, PORT_INFO = 0x10, 0x11, 0x12, 0x15
PKEY_TABLE, SLVL, VLARB, SM_INFO = 0x16, 0x17, 0x18, 0x20
CLASS_PORT_INFO, PORT_COUNTERS, PORT_COUNTERS_EXT = 0x01, 0x12, 0x1D
INFORM_INFO, NODE_RECORD, PORT_RECORD, SM_RECORD = 0x03, 0x11, 0x12, 0x18
PATH_RECORD, MCMEMBER_RECORD = 0x35, 0x38
SMPS_EACH, MORE_EACH = 80, 4096


class Header(c.Structure):
    _fields_ = [("magic", c.c_uint32), ("version", c.c_uint16), ("type", c.c_uint16),
                ("length", c.c_uint32), ("generation", c.c_uint32)]


def message(*fields):
    class Message(c.Structure):
        _fields_ = [("h", Header), *fields]
    return Message


Bare = message()
Init = message(("device", c.c_char * 64), ("device_index", c.c_uint32),
               ("poll_ms", c.c_uint32), ("max_endpoints", c.c_uint32),
               ("counters_ms", c.c_uint32), ("reports", c.c_uint8),
               ("pad", c.c_uint8 * 3))
Ping = message(("seq", c.c_uint64))


class SmpGet(c.Structure):
    _fields_ = [("id", c.c_uint64), ("mod", c.c_uint32), ("attr", c.c_uint16),
                ("timeout_ms", c.c_uint16), ("retries", c.c_uint8), ("hops", c.c_uint8),
                ("path", c.c_uint8 * 64), ("pad", c.c_uint8 * 6)]


class SmpResult(c.Structure):
    _fields_ = [("id", c.c_uint64), ("status", c.c_uint8), ("pad", c.c_uint8),
                ("mad_status", c.c_uint16), ("error", c.c_int32), ("rtt_ns", c.c_uint64),
                ("data", c.c_uint8 * 64)]


class Grh(c.Structure):
    _fields_ = [("present", c.c_uint8), ("gid_index", c.c_uint8),
                ("hop_limit", c.c_uint8), ("traffic_class", c.c_uint8),
                ("flow_label", c.c_uint32), ("gid", c.c_uint8 * 16)]


# Longer ones are sent as long as their entries need.
SmpGets = message(("device", c.c_char * 64), ("port", c.c_uint8), ("pad", c.c_uint8 * 5),
                  ("n", c.c_uint16), ("get", SmpGet * SMPS_EACH))
SmpResults = message(("n", c.c_uint16), ("pad", c.c_uint8 * 6),
                     ("result", SmpResult * SMPS_EACH))
Send = message(("id", c.c_uint64), ("device", c.c_char * 64), ("port", c.c_uint8),
               ("kind", c.c_uint8), ("method", c.c_uint8), ("hops", c.c_uint8),
               ("path", c.c_uint8 * 64), ("attr", c.c_uint16), ("mod", c.c_uint32),
               ("dlid", c.c_uint16), ("sl", c.c_uint8), ("retries", c.c_uint8),
               ("timeout_ms", c.c_int32), ("pkey_index", c.c_uint16),
               ("length", c.c_uint16), ("comp_mask", c.c_uint64), ("grh", Grh),
               ("data", c.c_uint8 * 200))
More = message(("id", c.c_uint64), ("offset", c.c_uint32), ("total", c.c_uint32),
               ("length", c.c_uint16), ("pad", c.c_uint8 * 6),
               ("data", c.c_uint8 * MORE_EACH))
Answer = message(("id", c.c_uint64), ("status", c.c_uint8), ("more", c.c_uint8),
                 ("mad_status", c.c_uint16), ("error", c.c_int32), ("rtt_ns", c.c_uint64),
                 ("total", c.c_uint32), ("attr_offset", c.c_uint16),
                 ("length", c.c_uint16), ("data", c.c_uint8 * 200))
Notice = message(("device", c.c_char * 64), ("port", c.c_uint8), ("pad", c.c_uint8),
                 ("slid", c.c_uint16), ("pad2", c.c_uint8 * 4), ("data", c.c_uint8 * 80))
Pong = message(("seq", c.c_uint64), ("hot_age_ms", c.c_uint32), ("cm_busy_ms", c.c_uint32),
               ("cm_destroying", c.c_uint8), ("pad", c.c_uint8 * 3),
               ("cm_call", c.c_char * 28), ("endpoints", c.c_uint32),
               ("listeners", c.c_uint32), ("late_worst_us", c.c_uint32),
               ("pad2", c.c_uint32))
Hello = message(("pid", c.c_uint32), ("kind", c.c_uint8), ("pad", c.c_uint8 * 3),
                ("device", c.c_char * 64), ("release", c.c_char * 32))
# The facts as far as a umad device has them.
Device = message(("device_index", c.c_uint32), ("has_verbs", c.c_uint8),
                 ("pad", c.c_uint8 * 3), ("name", c.c_char * 64),
                 ("node_type", c.c_char * 16), ("transport", c.c_char * 16),
                 ("node_guid", c.c_uint64), ("sys_image_guid", c.c_uint64),
                 ("node_desc", c.c_char * 65), ("fw", c.c_char * 64))
Port = message(("device", c.c_char * 64), ("device_index", c.c_uint32),
               ("port", c.c_uint8), ("has_verbs", c.c_uint8), ("has_smi", c.c_uint8),
               ("source", c.c_uint8), ("missing", c.c_uint32), ("missing_why", c.c_uint8),
               ("link_layer", c.c_uint8), ("state", c.c_uint8), ("phys_state", c.c_uint8),
               ("max_mtu", c.c_uint8), ("active_mtu", c.c_uint8), ("lmc", c.c_uint8),
               ("sm_sl", c.c_uint8), ("width", c.c_uint8), ("vl_code", c.c_uint8),
               ("pad", c.c_uint16), ("speed", c.c_uint32), ("lid", c.c_uint32),
               ("sm_lid", c.c_uint32), ("cap_mask", c.c_uint32),
               ("netdev_index", c.c_uint32), ("netdev", c.c_char * 16),
               ("port_guid", c.c_uint64))


class Gid(c.Structure):
    _fields_ = [("index", c.c_uint16), ("type", c.c_uint8), ("pad", c.c_uint8),
                ("netdev_index", c.c_uint32), ("gid", c.c_uint8 * 16)]


_TABLE = (("device", c.c_char * 64), ("port", c.c_uint8), ("last", c.c_uint8),
          ("why", c.c_uint8), ("pad", c.c_uint8), ("first", c.c_uint16),
          ("n", c.c_uint16))
Gids = message(*_TABLE, ("gid", Gid * 64))
Pkeys = message(*_TABLE, ("pkey", c.c_uint16 * 256))
PortGone = message(("device", c.c_char * 64), ("port", c.c_uint8),
                   ("pad", c.c_uint8 * 7))
Goodbye = message(("why", c.c_uint8), ("pad", c.c_uint8 * 7), ("text", c.c_char * 96))

TYPES = {HELLO: Hello, PONG: None, DEVICE: Device, PORT: Port, GIDS: Gids, PKEYS: Pkeys,
         PORT_GONE: PortGone, SMP_RESULTS: SmpResults, MAD_MORE: More,
         MAD_ANSWER: Answer, NOTICE: Notice, GOODBYE: Goodbye}


def batch(entries, device=b"ibsim0", port=1):
    """SMP_GETS of these SmpGet, as long as it needs to be: (structure, bytes)."""
    m = SmpGets(device=device, port=port, n=len(entries))
    for i, e in enumerate(entries):
        m.get[i] = e
    return m, SmpGets.get.offset + len(entries) * c.sizeof(SmpGet)


def results(entries):
    """SMP_RESULTS of these SmpResult: (structure, bytes)."""
    m = SmpResults(n=len(entries))
    for i, e in enumerate(entries):
        m.result[i] = e
    return m, SmpResults.result.offset + len(entries) * c.sizeof(SmpResult)


def smp_get(ident, attr, path=(), mod=0, timeout_ms=1000, retries=0):
    hops = (c.c_uint8 * 64)(*([0, *path] if path else []))
    return SmpGet(id=ident, attr=attr, hops=len(path), path=hops, mod=mod,
                  timeout_ms=timeout_ms, retries=retries)


class Closed(AssertionError):
    """The worker closed the connection."""


class Main:
    """The end of the connection that main has."""

    def __init__(self, sock, generation=1):
        self.sock = sock
        self.generation = generation
        self.seen = []  # messages that nobody waited for yet

    def send(self, kind, body=None, generation=None, size=None):
        body = body if body is not None else Bare()
        size = c.sizeof(body) if size is None else size
        body.h = Header(MAGIC, VERSION, kind, size,
                        self.generation if generation is None else generation)
        self.sock.send(bytes(body)[:size])

    def init(self, device="", poll_ms=0, reports=False):
        self.send(INIT, Init(device=device.encode(), poll_ms=poll_ms, reports=reports))

    def gets(self, entries, device="ibsim0", port=1):
        """Ask for SmpGet entries at once, and return their results by id."""
        body, size = batch(entries, device.encode(), port)
        self.send(SMP_GETS, body, size=size)
        out = {}
        while len(out) < len(entries):
            m = self.wait(SMP_RESULTS)
            for r in m.result[:m.n]:
                out[r.id] = SmpResult.from_buffer_copy(r)
        return out

    def ask(self, ident, kind, attr, method=GET, device="ibsim0", port=1, timeout_ms=1000,
            data=b"", seconds=10, **fields):
        """One MAD of any kind: (Answer, its data, pieces joined)."""
        body = Send(id=ident, kind=kind, attr=attr, method=method, device=device.encode(),
                    port=port, timeout_ms=timeout_ms, length=len(data), **fields)
        body.data[:len(data)] = data
        self.send(MAD_SEND, body)
        answer = self.wait(MAD_ANSWER, lambda m: m.id == ident, seconds)
        joined = bytes(answer.data[:answer.length])
        if answer.more:
            pieces = [m for k, m in self.seen if k == MAD_MORE and m.id == ident]
            self.seen = [(k, m) for k, m in self.seen if k != MAD_MORE or m.id != ident]
            joined = b"".join(bytes(m.data[:m.length]) for m in pieces)
        return answer, joined

    def get(self, ident, attr, path=(), device="ibsim0", port=1, mod=0, timeout_ms=1000,
            retries=0):
        """Ask for one; result() has the answer."""
        body, size = batch([smp_get(ident, attr, path, mod, timeout_ms, retries)],
                           device.encode(), port)
        self.send(SMP_GETS, body, size=size)

    def receive(self, seconds):
        """The next message as (type, structure), or Timeout, or Closed."""
        if not select.select([self.sock], [], [], max(seconds, 0))[0]:
            raise Timeout("no message of the worker")
        try:
            raw = self.sock.recv(65536)
        except ConnectionResetError:  # closed with something of ours unread
            raw = b""
        if not raw:
            raise Closed("the worker closed the connection")
        head = Header.from_buffer_copy(raw)
        if (head.magic, head.version, head.length) != (MAGIC, VERSION, len(raw)):
            raise AssertionError(f"bad header of {len(raw)} bytes")
        if head.generation != self.generation:
            raise AssertionError(f"generation {head.generation}")
        kind = TYPES[head.type] or Ping
        return head.type, kind.from_buffer_copy(raw.ljust(c.sizeof(kind), b"\0"))

    def wait(self, kind, probe=lambda m: True, seconds=10):
        """The first message of @kind that @probe likes; others are kept."""
        for i, (k, m) in enumerate(self.seen):
            if k == kind and probe(m):
                del self.seen[i]
                return m
        end = time.monotonic() + seconds
        while True:
            k, m = self.receive(end - time.monotonic())
            if k == kind and probe(m):
                return m
            self.seen.append((k, m))

    def result(self, ident, seconds=10):
        """The result of one Get; others in the same message are kept."""
        m = self.wait(SMP_RESULTS, lambda m: any(r.id == ident for r in m.result[:m.n]),
                      seconds)
        all_ = [SmpResult.from_buffer_copy(r) for r in m.result[:m.n]]
        rest = [r for r in all_ if r.id != ident]
        if rest:
            self.seen.append((SMP_RESULTS, results(rest)[0]))
        return next(r for r in all_ if r.id == ident)

    def drain(self, seconds):
        """All that comes in that time, with what was kept."""
        end = time.monotonic() + seconds
        try:
            while True:
                self.seen.append(self.receive(end - time.monotonic()))
        except Timeout:
            pass
        out, self.seen = self.seen, []
        return out

    def close(self):
        self.sock.close()


def pair():
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def bits(data, offset, width):
    """A field of an attribute by the offsets of the InfiniBand specification."""
    value = int.from_bytes(bytes(data), "big")
    return (value >> (8 * len(bytes(data)) - offset - width)) & ((1 << width) - 1)
