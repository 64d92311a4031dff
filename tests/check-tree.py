#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""check-tree.py SOURCE: what holds for every file of the tree: its licence is named at
its top, nothing is left to be done later, what can be run may be run, and no source is
too long to read."""

import os
import re
import subprocess
import sys

SPDX = re.compile(r"SPDX-License-Identifier: BSD-2-Clause\b")
LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME)\b")
LINES_MAX = 1000
# Data that tests feed in and compare with: bytes that mean what they are.
DATA = ("tests/fuzz/corpus/", "tests/golden/")
# JSON and its like know no comments; the licence itself needs no name.
NO_COMMENTS = re.compile(r"\.(json|sum)$|^LICENSE$")


def tracked(top):
    """The files of the tree: git's list, or without git all but what builds left."""
    if os.path.exists(os.path.join(top, ".git")):
        # A clone may belong to another user than the one who tests it.
        git = ["git", "-c", "safe.directory=*", "-C", top, "ls-files", "-z"]
        out = subprocess.run(git, check=True, stdout=subprocess.PIPE).stdout
        names = [n for n in out.decode().split("\0") if n]
        return [n for n in names if os.path.exists(os.path.join(top, n))]
    found = []
    for folder, folders, files in os.walk(top):
        folders[:] = [f for f in folders
                      if not f.startswith("build") and f not in (".cache", "__pycache__")]
        found += [os.path.relpath(os.path.join(folder, f), top) for f in files]
    return sorted(found)


def wrong(top, name):
    """What is wrong with one file, a line each."""
    path = os.path.join(top, name)
    with open(path, "rb") as f:
        data = f.read()
    runs = data.startswith(b"#!")
    may_run = bool(os.stat(path).st_mode & 0o100)
    if runs != may_run and not name.startswith("tests/fuzz/corpus/"):
        yield "begins with #! and is not executable" if runs else \
              "is executable and does not begin with #!"
    if name.startswith(DATA) and not runs:
        return
    text = data.decode()
    lines = text.splitlines()
    if not NO_COMMENTS.search(name) and not SPDX.search("\n".join(lines[:4])):
        yield "has no SPDX line at its top"
    for number, line in enumerate(lines, 1):
        if LATER.search(line):
            yield f"line {number} leaves something to be done"
    if len(lines) > LINES_MAX:
        yield f"has {len(lines)} lines, more than {LINES_MAX}"


def main():
    top = sys.argv[1]
    found = [f"{name}: {what}" for name in tracked(top) for what in wrong(top, name)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
