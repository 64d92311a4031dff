/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config_int.h - what the config files share among themselves: the rows, their values
 * as text, and the parser, which takes any number of texts before it is finished.
 * Nobody else includes it.
 *
 *   config_table.c    the rows
 *   config.c          lines, sections, keys
 *   config_problem.c  what is wrong with them, what was meant
 *   config_value.c    a row's value as text; its kinds:
 *   config_number.c   numbers, times, sizes, rates
 *   config_word.c     words, paths, names, addresses
 *   config_list.c     lists
 *   config_check.c    what rows mean together
 *   config_read.c     files and key files
 *   config_print.c    dump, sample, manual
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "config.h"

enum config_section {
	SECTION_FABD,
	SECTION_PORTS,
	SECTION_HEALTH,
	SECTION_EXPECT,
	SECTION_PORT,
	SECTION_PROBE,
	SECTION_PEER,
	SECTION__MAX
};

enum row_type {
	ROW_BOOL,
	ROW_COUNT,	  /* uint32_t, or uint16_t by its size */
	ROW_REAL,	  /* double */
	ROW_TIME,	  /* int64_t, ns */
	ROW_SIZE,	  /* uint32_t, bytes */
	ROW_RATE,	  /* uint32_t, Mb/s */
	ROW_SHARE,	  /* struct check_share */
	ROW_LABEL,	  /* char[]: a name that goes into keys and tables */
	ROW_PATH,	  /* char[]: absolute */
	ROW_PROGRAM,	  /* char[]: absolute, or a name to be found in $PATH */
	ROW_ENUM,	  /* int: enum_names, counted from row->min */
	ROW_TRANSPORTS,	  /* uint32_t, set of 1 << enum transport */
	ROW_ADDRESS,	  /* struct addr */
	ROW_PORT_ADDRESS, /* struct addr and its text */
	/* lists: repeated assignments append, an empty one clears */
	ROW_ADDRESSES,	    /* struct addr[] */
	ROW_PEER_ADDRESSES, /* struct config_addr *, grown */
	ROW_RANGES,	    /* struct addr_range[] */
	ROW_LABELS,	    /* char **, grown */
	ROW_GLOBS,	    /* char[], blank-separated */
	ROW_LIMITS	    /* struct counter_limits; changes to its defaults */
};

/* A bad value of such a row leaves the whole peer (or port) out: it says who the peer
 * is or whom to trust, and the default would say something else. */
#define ROW_VITAL 1
/* An empty value is a value; else it means "back to the default". */
#define ROW_MAY_BE_EMPTY 2
/* A count that may be none: the field holds 1 + the value, 0 = none. */
#define ROW_MAY_BE_NONE 4

struct config_row {
	enum config_section section; /* rows of [Probe] serve [Peer NAME] too */
	const char *key;
	enum row_type type;
	unsigned flags;
	size_t offset,
		size;	 /* in struct config, config_port, config_probe, config_peer */
	size_t n_offset; /* of the int that counts a list */
	double min,
		max; /* in the unit of the field; of text: longest; of lists: most */
	const char *def;  /* as text; "" = none */
	const char *unit; /* for the manual: what the value is */
	const struct enum_names *names;
	const char *help;
};

extern const struct config_row config_rows[];
extern const size_t config_n_rows;
#define CONFIG_ROWS_MAX 128

/* A set of rows, by their place in the table. */
struct config_row_set {
	uint64_t bits[CONFIG_ROWS_MAX / 64];
};
static inline bool row_set_has(const struct config_row_set *s, size_t row)
{
	return s->bits[row / 64] >> row % 64 & 1;
}
static inline void row_set_put(struct config_row_set *s, size_t row, bool in)
{
	uint64_t bit = UINT64_C(1) << row % 64;

	s->bits[row / 64] = in ? s->bits[row / 64] | bit : s->bits[row / 64] & ~bit;
}

const char *config_section_name(enum config_section s); /* "Fabd" */
const char *config_section_title(enum config_section s); /* "[Port NAME]" */
bool config_section_is_named(enum config_section s);	/* [Port NAME], [Peer NAME] */
/* Does @r stand in section @s? A [Probe] row also stands in [Peer]. */
bool config_row_in(const struct config_row *r, enum config_section s);
const struct config_row *config_row_find(enum config_section s, const char *key);
bool config_type_is_list(enum row_type t);
/* What a value of the row looks like, for messages and the manual: "a time from 100ms
 * to 1h". */
void config_row_range(const struct config_row *r, char *buf, size_t size);
/* Fill the rows of @s in @base with their defaults. */
void config_defaults(enum config_section s, void *base);

/* Read @text into the row's field of @base. Lists: the value is appended unless @fresh.
 * 0; or -EINVAL with what was meant in @err, the field unchanged. */
#define CONFIG_ERR_MAX 256
int config_value_parse(const struct config_row *r, void *base, const char *text,
		       bool fresh, char err[CONFIG_ERR_MAX]);
void config_value_reset(const struct config_row *r, void *base); /* to the default */
/* Text that config_value_parse() reads as the same value. */
void config_value_print(const struct config_row *r, const void *base, FILE *f);
bool config_value_equal(const struct config_row *r, const void *a, const void *b);
void config_value_copy(const struct config_row *r, void *to, const void *from);
const char *config_time_text(int64_t ns, char buf[32]); /* "300ms" */
bool config_host_name_valid(const char *s);
/* @s as it may be shown in a message: cut with "..." and without odd bytes. */
const char *config_quote(const char *s, char buf[72]);

/* ---- kinds of values: what config_value.c is made of ---- */

#define VALUE_BLANKS " \t"
static inline void *row_field(const struct config_row *r, void *base)
{
	return (char *)base + r->offset;
}
static inline const void *row_cfield(const struct config_row *r, const void *base)
{
	return (const char *)base + r->offset;
}
static inline int *row_count(const struct config_row *r, void *base) /* of a list */
{
	return (int *)(void *)((char *)base + r->n_offset);
}
static inline int row_n(const struct config_row *r, const void *base)
{
	return *(const int *)(const void *)((const char *)base + r->n_offset);
}

/* -EINVAL, with the text in @err. So do all that parse: 0, or -EINVAL and the value
 * unchanged. */
int config_wrong(char err[CONFIG_ERR_MAX], const char *fmt, ...) PRINTF_LIKE(2, 3);
int config_number_parse(const struct config_row *r, void *base, const char *text,
			char err[CONFIG_ERR_MAX]);
void config_rate_print(uint32_t mbps, FILE *f);
int config_bool_parse(const char *text, bool *ret);
int config_enum_parse(const struct config_row *r, int *ret, const char *text,
		      char err[CONFIG_ERR_MAX]);
int config_path_parse(const struct config_row *r, char *dst, const char *text,
		      char err[CONFIG_ERR_MAX]);
int config_program_parse(const struct config_row *r, char *dst, const char *text,
			 char err[CONFIG_ERR_MAX]);
int config_label_parse(char *dst, size_t size, const char *text,
		       char err[CONFIG_ERR_MAX]);
int config_ip_parse(const char *text, struct addr *ret, char *zone,
		    char err[CONFIG_ERR_MAX]); /* @zone NULL: no zone by name */
int config_peer_addr_parse(const char *text, struct config_addr *ret,
			   char err[CONFIG_ERR_MAX]); /* @ret->text: the caller's */
int config_port_addr_parse(struct config_port *p, const char *text,
			   char err[CONFIG_ERR_MAX]);
void config_addr_print(const struct addr *a, FILE *f);

bool config_is_grown(const struct config_row *r); /* its list has memory of its own */
void config_grown_clear(const struct config_row *r, void *base);
int config_grown_parse(const struct config_row *r, void *base, const char *text,
		       bool fresh, char err[CONFIG_ERR_MAX]);
int config_list_parse(const struct config_row *r, void *base, const char *text,
		      bool fresh, char err[CONFIG_ERR_MAX]);
void config_list_print(const struct config_row *r, const void *base, FILE *f);
bool config_grown_equal(const struct config_row *r, const void *a, const void *b);
bool config_list_equal(const struct config_row *r, const void *a, const void *b);

/* Where a row was set; line 0 = not set. */
struct config_origin {
	int file; /* index into the config's files */
	int line;
};
struct config_origins {
	struct config_origin section;
	struct config_row_set bad_rows; /* whose last value was refused */
	bool bad;			/* to be left out */
	struct config_probe *own; /* owned: what a peer says of [Probe] itself; or NULL */
	struct {
		int row;
		struct config_origin at;
	} *set; /* owned: the rows that were set, few of all */
	int n_set;
};
struct config_origin config_origin_get(const struct config_origins *o, size_t row);
void config_origin_put(struct config_origins *o, size_t row, struct config_origin at);

struct config_parser {
	struct config *c;
	struct config_problems *problems;
	bool read_keys;
	int line;
	/* the section at hand */
	bool skip; /* bad or unknown section: its keys are not looked at */
	bool in_section;
	enum config_section section;
	int index;     /* of the port or peer */
	struct config_row_set seen; /* rows set since the section's header */
	struct config_origins *global, *ports, *peers; /* owned; ports and peers as many
							 as in the config */
	int ports_room, peers_room;
};

void config_parser_init(struct config_parser *p, struct config_problems *problems,
			bool read_keys);
void config_parser_text(struct config_parser *p, const char *name, const char *text,
			size_t len);
/* Inherit, check, leave out what is bad. The caller owns the result. */
struct config *config_parser_finish(struct config_parser *p);

enum problem_kind { PROBLEM_WARNING, PROBLEM_UNKNOWN, PROBLEM_ERROR };
void config_problem(struct config_parser *p, enum problem_kind kind,
		    struct config_origin at, const char *fmt, ...) PRINTF_LIKE(4, 5);
void config_problems_sort(struct config_parser *p); /* in the order of the files */
struct config_origin config_here(const struct config_parser *p); /* the line at hand */
/* Both with what may have been meant. */
void config_unknown_key(struct config_parser *p, const char *key);
void config_unknown_section(struct config_parser *p, const char *kind);

struct config_probe *config_probe_new(void);
/* Free what a peer owns. */
void config_peer_done(struct config_peer *peer);
/* The place of a new peer's name, or what has the name already. -1: it is new. */
int config_peer_index(const struct config *c, const char *name);
void config_index_peer(struct config *c, int i);
void config_reindex(struct config *c); /* after peers have moved */
/* One peer more address, a name to be resolved. */
void config_peer_add_name(struct config_peer *peer, const char *name);

/* config_check.c: the second half of config_parser_finish(). */
void config_check(struct config_parser *p);

/* config_read.c. config_load() with every path given; of drop-ins with one name that of
 * the last directory counts. */
struct config *config_load_from(const char *main_file, bool may_be_missing,
				const char *const *dirs, int n_dirs,
				struct config_problems *ret_problems, char **ret_text);
/* 0; 1 if others may read it; -errno with a line in @err. */
int config_key_file_read(const char *path, struct auth_keys *ret,
			 char err[CONFIG_ERR_MAX]);
