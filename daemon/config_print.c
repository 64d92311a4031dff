/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_int.h"

#include <stdlib.h>

static const enum config_section order[] = {SECTION_FABD, SECTION_PORTS, SECTION_HEALTH,
					    SECTION_EXPECT, SECTION_PORT, SECTION_PROBE,
					    SECTION_PEER};

/* ---- dump ---- */

/* @from: rows that are equal there need not be said; NULL: all are. */
static void dump_rows(FILE *f, enum config_section s, const void *base,
		      const void *from)
{
	for (size_t i = 0; i < config_n_rows; i++) {
		const struct config_row *r = &config_rows[i];

		if (r->section != s || (from && config_value_equal(r, base, from)))
			continue;
		fprintf(f, "%s=", r->key);
		config_value_print(r, base, f);
		fputc('\n', f);
	}
}

char *config_dump(const struct config *c)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		abort();
	fputs("[Fabd]\n", f);
	dump_rows(f, SECTION_FABD, c, NULL);
	fputs("\n[Ports]\n", f);
	dump_rows(f, SECTION_PORTS, c, NULL);
	fputs("\n[Health]\n", f);
	dump_rows(f, SECTION_HEALTH, c, NULL);
	fputs("\n[Expect]\n", f);
	dump_rows(f, SECTION_EXPECT, c, NULL);
	for (int i = 0; i < c->n_ports; i++) {
		fprintf(f, "\n[Port %s]\n", c->ports[i].name);
		dump_rows(f, SECTION_PORT, &c->ports[i], NULL);
	}
	fputs("\n[Probe]\n", f);
	dump_rows(f, SECTION_PROBE, c->probe, NULL);
	for (int i = 0; i < c->n_peers; i++) {
		fprintf(f, "\n[Peer %s]\n", c->peers[i].name);
		dump_rows(f, SECTION_PEER, &c->peers[i], NULL);
		dump_rows(f, SECTION_PROBE, c->peers[i].probe, c->probe);
	}
	if (fclose(f))
		abort();
	return text;
}

/* ---- sample ---- */

/* @text after @prefix on each line, broken at blanks before column 80. */
static void wrap(FILE *f, const char *prefix, const char *text)
{
	size_t col = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (col && col + 1 + n > 79) {
			fputc('\n', f);
			col = 0;
		}
		if (!col)
			col = (size_t)fprintf(f, "%s%.*s", prefix, (int)n, text);
		else
			col += (size_t)fprintf(f, " %.*s", (int)n, text);
		text += n;
		text += strspn(text, " ");
	}
	fputc('\n', f);
}

static const char *section_intro(enum config_section s)
{
	switch (s) {
	case SECTION_FABD:
		return "The daemon itself.";
	case SECTION_PORTS:
		return "RDMA devices and ports of this host.";
	case SECTION_HEALTH:
		return "When a port is degraded, and when it is well again.";
	case SECTION_EXPECT:
		return "What fabctl check demands of this host.";
	case SECTION_PORT:
		return "What only the operator knows of a port, as mlx5_0/1. A section per "
		       "port.";
	case SECTION_PROBE:
		return "How peers are probed. Each key may stand in [Peer NAME] too, for that "
		       "peer alone.";
	case SECTION_PEER:
		return "A host to probe, and to be probed by. A section per peer. NAME has no "
		       "blank and none of / : > #.";
	case SECTION__MAX:
		break;
	}
	return "";
}

static const char *section_header(enum config_section s)
{
	return s == SECTION_PORT   ? "#[Port mlx5_0/1]"
	       : s == SECTION_PEER ? "#[Peer gpu0002]"
				   : NULL;
}

char *config_sample(void)
{
	char *text = NULL, range[160];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		abort();
	fputs("# SPDX-License-Identifier: BSD-2-Clause\n"
	      "# Configuration of fabd, see fabd.conf(5). Every key is shown with its "
	      "default.\n"
	      "# Drop-ins in /etc/fabd/fabd.conf.d/*.conf are read after this file.\n"
	      "# Check: fabd --check-config. Take over: systemctl reload fabd\n",
	      f);
	for (size_t s = 0; s < ARRAY_LEN(order); s++) {
		fputc('\n', f);
		wrap(f, "# ", section_intro(order[s]));
		if (section_header(order[s]))
			fprintf(f, "%s\n", section_header(order[s]));
		else
			fprintf(f, "[%s]\n", config_section_name(order[s]));
		for (size_t i = 0; i < config_n_rows; i++) {
			const struct config_row *r = &config_rows[i];

			if (r->section != order[s])
				continue;
			fputc('\n', f);
			wrap(f, "# ", r->help);
			config_row_range(r, range, sizeof(range));
			fprintf(f, "# (%s)\n#%s=%s\n", range, r->key, r->def);
		}
	}
	if (fclose(f))
		abort();
	return text;
}

/* ---- manual ---- */

/* For troff: no line may begin with a control character, '\' and '-' are not plain. */
static void roff(FILE *f, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", f);
	for (; *text; text++)
		if (*text == '\\')
			fputs("\\e", f);
		else if (*text == '-')
			fputs("\\-", f);
		else
			fputc(*text, f);
}

char *config_man(void)
{
	char *text = NULL, range[160];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		abort();
	for (size_t s = 0; s < ARRAY_LEN(order); s++) {
		fprintf(f, ".SH \"[%s%s] SECTION\"\n", config_section_name(order[s]),
			order[s] == SECTION_PORT   ? " DEVICE/PORT"
			: order[s] == SECTION_PEER ? " NAME"
						   : "");
		roff(f, section_intro(order[s]));
		fputc('\n', f);
		for (size_t i = 0; i < config_n_rows; i++) {
			const struct config_row *r = &config_rows[i];

			if (r->section != order[s])
				continue;
			fprintf(f, ".TP\n.B %s=\n", r->key);
			roff(f, r->help);
			config_row_range(r, range, sizeof(range));
			fputs("\nValue: ", f);
			roff(f, range);
			fputs(".", f);
			if (*r->def) {
				fputs("\nDefault: ", f);
				roff(f, r->def);
				fputs(".", f);
			}
			fputc('\n', f);
		}
	}
	if (fclose(f))
		abort();
	return text;
}
