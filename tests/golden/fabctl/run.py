#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Golden tests of fabctl: a fake fabd answers from a file, what fabctl prints is compared
with the committed text.

    run.py FABCTL [--update] [CASE...]

cases.json lists the cases: "args", and what serves them ("server": FILE.json, a map from
method to reply; absent: nobody listens). A reply is
    {"parameters": {...}} or {"error": ...}   one reply
    [reply, ...]                              a stream; with "continues" on all but the last
    {"each": KEY, "of": [...]}                an object a reply, as fabd streams its lists
    {"topology": FILE, "each": "nodes"}       the same, objects of an ibnetdiscover file;
                                              "nodes" or "links"; "changes": topology.py
    {"times": N, ...}                         with "each": N copies, "%d" in texts the number
    {"raw": TEXT} {"close": true} {"silent": true}   what a broken daemon does
"slow": S waits so many seconds before each reply, or the reply of a stream that has it.
"tty": true runs fabctl on a terminal; "tty": "stderr" with that as its stderr alone, where
lines written over each other are shown once each. "hidden": true takes the right to the
socket away. "env" adds to the environment. The text has stdout, stderr and the exit code;
the socket's path is shown as SOCKET, this folder as HERE, one that is thrown away as TMP;
"files" are shown after it.
"""
import argparse
import difflib
import json
import os
import pty
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import topology

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 20


def numbered(value, number):
    if isinstance(value, str):
        return value.replace("%d", str(number))
    if isinstance(value, list):
        return [numbered(v, number) for v in value]
    if isinstance(value, dict):
        return {k: numbered(v, number) for k, v in value.items()}
    return value


def replies_of(spec, more):
    """The replies to one call, as varlink objects."""
    if isinstance(spec, list):
        return [dict(r, continues=True) for r in spec[:-1]] + [dict(spec[-1])]
    if "each" not in spec:
        return [{k: v for k, v in spec.items() if k != "slow"}]
    if "topology" in spec:
        read = {"nodes": topology.nodes_of, "links": topology.links_of}[spec["each"]]
        objects = read(os.path.join(HERE, spec["topology"]), spec.get("changes"))
    else:
        objects = spec["of"]
    if "times" in spec:
        objects = [numbered(o, n) for n in range(spec["times"]) for o in objects]
    if not more or not objects:
        return [{"parameters": {spec["each"]: objects}}]
    replies = [{"parameters": {spec["each"]: [o]}, "continues": True} for o in objects]
    del replies[-1]["continues"]
    return replies


def serve_client(conn, methods, log):
    data = b""
    with conn:
        while True:
            while b"\0" not in data:
                got = conn.recv(65536)
                if not got:
                    return
                data += got
            text, data = data.split(b"\0", 1)
            call = json.loads(text)
            log.append(call)
            spec = methods.get(call["method"], {
                "error": "org.varlink.service.MethodNotFound",
                "parameters": {"method": call["method"]}})
            if isinstance(spec, dict) and spec.get("close"):
                return
            if isinstance(spec, dict) and spec.get("silent"):
                continue
            if isinstance(spec, dict) and "raw" in spec:
                conn.sendall(spec["raw"].encode("latin-1"))
                return
            for reply in replies_of(spec, call.get("more", False)):
                slow = reply.pop("slow", 0)
                time.sleep(spec.get("slow", 0) if isinstance(spec, dict) else slow)
                try:
                    conn.sendall(json.dumps(reply).encode() + b"\0")
                except BrokenPipeError:
                    return  # it did not wait
            if isinstance(spec, list) and not call.get("more"):
                return


def serve(listener, methods, log):
    while True:
        try:
            conn, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve_client, args=(conn, methods, log), daemon=True).start()


def load(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        methods = json.load(f)
    base = methods.pop("base", None)
    return dict(load(base), **methods) if base else methods


def run_tty(argv, env, which):
    """Run on a terminal of 80 columns, give back what it got."""
    main, terminal = pty.openpty()
    streams = {"stdout": terminal, "stderr": subprocess.PIPE}
    if which == "stderr":
        streams = {"stdout": subprocess.PIPE, "stderr": terminal}
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=env, **streams)
    os.close(terminal)
    out = b""
    while select.select([main], [], [], LIMIT)[0]:
        try:
            got = os.read(main, 65536)
        except OSError:
            break
        if not got:
            break
        out += got
    piped = child.stdout or child.stderr
    other = piped.read()
    piped.close()
    os.close(main)
    if which == "stderr":
        out = b"".join(dict.fromkeys(b"<CR>" + line.rstrip() + b"\n"
                                     for line in out.split(b"\r") if line.strip()))
    out = out.replace(b"\r\n", b"\n")
    return *((other, out) if which == "stderr" else (out, other)), child.wait(LIMIT)


def within_reach(options, reach):
    """A sanitizer's options, with a copy of the file they name."""
    return re.sub(r"(?<=suppressions=)[^:]+", lambda m: shutil.copy(m[0], reach), options)


def run_hidden(argv, env, tmp):
    """Run without the right to search the socket's directory (root is made nobody, and
    gets a copy in reach of fabctl and of the files it reads)."""
    user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as reach:
        os.chmod(reach, 0o755)
        copy = shutil.copy(argv[0], reach)
        env = {name: within_reach(value, reach) if name.endswith("SAN_OPTIONS") else value
               for name, value in env.items()}
        os.chmod(tmp, 0)
        done = subprocess.run([copy] + argv[1:], stdin=subprocess.DEVNULL,
                              capture_output=True, env=env, timeout=LIMIT, check=False,
                              **user)
        os.chmod(tmp, 0o700)
    return done.stdout, done.stderr, done.returncode


def run_case(fabctl, case):
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "s")
        log = []
        listener = thread = None
        if "server" in case:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen(16)
            thread = threading.Thread(target=serve, daemon=True,
                                      args=(listener, load(case["server"]), log))
            thread.start()
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm",
               "FABD_SOCKET": path, "FABD_ADMIN_SOCKET": path}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        env.update({k: v.replace("HERE", HERE) for k, v in case.get("env", {}).items()})
        env["TZ"] = "UTC0"
        argv = [fabctl] + [a.replace("SOCKET", path).replace("HERE", HERE)
                           .replace("TMP", tmp) for a in case["args"]]
        if case.get("hidden"):
            out, err, code = run_hidden(argv, env, tmp)
        elif case.get("tty"):
            out, err, code = run_tty(argv, env, case["tty"])
        else:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True,
                                  env=env, timeout=LIMIT, check=False)
            out, err, code = done.stdout, done.stderr, done.returncode
        if listener:
            # Not close() alone: the thread would accept on the next case's descriptor.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            listener.close()
        text = "$ fabctl %s\n" % " ".join(case["args"])
        text += out.decode("utf-8", "backslashreplace").replace("\x1b", "<ESC>")
        if err:
            text += "--- stderr\n" + err.decode("utf-8", "backslashreplace")
        text += "--- exit %d\n" % code
        if case.get("calls"):
            text += "".join("call %s\n" % json.dumps(c) for c in log)
        for name in case.get("files", []):
            file = name.replace("TMP", tmp)
            text += "--- %s%s\n" % (name, ":" if os.path.exists(file) else " is not there")
            if os.path.exists(file):
                with open(file, encoding="utf-8") as f:
                    text += f.read()
        return text.replace(path, "SOCKET").replace(HERE, "HERE").replace(tmp, "TMP")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fabctl")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("case", nargs="*")
    args = parser.parse_args()
    with open(os.path.join(HERE, "cases.json"), encoding="utf-8") as f:
        cases = json.load(f)
    failed = 0
    for name, case in cases.items():
        if args.case and name not in args.case:
            continue
        got = run_case(os.path.abspath(args.fabctl), case)
        ok = os.path.join(HERE, name + ".ok")
        want = open(ok, encoding="utf-8").read() if os.path.exists(ok) else ""
        if got == want:
            continue
        if args.update:
            with open(ok, "w", encoding="utf-8") as f:
                f.write(got)
            continue
        failed += 1
        print("case %s:" % name)
        sys.stdout.writelines(difflib.unified_diff(
            want.splitlines(True), got.splitlines(True), name + ".ok", "got"))
    stale = {f[:-3] for f in os.listdir(HERE) if f.endswith(".ok")} - set(cases)
    for name in sorted(stale):
        failed += 1
        print("%s.ok belongs to no case" % name)
    print("%d cases, %d failed" % (len(cases), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
