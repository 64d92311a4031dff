/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_umad.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SENT_MAX   65536
#define QUEUE_MAX  4096
#define AGENTS_MAX 8
#define HEADER	   64
/* The receive timeout is shortened by this, so that closing takes no time in tests. */
#define HASTE 40

struct packet {
	uint8_t mad[1024];
	uint8_t *big; /* owned, instead of mad */
	int len, status, agent;
	bool tried; /* a receive found no room for it */
};

struct agent {
	int id, class;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int fd; /* -1: closed */
	int opens, n_agents, next_agent;
	struct agent agents[AGENTS_MAX];
	int open_error, send_error, recv_error;
	bool register_fails, removed, reports_taken;
	struct fake_sent *sent;
	int n_sent;
	struct packet *queue;
	unsigned head, tail;
	int readers; /* inside umad_recv() */
	uint64_t received;
	int wrongs;
} f = {.lock = PTHREAD_MUTEX_INITIALIZER,
       .changed = PTHREAD_COND_INITIALIZER,
       .fd = -1};

static void wrong(const char *what)
{
	fprintf(stderr, "fake_umad: %s\n", what);
	f.wrongs++;
}

static void lock(void)
{
	pthread_mutex_lock(&f.lock);
}

static void unlock(void)
{
	pthread_cond_broadcast(&f.changed);
	pthread_mutex_unlock(&f.lock);
}

static int agent_of(int class)
{
	for (int i = 0; i < f.n_agents; i++)
		if (f.agents[i].class == class)
			return f.agents[i].id;
	return -1;
}

static void free_queue(void)
{
	for (; f.queue && f.head != f.tail; f.head++)
		free(f.queue[f.head % QUEUE_MAX].big);
	free(f.queue);
	f.queue = NULL;
}

/* ---- the script ---- */

void fake_umad_begin(void)
{
	lock();
	f.fd = -1;
	f.opens = f.n_agents = f.n_sent = f.wrongs = 0;
	f.next_agent = 0; /* 0 is a valid agent */
	f.open_error = f.send_error = f.recv_error = 0;
	f.register_fails = f.removed = f.reports_taken = false;
	free(f.sent);
	free_queue();
	f.head = f.tail = 0;
	f.sent = calloc(SENT_MAX, sizeof(*f.sent));
	f.queue = calloc(QUEUE_MAX, sizeof(*f.queue));
	if (!f.sent || !f.queue)
		abort();
	unlock();
}

int fake_umad_end(void)
{
	int wrongs;

	lock();
	if (f.fd >= 0)
		wrong("port left open");
	if (f.readers)
		wrong("a receiver still runs");
	free(f.sent);
	free_queue();
	f.sent = NULL;
	wrongs = f.wrongs;
	unlock();
	return wrongs;
}

#define SETTER(name, type, member)                                                     \
	void name(type v)                                                              \
	{                                                                              \
		lock();                                                                \
		f.member = v;                                                          \
		unlock();                                                              \
	}
SETTER(fake_umad_open_error, int, open_error)
SETTER(fake_umad_register_error, bool, register_fails)
SETTER(fake_umad_reports_taken, bool, reports_taken)
SETTER(fake_umad_send_error, int, send_error)
SETTER(fake_umad_recv_error, int, recv_error)

void fake_umad_remove(void)
{
	lock();
	f.removed = true;
	unlock();
}

int fake_umad_opens(void)
{
	return f.opens;
}

int fake_umad_sent(void)
{
	return f.n_sent;
}

uint64_t fake_umad_received(void)
{
	uint64_t n;

	lock();
	n = f.received;
	unlock();
	return n;
}

int fake_umad_inside(void)
{
	int n = 0;

	for (int i = 0; i < f.n_sent; i++)
		n += !f.sent[i].answered;
	return n;
}

const struct fake_sent *fake_umad_request(int i)
{
	return &f.sent[i];
}

void fake_umad_make_answer(int i, uint8_t mad[256])
{
	memcpy(mad, f.sent[i].mad, 256);
	mad[3] = mad[3] == 2 ? 0x81 : mad[3] | 0x80;
	if (mad[1] == 0x81)
		mad[4] |= 0x80;
	/* The kernel's part of the transaction. */
	memset(mad + 8, 0xa5, 4);
	for (int k = 0; k < 64; k++)
		mad[64 + k] = (uint8_t)(i + k);
}

static void set_answered(const uint8_t *mad)
{
	for (int i = 0; i < f.n_sent; i++)
		if (!memcmp(f.sent[i].mad + 12, mad + 12, 4))
			f.sent[i].answered = true;
}

/* Answers belong to whom the transaction is, all else to whom the class is. */
static int owner_of(const uint8_t *mad, int len)
{
	for (int i = 0; i < f.n_sent && len >= 16; i++)
		if (!memcmp(f.sent[i].mad + 12, mad + 12, 4))
			return agent_of(f.sent[i].mad[1]);
	return len >= 2 && agent_of(mad[1]) >= 0 ? agent_of(mad[1]) : agent_of(0x81);
}

void fake_umad_put(const uint8_t *mad, int len, int status, int agent)
{
	struct packet *p;

	lock();
	if (f.tail - f.head >= QUEUE_MAX)
		abort();
	p = &f.queue[f.tail++ % QUEUE_MAX];
	memset(p, 0, sizeof(*p));
	p->len = len;
	p->status = status;
	p->agent = agent >= 0 ? agent : owner_of(mad, len);
	if (len > (int)sizeof(p->mad)) {
		p->big = malloc((size_t)len);
		if (!p->big)
			abort();
	}
	memcpy(p->big ? p->big : p->mad, mad, (size_t)len);
	if (len >= 16)
		set_answered(mad);
	unlock();
}

int fake_umad_agent(uint8_t class)
{
	return agent_of(class);
}

void fake_umad_answer(int i)
{
	uint8_t mad[256];

	fake_umad_make_answer(i, mad);
	fake_umad_put(mad, 256, 0, -1);
}

void fake_umad_drain(void)
{
	lock();
	while (f.head != f.tail && f.fd >= 0)
		pthread_cond_wait(&f.changed, &f.lock);
	unlock();
}

/* ---- the library ---- */

int umad_open_port(const char *ca_name, int portnum)
{
	int fd = -1;

	(void)ca_name;
	lock();
	f.opens++;
	if (portnum < 1)
		wrong("open of a port that the library would choose");
	if (f.open_error) {
		errno = f.open_error;
		unlock();
		return -EIO; /* coarse, as the library is */
	}
	fd = open("/dev/null", O_RDWR);
	f.fd = fd;
	f.received = 0;
	f.removed = false;
	unlock();
	return fd;
}

int umad_close_port(int fd)
{
	lock();
	if (fd != f.fd || fd < 0)
		wrong("close of what is not open");
	if (f.readers)
		wrong("close under a receiver");
	if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC) && !f.register_fails)
		wrong("the descriptor would be inherited");
	(void)close(fd);
	f.fd = -1;
	f.n_agents = 0;
	unlock();
	return 0;
}

int umad_register(int fd, int mgmt_class, int version, uint8_t rmpp,
		  long mask[16 / sizeof(long)])
{
	int id = -EPERM;

	lock();
	if (fd != f.fd)
		wrong("register on what is not open");
	/* Only Reports of the subnet administration may come unasked. */
	if (mask && (mgmt_class != 3 || mask[0] != 1L << 6 || mask[1]))
		wrong("a client must not take requests");
	if (version != (mgmt_class == 3 ? 2 : 1) || rmpp != (mgmt_class == 3))
		wrong("version of class or RMPP");
	if (!f.register_fails && !(mask && f.reports_taken) && f.n_agents < AGENTS_MAX) {
		id = f.next_agent++;
		f.agents[f.n_agents++] =
			(struct agent){id, mgmt_class};
	}
	unlock();
	return id;
}

int umad_unregister(int fd, int agent)
{
	(void)agent;
	return fd == f.fd ? 0 : -EINVAL;
}

size_t umad_size(void)
{
	/* Known only after an open: the old header is shorter. */
	if (f.fd < 0)
		wrong("umad_size() before an open");
	return HEADER;
}

static void put_be(void *to, int size, uint32_t v)
{
	for (int i = 0; i < size; i++)
		((uint8_t *)to)[i] = (uint8_t)(v >> 8 * (size - 1 - i));
}

void *umad_get_mad(void *umad)
{
	return ((ib_user_mad_t *)umad)->data;
}

int umad_status(void *umad)
{
	return (int)((ib_user_mad_t *)umad)->status;
}

int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	ib_user_mad_t *m = umad;

	put_be(&m->addr.qpn, 4, (uint32_t)dqp);
	put_be(&m->addr.qkey, 4, (uint32_t)qkey);
	put_be(&m->addr.lid, 2, (uint32_t)dlid);
	m->addr.sl = (uint8_t)sl;
	return 0;
}

/* Takes the flow label in host order, and forgets the index. */
int umad_set_grh(void *umad, void *mad_addr)
{
	ib_user_mad_t *m = umad;
	const ib_mad_addr_t *a = mad_addr;

	m->addr.grh_present = 1;
	memcpy(m->addr.gid, a->gid, 16);
	put_be(&m->addr.flow_label, 4, a->flow_label);
	m->addr.hop_limit = a->hop_limit;
	m->addr.traffic_class = a->traffic_class;
	return 0;
}

int umad_set_pkey(void *umad, int pkey_index)
{
	((ib_user_mad_t *)umad)->addr.pkey_index = (uint16_t)pkey_index;
	return 0;
}

/* A kernel refuses what is live; a directed route leaves by the port itself. */
static int check_send(const ib_user_mad_t *m, int agent, int length, int timeout_ms)
{
	const uint8_t *mad = m->data, *lid = (const void *)&m->addr.lid;
	int class = 0;

	for (int i = 0; i < f.n_agents; i++)
		if (f.agents[i].id == agent)
			class = f.agents[i].class;
	if (class != mad[1])
		wrong("sent by another agent");
	if (length != 256 || timeout_ms < -1)
		wrong("send arguments");
	if (class == 0x81 && (lid[0] != 0xff || lid[1] != 0xff || m->addr.qpn ||
			      m->addr.sl || m->addr.qkey))
		wrong("address of a directed-route packet");
	for (int i = 0; i < f.n_sent && !(mad[3] & 0x80); i++)
		if (!f.sent[i].answered && !memcmp(f.sent[i].mad + 12, mad + 12, 4)) {
			wrong("a transaction twice");
			return EINVAL;
		}
	return 0;
}

static int send_locked(int fd, int agent, const ib_user_mad_t *m, int length,
		       int timeout_ms, int retries)
{
	struct fake_sent *s;
	int error;

	if (fd != f.fd) {
		wrong("send on what is not open");
		return EBADF;
	}
	if (f.removed)
		return EIO;
	if (f.send_error)
		return f.send_error;
	error = check_send(m, agent, length, timeout_ms);
	if (error)
		return error;
	if (f.n_sent == SENT_MAX)
		abort();
	s = &f.sent[f.n_sent++];
	memcpy(s->mad, m->data, 256);
	memcpy(s->header, m, HEADER);
	memcpy(&s->tid, m->data + 12, 4);
	s->timeout_ms = timeout_ms;
	s->retries = retries;
	s->answered = timeout_ms == 0; /* nothing will come */
	return 0;
}

int umad_send(int fd, int agent, void *umad, int length, int timeout_ms, int retries)
{
	int error;

	lock();
	error = send_locked(fd, agent, umad, length, timeout_ms, retries);
	unlock();
	errno = error;
	return error ? -EIO : 0;
}

/* Until a packet, a failure or the timeout. With the lock held. */
static int wait_locked(int timeout_ms)
{
	struct timespec at;

	(void)clock_gettime(CLOCK_REALTIME, &at);
	at.tv_nsec += timeout_ms * 1000000L / HASTE;
	at.tv_sec += at.tv_nsec / 1000000000L;
	at.tv_nsec %= 1000000000L;
	while (f.head == f.tail && !f.removed && !f.recv_error)
		if (pthread_cond_timedwait(&f.changed, &f.lock, &at) == ETIMEDOUT)
			return ETIMEDOUT;
	return 0;
}

static int recv_locked(ib_user_mad_t *m, int *length, int timeout_ms)
{
	/* Without a timeout the library does not wait, it reads. */
	int error = timeout_ms ? wait_locked(timeout_ms) : 0;
	struct packet *p;

	if (error)
		return error;
	if (f.head == f.tail) {
		*length = -HEADER; /* garbage, as the library leaves it */
		if (timeout_ms && f.recv_error < 0)
			*length = 0;
		return f.removed	? EIO
		       : !timeout_ms	? EAGAIN
		       : f.recv_error < 0 ? 0
					: f.recv_error;
	}
	p = &f.queue[f.head % QUEUE_MAX];
	if (p->len > *length) {
		if (p->tried)
			wrong("no room for what was said to need it");
		p->tried = true;
		*length = p->len; /* it stays where it is */
		return ENOSPC;
	}
	memset(m, 0, HEADER);
	m->status = (uint32_t)p->status;
	m->agent_id = (uint32_t)p->agent;
	put_be(&m->addr.lid, 2, FAKE_SLID);
	put_be(&m->addr.qpn, 4, 1);
	m->addr.pkey_index = 3;
	memcpy(m->data, p->big ? p->big : p->mad, (size_t)p->len);
	*length = p->len;
	free(p->big);
	p->big = NULL;
	f.head++;
	f.received++;
	return 0;
}

int umad_recv(int fd, void *umad, int *length, int timeout_ms)
{
	ib_user_mad_t *m = umad;
	int error;

	lock();
	if (fd != f.fd)
		wrong("receive on what is not open");
	if (*length < 256)
		wrong("length not set before a receive");
	f.readers++;
	error = recv_locked(m, length, timeout_ms);
	f.readers--;
	unlock();
	/* The library leaves errno alone on a timeout. */
	if (error == ETIMEDOUT)
		return -ETIMEDOUT;
	if (error) {
		errno = error;
		return -error;
	}
	return (int)m->agent_id;
}
