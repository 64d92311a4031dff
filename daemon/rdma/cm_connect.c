/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_connect.c - rdma_connect. On InfiniBand and RoCE it sends a message and returns.
 * On iWARP the soft driver makes the TCP connection inside the call, which for a host
 * that is silent takes two minutes; so there a thread makes it, which a signal gets out
 * of the call. Until the thread is done, nobody else touches the id but to read its
 * events.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "cm.h"
#include "log.h"

#define CONNECT_SIGNAL SIGUSR1
#define CONNECT_STACK  (256 * 1024)
/* A signal that comes just before the call has no effect; so it is sent again. */
#define INTERRUPT_EVERY (20 * NSEC_PER_MSEC)

struct connect_call {
	pthread_t thread;
	int wake_cm;
	struct rdma_cm_id *id;
	struct rdma_conn_param param;
	uint8_t data[CMDATA_REQUEST_LEN];
	int result; /* valid when done */
	atomic_bool done;
};

static void on_signal(int number)
{
	(void)number; /* to come back with EINTR is all */
}

static void *run(void *arg)
{
	struct connect_call *c = arg;
	int r;

	errno = 0;
	r = rdma_connect(c->id, &c->param);
	c->result = cm_result(r, errno);
	atomic_store(&c->done, true);
	wake(c->wake_cm);
	return NULL;
}

static int start_thread(struct connect_call *c)
{
	struct sigaction sa = {.sa_handler = on_signal}; /* no SA_RESTART */
	pthread_attr_t attr;
	int r;

	if (sigaction(CONNECT_SIGNAL, &sa, NULL) < 0)
		return -errno;
	r = pthread_attr_init(&attr);
	if (r)
		return -r;
	(void)pthread_attr_setstacksize(&attr, CONNECT_STACK);
	r = pthread_create(&c->thread, &attr, run, c);
	(void)pthread_attr_destroy(&attr);
	return -r;
}

void cm_connect(struct cm *cm, struct endpoint *ep, const struct rdma_conn_param *param)
{
	struct connect_call *c;
	int r;

	if (!cm->ctx.iwarp) {
		struct rdma_conn_param copy = *param;

		r = CM_CALL(cm, rdma_connect, ep->id, &copy);
		if (r < 0)
			cm_fail_call(cm, ep, "rdma_connect", r);
		return;
	}
	c = xcalloc(1, sizeof(*c));
	c->wake_cm = cm->w->wake_cm;
	c->id = ep->id;
	c->param = *param;
	memcpy(c->data, param->private_data, sizeof(c->data));
	c->param.private_data = c->data;
	r = start_thread(c);
	if (r < 0) {
		free(c);
		cm_fail_call(cm, ep, "pthread_create", r);
		return;
	}
	ep->connecting = c;
}

/* false: still in the call. */
static bool finish(struct cm *cm, struct endpoint *ep)
{
	struct connect_call *c = ep->connecting;
	int r;

	if (!atomic_load(&c->done))
		return false;
	(void)pthread_join(c->thread, NULL);
	r = c->result;
	free(c);
	ep->connecting = NULL;
	if (r < 0)
		cm_fail_call(cm, ep, "rdma_connect", r == -EINTR ? -ETIMEDOUT : r);
	return true;
}

void cm_connect_poll(struct cm *cm, struct mono now)
{
	for (uint32_t i = 0; cm->ctx.iwarp && i < cm->table.n; i++) {
		struct endpoint *ep = cm->table.slots[i];

		if (ep && ep->connecting && finish(cm, ep))
			cm_close_step(cm, ep, now);
	}
}

bool cm_connect_over(struct cm *cm, struct endpoint *ep, struct mono now)
{
	if (!ep->connecting || finish(cm, ep))
		return true;
	(void)pthread_kill(ep->connecting->thread, CONNECT_SIGNAL);
	cm_arm(cm, ep, mono_add(now, INTERRUPT_EVERY));
	return false;
}
