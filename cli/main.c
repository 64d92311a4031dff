/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabctl: asks fabd, and shows what it says. Words and options may come in any order;
 * the tables below are the grammar.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clean.h"
#include "cli.h"
#include "units.h"

/* For what fabd asks the fabric about before it answers: dead targets are tried several
 * times. */
#define SLOW_TIMEOUT_MS 15000

enum option_bit {
	OPT_JSON = 1, /* -j -p -o */
	OPT_NOT_OK = 2,
	OPT_ALL = 4,
	OPT_VERBOSE = 8,
	OPT_FOR = 16,
	OPT_SINCE = 32,
	OPT_INSTANCE = 64,
	OPT_COLD = 128,
	OPT_FORMAT = 256,
	OPT_PING = 512, /* all that fabctl ping alone has */
	OPT_MATRIX = 1024,
	OPT_TRANSPORT = 2048,
	OPT_WAIT = 4096,
	OPT_FAIL_ON = 8192,
};

/* clang-format off */
static const struct {
	unsigned bit;
	const char *name;
} option_names[] = {
	{OPT_JSON, "-j, -p and -o"}, {OPT_NOT_OK, "--not-ok"}, {OPT_ALL, "--all"},
	{OPT_VERBOSE, "-v"}, {OPT_FOR, "--for"}, {OPT_SINCE, "--since"},
	{OPT_INSTANCE, "--instance"}, {OPT_COLD, "--cold"}, {OPT_FORMAT, "--format"},
	{OPT_PING, "an option of fabctl ping"}, {OPT_MATRIX, "--by or --show"},
	{OPT_TRANSPORT, "--transport"}, {OPT_WAIT, "--wait"}, {OPT_FAIL_ON, "--fail-on"},
};

#define OPT_LISTS (OPT_JSON | OPT_NOT_OK | OPT_VERBOSE)

struct command {
	const char *name, *plural;
	int (*run)(struct cli *c);
	unsigned options;
	const char *usage;
};

static const struct command commands[] = {
	{"status", NULL, show_status, OPT_JSON | OPT_VERBOSE, "status"},
	{"port", "ports", show_port, OPT_LISTS, "port [show] [DEV[/PORT]]"},
	{"peer", "peers", show_peer, OPT_LISTS | OPT_ALL, "peer [show] [PEER[/RAIL]]"},
	{"connection", "connections", show_connection, OPT_LISTS,
	 "connection [show] [PEER[/RAIL]|KEY]"},
	{"device", "devices", show_device, OPT_LISTS, "device [show] [DEV]"},
	{"fabric", NULL, show_fabric, OPT_JSON, "fabric [show]"},
	{"ping", NULL, ping, OPT_JSON | OPT_VERBOSE | OPT_PING | OPT_TRANSPORT,
	 "ping PEER[/RAIL] [--transport udp,ud] [--size mtu] [--count N]"},
	{"explain", NULL, explain_peer, OPT_JSON | OPT_VERBOSE | OPT_TRANSPORT,
	 "explain PEER[/RAIL]|KEY [--transport ud]"},
	{"check", NULL, check, OPT_JSON | OPT_VERBOSE | OPT_WAIT | OPT_FAIL_ON,
	 "check [--wait 60s] [--fail-on degraded|failed]"},
	{"matrix", NULL, matrix, OPT_JSON | OPT_NOT_OK | OPT_ALL | OPT_MATRIX,
	 "matrix [--by peer|leaf|rail] [--show loss|p99]"},
	{"monitor", NULL, show_monitor,
	 OPT_JSON | OPT_VERBOSE | OPT_SINCE | OPT_INSTANCE, "monitor [--since N]"},
	{"history", NULL, show_history, OPT_JSON | OPT_VERBOSE | OPT_ALL | OPT_SINCE,
	 "history [--since 15m] [NAME]"},
	{"reset", NULL, admin_reset, OPT_JSON, "reset PEER[/RAIL]|KEY"},
};

/* What a second word makes another command of. No port or device has such a name. */
static const struct {
	const char *object;
	struct command command;
} subcommands[] = {
	{"port", {"set", NULL, admin_port_set, OPT_JSON | OPT_FOR,
		  "port set DEV/PORT health auto|ok|bad [for 2h]"}},
	{"port", {"counters", NULL, show_counters,
		  OPT_JSON | OPT_NOT_OK | OPT_VERBOSE | OPT_SINCE,
		  "port counters DEV/PORT [--since 1h]"}},
	{"fabric", {"links", NULL, fabric_links, OPT_JSON | OPT_NOT_OK,
		    "fabric links [NODE]"}},
	{"fabric", {"nodes", NULL, fabric_nodes, OPT_LISTS, "fabric nodes [NODE]"}},
	{"fabric", {"errors", NULL, fabric_errors, OPT_JSON, "fabric errors"}},
	{"fabric", {"sa", NULL, fabric_sa, OPT_JSON, "fabric sa"}},
	{"fabric", {"port", NULL, fabric_port, OPT_JSON, "fabric port NODE/PORT"}},
	{"fabric", {"route", NULL, fabric_route, OPT_JSON, "fabric route NODE NODE"}},
	{"fabric", {"graph", NULL, fabric_graph, OPT_FORMAT,
		    "fabric graph [--format dot|svg]"}},
	{"fabric", {"diff", NULL, fabric_diff, OPT_JSON, "fabric diff FILE"}},
	{"fabric", {"save", NULL, fabric_save, 0, "fabric save FILE"}},
	{"fabric", {"sweep", NULL, fabric_sweep, OPT_JSON | OPT_COLD,
		    "fabric sweep [--cold]"}},
};

enum { LONG_NOT_OK = 256, LONG_ALL, LONG_FOR, LONG_SINCE, LONG_INSTANCE, LONG_TIMEOUT,
       LONG_ADMIN_SOCKET, LONG_COLD, LONG_FORMAT, LONG_TRANSPORT, LONG_FLOW, LONG_SIZE,
       LONG_COUNT, LONG_INTERVAL, LONG_MAX_LOSS, LONG_MAX_RTT, LONG_BY, LONG_SHOW,
       LONG_WAIT, LONG_FAIL_ON };

static const struct option long_options[] = {
	{"json", no_argument, NULL, 'j'},
	{"pretty", no_argument, NULL, 'p'},
	{"oneline", no_argument, NULL, 'o'},
	{"verbose", no_argument, NULL, 'v'},
	{"no-color", no_argument, NULL, 'n'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{"socket", required_argument, NULL, 's'},
	{"not-ok", no_argument, NULL, LONG_NOT_OK},
	{"all", no_argument, NULL, LONG_ALL},
	{"for", required_argument, NULL, LONG_FOR},
	{"since", required_argument, NULL, LONG_SINCE},
	{"instance", required_argument, NULL, LONG_INSTANCE},
	{"timeout", required_argument, NULL, LONG_TIMEOUT},
	{"admin-socket", required_argument, NULL, LONG_ADMIN_SOCKET},
	{"cold", no_argument, NULL, LONG_COLD},
	{"format", required_argument, NULL, LONG_FORMAT},
	{"transport", required_argument, NULL, LONG_TRANSPORT},
	{"flow", required_argument, NULL, LONG_FLOW},
	{"size", required_argument, NULL, LONG_SIZE},
	{"count", required_argument, NULL, LONG_COUNT},
	{"interval", required_argument, NULL, LONG_INTERVAL},
	{"max-loss", required_argument, NULL, LONG_MAX_LOSS},
	{"max-rtt", required_argument, NULL, LONG_MAX_RTT},
	{"wait", required_argument, NULL, LONG_WAIT},
	{"fail-on", required_argument, NULL, LONG_FAIL_ON},
	{"by", required_argument, NULL, LONG_BY},
	{"show", required_argument, NULL, LONG_SHOW},
	{NULL, 0, NULL, 0},
};
/* clang-format on */

static const char help_options[] =
	"Options, anywhere:\n"
	"  -j, --json           JSON as fabd sent it; -p, --pretty: indented\n"
	"  -o, --oneline        a line of \"key value\" an object (with -j: of JSON)\n"
	"  -v, --verbose        all there is\n"
	"      --not-ok         only what is not ok\n"
	"      --all            peer: also those that another fault explains; history:\n"
	"                       each change by itself; matrix: also rows that are well,\n"
	"                       however many\n"
	"      --by peer|leaf|rail, --show loss|p99   matrix: its rows, its cells\n"
	"      --for 2h         port set: the end of the override\n"
	"      --since N        monitor: changes after number N first\n"
	"      --instance ID    monitor: N was of that start of fabd\n"
	"      --since 1h       port counters: how much in that time, at most 24h;\n"
	"                       history: no older\n"
	"      --format dot|svg fabric graph: for Graphviz, or drawn by it\n"
	"      --transport udp,ud   ping: these only; explain: one of them\n"
	"      --flow N         ping: this one only\n"
	"      --size 64|mtu|N  ping: bytes of a message\n"
	"      --count N, --interval 100ms    ping: how many, how fast (0: back to back)\n"
	"      --max-loss 0%, --max-rtt 1ms   ping: more is bad, exit code 2\n"
	"      --wait 60s       check: until all is well, at most so long\n"
	"      --fail-on degraded|failed      check: from which on it ends with an error\n"
	"      --cold           fabric sweep: as if nothing were known\n"
	"  -s, --socket PATH    default " CLIENT_SOCKET "\n"
	"      --admin-socket PATH  default " CLIENT_ADMIN_SOCKET "\n"
	"      --timeout 2s     for each answer; ping: for each message, 1s\n"
	"  -n, --no-color       as the environment variable NO_COLOR\n"
	"  -h, --help           this;  -V, --version\n"
	"Exit code: 0 done, 1 failed, 2 wrong usage; check: 0 ok, 1 degraded, 2 failed,\n"
	"3 unknown; ping: 2 lost or over a limit, 3 wrong usage. See fabctl(1).\n";

int cli_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_args(fmt, ap);
	va_end(ap);
	return EXIT_USAGE;
}

int cli_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_args(fmt, ap);
	va_end(ap);
	return EXIT_ERROR;
}

struct client *cli_client(struct cli *c, bool admin)
{
	if (!c->client)
		c->client = client_open(admin ? c->admin_socket : c->socket, admin,
					c->timeout_ms, !c->json);
	return c->client;
}

json_t *cli_get(struct cli *c, const char *method, json_t *parameters, const char *key)
{
	struct client *client = cli_client(c, false);
	json_t *reply, *v;

	if (!client) {
		json_decref(parameters);
		return NULL;
	}
	reply = client_call(client, method, parameters);
	if (!reply)
		return NULL;
	v = json_object_get(reply, key);
	if (!json_is_object(v))
		(void)cli_error("the answer to %s has no %s: is this fabd?", method,
				key);
	v = json_is_object(v) ? json_incref(v) : NULL;
	json_decref(reply);
	return v;
}

void cli_be_patient(struct cli *c)
{
	if (!c->timeout_given)
		c->timeout_ms = MAX(c->timeout_ms, SLOW_TIMEOUT_MS);
}

json_t *cli_get_slow(struct cli *c, const char *method, json_t *parameters,
		     const char *key)
{
	cli_be_patient(c);
	return cli_get(c, method, parameters, key);
}

json_t *cli_list(struct cli *c, const char *method, json_t *parameters, const char *key)
{
	struct client *client = cli_client(c, false);

	if (!client) {
		json_decref(parameters);
		return NULL;
	}
	return client_list(client, method, parameters, key);
}

bool cli_is_text(const struct cli *c)
{
	return !c->json && !c->oneline;
}

void cli_all_are(const struct cli *c, size_t n, const char *noun, const char *state)
{
	if (n == 1)
		(void)fprintf(c->layout.out, "the only %s is %s\n", noun, state);
	else
		(void)fprintf(c->layout.out, "all %zu %ss %s\n", n, noun, state);
}

char *cli_name(const char *word)
{
	char *name = xstrdup(word), *colon = strrchr(name, ':');

	if (colon && !strchr(name, '/') && !strchr(name, '>'))
		*colon = '/';
	return name;
}

bool cli_one_word(const struct cli *c, const char **ret)
{
	if (c->argc > 1) {
		(void)cli_usage("one name at most, and '%s' is a second one",
				c->argv[1]);
		return false;
	}
	*ret = c->argc ? c->argv[0] : NULL;
	return true;
}

static int print_help(void)
{
	(void)printf("Usage: fabctl [OPTIONS] COMMAND; without one: status\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		(void)printf("  fabctl %s\n", commands[i].usage);
	for (size_t i = 0; i < ARRAY_LEN(subcommands); i++)
		(void)printf("  fabctl %s\n", subcommands[i].command.usage);
	(void)printf("Commands may be shortened.\n%s", help_options);
	return EXIT_OK;
}

static bool starts_with(const char *text, const char *start)
{
	return text && !strncmp(text, start, strlen(start));
}

/* What the user may have meant by a word that is no command. */
static int unknown_command(const char *word)
{
	const char *near = NULL;
	size_t least = 3;

	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		size_t d = str_distance(word, commands[i].name);

		if (d < least) {
			least = d;
			near = commands[i].name;
		}
	}
	if (near)
		return cli_usage("unknown command '%s': did you mean %s?", word, near);
	return cli_usage("unknown command '%s': fabctl --help lists them", word);
}

/* The command that @word is or begins. NULL: none or more than one, told. */
static const struct command *find_command(const char *word)
{
	const struct command *found = NULL;
	char names[128] = "";
	int n = 0;

	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		const struct command *k = &commands[i];

		if (str_eq(word, k->name))
			return k;
		if (!*word ||
		    (!starts_with(k->name, word) && !starts_with(k->plural, word)))
			continue;
		str_append(names, sizeof(names), "%s%s", n++ ? ", " : "", k->name);
		found = k;
	}
	if (n == 1)
		return found;
	if (n)
		(void)cli_usage("'%s' may mean %s", word, names);
	else
		(void)unknown_command(word);
	return NULL;
}

static int parse_number(const char *option, const char *text, int64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoll(text, &end, 10);
	if (errno || *end || !isdigit((unsigned char)*text))
		return cli_usage("%s takes a number, not '%s'", option, text);
	return 0;
}

static int parse_duration(const char *option, const char *example, const char *text,
			  int64_t *ret_ms)
{
	if (unit_duration_parse(text, ret_ms) < 0 || *ret_ms == 0)
		return cli_usage("%s takes a time as %s, not '%s'", option, example,
				 text);
	return 0;
}

static int parse_for(struct cli *c, const char *text)
{
	int64_t ms;
	int r = parse_duration("for", "2h, 90m or 1h30m", text, &ms);

	if (r)
		return r;
	if (ms < 1000)
		return cli_usage("an override lasts a second at least, not '%s'", text);
	c->for_sec = ms / 1000;
	return 0;
}

static int parse_timeout(struct cli *c, const char *text)
{
	int64_t ms;
	int r = parse_duration("--timeout", "2s or 300ms", text, &ms);

	if (r)
		return r;
	c->timeout_ms = (int)MIN(ms, INT64_C(86400000));
	c->timeout_given = true;
	return 0;
}

static int parse_ping_option(struct ping_options *o, int opt)
{
	const char **at = opt == LONG_TRANSPORT	 ? &o->transport
			  : opt == LONG_FLOW	 ? &o->flow
			  : opt == LONG_SIZE	 ? &o->size
			  : opt == LONG_COUNT	 ? &o->count
			  : opt == LONG_INTERVAL ? &o->interval
			  : opt == LONG_MAX_LOSS ? &o->max_loss
						 : &o->max_rtt;

	*at = optarg;
	return 0;
}

/* One option. 0 go on; -1 done with success; else the exit code. */
static int parse_option(struct cli *c, int opt, unsigned *used, const char *word)
{
	switch (opt) {
	case 'j':
		c->json = true;
		*used |= OPT_JSON;
		return 0;
	case 'p':
		c->json = c->pretty = true;
		*used |= OPT_JSON;
		return 0;
	case 'o':
		c->oneline = true;
		*used |= OPT_JSON;
		return 0;
	case 'v':
		c->verbose = true;
		*used |= OPT_VERBOSE;
		return 0;
	case 'n':
		c->layout.color = false;
		return 0;
	case 's':
		c->socket = optarg;
		return 0;
	case 'h':
		(void)print_help();
		return -1;
	case 'V':
		(void)printf("fabctl %s\n", FABD_VERSION);
		return -1;
	case LONG_NOT_OK:
		c->not_ok = true;
		*used |= OPT_NOT_OK;
		return 0;
	case LONG_ALL:
		c->all = true;
		*used |= OPT_ALL;
		return 0;
	case LONG_FOR:
		*used |= OPT_FOR;
		return parse_for(c, optarg);
	case LONG_SINCE:
		*used |= OPT_SINCE;
		c->since_text = optarg;
		return 0;
	case LONG_INSTANCE:
		*used |= OPT_INSTANCE;
		c->instance = optarg;
		return 0;
	case LONG_TIMEOUT:
		return parse_timeout(c, optarg);
	case LONG_ADMIN_SOCKET:
		c->admin_socket = optarg;
		return 0;
	case LONG_COLD:
		*used |= OPT_COLD;
		c->cold = true;
		return 0;
	case LONG_WAIT:
		*used |= OPT_WAIT;
		return parse_duration("--wait", "60s or 5m", optarg, &c->wait_ms);
	case LONG_FAIL_ON:
		*used |= OPT_FAIL_ON;
		c->fail_on = optarg;
		return 0;
	case LONG_FORMAT:
		*used |= OPT_FORMAT;
		c->format = optarg;
		return 0;
	case LONG_BY:
		*used |= OPT_MATRIX;
		c->by = optarg;
		return 0;
	case LONG_SHOW:
		*used |= OPT_MATRIX;
		c->show = optarg;
		return 0;
	case LONG_TRANSPORT:
		*used |= OPT_TRANSPORT;
		return parse_ping_option(&c->ping, opt);
	case LONG_FLOW:
	case LONG_SIZE:
	case LONG_COUNT:
	case LONG_INTERVAL:
	case LONG_MAX_LOSS:
	case LONG_MAX_RTT:
		*used |= OPT_PING;
		return parse_ping_option(&c->ping, opt);
	case ':':
		return cli_usage("%s needs a value", word);
	default:
		return cli_usage("unknown option %s: fabctl --help lists them", word);
	}
}

static int parse_options(struct cli *c, int argc, char **argv, unsigned *used)
{
	int opt, r = 0;

	opterr = 0;
	while (!r &&
	       (opt = getopt_long(argc, argv, ":jpovnhVs:", long_options, NULL)) != -1)
		r = parse_option(c, opt, used, argv[optind - 1]);
	c->argc = argc - optind;
	c->argv = argv + optind;
	return r;
}

/* "for 2h" after the words of port set is the option in words. */
static int take_for(struct cli *c, unsigned *used)
{
	if (c->argc < 2 || !str_eq(c->argv[c->argc - 2], "for"))
		return 0;
	*used |= OPT_FOR;
	c->argc -= 2;
	return parse_for(c, c->argv[c->argc + 1]);
}

/* Of the monitor the number of a change, of others a time. */
static int take_since(struct cli *c, const struct command *k)
{
	int64_t ms = 0;
	int r;

	if (!c->since_text)
		return 0;
	if (k->run == show_monitor)
		return parse_number("--since", c->since_text, &c->since);
	r = parse_duration("--since", "1h or 15m", c->since_text, &ms);
	if (k->run == show_history) {
		c->since = (ms + 999) / 1000;
		return r;
	}
	if (!r && (ms < 1000 || ms > 86400000))
		r = cli_usage("--since takes 1s to 24h, not '%s'", c->since_text);
	c->since = ms / 1000;
	return r;
}

static int unknown_after_fabric(const char *word)
{
	const char *near = NULL;
	size_t least = 3;

	for (size_t i = 0; i < ARRAY_LEN(subcommands); i++) {
		const char *name = subcommands[i].command.name;
		size_t d = str_distance(word, name);

		if (str_eq(subcommands[i].object, "fabric") && d < least) {
			least = d;
			near = name;
		}
	}
	if (near)
		return cli_usage("unknown word '%s' after fabric: did you mean %s?",
				 word, near);
	return cli_usage("unknown word '%s' after fabric: fabctl --help lists them",
			 word);
}

/* The command that the second word makes of @k: @k itself if it is none, NULL told.
 * After fabric no name can follow, so there words may be shortened. */
static const struct command *find_subcommand(struct cli *c, const struct command *k)
{
	bool may_shorten = k->run == show_fabric;
	const struct command *found = NULL;
	const char *word = c->argc ? c->argv[0] : "";
	int n = 0;

	for (size_t i = 0; *word && i < ARRAY_LEN(subcommands); i++) {
		const struct command *sub = &subcommands[i].command;

		if (!str_eq(subcommands[i].object, k->name))
			continue;
		if (str_eq(sub->name, word)) {
			found = sub;
			n = 1;
			break;
		}
		if (may_shorten && starts_with(sub->name, word)) {
			found = sub;
			n++;
		}
	}
	if (n == 1) {
		c->argc--;
		c->argv++;
		return found;
	}
	if (!may_shorten || !c->argc)
		return k;
	if (n)
		(void)cli_usage("'%s' may mean more than one word after fabric: "
				"fabctl --help lists them",
				word);
	else
		(void)unknown_after_fabric(word);
	return NULL;
}

static int check_options(unsigned used, const struct command *k, const char *object)
{
	bool sub = !str_eq(object, k->name);

	for (size_t i = 0; i < ARRAY_LEN(option_names); i++)
		if (used & option_names[i].bit & ~k->options)
			return cli_usage("%s does not go with fabctl %s%s%s",
					 option_names[i].name, sub ? object : "",
					 sub ? " " : "", k->name);
	return 0;
}

static int run_command(struct cli *c, unsigned used)
{
	const struct command *k = &commands[0];
	const char *object;
	int r = 0;

	if (c->argc && str_eq(c->argv[0], "help"))
		return print_help();
	if (c->argc) {
		k = find_command(c->argv[0]);
		if (!k)
			return EXIT_USAGE;
		c->argc--;
		c->argv++;
	}
	object = k->name;
	if ((k->plural || k->run == show_fabric) && c->argc &&
	    str_eq(c->argv[0], "show")) {
		c->argc--;
		c->argv++;
	} else {
		k = find_subcommand(c, k);
		if (!k)
			return EXIT_USAGE;
	}
	if (k->run == admin_port_set)
		r = take_for(c, &used);
	if (!r)
		r = check_options(used, k, object);
	if (!r)
		r = take_since(c, k);
	if (r)
		return r;
	c->ran = true;
	return k->run(c);
}

/* Where 2 says that something was found bad, wrong usage must not. An option's value
 * that is such a word does no harm. */
static bool is_judge(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strlen(argv[i]) > 1 &&
		    (starts_with("ping", argv[i]) || starts_with("check", argv[i])))
			return true;
	return false;
}

static const char *from_environment(const char *name, const char *otherwise)
{
	const char *v = getenv(name);

	return v && *v ? v : otherwise;
}

static void init_layout(struct layout *l)
{
	const char *term = from_environment("TERM", "dumb");
	struct winsize w;
	bool tty = isatty(STDOUT_FILENO);

	l->out = stdout;
	l->width = 80;
	if (tty && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col >= 40)
		l->width = w.ws_col;
	l->color = tty && !*from_environment("NO_COLOR", "") && !str_eq(term, "dumb");
}

int main(int argc, char **argv)
{
	struct cli c = {
		.socket = from_environment("FABD_SOCKET", CLIENT_SOCKET),
		.admin_socket =
			from_environment("FABD_ADMIN_SOCKET", CLIENT_ADMIN_SOCKET),
		.timeout_ms = 2000,
		.since = -1,
	};
	unsigned used = 0;
	bool judge = is_judge(argc, argv); /* before getopt moves the words about */
	int r;

	(void)setlocale(LC_CTYPE, "");
	/* A reader that goes away ends us without a word, whatever our parent set. */
	(void)signal(SIGPIPE, SIG_DFL);
	init_layout(&c.layout);
	r = parse_options(&c, argc, argv, &used);
	r = r < 0 ? EXIT_OK : r > 0 ? r : run_command(&c, used);
	if (r == EXIT_USAGE && judge && !c.ran)
		r = EXIT_UNKNOWN;
	(void)client_free(c.client);
	if ((fflush(stdout) || ferror(stdout)) && r == EXIT_OK)
		r = cli_error("cannot write the output: %s", strerror(errno));
	return r;
}
