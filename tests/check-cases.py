#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""check-cases SOURCE-ROOT: the table of tests/README.md has a row for each known case,
and every test that a row names is there. A row without a test says why after `none:`.

A test is named `FILE: NAME` or, a program that is one test, `FILE`. NAME is a cmocka test
of a C file, which must be in its list of tests, or words of a title in a program.
"""

import os
import re
import sys

CASES = range(1, 59)
ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \|$")
NAMED = re.compile(r"`(tests/[^`:]+)(?:: ([^`]+))?`")


def fault_of(root, path, name):
    """Why this test is not there, or None."""
    full = os.path.join(root, path)
    if not os.path.isfile(full):
        return "no such file"
    if not name:
        return None if os.access(full, os.X_OK) else "a program cannot be run"
    with open(full, encoding="utf-8") as f:
        text = f.read()
    if path.endswith(".c"):
        # Beside its definition: in the list, by cmocka's macro or the file's own.
        run = [m for m in re.finditer(rf"(\w+\W+){re.escape(name)}\b", text)
               if not m.group(1).startswith("void")]
        return None if run else "not in its list of tests"
    # A long title may be written over two lines.
    joined = re.sub(r'"\s*\n\s*f?"', "", text)
    return None if name in joined else "no such title"


def main(root):
    bad = []
    seen = []
    with open(os.path.join(root, "tests", "README.md"), encoding="utf-8") as f:
        rows = [match for match in map(ROW.match, f) if match]
    for row in rows:
        number, tests = int(row.group(1)), row.group(3)
        seen.append(number)
        named = NAMED.findall(tests)
        if not named and not tests.startswith("none: "):
            bad.append(f"case {number}: names no test and does not say why")
        for path, name in named:
            fault = fault_of(root, path, name)
            if fault:
                bad.append(f"case {number}: {path}{': ' + name if name else ''}: {fault}")
    if seen != list(CASES):
        bad.append(f"rows are {seen}, not {CASES.start} to {CASES.stop - 1} in order")
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
