# SPDX-License-Identifier: BSD-2-Clause
"""A simulated InfiniBand fabric: ibsim, OpenSM and the infiniband-diags on it.

    with Sim("two-switches") as sim:
        sim.opensm_start("alpha1")
        worker = sim.wrapper("beta1", MAD_WORKER)   # for MadWorker=
        sim.unlink("beta1", 1)

Every instance has its own socket prefix and folder, so several run side by side. Only
processes that were given env() or a wrapper see the fabric; the preload library breaks
poll and epoll on other descriptors, so nothing else may have it.
"""

import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

from proc import TOP, Child, Timeout, run, wait_until
from tap import Skip

NETS = os.path.join(TOP, "tests", "sim", "nets")


def preload_library():
    found = glob.glob("/usr/lib/*/umad2sim/libumad2sim.so")
    if not found:
        raise Skip("libumad2sim.so is not installed (package libumad2sim0)")
    return found[0]


def tool(name):
    path = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if not path:
        raise Skip(f"{name} is not installed")
    return path


class Sim:
    def __init__(self, net="two-switches", directory=None, large=False):
        """@net: a name in tests/sim/nets, or a path. @large: make room for more than
        ibsim's own limits."""
        self.net = net if os.path.sep in net else os.path.join(NETS, net + ".net")
        self.dir = directory or tempfile.mkdtemp(prefix="fabd-sim-")
        os.makedirs(self.dir, exist_ok=True)
        self._own_dir = directory is None
        self._large = large
        # The prefix names abstract sockets, which are the machine's, not the folder's.
        self.sockname = "fabd" + os.path.basename(self.dir)[-8:] + str(os.getpid())
        self.ibsim = None
        self.opensm = None
        self._fifo = None
        self._wrappers = 0
        self._sm_starts = 0
        self._log_read = self._prompts_read = 0

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_exc):
        self.stop()

    # ---- the simulator

    def start(self):
        fifo = os.path.join(self.dir, "console")
        os.mkfifo(fifo)
        # Open for reading too: ibsim ends when its console has no writer left.
        self._fifo = os.open(fifo, os.O_RDWR | os.O_CLOEXEC)
        limits = ["-N", "4096", "-S", "512", "-P", "65536"] if self._large else []
        self.ibsim = Child([tool("ibsim"), "-s", *limits, self.net],
                           self.path("ibsim.log"), env=self._plain_env(), cwd=self.dir,
                           stdin=self._fifo)

        def ready():
            if self.ibsim.rc is not None:
                raise AssertionError("ibsim ended:\n" + self.ibsim.output())
            return "simulator ready" in self.ibsim.output()
        wait_until(ready, 20, "ibsim ready")

    def stop(self):
        self.opensm_stop()
        if self.ibsim:
            self.ibsim.stop()
            self.ibsim = None
        if self._fifo is not None:
            os.close(self._fifo)
            self._fifo = None
        if self._own_dir:
            shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def _plain_env(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SIM_", "LD_"))}
        env["IBSIM_SOCKNAME"] = self.sockname
        return env

    def env(self, host, preload=()):
        """The environment of a process on @host. @preload: libraries to come first
        (a sanitizer's run-time library must)."""
        env = self._plain_env()
        env["SIM_HOST"] = host
        env["LD_PRELOAD"] = ":".join([*preload, preload_library()])
        return env

    def wrapper(self, host, program, preload=(), extra=None):
        """Write a script that runs @program on @host, for MadWorker=. Its path.

        The library keeps a copy of sysfs in the working directory, so each wrapper has
        one of its own. @extra: more variables of the environment."""
        self._wrappers += 1
        cwd = self.path(f"worker{self._wrappers}")
        os.mkdir(cwd)
        full = self.env(host, preload)
        names = {k: full[k] for k in ("IBSIM_SOCKNAME", "SIM_HOST", "LD_PRELOAD")}
        # fabd gives its workers an environment made afresh.
        names.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        names.update(extra or {})
        path = cwd + ".sh"
        with open(path, "w") as f:
            f.write("#!/bin/sh\n")
            f.write(f"cd {shlex.quote(cwd)} || exit 1\n")
            for key, value in names.items():
                f.write(f"export {key}={shlex.quote(value)}\n")
            f.write(f'exec {shlex.quote(os.path.abspath(program))} "$@"\n')
        os.chmod(path, 0o755)
        return path

    # ---- the console

    def console(self, line):
        """One command. It has been carried out when this returns."""
        before = self._prompts()
        os.write(self._fifo, (line + "\n").encode())
        wait_until(lambda: self._prompts() > before, 10, f"ibsim console: {line}",
                   step=0.002)

    def _prompts(self):
        """How many prompts there were so far. The log of a large fabric is long: what
        was read once is not read again."""
        with open(self.path("ibsim.log"), "rb") as f:
            f.seek(self._log_read)
            text = f.read()
        # A prompt that is not all there yet is left for the next time.
        self._prompts_read += text.count(b"sim> ")
        self._log_read += len(text) if text.endswith(b"sim> ") else max(0, len(text) - 4)
        return self._prompts_read

    def unlink(self, node, port=None):
        """Pull a cable, or without @port every cable of a node: it is gone."""
        self.console(f'Unlink "{node}"' + (f"[{port}]" if port else ""))

    def relink(self, node, port=None):
        """Put back what unlink() pulled, as it was."""
        self.console(f'ReLink "{node}"' + (f"[{port}]" if port else ""))

    def link(self, a, b):
        """A cable between two ports without one: (name, port) each. It comes up at the
        speeds that ibsim gives a new cable, not at those of the file."""
        self.console(f'Link "{a[0]}"[{a[1]}] "{b[0]}"[{b[1]}]')

    def baselid(self, node, port, lid, lmc=0):
        self.console(f'Baselid "{node}"[{port}] {lid} {lmc}')

    def error_rate(self, node, port, percent, attribute=None):
        """Drop this share of the MADs (of one attribute) at the port."""
        tail = f" {attribute}" if attribute is not None else ""
        self.console(f'Error "{node}"[{port}] {percent}{tail}')

    def counter(self, node, port, field, value):
        """@field as in PortCounters.SymbolErrorCounter."""
        self.console(f'PerformanceSet "{node}"[{port}] {field}={value}')

    def counters(self, node, port, values, attribute="PortCounters"):
        """@values: {field: value}."""
        for field, value in values.items():
            self.counter(node, port, f"{attribute}.{field}", value)

    def clients(self):
        """The processes on the fabric: {slot: pid}."""
        start = len(self.ibsim.output())
        self.console("Attached")
        text = self.ibsim.output()[start:]
        return {int(slot): int(pid)
                for slot, pid in re.findall(r"Client (\d+): pid (\d+)", text)}

    def forget_dead(self):
        """Free the slots of clients that died by a signal: ten such, and nobody gets
        in any more. To be called after each kill of a worker."""
        dead = [slot for slot, pid in self.clients().items() if not _alive(pid)]
        for slot in dead:
            self.console(f"X {slot}")
        return len(dead)

    # ---- OpenSM

    def opensm_start(self, host="alpha1", sweep=2, seconds=20, options=None):
        """Start OpenSM on @host and wait until it is master and has given out LIDs.
        @sweep: seconds between its looks at the fabric, 0 for none but on traps.
        @options: more lines of its configuration."""
        self._sm_starts += 1
        work = self.path(f"opensm{self._sm_starts}")
        os.mkdir(work)
        conf = os.path.join(work, "opensm.conf")
        with open(conf, "w") as f:
            f.write("force_log_flush TRUE\n")
            f.writelines(f"{key} {value}\n" for key, value in (options or {}).items())
        env = self.env(host)
        env["OSM_TMP_DIR"] = env["OSM_CACHE_DIR"] = work
        self.opensm = Child(
            [tool("opensm"), "-F", conf, "-f", os.path.join(work, "opensm.log"),
             "-s", sweep], os.path.join(work, "out"), env=env, cwd=work)

        def up():
            if self.opensm.rc is not None:
                raise AssertionError("opensm ended:\n" + self.opensm.output())
            return "SUBNET UP" in self.opensm_log()
        wait_until(up, seconds, "opensm brings the subnet up", step=0.05)

    def opensm_log(self):
        try:
            with open(self.path(f"opensm{self._sm_starts}/opensm.log"),
                      errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def opensm_sweep(self):
        """Make it look at the whole fabric; it may still be at it."""
        self.opensm.signal(signal.SIGHUP)

    def opensm_stop(self):
        if not self.opensm:
            return
        self.opensm.stop()
        self.opensm = None
        self.forget_dead()

    # ---- the tools

    def query(self, host, what, port=None, path="0"):
        """What smpquery says: @what is portinfo, nodeinfo or nodedesc, @path the
        directed route from @host ("0" itself, "0,1" its neighbour): {field: text}."""
        argv = ["smpquery", "-D", what, path]
        argv += [str(port)] if port is not None else []
        rc, out, err = self.diag(host, *argv)
        if rc:
            raise AssertionError(f"{' '.join(argv)} on {host}: {out}{err}")
        pairs = (line.split(":", 1) for line in out.splitlines()
                 if ":" in line and not line.startswith("#"))
        return {key.strip(): value.strip(".") for key, value in pairs}

    def diag(self, host, *argv, seconds=30, preload=(), extra=None):
        """Run one of the infiniband-diags on @host: (status, output, error output).
        @preload, @extra: as for wrapper()."""
        cwd = tempfile.mkdtemp(prefix="diag-", dir=self.dir)
        env = {**self.env(host, preload), **(extra or {})}
        try:
            return run([tool(argv[0]), *argv[1:]], seconds, env=env, cwd=cwd)
        except subprocess.TimeoutExpired:
            self.forget_dead()
            raise Timeout(f"{' '.join(argv)} on {host}: over {seconds} s") from None
        finally:
            shutil.rmtree(cwd, ignore_errors=True)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
