/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>

#include "route.h"

static struct ib_node *add(struct subnet *s, uint8_t type, uint64_t guid, uint8_t ports,
			   uint8_t local)
{
	struct node_info ni = {
		.node_type = type, .num_ports = ports, .node_guid = guid,
		.port_guid = type == NODE_SWITCH ? guid : guid + local, .local_port = local};
	bool is_new;

	return subnet_node(s, &ni, 0, NULL, &is_new);
}

static void cable(struct ib_node *a, unsigned pa, struct ib_node *b, unsigned pb)
{
	physp_link(&a->slots[pa], &b->slots[pb]);
}

static struct dr_path path_of(uint8_t hops, const uint8_t *ports)
{
	struct dr_path d = {.hops = hops};

	memcpy(&d.port[1], ports, hops);
	return d;
}

static void assert_path(const struct dr_path *got, const char *want)
{
	char buf[256];

	assert_string_equal(route_text(got->port, got->hops, buf, sizeof(buf)), want);
}

/* Two hosts on two leaves under two spines; the leaves have two cables to spine 1. */
struct clos {
	struct subnet *s;
	struct ib_node *ca[2], *leaf[2], *spine[2];
};

static void clos_init(struct clos *c)
{
	c->s = subnet_new();
	for (unsigned i = 0; i < 2; i++) {
		c->ca[i] = add(c->s, NODE_CA, 0x1000U + 16 * i, 2, 1);
		c->leaf[i] = add(c->s, NODE_SWITCH, 0x100 + i, 8, 1);
		c->spine[i] = add(c->s, NODE_SWITCH, 0x200 + i, 8, 1);
	}
	for (unsigned i = 0; i < 2; i++) {
		cable(c->ca[i], 1, c->leaf[i], 1);
		cable(c->leaf[i], 4, c->spine[0], 1 + i);
		cable(c->leaf[i], 5, c->spine[1], 1 + i);
		cable(c->leaf[i], 6, c->spine[0], 5 + i);
	}
}

/* ---- shortest ---- */

static void the_lowest_of_the_shortest(void **state)
{
	struct dr_path d;
	struct clos c;

	(void)state;
	clos_init(&c);
	assert_int_equal(route_shortest(c.s, &c.ca[0]->slots[1], &c.ca[1]->slots[1], false, &d),
			 0);
	assert_path(&d, "0,1,4,2,1");
	assert_int_equal(d.in[0], 0);
	assert_int_equal(d.in[1], 1);
	assert_int_equal(d.in[2], 1);
	assert_int_equal(d.in[3], 4);
	assert_int_equal(d.in[4], 1);
	assert_ptr_equal(route_follow(&c.ca[0]->slots[1], &d), &c.ca[1]->slots[1]);
	assert_int_equal(route_shortest(c.s, &c.ca[0]->slots[1], &c.spine[1]->slots[0], false,
					&d), 0);
	assert_path(&d, "0,1,5");
	/* From any port of a switch, to any. */
	assert_int_equal(route_shortest(c.s, &c.spine[1]->slots[7], &c.leaf[1]->slots[5],
					false, &d), 0);
	assert_path(&d, "0,2");
	subnet_free(c.s);
}

static void no_hops_to_oneself(void **state)
{
	struct dr_path d = {.hops = 9};
	struct clos c;

	(void)state;
	clos_init(&c);
	assert_int_equal(route_shortest(c.s, &c.ca[0]->slots[1], &c.ca[0]->slots[1], false, &d),
			 0);
	assert_path(&d, "0");
	assert_ptr_equal(route_follow(&c.ca[0]->slots[1], &d), &c.ca[0]->slots[1]);
	assert_int_equal(route_shortest(c.s, &c.leaf[0]->slots[3], &c.leaf[0]->slots[0], false,
					&d), 0);
	assert_int_equal(d.hops, 0);
	/* The other port of the same CA is somewhere else, here nowhere. */
	(void)add(c.s, NODE_CA, 0x1000, 2, 2);
	assert_int_equal(route_shortest(c.s, &c.ca[0]->slots[1], &c.ca[0]->slots[2], false, &d),
			 -ENETUNREACH);
	cable(c.ca[0], 2, c.leaf[1], 8);
	assert_int_equal(route_shortest(c.s, &c.ca[0]->slots[1], &c.ca[0]->slots[2], false, &d),
			 0);
	assert_path(&d, "0,1,4,2,8");
	cable(c.ca[0], 2, c.ca[0], 1);
	assert_int_equal(route_shortest(c.s, &c.ca[0]->slots[1], &c.ca[0]->slots[2], false, &d),
			 0);
	assert_path(&d, "0,1");
	subnet_free(c.s);
}

static void hosts_are_never_passed(void **state)
{
	static const uint8_t types[] = {NODE_CA, NODE_ROUTER};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct subnet *s = subnet_new();
		struct ib_node *a = add(s, NODE_SWITCH, 0x100, 4, 1);
		struct ib_node *b = add(s, NODE_SWITCH, 0x200, 4, 1);
		struct ib_node *between = add(s, types[i], 0x300, 2, 1);
		struct dr_path d;

		(void)add(s, types[i], 0x300, 2, 2);
		cable(a, 1, between, 1);
		cable(b, 1, between, 2);
		assert_int_equal(route_shortest(s, &a->slots[0], &b->slots[0], true, &d),
				 -ENETUNREACH);
		d = path_of(2, (const uint8_t[]){1, 2});
		assert_null(route_follow(&a->slots[0], &d));
		d = path_of(1, (const uint8_t[]){1});
		assert_ptr_equal(route_follow(&a->slots[0], &d), &between->slots[1]);
		/* Nor left by another port than the one that it is from. */
		d = path_of(1, (const uint8_t[]){2});
		assert_null(route_follow(&between->slots[1], &d));
		assert_ptr_equal(route_follow(&between->slots[2], &d), &b->slots[1]);
		subnet_free(s);
	}
}

static void bad_links_are_not_used(void **state)
{
	static const struct port_info down = {.state = IB_DOWN};
	struct physp *from, *to;
	struct dr_path d;
	struct clos c;

	(void)state;
	clos_init(&c);
	from = &c.ca[0]->slots[1];
	to = &c.ca[1]->slots[1];
	physp_set_info(&c.spine[0]->slots[1], &down); /* the far end of leaf 0 port 4 */
	assert_int_equal(route_shortest(c.s, from, to, false, &d), 0);
	assert_path(&d, "0,1,5,2,1");
	physp_set_health(&c.leaf[1]->slots[5], false);
	assert_int_equal(route_shortest(c.s, from, to, false, &d), 0);
	assert_path(&d, "0,1,6,2,1");
	physp_set_health(&c.leaf[0]->slots[6], false);
	assert_int_equal(route_shortest(c.s, from, to, false, &d), -ENETUNREACH);
	assert_int_equal(route_shortest(c.s, from, to, true, &d), 0);
	assert_path(&d, "0,1,4,2,1");
	physp_unlink(from);
	assert_int_equal(route_shortest(c.s, from, to, true, &d), -ENETUNREACH);
	subnet_free(c.s);
}

static void at_most_63_hops(void **state)
{
	struct subnet *s = subnet_new();
	struct ib_node *sw[70];
	struct dr_path d;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(sw); i++) {
		sw[i] = add(s, NODE_SWITCH, 0x100 + i, 2, 1);
		if (i)
			cable(sw[i - 1], 2, sw[i], 1);
	}
	for (unsigned i = 0; i < ARRAY_LEN(sw); i++) {
		int r = route_shortest(s, &sw[0]->slots[0], &sw[i]->slots[0], false, &d);

		assert_int_equal(r, i <= IB_HOPS_MAX ? 0 : -ERANGE);
		if (r)
			continue;
		assert_int_equal(d.hops, i);
		assert_ptr_equal(route_follow(&sw[0]->slots[0], &d)->node, sw[i]);
	}
	subnet_free(s);
}

static void following_what_is_not_there(void **state)
{
	struct dr_path d;
	struct clos c;

	(void)state;
	clos_init(&c);
	d = path_of(3, (const uint8_t[]){1, 4, 7}); /* nothing at port 7 */
	assert_null(route_follow(&c.ca[0]->slots[1], &d));
	d = path_of(3, (const uint8_t[]){1, 4, 200});
	assert_null(route_follow(&c.ca[0]->slots[1], &d));
	d = path_of(2, (const uint8_t[]){1, 0}); /* port 0 leads nowhere */
	assert_null(route_follow(&c.ca[0]->slots[1], &d));
	d.hops = IB_HOPS_MAX + 1;
	assert_null(route_follow(&c.ca[0]->slots[1], &d));
	subnet_free(c.s);
}

static void routes_as_text(void **state)
{
	uint8_t path[IB_PATH_LEN];
	char buf[256], little[6];

	(void)state;
	memset(path, 255, sizeof(path));
	path[0] = 0;
	assert_string_equal(route_text(path, 0, buf, sizeof(buf)), "0");
	assert_string_equal(route_text(path, 2, buf, sizeof(buf)), "0,255,255");
	assert_int_equal(strlen(route_text(path, IB_HOPS_MAX, buf, sizeof(buf))), 1 + 4 * 63);
	assert_string_equal(route_text(path, 9, little, sizeof(little)), "0,255");
}

/* ---- alternates ---- */

static void another_route_of_other_links(void **state)
{
	struct physp *from, *to;
	struct dr_path d;
	struct clos c;

	(void)state;
	clos_init(&c);
	from = &c.ca[0]->slots[1];
	to = &c.ca[1]->slots[1];
	assert_int_equal(route_shortest(c.s, from, to, false, &d), 0);
	physp_set_path(to, d.hops, d.port);
	assert_int_equal(route_alternate(c.s, from, to, &d), 0);
	assert_path(&d, "0,1,5,2,1");
	assert_int_equal(to->hops, 4);
	assert_memory_equal(to->path, d.port, 5);
	assert_ptr_equal(route_follow(from, &d), to);
	assert_int_equal(route_alternate(c.s, from, to, NULL), 0);
	assert_memory_equal(to->path, ((const uint8_t[]){0, 1, 4, 2, 1}), 5);
	subnet_free(c.s);
}

static void of_a_switch_all_ports_get_it(void **state)
{
	struct physp *from, *to;
	struct dr_path d;
	struct clos c;

	(void)state;
	clos_init(&c);
	from = &c.ca[0]->slots[1];
	to = &c.spine[0]->slots[0];
	physp_set_path(to, 2, (const uint8_t[]){0, 1, 4});
	assert_int_equal(route_alternate(c.s, from, to, &d), 0);
	assert_path(&d, "0,1,6"); /* the other cable: a switch's last hop has a choice */
	for (unsigned i = 0; i <= 8; i++) {
		assert_int_equal(c.spine[0]->slots[i].hops, 2);
		assert_memory_equal(c.spine[0]->slots[i].path, d.port, 3);
	}
	/* From a switch the first hop has one too. */
	from = &c.leaf[0]->slots[0];
	physp_set_path(to, 1, (const uint8_t[]){0, 4});
	assert_int_equal(route_alternate(c.s, from, to, &d), 0);
	assert_path(&d, "0,6");
	subnet_free(c.s);
}

static void nothing_changes_without_another(void **state)
{
	static const uint8_t present[] = {0, 1, 4, 2, 1};
	struct physp *from, *to;
	struct dr_path d;
	struct clos c;

	(void)state;
	clos_init(&c);
	from = &c.ca[0]->slots[1];
	to = &c.ca[1]->slots[1];
	physp_set_path(to, 4, present);
	physp_unlink(&c.leaf[0]->slots[5]);
	physp_set_health(&c.spine[0]->slots[6], false); /* the other cable of leaf 1 */
	assert_int_equal(route_alternate(c.s, from, to, &d), -ENETUNREACH);
	assert_int_equal(to->hops, 4);
	assert_memory_equal(to->path, present, sizeof(present));
	/* A present route that leads elsewhere, or nowhere. */
	physp_set_path(to, 4, (const uint8_t[]){0, 1, 4, 1, 1});
	assert_int_equal(route_alternate(c.s, from, to, &d), -EINVAL);
	physp_set_path(to, 4, (const uint8_t[]){0, 1, 5, 2, 1});
	assert_int_equal(route_alternate(c.s, from, to, &d), -EINVAL);
	physp_set_path(to, 0, NULL);
	assert_int_equal(route_alternate(c.s, from, to, &d), -EINVAL);
	assert_int_equal(to->hops, 0);
	subnet_free(c.s);
}

static void links_without_a_choice_have_no_other(void **state)
{
	struct subnet *s = subnet_new();
	struct ib_node *a = add(s, NODE_CA, 0x100, 1, 1), *b = add(s, NODE_CA, 0x200, 1, 1);
	struct ib_node *sw = add(s, NODE_SWITCH, 0x300, 4, 1);
	struct dr_path d, got;

	(void)state;
	d = (struct dr_path){0};
	assert_int_equal(route_avoiding(s, &a->slots[1], &a->slots[1], &d, &got),
			 -ENETUNREACH);
	cable(a, 1, b, 1);
	d = path_of(1, (const uint8_t[]){1});
	assert_int_equal(route_avoiding(s, &a->slots[1], &b->slots[1], &d, &got),
			 -ENETUNREACH);
	cable(a, 1, sw, 1);
	cable(b, 1, sw, 2);
	assert_int_equal(route_avoiding(s, &a->slots[1], &sw->slots[0], &d, &got),
			 -ENETUNREACH);
	d = path_of(2, (const uint8_t[]){1, 2});
	assert_int_equal(route_avoiding(s, &a->slots[1], &b->slots[1], &d, &got),
			 -ENETUNREACH);
	subnet_free(s);
}

/* ---- against a search of all paths ---- */

#define SWITCHES 6
#define HOSTS 3
#define NODES (SWITCHES + HOSTS)
#define PORTS 5
#define NOWHERE 0xff

/* A fabric as a plain table: where each port leads, and what may be used. */
struct plain {
	struct subnet *s;
	struct ib_node *node[NODES];
	uint8_t to_node[NODES][PORTS + 1], to_port[NODES][PORTS + 1];
	bool bad[NODES][PORTS + 1], avoid[NODES][PORTS + 1];
	bool any_health;
	/* the best of all paths so far */
	int target, target_port; /* port 0: any */
	uint8_t best[NODES + 2], best_in[NODES + 2], now[NODES + 2], now_in[NODES + 2];
	int best_len;
};

static void plain_cable(struct plain *g, unsigned a, unsigned pa, unsigned b, unsigned pb)
{
	if (g->to_node[a][pa] != NOWHERE || g->to_node[b][pb] != NOWHERE ||
	    (a == b && pa == pb))
		return;
	g->to_node[a][pa] = (uint8_t)b;
	g->to_port[a][pa] = (uint8_t)pb;
	g->to_node[b][pb] = (uint8_t)a;
	g->to_port[b][pb] = (uint8_t)pa;
	cable(g->node[a], pa, g->node[b], pb);
}

static void plain_init(struct plain *g, uint64_t *rnd)
{
	memset(g, 0, sizeof(*g));
	memset(g->to_node, NOWHERE, sizeof(g->to_node));
	g->s = subnet_new();
	for (unsigned i = 0; i < SWITCHES; i++)
		g->node[i] = add(g->s, NODE_SWITCH, 0x100 + i, PORTS, 1);
	for (unsigned i = SWITCHES; i < NODES; i++) {
		g->node[i] = add(g->s, NODE_CA, 0x1000U + 16 * i, 2, 1);
		(void)add(g->s, NODE_CA, 0x1000U + 16 * i, 2, 2);
	}
	for (unsigned i = SWITCHES; i < NODES; i++)
		for (unsigned p = 1; p <= 2; p++) {
			*rnd = mix64(*rnd);
			plain_cable(g, i, p, *rnd % (*rnd >> 50 ? SWITCHES : NODES),
				    1 + (*rnd >> 8) % 2);
		}
	for (unsigned i = 0; i < 40; i++) {
		*rnd = mix64(*rnd);
		plain_cable(g, *rnd % SWITCHES, 1 + (*rnd >> 8) % PORTS,
			    (*rnd >> 16) % SWITCHES, 1 + (*rnd >> 24) % PORTS);
	}
	for (unsigned i = 0; i < 3; i++) {
		static const struct port_info down = {.state = IB_DOWN};
		unsigned n, p;

		*rnd = mix64(*rnd);
		n = *rnd % SWITCHES;
		p = 1 + (*rnd >> 8) % PORTS;
		g->bad[n][p] = true;
		if (*rnd >> 63)
			physp_set_health(&g->node[n]->slots[p], false);
		else
			physp_set_info(&g->node[n]->slots[p], &down);
	}
}

static bool plain_usable(const struct plain *g, unsigned n, unsigned p)
{
	unsigned m = g->to_node[n][p], q = g->to_port[n][p];

	return m != NOWHERE && !g->avoid[n][p] &&
	       (g->any_health || !(g->bad[n][p] || g->bad[m][q]));
}

/* All paths that come to no switch twice; @len hops are behind. */
static void plain_walk(struct plain *g, unsigned at, int only_port, int len, unsigned seen)
{
	for (unsigned p = 1; p <= (at < SWITCHES ? PORTS : 2); p++) {
		unsigned m, q;

		if ((only_port && p != (unsigned)only_port) || !plain_usable(g, at, p))
			continue;
		m = g->to_node[at][p];
		q = g->to_port[at][p];
		g->now[len + 1] = (uint8_t)p;
		g->now_in[len + 1] = (uint8_t)q;
		if ((int)m == g->target && (!g->target_port || (int)q == g->target_port)) {
			bool better = g->best_len < 0 || len + 1 < g->best_len ||
				      (len + 1 == g->best_len &&
				       memcmp(g->now, g->best, (size_t)len + 2) < 0);

			if (better) {
				g->best_len = len + 1;
				memcpy(g->best, g->now, sizeof(g->best));
				memcpy(g->best_in, g->now_in, sizeof(g->best_in));
			}
		} else if (m < SWITCHES && !(seen & (1U << m))) {
			plain_walk(g, m, 0, len + 1, seen | (1U << m));
		}
	}
}

static void plain_search(struct plain *g, unsigned from, unsigned from_port, unsigned to,
			 unsigned to_port)
{
	bool there = from == to && (to < SWITCHES || from_port == to_port);

	g->target = (int)to;
	g->target_port = to < SWITCHES ? 0 : (int)to_port;
	g->best_len = there ? 0 : -1;
	if (!there)
		plain_walk(g, from, from < SWITCHES ? 0 : (int)from_port, 0,
			   from < SWITCHES ? 1U << from : 0);
}

static void assert_as_plain(const struct plain *g, int r, const struct dr_path *d)
{
	assert_int_equal(r, g->best_len < 0 ? -ENETUNREACH : 0);
	if (r)
		return;
	assert_int_equal(d->hops, g->best_len);
	assert_memory_equal(d->port, g->best, (size_t)d->hops + 1);
	assert_memory_equal(d->in, g->best_in, (size_t)d->hops + 1);
}

/* Forbid the links of @d, but where a host has no other; how many. */
static int plain_avoid(struct plain *g, unsigned from, unsigned to, const struct dr_path *d)
{
	unsigned at = from;
	int n = 0;

	for (int i = 1; i <= d->hops; i++) {
		unsigned p = d->port[i], m = g->to_node[at][p], q = g->to_port[at][p];
		bool exempt = (i == 1 && from >= SWITCHES) ||
			      (i == d->hops && to >= SWITCHES);

		if (!exempt) {
			g->avoid[at][p] = g->avoid[m][q] = true;
			n++;
		}
		at = m;
	}
	return n;
}

static void one_pair(struct plain *g, unsigned from, unsigned from_port, unsigned to,
		     unsigned to_port, int *alternates)
{
	const struct physp *a = &g->node[from]->slots[from_port];
	struct physp *b = &g->node[to]->slots[to_port];
	struct dr_path d, other, written;
	int r;

	for (int any = 0; any < 2; any++) {
		g->any_health = any;
		plain_search(g, from, from_port, to, to_port);
		r = route_shortest(g->s, a, b, any, &d);
		assert_as_plain(g, r, &d);
	}
	if (r)
		return;
	/* Around the shortest of all, over good links. */
	g->any_health = false;
	if (plain_avoid(g, from, to, &d))
		plain_search(g, from, from_port, to, to_port);
	else
		g->best_len = -1;
	r = route_avoiding(g->s, a, b, &d, &other);
	assert_as_plain(g, r, &other);
	physp_set_path(b, d.hops, d.port);
	assert_int_equal(route_alternate(g->s, a, b, &written), r);
	assert_int_equal(b->hops, r ? d.hops : other.hops);
	assert_memory_equal(b->path, r ? d.port : other.port, sizeof(b->path));
	*alternates += !r;
	memset(g->avoid, 0, sizeof(g->avoid));
}

static void routes_are_as_of_all_paths(void **state)
{
	int pairs = 0, alternates = 0;
	uint64_t rnd = 29;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct plain g;

		plain_init(&g, &rnd);
		for (unsigned from = 0; from < NODES; from++)
			for (unsigned to = 0; to < NODES; to++)
				for (unsigned p = 1; p <= 2; p++, pairs++)
					one_pair(&g, from, p, to, 1 + pairs % 2, &alternates);
		subnet_free(g.s);
	}
	assert_in_range(alternates, pairs / 8, pairs); /* it has looked at many */
}

static struct ib_port *port_at(struct subnet *s, struct ib_node *n, unsigned num)
{
	return subnet_port(s, &n->slots[num]);
}

static void the_leaf_is_what_a_host_hangs_on(void **state)
{
	struct ib_node *near, *alone;
	struct clos c;

	(void)state;
	clos_init(&c);
	near = add(c.s, NODE_CA, 0x2000, 1, 1); /* beside the first on its leaf */
	alone = add(c.s, NODE_CA, 0x3000, 2, 1);
	cable(near, 1, c.leaf[0], 2);
	assert_ptr_equal(ib_port_leaf(port_at(c.s, c.ca[0], 1)), c.leaf[0]);
	assert_ptr_equal(ib_port_leaf(port_at(c.s, near, 1)), c.leaf[0]);
	assert_ptr_equal(ib_port_leaf(port_at(c.s, c.ca[1], 1)), c.leaf[1]);
	assert_null(ib_port_leaf(port_at(c.s, alone, 1)));
	assert_null(ib_port_leaf(port_at(c.s, c.leaf[0], 0))); /* has none itself */
	assert_null(ib_port_leaf(NULL));
	/* Back to back there is no leaf. */
	cable(alone, 1, add(c.s, NODE_CA, 0x4000, 1, 1), 1);
	assert_null(ib_port_leaf(port_at(c.s, alone, 1)));
	subnet_free(c.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_of_the_shortest),
		cmocka_unit_test(no_hops_to_oneself),
		cmocka_unit_test(hosts_are_never_passed),
		cmocka_unit_test(bad_links_are_not_used),
		cmocka_unit_test(at_most_63_hops),
		cmocka_unit_test(following_what_is_not_there),
		cmocka_unit_test(routes_as_text),
		cmocka_unit_test(another_route_of_other_links),
		cmocka_unit_test(of_a_switch_all_ports_get_it),
		cmocka_unit_test(nothing_changes_without_another),
		cmocka_unit_test(links_without_a_choice_have_no_other),
		cmocka_unit_test(routes_are_as_of_all_paths),
		cmocka_unit_test(the_leaf_is_what_a_host_hangs_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
