# SPDX-License-Identifier: BSD-2-Clause
"""Faults set by one message to the kernel, from within a running process of the guest:
a command would take a tenth of a second to start, and the time of the fault with it.

Each function runs in the guest and gives the guest's monotonic time just before.
"""

import fcntl
import socket
import struct
import time

_NLM_F_REQUEST, _NLM_F_ACK, _NLM_F_CREATE, _NLM_F_EXCL = 1, 4, 0x400, 0x200
_RTM_NEWADDR, _RTM_DELADDR, _RTM_NEWQDISC, _RTM_DELQDISC = 20, 21, 36, 37
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TC_H_ROOT = 0xFFFFFFFF
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def _attribute(kind, data):
    size = 4 + len(data)
    return struct.pack("=HH", size, kind) + data + bytes(-size % 4)


def _ask(kind, flags, body):
    message = struct.pack("=IHHII", 16 + len(body), kind,
                          _NLM_F_REQUEST | _NLM_F_ACK | flags, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.bind((0, 0))
        start = time.monotonic()
        s.send(message)
        answer = s.recv(4096)
    error = struct.unpack("=i", answer[16:20])[0]
    if error:
        raise OSError(-error, f"netlink message {kind} refused")
    return start


def lose_all(interface):
    """netem loss 100 % on what goes out of @interface."""
    options = struct.pack("=6I", 0, 1000, 0xFFFFFFFF, 0, 0, 0)
    body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(interface), 0,
                       _TC_H_ROOT, 0)
    return _ask(_RTM_NEWQDISC, _NLM_F_CREATE | _NLM_F_EXCL,
                body + _attribute(_TCA_KIND, b"netem\0") +
                _attribute(_TCA_OPTIONS, options))


def lose_none(interface):
    body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(interface), 0,
                       _TC_H_ROOT, 0)
    return _ask(_RTM_DELQDISC, 0, body)


def link(interface, up):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh14x", interface.encode(), 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(s, _SIOCGIFFLAGS, request))[1]
        flags = flags | _IFF_UP if up else flags & ~_IFF_UP
        start = time.monotonic()
        fcntl.ioctl(s, _SIOCSIFFLAGS, struct.pack("16sh14x", interface.encode(), flags))
    return start


def address(interface, text, present, bits=24):
    """Add or remove an IPv4 address."""
    body = struct.pack("=BBBBI", socket.AF_INET, bits, 0, 0,
                       socket.if_nametoindex(interface))
    packed = socket.inet_aton(text)
    return _ask(_RTM_NEWADDR if present else _RTM_DELADDR,
                _NLM_F_CREATE | _NLM_F_EXCL if present else 0,
                body + _attribute(_IFA_LOCAL, packed) + _attribute(_IFA_ADDRESS, packed))
