#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a hostile or broken program on the network sends to a fabd. Run in a namespace.

    attacker.py watch SECONDS FILE              keep what comes in
    attacker.py spoof FILE KIND COUNT           send it again, as it was or damaged, with
                                                the addresses and ports that it had
    attacker.py stranger FILE SOURCE COUNT      send it from another address; prints how
                                                many answers came
    attacker.py other-version ADDRESS SECONDS   be a fabd of another major version there

Datagrams are kept as lines of JSON: {"src", "sport", "dst", "dport", "data"}.
"""

import json
import random
import socket
import struct
import sys
import time

MAGIC = b"FABD"
CONTROL = 18777
HEADER = struct.Struct("!4sBBBB5QH2x")  # up to and with the length of the TLVs
REFUSED, MAJOR = 15, 9
MOST = 1472  # of a datagram in one packet


# ---- what passes

def watch(seconds, path):
    sniff = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    sniff.bind(("eth0", 0x0800))
    end = time.monotonic() + float(seconds)
    with open(path, "w") as out:
        while (left := end - time.monotonic()) > 0:
            sniff.settimeout(left)
            try:
                packet = sniff.recv(65536)
            except TimeoutError:
                break
            head = 4 * (packet[0] & 15)
            if packet[9] != socket.IPPROTO_UDP or packet[6] & 0x3F or packet[7]:
                continue  # not UDP, or a fragment
            sport, dport = struct.unpack("!HH", packet[head:head + 4])
            print(json.dumps({"src": socket.inet_ntoa(packet[12:16]), "sport": sport,
                              "dst": socket.inet_ntoa(packet[16:20]), "dport": dport,
                              "data": packet[head + 8:].hex()}), file=out)


def read(path):
    with open(path) as f:
        found = [json.loads(line) for line in f]
    for d in found:
        d["data"] = bytes.fromhex(d["data"])
    return found


# ---- what is made of it

def replay(data):
    return data


def truncated(data):
    return data[:random.randrange(len(data))]


def flipped(data):
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1:]


def longer(data):
    return (data + random.randbytes(random.randrange(1, 600)))[:MOST]


def oversized(data):
    return data.ljust(MOST, b"\0")


def garbage(_data):
    return random.randbytes(random.randrange(1, 200))


def empty(_data):
    return b""


KINDS = {f.__name__: f for f in (replay, truncated, flipped, longer, oversized, garbage,
                                 empty)}


def raw_socket():
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    return s


def send_as(s, d, data):
    """With the addresses that the datagram had; a UDP checksum of 0 is none."""
    udp = struct.pack("!HHHH", d["sport"], d["dport"], 8 + len(data), 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_UDP, 0,
                     socket.inet_aton(d["src"]), socket.inet_aton(d["dst"]))
    s.sendto(ip + udp + data, (d["dst"], 0))


def spoof(path, kind, count, target):
    """Only what went to @target, or the attacker would have to be elsewhere."""
    packets = [d for d in read(path) if d["dst"] == target and len(d["data"]) <= MOST]
    s = raw_socket()
    for i in range(int(count)):
        d = packets[i % len(packets)]
        send_as(s, d, KINDS[kind](d["data"]))
        if i % 200 == 199:
            time.sleep(0.002)  # a flood, but one that this machine can also take
    print(len(packets))


def stranger(path, source, count, target):
    packets = [d for d in read(path) if d["dst"] == target and d["dport"] == CONTROL]
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((source, 0))
    for i in range(int(count)):
        s.sendto(packets[i % len(packets)]["data"], (target, CONTROL))
    s.settimeout(1)
    answers = 0
    try:
        while s.recv(65536):
            answers += 1
    except TimeoutError:
        print(answers)


# ---- a fabd that speaks something else

def other_version(address, seconds):
    """Answers every command with its own refusal, and asks in its own words too. Prints
    how many answers those got."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, CONTROL))
    end = time.monotonic() + float(seconds)
    asked = set()
    refusals = 0
    while (left := end - time.monotonic()) > 0:
        s.settimeout(left)
        try:
            data, sender = s.recvfrom(65536)
        except TimeoutError:
            break
        magic, major, _, cmd, _, src, dst, epoch, seq, _, _ = HEADER.unpack_from(data)
        if magic != MAGIC or major == MAJOR:
            raise AssertionError("not fabd's words")
        if dst in asked:
            refusals += cmd == REFUSED
            continue
        s.sendto(HEADER.pack(MAGIC, MAJOR, 0, REFUSED, 0, 0, src, epoch, 0, seq, 0), sender)
        own = random.getrandbits(63) | 1
        asked.add(own)
        s.sendto(HEADER.pack(MAGIC, MAJOR, 0, 2, 0, own, 0, own, 1, 0, 400) + bytes(400),
                 sender)
    print(refusals)


if __name__ == "__main__":
    {"watch": watch, "spoof": spoof, "stranger": stranger,
     "other-version": other_version}[sys.argv[1]](*sys.argv[2:])
