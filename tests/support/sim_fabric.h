/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_fabric.h - a fabric in memory that answers directed-route Gets, under a clock of
 * its own: latency by hop, one answer at a time by node, loss, dead and protected
 * nodes, cut and moved cables, nodes with the GUID of another. And a loop that runs a
 * sweep on it.
 */
#pragma once

#include "heap.h"
#include "sweep.h"

#define SIM_PORTS_MAX 80
#define SIM_EXT2      2 /* LinkSpeedExtActive2 of nodes that have it */

struct sim_node;
struct sim_port {
	struct sim_node *to; /* NULL: no cable */
	uint8_t to_port;
	bool disabled; /* the cable is there, the link is down */
	uint16_t lid;
	uint8_t width, speed;
};
struct sim_node {
	uint32_t index;
	uint64_t guid;
	uint8_t type, n_ports; /* enum node_type */
	char desc[65];
	bool dead;	  /* answers nothing and forwards nothing */
	bool keyed;	  /* M_Key set, protection 2: answers nothing, forwards */
	uint8_t protect;  /* that its PortInfo tells */
	bool psc;	  /* PortStateChange */
	bool no_tables;	  /* answers them with an error status */
	bool ext;	  /* tells its extended speed, to whom knows them */
	bool refuses;	  /* says so, and answers the modifier with an error status */
	struct mono busy; /* its management agent, until then */
	uint64_t asked;
	struct sim_port ports[SIM_PORTS_MAX + 1];
};

struct sim {
	struct sim_node **nodes; /* owned */
	uint32_t n, size;
	struct sim_node *root;
	uint8_t root_port;
	struct mono now;
	int64_t hop_ns, serve_ns; /* 300 ns, 10 us */
	unsigned loss_permille;
	struct mono pause; /* nothing is answered until then */
	uint64_t rnd;
	struct heap events;
	struct sim_event *idle; /* for reuse */
	/* what was asked, since sim_forget() */
	uint64_t asked, by_attr[0x20];
	uint64_t set_bit31, bad_bit31; /* of that: of nodes that cannot know it */
	uint64_t hash; /* over every request and its time */
	uint32_t out, out_worst;
	uint16_t worst_per_target;
	int64_t cpu_ns; /* in the sweep's own functions */
	/* called before each request is carried out */
	void (*hook)(struct sim *s, void *arg);
	void *hook_arg;
	/* called after each answer */
	void (*heard)(struct sim *s, void *arg);
	void *heard_arg;
};

struct sim *sim_new(uint64_t seed);
struct sim *sim_free(struct sim *s);
struct sim_node *sim_add(struct sim *s, enum node_type type, uint8_t n_ports);
void sim_cable(struct sim_node *a, uint8_t i, struct sim_node *b, uint8_t j);
void sim_uncable(struct sim_node *a, uint8_t i);
/* Tell of a change as a switch does, unless the subnet manager cleared it at once. */
void sim_changed(struct sim_node *a, bool cleared);
void sim_lids(struct sim *s); /* gives every port its own */
void sim_forget(struct sim *s);
uint64_t sim_draw(struct sim *s);

/* Runs until the sweep is through; false: it never ends. */
bool sim_run(struct sim *s, struct sweep *w);
bool sim_sweep(struct sim *s, struct sweep *w, enum sweep_kind kind, bool cold);

/* ---- shapes (sim_shapes.c): host 0's port 1 is where the sweep asks from ---- */
void sim_fat_tree2(struct sim *s, unsigned leaves, unsigned hosts, unsigned spines,
		   unsigned links);
void sim_fat_tree3(struct sim *s, unsigned k);
void sim_torus(struct sim *s, unsigned x, unsigned y, unsigned z, unsigned hosts);
/* Random switches and cables, CAs with one or two ports, some of both on one switch. */
void sim_mixed(struct sim *s, unsigned switches, unsigned hosts);

/* ---- checks (sim_check.c) ---- */
/* What ibnetdiscover sends for the same facts. */
uint64_t sim_ibnetdiscover_mads(const struct sim *s);
/* Ports of all nodes (switches without port 0). */
uint32_t sim_n_ports(const struct sim *s);
uint32_t sim_switch_links(const struct sim *s); /* between switches, and up */
/* Marks which nodes can be reached, in @ret[index]; their number. */
uint32_t sim_reached(const struct sim *s, uint8_t *ret);
/* How many ends of links that are up lead from what can be reached to a dead node. */
uint32_t sim_dead_ends(const struct sim *s);
/* Nodes, ports, states, LIDs, links and routes of the subnet are those of the model.
 * Writes the first difference. */
bool sim_equal(const struct sim *s, const struct subnet *sub, char *why, size_t size);
/* P_Keys, SL to VL and VL arbitration of one port likewise. */
bool sim_tables_equal(const struct sim_node *m, const struct physp *p);
void sim_port_info(const struct sim_node *m, unsigned port, struct port_info *ret);
uint16_t sim_pkey(const struct sim_node *m, unsigned port, unsigned i);
