/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl reset, fabctl port set: what changes something, by the admin socket. */
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "names.h"
#include "units.h"

/* Call on the admin socket; new reference or NULL, told. */
static json_t *admin_call(struct cli *c, const char *method, json_t *parameters)
{
	struct client *client = cli_client(c, true);

	if (!client) {
		json_decref(parameters);
		return NULL;
	}
	return client_call(client, method, parameters);
}

int admin_reset(struct cli *c)
{
	_cleanup_(freep) char *name = NULL;
	int64_t n;
	json_t *reply;
	int r = EXIT_OK;

	if (c->argc != 1)
		return cli_usage("usage: fabctl reset PEER[/RAIL]|KEY");
	name = cli_name(c->argv[0]);
	reply = admin_call(c, "io.fabd.ResetConnection",
			   json_pack("{s:s}", "connection", name));
	if (!reply)
		return EXIT_ERROR;
	n = get_count(reply, "count");
	if (cli_is_text(c))
		(void)fprintf(c->layout.out, "%" PRId64 " connection%s of %s reset\n",
			      n, n == 1 ? "" : "s", name);
	else
		r = json_out(c, reply);
	json_decref(reply);
	return r;
}

static int put_override(const struct cli *c, const json_t *p)
{
	const char *until = get_text(p, "override_until"),
		   *by = get_text(p, "override_by");
	const char *override = get_text(p, "override");
	FILE *out = c->layout.out;

	if (str_eq(override, "auto"))
		(void)fprintf(out, "%s: health is judged again; now %s\n",
			      get_shown(p, "name"), unit_health(get_text(p, "health")));
	else
		(void)fprintf(out, "%s: health set %s%s%s%s%s\n", get_shown(p, "name"),
			      get_shown(p, "override"), by ? " by " : "", by ? by : "",
			      until ? " until " : " without end", until ? until : "");
	return EXIT_OK;
}

int admin_port_set(struct cli *c)
{
	_cleanup_(freep) char *name = NULL;
	json_t *parameters, *reply, *port;
	int health, r;

	if (c->argc != 3 || !str_eq(c->argv[1], "health"))
		return cli_usage(
			"usage: fabctl port set DEV/PORT health auto|ok|bad [for 2h]");
	health = enum_find(&override_names, c->argv[2]);
	if (health < 0)
		return cli_usage("health is auto, ok or bad, not '%s'", c->argv[2]);
	if (health == OVERRIDE_AUTO && c->for_sec)
		return cli_usage("health auto has no end: leave the time away");
	name = cli_name(c->argv[0]);
	parameters = json_pack("{s:s, s:s}", "port", name, "health",
			       enum_name(&override_names, health));
	if (c->for_sec)
		(void)json_object_set_new(parameters, "for_sec",
					  json_integer(c->for_sec));
	reply = admin_call(c, "io.fabd.SetPortHealth", parameters);
	if (!reply)
		return EXIT_ERROR;
	port = get_object(reply, "port");
	if (!port)
		r = cli_error("the answer to SetPortHealth has no port: is this fabd?");
	else if (cli_is_text(c))
		r = put_override(c, port);
	else
		r = json_out(c, port);
	json_decref(reply);
	return r;
}
