#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Compares what config_text says with the files here. With --update it writes them.
#   run-config.sh [--update] CONFIG_TEXT SOURCE_DIR
set -u
update=
[ "$1" = --update ] && { update=1; shift; }
tool=$(realpath "$1") source=$2
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0

# same NAME EXPECTED GOT
same() {
	if [ -n "$update" ]; then
		cp "$3" "$2"
	elif ! diff -u "$2" "$3"; then
		echo "$1: differs from $2"
		failed=1
	fi
}

cd "$source/tests/golden/config" || exit 1
n=0
for conf in *.conf; do
	n=$((n + 1))
	"$tool" check "$conf" >"$tmp/out" 2>"$tmp/got"
	echo "exit $?" >>"$tmp/got"
	[ -s "$tmp/out" ] && { echo "$conf: check wrote to standard output"; failed=1; }
	same "$conf" "${conf%.conf}.ok" "$tmp/got"

	# what runs, read again, is the same and has no mistake in it
	"$tool" dump "$conf" >"$tmp/dump.conf" 2>/dev/null
	"$tool" dump "$tmp/dump.conf" >"$tmp/again" 2>"$tmp/err" || {
		echo "$conf: its dump has mistakes"; cat "$tmp/err"; failed=1; }
	cmp "$tmp/dump.conf" "$tmp/again" || { echo "$conf: dump of the dump differs"; failed=1; }
done
[ "$n" -ge 5 ] || { echo "only $n configurations found"; failed=1; }
"$tool" dump good.conf >"$tmp/got" 2>&1
same "dump of good.conf" good.dump "$tmp/got"

"$tool" sample >"$tmp/got"
same "sample" "$source/conf/fabd.conf" "$tmp/got"
# the sample says nothing, and with its keys uncommented nothing else
"$tool" check "$source/conf/fabd.conf" || failed=1
sed 's/^#\([A-Z[]\)/\1/; s/^Address=$/Address=10.0.0.1/' "$source/conf/fabd.conf" \
	>"$tmp/all.conf"
"$tool" check "$tmp/all.conf" || { echo "uncommented sample has mistakes"; failed=1; }
"$tool" dump "$source/conf/fabd.conf" >"$tmp/a"
sed '/^\[Peer/,$d; /^\[Port /,/^\[Probe\]/{/^\[Probe\]/!d}' "$tmp/all.conf" >"$tmp/b.conf"
"$tool" dump "$tmp/b.conf" >"$tmp/b"
diff "$tmp/a" "$tmp/b" || { echo "uncommented sample is not the default"; failed=1; }

# the manual: all keys, between its two marks
man=$source/man/fabd.conf.5
{
	sed '/^\.\\" keys begin/q' "$man"
	"$tool" man
	sed -n '/^\.\\" keys end/,$p' "$man"
} >"$tmp/got"
same "manual" "$man" "$tmp/got"
exit $failed
