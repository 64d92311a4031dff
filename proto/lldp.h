/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lldp.h - what `lldpcli -f json0 show neighbors` prints (lldpcli(8)), as a list; and the
 * label file that names the far ends where no lldpd runs. Pure.
 */
#pragma once

#include "util.h"

struct far_label {
	char netdev[16];  /* lldp: local interface; label file: "" */
	char port[80];	  /* label file: DEV/PORT or a netdev */
	char chassis[65]; /* name of the far system, else its id */
	char far_port[65]; /* port id there, or its description when the id is a MAC */
};
struct far_labels {
	int n;
	struct far_label *l; /* owned */
};
void far_labels_done(struct far_labels *l);
/* 0; -EBADMSG: no such JSON. At most 256 neighbours; text is cleaned. */
int lldp_parse(const char *json, size_t len, struct far_labels *ret);
/* Lines "DEV/PORT-or-NETDEV  NAME  PORT", # comments. 0; -EINVAL with "line: what". */
int far_labels_parse(const char *text, size_t len, struct far_labels *ret, char *why,
		     size_t why_size);
