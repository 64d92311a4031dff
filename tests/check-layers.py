#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""check-layers.py SOURCE CC [BINARY...]: rooms include only what they may, binaries link
only what they may, and each header compiles alone."""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

LIBC = {"arpa/inet.h", "assert.h", "ctype.h", "errno.h", "inttypes.h", "limits.h",
        "math.h", "netinet/in.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h",
        "stdio.h", "stdlib.h", "string.h", "strings.h", "sys/socket.h", "uthash.h"}
# A room: where project headers may come from, and which system headers it may use
# (None: any but those that only one place may use).
ROOMS = {
    "lib": ({"lib"}, LIBC),
    "proto": ({"proto", "lib"}, LIBC | {"jansson.h", "sodium.h", "time.h"}),
    "daemon": ({"daemon", "proto", "lib"}, None),
    "daemon/rdma": ({"daemon/rdma", "proto", "lib"}, None),
    "daemon/mad": ({"daemon/mad", "proto", "lib"}, None),
    "cli": ({"cli", "proto", "lib"}, None),
}
# Of daemon/, the workers share the log alone.
SHARED = {"log.h"}
ONLY_IN = {
    r"infiniband/(verbs|umad|mad|driver).*": ("daemon/rdma", "daemon/mad"),
    r"rdma/rdma_cma.*": ("daemon/rdma",),
    r"infiniband/umad.*": ("daemon/mad",),
    r"event2?/.*": ("daemon/loop.c",),
}
# Calls that a pure room never makes.
IMPURE = re.compile(r"\b(clock_gettime|time|gettimeofday|random|rand|getrandom|"
                    r"randombytes_buf|open|fopen|socket|read|write|printf|syslog|"
                    r"if_nametoindex|getenv)\s*\(")
MAY_LINK = {
    "fabd": r"lib(event_core|jansson|sodium|systemd|udev|mnl|c|m|anl|pthread)[-.].*",
    "fabd-rdma": r"lib(ibverbs|rdmacm|udev|mnl|jansson|sodium|systemd|c|m)[-.].*",
    "fabd-mad": r"lib(ibumad|jansson|sodium|systemd|c|m)[-.].*",
    "fabctl": r"lib(jansson|sodium|c|m)[-.].*",
}
SANITIZERS = r"lib(asan|ubsan|lsan|gcc_s|stdc\+\+)[-.].*"


def strip_comments(text):
    return re.sub(r'/\*.*?\*/|"(\\.|[^"\\])*"', " ", text, flags=re.S)


def files_of(top, room):
    return sorted(f for f in os.listdir(os.path.join(top, room))
                  if f.endswith((".c", ".h")))


def check_includes(top, room, problems):
    own, system = ROOMS[room]
    homes = {f: d for d in ("lib", "proto", "daemon", "daemon/rdma", "daemon/mad", "cli")
             for f in files_of(top, d) if d in own or f not in SHARED or d == "daemon"}
    mine = {f for d in own for f in files_of(top, d)}
    for name in files_of(top, room):
        path = f"{room}/{name}"
        with open(os.path.join(top, path)) as f:
            text = f.read()
        for quote, header in re.findall(r'^#include ([<"])([^>"]+)[>"]', text, re.M):
            base = os.path.basename(header)
            if quote == '"' and base not in mine and not (
                    base in SHARED and room.startswith("daemon")):
                problems.append(f"{path}: includes {header} of {homes.get(base)}")
            if quote == "<" and system is not None and header not in system:
                problems.append(f"{path}: includes <{header}>")
            for pattern, places in ONLY_IN.items():
                if re.fullmatch(pattern, header) and path not in places \
                        and room not in places:
                    problems.append(f"{path}: includes {header}")
        if room in ("lib", "proto"):
            for call in IMPURE.findall(strip_comments(text)):
                problems.append(f"{path}: calls {call}()")


def check_headers(top, cc, problems):
    flags = ["-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only", "-Werror"]
    flags += [f"-I{top}/{d}" for d in ROOMS]

    def alone(path):
        with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
            f.write(f'#include "{top}/{path}"\n#include "{top}/{path}"\n')
            f.flush()
            done = subprocess.run([*cc, *flags, f.name], capture_output=True, text=True,
                                  check=False)
        return f"{path} alone: {done.stderr}" if done.returncode else None
    headers = [f"{d}/{f}" for d in ROOMS for f in files_of(top, d) if f.endswith(".h")]
    with ThreadPoolExecutor(2) as pool:
        problems += [p for p in pool.map(alone, headers) if p]


def check_links(binary, problems):
    name = os.path.basename(binary)
    out = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True,
                         check=True).stdout
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", out):
        if not re.fullmatch(MAY_LINK[name], library) and \
                not re.fullmatch(SANITIZERS, library):
            problems.append(f"{name} links {library}")


def main():
    top, cc, *binaries = sys.argv[1:]
    problems = []
    for room in ROOMS:
        check_includes(top, room, problems)
    check_headers(top, cc.split(), problems)
    for binary in binaries:
        check_links(binary, problems)
    print("\n".join(problems) or "all rooms keep to their side")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
