/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include <sys/socket.h>
#include <unistd.h>

#include "cm.h"
#include "facts.h"

struct answer {
	uint32_t index;
	char name[EP_IF_MAX];
};

static int on_attribute(const struct nlattr *attr, void *data)
{
	struct answer *a = data;

	switch (mnl_attr_get_type(attr)) {
	case RDMA_NLDEV_ATTR_NDEV_INDEX:
		if (mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
			a->index = mnl_attr_get_u32(attr);
		break;
	case RDMA_NLDEV_ATTR_NDEV_NAME:
		if (mnl_attr_validate(attr, MNL_TYPE_STRING) >= 0)
			text_clean(a->name, sizeof(a->name), mnl_attr_get_payload(attr),
				   mnl_attr_get_payload_len(attr));
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

static int on_message(const struct nlmsghdr *nlh, void *data)
{
	return mnl_attr_parse(nlh, 0, on_attribute, data);
}

static int ask(struct mnl_socket *s, uint32_t device_index, uint32_t port,
	       struct answer *a)
{
	char buf[8192]; /* MNL_SOCKET_BUFFER_SIZE is not a constant */
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	ssize_t n;

	nlh->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET);
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	nlh->nlmsg_seq = port;
	mnl_attr_put_u32(nlh, RDMA_NLDEV_ATTR_DEV_INDEX, device_index);
	mnl_attr_put_u32(nlh, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	if (mnl_socket_sendto(s, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	do {
		int r;

		n = mnl_socket_recvfrom(s, buf, sizeof(buf));
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		r = mnl_cb_run(buf, (size_t)n, port, mnl_socket_get_portid(s),
			       on_message, a);
		if (r < 0)
			return -errno;
		if (r == MNL_CB_STOP)
			return 0;
	} while (true);
}

int netdev_of_port(uint32_t device_index, uint32_t port, uint32_t *ret_index,
		   char ret_name[EP_IF_MAX])
{
	struct mnl_socket *s = mnl_socket_open2(NETLINK_RDMA, SOCK_CLOEXEC);
	struct answer a = {0};
	int r;

	if (!s)
		return -errno;
	r = mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : 0;
	if (!r)
		r = ask(s, device_index, port, &a);
	(void)mnl_socket_close(s);
	if (r < 0)
		return r;
	if (!a.index)
		return -ENODEV;
	*ret_index = a.index;
	(void)str_copy(ret_name, EP_IF_MAX, a.name);
	return 0;
}

/* A UDP socket tells without sending anything. */
bool path_works(const struct addr *local, const struct addr *remote)
{
	struct sockaddr_storage src, dst;
	struct addr from = *local;
	socklen_t src_len, dst_len;
	bool ok;
	int fd;

	from.port = 0;
	src_len = addr_to_sockaddr(&from, &src);
	dst_len = addr_to_sockaddr(remote, &dst);
	fd = socket(local->family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC,
		    0);
	if (fd < 0)
		return true;
	ok = !bind(fd, (struct sockaddr *)&src, src_len) &&
	     !connect(fd, (struct sockaddr *)&dst, dst_len);
	(void)close(fd);
	return ok;
}
