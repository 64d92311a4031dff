#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""graph.py FABCTL: a subnet of 50 nodes, drawn by Graphviz, can be read: every name is
there, nothing lies on anything else, ranks are where they belong, what is degraded or
down is coloured, and the picture is not as wide as a wall."""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import xml.etree.ElementTree as ElementTree

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fabctl")
sys.path.insert(0, HERE)

import run  # noqa: E402 (from the folder beside)
import topology  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
WIDEST = 2600  # points
SMALLEST_FONT = 9


def draw(fabctl):
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "s")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(4)
        thread = threading.Thread(target=run.serve, daemon=True,
                                  args=(listener, run.load("fifty.json"), []))
        thread.start()
        done = subprocess.run([fabctl, "fabric", "graph", "--format", "svg"],
                              env=dict(os.environ, FABD_SOCKET=path), timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()
    assert done.returncode == 0, done.stderr.decode()
    return ElementTree.fromstring(done.stdout)


def boxes_of(svg):
    """{name: (left, top, right, bottom)}."""
    boxes = {}
    for group in svg.iter(SVG + "g"):
        if group.get("class") != "node":
            continue
        name = group.find(".//" + SVG + "text").text.replace("\xa0", " ")
        points = [tuple(map(float, p.split(",")))
                  for p in group.find(".//" + SVG + "polygon").get("points").split()]
        xs, ys = zip(*points)
        boxes[name] = (min(xs), min(ys), max(xs), max(ys))
    return boxes


def short(desc):
    found = re.fullmatch(r"[^;]*;([^:]*):.*", desc)
    return found.group(1) if found else desc


def check_boxes(boxes):
    names = sorted(boxes)
    for i, a in enumerate(names):
        for b in names[i + 1:]:
            left, top, right, bottom = boxes[a]
            assert (boxes[b][0] >= right or boxes[b][2] <= left or boxes[b][1] >= bottom
                    or boxes[b][3] <= top), f"{a} and {b} lie on each other"


def check_ranks(boxes):
    middle = {n: (b[1] + b[3]) / 2 for n, b in boxes.items()}
    of = {kind: {round(y) for n, y in middle.items() if n.startswith(kind)}
          for kind in ("spine", "leaf", "gpu")}
    assert len(of["spine"]) == 1 and len(of["leaf"]) == 1, of
    assert max(of["spine"]) < min(of["leaf"]) and max(of["leaf"]) < min(of["gpu"]), of


def main():
    if not shutil.which("dot"):
        print("Graphviz is not installed")
        return 77
    svg = draw(os.path.abspath(sys.argv[1]))
    boxes = boxes_of(svg)
    nodes = topology.nodes_of(os.path.join(HERE, "fifty.topo"))
    assert sorted(boxes) == sorted(short(n["node_desc"]) for n in nodes), sorted(boxes)
    check_boxes(boxes)
    check_ranks(boxes)
    width, height = (float(svg.get(k).rstrip("pt")) for k in ("width", "height"))
    assert width <= WIDEST, f"{width} points wide"
    fonts = {float(t.get("font-size")) for t in svg.iter(SVG + "text")}
    assert min(fonts) >= SMALLEST_FONT, fonts
    colours = [p.get("stroke") for p in svg.iter(SVG + "path")]
    assert colours.count("darkorange") == 1 and colours.count("red") == 1, colours
    print(f"{len(boxes)} nodes, {width:.0f} x {height:.0f} points")
    return 0


if __name__ == "__main__":
    sys.exit(main())
