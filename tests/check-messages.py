#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""check-messages SOURCE-ROOT: the tests' own copy of the worker messages (madmsg.py) has
the version and the numbers of proto/worker.h; what it does not use begins with _."""

import os
import re
import sys


def of_header(path):
    """{name: number} of enum wm_type, and VERSION."""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.DOTALL)
    found = {"VERSION": int(re.search(r"#define WM_VERSION (\d+)", text).group(1))}
    number = 0
    for name, value in re.findall(r"WM_(\w+)(?: = (\d+))?",
                                  re.search(r"enum wm_type {(.*?)}", text,
                                            re.DOTALL).group(1)):
        number = int(value) if value else number + 1
        found[name] = number
    return found


def main(root):
    sys.path.insert(0, os.path.join(root, "tests", "support"))
    import madmsg  # noqa: E402, from the tree that is checked
    wanted = of_header(os.path.join(root, "proto", "worker.h"))
    bad = [f"{name} is {number} in proto/worker.h" for name, number in wanted.items()
           if number not in (getattr(madmsg, name, None), getattr(madmsg, "_" + name, None))]
    for line in bad:
        print(line)
    if len(wanted) < 20:
        print(f"only {len(wanted)} messages found in proto/worker.h")
    return 1 if bad or len(wanted) < 20 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
