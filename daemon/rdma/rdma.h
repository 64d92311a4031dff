/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma.h - what the four threads of a device worker share: the device's identity, the
 * queues between them, and what each shows of itself.
 *
 *   ctl    main thread: the pair to main; starts the others; never blocks
 *   facts  opens the device, reads device, ports, GIDs, P_Keys; may block in firmware
 *   cm     owns event channel, rdma_cm ids, QPs' life; may block in the kernel
 *   hot    owns completion queues, posts, heartbeat engines; never blocks
 *
 * Each ring has one writer and one reader. A writer wakes its reader by the reader's
 * eventfd. Order that holds across rings: what hot reported before it told cm that an
 * endpoint is detached goes to main before that endpoint's reset_done (ctl.c).
 */
#pragma once

#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "mono.h"
#include "ring.h"
#include "worker.h"

/* What a thread is doing, for main's supervision. */
struct busy {
	_Atomic(const char *) call; /* NULL: nothing that can block */
	_Atomic int64_t since;	    /* mono ns */
	atomic_bool destroying;
};

enum device_state { DEVICE_OPENING, DEVICE_READY, DEVICE_FACTS_ONLY };

struct worker {
	/* From INIT, constant afterwards. */
	char device[DEVICE_NAME_MAX];
	uint32_t generation, max_rc, poll_ms, counters_ms;

	/* Written by facts before device_state leaves DEVICE_OPENING, constant then. */
	uint32_t device_index;
	char uverbs[32]; /* "uverbs0" */
	bool iwarp;
	char why_facts_only[EP_TEXT_MAX];
	_Atomic int device_state; /* enum device_state */

	struct busy cm_busy, facts_busy;
	_Atomic int64_t hot_turn;     /* mono ns of hot's last turn */
	_Atomic uint32_t hot_late_us; /* worst since ctl took it */
	_Atomic uint32_t endpoints, listeners;
	_Atomic uint64_t drops[DROP__MAX];
	atomic_bool reread; /* facts: read all again */

	struct ring ctl_to_cm, ctl_to_hot, cm_to_hot, hot_to_cm;
	struct ring facts_out, cm_out, hot_out; /* to ctl: whole messages for main */
	struct ring rounds_out; /* hot to ctl: those that can wait */
	int wake_ctl, wake_facts, wake_cm, wake_hot;
};

/* ud endpoints cost so little that the queues are not made for all of them at once: who
 * fills one waits for its reader (ctl reads no more of main, cm waits for hot), but hot,
 * which leaves orders where they are until there is room for the answers. */
#define RING_EXTRA 256

/* ctl to cm; conn_id and epoch of RESET are in start. */
struct cm_command {
	uint16_t type; /* WM_LISTEN, WM_UNLISTEN, WM_EP_START, WM_EP_RESET, WM_EXIT */
	struct addr addr;
	struct ep_start start; /* LISTEN, UNLISTEN: transport */
};
/* ctl to hot. */
struct hot_command {
	uint16_t type; /* WM_EP_PROBE, WM_EP_HEARTBEAT, WM_EP_PING */
	uint64_t conn_id, epoch;
	struct ep_ping *ping; /* PING: hot's to free */
};

struct endpoint;
struct ud_port;
struct ud_ah;
struct rdma_ctx;
/* cm to hot. CHANNEL comes before the first ATTACH, UD_LIVE before an ATTACH to that
 * port. Each DETACH, UD_STOP and AH is answered by one note. */
enum hot_order_type {
	HOT_CHANNEL,
	HOT_ATTACH,
	HOT_UP,
	HOT_DETACH,
	HOT_UD_LIVE, /* hot's to post to and poll until it answers FAILED or STOPPED */
	HOT_UD_STOP,
	HOT_AH,	      /* ud: answer by this from now on */
	HOT_AH_STALE  /* ud: ask for a new one at the next message */
};
struct hot_order {
	enum hot_order_type type;
	uint32_t path_mtu;   /* UP: size of large messages if start.probe_size is 0 */
	bool soft_roce;	     /* UP: in packets of that size, over start.netdev */
	struct endpoint *ep; /* ATTACH: hot's to use until it answers DETACHED */
	struct rdma_ctx *ctx;  /* CHANNEL */
	struct ud_port *port;  /* UD_* */
	struct ud_ah *ah, *old; /* AH: old is given back by the note */
	uint32_t qpn, qkey;    /* AH: of the peer */
};
/* hot to cm. */
enum hot_note_type {
	HOT_DETACHED,
	HOT_FAILED,
	HOT_UD_FAILED, /* the queue pair; handle: whose send it was, 0 = nobody's */
	HOT_UD_STOPPED,
	HOT_AH_TAKEN, /* old: no send will be begun with it any more */
	HOT_AH_WANTED /* wc_* and grh: of a message that passed all checks */
};
struct hot_note {
	enum hot_note_type type;
	int wc_status; /* FAILED: enum ibv_wc_status of the first error */
	uint32_t vendor_err;
	bool sending;
	uint64_t handle;
	struct ud_port *port;
	struct ud_ah *old;
	uint32_t wc_src_qp, wc_flags;
	uint16_t wc_slid;
	uint8_t wc_sl, wc_path_bits;
	uint8_t grh[40];
};

/* Largest message that cm and facts send to main. */
union cm_message {
	struct wm_header h;
	struct wm_ep_event event;
	struct wm_listening listening;
	struct wm_goodbye goodbye;
};
union facts_message {
	struct wm_header h;
	struct wm_device device;
	struct wm_port port;
	struct wm_gids gids;
	struct wm_pkeys pkeys;
	struct wm_counters counters;
	struct wm_goodbye goodbye;
};

static inline struct mono clock_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (struct mono){ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec};
}

static inline void wake(int fd)
{
	uint64_t one = 1;

	/* A full counter wakes as well. */
	(void)!write(fd, &one, sizeof(one));
}

static inline void wake_clear(int fd)
{
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
}

static inline void busy_enter(struct busy *b, const char *call, bool destroying)
{
	atomic_store(&b->destroying, destroying);
	atomic_store(&b->since, clock_now().ns);
	atomic_store(&b->call, call);
}

static inline void busy_leave(struct busy *b)
{
	atomic_store(&b->call, NULL);
}

static inline void count_drop(struct worker *w, enum drop reason)
{
	atomic_fetch_add_explicit(&w->drops[reason], 1, memory_order_relaxed);
}

void worker_init(struct worker *w, const struct wm_init *init);
/* Fill a goodbye and push it to @out; ctl sends it and the process exits. */
void worker_goodbye(struct worker *w, struct ring *out, enum wm_goodbye_why why,
		    const char *fmt, ...) PRINTF_LIKE(4, 5);

/* The threads. Each runs until the process ends. */
void *facts_thread(void *worker);
void *cm_thread(void *worker);
void *hot_thread(void *worker);

/* main.c's only call: serve the pair on @fd until told to go. The exit status. */
int ctl_run(int fd);
