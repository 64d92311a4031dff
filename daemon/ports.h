/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ports.h - devices and ports: which there are, their facts, counters and far ends. A part
 * of manager.h.
 */
#pragma once

#include "mad.h"
#include "workers.h"

/* MADs of one port: what is out, when next. */
enum mad_ask { ASK_OWN, ASK_NODE, ASK_DESC, ASK_PKEYS, ASK_SLVL, ASK_VLARB, ASK_REMOTE_NODE,
	       ASK_REMOTE_DESC, ASK_REMOTE_INFO, ASK__MAX };
struct mad_poll {
	uint32_t out[ASK__MAX];	  /* number of the request that is waited for, 0 = none */
	uint32_t next_number;
	struct mono next_own, next_slow, next_remote;
	uint16_t pkey_block, pkey_cap;
	uint8_t vlarb_block;
	uint16_t pkeys[PORT_PKEYS_MAX];
	struct node_info remote_ni;
	struct port_info remote_pi;
	char remote_desc[65];
	bool got_desc, got_pi;
	/* asked with IB_PORT_INFO_EXTENDED; it refused that */
	bool own_extended, own_plain, remote_extended, remote_plain;
	int remote_failures;
	bool has_smi;
	uint64_t bad_status, bad_answer, timeouts;
};

struct counter_poll { /* counters of one port: what was read, when next */
	struct counter_reading pma, kernel; /* the last ones */
	struct counter_reading coming;	    /* of the round that is out */
	struct class_port_info cpi;
	struct mono cpi_at, next;
	uint32_t round, rounds; /* 0 = none is out */
	bool pma_works;
};

struct port_entry {
	uint64_t serial;
	struct device *device;
	struct port p;
	struct mad_poll mad;
	struct counter_poll counters;
	uint64_t reported_seq;
	enum health reported_health;
	struct port_entry *next;
};

struct device {
	uint64_t serial;
	struct manager *m;
	char name[DEVICE_NAME_MAX];
	uint32_t index;	 /* kernel's, DEVICE_INDEX_NONE = umad only */
	bool present;	 /* in the kernel's list, or told by a running mad worker */
	bool has_verbs_facts;
	struct device_facts facts;
	struct mono since;
	struct worker *rdma, *mad; /* borrowed from m->workers */
	struct port_entry *ports;  /* owned */
	struct device *next;
};

/* devices.c */
void devices_scan(struct manager *m);		  /* the kernel's list, now */
void devices_uevent(void *user, const char *subsystem, const char *name, bool added);
struct device *device_find(struct manager *m, const char *name);
struct device *device_get(struct manager *m, const char *name); /* makes an umad one */
void device_gone(struct device *d, const char *why);
struct port_entry *device_port(struct device *d, uint8_t num);	   /* or NULL */
struct port_entry *device_port_get(struct device *d, uint8_t num); /* makes it */
void device_port_gone(struct device *d, uint8_t num); /* 0: all */
struct port_entry *port_find(struct manager *m, const char *name); /* DEV/PORT DEV:PORT */
/* The port that owns an address of ours; NULL: no RDMA device. */
struct port_entry *port_of_address(struct manager *m, const struct addr *a);
bool port_tied(const struct port_entry *pe, const struct addr *a); /* [Port] Address= */
void devices_free(struct manager *m);

/* ports.c */
void ports_on_device(struct worker *w, const struct wm_device *msg);
void ports_on_port(struct worker *w, const struct wm_port *msg);
void ports_on_gids(struct worker *w, const struct wm_gids *msg);
void ports_on_pkeys(struct worker *w, const struct wm_pkeys *msg);
void ports_worker_lost(struct worker *w);
void ports_tick(struct manager *m, struct mono now);
struct mono ports_deadline(const struct manager *m);
void port_apply_config(struct manager *m, struct port_entry *pe);
/* After facts changed: derive, judge, tell. */
void port_settle(struct manager *m, struct port_entry *pe, enum fact_source source);
/* Trailing empty slots are capacity, not keys: how many there are without them. */
int port_pkeys_used(const uint16_t *pkeys, int n);

/* port_mads.c */
void port_mads_init(struct port_entry *pe);
void port_mads_reset(struct port_entry *pe); /* answers to come do not count */
void port_mads_poll(struct port_entry *pe, struct mono now);
struct mono port_mads_deadline(const struct port_entry *pe);

/* counters.c */
void port_counters_init(struct port_entry *pe);
void port_counters_on_message(struct worker *w, const struct wm_counters *msg);
void counters_tick(struct manager *m, struct mono now);
void device_pcie(const struct device *d, struct port_pcie *ret);
void ports_on_notice(struct worker *w, const struct wm_notice *msg);

/* baselines.c */
void baselines_load(struct manager *m);
void baselines_free(struct manager *m);
void baseline_apply(struct manager *m, struct port_entry *pe); /* a port that is new */
void baseline_forget(struct port_entry *pe); /* what it has now is right */
void baselines_renamed(struct device *d, const char *old);
void baselines_save(struct manager *m);
void baselines_tick(struct manager *m);

/* lldp.c */
struct lldp *lldp_new(struct manager *m);
struct lldp *lldp_free(struct lldp *l);
void lldp_tick(struct lldp *l, struct mono now);
void lldp_soon(struct lldp *l); /* a link has moved */
void lldp_reload(struct lldp *l);
