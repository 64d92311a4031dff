/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl device: a line an RDMA device, or everything about one. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "units.h"

/* The fields with @reason, and @reason after them. */
static void put_reason(const struct layout *l, const char *label, const json_t *missing,
		       const char *reason)
{
	size_t size = 0, n = 0;
	char *text = NULL;
	const char *key;
	json_t *why;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		abort();
	json_object_foreach ((json_t *)missing, key, why)
		if (str_eq(json_string_value(why), reason))
			(void)fprintf(f, "%s%s", n++ ? ", " : "", key);
	if (fclose(f))
		abort();
	block_line(l, label, "%s: %s", unit_word(reason), text);
	free(text);
}

void put_unavailable(const struct layout *l, const char *label, const json_t *o)
{
	const json_t *missing = get_object(o, "unavailable");
	_cleanup_(freep) const char **told =
		xcalloc(json_object_size(missing), sizeof(*told));
	size_t n = 0, i;
	const char *key;
	json_t *why;

	json_object_foreach ((json_t *)missing, key, why) {
		const char *reason = json_string_value(why);

		for (i = 0; i < n && !str_eq(told[i], reason); i++)
			;
		if (i < n || !reason)
			continue;
		put_reason(l, n ? "" : label, missing, reason);
		told[n++] = reason;
	}
}

/* "x16 16.0 GT/s"; with "of x16 32.0 GT/s" where it could be more. */
static char *pcie_text(const json_t *d)
{
	const char *speed = get_text(d, "pcie_speed"),
		   *top = get_text(d, "pcie_speed_max");
	int64_t width, most;

	if (!get_int(d, "pcie_width", &width) || !speed)
		return xstrdup("-");
	if (!get_int(d, "pcie_width_max", &most) || !top ||
	    (width == most && str_eq(speed, top)))
		return xasprintf("x%" PRId64 " %s", width, speed);
	return xasprintf("x%" PRId64 " %s of x%" PRId64 " %s", width, speed, most, top);
}

/* The workers that do not run, "ok" if all do. */
static char *workers_text(const json_t *d, bool *ret_well)
{
	const json_t *workers = get_array(d, "workers"), *w;
	char text[256] = "";
	size_t i;

	json_array_foreach (workers, i, w) {
		const char *state = get_text(w, "state");

		if (!str_eq(state, "running"))
			str_append(text, sizeof(text), "%s%s %s %s", *text ? ", " : "",
				   get_shown(w, "kind"), unit_word(state),
				   unit_age(get_sec(w, "age_sec")));
	}
	*ret_well = !*text && json_array_size(workers);
	if (!*text)
		(void)str_copy(text, sizeof(text),
			       json_array_size(workers) ? "ok" : "none");
	return xstrdup(text);
}

static bool is_well(const json_t *d)
{
	bool well;

	free(workers_text(d, &well));
	return well;
}

static void put_table(const struct cli *c, const json_t *devices)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"DEVICE", false, 0}, {"TYPE", false, 0}, {"TRANSPORT", false, 0},
		{"PORTS", true, 0}, {"FW", false, 0}, {"PCI", false, 0},
		{"PCIE", false, 0}, {"NUMA", true, 0}, {"WORKERS", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	size_t i;
	json_t *d;

	json_array_foreach (devices, i, d) {
		bool well;
		_cleanup_(freep) char *pcie = pcie_text(d),
				      *workers = workers_text(d, &well);
		char numa[24];

		table_cell(t, TINT_NONE, "%s", get_shown(d, "ifname"));
		table_cell(t, TINT_NONE, "%s%s", get_shown(d, "node_type"),
			   get_true(d, "is_vf") ? " vf" : "");
		table_cell(t, TINT_NONE, "%s", get_shown(d, "transport"));
		table_cell(t, TINT_NONE, "%zu", json_array_size(get_array(d, "ports")));
		table_cell(t, TINT_NONE, "%s", get_shown(d, "fw"));
		table_cell(t, TINT_NONE, "%s", get_shown(d, "pci_address"));
		table_cell(t, TINT_NONE, "%s", pcie);
		table_cell(t, TINT_NONE, "%s", get_number(d, "numa_node", numa));
		table_cell(t, well ? TINT_GOOD : TINT_BAD, "%s", workers);
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

static void put_block(const struct cli *c, const json_t *d)
{
	_cleanup_(freep) char *pcie = pcie_text(d),
			      *ports = get_joined(d, "ports", " ");
	const json_t *vf = json_object_get(d, "is_vf");
	const struct layout *l = &c->layout;
	char a[24], b[24];
	size_t i;
	json_t *w;

	(void)fprintf(l->out, "%s\n", get_shown(d, "ifname"));
	block_line(l, "ports", "%s; the device says %s", ports,
		   get_number(d, "num_ports", a));
	block_line(l, "type", "%s, %s%s", get_shown(d, "node_type"),
		   get_shown(d, "transport"),
		   json_is_true(vf) ? ", virtual function" : "");
	block_line(l, "description", "%s", get_shown(d, "node_desc"));
	block_line(l, "guid", "%s; system image %s", get_shown(d, "node_guid"),
		   get_shown(d, "sys_image_guid"));
	block_line(l, "hardware", "vendor %s part %s version %s; firmware %s",
		   get_shown(d, "vendor_id"), get_shown(d, "part_id"),
		   get_shown(d, "hw_ver"), get_shown(d, "fw"));
	block_line(l, "pci", "%s, %s, numa node %s", get_shown(d, "pci_address"), pcie,
		   get_number(d, "numa_node", a));
	block_line(l, "index", "%s", get_number(d, "ifindex", b));
	block_line(l, "since", "%s, %s", get_shown(d, "since"),
		   unit_age(get_sec(d, "age_sec")));
	json_array_foreach (get_array(d, "workers"), i, w) {
		const char *text = get_text(w, "why");

		block_line(l, i ? "" : "workers",
			   "%s %s %s, pid %s, start %" PRId64 "%s%s",
			   get_shown(w, "name"), unit_word(get_text(w, "state")),
			   unit_age(get_sec(w, "age_sec")), get_number(w, "pid", a),
			   get_count(w, "starts"), text && *text ? ": " : "",
			   text ? text : "");
	}
	put_unavailable(l, "unavailable", d);
}

static void put_blocks(const struct cli *c, const json_t *devices)
{
	size_t i;
	json_t *d;

	json_array_foreach (devices, i, d) {
		if (i)
			(void)fputc('\n', c->layout.out);
		put_block(c, d);
	}
}

static void keep(json_t *devices, const char *name, bool not_ok)
{
	for (size_t i = json_array_size(devices); i-- > 0;) {
		json_t *d = json_array_get(devices, i);

		if ((name && !str_eq(get_text(d, "ifname"), name)) ||
		    (not_ok && is_well(d)))
			(void)json_array_remove(devices, i);
	}
}

int show_device(struct cli *c)
{
	const char *name;
	json_t *devices;
	size_t total;
	int r = EXIT_OK;

	if (!cli_one_word(c, &name))
		return EXIT_USAGE;
	devices = cli_list(c, "io.fabd.ListDevices", NULL, "devices");
	if (!devices)
		return EXIT_ERROR;
	keep(devices, name, false);
	total = json_array_size(devices);
	keep(devices, NULL, c->not_ok);
	if (name && !total)
		r = cli_error("no device %s: fabctl device lists them", name);
	else if (!cli_is_text(c))
		r = json_out(c, devices);
	else if (!total)
		(void)fputs("no RDMA device on this host\n", c->layout.out);
	else if (!json_array_size(devices))
		cli_all_are(c, total, "device", "ok: the workers run");
	else if (c->verbose || name)
		put_blocks(c, devices);
	else
		put_table(c, devices);
	json_decref(devices);
	return r;
}
