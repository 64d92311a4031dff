/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_fabric.h - the fabric of the host that does not exist: two spines, two leaves,
 * four hosts, one link at half its width, one error. Real objects, really rendered;
 * times are fixed.
 */
#pragma once

#include "api.h"

struct fake_fabric;
struct fake_fabric *fake_fabric_new(void);
struct fake_fabric *fake_fabric_free(struct fake_fabric *f);
json_t *fake_fabric_summary(const struct fake_fabric *f);
json_t *fake_fabric_sa(void);
json_t *fake_fabric_next(const struct fake_fabric *f, enum api_list list, uint64_t *cursor);
const char *fake_fabric_route(const struct fake_fabric *f, const char *from, const char *to,
			      json_t **ret);
/* The error's name, or NULL; as the answer to a ticket. */
const char *fake_fabric_port(const struct fake_fabric *f, const char *name, json_t **ret);
