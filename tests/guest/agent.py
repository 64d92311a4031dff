# SPDX-License-Identifier: BSD-2-Clause
"""Runs in the guest and carries out calls from the test on the host, over a virtio
port.

A request is a line of JSON, {"id", "file", "func", "args"}: call that top-level
function of that Python file (the test's own, as a rule: the guest has the host's file
system) with these arguments. The answer is {"id", "value"} or {"id", "error", "skip"}.
Each call has a thread of its own, so one that waits does not hold up the others. A
module is loaded once: what it keeps in its globals lasts until the guest ends.
"""

import importlib.machinery
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "support")]
sys.dont_write_bytecode = True

_modules = {}
_children = {}
_lock = threading.Lock()


# ---- what every test can call (see Guest in vm.py, which has a method for each)

def environment(variables):
    os.environ.update(variables)


def run(command, seconds, stdin=""):
    """A list is run as it is, a string by bash. [status, output, error output]."""
    argv = ["bash", "-c", command] if isinstance(command, str) else command
    try:
        done = subprocess.run(argv, input=stdin, text=True, errors="replace",
                              timeout=seconds, capture_output=True)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"over {seconds} s: {command}") from None
    return [done.returncode, done.stdout, done.stderr]


def spawn(command, log):
    """Start in the background, output to the file @log. The process id."""
    argv = ["bash", "-c", "exec " + command] if isinstance(command, str) else command
    with open(log, "ab") as out:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT)
    _children[child.pid] = child
    return child.pid


def wait(pid, seconds):
    """The exit status of a spawned process, or None if it has not ended by then."""
    try:
        return _children[pid].wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def kill(pid, name):
    os.kill(pid, signal.Signals[name])


def read(path):
    with open(path, errors="replace") as f:
        return f.read()


# ---- the port

def _module(path):
    """Import @path under a name of its own. In the main thread: modules may set signal
    handlers, which Python allows nowhere else."""
    if path not in _modules:
        name = f"call{len(_modules)}"
        loader = importlib.machinery.SourceFileLoader(name, path)
        module = importlib.util.module_from_spec(
            importlib.util.spec_from_loader(name, loader))
        sys.modules[name] = module
        loader.exec_module(module)
        _modules[path] = module
    return _modules[path]


def _answer(port, answer):
    data = (json.dumps(answer) + "\n").encode()
    with _lock:
        while data:
            data = data[os.write(port, data):]


def _failed(port, request, error):
    _answer(port, {"id": request["id"], "error": traceback.format_exc(),
                   "skip": str(error) if type(error).__name__ == "Skip" else None})


def _call(port, request, func):
    try:
        value = func(*request["args"])
        _answer(port, {"id": request["id"], "value": value})
    except BaseException as e:
        _failed(port, request, e)


def _open_port():
    top = "/sys/class/virtio-ports"
    for entry in os.listdir(top):
        with open(os.path.join(top, entry, "name")) as f:
            if f.read().strip() == "agent":
                return os.open("/dev/" + entry, os.O_RDWR | os.O_CLOEXEC)
    raise FileNotFoundError("no virtio port named agent")


def main():
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    _modules[os.path.abspath(__file__)] = sys.modules[__name__]
    port = _open_port()
    _answer(port, {"id": 0, "value": "ready"})
    with os.fdopen(os.dup(port), "r", buffering=1) as lines:
        for line in lines:
            request = json.loads(line)
            try:
                func = getattr(_module(request["file"]), request["func"])
            except BaseException as e:
                _failed(port, request, e)
                continue
            threading.Thread(target=_call, args=(port, request, func),
                             daemon=True).start()


if __name__ == "__main__":
    main()
