# SPDX-License-Identifier: BSD-2-Clause
"""Figures of a measurement against the bounds that were set for them, a line each:

    FIGURE: VALUE UNIT (bound B) ok|SHORT
"""

import statistics


class Figures:
    def __init__(self, verdict=True):
        """Without @verdict no figure is short: for a quick look."""
        self.verdict = verdict
        self.short = 0

    def figure(self, name, value, unit, bound, good=None, digits=1):
        """At most @bound, unless the caller knows better what is @good."""
        if good is None:
            good = value <= bound
        if self.verdict:
            self.short += not good
            word = " ok" if good else " SHORT"
        else:
            word = ""
        number = value if isinstance(value, int) else f"{value:.{digits}f}"
        print(f"{name}: {number} {unit} (bound {bound}){word}", flush=True)

    def spread(self, name, values, unit, bound):
        """Median and worst of several, both against @bound."""
        self.figure(f"{name}, median of {len(values)}", statistics.median(values), unit,
                    bound)
        self.figure(f"{name}, worst of {len(values)}", max(values), unit, bound)

    def median(self, name, values, unit, bound, digits=1):
        """The median against @bound, with the spread in its name."""
        self.figure(f"{name}, {_spread(values, digits)}", statistics.median(values), unit,
                    bound, digits=digits)

    def note(self, name, values, unit, digits=1):
        """A median without a bound, to read the others by."""
        median = statistics.median(values)
        print(f"{name}, {_spread(values, digits)}: {median:.{digits}f} {unit}", flush=True)

    def status(self):
        """For sys.exit()."""
        return 1 if self.short else 0


def _spread(values, digits):
    return (f"median of {len(values)} ({min(values):.{digits}f} to "
            f"{max(values):.{digits}f})")
