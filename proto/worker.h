/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.h - messages between main and its workers (fabd-rdma, fabd-mad), one per
 * SOCK_SEQPACKET packet: a header and a plain struct of fixed size in host order (both
 * ends run on one host; the version in init and hello catches a package upgrade under a
 * running main). One table (worker.c) has a row per message and per field with its range
 * and is the validator of both ends: a message that fails it means that the sender is
 * broken, and main replaces that worker. Pure.
 *
 * Talk: main sends INIT first; the worker answers HELLO, then its facts (DEVICE, PORT,
 * GIDS, PKEYS of each port), then changes as they come. Each message carries main's
 * generation of that incarnation; older ones are dropped. End of file: the worker exits
 * at once with status 0.
 */
#pragma once

#include "counters.h"
#include "endpoint.h"
#include "hist.h"
#include "port.h"

#define WM_VERSION 4
#define WM_MAX 8192 /* no message is longer */
#define WM_MAGIC 0x4642574d

enum wm_type {
	/* main to worker */
	WM_INIT = 1,
	WM_PING,
	WM_POLL,      /* read all facts again now, report changes */
	WM_LISTEN,    /* rdma: accept on this address, from now on */
	WM_UNLISTEN,
	WM_EP_START,
	WM_EP_PROBE,
	WM_EP_HEARTBEAT,
	WM_EP_RESET,
	WM_EP_PING,
	WM_SMP_GETS,  /* mad: many directed-route Gets at once */
	WM_MAD_SEND,  /* mad: any one MAD that is allowed */
	WM_EXIT,      /* tear down and exit */
	/* worker to main */
	WM_HELLO = 64,
	WM_PONG,
	WM_DEVICE,
	WM_PORT,
	WM_GIDS,
	WM_PKEYS,
	WM_PORT_GONE,
	WM_LISTENING, /* answer to LISTEN: error 0 = accepts */
	WM_EP_EVENT,
	WM_EP_ROUNDS,	/* tx: with STATS, each 10 s */
	WM_SMP_RESULTS, /* answers of SMP_GETS, in any order, in any grouping */
	WM_MAD_MORE,	/* a piece of an answer of several MADs, before its MAD_ANSWER */
	WM_MAD_ANSWER,	/* answer of MAD_SEND */
	WM_NOTICE,	/* mad: a Report of the SM came in (and was answered) */
	WM_COUNTERS,	/* rdma: counters of a port, each counters_ms */
	WM_DROPS,     /* fabric messages and CM requests dropped, by reason */
	WM_GOODBYE    /* about to exit, why */
};

struct wm_header {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t length; /* whole message */
	uint32_t generation;
};

struct wm_init {
	struct wm_header h;
	char device[DEVICE_NAME_MAX]; /* "" = mad worker: all umad devices (no kernel device) */
	uint32_t device_index;	      /* kernel's, or DEVICE_INDEX_NONE */
	uint32_t poll_ms;	      /* referee poll of the worker's own facts, 0 = none */
	uint32_t max_endpoints;	      /* rc connections per device */
	uint32_t counters_ms;	      /* rdma: read counters so often, 0 = never */
	uint8_t reports;	      /* mad: take Reports of the SM */
	uint8_t pad[3];
};
struct wm_ping {
	struct wm_header h;
	uint64_t seq;
};
struct wm_poll {
	struct wm_header h;
};
struct wm_listen { /* also WM_UNLISTEN */
	struct wm_header h;
	struct addr addr; /* with port */
	uint8_t transport; /* TRANSPORT_RC, TRANSPORT_UD: each has ports of its own */
	uint8_t pad[7];
};
struct wm_ep_start {
	struct wm_header h;
	struct ep_start start;
};
struct wm_ep { /* PROBE, HEARTBEAT, RESET */
	struct wm_header h;
	uint64_t conn_id, epoch;
};
struct wm_ep_ping {
	struct wm_header h;
	struct ep_ping ping;
};
/* Directed-route Gets of one port of one device. A message is as long as its n entries
 * need. Each entry leads to exactly one entry of WM_SMP_RESULTS. */
struct wm_smp_get {
	uint64_t id; /* of the request, main's */
	uint32_t mod;
	uint16_t attr; /* mad_attr_allowed() */
	uint16_t timeout_ms; /* of each try, 1..10000 */
	uint8_t retries;     /* by the kernel, 0..15 */
	uint8_t hops, path[IB_PATH_LEN]; /* path[0] = 0 */
	uint8_t pad[6];
};
#define WM_SMPS_EACH 80
struct wm_smp_gets {
	struct wm_header h;
	char device[DEVICE_NAME_MAX]; /* umad device */
	uint8_t port;
	uint8_t pad[5];
	uint16_t n; /* 1..WM_SMPS_EACH */
	struct wm_smp_get get[WM_SMPS_EACH];
};

/* One MAD, with the whole contract of umad_send(3): @timeout_ms 0: no answer is expected
 * (MAD_ANSWER comes at once: OK, length 0); > 0: the kernel waits and tries again
 * @retries times; -1: waits for ever. What is not answered comes back as the original:
 * status TIMEOUT with the data as sent. Allowed is what mad_request_allowed() says: Gets,
 * GetTables, and InformInfo as the one Set. */
enum wm_mad_kind { WM_KIND_DR_SMP, WM_KIND_LID_SMP, WM_KIND_PMA, WM_KIND_SA, WM_KIND__MAX };
uint8_t wm_kind_class(uint8_t kind); /* management class; 0: no such kind */
struct wm_grh { /* umad_set_grh(3); host order */
	uint8_t present;
	uint8_t gid_index; /* of the own port */
	uint8_t hop_limit, traffic_class;
	uint32_t flow_label; /* 20 bits */
	uint8_t gid[16];     /* destination */
};
struct wm_mad_send {
	struct wm_header h;
	uint64_t id;
	char device[DEVICE_NAME_MAX];
	uint8_t port;
	uint8_t kind;	/* enum wm_mad_kind */
	uint8_t method; /* enum mad_method */
	uint8_t hops, path[IB_PATH_LEN]; /* DR_SMP */
	uint16_t attr;
	uint32_t mod;
	uint16_t dlid;	/* the others; SA: 0 = the port's SM LID */
	uint8_t sl;
	uint8_t retries;
	int32_t timeout_ms; /* -1..60000 */
	uint16_t pkey_index;
	uint16_t length; /* of data: SMP up to 64, PMA up to 192, SA up to 200 */
	uint64_t comp_mask; /* SA */
	struct wm_grh grh;
	uint8_t data[200];
};
struct wm_exit {
	struct wm_header h;
};

struct wm_hello {
	struct wm_header h;
	uint32_t pid;
	uint8_t kind; /* enum worker_kind */
	uint8_t pad[3];
	char device[DEVICE_NAME_MAX];
	char release[32]; /* FABD_VERSION */
};
struct wm_pong {
	struct wm_header h;
	uint64_t seq;
	uint32_t hot_age_ms; /* since the hot thread last turned; mad: 0 */
	uint32_t cm_busy_ms; /* how long the cm thread is in its present call, 0 = idle */
	uint8_t cm_destroying; /* that call is a destroy */
	uint8_t pad[3];
	char cm_call[28];      /* "rdma_resolve_addr" */
	uint32_t endpoints, listeners;
	uint32_t late_worst_us; /* hot thread, last 10 s */
	uint32_t pad2;
};
struct wm_device {
	struct wm_header h;
	uint32_t device_index;
	uint8_t has_verbs; /* else seen through umad only */
	uint8_t pad[3];
	char name[DEVICE_NAME_MAX];
	struct device_facts facts; /* why[] valid */
};
/* Raw port facts. From verbs (has_verbs) or from umad_get_port. A number that is not
 * known: its bit in missing (1 << enum wm_port_bit). */
enum wm_port_bit { WMP_STATE, WMP_MTU, WMP_LID, WMP_SM, WMP_WIDTH, WMP_SPEED, WMP_CAPS,
		   WMP_GUID, WMP_NETDEV, WMP_VLS, WMP_LINK_LAYER, WMP__MAX };
struct wm_port {
	struct wm_header h;
	char device[DEVICE_NAME_MAX];
	uint32_t device_index;
	uint8_t port;	    /* 1..254 */
	uint8_t has_verbs;
	uint8_t has_smi;    /* mad worker: SMPs can be sent on it */
	uint8_t source;	    /* enum fact_source: START, ASYNC, POLL */
	uint32_t missing;
	uint8_t missing_why; /* enum unavailable */
	uint8_t link_layer; /* 0 unspecified, 1 InfiniBand, 2 Ethernet */
	uint8_t state, phys_state;
	uint8_t max_mtu, active_mtu; /* codes */
	uint8_t lmc, sm_sl;
	uint8_t width, vl_code; /* verbs active_width; max_vl_num code */
	uint16_t pad;
	uint32_t speed;	    /* verbs active_speed(_ex) */
	uint32_t lid, sm_lid;
	uint32_t cap_mask;
	uint32_t netdev_index;
	char netdev[EP_IF_MAX];
	uint64_t port_guid;
};
#define WM_GIDS_EACH 64
struct wm_gids { /* first == 0 begins a new table, last ends it */
	struct wm_header h;
	char device[DEVICE_NAME_MAX];
	uint8_t port, last;
	uint8_t why; /* WHY_NONE, or the table cannot be read and n = 0 */
	uint8_t pad;
	uint16_t first, n;
	struct port_gid gid[WM_GIDS_EACH];
};
#define WM_PKEYS_EACH 256
struct wm_pkeys {
	struct wm_header h;
	char device[DEVICE_NAME_MAX];
	uint8_t port, last;
	uint8_t why;
	uint8_t pad;
	uint16_t first, n;
	uint16_t pkey[WM_PKEYS_EACH];
};
struct wm_port_gone { /* port 0: the whole device */
	struct wm_header h;
	char device[DEVICE_NAME_MAX];
	uint8_t port;
	uint8_t pad[7];
};
struct wm_listening {
	struct wm_header h;
	struct addr addr;
	int32_t error; /* 0 or errno */
	uint8_t transport;
	uint8_t pad[3];
	char text[EP_TEXT_MAX];
};
struct wm_ep_event {
	struct wm_header h;
	struct ep_event event;
};
/* The round trips of the last 60 s that the figures of STATS are of: hist_export(). */
#define WM_ROUNDS_MAX (HIST_HEAD_LEN + 4 * HIST_BUCKETS)
struct wm_ep_rounds {
	struct wm_header h;
	uint64_t conn_id, epoch;
	uint16_t length; /* 1..WM_ROUNDS_MAX; the message is as long as needed */
	uint8_t pad[6];
	uint8_t data[WM_ROUNDS_MAX];
};
enum wm_mad_status { WM_MAD_OK, WM_MAD_TIMEOUT, WM_MAD_BAD_STATUS, WM_MAD_BAD_ANSWER,
		     WM_MAD_SEND_FAILED, WM_MAD_NO_PORT, WM_MAD_NO_PERMISSION, WM_MAD__MAX };
extern const struct enum_names wm_mad_status_names;
struct wm_smp_result {
	uint64_t id;
	uint8_t status;	     /* enum wm_mad_status */
	uint8_t pad;
	uint16_t mad_status; /* BAD_STATUS */
	int32_t error;	     /* as in wm_mad_answer */
	uint64_t rtt_ns;
	uint8_t data[64]; /* OK */
};
struct wm_smp_results {
	struct wm_header h;
	uint16_t n; /* 1..WM_SMPS_EACH */
	uint8_t pad[6];
	struct wm_smp_result result[WM_SMPS_EACH];
};
struct wm_mad_answer {
	struct wm_header h;
	uint64_t id;
	uint8_t status;	     /* enum wm_mad_status */
	uint8_t more;	     /* pieces came before: total is in all of them */
	uint16_t mad_status; /* BAD_STATUS; class-specific part too */
	int32_t error;	     /* BAD_ANSWER: errno of the check; SEND_FAILED: errno */
	uint64_t rtt_ns;
	uint32_t total;	     /* OK: bytes of data in all, up to WM_MAD_TOTAL_MAX */
	uint16_t attr_offset; /* SA tables: bytes from record to record */
	uint16_t length;     /* of data here: 0 when it came in pieces */
	uint8_t data[200];
};
#define WM_MAD_TOTAL_MAX (4u * 1024 * 1024) /* longer tables are BAD_ANSWER, EMSGSIZE */
#define WM_MORE_EACH	 4096
struct wm_mad_more { /* in order, without gaps */
	struct wm_header h;
	uint64_t id;
	uint32_t offset, total;
	uint16_t length; /* 1..WM_MORE_EACH; the message is as long as needed */
	uint8_t pad[6];
	uint8_t data[WM_MORE_EACH];
};
struct wm_notice {
	struct wm_header h;
	char device[DEVICE_NAME_MAX];
	uint8_t port;	 /* that it came in by */
	uint8_t pad;
	uint16_t slid;	 /* of the sender */
	uint8_t pad2[4];
	uint8_t data[80]; /* Notice as on the wire, with IssuerGID */
};
struct wm_counters {
	struct wm_header h;
	char device[DEVICE_NAME_MAX];
	uint8_t port;
	uint8_t pad[7];
	struct counter_reading reading; /* why[] valid */
};
struct wm_drops {
	struct wm_header h;
	uint64_t count[DROP__MAX]; /* since the worker's start */
};
struct wm_goodbye {
	struct wm_header h;
	uint8_t why; /* enum wm_goodbye_why */
	uint8_t pad[7];
	char text[EP_TEXT_MAX];
};
enum wm_goodbye_why { GOODBYE_ASKED, GOODBYE_DEVICE_GONE, GOODBYE_WRONG_DEVICE,
		      GOODBYE_FAILED, GOODBYE__MAX };

/* Fill the header of a message; @size = sizeof of its struct, or what its entries need. */
void wm_header(void *msg, enum wm_type type, size_t size, uint32_t generation);
/* Check @len bytes against the table: magic, version, type for that direction, exact
 * length, ranges of all fields, NUL in all texts, zero padding is not asked for. 0, or
 * -EPROTO / -EPROTONOSUPPORT (version) with what and where in @why. */
int wm_check(const void *buf, size_t len, bool to_worker, char *why, size_t why_size);
/* "WM_PORT", for logs. */
const char *wm_type_name(uint16_t type);
