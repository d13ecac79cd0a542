// SPDX-License-Identifier: GPL-2.0-or-later
//! A user without rights on the machine that perch schedules: who fills tables, takes others' names and keeps
//! connections open harms nobody else.

use perch_lab::Cpus;

use crate::guest::{deterministic_shell, resolve};

/// What the user does. With `work` it forks two thousand times more.
const ENEMY: &str = r#"
    printf rt > /proc/$$/comm
    for n in $(seq 24); do
        { printf 'GET /metrics HT'; read -t 1000 never <&9; } | nc 127.0.0.1 9843 >/dev/null 2>&1 &
    done
    for n in $(seq 100); do read -t 1000 never <&9 & done
    kill -9 $perch 2>/dev/null && echo it kills perch
    rm -f $socket 2>/dev/null; [ -S $socket ] || echo it takes the socket away
    perch stats >/dev/null 2>&1 && echo it reads the socket
    mkdir /sys/fs/cgroup/mine 2>/dev/null && echo it makes a cgroup
    : > /tmp/there
    until [ -e /tmp/work ]; do read -t 0.02 never <&9; done
    for n in $(seq 2000); do (:); done
    : > /tmp/done
    read -t 1000 never <&9"#;

const SCRIPT: &str = r#"
    cgroups favordynmods; echo +cpu > $ROOT/cgroup.subtree_control; mkdir $ROOT/few; echo 20000 100000 > $ROOT/few/cpu.max
    printf 'split_llc = 2\nprocesses = 8\nmodes = "cache=perch"\n[[band]]\ncomm = "rt*"\nuser = "root"\npriority = 5\n' > /tmp/perch.toml
    load --config /tmp/perch.toml
    perch stats --listen 127.0.0.1:9843 >/dev/null 2>&1 & listens=$!
    scrape() { wget -q -O - http://127.0.0.1:9843/metrics; }
    counts() { scrape | grep -E "^perch_($1)_total "; }
    until scrape | grep -q '^perch_up 1'; do pause 0.05; done
    export perch socket=/var/run/scx/root/stats
    su -s /bin/sh nobody -c ". /tmp/enemy" & enemy=$!
    until [ -e /tmp/there ]; do pause 0.02; done
    # A group that is younger than all of that, too.
    mkdir $ROOT/late; echo 10000 100000 > $ROOT/late/cpu.max
    for group in few late; do
        for n in 1 2; do sh -c "echo \$\$ > $ROOT/$group/cgroup.procs; while :; do :; done" & tasks="$tasks $!"; done
    done
    used() { at_once /proc/uptime $ROOT/few/cpu.stat $ROOT/late/cpu.stat | awk '/usage_usec/ || NR == 1 {
        printf "%s ", $1 == "usage_usec" ? $2 : $1 * 1000000 }'; }
    pause 0.3; before=$(used); : > /tmp/work; until [ -e /tmp/done ]; do pause 0.05; done; after=$(used)
    counts 'processes_untracked|band_wakeups|band_queued'
    sh -c 'printf rt > /proc/$$/comm; for n in 1 2 3; do read -t 0.01 never <&9; done'
    counts band_wakeups | sed s/^/root:/
    cat /sys/kernel/sched_ext/state; dmesg | grep -E 'WARNING|BUG|stall'
    kill -TERM $perch; wait $perch; echo "ended with $?"; grep 'any user' /tmp/said
    kill -9 $tasks $listens; echo used $before $after"#;

#[test]
fn a_user_without_rights_harms_nobody_else() {
    let script = format!("cat > /tmp/enemy <<'END'\n{ENEMY}\nEND\n{SCRIPT}");
    let text = deterministic_shell(&resolve("kunpeng920"), Cpus::AtMost(4), &["chrt"], &script);
    println!("{text}");
    let count = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {text}")).trim().parse().unwrap()
    };
    assert!(count("perch_processes_untracked_total") > 90, "its tasks fill the table");
    assert_eq!(count("perch_band_wakeups_total") + count("perch_band_queued_total"), 0);
    assert!(count("root:perch_band_wakeups_total") > 0);
    assert!(text.contains("\nenabled\nended with 0\n"), "{text}");
    for word in ["it kills", "it takes", "it reads", "it makes", "any user"] {
        assert!(!text.contains(word), "{text}");
    }
    let used = text.lines().find_map(|line| line.strip_prefix("used "));
    let used: Vec<f64> = used.unwrap().split(' ').filter_map(|word| word.parse().ok()).collect();
    let (before, after) = used.split_at(3);
    let share = |i: usize| (after[i] - before[i]) / (after[0] - before[0]);
    for (share, limit) in [(share(1), 0.2), (share(2), 0.1)] {
        assert!((share / limit - 1.0).abs() <= 0.1, "{share} of {limit}");
    }
}
