/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz.h - a fuzz target: feed one input to the code under test; abort() when a property
 * does not hold. Linked with fuzz_main.c (a test over a corpus) or with libFuzzer.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
