/* SPDX-License-Identifier: BSD-2-Clause */
#include "render.h"

static json_t *render_step(const struct explain_line *line)
{
	json_t *o = json_object();

	render_text(o, "step", enum_name(&explain_step_names, (int)line->step));
	render_text(o, "mark", enum_name(&explain_mark_names, (int)line->mark));
	render_text(o, "text", line->text);
	render_set(o, "detail", json_boolean(line->detail));
	return o;
}

json_t *render_explanation(const struct explain_facts *f, const struct explanation *e,
			   const struct conn_key *key, struct mono since,
			   const struct render_time *t)
{
	json_t *o = json_object(), *steps = json_array();
	char text[CONN_KEY_MAX];

	render_text(o, "peer", f->peer);
	render_text(o, "rail", f->rail && f->rail[0] ? f->rail : NULL);
	render_text(o, "transport",
		    key ? enum_name(&transport_names, (int)f->transport) : NULL);
	render_text(o, "connection", key ? conn_key_format(key, text) : NULL);
	render_text(o, "port", f->port[0] ? f->port : NULL);
	render_text(o, "verdict", enum_name(&verdict_names, (int)f->given.verdict));
	render_text(o, "own_verdict", enum_name(&verdict_names, (int)f->inner.verdict));
	render_text(o, "why", f->given.why);
	render_since(o, since, t);
	render_text(o, "place", enum_name(&fault_place_names, (int)e->place));
	render_text(o, "act", e->act);
	render_text(o, "wrong", e->wrong < STEP__MAX
					? enum_name(&explain_step_names, (int)e->wrong)
					: NULL);
	for (int i = 0; i < e->n_lines; i++)
		(void)json_array_append_new(steps, render_step(&e->lines[i]));
	render_set(o, "steps", steps);
	return o;
}

json_t *render_check(const struct check_run *c, struct mono oldest, const struct render_time *t)
{
	json_t *o = json_object(), *problems = json_array();

	render_text(o, "status", enum_name(&check_status_names, (int)c->status));
	render_text(o, "found", enum_name(&check_status_names, (int)c->found));
	render_text(o, "summary", c->summary);
	for (int i = 0; i < c->n_problems; i++) {
		const struct check_problem *p = &c->problems[i];
		json_t *one = json_object();

		render_text(one, "status", enum_name(&check_status_names, (int)p->status));
		render_text(one, "name", p->name);
		render_text(one, "text", p->text);
		(void)json_array_append_new(problems, one);
	}
	render_set(o, "problems", problems);
	render_int(o, "ports", c->expect.ports ? c->expect.ports : (uint64_t)c->ports);
	render_int(o, "ports_ok", (uint64_t)c->ports_good);
	render_int(o, "rails", (uint64_t)MAX(c->n_rails, (int)c->expect.rails));
	render_int(o, "rails_ok", (uint64_t)c->rails_reach);
	render_age(o, "read_age_sec", oldest, t);
	return o;
}
