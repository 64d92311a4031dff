/* SPDX-License-Identifier: BSD-2-Clause */
#include "netlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NL_BUFFER 32768
#define ASK_TIMEOUT_MS 500
#define READ_TRIES 5
#define READ_AGAIN_NS (200 * NSEC_PER_MSEC)

struct netlink {
	struct mnl_socket *events, *ask;
	struct loop_source *fd, *settle, *again;
	netlink_fn *changed;
	void *user;
	uint32_t seq;
	bool overrun;	    /* events were lost: read all afresh when the rest is in */
	bool moved, routed; /* since changed() was called: tables; a route */
	struct nl_link *links; /* owned */
	int n_links;
	struct nl_addr *addrs; /* owned */
	int n_addrs;
};

/* ---- tables ---- */

static struct nl_link *link_slot(struct netlink *n, uint32_t index)
{
	for (int i = 0; i < n->n_links; i++)
		if (n->links[i].index == index)
			return &n->links[i];
	return NULL;
}

static bool link_same(const struct nl_link *a, const struct nl_link *b)
{
	return !strcmp(a->name, b->name) && a->up == b->up && a->running == b->running &&
	       a->loopback == b->loopback && a->mtu == b->mtu &&
	       a->hwaddr_len == b->hwaddr_len && !memcmp(a->hwaddr, b->hwaddr, a->hwaddr_len);
}

static void link_put(struct netlink *n, const struct nl_link *l)
{
	struct nl_link *slot = link_slot(n, l->index);

	n->moved |= !slot || !link_same(slot, l);
	if (!slot) {
		n->links = xrealloc(n->links, (size_t)n->n_links + 1, sizeof(*n->links));
		slot = &n->links[n->n_links++];
	}
	*slot = *l;
}

static void link_drop(struct netlink *n, uint32_t index)
{
	struct nl_link *slot = link_slot(n, index);

	n->moved |= slot != NULL;
	if (slot)
		*slot = n->links[--n->n_links];
}

static struct nl_addr *addr_slot(struct netlink *n, const struct nl_addr *a)
{
	for (int i = 0; i < n->n_addrs; i++)
		if (n->addrs[i].link == a->link && addr_same_ip(&n->addrs[i].addr, &a->addr))
			return &n->addrs[i];
	return NULL;
}

static void addr_put(struct netlink *n, const struct nl_addr *a)
{
	struct nl_addr *slot = addr_slot(n, a);

	n->moved |= !slot || slot->usable != a->usable;
	if (!slot) {
		n->addrs = xrealloc(n->addrs, (size_t)n->n_addrs + 1, sizeof(*n->addrs));
		slot = &n->addrs[n->n_addrs++];
	}
	*slot = *a;
}

static void addr_drop(struct netlink *n, const struct nl_addr *a)
{
	struct nl_addr *slot = addr_slot(n, a);

	n->moved |= slot != NULL;
	if (slot)
		*slot = n->addrs[--n->n_addrs];
}

/* ---- parsing ---- */

static void ip_from_attr(const struct nlattr *attr, int family, struct addr *ret)
{
	*ret = (struct addr){0};
	if (family == AF_INET && mnl_attr_get_payload_len(attr) == 4) {
		ret->family = 4;
		memcpy(ret->ip, mnl_attr_get_payload(attr), 4);
	} else if (family == AF_INET6 && mnl_attr_get_payload_len(attr) == 16) {
		ret->family = 6;
		memcpy(ret->ip, mnl_attr_get_payload(attr), 16);
	}
}

static void parse_link(struct netlink *n, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct nl_link l = {.index = (uint32_t)ifi->ifi_index};
	const struct nlattr *attr;

	if (nlh->nlmsg_type == RTM_DELLINK) {
		link_drop(n, l.index);
		return;
	}
	l.up = ifi->ifi_flags & IFF_UP;
	l.running = ifi->ifi_flags & IFF_RUNNING;
	l.loopback = ifi->ifi_flags & IFF_LOOPBACK;
	mnl_attr_for_each(attr, nlh, sizeof(*ifi)) {
		size_t len = mnl_attr_get_payload_len(attr);

		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			text_clean(l.name, sizeof(l.name), mnl_attr_get_payload(attr), len);
			break;
		case IFLA_MTU:
			l.mtu = len == 4 ? mnl_attr_get_u32(attr) : 0;
			break;
		case IFLA_ADDRESS:
			l.hwaddr_len = (uint8_t)MIN(len, sizeof(l.hwaddr));
			memcpy(l.hwaddr, mnl_attr_get_payload(attr), l.hwaddr_len);
			break;
		default:
			break;
		}
	}
	link_put(n, &l);
}

static void parse_addr(struct netlink *n, const struct nlmsghdr *nlh)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	struct nl_addr a = {.link = ifa->ifa_index, .bits = ifa->ifa_prefixlen};
	uint32_t flags = ifa->ifa_flags;
	struct addr local = {0};
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(*ifa)) {
		switch (mnl_attr_get_type(attr)) {
		case IFA_ADDRESS:
			ip_from_attr(attr, ifa->ifa_family, &a.addr);
			break;
		case IFA_LOCAL: /* differs from IFA_ADDRESS on point-to-point links */
			ip_from_attr(attr, ifa->ifa_family, &local);
			break;
		case IFA_FLAGS:
			if (mnl_attr_get_payload_len(attr) == 4)
				flags = mnl_attr_get_u32(attr);
			break;
		default:
			break;
		}
	}
	if (local.family)
		a.addr = local;
	if (!a.addr.family)
		return;
	if (addr_is_link_local(&a.addr))
		a.addr.zone = a.link;
	a.usable = !(flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED));
	if (nlh->nlmsg_type == RTM_DELADDR)
		addr_drop(n, &a);
	else
		addr_put(n, &a);
}

static int parse_any(const struct nlmsghdr *nlh, void *user)
{
	struct netlink *n = user;

	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(struct ifinfomsg))
			parse_link(n, nlh);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(struct ifaddrmsg))
			parse_addr(n, nlh);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		n->routed = true;
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

/* ---- asking ---- */

/* The rest of an answer that was given up, or that came too late. */
static bool is_stale(const void *buf, size_t len, uint32_t seq)
{
	const struct nlmsghdr *nlh = buf;

	return len >= sizeof(*nlh) && nlh->nlmsg_seq != seq;
}

static int ask(struct mnl_socket *s, struct nlmsghdr *nlh, uint32_t seq, mnl_cb_t cb,
	       void *user)
{
	static char buf[NL_BUFFER]; /* main is one thread */
	int r = 1;

	nlh->nlmsg_seq = seq;
	if (mnl_socket_sendto(s, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	while (r > MNL_CB_STOP) {
		ssize_t got = mnl_socket_recvfrom(s, buf, sizeof(buf));

		if (got < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (is_stale(buf, (size_t)got, seq))
			continue;
		r = mnl_cb_run(buf, (size_t)got, seq, mnl_socket_get_portid(s), cb, user);
		/* An answer that is no dump has no end mark. */
		if (r > 0 && !(nlh->nlmsg_flags & (NLM_F_DUMP | NLM_F_ACK)))
			break;
	}
	return r < 0 ? -errno : 0;
}

static struct mnl_socket *open_socket(int bus, unsigned groups, int *ret_error)
{
	struct mnl_socket *s = mnl_socket_open2(bus, SOCK_CLOEXEC | (groups ? SOCK_NONBLOCK : 0));
	struct timeval tv = {.tv_usec = ASK_TIMEOUT_MS * 1000};

	if (!s || mnl_socket_bind(s, groups, MNL_SOCKET_AUTOPID) < 0) {
		*ret_error = -errno;
		if (s)
			mnl_socket_close(s);
		return NULL;
	}
	if (!groups)
		(void)setsockopt(mnl_socket_get_fd(s), SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return s;
}

static int dump(struct netlink *n, int type, size_t header)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = (uint16_t)type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	(void)mnl_nlmsg_put_extra_header(nlh, header);
	return ask(n->ask, nlh, ++n->seq, parse_any, n);
}

static int read_once(struct netlink *n)
{
	int r = dump(n, RTM_GETLINK, sizeof(struct ifinfomsg));

	return r ? r : dump(n, RTM_GETADDR, sizeof(struct ifaddrmsg));
}

/* All afresh. When that fails the tables stay as they were: half of them would look
 * like interfaces and addresses that are gone. */
static int read_tables(struct netlink *n)
{
	struct netlink old = *n;
	int r = -EINTR;

	for (int i = 0; i < READ_TRIES && r == -EINTR; i++) { /* changed meanwhile */
		n->links = NULL;
		n->addrs = NULL;
		n->n_links = n->n_addrs = 0;
		r = read_once(n);
		if (!r)
			break;
		free(n->links);
		free(n->addrs);
	}
	if (!r) {
		free(old.links);
		free(old.addrs);
		return 0;
	}
	n->links = old.links;
	n->addrs = old.addrs;
	n->n_links = old.n_links;
	n->n_addrs = old.n_addrs;
	return r;
}

/* ---- events ---- */

static void on_settle(void *user)
{
	struct netlink *n = user;
	bool moved = n->moved, any = n->moved || n->routed;

	n->moved = n->routed = false;
	if (any)
		n->changed(n->user, moved);
}

static void read_afresh(struct netlink *n)
{
	n->overrun = read_tables(n) < 0;
	n->moved = true;
	loop_timer_at(n->again, n->overrun ? mono_add(clock_now(), READ_AGAIN_NS) : MONO_NEVER);
	loop_defer_arm(n->settle);
}

static void on_again(void *user, struct mono now)
{
	(void)now;
	read_afresh(user);
}

static void on_event(void *user, int fd, unsigned events)
{
	struct netlink *n = user;
	char buf[NL_BUFFER];
	bool drained = false;

	(void)fd;
	(void)events;
	for (int i = 0; i < 64 && !drained; i++) {
		ssize_t got = mnl_socket_recvfrom(n->events, buf, sizeof(buf));

		if (got > 0)
			(void)mnl_cb_run(buf, (size_t)got, 0, 0, parse_any, n);
		else if (got < 0 && errno == ENOBUFS)
			n->overrun = true;
		else
			drained = true;
	}
	/* What was queued before the loss is older than the tables that are read now. */
	if (n->overrun && drained)
		read_afresh(n);
	else if (n->overrun)
		loop_timer_at(n->again, mono_add(clock_now(), READ_AGAIN_NS));
	loop_defer_arm(n->settle);
}

struct netlink *netlink_new(struct loop *l, netlink_fn *changed, void *user, int *ret_error)
{
	const unsigned groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
				RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
	struct netlink *n = xcalloc(1, sizeof(*n));

	n->changed = changed;
	n->user = user;
	/* Subscribe first, then read, so that nothing falls between. */
	n->events = open_socket(NETLINK_ROUTE, groups, ret_error);
	if (n->events)
		n->ask = open_socket(NETLINK_ROUTE, 0, ret_error);
	if (!n->ask)
		return netlink_free(n);
	n->settle = loop_defer(l, on_settle, n);
	n->again = loop_timer(l, on_again, n);
	n->fd = loop_fd(l, mnl_socket_get_fd(n->events), LOOP_READ, on_event, n);
	*ret_error = read_tables(n);
	return *ret_error < 0 ? netlink_free(n) : n;
}

struct netlink *netlink_free(struct netlink *n)
{
	if (!n)
		return NULL;
	n->fd = loop_source_free(n->fd);
	n->settle = loop_source_free(n->settle);
	n->again = loop_source_free(n->again);
	if (n->events)
		mnl_socket_close(n->events);
	if (n->ask)
		mnl_socket_close(n->ask);
	free(n->links);
	free(n->addrs);
	free(n);
	return NULL;
}

/* ---- look-ups ---- */

const struct nl_link *netlink_link(const struct netlink *n, uint32_t index)
{
	for (int i = 0; n && i < n->n_links; i++)
		if (n->links[i].index == index)
			return &n->links[i];
	return NULL;
}

const struct nl_link *netlink_link_by_name(const struct netlink *n, const char *name)
{
	for (int i = 0; n && i < n->n_links; i++)
		if (!strcmp(n->links[i].name, name))
			return &n->links[i];
	return NULL;
}

const struct nl_addr *netlink_addrs(const struct netlink *n, int *ret_count)
{
	*ret_count = n ? n->n_addrs : 0;
	return n ? n->addrs : NULL;
}

static bool is_loopback_net(const struct addr *a)
{
	return a->family == 4 && a->ip[0] == 127;
}

const struct nl_addr *netlink_own_addr(const struct netlink *n, const struct addr *a)
{
	const struct nl_addr *loopback = NULL;

	for (int i = 0; n && i < n->n_addrs; i++) {
		if (addr_same_ip(&n->addrs[i].addr, a))
			return &n->addrs[i];
		if (is_loopback_net(&n->addrs[i].addr))
			loopback = &n->addrs[i];
	}
	/* All of 127.0.0.0/8 is ours, though only one address of it is listed. */
	return is_loopback_net(a) ? loopback : NULL;
}

static int on_route(const struct nlmsghdr *nlh, void *user)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct nl_route *ret = user;
	const struct nlattr *attr;

	if (nlh->nlmsg_type != RTM_NEWROUTE)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, nlh, sizeof(*rtm)) {
		switch (mnl_attr_get_type(attr)) {
		case RTA_OIF:
			ret->oif = mnl_attr_get_u32(attr);
			break;
		case RTA_PREFSRC:
			ip_from_attr(attr, rtm->rtm_family, &ret->source);
			break;
		case RTA_GATEWAY:
			ip_from_attr(attr, rtm->rtm_family, &ret->gateway);
			break;
		default:
			break;
		}
	}
	return MNL_CB_OK;
}

int netlink_route(struct netlink *n, const struct addr *dst, const struct addr *src,
		  struct nl_route *ret)
{
	size_t len = dst->family == 4 ? 4 : 16;
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct rtmsg *rtm;
	int r;

	nlh->nlmsg_type = RTM_GETROUTE;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	rtm->rtm_family = dst->family == 4 ? AF_INET : AF_INET6;
	rtm->rtm_dst_len = (unsigned char)(len * 8);
	mnl_attr_put(nlh, RTA_DST, len, dst->ip);
	if (src && src->family == dst->family) {
		rtm->rtm_src_len = (unsigned char)(len * 8);
		mnl_attr_put(nlh, RTA_SRC, len, src->ip);
	}
	if (addr_is_link_local(dst) && dst->zone)
		mnl_attr_put_u32(nlh, RTA_OIF, dst->zone);
	*ret = (struct nl_route){0};
	r = ask(n->ask, nlh, ++n->seq, on_route, ret);
	if (!r && src && src->family)
		ret->source = *src;
	if (!r && addr_is_link_local(&ret->source))
		ret->source.zone = ret->oif;
	return r;
}

struct neighbour {
	uint16_t state;
	int64_t confirmed;
	bool found;
};

static int on_neighbour(const struct nlmsghdr *nlh, void *user)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	struct neighbour *ret = user;
	const struct nlattr *attr;

	if (nlh->nlmsg_type != RTM_NEWNEIGH)
		return MNL_CB_OK;
	ret->found = true;
	ret->state = ndm->ndm_state;
	mnl_attr_for_each(attr, nlh, sizeof(*ndm)) {
		const struct nda_cacheinfo *ci;

		if (mnl_attr_get_type(attr) != NDA_CACHEINFO ||
		    mnl_attr_get_payload_len(attr) < sizeof(*ci))
			continue;
		ci = mnl_attr_get_payload(attr);
		ret->confirmed = (int64_t)ci->ndm_confirmed * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
	}
	return MNL_CB_OK;
}

int netlink_neighbour(struct netlink *n, uint32_t link, const struct addr *a,
		      uint16_t *ret_state, int64_t *ret_confirmed_ns)
{
	struct neighbour got = {0};
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ndmsg *ndm;
	int r;

	nlh->nlmsg_type = RTM_GETNEIGH;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	ndm = mnl_nlmsg_put_extra_header(nlh, sizeof(*ndm));
	ndm->ndm_family = a->family == 4 ? AF_INET : AF_INET6;
	ndm->ndm_ifindex = (int)link;
	mnl_attr_put(nlh, NDA_DST, a->family == 4 ? 4 : 16, a->ip);
	r = ask(n->ask, nlh, ++n->seq, on_neighbour, &got);
	if (r < 0)
		return r;
	if (!got.found)
		return -ENOENT;
	*ret_state = got.state;
	*ret_confirmed_ns = got.confirmed;
	return 0;
}

/* ---- RDMA devices ---- */

struct rdma_list {
	struct nl_rdma_device *d;
	int n;
};

static int on_rdma(const struct nlmsghdr *nlh, void *user)
{
	struct rdma_list *list = user;
	struct nl_rdma_device d = {0};
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, 0) {
		size_t len = mnl_attr_get_payload_len(attr);

		switch (mnl_attr_get_type(attr)) {
		case RDMA_NLDEV_ATTR_DEV_INDEX:
			d.index = len == 4 ? mnl_attr_get_u32(attr) : 0;
			break;
		case RDMA_NLDEV_ATTR_DEV_NAME:
			text_clean(d.name, sizeof(d.name), mnl_attr_get_payload(attr), len);
			break;
		case RDMA_NLDEV_ATTR_PORT_INDEX:
			d.ports = len == 4 ? mnl_attr_get_u32(attr) : 0;
			break;
		case RDMA_NLDEV_ATTR_NODE_GUID:
			d.node_guid = len == 8 ? mnl_attr_get_u64(attr) : 0;
			break;
		case RDMA_NLDEV_ATTR_SYS_IMAGE_GUID:
			d.sys_guid = len == 8 ? mnl_attr_get_u64(attr) : 0;
			break;
		case RDMA_NLDEV_ATTR_FW_VERSION:
			text_clean(d.fw, sizeof(d.fw), mnl_attr_get_payload(attr), len);
			break;
		default:
			break;
		}
	}
	if (!d.name[0])
		return MNL_CB_OK;
	list->d = xrealloc(list->d, (size_t)list->n + 1, sizeof(d));
	list->d[list->n++] = d;
	return MNL_CB_OK;
}

int netlink_rdma_devices(struct nl_rdma_device **ret, int *ret_count)
{
	struct rdma_list list = {0};
	int r = 0;
	struct mnl_socket *s = open_socket(NETLINK_RDMA, 0, &r);
	char buf[64];
	struct nlmsghdr *nlh;

	if (!s)
		return r;
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET);
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP;
	r = ask(s, nlh, (uint32_t)time(NULL), on_rdma, &list);
	mnl_socket_close(s);
	if (r < 0) {
		free(list.d);
		return r;
	}
	*ret = list.d;
	*ret_count = list.n;
	return 0;
}
