/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_int.h"

#include <fnmatch.h>
#include <stdlib.h>

#define LINE_MAX_LEN 65536
#define PORTS_MAX    4096
#define BLANKS	     " \t\r\f\v"

/* ---- sections ---- */

static void *grow(void *list, int n, int *room, size_t size)
{
	if (n < *room)
		return list;
	*room = MAX(16, *room * 2);
	return xrealloc(list, (size_t)*room, size);
}

struct config_origin config_origin_get(const struct config_origins *o, size_t row)
{
	for (int i = 0; i < o->n_set; i++)
		if (o->set[i].row == (int)row)
			return o->set[i].at;
	return (struct config_origin){0};
}

void config_origin_put(struct config_origins *o, size_t row, struct config_origin at)
{
	int i = 0;

	while (i < o->n_set && o->set[i].row != (int)row)
		i++;
	if (i == o->n_set) {
		if (!(o->n_set & (o->n_set - 1)))
			o->set = xrealloc(o->set, (size_t)MAX(2 * o->n_set, 1),
					  sizeof(*o->set));
		o->n_set++;
		o->set[i].row = (int)row;
	}
	o->set[i].at = at;
}

static void origins_done(struct config_origins *o)
{
	config_probe_unref(o->own);
	free(o->set);
}

static void section_peer(struct config_parser *p, const char *name)
{
	const char *why = config_label_wrong(name, CONFIG_LABEL_MAX - 1);
	struct config *c = p->c;
	struct config_peer *peer;
	struct config_origin first;
	char q[72];
	int same;

	p->skip = true;
	if (why) {
		config_problem(p, PROBLEM_ERROR, config_here(p),
			       "peer name '%s' %s (at most %d bytes)",
			       config_quote(name, q), why, CONFIG_LABEL_MAX - 1);
		return;
	}
	same = config_peer_index(c, name);
	if (same >= 0) {
		first = p->peers[same].section;
		config_problem(p, PROBLEM_ERROR, config_here(p),
			       "[Peer %s] is already at %s:%d, which counts", name,
			       c->files[first.file], first.line);
		return;
	}
	if (c->n_peers >= CONFIG_PEERS_MAX) {
		config_problem(p, PROBLEM_ERROR, config_here(p),
			       "[Peer %s] is one too many, at most %d are possible",
			       name, CONFIG_PEERS_MAX);
		return;
	}
	if (c->n_peers == p->peers_room) {
		int room = p->peers_room;

		c->peers = grow(c->peers, c->n_peers, &room, sizeof(*c->peers));
		p->peers =
			grow(p->peers, c->n_peers, &p->peers_room, sizeof(*p->peers));
	}
	peer = &c->peers[c->n_peers];
	memset(peer, 0, sizeof(*peer));
	memset(&p->peers[c->n_peers], 0, sizeof(*p->peers));
	p->peers[c->n_peers].section = config_here(p);
	peer->name = xstrdup(name);
	peer->file = c->files[c->n_files - 1];
	peer->line = p->line;
	p->index = c->n_peers++;
	config_index_peer(c, p->index);
	p->skip = false;
}

/* "mlx5_0/1", also "mlx5_0:1". NULL, or what is wrong. */
static const char *port_name_normal(const char *text, char ret[PORT_NAME_MAX])
{
	char *slash;

	if (!str_copy(ret, PORT_NAME_MAX, text))
		return "is too long";
	slash = strpbrk(ret, "/:");
	if (!slash || slash == ret)
		return "is not DEVICE/PORT, as mlx5_0/1";
	*slash = '\0';
	if (config_label_wrong(ret, DEVICE_NAME_MAX - 1))
		return "does not begin with a device name, as mlx5_0/1";
	*slash = '/';
	if (slash[1] < '1' || strspn(slash + 1, "0123456789") != strlen(slash + 1) ||
	    strlen(slash + 1) > 3 || atoi(slash + 1) > 255)
		return "does not end in a port number from 1 to 255, as mlx5_0/1";
	return NULL;
}

static void section_port(struct config_parser *p, const char *text)
{
	struct config *c = p->c;
	char name[PORT_NAME_MAX], q[72];
	const char *why = port_name_normal(text, name);
	struct config_origin first;

	p->skip = true;
	if (why) {
		config_problem(p, PROBLEM_ERROR, config_here(p), "port '%s' %s",
			       config_quote(text, q), why);
		return;
	}
	for (int i = 0; i < c->n_ports; i++)
		if (str_eq(c->ports[i].name, name)) {
			first = p->ports[i].section;
			config_problem(p, PROBLEM_ERROR, config_here(p),
				       "[Port %s] is already at %s:%d, which counts",
				       name, c->files[first.file], first.line);
			return;
		}
	if (c->n_ports >= PORTS_MAX) {
		config_problem(p, PROBLEM_ERROR, config_here(p),
			       "[Port %s] is one too many, at most %d are possible",
			       name, PORTS_MAX);
		return;
	}
	if (c->n_ports == p->ports_room) {
		int room = p->ports_room;

		c->ports = grow(c->ports, c->n_ports, &room, sizeof(*c->ports));
		p->ports =
			grow(p->ports, c->n_ports, &p->ports_room, sizeof(*p->ports));
	}
	memset(&c->ports[c->n_ports], 0, sizeof(*c->ports));
	memset(&p->ports[c->n_ports], 0, sizeof(*p->ports));
	p->ports[c->n_ports].section = config_here(p);
	(void)str_copy(c->ports[c->n_ports].name, sizeof(c->ports->name), name);
	config_defaults(SECTION_PORT, &c->ports[c->n_ports]);
	p->index = c->n_ports++;
	p->skip = false;
}

/* @text: what stands between the brackets, cut out. */
static void section_begin(struct config_parser *p, char *text)
{
	size_t n = strcspn(text, BLANKS);
	char *name = text + n, q[72];
	int s;

	name += strspn(name, BLANKS);
	text[n] = '\0';
	p->skip = true;
	p->in_section = true;
	p->seen = (struct config_row_set){0};
	for (s = 0; s < SECTION__MAX; s++)
		if (str_eq(config_section_name((enum config_section)s), text))
			break;
	if (s == SECTION__MAX) {
		config_unknown_section(p, text);
		return;
	}
	p->section = (enum config_section)s;
	if (!config_section_is_named(p->section) && *name)
		config_problem(p, PROBLEM_ERROR, config_here(p),
			       "[%s] has no name, but '%s' is given", text,
			       config_quote(name, q));
	else if (config_section_is_named(p->section) && !*name)
		config_problem(p, PROBLEM_ERROR, config_here(p), "[%s] needs a name: %s", text,
			       config_section_title(p->section));
	else if (p->section == SECTION_PEER)
		section_peer(p, name);
	else if (p->section == SECTION_PORT)
		section_port(p, name);
	else
		p->skip = false;
}

/* ---- keys ---- */

/* Where row @r of the section at hand lives, and where it was set. */
static void *row_base(struct config_parser *p, const struct config_row *r,
		      struct config_origins **ret)
{
	struct config *c = p->c;

	switch (p->section) {
	case SECTION_PORT:
		*ret = &p->ports[p->index];
		return &c->ports[p->index];
	case SECTION_PEER:
		*ret = &p->peers[p->index];
		if (r->section != SECTION_PROBE)
			return &c->peers[p->index];
		if (!(*ret)->own)
			(*ret)->own = config_probe_new();
		return (*ret)->own;
	case SECTION_PROBE:
		*ret = p->global;
		return c->probe;
	case SECTION_FABD:
	case SECTION_PORTS:
	case SECTION_HEALTH:
	case SECTION_EXPECT:
	case SECTION__MAX:
		break;
	}
	*ret = p->global;
	return c;
}

/* Values have no comment after them; say so to who wrote one. */
static const char *comment_hint(const char *value)
{
	for (const char *s = value; *s; s++)
		if ((*s == ' ' || *s == '\t') && (s[1] == '#' || s[1] == ';'))
			return " (a comment must stand on a line of its own)";
	return "";
}

static void key_set(struct config_parser *p, const char *key, const char *value)
{
	const struct config_row *r = config_row_find(p->section, key);
	char err[CONFIG_ERR_MAX];
	struct config_origins *o;
	struct config_origin at;
	void *base;
	size_t i;

	if (!r) {
		config_unknown_key(p, key);
		return;
	}
	base = row_base(p, r, &o);
	i = (size_t)(r - config_rows);
	at = config_origin_get(o, i);
	if (!*value && !(r->flags & ROW_MAY_BE_EMPTY)) {
		config_value_reset(r, base);
		row_set_put(&p->seen, i, false);
		row_set_put(&o->bad_rows, i, false);
		config_origin_put(o, i, (struct config_origin){0});
		return;
	}
	if (row_set_has(&p->seen, i) && !config_type_is_list(r->type))
		config_problem(p, PROBLEM_WARNING, config_here(p),
			       "%s= was already set on line %d, this one counts", key,
			       at.line);
	if (config_value_parse(r, base, value, !at.line, err) < 0) {
		config_problem(p, PROBLEM_ERROR, config_here(p), "%s=: %s%s", key, err,
			       comment_hint(value));
		row_set_put(&o->bad_rows, i, true);
		return;
	}
	row_set_put(&o->bad_rows, i, false);
	row_set_put(&p->seen, i, true);
	config_origin_put(o, i, config_here(p));
}

/* ---- lines ---- */

/* Length of the UTF-8 sequence at @s; 0 if it is none. Overlong forms, surrogates and
 * what is past U+10FFFF are none (RFC 3629). */
static size_t utf8_len(const unsigned char *s)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {{0x80, 0, 0},
		     {0xe0, 0xc0, 0x80},
		     {0xf0, 0xe0, 0x800},
		     {0xf8, 0xf0, 0x10000}};
	uint32_t v;

	for (size_t n = 0; n < ARRAY_LEN(forms); n++) {
		if ((s[0] & forms[n].mask) != forms[n].lead)
			continue;
		v = s[0] & (unsigned char)~forms[n].mask;
		for (size_t i = 1; i <= n; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			v = v << 6 | (s[i] & 0x3f);
		}
		if (v < forms[n].least || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
			return 0;
		return n + 1;
	}
	return 0;
}

/* NULL; or what is wrong with the bytes of a line that is no comment. */
static const char *bytes_wrong(const char *line, size_t len)
{
	if (memchr(line, '\0', len))
		return "NUL byte in the line, which is passed over";
	for (const unsigned char *s = (const unsigned char *)line; *s;) {
		size_t n = utf8_len(s);

		if (!n)
			return "the line is not UTF-8 and is passed over";
		if ((*s < 0x20 && *s != '\t') || *s == 0x7f)
			return "control character in the line, which is passed over";
		s += n;
	}
	return NULL;
}

static char *strip(char *s)
{
	size_t n;

	s += strspn(s, BLANKS);
	n = strlen(s);
	while (n > 0 && strchr(BLANKS, s[n - 1]))
		n--;
	s[n] = '\0';
	return s;
}

static void line_handle(struct config_parser *p, char *line, size_t len)
{
	char *s, *eq, q[72];
	const char *why;

	while (len > 0 && strchr(BLANKS, line[len - 1]) && line[len - 1])
		line[--len] = '\0';
	why = bytes_wrong(line, len);
	s = strip(line);
	if (why) {
		config_problem(p, PROBLEM_ERROR, config_here(p), "%s", why);
		/* whatever section it was to begin, the keys after it are not ours */
		if (*s == '[')
			p->skip = p->in_section = true;
		return;
	}
	if (*s == '[') {
		if (s[strlen(s) - 1] != ']') {
			config_problem(p, PROBLEM_ERROR, config_here(p),
				       "']' is missing after '%s'", config_quote(s, q));
			p->skip = p->in_section = true;
			return;
		}
		s[strlen(s) - 1] = '\0';
		section_begin(p, strip(s + 1));
		return;
	}
	if (*s && s[strlen(s) - 1] == '\\') {
		config_problem(
			p, PROBLEM_ERROR, config_here(p),
			"a backslash joins lines only as the last byte of its line");
		return;
	}
	eq = strchr(s, '=');
	if (!eq || eq == s) {
		config_problem(p, PROBLEM_ERROR, config_here(p),
			       "'%s' is none of [SECTION], KEY=VALUE and # comment",
			       config_quote(s, q));
		return;
	}
	*eq = '\0';
	if (!p->in_section)
		config_problem(p, PROBLEM_ERROR, config_here(p),
			       "%s= stands before the first [SECTION]",
			       config_quote(strip(s), q));
	else if (!p->skip)
		key_set(p, strip(s), strip(eq + 1));
}

/* A logical line under way: the lines that end in a backslash, joined. */
struct line {
	char *text; /* owned */
	size_t len, room;
	bool open, too_long;
};

static void line_add(struct line *l, const char *s, size_t n)
{
	if (l->len + n > LINE_MAX_LEN) {
		l->too_long = true;
		return;
	}
	if (l->len + n + 1 > l->room) {
		l->room = (l->len + n + 1) * 2;
		l->text = xrealloc(l->text, l->room, 1);
	}
	memcpy(l->text + l->len, s, n);
	l->len += n;
	l->text[l->len] = '\0';
}

static void line_end(struct config_parser *p, struct line *l)
{
	if (l->too_long)
		config_problem(p, PROBLEM_ERROR, config_here(p),
			       "line of more than %d bytes is passed over",
			       LINE_MAX_LEN);
	else if (l->len)
		line_handle(p, l->text, l->len);
	l->len = 0;
	l->open = l->too_long = false;
}

/* One line of the file. As in systemd, a backslash at its end joins it with the next,
 * and comments between joined lines are passed over. */
static void line_physical(struct config_parser *p, struct line *l, const char *s,
			  size_t n, int number)
{
	size_t lead = 0;
	bool more;

	if (n > 0 && s[n - 1] == '\r')
		n--;
	while (lead < n && (s[lead] == ' ' || s[lead] == '\t'))
		lead++;
	if (lead < n && (s[lead] == '#' || s[lead] == ';'))
		return;
	if (!l->open) {
		if (lead == n)
			return;
		p->line = number;
	}
	more = n > 0 && s[n - 1] == '\\';
	line_add(l, s, more ? n - 1 : n);
	if (more)
		line_add(l, " ", 1);
	l->open = more;
	if (!more)
		line_end(p, l);
}

void config_parser_text(struct config_parser *p, const char *name, const char *text,
			size_t len)
{
	struct line l = {0};
	int number = 0;

	p->c->files = xrealloc(p->c->files, (size_t)p->c->n_files + 1,
			       sizeof(*p->c->files));
	p->c->files[p->c->n_files++] = xstrdup(name);
	p->line = 0;
	p->in_section = p->skip = false;
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		len -= 3;
	} else if (len >= 2 &&
		   (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2))) {
		config_problem(
			p, PROBLEM_ERROR, config_here(p),
			"the file is UTF-16 and is passed over, wanted is UTF-8");
		return;
	}
	while (len > 0) {
		const char *nl = memchr(text, '\n', len);
		size_t n = nl ? (size_t)(nl - text) : len;

		line_physical(p, &l, text, n, ++number);
		n += nl != NULL;
		text += n;
		len -= n;
	}
	if (l.open) {
		config_problem(p, PROBLEM_WARNING, config_here(p),
			       "the file ends in a line that is to be continued");
		line_end(p, &l);
	}
	free(l.text);
}

/* ---- the whole ---- */

void config_parser_init(struct config_parser *p, struct config_problems *problems,
			bool read_keys)
{
	memset(p, 0, sizeof(*p));
	memset(problems, 0, sizeof(*problems));
	p->problems = problems;
	p->read_keys = read_keys;
	p->c = xcalloc(1, sizeof(*p->c));
	p->global = xcalloc(1, sizeof(*p->global));
	config_defaults(SECTION_FABD, p->c);
	port_watch_params_default(&p->c->health); /* what has no key among it */
	config_defaults(SECTION_PORTS, p->c);
	config_defaults(SECTION_HEALTH, p->c);
	config_defaults(SECTION_EXPECT, p->c);
	p->c->probe = config_probe_new();
	config_defaults(SECTION_PROBE, p->c->probe);
}

struct config *config_parser_finish(struct config_parser *p)
{
	int n_ports = p->c->n_ports, n_peers = p->c->n_peers;

	config_check(p);
	config_problems_sort(p);
	for (int i = 0; i < n_ports; i++)
		origins_done(&p->ports[i]);
	for (int i = 0; i < n_peers; i++)
		origins_done(&p->peers[i]);
	origins_done(p->global);
	free(p->global);
	free(p->ports);
	free(p->peers);
	return p->c;
}

struct config *config_parse(const char *text, size_t len, const char *name,
			    bool read_keys, struct config_problems *ret_problems)
{
	struct config_parser p;

	config_parser_init(&p, ret_problems, read_keys);
	config_parser_text(&p, name, text, len);
	return config_parser_finish(&p);
}

struct config *config_free(struct config *c)
{
	if (c) {
		for (int i = 0; i < c->n_peers; i++)
			config_peer_done(&c->peers[i]);
		for (int i = 0; i < c->n_files; i++)
			free(c->files[i]);
		config_probe_unref(c->probe);
		free(c->files);
		free(c->peer_slots);
		free(c->ports);
		free(c->peers);
		free(c);
	}
	return NULL;
}

const struct config_port *config_port_find(const struct config *c, const char *name)
{
	char normal[PORT_NAME_MAX];

	if (port_name_normal(name, normal))
		return NULL;
	for (int i = 0; i < c->n_ports; i++)
		if (str_eq(c->ports[i].name, normal))
			return &c->ports[i];
	return NULL;
}

static bool globs_match(const char *globs, const char *name)
{
	_cleanup_(freep) char *copy = xstrdup(globs);
	char *save = NULL;

	for (char *g = strtok_r(copy, " ", &save); g; g = strtok_r(NULL, " ", &save))
		if (!fnmatch(g, name, 0))
			return true;
	return false;
}

bool config_wants_device(const struct config *c, const char *device)
{
	return globs_match(c->devices, device) &&
	       !globs_match(c->ignore_devices, device);
}

bool config_may_sweep(const struct config *c)
{
	return c->sweep == SWEEP_MODE_SUBNET && globs_match(c->sweep_hosts, c->node_name);
}
