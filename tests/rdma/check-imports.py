#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""check-imports FABD FABD-RDMA: what the device worker must never call of its libraries,
and main not at all, is not among what they import. Ends with 1 and a line for each."""

import re
import subprocess
import sys

# Of the worker, each with what it would bring.
NEVER = {
    "rdma_getaddrinfo": "names and ibacm, which may answer with AF_IB or not at all",
    "rdma_resolve_addrinfo": "the same",
    "rdma_get_devices": "a device that cannot be opened once is dead until a restart",
    "rdma_migrate_id": "waits for what is not acknowledged on another channel",
    "getaddrinfo": "resolving blocks",
    "fork": "a context is of no use in a child",
    "vfork": "the same",
    "posix_spawn": "the same",
    "system": "the same",
    "popen": "the same",
    "daemon": "what was opened before it belongs to another process",
    "setuid": "the kernel refuses calls of who has other rights than the opener",
    "setgid": "the same",
    "seteuid": "the same",
    "setresuid": "the same",
    "setresgid": "the same",
}
MAIN_NEVER = re.compile(r"^(ibv|rdma|umad|mad)_")


def imports(path):
    out = subprocess.run(["readelf", "--wide", "--dyn-syms", path], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return {line.split()[7].split("@")[0] for line in out.splitlines()
            if len(line.split()) > 7 and line.split()[6] == "UND"}


def main(fabd, worker):
    of_worker, of_main = imports(worker), imports(fabd)
    bad = [f"fabd-rdma calls {name}: {why}" for name, why in NEVER.items()
           if name in of_worker]
    bad += [f"fabd calls {name}" for name in sorted(of_main) if MAIN_NEVER.match(name)]
    # Or nothing was looked at.
    if "rdma_create_id" not in of_worker:
        bad.append("fabd-rdma does not call rdma_create_id: not the program that is meant")
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
