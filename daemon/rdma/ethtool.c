/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics of a network device by SIOCETHTOOL (ethtool -S). The names are asked for
 * once, the values each time; neither needs a right.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#undef SPEED_UNKNOWN /* ours is one of an enum */

#include "facts.h"

/* A driver with more does not tell the truth. The kernel writes as many as there are at
 * that moment, whatever it was asked for: there is always room for so many. */
#define STATS_MAX 65535

static int call(int fd, const char *netdev, void *cmd)
{
	struct ifreq req = {.ifr_data = cmd};

	(void)str_copy(req.ifr_name, sizeof(req.ifr_name), netdev);
	return ioctl(fd, SIOCETHTOOL, &req) < 0 ? -errno : 0;
}

static int count_stats(int fd, const char *netdev, uint32_t *ret)
{
	union { /* the answer is an array of one behind the struct */
		struct ethtool_sset_info info;
		uint8_t room[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
	} sset = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1u << ETH_SS_STATS}};
	int r = call(fd, netdev, &sset);

	if (r < 0)
		return r;
	memcpy(ret, sset.room + sizeof(sset.info), sizeof(*ret));
	if (!sset.info.sset_mask || !*ret)
		return -EOPNOTSUPP;
	return *ret > STATS_MAX ? -EBADMSG : 0;
}

static int plan_make(int fd, const char *netdev, uint32_t n, struct ethtool_plan *plan)
{
	_cleanup_(freep) struct ethtool_gstrings *names =
		xcalloc(1, sizeof(*names) + (size_t)STATS_MAX * ETH_GSTRING_LEN);
	int r;

	*plan = (struct ethtool_plan){0};
	*names = (struct ethtool_gstrings){
		.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS, .len = n};
	r = call(fd, netdev, names);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < MIN(names->len, n); i++) {
		char name[ETH_GSTRING_LEN + 1];
		int c;

		text_clean(name, sizeof(name),
			   names->data + (size_t)i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
		c = counter_find(name);
		if (c >= CTR_RX_PAUSE && !plan->place[c])
			plan->place[c] = (uint16_t)(i + 1);
	}
	plan->n_stats = n;
	(void)str_copy(plan->netdev, sizeof(plan->netdev), netdev);
	return 0;
}

static int read_stats(int fd, const char *netdev, const struct ethtool_plan *plan,
		      struct counter_reading *r)
{
	_cleanup_(freep) struct ethtool_stats *stats =
		xcalloc(1, sizeof(*stats) + (size_t)STATS_MAX * sizeof(uint64_t));
	int err;

	*stats =
		(struct ethtool_stats){.cmd = ETHTOOL_GSTATS, .n_stats = plan->n_stats};
	err = call(fd, netdev, stats);
	if (err < 0)
		return err;
	for (int c = 0; c < CTR__MAX; c++) {
		if (!plan->place[c] || plan->place[c] > stats->n_stats ||
		    r->why[c] == WHY_NONE)
			continue;
		r->value[c] = stats->data[plan->place[c] - 1];
		r->bits[c] = 64;
		r->why[c] = WHY_NONE;
		r->source[c] = COUNTER_ETHTOOL;
	}
	return 0;
}

int ethtool_read(const char *netdev, struct ethtool_plan *plan,
		 struct counter_reading *r)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;
	uint32_t n = 0;

	if (fd < 0)
		return -errno;
	err = count_stats(fd, netdev, &n);
	if (!err && (plan->n_stats != n || !str_eq(plan->netdev, netdev)))
		err = plan_make(fd, netdev, n, plan);
	if (!err)
		err = read_stats(fd, netdev, plan, r);
	(void)close(fd);
	return err;
}
