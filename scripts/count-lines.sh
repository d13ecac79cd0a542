#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Measures what docs/calibration.md, "Measured on the kernel", is from: the cache lines that move, the
# instructions and the lines that a task uses, for each operation of the loads that the simulator has.
#
#     scripts/count-lines.sh OUT [KERNEL]
#
# OUT is a folder for the counts, KERNEL what `perch lab run --kernel` takes (7.2 without it). PERCH is
# the perch to use, MACHINE the machine (kunpeng920). netperf and schbench are left out unless NETPERF
# is a folder with netperf and netserver, and SCHBENCH the program: Debian has netperf among what is
# not free, and no schbench. One guest runs at a time, on one CPU; all of them take some five minutes.
# shellcheck disable=SC2016 # scripts are expanded in the guest
set -eu

out=${1:?usage: scripts/count-lines.sh OUT [KERNEL]}
kernel=${2:-7.2}
perch=${PERCH:-$(dirname "$0")/../target/quick/perch}
machine=${MACHINE:-kunpeng920}
mkdir -p "$out"

# measure NAME SCRIPT PROGRAM...: counts what SCRIPT marks in a guest, into OUT/NAME.json. The kernel
# checks certificates in its first seconds, so SCRIPT begins after them.
measure() {
	name=$1 script=$2
	shift 2
	for program in "$@"; do
		set -- "$@" --with "$program"
		shift
	done
	echo "$name" >&2
	"$perch" lab run -q --coherence --marked -m "$machine" --cpus 8 --kernel "$kernel" \
		--counts "$out/$name.json" "$@" --with taskset -- sh -c "sleep 4
			# Counts for \$1 seconds into slot \$2 while a load runs.
			during() { perch lab mark start \$2; sleep \$1; perch lab mark stop \$2; }
			# Counts a whole command into slot \$1.
			whole() {
				slot=\$1; shift
				perch lab mark start \$slot; \"\$@\" >/dev/null; perch lab mark stop \$slot
			}
			$script" >"$out/$name.txt" 2>&1
}

# CPU 1 shares CPU 0's cluster, CPU 2 its LLC; CPU 4 is in another node. Slots are 0, 1, 2.
for by in pipe tcp udp; do
	measure $by "s=0; for c in 1 2 4; do
		perch lab ping --by $by --cpus 0,\$c --rounds 400 --slot \$s; s=\$((s + 1)); done"
done

measure tbench 's=0; for c in 1 2 4; do
	taskset -c $c tbench_srv >/dev/null & sleep 0.02
	taskset -c 0 tbench -t 10 1 127.0.0.1 >/dev/null & sleep 0.5
	during 0.1 $s; s=$((s + 1))
	kill -9 $(pidof tbench tbench_srv); sleep 0.05; done 2>/dev/null' tbench tbench_srv

# A group of 40 tasks on all CPUs, short and long; then four senders and four receivers, apart.
measure hackbench 'whole 0 hackbench -g 1 -l 10; whole 1 hackbench -g 1 -l 30
	hackbench -g 1 -f 4 -l 100000 >/dev/null & sleep 0.1
	set -- $(pidof hackbench | tr " " "\n" | sort -n | tail -n 8)
	s=2; for c in 1 2 4; do n=0
		for p; do n=$((n + 1)); [ $n -gt 4 ] && c=0; taskset -pc $c $p >/dev/null; done
		sleep 0.05; during 0.01 $s; s=$((s + 1)); done
	kill -9 $(pidof hackbench)' hackbench

# One thread; two on a CPU; two that share a mutex, in a cluster and in an LLC. 4 and 12 events.
measure sysbench 's=0; run() { for e in 4 12; do
		whole $s taskset -c $1 sysbench threads --thread-yields=1000 --time=0 --events=$e \
			--threads=$2 --thread-locks=$3 run; s=$((s + 1)); done; }
	run 0 1 8; run 0 2 8; run 0,1 2 1; run 0,2 2 1' sysbench

[ -z "${NETPERF:-}" ] || measure netperf 'ip addr add 10.0.0.1/8 dev lo
	s=0; for t in TCP_RR UDP_RR; do for c in 1 2 4; do
		taskset -c $c netserver -4 -p 1286$c >/dev/null
		taskset -c 0 netperf -4 -H 127.0.0.1 -p 1286$c -l -50 >/dev/null
		taskset -c 0 netperf -4 -H 127.0.0.1 -p 1286$c -t $t -l 9 >/dev/null & sleep 1
		during 0.02 $s; s=$((s + 1))
		kill $(pidof netperf netserver); sleep 0.05; done; done 2>/dev/null' \
	"$NETPERF/netperf" "$NETPERF/netserver" ip

# The matrices are as small as they can be, since the simulator counts them apart.
[ -z "${SCHBENCH:-}" ] || measure schbench 's=0; for c in 1 2 4; do
		schbench -m 1 -t 1 -r 20 -n 1 -F 1 -M 0 -W $c >/dev/null 2>&1 & sleep 0.25
		during 0.04 $s; s=$((s + 1)); kill -9 $(pidof schbench); sleep 0.05; done' "$SCHBENCH"

python3 "$(dirname "$0")/count-lines.py" "$out"
