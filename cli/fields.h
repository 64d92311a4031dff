/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fields.h - reading fields of the daemon's JSON objects. A field that is missing, null
 * or of another type reads as absent: an older or newer daemon must not break a line.
 */
#pragma once

#include <jansson.h>

#include "util.h"

const char *get_text(const json_t *o, const char *key);	 /* NULL if absent */
const char *get_shown(const json_t *o, const char *key); /* "-" if absent or empty */
bool get_int(const json_t *o, const char *key, int64_t *ret);
int64_t get_count(const json_t *o, const char *key); /* 0 if absent */
double get_sec(const json_t *o, const char *key);    /* -1 if absent */
bool get_true(const json_t *o, const char *key);
json_t *get_array(const json_t *o, const char *key);  /* borrowed; NULL if absent */
json_t *get_object(const json_t *o, const char *key); /* borrowed; NULL if absent */
/* A number as text in @buf, "-" if absent. */
const char *get_number(const json_t *o, const char *key, char buf[24]);
/* Why a field is null: "no-permission"; NULL if nothing is said. */
const char *get_why(const json_t *o, const char *key);
/* An array of texts joined by @sep; "-" if absent or empty. The caller frees it. */
char *get_joined(const json_t *o, const char *key, const char *sep);
/* "leaf07/22" of a FabricEnd; "-" if it is NULL. The caller frees it. */
char *get_end(const json_t *end);
/* Sort an array of objects in place. */
typedef int json_compare_fn(const json_t *a, const json_t *b);
void json_sort(json_t *array, json_compare_fn *compare);
