/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define RECV_TIMEOUT_MS 200
/* Room for answers that are too long, so that they are seen as such and not as errors.
 */
#define RECV_LEN (2 * MAD_LEN)
/* An answer of several MADs that is longer than this is a port gone mad. */
#define RECV_HUGE (64 * 1024 * 1024)
/* Packets handed over at once, so that a flood is looked at while it lasts. */
#define BURST_MAX 64
/* Not taken by the main thread yet. More than was asked for is dropped. */
#define INBOX_MAX	2048
#define INBOX_BYTES_MAX (16 * 1024 * 1024)
/* Receives in a row that gave nothing sensible: the descriptor is broken. */
#define STRIKES_MAX	50
#define STRIKE_PAUSE_NS (10 * NSEC_PER_MSEC)
#define GSI_QKEY	0x80010000u
#define METHOD_AT	3
#define ATTR_AT		16

struct packets {
	struct packet *first, **last;
	size_t n, bytes;
};

struct wire {
	char device[DEVICE_NAME_MAX];
	uint8_t num;
	int umad;		  /* the library's handle */
	int agents[WM_KIND__MAX]; /* negative: not registered */
	uint8_t *out;		  /* owned: header and MAD */
	int wake_fd;

	/* the receiver */
	pthread_t thread;
	_Atomic bool stop;
	pthread_mutex_t lock; /* of what follows */
	struct packets inbox;
	struct packet *spare; /* to be used again */
	int recv_error;
};

static struct mono clock_read(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (struct mono){(int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec};
}

/* ---- packets ---- */

static struct packet *packet_new(size_t room)
{
	struct packet *k = xcalloc(1, sizeof(*k) + umad_size() + room);

	k->room = room;
	return k;
}

static void packets_init(struct packets *l)
{
	*l = (struct packets){.last = &l->first};
}

static void packets_add(struct packets *l, struct packet *k)
{
	k->next = NULL;
	*l->last = k;
	l->last = &k->next;
	l->n++;
	l->bytes += k->room;
}

static void packets_free(struct packet *k)
{
	struct packet *next;

	for (; k; k = next) {
		next = k->next;
		free(k);
	}
}

const uint8_t *packet_mad(const struct packet *k)
{
	return umad_get_mad((void *)(uintptr_t)k->umad);
}

uint16_t packet_slid(const struct packet *k)
{
	const ib_user_mad_t *m = (const void *)k->umad;

	return be16_get((const uint8_t *)&m->addr.lid);
}

/* ---- the receiver thread ---- */

static void wake(struct wire *u)
{
	uint64_t one = 1;

	/* Full means that it is readable already. */
	if (write(u->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		log_errno(LOG_ERR, -errno, "%s/%u: cannot wake the main thread",
			  u->device, u->num);
}

static void hand_over(struct wire *u, struct packets *burst)
{
	struct packet *dropped = burst->first;
	bool was_empty;

	pthread_mutex_lock(&u->lock);
	was_empty = !u->inbox.first;
	if (u->inbox.n + burst->n <= INBOX_MAX &&
	    u->inbox.bytes + burst->bytes <= INBOX_BYTES_MAX) {
		*u->inbox.last = burst->first;
		u->inbox.last = burst->last;
		u->inbox.n += burst->n;
		u->inbox.bytes += burst->bytes;
		dropped = NULL;
	}
	pthread_mutex_unlock(&u->lock);
	packets_free(dropped); /* their requests end by their deadlines, if any */
	if (was_empty)
		wake(u); /* else it has been woken for those that are there */
}

static void recv_failed(struct wire *u, int error)
{
	pthread_mutex_lock(&u->lock);
	u->recv_error = error;
	pthread_mutex_unlock(&u->lock);
	wake(u);
}

/* One umad_recv(). 0, or the errno. */
static int recv_into(struct wire *u, struct packet *k, int timeout_ms, int *ret_len)
{
	int len = (int)k->room; /* in and out: garbage after a failure */
	int agent;

	errno = 0;
	agent = umad_recv(u->umad, k->umad, &len, timeout_ms);
	*ret_len = len;
	/* A failed poll() comes back as EIO whatever its reason. */
	if (agent < 0)
		return errno ? errno : -agent;
	if (len <= 0)
		return EAGAIN;
	k->agent = agent;
	k->status = umad_status(k->umad);
	k->len = (size_t)len;
	k->at = clock_read();
	return 0;
}

static void refill(struct wire *u, struct packet **spare)
{
	pthread_mutex_lock(&u->lock);
	*spare = u->spare;
	u->spare = NULL;
	pthread_mutex_unlock(&u->lock);
}

/* A packet; an answer of several MADs that did not fit stays at the head of the queue
 * and is read again with the room that it needs. */
static int recv_one(struct wire *u, struct packet **spare, struct packets *burst,
		    int timeout_ms)
{
	struct packet *k;
	int len, error;

	if (!*spare)
		refill(u, spare);
	k = *spare ? *spare : packet_new(RECV_LEN);
	*spare = k->next;
	error = recv_into(u, k, timeout_ms, &len);
	if (error == ENOSPC && len > RECV_LEN && len <= RECV_HUGE) {
		struct packet *big = packet_new((size_t)len);

		error = recv_into(u, big, 0, &len);
		if (!error) {
			packets_add(burst, big);
			big = NULL;
		}
		free(big);
	} else if (!error) {
		packets_add(burst, k);
		return 0;
	}
	k->next = *spare;
	*spare = k;
	return error;
}

static void *receiver(void *arg)
{
	static const struct timespec pause = {.tv_nsec = STRIKE_PAUSE_NS};
	struct wire *u = arg;
	struct packet *spare = NULL;
	int strikes = 0;

	while (!atomic_load(&u->stop)) {
		struct packets burst;
		int error;

		packets_init(&burst);
		error = recv_one(u, &spare, &burst, RECV_TIMEOUT_MS);
		if (!error) {
			while (burst.n < BURST_MAX && !recv_one(u, &spare, &burst, 0))
				;
			hand_over(u, &burst);
		}
		if (!error || error == ETIMEDOUT || error == EINTR) {
			strikes = 0;
			continue;
		}
		/* EIO, ENODEV: removed. EINVAL, ENOSPC: the packet stays at the head of
		 * the queue, reading again gives it again. */
		if (error != EAGAIN || ++strikes >= STRIKES_MAX) {
			recv_failed(u, error);
			break;
		}
		(void)nanosleep(&pause, NULL);
	}
	packets_free(spare);
	return NULL;
}

static int start_receiver(struct wire *u)
{
	sigset_t all, old;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&u->thread, NULL, receiver, u);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

struct packet *wire_take(struct wire *u, int *ret_error)
{
	struct packet *k;

	pthread_mutex_lock(&u->lock);
	k = u->inbox.first;
	packets_init(&u->inbox);
	*ret_error = u->recv_error;
	pthread_mutex_unlock(&u->lock);
	return k;
}

void wire_give(struct wire *u, struct packet *list)
{
	struct packet *k, *next, *first = NULL, **last = &first;

	for (k = list; k; k = next) {
		next = k->next;
		if (k->room != RECV_LEN) {
			free(k);
			continue;
		}
		*last = k;
		last = &k->next;
	}
	if (!first)
		return;
	pthread_mutex_lock(&u->lock);
	*last = u->spare;
	u->spare = first;
	pthread_mutex_unlock(&u->lock);
}

/* ---- open and close ---- */

static int register_sa(struct wire *u, bool reports)
{
	long mask[16 / sizeof(long)] = {0};
	int agent = -1;

	mask[0] = 1L << MAD_REPORT;
	/* RMPP version 1: the kernel joins the answers of several MADs. */
	if (reports)
		agent = umad_register(u->umad, MAD_CLASS_SA, 2, 1, mask);
	if (reports && agent < 0)
		log_notice("%s/%u: Reports of the subnet manager go to another process",
			   u->device, u->num);
	return agent < 0 ? umad_register(u->umad, MAD_CLASS_SA, 2, 1, NULL) : agent;
}

/* A simulator crashes on a packet of a class that nobody registered, so all that may
 * come are taken at once; only the first is needed. */
static int register_classes(struct wire *u, bool reports)
{
	u->agents[WM_KIND_DR_SMP] =
		umad_register(u->umad, MAD_CLASS_SMI_DR, 1, 0, NULL);
	if (u->agents[WM_KIND_DR_SMP] < 0)
		return EPROTONOSUPPORT;
	u->agents[WM_KIND_LID_SMP] =
		umad_register(u->umad, MAD_CLASS_SMI_LID, 1, 0, NULL);
	u->agents[WM_KIND_SA] = register_sa(u, reports);
	u->agents[WM_KIND_PMA] = umad_register(u->umad, MAD_CLASS_PMA, 1, 0, NULL);
	for (uint8_t i = 0; i < WM_KIND__MAX; i++)
		if (u->agents[i] < 0)
			log_debug("%s/%u: class 0x%02x cannot be registered", u->device,
				  u->num, wm_kind_class(i));
	return 0;
}

static int open_umad(struct wire *u, bool reports)
{
	int r, flags;

	/* 0 would let the library choose a port. */
	if (!u->num)
		return ENODEV;
	errno = 0;
	u->umad = umad_open_port(u->device, u->num);
	if (u->umad < 0)
		return errno ? errno : -u->umad; /* the result is coarser than errno */
	/* The library leaves it open over exec, and old ones make reads wait. A
	 * simulated descriptor has no flags. */
	(void)fcntl(u->umad, F_SETFD, FD_CLOEXEC);
	flags = fcntl(u->umad, F_GETFL);
	if (flags >= 0)
		(void)fcntl(u->umad, F_SETFL, flags | O_NONBLOCK);
	r = register_classes(u, reports);
	if (r)
		(void)umad_close_port(u->umad);
	return r;
}

struct wire *wire_open(const char *device, uint8_t port, bool reports, int wake_fd,
		       int *ret_error)
{
	struct wire *u = xcalloc(1, sizeof(*u));
	int r;

	(void)str_copy(u->device, sizeof(u->device), device);
	u->num = port;
	u->wake_fd = wake_fd;
	packets_init(&u->inbox);
	(void)pthread_mutex_init(&u->lock, NULL);
	r = open_umad(u, reports);
	if (!r) {
		/* The size of the header is known only after an open. */
		u->out = xcalloc(1, umad_size() + MAD_LEN);
		r = start_receiver(u);
		if (!r)
			return u;
		(void)umad_close_port(u->umad);
	}
	(void)pthread_mutex_destroy(&u->lock);
	free(u->out);
	free(u);
	*ret_error = r;
	return NULL;
}

void wire_stop(struct wire *u)
{
	atomic_store(&u->stop, true);
}

struct wire *wire_close(struct wire *u)
{
	if (!u)
		return NULL;
	wire_stop(u);
	(void)pthread_join(u->thread, NULL);
	packets_free(u->inbox.first);
	packets_free(u->spare);
	for (int i = 0; i < WM_KIND__MAX; i++)
		if (u->agents[i] >= 0)
			(void)umad_unregister(u->umad, u->agents[i]);
	(void)umad_close_port(u->umad);
	(void)pthread_mutex_destroy(&u->lock);
	free(u->out);
	free(u);
	return NULL;
}

/* ---- whose it is, and sends ---- */

bool wire_is_for(const struct wire *u, const struct packet *k, uint8_t kind)
{
	return u->agents[kind] >= 0 && u->agents[kind] == k->agent;
}

bool wire_is_report(const struct wire *u, const struct packet *k)
{
	const uint8_t *mad = packet_mad(k);

	return !k->status && k->len == MAD_LEN && wire_is_for(u, k, WM_KIND_SA) &&
	       mad[METHOD_AT] == MAD_REPORT &&
	       be16_get(mad + ATTR_AT) == MAD_ATTR_NOTICE;
}

uint8_t *wire_mad(struct wire *u)
{
	return umad_get_mad(u->out);
}

static int send_out(struct wire *u, uint8_t kind, int timeout_ms, int retries)
{
	int r;

	if (u->agents[kind] < 0)
		return EPROTONOSUPPORT;
	errno = 0;
	r = umad_send(u->umad, u->agents[kind], u->out, MAD_LEN, timeout_ms, retries);
	return r < 0 ? errno ? errno : -r : 0;
}

static void set_grh(struct wire *u, const struct wm_grh *g)
{
	ib_user_mad_t *m = (void *)u->out;
	ib_mad_addr_t a = {
		.hop_limit = g->hop_limit,
		.traffic_class = g->traffic_class,
		.flow_label = g->flow_label,
	};

	memcpy(a.gid, g->gid, sizeof(a.gid));
	(void)umad_set_grh(u->out, &a);
	/* The library does not copy it. */
	m->addr.gid_index = g->gid_index;
}

int wire_send(struct wire *u, const struct wire_to *to, int timeout_ms, int retries)
{
	bool dr = to->kind == WM_KIND_DR_SMP, smp = dr || to->kind == WM_KIND_LID_SMP;

	memset(u->out, 0, umad_size());
	(void)umad_set_addr(u->out, dr ? IB_LID_PERMISSIVE : to->dlid, smp ? 0 : 1,
			    dr ? 0 : to->sl, smp ? 0 : (int)GSI_QKEY);
	(void)umad_set_pkey(u->out, to->pkey_index);
	if (to->grh)
		set_grh(u, to->grh);
	return send_out(u, to->kind, timeout_ms, retries);
}

int wire_answer_report(struct wire *u, const struct packet *report)
{
	ib_user_mad_t *m = (void *)u->out;

	/* Its header has the way back, GRH and P_Key included, but for the key. */
	memcpy(u->out, report->umad, umad_size());
	be32_put((uint8_t *)&m->addr.qkey, GSI_QKEY);
	mad_build_report_resp(wire_mad(u), packet_mad(report));
	return send_out(u, WM_KIND_SA, 0, 0);
}
