/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dot.h - a subnet as a graph in the language of Graphviz: ranks by level (switches above
 * the switches below them, hosts at the bottom), parallel links as one edge with their
 * number, degraded and down links coloured, readable at 50 nodes. Pure.
 */
#pragma once

#include "subnet.h"

/* The text, owned by the caller. Quotes and control characters in names are escaped. */
char *dot_text(const struct subnet *s, const char *title);
