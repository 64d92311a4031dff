# SPDX-License-Identifier: BSD-2-Clause
"""A file of ibnetdiscover's as fabd would tell of it: FabricNode and FabricLink objects.
Written apart from fabctl's own reader, so that the two check each other."""
import re

WIDTHS = {"1x": 1, "4x": 2, "8x": 4, "12x": 8, "2x": 16}
SPEEDS = {"SDR": (1, 0), "DDR": (2, 0), "QDR": (4, 0), "FDR": (4, 1), "EDR": (4, 2),
          "HDR": (4, 4), "NDR": (4, 8)}
LANE_MBPS = {"SDR": 2500, "DDR": 5000, "QDR": 10000, "FDR": 14000, "EDR": 25000,
             "HDR": 50000, "NDR": 100000}
EXTENDED_SPEEDS = 1 << 14


def guid(text):
    return "0x%016x" % int(text, 16)


def info_of(width, speed, cap):
    active, ext = SPEEDS[speed]
    return {"width_active": WIDTHS[width], "width_enabled": 3, "width_supported": 3,
            "speed_active": active, "speed_enabled": 7, "speed_supported": 7,
            "ext_active": ext, "ext_enabled": ext, "ext_supported": ext,
            "cap_mask": cap, "mtu_cap": 5, "neighbor_mtu": 5, "vl_cap": 4, "op_vls": 4}


def up_port(number, port_guid, rate, cap):
    width, speed = re.fullmatch(r"(\d+x)(\w+)", rate).groups()
    return {"port": number, "port_guid": port_guid, "lid": None, "lmc": None,
            "state": "ACTIVE", "physical_state": "LINK_UP", "width_active": width,
            "speed_active": speed, "rate_mbps": int(width[:-1]) * LANE_MBPS[speed],
            "width_enabled": "1x 4x", "width_supported": "1x 4x",
            "speed_enabled": "SDR DDR QDR " + speed,
            "speed_supported": "SDR DDR QDR " + speed, "link_mtu": 4096, "link_vls": 8,
            "health": "ok", "why": None, "remote": None,
            "info": info_of(width, speed, cap)}


def down_port(number, port_guid):
    return {"port": number, "port_guid": port_guid, "lid": None, "lmc": None,
            "state": "DOWN", "physical_state": "POLLING", "width_active": None,
            "speed_active": None, "rate_mbps": None, "width_enabled": "1x 4x",
            "width_supported": "1x 4x", "speed_enabled": None, "speed_supported": None,
            "link_mtu": None, "link_vls": None, "health": "unused", "why": None,
            "remote": None, "info": {"cap_mask": 0}}


def read_switch(head, ids, lines):
    count, desc, port0, lid, lmc = re.fullmatch(
        r'Switch\t(\d+) "S-\w+"\t\t# "(.*)" (base|enhanced) port 0 lid (\d+) lmc (\d+)',
        head).groups()
    own, port_guid = re.fullmatch(r"0x(\w+)\((\w+)\)", ids["switchguid"]).groups()
    ports = {}
    for line in lines:
        number, far, far_port, rate = re.fullmatch(
            r'\[(\d+)\]\t"\w-(\w+)"\[(\d+)\](?:\(\w+\) )?\t\t# ".*" lid \d+ (\S+)',
            line).groups()
        ports[int(number)] = dict(
            up_port(int(number), guid(port_guid), rate, 0),
            remote={"node_guid": guid(far), "port": int(far_port)})
    zero = dict(up_port(0, guid(port_guid), "4xEDR", EXTENDED_SPEEDS), lid=int(lid),
                lmc=int(lmc), width_active=None, speed_active=None, rate_mbps=None,
                info={"cap_mask": EXTENDED_SPEEDS})
    listed = [zero] + [ports.get(i) or down_port(i, guid(port_guid))
                       for i in range(1, int(count) + 1)]
    return {"node_guid": guid(own), "port_guid": guid(port_guid), "node_type": "switch",
            "node_desc": desc, "num_ports": int(count), "lid": int(lid),
            "lmc": int(lmc), "enhanced_port0": port0 == "enhanced", "ports": listed}


def read_ca(head, ids, lines):
    kind, count, desc = re.fullmatch(r'(Ca|Rt)\t(\d+) "\w-\w+"\t\t# "(.*)"',
                                     head).groups()
    own = guid(ids["caguid" if kind == "Ca" else "rtguid"])
    ports = []
    for line in lines:
        number, port_guid, far, far_port, lid, lmc, rate = re.fullmatch(
            r'\[(\d+)\]\((\w+)\) \t"\w-(\w+)"\[(\d+)\](?: \(\w+\) )?\t\t'
            r'# lid (\d+) lmc (\d+) ".*" lid \d+ (\S+)', line).groups()
        ports.append(dict(
            up_port(int(number), guid(port_guid), rate, EXTENDED_SPEEDS), lid=int(lid),
            lmc=int(lmc), remote={"node_guid": guid(far), "port": int(far_port)}))
    return {"node_guid": own, "port_guid": ports[0]["port_guid"] if ports else own,
            "node_type": "ca" if kind == "Ca" else "router", "node_desc": desc,
            "num_ports": int(count), "lid": ports[0]["lid"] if ports else None,
            "lmc": 0, "enhanced_port0": None, "ports": ports}


def set_levels(nodes):
    """A switch with a CA or router has level 0, one beside it 1, and so on."""
    by_guid = {n["node_guid"]: n for n in nodes}
    far = {n["node_guid"]: [p["remote"]["node_guid"] for p in n["ports"] if p["remote"]]
           for n in nodes}
    for n in nodes:
        n["level"] = 0 if n["node_type"] == "switch" and any(
            by_guid[f]["node_type"] != "switch" for f in far[n["node_guid"]]) else None
    for level in range(len(nodes)):
        for n in nodes:
            if n["level"] == level:
                for f in far[n["node_guid"]]:
                    if by_guid[f]["node_type"] == "switch" and by_guid[f]["level"] is None:
                        by_guid[f]["level"] = level + 1


def nodes_of(path, changes=None):
    """In the order of discovery, the last first of each kind as the file has them.
    @changes: {"NODE/PORT": fields} over what the file says."""
    with open(path, encoding="utf-8") as f:
        blocks = f.read().split("\n\n")
    start = guid(re.search(r"# Initiated from node (\w+)", blocks[0]).group(1))
    nodes = []
    for block in blocks[1:]:
        lines = block.strip("\n").split("\n")
        ids = dict(line.split("=", 1) for line in lines
                   if re.match(r"[a-z]+=", line))
        at = next(i for i, line in enumerate(lines) if "=" not in line)
        read = read_switch if lines[at].startswith("Switch") else read_ca
        nodes.append(dict(read(lines[at], ids, lines[at + 1:]),
                          sys_image_guid=guid(ids.get("sysimgguid", "0")),
                          vendor_id="0x%06x" % int(ids["vendid"], 16),
                          device_id="0x%04x" % int(ids["devid"], 16), flags=[],
                          age_sec=12.4))
    nodes.reverse()
    nodes.sort(key=lambda n: n["node_guid"] != start)
    set_levels(nodes)
    descs = {n["node_guid"]: n["node_desc"] for n in nodes}
    for n in nodes:
        n["path"] = [0] if n["node_guid"] == start else [0, 1]
        for p in n["ports"]:
            if p["remote"]:
                p["remote"]["node_desc"] = descs[p["remote"]["node_guid"]]
            change = (changes or {}).get("%s/%d" % (n["node_desc"], p["port"]), {})
            p["info"].update(change.get("info", {}))
            p.update({k: v for k, v in change.items() if k != "info"})
    return nodes


def links_of(path, changes=None):
    """Each link once, from the end with the lower GUID."""
    links = []
    for n in nodes_of(path, changes):
        for p in n["ports"]:
            here = (n["node_guid"], p["port"])
            if not p["remote"] or here > (p["remote"]["node_guid"], p["remote"]["port"]):
                continue
            links.append({"a": {"node_guid": n["node_guid"], "node_desc": n["node_desc"],
                                "port": p["port"]},
                          "b": p["remote"], "width": p["width_active"],
                          "speed": p["speed_active"], "rate_mbps": p["rate_mbps"],
                          "link_mtu": p["link_mtu"], "link_vls": p["link_vls"],
                          "health": p["health"], "why": p["why"]})
    return links
