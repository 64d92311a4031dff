# SPDX-License-Identifier: BSD-2-Clause
"""How far the clocks of two guests are apart, by a UDP echo over their wire.

They were calibrated apart and differ by up to half a second; measure before each fault
whose effect is timed in the other guest.
"""

import socket
import struct
import threading
import time

PORT = 18790
CLOCKS = {"monotonic": time.CLOCK_MONOTONIC, "realtime": time.CLOCK_REALTIME}
_servers = {}


def _serve(s):
    while True:
        data, peer = s.recvfrom(64)
        clock = time.CLOCK_REALTIME if data[0] else time.CLOCK_MONOTONIC
        s.sendto(data + struct.pack("!q", time.clock_gettime_ns(clock)), peer)


def serve(address):
    """Guest side: answer from now on."""
    if address not in _servers:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((address, PORT))
        _servers[address] = s
        threading.Thread(target=_serve, args=(s,), daemon=True).start()


def measure(address, clock, count):
    """Guest side: [that guest's clock minus ours, at most so far wrong], both in ns.
    The echo with the shortest round trip is the one to trust."""
    best = None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.connect((address, PORT))
        for sequence in range(count):
            request = struct.pack("!BH", clock == "realtime", sequence)
            start = time.clock_gettime_ns(CLOCKS[clock])
            s.send(request)
            try:
                answer = s.recv(64)
            except TimeoutError:
                continue
            end = time.clock_gettime_ns(CLOCKS[clock])
            if answer[:3] != request:
                continue
            there = struct.unpack("!q", answer[3:])[0]
            if best is None or end - start < best[1]:
                best = [there - (start + end) // 2, end - start]
    if best is None:
        raise AssertionError(f"no echo from {address}")
    return [best[0], best[1] // 2]


def offset(a, b, clock="monotonic", count=50):
    """Host side: (clock of guest @b minus clock of guest @a, error), in seconds."""
    b.call(serve, b.address())
    value, error = a.call(measure, b.address(), clock, count)
    return value / 1e9, error / 1e9
