#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
# The first program of a guest. It stays as the parent of orphans, so that the agent need not wait
# for them. The only file system is memory: there is nothing to save at the end.
b=/bin/busybox
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C TERM=dumb

mount()
{
    $b mkdir -p "$2"
    $b mount -t "$1" none "$2"
}
mount proc /proc
mount sysfs /sys
mount devtmpfs /dev
mount tmpfs /dev/shm
mount devpts /dev/pts
mount tmpfs /tmp
mount tmpfs /run
mount cgroup2 /sys/fs/cgroup
mount bpf /sys/fs/bpf
mount tracefs /sys/kernel/tracing
# The console had everything so far, for those who look why a guest hangs; from here on it would
# disturb what is measured.
$b dmesg -n 4
$b hostname guest
$b ip link set lo up
if [ -e /perch.bpf-stats ]
then
    echo 1 > /proc/sys/kernel/bpf_stats_enabled
fi

job=
if [ -e /perch.job ]
then
    job="--job /perch.job"
fi
# The port of a driver that is built in has its name by now; that of a module gets it a little later.
if [ -d /modules ]
then
    for module in /modules/*
    do
        $b insmod "$module"
    done
    $b sleep 1
fi
for port in /sys/class/virtio-ports/*
do
    if [ "$($b cat "$port/name")" = perch.agent ]
    then
        # shellcheck disable=SC2086 # no argument where there is no job
        perch agent serve "/dev/${port##*/}" $job
    fi
done
$b poweroff -f
