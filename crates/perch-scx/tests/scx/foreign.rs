// SPDX-License-Identifier: GPL-2.0-or-later
//! A tiny scheduler of somebody else, in a checkout that has as little in it as one can have.

use std::fs;
use std::path::{Path, PathBuf};

use perch_policy::{Era, Modes, Policy};
use perch_scx::{ForeignError, Package};
use perch_sim::Scenario;
use tempfile::TempDir;

use crate::common::checked;
use crate::load::random;

/// What the scheduler and perch's headers need of the kernel's structures.
const VMLINUX: &str = "
typedef int s32; typedef unsigned int u32; typedef long long s64; typedef unsigned long long u64;
typedef _Bool bool;
enum { false, true };
enum bpf_map_type { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_BLOOM_FILTER = 30 };
enum scx_public_consts {
	SCX_SLICE_DFL = 20000000,
};
enum scx_dsq_id_flags {
	SCX_DSQ_LOCAL = 9223372036854775810ULL,
};
struct cpumask { u64 bits[128]; };
struct mm_struct { int users; };
struct kernfs_node { const char *name; u64 id; };
struct cgroup { struct kernfs_node *kn; int level; struct cgroup *ancestors[]; };
struct css_set { struct cgroup *dfl_cgrp; };
struct task_struct {
	u32 flags, policy; int static_prio, prio, normal_prio, nr_cpus_allowed, pid, tgid;
	struct cpumask *cpus_ptr; struct mm_struct *mm; struct css_set *cgroups;
	struct task_struct *group_leader, *real_parent, *parent;
	struct { u64 sum_exec_runtime; } se;
	struct { u32 flags, weight; u64 slice, dsq_vtime, runnable_at; } scx;
	char comm[16];
};
struct cpuidle_state { s64 exit_latency_ns; };
struct rq { u32 nr_running, online; struct task_struct *curr, *idle; struct cpuidle_state *idle_state; };
struct scx_init_task_args { bool fork; struct cgroup *cgroup; };
struct scx_exit_task_args { bool cancelled; };
struct scx_cgroup_init_args { u32 weight; };
struct scx_exit_info { int kind; s64 exit_code; const char *reason; char *msg, *dump; };
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *mask);
	void (*update_idle)(s32 cpu, bool idle);
	void (*cpu_acquire)(s32 cpu, void *args);
	void (*cpu_release)(s32 cpu, void *args);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch, timeout_ms;
	u64 flags;
	char name[128];
};
";

const COMMON: &str = "
#include \"vmlinux.h\"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#define SCX_OPS_DEFINE(name, ...) struct sched_ext_ops name = {__VA_ARGS__};
u64 __SCX_SLICE_DFL __weak;
s32 scx_bpf_create_dsq(u64 dsq, s32 node);
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle);
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq, u64 slice, u64 enq_flags);
bool scx_bpf_dsq_move_to_local(u64 dsq);
void scx_bpf_error_bstr(const char *format, unsigned long long *data, u32 size);
struct cpumask *bpf_cpumask_create(void);
void bpf_cpumask_set_cpu(u32 cpu, struct cpumask *mask);
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask);
void bpf_cpumask_release(struct cpumask *mask);
";

/// First come, first served, from one queue. It ends itself if its loader has not set what it should
/// have, or if a division by zero is not that of BPF.
const TINY: &str = "
#include <scx/common.bpf.h>
const volatile u32 cpus = 1;
const volatile bool said;
const volatile u64 capacity[512];
struct cpumask *known;
u64 ran;
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} counts SEC(\".maps\");
static void refuse(const char *why) { scx_bpf_error_bstr(why, 0, 0); }
int know_cpu(s32 *cpu)
{
	if (!known)
		known = bpf_cpumask_create();
	bpf_cpumask_set_cpu(*cpu, known);
	return 0;
}
s32 BPF_PROG(tiny_init)
{
	s32 cpu;

	bpf_for(cpu, 0, cpus)
		if (!bpf_cpumask_test_cpu(cpu, known) || !capacity[cpu])
			refuse(\"a CPU is not known\");
	bpf_cpumask_release(known);
	if (!said || __SCX_SLICE_DFL != SCX_SLICE_DFL)
		refuse(\"the loader has not said it\");
	return scx_bpf_create_dsq(0, -1);
}
s32 BPF_PROG(tiny_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

	if (idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
	return cpu;
}
void BPF_PROG(tiny_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 key = 0;
	u64 *count = bpf_map_lookup_elem(&counts, &key), zero = p->scx.weight / 100000;

	if (!count || p->group_leader->tgid != p->tgid || 5 / zero || 5 % zero != 5)
		refuse(\"something is not as in the kernel\");
	(*count)++;
	scx_bpf_dsq_insert(p, 0, SCX_SLICE_DFL, enq_flags);
}
void BPF_PROG(tiny_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(0);
}
void BPF_PROG(tiny_running, struct task_struct *p) { ran++; }
SCX_OPS_DEFINE(tiny_ops,
	       .init = (void *)tiny_init,
	       .select_cpu = (void *)tiny_select_cpu,
	       .enqueue = (void *)tiny_enqueue,
	       .dispatch = (void *)tiny_dispatch,
	       .running = (void *)tiny_running,
	       .name = \"tiny\");
";

const SET: &str = "
[set]
cpus = \"nr_cpus\"
said = true
capacity = { u64 = \"capacity\" }

[[call]]
program = \"know_cpu\"
each = \"cpu\"
arguments = [\"cpu\"]
";

fn checkout(source: &str) -> (TempDir, PathBuf) {
    let root = TempDir::new().expect("a folder");
    let put = |name: &str, text: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a file in it")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    };
    put("include/vmlinux.h", VMLINUX);
    put("include/scx/common.bpf.h", COMMON);
    put("tiny.toml", SET);
    let path = put("scx_tiny.bpf.c", source);
    (root, path)
}

fn build(root: &Path, path: &Path) -> Result<Package, ForeignError> {
    Package::build(path, Some(&root.join("tiny.toml")))
}

#[test]
fn a_scheduler_runs_as_its_source_and_its_description_say() {
    let (root, path) = checkout(TINY);
    let built = build(root.path(), &path).expect("a scheduler");
    assert_eq!(built.name, "tiny");
    let file = root.path().join("tiny.scx");
    built.write(&file).expect("a file");
    let read = Package::open(&file).expect("what was written");
    assert_eq!(read.name, "tiny");
    let scheduler = read.outside("scx:tiny".to_string()).expect("an object");
    for seed in 0..4 {
        let scenario = Scenario {
            policy: Policy::new(Era::V7_2, Modes::default()),
            scheduler: Some(scheduler.clone()),
            ..random(seed, 12)
        };
        checked(&scenario, 0, |_| {});
    }
}

/// The structures of another version would be read at wrong places.
#[test]
fn a_file_of_another_version_is_refused() {
    let (root, path) = checkout(TINY);
    let file = root.path().join("tiny.scx");
    let built = build(root.path(), &path).expect("a scheduler");
    built.write(&file).expect("a file");
    let mut bytes = fs::read(&file).expect("a file");
    let interface = bytes.len() - 16;
    bytes[interface] ^= 1;
    fs::write(&file, bytes).expect("a file");
    let error = Package::open(&file).unwrap_err().to_string();
    assert!(error.ends_with("build it anew with `perch scx build`"), "{error}");
}

#[test]
fn everything_that_is_missing_is_said_at_once() {
    let source = TINY
        .replace("scx_bpf_create_dsq(0, -1)", "scx_bpf_xyz(bpf_abc())")
        .replace("TYPE_ARRAY", "TYPE_BLOOM_FILTER");
    let (root, path) = checkout(&source);
    let error = build(root.path(), &path).unwrap_err().to_string();
    for part in [
        "scx_tiny.bpf.c needs what the simulated kernel lacks:\n",
        "  the map type BPF_MAP_TYPE_BLOOM_FILTER is not supported\n",
        "  bpf_abc() is not supported\n",
        "  scx_bpf_xyz() is not supported",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn what_cannot_be_built_has_its_reason() {
    let reason = |source: &str, missing: &str, set: &str| {
        let (root, path) = checkout(source);
        if !missing.is_empty() {
            fs::remove_file(root.path().join(missing)).expect("a file");
        }
        fs::write(root.path().join("tiny.toml"), set).expect("a file");
        build(root.path(), &path).unwrap_err().to_string()
    };
    for (error, part) in [
        (reason("", "", SET), "there is no struct sched_ext_ops"),
        (reason(TINY, "include/vmlinux.h", SET), "vmlinux.h is missing"),
        (
            reason(TINY, "include/scx/common.bpf.h", SET),
            "expected a checkout of github.com/sched-ext/scx",
        ),
        (reason(&format!("#include <no.h>\n{TINY}"), "", SET), "'no.h' file not found"),
        (reason(TINY, "", "[set]\nslices = 1\n"), "no variable, program or map slices"),
        (reason(TINY, "", "[sot]\n"), "unknown field `sot`"),
    ] {
        assert!(error.contains(part), "{error}");
    }
}
