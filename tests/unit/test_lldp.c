/* SPDX-License-Identifier: BSD-2-Clause */
/* What lldpcli prints, and label files, as lists of far ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lldp.h"

static int parse(const char *json, struct far_labels *l)
{
	return lldp_parse(json, strlen(json), l);
}

static void neighbours_of_lldpcli(void **state)
{
	/* As lldpd 1.0.16 prints it, shortened. */
	static const char json[] =
		"{\"lldp\":[{\"interface\":["
		"{\"name\":\"eth0\",\"via\":\"LLDP\",\"rid\":\"1\",\"age\":\"0 day\","
		"\"chassis\":[{\"id\":[{\"type\":\"mac\",\"value\":\"52:54:00:00:00:01\"}],"
		"\"name\":[{\"value\":\"leaf07\"}],\"descr\":[{\"value\":\"SONiC\"}]}],"
		"\"port\":[{\"id\":[{\"type\":\"ifname\",\"value\":\"Ethernet12\"}],"
		"\"descr\":[{\"value\":\"to gpu0417\"}],\"ttl\":[{\"value\":\"120\"}]}]},"
		"{\"name\":\"eth1\",\"via\":\"LLDP\","
		"\"chassis\":[{\"id\":[{\"type\":\"mac\",\"value\":\"52:54:00:00:00:02\"}]}],"
		"\"port\":[{\"id\":[{\"type\":\"mac\",\"value\":\"52:54:00:00:00:03\"}],"
		"\"descr\":[{\"value\":\"swp\\u00073\"}]}]},"
		"{\"name\":\"eth2\"}]}]}";
	struct far_labels l;

	(void)state;
	assert_int_equal(parse(json, &l), 0);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.l[0].netdev, "eth0");
	assert_string_equal(l.l[0].port, "");
	assert_string_equal(l.l[0].chassis, "leaf07");
	assert_string_equal(l.l[0].far_port, "Ethernet12");
	assert_string_equal(l.l[1].chassis, "52:54:00:00:00:02");
	assert_string_equal(l.l[1].far_port, "swp?3");
	assert_string_equal(l.l[2].netdev, "eth2");
	assert_string_equal(l.l[2].chassis, "");
	far_labels_done(&l);
	assert_int_equal(l.n, 0);
}

static void nobody_there_and_nonsense(void **state)
{
	static const char *const empty[] = {
		"{\"lldp\":[{}]}", "{\"lldp\":[]}", "{\"lldp\":[{\"interface\":[]}]}",
		"{\"lldp\":[7]}",
		"{\"lldp\":[{\"interface\":[{\"name\":\"\"},{\"name\":7},[]]}]}",
		"{\"lldp\":[{\"interface\":[{\"name\":\"a_name_of_17_long\"}]}]}"};
	static const char *const bad[] = {
		"", "[]", "{}", "{\"lldp\":{}}", "{\"lldp\":[", "{\"lldp\":[]} x"};
	struct far_labels l;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		assert_int_equal(parse(empty[i], &l), 0);
		assert_int_equal(l.n, 0);
		far_labels_done(&l);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(parse(bad[i], &l), -EBADMSG);
}

static void many_neighbours_are_cut(void **state)
{
	static char json[32768] = "{\"lldp\":[{\"interface\":[{\"name\":\"eth\"}";
	struct far_labels l;

	(void)state;
	for (int i = 0; i < 300; i++)
		str_append(json, sizeof(json), ",{\"name\":\"eth%d\"}", i);
	str_append(json, sizeof(json), "]}]}");
	assert_int_equal(parse(json, &l), 0);
	assert_int_equal(l.n, 256);
	far_labels_done(&l);
}

static int labels(const char *text, struct far_labels *l, char why[80])
{
	return far_labels_parse(text, strlen(text), l, why, 80);
}

static void label_files(void **state)
{
	struct far_labels l;
	char why[80] = "";

	(void)state;
	assert_int_equal(labels("# far ends\n\nmlx5_0/1  leaf01  Eth1/7 # rail 0\n"
				"\teth1\tleaf02\tswp3\r\n  # end",
				&l, why),
			 0);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.l[0].port, "mlx5_0/1");
	assert_string_equal(l.l[0].netdev, "");
	assert_string_equal(l.l[0].chassis, "leaf01");
	assert_string_equal(l.l[0].far_port, "Eth1/7");
	assert_string_equal(l.l[1].far_port, "swp3");
	far_labels_done(&l);
	assert_int_equal(labels("", &l, why), 0);
	assert_int_equal(l.n, 0);
}

static void label_files_that_are_wrong(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"eth0 leaf01\n", "1: want: PORT NAME FAR-PORT"},
		{"\neth0 leaf01 1 2\n", "2: want: PORT NAME FAR-PORT"},
		{"eth0 a 1\neth1 a 2\neth0 a 3", "3: the port has a label already"},
	};
	struct far_labels l;
	char why[80], text[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(labels(rows[i].text, &l, why), -EINVAL);
		assert_string_equal(why, rows[i].why);
		assert_int_equal(l.n, 0);
	}
	(void)snprintf(text, sizeof(text), "eth0 %065d 1", 0);
	assert_int_equal(labels(text, &l, why), -EINVAL);
	assert_string_equal(why, "1: a name is too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_of_lldpcli),
		cmocka_unit_test(nobody_there_and_nonsense),
		cmocka_unit_test(many_neighbours_are_cut),
		cmocka_unit_test(label_files),
		cmocka_unit_test(label_files_that_are_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
