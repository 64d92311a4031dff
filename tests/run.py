#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Build, run every test, count. Called by scripts/test, which installs what is needed.

Kinds of tests, in the order they run:

  unit      meson's tests of the suites unit, edge and golden, built by gcc
  fuzz      meson's tests of the suite fuzz (the corpora), under clang's sanitizers
  sanitize  unit again, and sim and netns again, under clang's sanitizers
  valgrind  unit again, under valgrind; with --long or if named only
  sim       tests/sim/test_*    on a simulated InfiniBand fabric
  netns     tests/netns/test_*  on hosts in network namespaces
  guest     tests/guest/test_*  on QEMU guests with soft-RoCE and soft-iWARP
  quick     tests/accept/* and tests/bench/*, with --quick: that they run, not what
            they measure

A test program reports in TAP. It has failed as well if it ends with an error, is
killed, takes too long (a line `# TIMEOUT: SECONDS` in it sets its limit) or reports
nothing. A line `# ALONE` keeps others from running beside it. Logs are in build/testlogs. Where CI=true, a skipped test is a failed one.
"""

import argparse
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGS = os.path.join(TOP, "build", "testlogs")
KINDS = ("unit", "fuzz", "sanitize", "valgrind", "sim", "netns", "guest", "quick")
VALGRIND = "valgrind --quiet --leak-check=full --error-exitcode=99"
PROGRAM_SECONDS = {"sim": 300, "netns": 300, "guest": 600, "quick": 300}
LONG_FACTOR = 20
# So many at a time: they wait for most of their time.
AT_A_TIME = {"sim": 2, "netns": 2, "guest": 2, "quick": 2}

SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:"
                    f"suppressions={TOP}/tests/support/asan.supp",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}

RESULT = re.compile(r"^(not )?ok\b\s*\d*\s*(?:-\s*)?([^#]*)(?:#\s*(\S+)\s*(.*))?$")
PLAN = re.compile(r"^1\.\.(\d+)")


class Count:
    """What came out, over all tests."""

    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skips = []

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips

    def text(self):
        tail = f", {len(self.skips)} skipped" if self.skips else ""
        return f"{self.passed} passed, {len(self.failures)} failed{tail}"


def read_tap(name, text):
    """The count of one test's output, and whether there was any TAP in it."""
    count = Count()
    plan = None
    results = 0
    for line in text.splitlines():
        if PLAN.match(line):
            plan = int(PLAN.match(line).group(1))
        match = RESULT.match(line)
        if not match:
            continue
        results += 1
        bad, title, directive, reason = match.groups()
        title = f"{name}: {title.strip()}"
        if (directive or "").upper() == "SKIP":
            count.skips.append(f"{title}: {reason}")
        elif bad:
            count.failures.append(title)
        else:
            count.passed += 1
    if results and plan is None:
        count.failures.append(f"{name}: ended before its plan")
    elif results and plan != results:
        count.failures.append(f"{name}: {results} results of {plan}")
    return count, results > 0


def judge(name, text, rc, seconds_over=None, tap=True):
    """The count of a test program that has ended, or been ended. Without @tap its end
    is its result."""
    count, any_tap = read_tap(name, text)
    if seconds_over:
        count.failures.append(f"{name}: not finished after {seconds_over} s")
    elif rc == 77 and not any_tap:
        last = (text.strip().splitlines() or ["no reason given"])[-1]
        count.skips.append(f"{name}: {last}")
    elif rc < 0:
        count.failures.append(f"{name}: killed by {signal.Signals(-rc).name}")
    elif rc and not count.failures:
        count.failures.append(f"{name}: exit status {rc}")
    elif not any_tap and not rc and not tap:
        count.passed += 1
    elif not any_tap and not rc:
        count.failures.append(f"{name}: reported nothing")
    return count


def end_group(process):
    """SIGTERM first, so that the program can take down what it set up."""
    for number, seconds in ((signal.SIGTERM, 15), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            continue


def run_program(path, label, seconds, env, arguments=()):
    """One test program in a process group of its own."""
    name = f"{label}/{os.path.basename(path)}"
    log = os.path.join(LOGS, name.replace("/", "-") + ".log")
    start = time.monotonic()
    over = None
    with open(log, "wb") as out:
        process = subprocess.Popen([path, *arguments], stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, env=env, cwd=TOP,
                                   start_new_session=True)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            over = seconds
        except KeyboardInterrupt:
            end_group(process)
            raise
        if over:
            end_group(process)
    with open(log, errors="replace") as f:
        text = f.read()
    count = judge(name, text, process.returncode, over, tap=not arguments)
    print(f"{name}: {count.text()} ({time.monotonic() - start:.1f} s)", flush=True)
    if count.failures:
        print(f"--- the end of {log}:")
        print("\n".join(text.splitlines()[-60:]), flush=True)
    return count


def limit_of(path, kind, long):
    with open(path, errors="replace") as f:
        match = re.search(r"^# TIMEOUT: (\d+)$", f.read(), re.MULTILINE)
    seconds = int(match.group(1)) if match else PROGRAM_SECONDS[kind]
    return seconds * (LONG_FACTOR if long else 1)


def programs(kind):
    found = glob.glob(os.path.join(TOP, "tests", kind, "test_*"))
    return sorted(p for p in found if os.access(p, os.X_OK))


def is_alone(path):
    """A line `# ALONE` in it: no other program beside it, which it would disturb."""
    with open(path, errors="replace") as f:
        return re.search(r"^# ALONE$", f.read(), re.MULTILINE) is not None


def run_programs(kind, label, env, long):
    count = Count()
    found = programs(kind)
    if label != kind:  # again, on another build, which a test of the rig does not use
        found = [p for p in found if not os.path.basename(p).startswith("test_rig")]
    if not found:
        count.failures.append(f"{label}: no tests found")
    # The long ones first.
    found.sort(key=lambda path: -limit_of(path, kind, long))

    def one(path):
        return run_program(path, label, limit_of(path, kind, long), env)
    for path in filter(is_alone, found):
        count.add(one(path))
    with ThreadPoolExecutor(AT_A_TIME.get(kind, 1)) as pool:
        for result in pool.map(one, (p for p in found if not is_alone(p))):
            count.add(result)
    return count


def run_quick(label, env, long):
    """The measuring programs, which report figures and no TAP."""
    count = Count()
    found = [path for folder in ("accept", "bench")
             for path in sorted(glob.glob(os.path.join(TOP, "tests", folder, "*")))]
    found = [p for p in found if os.path.isfile(p) and os.access(p, os.X_OK)]

    def one(path):
        return run_program(path, label, limit_of(path, "quick", long), env, ["--quick"])
    with ThreadPoolExecutor(AT_A_TIME["quick"]) as pool:
        for result in pool.map(one, found):
            count.add(result)
    return count


# ---- meson

def run_meson(build, suites, label, env, wrap=None):
    """The tests of some suites in a build folder; @wrap: a command to run them under,
    which makes them slow."""
    logbase = f"fabd-{label}"
    # With a wrapper, meson adds its name.
    pattern = os.path.join(build, "meson-logs", logbase + "*.json")
    for old in glob.glob(pattern):
        os.unlink(old)
    argv = ["meson", "test", "-C", build, "--no-rebuild", "--logbase", logbase]
    for suite in suites:
        argv += ["--suite", suite]
    if wrap:
        argv += ["--wrap", wrap, "--timeout-multiplier", str(LONG_FACTOR)]
    # cmocka reports each of its tests then, not only the program's end.
    env = {**env, "CMOCKA_MESSAGE_OUTPUT": "TAP"}
    with open(os.path.join(LOGS, f"meson-{label}.log"), "wb") as out:
        subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out,
                       stderr=subprocess.STDOUT, env=env, check=False)
    count = Count()
    for log in glob.glob(pattern):
        with open(log, errors="replace") as f:
            for line in f:
                count.add(judge_meson(label, json.loads(line)))
    if not count.passed and not count.failures:
        count.failures.append(f"{label}: no tests found")
    return count


def judge_meson(label, test):
    name = f"{label}/{test['name']}"
    text = test.get("stdout") or ""
    if test["result"] == "TIMEOUT":
        count = judge(name, text, 0, f"{test['duration']:.0f}")
    elif test["result"] == "OK":
        # A program that reports no single results counts as one.
        count, any_tap = read_tap(name, text)
        count.passed += not any_tap
    else:
        count = judge(name, text, test["returncode"])
    print(f"{name}: {count.text()} ({test['duration']:.1f} s)", flush=True)
    if count.failures:
        print("\n".join((text + (test.get("stderr") or "")).splitlines()[-60:]),
              flush=True)
    return count


def compile_in(build, setup, env):
    """Configure @build unless it is, and compile. Returns whether that worked."""
    commands = []
    if not os.path.exists(os.path.join(build, "build.ninja")):
        commands.append(["meson", "setup", build, TOP, *setup])
    commands.append(["ninja", "-C", build])
    for argv in commands:
        print("+ " + " ".join(argv), flush=True)
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              env=env, cwd=TOP, check=False)
        if done.returncode:
            print("\n".join(done.stdout.splitlines()[-100:]), flush=True)
            return False
    return True


# ---- all of it

def run_kind(kind, gcc, clang, env, args):
    asan_env = {**env, **SANITIZERS, "FABD_BUILD": clang}
    count = Count()
    if kind == "unit":
        count.add(run_meson(gcc, ["unit", "edge", "golden"], "unit", env))
    elif kind == "fuzz":
        count.add(run_meson(clang, ["fuzz"], "fuzz", asan_env))
    elif kind == "sanitize":
        count.add(run_meson(clang, ["unit", "edge", "golden"], "sanitize", asan_env))
        for again in ("sim", "netns"):
            count.add(run_programs(again, f"sanitize-{again}", asan_env, args.long))
    elif kind == "quick":
        count.add(run_quick(kind, env, args.long))
    elif kind == "valgrind":
        count.add(run_meson(gcc, ["unit"], "valgrind", env, VALGRIND))
    else:
        count.add(run_programs(kind, kind, env, args.long))
    return count


def report(total):
    if os.environ.get("CI") == "true":
        total.failures += [f"{skip} (skipped, which CI does not allow)"
                           for skip in total.skips]
        total.skips = []
    for title, lines in (("skipped", total.skips), ("failed", total.failures)):
        for line in lines:
            print(f"{title}: {line}")
    print(total.text(), flush=True)
    return 1 if total.failures or not total.passed else 0


def main():
    parser = argparse.ArgumentParser(description="Run fabd's tests.")
    parser.add_argument("--only", action="append", choices=KINDS, metavar="KIND",
                        help="only this kind, may be repeated: " + ", ".join(KINDS))
    parser.add_argument("--long", action="store_true",
                        help="soaks and long runs as well")
    args = parser.parse_args()
    wanted = args.only or [k for k in KINDS if k != "valgrind" or args.long]
    kinds = [k for k in KINDS if k in wanted]

    gcc, clang = os.path.join(TOP, "build"), os.path.join(TOP, "build-clang")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "SIM_"))}
    env.update(LC_ALL="C.UTF-8", FABD_BUILD=gcc, FABD_LONG="1" if args.long else "")
    total = Count()
    built = True
    if set(kinds) - {"fuzz", "sanitize"}:
        built = compile_in(gcc, [], {**env, "CC": "gcc"})
    if built and set(kinds) & {"fuzz", "sanitize"}:
        setup = ["-Db_sanitize=address,undefined", "-Db_lundef=false"]
        built = compile_in(clang, setup, {**env, "CC": "clang"})
    os.makedirs(LOGS, exist_ok=True)
    if built:
        for kind in kinds:
            total.add(run_kind(kind, gcc, clang, env, args))
    else:
        total.failures.append("the build")
    return report(total)


if __name__ == "__main__":
    sys.exit(main())
