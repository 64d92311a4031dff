/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * channel.h - the SOCK_SEQPACKET connection to main: checked messages in, a bounded
 * queue of messages out. Never blocks.
 */
#pragma once

#include "worker.h"

#define CHANNEL_QUEUE_MAX 16384 /* a table of 4 MiB is 1024 messages */

struct channel;

struct channel *channel_new(int fd); /* takes the fd */
/* Sends what fits into the socket, then closes. NULL-safe, returns NULL. */
struct channel *channel_free(struct channel *c);
int channel_fd(const struct channel *c);
bool channel_wants_write(const struct channel *c);

/* Copy a message to the queue. One that makes it too long is dropped and the channel
 * has failed for good. */
void channel_send(struct channel *c, const void *msg, size_t size);
/* 0; -ENOBUFS after an overflow; another -errno when the connection is broken. */
int channel_flush(struct channel *c);

/* One message that passed wm_check(), into @buf: its length; 0: none now; -ECONNRESET:
 * the end; -EPROTO and the like: the other end is broken, @why says how. */
int channel_recv(struct channel *c, uint8_t buf[WM_MAX], char *why, size_t why_size);
