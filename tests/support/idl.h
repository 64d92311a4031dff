/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idl.h - a Varlink interface definition as JSON, and whether a value fits a type of
 * it.
 * {"types": {NAME: TYPE}, "methods": {NAME: {"in": TYPE, "out": TYPE}}, "errors":
 * {NAME: TYPE}}; TYPE is a name ("int", "Port"), {"maybe": TYPE}, {"array": TYPE},
 * {"map": TYPE}, {"struct": {FIELD: TYPE}} or {"enum": [NAME]}.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

json_t *idl_parse(const char *text); /* NULL: wrong, said on standard error */
json_t *idl_type(const json_t *idl, const char *name);
json_t *idl_method(const json_t *idl, const char *name);
/* All fields of a struct and no others, of the right types. 0; -1 with @why. */
int idl_check(const json_t *idl, const json_t *type, const json_t *value, char *why,
	      size_t size);
