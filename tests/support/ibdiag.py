# SPDX-License-Identifier: BSD-2-Clause
"""What the infiniband-diags say of a simulated fabric, as values that can be compared.

    diag = Diag(sim, "h1")
    want = topology(diag.ibnetdiscover())
    diag.pkeys("0,1", 4)       # by directed route, of the switch next to h1
    diag.counters(7, 1)        # by LID

A target is a directed route ("0" is the host itself) or a LID.
"""

import re

from tap import check, check_equal

SA_FIELD = re.compile(r"^\s*([\w ]+?)\.{2,}(.*)$")


class Diag:
    def __init__(self, sim, host):
        self.sim = sim
        self.host = host

    def run(self, *argv, seconds=60, **kwargs):
        """The output of a tool that succeeds. @kwargs: as in Sim.diag()."""
        rc, out, err = self.sim.diag(self.host, *(str(a) for a in argv),
                                     seconds=seconds, **kwargs)
        check_equal(rc, 0, f"{' '.join(str(a) for a in argv)} on {self.host}: {out}{err}")
        return out

    def ibnetdiscover(self, outstanding=None, seconds=120, **kwargs):
        """Its text, with @outstanding MADs at once."""
        option = ["-o", outstanding] if outstanding else []
        return self.run("ibnetdiscover", *option, seconds=seconds, **kwargs)

    # ---- smpquery

    def smp(self, op, target, *argv):
        route = ["-D", op, target] if isinstance(target, str) else [op, target]
        return self.run("smpquery", *route, *argv)

    def fields(self, op, target, *argv):
        """portinfo, nodeinfo, switchinfo, nodedesc: {field: text}."""
        pairs = (line.split(":", 1) for line in self.smp(op, target, *argv).splitlines()
                 if ":" in line and not line.startswith(("#", "\t")))
        return {key.strip(): value.lstrip(".").strip() for key, value in pairs}

    def pkeys(self, target, port=None):
        """["0xffff", ...] without the empty ones at the end."""
        rows = re.findall(r"^\s*\d+:((?: 0x[0-9a-f]{4})+)", self._of_port(
            "pkeys", target, port), re.MULTILINE)
        return without_tail([key for row in rows for key in row.split()])

    def sl2vl(self, target, port=None):
        """[{"in_port": 0, "vls": [16 numbers]}, ...]."""
        rows = re.findall(r"^ports: in\s*(\d+), out\s*\d+: \|([\d |]+)\|\s*$",
                          self._of_port("sl2vl", target, port), re.MULTILINE)
        return [{"in_port": int(number), "vls": [int(vl) for vl in vls.split("|")]}
                for number, vls in rows]

    def vlarb(self, target, port=None):
        """{"low": [{"vl": 0, "weight": 4}, ...], "high": ...}, each as long as the
        capacity of the port."""
        tables = {}
        text = self._of_port("vlarb", target, port)
        for part in text.split("# ")[1:]:
            match = re.match(r"(Low|High) priority", part)
            if match:
                tables[match[1].lower()] = _arbitration(part)
        return tables

    def _of_port(self, op, target, port):
        return self.smp(op, target, *([port] if port is not None else []))

    # ---- perfquery and saquery

    def counters(self, lid, port, extended=False):
        """{perfquery's name: number}."""
        out = self.run("perfquery", *(["-x"] if extended else []), lid, port)
        pairs = re.findall(r"^(\w+):\.+(\d+)$", out, re.MULTILINE)
        found = {name: int(number) for name, number in pairs}
        check_equal(found.pop("PortSelect"), port, "perfquery's port")
        return found

    def sa(self, *argv):
        """The records of saquery's answer, each {field: text}."""
        records = []
        for line in self.run("saquery", *argv).splitlines():
            if re.match(r"^\w.* dump:$", line):
                records.append({})
            match = SA_FIELD.match(line)
            if match:
                records[-1][match[1].strip()] = match[2].strip()
        return records


def _arbitration(text):
    rows = {}
    for line in text.splitlines():
        match = re.match(r"^(VL|WEIGHT)\s*: \|(.*)\|\s*$", line)
        if match:
            rows.setdefault(match[1], []).extend(
                int(word, 16) for word in match[2].split("|"))
    check_equal(len(rows["VL"]), len(rows["WEIGHT"]), "vlarb: columns")
    return [{"vl": vl, "weight": weight}
            for vl, weight in zip(rows["VL"], rows["WEIGHT"])]


def without_tail(pkeys):
    """P_Keys without the empty ones after the last."""
    pkeys = list(pkeys)
    while pkeys and pkeys[-1] == "0x0000":
        pkeys.pop()
    return pkeys


# ---- a topology as ibnetdiscover writes it

HEADER = re.compile(r"^(vendid|devid|sysimgguid|caguid|switchguid|rtguid)="
                    r"(0x[0-9a-f]+(?:\([0-9a-f]+\))?)$")
NODE = re.compile(r'^(Ca|Switch|Rt)\t(\d+) "([SHR]-[0-9a-f]{16})"\s+# "(.*?)"'
                  r"(?: (base|enhanced) port 0 lid (\d+) lmc (\d+))?$")
SWITCH_PORT = re.compile(
    r'^\[(\d+)\]\s+"([SHR]-[0-9a-f]{16})"\[(\d+)\](?:\(([0-9a-f]+)\))?\s+'
    r'# "(.*?)" lid (\d+) (\S+)$')
CA_PORT = re.compile(
    r'^\[(\d+)\]\(([0-9a-f]+)\)\s+"([SHR]-[0-9a-f]{16})"\[(\d+)\](?:\(([0-9a-f]+)\))?'
    r'\s+# lid (\d+) lmc (\d+) "(.*?)" lid (\d+) (\S+)$')


def topology(text):
    """{node id: {header, type, ports, desc, and "links": {port: far end}}}: all that
    the file says but its date and from where it was seen. A line that it does not know
    is an error, so nothing is left out of a comparison by silence."""
    nodes, header, node = {}, {}, None
    for line in text.splitlines():
        if not line.strip():
            header, node = {}, None
        elif line.startswith("#"):
            continue
        elif HEADER.match(line):
            key, value = HEADER.match(line).groups()
            header[key] = value
        elif NODE.match(line):
            node = _node(NODE.match(line), header)
            check(node["id"] not in nodes, f"twice in the file: {line}")
            nodes[node["id"]] = node
        else:
            check(node is not None, f"a port without a node: {line!r}")
            port, far = _port(line)
            check(port not in node["links"], f"port twice in the file: {line}")
            node["links"][port] = far
    return nodes


def _node(match, header):
    kind, count, ident, desc, port0, lid, lmc = match.groups()
    node = {"id": ident, "type": kind, "ports": int(count), "desc": desc,
            **header, "links": {}}
    if port0:
        node.update(port0=port0, lid=int(lid), lmc=int(lmc))
    return node


def _port(line):
    match = SWITCH_PORT.match(line)
    if match:
        port, peer, peer_port, guid, desc, lid, rate = match.groups()
        return int(port), {"peer": peer, "peer_port": int(peer_port), "peer_guid": guid,
                           "peer_desc": desc, "peer_lid": int(lid), "rate": rate}
    match = CA_PORT.match(line)
    check(match, f"not a line of ibnetdiscover's: {line!r}")
    (port, guid, peer, peer_port, peer_guid, lid, lmc, desc, peer_lid,
     rate) = match.groups()
    return int(port), {"guid": guid, "lid": int(lid), "lmc": int(lmc), "peer": peer,
                       "peer_port": int(peer_port), "peer_guid": peer_guid,
                       "peer_desc": desc, "peer_lid": int(peer_lid), "rate": rate}


def normal(text):
    """The file with its nodes and ports in order, for people and for diff."""
    lines = []
    for ident, node in sorted(topology(text).items()):
        own = {k: v for k, v in node.items() if k not in ("id", "links")}
        lines.append(f"{ident} " + _words(own))
        lines += [f"  [{port}] " + _words(far)
                  for port, far in sorted(node["links"].items())]
    return "\n".join(lines) + "\n"


def _words(values):
    return " ".join(f"{key}={value}" for key, value in values.items()
                    if value is not None)


def differences(got, want):
    """What is not the same in two files, a line each; "-" only in @want, "+" only in
    @got."""
    ours, theirs = (set(_whole_lines(normal(text))) for text in (got, want))
    return sorted([f"- {line}" for line in theirs - ours]
                  + [f"+ {line}" for line in ours - theirs],
                  key=lambda line: (line[2:], line[0]))


def _whole_lines(text):
    """Each port's line with its node's id before it, so that it stands for itself."""
    ident = None
    for line in text.splitlines():
        if not line.startswith(" "):
            ident = line.split()[0]
            yield line
        else:
            yield f"{ident}{line}"


def check_same_topology(got, want, what):
    check(topology(want), f"{what}: ibnetdiscover found nothing")
    lines = differences(got, want)
    check(not lines, f"{what}: {len(lines)} lines differ (- ibnetdiscover, + fabd):\n"
          + "\n".join(lines[:40]))
