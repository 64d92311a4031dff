/* SPDX-License-Identifier: BSD-2-Clause */
#include "mesh.h"

const struct enum_names mesh_modes = {(const char *const[]){"rail", "full", "none"}, 3};

#define RAILS_MAX 64

/* The labels of a list, each once, in natural order. */
struct labels {
	const char *v[RAILS_MAX];
	int n;
};

static void labels_of(const struct mesh_addr *list, int n, struct labels *ret)
{
	ret->n = 0;
	for (int i = 0; i < n && ret->n < RAILS_MAX; i++) {
		int at = 0;

		while (at < ret->n && str_compare_natural(ret->v[at], list[i].label) < 0)
			at++;
		if (at < ret->n && str_eq(ret->v[at], list[i].label))
			continue;
		memmove(&ret->v[at + 1], &ret->v[at], (size_t)(ret->n - at) * sizeof(ret->v[0]));
		ret->v[at] = list[i].label;
		ret->n++;
	}
}

static int label_find(const struct labels *l, const char *label)
{
	for (int i = 0; i < l->n; i++)
		if (str_eq(l->v[i], label))
			return i;
	return -1;
}

static bool any_label_in_common(const struct labels *a, const struct labels *b)
{
	for (int i = 0; i < a->n; i++)
		if (label_find(b, a->v[i]) >= 0)
			return true;
	return false;
}

static bool rail_has(const struct mesh_addr *list, int n, const char *label,
		     const struct addr *a)
{
	for (int i = 0; i < n; i++)
		if (str_eq(list[i].label, label) && addr_same_ip(list[i].addr, a))
			return true;
	return false;
}

struct mesh {
	enum mesh_mode mode;
	const struct mesh_addr *own, *told;
	int n_own, n_told;
	const struct mesh_probe *probes;
	int n_probes;
};

static bool is_probed(const struct mesh *m, const char *own, const char *told)
{
	for (int i = 0; i < m->n_probes; i++) {
		const struct mesh_probe *p = &m->probes[i];

		if (rail_has(m->told, m->n_told, told, &p->remote) &&
		    (m->mode == MESH_RAIL || rail_has(m->own, m->n_own, own, &p->own)))
			return true;
	}
	return false;
}

static bool pair_up(const struct mesh *m, const char *own, const char *told,
		    struct mesh_pair *ret)
{
	for (uint8_t family = 4; family <= 6; family += 2)
		for (int t = 0; t < m->n_told; t++) {
			if (m->told[t].unfit || m->told[t].addr->family != family ||
			    !str_eq(m->told[t].label, told))
				continue;
			for (int o = 0; o < m->n_own; o++)
				if (m->own[o].addr->family == family &&
				    str_eq(m->own[o].label, own)) {
					*ret = (struct mesh_pair){o, t};
					return true;
				}
		}
	return false;
}

int mesh_pairs(enum mesh_mode mode, const struct mesh_addr *own, int n_own,
	       const struct mesh_addr *told, int n_told, const struct mesh_probe *probes,
	       int n_probes, struct mesh_pair ret[MESH_PAIRS_MAX])
{
	const struct mesh m = {mode, own, told, n_own, n_told, probes, n_probes};
	struct labels ours, theirs;
	bool by_label;
	int n = 0;

	labels_of(own, n_own, &ours);
	labels_of(told, n_told, &theirs);
	by_label = any_label_in_common(&ours, &theirs);
	for (int t = 0; mode != MESH_NONE && t < theirs.n; t++) {
		int same = by_label ? label_find(&ours, theirs.v[t]) : t;

		for (int o = 0; o < ours.n && n < MESH_PAIRS_MAX; o++)
			if ((mode == MESH_FULL || o == same) &&
			    !is_probed(&m, ours.v[o], theirs.v[t]))
				n += pair_up(&m, ours.v[o], theirs.v[t], &ret[n]);
	}
	return n;
}
