# SPDX-License-Identifier: BSD-2-Clause
"""TAP on standard output, one line a subtest, for the runner in tests/run.py.

    tap = Tap()
    with tap.case("the port comes up"):
        check_equal(port["state"], "ACTIVE")
    sys.exit(tap.done())

A case that raises is `not ok`, with the exception as its comment; one that raises Skip
is skipped with its reason. The program goes on with the next case, unless the case is
fatal: then nothing after it would mean anything. What a case opens for those after it
goes into an ExitStack around them all.
"""

import contextlib
import sys
import time
import traceback


class Skip(Exception):
    """A tool, a module or a right is missing; the text says which."""


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def check_equal(got, want, what=""):
    if got != want:
        raise AssertionError(f"{what + ': ' if what else ''}got {got!r}, want {want!r}")


class Tap:
    def __init__(self, out=sys.stdout):
        self.out = out
        self.count = 0
        self.failed = 0

    def _line(self, text):
        print(text, file=self.out, flush=True)

    def comment(self, text):
        for line in str(text).rstrip("\n").split("\n"):
            self._line(f"# {line}")

    def result(self, ok, name, skip=None):
        """One result. Characters that mean something in TAP leave the name."""
        self.count += 1
        self.failed += not ok
        name = name.replace("#", "no.").replace("\n", " ")
        tail = f" # SKIP {skip}" if skip is not None else ""
        self._line(f"{'ok' if ok else 'not ok'} {self.count} - {name}{tail}")

    @contextlib.contextmanager
    def case(self, name, fatal=False):
        start = time.monotonic()
        try:
            yield
        except Skip as e:
            self.result(True, name, str(e) or "no reason given")
            if fatal:
                sys.exit(self.done())
            return
        except Exception:  # a failed case must not hide the ones after it
            self.result(False, name)
            self.comment(traceback.format_exc())
            if fatal:
                self.comment("nothing after this case can be tested")
                sys.exit(self.done())
            return
        self.comment(f"{time.monotonic() - start:.2f} s")
        self.result(True, name)

    def done(self):
        """Print the plan; the exit status for the program."""
        self._line(f"1..{self.count}")
        return 1 if self.failed or not self.count else 0
