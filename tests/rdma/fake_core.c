/* SPDX-License-Identifier: BSD-2-Clause */
/* What all fakes share: objects and their life, faults, blocked calls, time. */
#include "fakes.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define MAGIC	   UINT64_C(0xfabdfabd00c0ffee)
#define KEPT_DEAD  256
#define FAULTS_MAX 8

static const char *const kind_names[FK__MAX] = {
	"context", "event channel", "id", "PD", "completion channel", "CQ", "QP", "MR",
	"AH"};

struct fault {
	const char *call;
	int skip, times, ret, err;
};

struct fk fk;
static struct fk_object alive = {.next_alive = &alive, .prev_alive = &alive};
static struct fk_object *dead_first, *dead_last;
static int n_dead;
static struct fault faults[FAULTS_MAX];
static int n_faults;
static const char *failed_call;
static const char *_Atomic blocked_call;
static _Atomic int blocking;
static int unblock_fd = -1;
static pthread_mutex_t lock;
static char note[80];

void fk_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(note, sizeof(note), fmt, ap);
	va_end(ap);
}

void fk_wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(fk.wrong, sizeof(fk.wrong), fmt, ap);
	va_end(ap);
	if (fk.on_wrong) {
		/* The stubs hold the lock once; nobody else runs in such a test. */
		while (!pthread_mutex_unlock(&lock))
			;
		longjmp(*fk.on_wrong, 1);
	}
	fprintf(stderr, "fakes: %s%s%s\n", fk.wrong, note[0] ? ", in " : "", note);
	abort();
}

void fk_lock(void)
{
	(void)pthread_mutex_lock(&lock);
}

void fk_unlock(void)
{
	(void)pthread_mutex_unlock(&lock);
}

/* ---- objects */

void *fk_make(enum fk_kind kind, size_t size, struct fk_object *parent)
{
	struct fk_object *o = xcalloc(1, size);

	o->magic = MAGIC;
	o->kind = kind;
	o->parent = parent;
	if (parent)
		parent->children++;
	o->prev_alive = alive.prev_alive;
	o->next_alive = &alive;
	alive.prev_alive->next_alive = o;
	alive.prev_alive = o;
	fk.alive[kind]++;
	fk.made[kind]++;
	return o;
}

void fk_alive(const struct fk_object *o, enum fk_kind kind, const char *call)
{
	if (!o)
		fk_wrong("%s: no %s", call, kind_names[kind]);
	if (o->magic != MAGIC)
		fk_wrong("%s: this is no object of ours", call);
	if (o->kind != kind)
		fk_wrong("%s: a %s where a %s belongs", call, kind_names[o->kind],
			 kind_names[kind]);
	if (o->dead)
		fk_wrong("%s: the %s is destroyed", call, kind_names[kind]);
}

void fk_destroy(struct fk_object *o, enum fk_kind kind, const char *call)
{
	fk_alive(o, kind, call);
	if (o->children)
		fk_wrong("%s: the %s goes before what is in it", call,
			 kind_names[kind]);
	o->dead = true;
	o->prev_alive->next_alive = o->next_alive;
	o->next_alive->prev_alive = o->prev_alive;
	if (o->parent)
		o->parent->children--;
	fk.alive[kind]--;
	fk.destroyed[kind]++;
	o->next = NULL;
	if (dead_last)
		dead_last->next = o;
	else
		dead_first = o;
	dead_last = o;
	if (++n_dead <= KEPT_DEAD)
		return;
	o = dead_first;
	dead_first = o->next;
	n_dead--;
	free(o);
}

static void free_dead(void)
{
	while (dead_first) {
		struct fk_object *o = dead_first;

		dead_first = o->next;
		free(o);
	}
	dead_last = NULL;
	n_dead = 0;
}

/* ---- faults */

void fk_fail(const char *call, int skip, int times, int ret, int err)
{
	assert(n_faults < FAULTS_MAX);
	faults[n_faults++] = (struct fault){call, skip, times, ret, err};
}

const char *fk_failed(void)
{
	return failed_call;
}

int fk_faults_left(void)
{
	return n_faults;
}

void fk_no_faults(void)
{
	n_faults = 0;
	failed_call = NULL;
}

static bool is_destroy(const char *call)
{
	return strstr(call, "destroy") || strstr(call, "dereg");
}

bool fk_fails(const char *call, int usual, int *ret)
{
	for (int i = 0; i < n_faults; i++) {
		struct fault *f = &faults[i];

		if (f->call ? !str_eq(f->call, call) : is_destroy(call))
			continue;
		if (f->skip) {
			f->skip--;
			continue;
		}
		errno = f->err;
		*ret = f->ret == FK_USUAL ? (usual == INT_MAX ? f->err : usual)
					  : f->ret;
		failed_call = call;
		if (!--f->times)
			*f = faults[--n_faults];
		return true;
	}
	return false;
}

bool fk_fails_p(const char *call)
{
	int unused;

	return fk_fails(call, 0, &unused);
}

void fk_block(const char *call)
{
	blocked_call = call;
}

void fk_unblock(void)
{
	uint64_t one = 1;

	blocked_call = NULL;
	(void)!write(unblock_fd, &one, sizeof(one));
}

bool fk_is_blocking(void)
{
	return blocking;
}

bool fk_wait_blocked(const char *call)
{
	bool ok = true;

	while (ok && blocked_call && str_eq(blocked_call, call)) {
		uint64_t n;

		blocking++;
		ok = read(unblock_fd, &n, sizeof(n)) > 0;
		blocking--;
	}
	return ok;
}

/* ---- descriptors */

int fk_bell_new(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE | EFD_CLOEXEC);

	assert(fd >= 0);
	return fd;
}

void fk_bell_ring(int fd)
{
	uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

void fk_bell_take(int fd)
{
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
}

/* The writing end of a pipe that nobody reads is in error. */
void fk_bell_kill(int fd)
{
	int ends[2];

	if (pipe(ends) || dup2(ends[1], fd) < 0)
		fk_wrong("no pipe");
	(void)close(ends[0]);
	(void)close(ends[1]);
}

/* ---- time */

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __real_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts,
		 const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts,
		 const sigset_t *mask);
int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	if (id != CLOCK_MONOTONIC || !fk.virtual_time)
		return __real_clock_gettime(id, ts);
	/* Two looks are never at the same instant. */
	fk.now.ns++;
	*ts = (struct timespec){fk.now.ns / NSEC_PER_SEC, fk.now.ns % NSEC_PER_SEC};
	return 0;
}

static int wait_virtually(struct pollfd *fds, nfds_t n, int64_t ns)
{
	static const struct timespec zero;
	int r = __real_ppoll(fds, n, &zero, NULL);
	int64_t end;

	if (r || !mono_is_set(fk.until))
		return r;
	end = ns < 0 ? fk.until.ns : MIN(fk.until.ns, fk.now.ns + ns);
	fk.now.ns = MAX(fk.now.ns, end);
	return 0;
}

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts,
		 const sigset_t *mask)
{
	if (!fk.virtual_time)
		return __real_ppoll(fds, n, ts, mask);
	return wait_virtually(fds, n,
			      ts ? ts->tv_sec * NSEC_PER_SEC + ts->tv_nsec : -1);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	if (!fk.virtual_time)
		return __real_poll(fds, n, ms);
	return wait_virtually(fds, n, ms < 0 ? -1 : ms * NSEC_PER_MSEC);
}

/* ---- a world */

void fk_begin(void)
{
	static bool once;
	pthread_mutexattr_t attr;

	if (!once) {
		(void)pthread_mutexattr_init(&attr);
		(void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
		(void)pthread_mutex_init(&lock, &attr);
		once = true;
	}
	memset(&fk, 0, sizeof(fk));
	n_faults = 0;
	failed_call = NULL;
	blocked_call = NULL;
	if (unblock_fd < 0)
		unblock_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	fk.virtual_time = true;
	fk.now.ns = 1000 * NSEC_PER_SEC;
	fk.index = 3;
	(void)str_copy(fk.name, sizeof(fk.name), "fake0");
	fk.transport = IBV_TRANSPORT_IB;
	fk.node_type = IBV_NODE_CA;
	fk.node_guid = 0x1122334455667788;
	fk.n_ports = 1;
	fk.max_inline = 128;
	fk.port = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE,
					 .phys_state = 5,
					 .max_mtu = IBV_MTU_4096,
					 .active_mtu = IBV_MTU_1024,
					 .active_width = 2,
					 .active_speed = 32,
					 .max_vl_num = 1,
					 .link_layer = IBV_LINK_LAYER_ETHERNET};
	fk_cm_reset();
	fk_verbs_reset();
}

void fk_balanced(int ids, int pds, int ports)
{
	const int allowed[FK__MAX] = {
		[FK_CQ] = 2 * ports, [FK_QP] = ports, [FK_MR] = ports};
	static const char *const events[FK_EVENT__MAX] = {
		"CM events", "asynchronous events", "CQ events"};

	if (fk.alive[FK_ID] != ids)
		fk_wrong("%d ids are alive, not %d", fk.alive[FK_ID], ids);
	if (fk.alive[FK_PD] != pds)
		fk_wrong("%d PDs are alive, not %d", fk.alive[FK_PD], pds);
	for (int k = FK_CQ; k < FK__MAX; k++)
		if (fk.alive[k] != allowed[k])
			fk_wrong("%d of %s are left, not %d", fk.alive[k],
				 kind_names[k], allowed[k]);
	for (int e = 0; e < FK_EVENT__MAX; e++)
		if (fk.got[e] != fk.acked[e])
			fk_wrong("%s: %" PRIu64 " got, %" PRIu64 " acknowledged",
				 events[e], fk.got[e], fk.acked[e]);
}

void fk_end(void)
{
	fk_balanced(0, 0, 0);
	for (int k = FK_CHANNEL; k < FK__MAX; k++)
		if (fk.alive[k])
			fk_wrong("%d of %s are left", fk.alive[k], kind_names[k]);
	fk_cm_reset();
	fk_verbs_reset();
	free_dead();
}

void fk_abandon(void)
{
	while (alive.next_alive != &alive) {
		struct fk_object *o = alive.next_alive;

		o->children = 0;
		fk_cm_free(o);
		fk_verbs_free(o);
		fk_destroy(o, o->kind, "giving up");
	}
	fk_cm_reset();
	fk_verbs_reset();
	free_dead();
}
