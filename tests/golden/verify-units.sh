#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# systemd-analyze finds nothing to say about the units, and they stay as closed as they
# are: exposure in tenths, at most 16 for main and 10 for the MAD worker.
#   verify-units.sh BUILT_UNITS_DIR MAN_DIR SBINDIR LIBEXECDIR
set -u
built=$1 man=$2 sbin=$3 libexec=$4
command -v systemd-analyze >/dev/null || { echo "skip: no systemd-analyze"; exit 77; }
host=/usr/lib/systemd/system
[ -d $host ] || host=/lib/systemd/system
[ -f $host/sysinit.target ] || { echo "skip: no units of systemd"; exit 77; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0

# A root of our own: the units are looked at as installed, with what they start.
root=$tmp/root units=$tmp/root/usr/lib/systemd/system
mkdir -p "$units" "$root/bin" "$root$sbin" "$root$libexec" "$tmp/man/man8" "$tmp/man/man5"
ln -s usr/lib "$root/lib"
cp $host/*.target $host/systemd-modules-load.service "$units"
cp "$built"/fabd*.service "$built"/fabd*.socket "$units"
for program in /bin/kill "$sbin/fabd" "$libexec/fabd-mad"; do
	echo '#!/bin/sh' >"$root$program" && chmod +x "$root$program"
done
cp "$man"/*.8 "$tmp/man/man8"
cp "$man"/*.5 "$tmp/man/man5"

verify() {
	MANPATH=$tmp/man systemd-analyze verify --root="$root" \
		--man="$(command -v man >/dev/null && echo yes || echo no)" "$@" 2>&1
}

out=$(verify fabd.service fabd.socket fabd-admin.socket fabd-mad@mlx5_0.service \
	fabd-mad@mlx5_0.socket)
[ $? -eq 0 ] && [ -z "$out" ] || { echo "verify: $out"; failed=1; }

# It would have said something.
sed 's/^Type=notify/Typo=notify/' "$built/fabd.service" >"$units/typo.service"
[ -n "$(verify typo.service)" ] || { echo "verify does not see a typo"; failed=1; }

for unit in fabd.service:16 fabd-mad@.service:10; do
	file=$tmp/$(echo "${unit%:*}" | sed 's/@/@mlx5_0/')
	cp "$built/${unit%:*}" "$file"
	out=$(systemd-analyze security --offline=true --no-pager --threshold="${unit#*:}" \
		"$file" 2>&1) || { echo "$out"; failed=1; }
	echo "$out" | grep Overall
done
exit $failed
