/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_umad.h - a scripted libibumad, linked instead of the real one. The test plays
 * the fabric: it looks at what was sent and puts answers, good and bad, into the
 * receive queue. Misuse that the real library or the kernel would punish (a receive
 * buffer too small, *length not set again, use after close, a transaction twice) fails
 * the test at fake_umad_end().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A request as it was sent. */
struct fake_sent {
	uint8_t header[64]; /* the library's: ids, then the address from byte 20 */
	uint8_t mad[256];
	uint32_t tid; /* low half */
	int timeout_ms, retries;
	bool answered;
};

void fake_umad_begin(void);
/* Number of things that are wrong: misuse, ports or agents left open. Says them. */
int fake_umad_end(void);

/* What the next opens give: 0, or an errno. */
void fake_umad_open_error(int error);
void fake_umad_register_error(bool fails);
/* Another process has the Reports. */
void fake_umad_reports_taken(bool taken);
/* What sends give: 0, or an errno. */
void fake_umad_send_error(int error);
/* The device is removed: receives and sends fail with EIO from now on. */
void fake_umad_remove(void);
/* What receives give when nothing is queued: 0 = wait, or an errno, or -1 = an empty
 * read at once. */
void fake_umad_recv_error(int error);

int fake_umad_opens(void);	   /* so far */
int fake_umad_sent(void);	   /* so far */
uint64_t fake_umad_received(void); /* packets, since the last open */
int fake_umad_inside(void);	   /* sent and not answered nor given up */
/* The @i-th; also the time-out of the kernel can be told of one. */
const struct fake_sent *fake_umad_request(int i);

/* Answer the @i-th request well: its response, D bit, upper half of the TID overwritten. */
void fake_umad_answer(int i);
/* Queue these bytes for agent @agent (-1: whose it is) with that umad status. The
 * header says that they come from FAKE_SLID. More than a receive has room for stays at the
 * head of the queue: ENOSPC, and the length that it needs. */
#define FAKE_SLID 0x0123
void fake_umad_put(const uint8_t *mad, int len, int status, int agent);
/* A good answer to the @i-th, to be spoilt by the test and put. */
void fake_umad_make_answer(int i, uint8_t mad[256]);
int fake_umad_agent(uint8_t class); /* -1: not registered */
/* Wait until all that was put has been received. */
void fake_umad_drain(void);
