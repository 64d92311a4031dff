/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What no row can tell for itself: peers inherit from [Probe], values must fit each
 * other, no two peers may be one, and what is bad is left out.
 */
#include "config_int.h"

#include <ctype.h>
#include <stdlib.h>

/* The default hash falls through in a way clang warns about. */
#define HASH_FUNCTION(key, len, hash) HASH_OAT(key, len, hash)
#define uthash_fatal(msg)	      abort()
#include <uthash.h>

#define RECEIVE_FLOOR INT64_C(10000000)
#define FAST_FLOOR INT64_C(100000000) /* shorter heartbeats need AllowFast=yes */

struct taken { /* an address of peers */
	char *key; /* owned */
	int first, by[TRANSPORT__MAX]; /* peers; -1: none */
	UT_hash_handle hh;
};

struct key_file {
	char path[CONFIG_PATH_MAX];
	struct auth_keys keys;
	bool usable;
	UT_hash_handle hh;
};

struct shared { /* settings that some peers have */
	struct config_probe *probe; /* a reference */
	UT_hash_handle hh;
};

struct check {
	struct config_parser *p;
	struct shared *shared;
	struct taken *taken;
	struct key_file *key_files;
	int keyless; /* peers that inherit Authentication=require and have no key */
	int first_keyless;
};

static const struct config_row *row(enum config_section s, const char *key)
{
	const struct config_row *r = config_row_find(s, key);

	assert(r); /* a key of the table, named by this file */
	return r;
}

static struct config_origin origin(const struct config_origins *o, const char *key,
				   enum config_section s)
{
	size_t i = (size_t)(row(s, key) - config_rows);
	struct config_origin at = config_origin_get(o, i);

	return at.line ? at : o->section;
}

static bool is_set(const struct config_origins *o, const char *key)
{
	return config_origin_get(o, (size_t)(row(SECTION_PEER, key) - config_rows)).line != 0;
}

static void back_to(const char *key, void *base, const void *from)
{
	const struct config_row *r = row(SECTION_PEER, key);

	if (from)
		config_value_copy(r, base, from);
	else
		config_value_reset(r, base);
}

/* ---- probing parameters, of all and of one ---- */

/* @from: what to fall back to; NULL for [Probe] itself, which falls back to defaults.
 */
static void check_probe(struct config_parser *p, struct config_probe *pr,
			const struct config_origins *o, const struct config_probe *from,
			const char *who)
{
	char a[32], b[32];

	if (pr->heartbeat < FAST_FLOOR && !pr->allow_fast) {
		config_problem(
			p, PROBLEM_ERROR,
			is_set(o, "HeartbeatSec")
				? origin(o, "HeartbeatSec", SECTION_PEER)
				: origin(o, "AllowFast", SECTION_PEER),
			"%sHeartbeatSec=: %s is below %s, which takes AllowFast=yes",
			who, config_time_text(pr->heartbeat, a),
			config_time_text(FAST_FLOOR, b));
		if (from && (from->heartbeat >= FAST_FLOOR || from->allow_fast)) {
			back_to("AllowFast", pr, from);
			back_to("HeartbeatSec", pr, from);
		} else {
			back_to("HeartbeatSec", pr, NULL);
		}
	}
	if (pr->min_receive && pr->min_receive < RECEIVE_FLOOR) {
		config_problem(p, PROBLEM_ERROR, origin(o, "MinReceiveSec", SECTION_PEER),
			       "%sMinReceiveSec=: %s is neither 0 nor from %s on", who,
			       config_time_text(pr->min_receive, a),
			       config_time_text(RECEIVE_FLOOR, b));
		back_to("MinReceiveSec", pr, from);
	}
	if (pr->backoff_min > pr->backoff_max) {
		config_problem(p, PROBLEM_ERROR,
			       is_set(o, "BackoffMinSec")
				       ? origin(o, "BackoffMinSec", SECTION_PEER)
				       : origin(o, "BackoffMaxSec", SECTION_PEER),
			       "%sBackoffMinSec=: %s is above BackoffMaxSec=%s", who,
			       config_time_text(pr->backoff_min, a),
			       config_time_text(pr->backoff_max, b));
		back_to("BackoffMinSec", pr, from);
		back_to("BackoffMaxSec", pr, from);
	}
}

static void check_fabd(struct config_parser *p)
{
	struct config *c = p->c;
	char a[32], b[32];

	if (c->worker_backoff_min > c->worker_backoff_max) {
		struct config_origin at =
			origin(p->global, "WorkerBackoffMinSec", SECTION_FABD);

		if (!at.line)
			at = origin(p->global, "WorkerBackoffMaxSec", SECTION_FABD);
		config_problem(
			p, PROBLEM_ERROR, at,
			"WorkerBackoffMinSec=: %s is above WorkerBackoffMaxSec=%s",
			config_time_text(c->worker_backoff_min, a),
			config_time_text(c->worker_backoff_max, b));
		config_value_reset(row(SECTION_FABD, "WorkerBackoffMinSec"), c);
		config_value_reset(row(SECTION_FABD, "WorkerBackoffMaxSec"), c);
	}
	if (str_eq(c->listen, c->admin_listen)) {
		config_problem(
			p, PROBLEM_ERROR,
			origin(p->global, "AdminListenStream", SECTION_FABD),
			"AdminListenStream=: %s is also ListenStream=", c->listen);
		config_value_reset(row(SECTION_FABD, "ListenStream"), c);
		config_value_reset(row(SECTION_FABD, "AdminListenStream"), c);
	}
}

/* ---- keys ---- */

static struct key_file *key_file_get(struct check *k, const char *path,
				     struct config_origin at, bool off)
{
	char err[CONFIG_ERR_MAX];
	struct key_file *f = NULL;
	int r;

	HASH_FIND_STR(k->key_files, path, f);
	if (f)
		return f;
	f = xcalloc(1, sizeof(*f));
	(void)str_copy(f->path, sizeof(f->path), path);
	HASH_ADD_STR(k->key_files, path, f);
	r = config_key_file_read(path, &f->keys, err);
	f->usable = r >= 0;
	if (r < 0)
		config_problem(k->p, off ? PROBLEM_WARNING : PROBLEM_ERROR, at,
			       "KeyFile=: %s", err);
	else if (r > 0)
		config_problem(k->p, PROBLEM_WARNING, at,
			       "KeyFile=: %s can be read by everyone on this host, "
			       "wanted is mode 0640 root:_fabd",
			       path);
	return f;
}

/* A peer whose keys cannot be had is left out: with no key it would be spoken to
 * unsigned. */
/* A port that is damped must be able to come out of it. */
static void check_health(struct config_parser *p)
{
	struct flap_params *f = &p->c->health.flap;
	struct config_origin at = origin(p->global, "FlapReuse", SECTION_HEALTH);

	if (f->suppress <= 0 || f->reuse < f->suppress)
		return;
	if (!at.line)
		at = origin(p->global, "FlapSuppress", SECTION_HEALTH);
	config_problem(p, PROBLEM_ERROR, at, "FlapReuse=: %g is not below FlapSuppress=%g",
		       f->reuse, f->suppress);
	config_value_reset(row(SECTION_HEALTH, "FlapSuppress"), p->c);
	config_value_reset(row(SECTION_HEALTH, "FlapReuse"), p->c);
}

static void check_keys(struct check *k, int i)
{
	struct config_probe *pr = k->p->c->peers[i].probe;
	struct config_origins *o = &k->p->peers[i];
	struct config_origin at = origin(o, "Authentication", SECTION_PEER);
	const struct config_row *key = row(SECTION_PEER, "KeyFile");
	const struct key_file *f;
	bool inherits = !is_set(o, "KeyFile");

	if (inherits && row_set_has(&k->p->global->bad_rows, (size_t)(key - config_rows)) &&
	    pr->auth != AUTH_OFF) {
		o->bad = true;
		return;
	}
	if (!pr->key_file[0] && pr->auth == AUTH_REQUIRE) {
		o->bad = true;
		if (is_set(o, "Authentication"))
			config_problem(k->p, PROBLEM_ERROR, at,
				       "Authentication=require needs a KeyFile=");
		else if (!k->keyless++)
			k->first_keyless = i;
		return;
	}
	if (!pr->key_file[0] || !k->p->read_keys)
		return;
	at = origin(inherits ? k->p->global : o, "KeyFile", SECTION_PEER);
	f = key_file_get(k, pr->key_file, at, pr->auth == AUTH_OFF);
	if (pr != k->p->c->probe) /* which has its keys already */
		pr->keys = f->keys;
	if (!f->usable && pr->auth != AUTH_OFF)
		o->bad = true;
}

static void check_probe_keys(struct check *k)
{
	struct config_probe *pr = k->p->c->probe;

	if (pr->key_file[0] && k->p->read_keys)
		pr->keys = key_file_get(k, pr->key_file,
					origin(k->p->global, "KeyFile", SECTION_PROBE),
					pr->auth == AUTH_OFF)
				   ->keys;
}

/* What all peers inherit is one mistake, not one per peer. */
static void report_keyless(struct check *k)
{
	struct config_origin at = origin(k->p->global, "Authentication", SECTION_PROBE);
	struct config *c = k->p->c;

	if (k->keyless)
		config_problem(
			k->p, PROBLEM_ERROR, at,
			"Authentication=require needs a KeyFile=, which %d peers do "
			"not have, the first is %s at line %d of %s",
			k->keyless, c->peers[k->first_keyless].name,
			c->peers[k->first_keyless].line,
			c->peers[k->first_keyless].file);
	else if (!c->n_peers && c->probe->auth == AUTH_REQUIRE && !c->probe->key_file[0])
		config_problem(
			k->p, PROBLEM_WARNING, at,
			"Authentication=require without a KeyFile= refuses everyone");
}

/* ---- addresses and rails ---- */

static void address_key(const struct config_peer *peer, const struct config_addr *a,
			char key[300])
{
	char buf[ADDR_TEXT_MAX];

	key[0] = '\0';
	if (addr_is_set(&a->addr))
		str_append(key, 300, "%s%%%s", addr_format(&a->addr, buf), a->zone);
	else
		for (size_t i = 0; a->text[i]; i++)
			str_append(key, 300, "%c", tolower((unsigned char)a->text[i]));
	str_append(key, 300, " %u", peer->port);
}

/* Returns false if the address is new. */
static bool taken_get(struct check *k, int i, const struct config_addr *a,
		      struct taken **ret)
{
	char key[300];

	address_key(&k->p->c->peers[i], a, key);
	HASH_FIND_STR(k->taken, key, *ret);
	if (*ret)
		return true;
	*ret = xcalloc(1, sizeof(**ret));
	(*ret)->key = xstrdup(key);
	(*ret)->first = i;
	for (int t = 0; t < TRANSPORT__MAX; t++)
		(*ret)->by[t] = -1;
	HASH_ADD_KEYPTR(hh, k->taken, (*ret)->key, strlen(key), *ret);
	return false;
}

/* The peer that has the address for a transport of peer @i, which gets those that are
 * free; or -1. */
static int taken_claim(struct taken *taken, int i, uint32_t transports)
{
	int by = -1;

	for (int t = 0; t < TRANSPORT__MAX; t++) {
		if (!(transports & UINT32_C(1) << t))
			continue;
		if (taken->by[t] < 0)
			taken->by[t] = i;
		else if (by < 0)
			by = taken->by[t];
	}
	return by;
}

static bool given_before(const struct config_peer *peer, const struct config_addr *a)
{
	for (const struct config_addr *b = peer->addrs; b < a; b++)
		if (a->addr.family ? addr_same_ip(&a->addr, &b->addr) &&
					     !strcmp(a->zone, b->zone)
				   : !b->addr.family && !strcasecmp(a->text, b->text))
			return true;
	return false;
}

/* Two peers at one address cannot be told apart when they ask: what they ask is shown
 * under the first. Likely a slip, but each is probed. Another Port= is another daemon. */
static void check_taken(struct check *k, int i, const struct config_addr *a)
{
	struct config *c = k->p->c;
	struct config_peer *peer = &c->peers[i];
	struct config_origin at = origin(&k->p->peers[i], "Address", SECTION_PEER);
	struct taken *t = NULL;
	bool known = taken_get(k, i, a, &t);
	int by = taken_claim(t, i, peer->probe->transports ? peer->probe->transports : UINT32_C(1) << TRANSPORT_UDP);

	if (by == i || given_before(peer, a)) {
		config_problem(k->p, PROBLEM_ERROR, at,
			       "Address=: %.80s is given twice for peer %s", a->text,
			       peer->name);
		k->p->peers[i].bad = true;
	} else if (by >= 0) {
		config_problem(
			k->p, PROBLEM_WARNING, at,
			"Address=: %.80s of peer %s is already that of peer %s at "
			"%.60s:%d; both are probed",
			a->text, peer->name, c->peers[by].name, c->peers[by].file,
			c->peers[by].line);
	} else if (known) {
		config_problem(
			k->p, PROBLEM_WARNING, at,
			"Address=: %.80s of peer %s is also that of peer %s, over "
			"other transports; one [Peer] with both is meant?",
			a->text, peer->name, c->peers[t->first].name);
	}
}

/* The label of rail @i: what goes into connection keys. */
static const char *rail_label(const struct config_peer *peer, int i, char buf[16])
{
	if (i < peer->n_rails)
		return peer->rails[i];
	(void)snprintf(buf, 16, "%d", i);
	return buf;
}

static void check_rails(struct check *k, int i)
{
	struct config_peer *peer = &k->p->c->peers[i];
	struct config_origin at = origin(&k->p->peers[i], "Rail", SECTION_PEER);
	bool names = false;
	char a[16], b[16];

	/* A name may have any number of addresses. */
	for (int x = 0; x < peer->n_addrs; x++)
		names |= !addr_is_set(&peer->addrs[x].addr);
	if (!names && peer->n_rails > peer->n_addrs) {
		config_problem(k->p, PROBLEM_ERROR, at,
			       "Rail=: peer %s has more rails (%d) than addresses (%d)",
			       peer->name, peer->n_rails, peer->n_addrs);
		k->p->peers[i].bad = true;
		return;
	}
	for (int x = 0; x < MAX(peer->n_addrs, peer->n_rails); x++)
		for (int y = 0; y < x; y++)
			if (str_eq(rail_label(peer, x, a), rail_label(peer, y, b))) {
				config_problem(
					k->p, PROBLEM_ERROR, at,
					"Rail=: two rails of peer %s are named %s",
					peer->name, rail_label(peer, x, a));
				k->p->peers[i].bad = true;
				return;
			}
}

/* ---- peers and ports ---- */

static void inherit(struct config_parser *p, int i)
{
	struct config_peer *peer = &p->c->peers[i];
	struct config_origins *o = &p->peers[i];

	if (!o->own) {
		peer->probe = config_probe_ref(p->c->probe);
	} else {
		peer->probe = o->own;
		o->own = NULL;
		for (size_t r = 0; r < config_n_rows; r++)
			if (config_rows[r].section == SECTION_PROBE &&
			    !config_origin_get(o, r).line)
				config_value_copy(&config_rows[r], peer->probe, p->c->probe);
	}
	if (!peer->port)
		peer->port = (uint16_t)p->c->control_port;
}

#define PROBE_BODY offsetof(struct config_probe, transports)
_Static_assert(PROBE_BODY > 0 && PROBE_BODY <= 2 * sizeof(unsigned),
	       "the count of references comes first and is not compared");

/* Peers with settings of their own that are alike have one copy as well. */
static void share_probe(struct check *k, struct config_probe **probe)
{
	const uint8_t *body = (const uint8_t *)*probe + PROBE_BODY;
	struct shared *s = NULL;

	HASH_FIND(hh, k->shared, body, sizeof(**probe) - PROBE_BODY, s);
	if (s) {
		struct config_probe *same = config_probe_ref(s->probe);

		config_probe_unref(*probe);
		*probe = same;
		return;
	}
	s = xcalloc(1, sizeof(*s));
	s->probe = config_probe_ref(*probe);
	HASH_ADD_KEYPTR(hh, k->shared, body, sizeof(**probe) - PROBE_BODY, s);
}

static bool vital_bad(const struct config_origins *o)
{
	for (size_t r = 0; r < config_n_rows; r++)
		if (row_set_has(&o->bad_rows, r) &&
		    (config_rows[r].flags & ROW_VITAL))
			return true;
	return false;
}

/* A peer by its name alone. */
static void name_is_address(struct check *k, int i)
{
	struct config_peer *peer = &k->p->c->peers[i];
	struct addr ip;

	if (config_host_name_valid(peer->name) && addr_parse(peer->name, &ip, NULL) < 0) {
		config_peer_add_name(peer, peer->name);
		return;
	}
	config_problem(k->p, PROBLEM_ERROR, k->p->peers[i].section,
		       "[Peer %s] has no Address=, its name is no host name, and it is left "
		       "out",
		       peer->name);
	k->p->peers[i].bad = true;
}

static void check_peer(struct check *k, int i)
{
	struct config_parser *p = k->p;
	struct config_peer *peer = &p->c->peers[i];
	struct config_origins *o = &p->peers[i];
	char who[CONFIG_LABEL_MAX + 16];

	o->bad = vital_bad(o);
	inherit(p, i);
	(void)snprintf(who, sizeof(who), "peer %s: ", peer->name);
	if (peer->probe != p->c->probe)
		check_probe(p, peer->probe, o, p->c->probe, who);
	if (!peer->n_addrs && !o->bad)
		name_is_address(k, i);
	for (int a = 0; a < peer->n_addrs; a++)
		check_taken(k, i, &peer->addrs[a]);
	check_rails(k, i);
	check_keys(k, i);
	if (peer->probe != p->c->probe)
		share_probe(k, &peer->probe);
}

static void check_ports(struct config_parser *p)
{
	struct config *c = p->c;

	for (int x = 0; x < c->n_ports; x++) {
		p->ports[x].bad = vital_bad(&p->ports[x]);
		for (int y = 0; y < x && addr_is_set(&c->ports[x].addr); y++) {
			if (!addr_equal(&c->ports[x].addr, &c->ports[y].addr))
				continue;
			config_problem(
				p, PROBLEM_ERROR,
				origin(&p->ports[x], "Address", SECTION_PORT),
				"Address=: %s of port %s is already that of port %s",
				c->ports[x].address, c->ports[x].name,
				c->ports[y].name);
			p->ports[x].bad = true;
			break;
		}
	}
}

static void leave_out_bad(struct config_parser *p)
{
	struct config *c = p->c;
	int n = 0;

	for (int i = 0; i < c->n_peers; i++)
		if (!p->peers[i].bad) {
			if (n != i)
				c->peers[n] = c->peers[i];
			n++;
		} else {
			config_peer_done(&c->peers[i]);
		}
	c->n_peers = n;
	c->peers = xrealloc(c->peers, (size_t)MAX(n, 1), sizeof(*c->peers));
	config_reindex(c);
	n = 0;
	for (int i = 0; i < c->n_ports; i++)
		if (!p->ports[i].bad)
			c->ports[n++] = c->ports[i];
	c->n_ports = n;
}

void config_check(struct config_parser *p)
{
	struct check k = {.p = p};
	struct key_file *f, *f_next;
	struct taken *t, *t_next;
	struct shared *s, *s_next;

	check_fabd(p);
	check_health(p);
	check_ports(p);
	check_probe(p, p->c->probe, p->global, NULL, "");
	check_probe_keys(&k);
	share_probe(&k, &p->c->probe);
	for (int i = 0; i < p->c->n_peers; i++)
		check_peer(&k, i);
	report_keyless(&k);
	leave_out_bad(p);
	HASH_ITER (hh, k.taken, t, t_next) {
		HASH_DEL(k.taken, t);
		free(t->key);
		free(t);
	}
	HASH_ITER (hh, k.shared, s, s_next) {
		HASH_DEL(k.shared, s);
		config_probe_unref(s->probe);
		free(s);
	}
	HASH_ITER (hh, k.key_files, f, f_next) {
		HASH_DEL(k.key_files, f);
		free(f);
	}
}
