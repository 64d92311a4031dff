/* SPDX-License-Identifier: BSD-2-Clause */
#include "lldp.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define NEIGHBOURS_MAX 256

void far_labels_done(struct far_labels *l)
{
	free(l->l);
	*l = (struct far_labels){0};
}

static struct far_label *label_add(struct far_labels *l)
{
	l->l = xrealloc(l->l, (size_t)l->n + 1, sizeof(*l->l));
	memset(&l->l[l->n], 0, sizeof(*l->l));
	return &l->l[l->n++];
}

/* ---- lldpcli -f json0 ---- */

static void copy_text(char *dst, size_t size, const char *s)
{
	if (s)
		text_clean(dst, size, s, strlen(s));
}

/* json0: every element is an array of objects, a text is the member "value" of one. */
static const json_t *element(const json_t *parent, const char *name)
{
	return json_array_get(json_object_get(parent, name), 0);
}

static const char *value(const json_t *parent, const char *name)
{
	return json_string_value(json_object_get(element(parent, name), "value"));
}

static bool is_mac(const json_t *id)
{
	return str_eq(json_string_value(json_object_get(id, "type")), "mac");
}

static void take_neighbour(const json_t *interface, struct far_labels *ret)
{
	const char *netdev = json_string_value(json_object_get(interface, "name"));
	const json_t *chassis = element(interface, "chassis");
	const json_t *port = element(interface, "port");
	const char *name = value(chassis, "name"), *descr = value(port, "descr");
	const char *id = value(port, "id");
	struct far_label *l;

	if (!netdev || !netdev[0] || strlen(netdev) >= sizeof(l->netdev))
		return;
	l = label_add(ret);
	copy_text(l->netdev, sizeof(l->netdev), netdev);
	copy_text(l->chassis, sizeof(l->chassis),
		  name && name[0] ? name : value(chassis, "id"));
	copy_text(l->far_port, sizeof(l->far_port),
		  descr && descr[0] && (!id || is_mac(element(port, "id"))) ? descr
									    : id);
}

int lldp_parse(const char *json, size_t len, struct far_labels *ret)
{
	json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *lldp = json_object_get(root, "lldp"), *list, *group, *interface;
	size_t i, k;

	*ret = (struct far_labels){0};
	if (!json_is_array(lldp)) {
		json_decref(root);
		return -EBADMSG;
	}
	json_array_foreach (lldp, i, group) {
		list = json_object_get(group, "interface");
		json_array_foreach (list, k, interface) {
			if (ret->n < NEIGHBOURS_MAX)
				take_neighbour(interface, ret);
		}
	}
	json_decref(root);
	return 0;
}

/* ---- the label file ---- */

#define WORDS 3

/* Words of a line into @word of @size; their number, or WORDS + 1 for more. */
static int split(const char *line, size_t len, const char *word[WORDS],
		 size_t word_len[WORDS])
{
	size_t i = 0;
	int n = 0;

	for (;;) {
		while (i < len && strchr(" \t\r", line[i]))
			i++;
		if (i == len || line[i] == '#')
			return n;
		if (n == WORDS)
			return WORDS + 1;
		word[n] = line + i;
		while (i < len && !strchr(" \t\r", line[i]))
			i++;
		word_len[n] = (size_t)(line + i - word[n]);
		n++;
	}
}

static const char *take_line(const char *line, size_t len, struct far_labels *ret)
{
	const char *word[WORDS];
	size_t n[WORDS];
	struct far_label *l;

	switch (split(line, len, word, n)) {
	case 0:
		return NULL;
	case WORDS:
		break;
	default:
		return "want: PORT NAME FAR-PORT";
	}
	if (n[0] >= sizeof(l->port) || n[1] >= sizeof(l->chassis) ||
	    n[2] >= sizeof(l->far_port))
		return "a name is too long";
	if (ret->n == NEIGHBOURS_MAX)
		return "more than 256 labels";
	for (int i = 0; i < ret->n; i++)
		if (strlen(ret->l[i].port) == n[0] &&
		    !memcmp(ret->l[i].port, word[0], n[0]))
			return "the port has a label already";
	l = label_add(ret);
	text_clean(l->port, sizeof(l->port), word[0], n[0]);
	text_clean(l->chassis, sizeof(l->chassis), word[1], n[1]);
	text_clean(l->far_port, sizeof(l->far_port), word[2], n[2]);
	return NULL;
}

int far_labels_parse(const char *text, size_t len, struct far_labels *ret, char *why,
		     size_t why_size)
{
	size_t at = 0;

	*ret = (struct far_labels){0};
	for (unsigned line = 1; at < len; line++) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;
		const char *wrong = take_line(text + at, n, ret);

		if (wrong) {
			(void)snprintf(why, why_size, "%u: %s", line, wrong);
			far_labels_done(ret);
			return -EINVAL;
		}
		at += n + 1;
	}
	return 0;
}
