// SPDX-License-Identifier: GPL-2.0-or-later
//! Why a CPU was chosen: `enum perch_reason` with names.

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a CPU was chosen. The simulator's metrics, the live statistics and the replay
        /// count the same reasons. The numbers are those of `enum perch_reason`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum Reason { $($(#[$doc])* $variant,)* }

        impl Reason {
            /// Every reason, by number.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// The name under which it is counted.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }
        }
    };
}

reasons! {
    /// No decision was made yet.
    Nothing = "nothing",
    /// Only one CPU is allowed.
    Affinity = "affinity",
    /// The caller asked for the waker's CPU.
    Hint = "hint",
    /// The CPU that wake_affine aimed at is idle.
    TargetIdle = "target idle",
    /// The previous CPU is idle.
    PrevIdle = "previous idle",
    /// The wakee stacks on the per-CPU kthread that woke it.
    Kthread = "kthread",
    /// The CPU before the previous one is idle.
    RecentIdle = "recent idle",
    /// An SMT sibling of the previous CPU is idle.
    SiblingIdle = "sibling idle",
    /// The cluster has a fully idle core.
    ClusterCore = "cluster core",
    /// The cluster has an idle CPU.
    ClusterScan = "cluster scan",
    /// The LLC has a fully idle core.
    LlcCore = "LLC core",
    /// The LLC has no idle core, but an idle thread.
    LlcThread = "LLC thread",
    /// The LLC has an idle CPU.
    LlcScan = "LLC scan",
    /// The previous CPU, idle in another cluster, after the cluster had none.
    ClusterPrev = "cluster fallback to previous",
    /// The recent CPU, likewise.
    ClusterRecent = "cluster fallback to recent",
    /// Nothing idle was found: the target, busy.
    TargetBusy = "target busy",
    /// The target has no last-level cache domain.
    NoLlc = "no LLC",
    /// Fork or exec: the idlest CPU of the idlest group.
    SlowPath = "slow path",
    /// The choice was not allowed: the nearest allowed CPU.
    Fallback = "fallback",
    /// The task fits the idle CPU's capacity.
    CapacityFit = "capacity fit",
    /// The task fits no idle CPU's capacity: the best of them.
    CapacityBest = "best capacity",
    /// Nothing idle was found: the CPU with the most spare capacity.
    CapacitySpare = "most spare capacity",
    /// Up to 5.6, on asymmetric machines: a wake-up balanced like a fork.
    WakeBalance = "wake balance",
    /// 3.4: the first idle group of CPUs, from the last-level cache downward.
    IdleGroup = "idle group",
    /// 3.4: the previous CPU; the waker's is not allowed or out of reach, and nobody searched.
    Unsearched = "not searched",
    /// Nothing idle was found: a CPU where the wakee's task group has nothing queued.
    EmptyQueue = "empty queue",
}
