// SPDX-License-Identifier: GPL-2.0-or-later
//! Looks for tasks of the classes above sched_ext.

use crate::stat::Stat;
use crate::tree::{Tree, UnseenError};

/// Tasks that are looked at.
const MOST_TASKS: usize = 500_000;

/// The tasks of user space that the kernel runs before all of perch's.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RealTime {
    /// These tasks, by ascending process.
    pub tasks: Vec<Task>,
    /// Tasks that were looked at.
    pub looked: usize,
    /// True if there are more than were looked at.
    pub cut: bool,
    /// True if /proc hides the processes of others from this user.
    pub hidden: bool,
}

/// A task of SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub tid: u32,
    /// Its command's name, which may hold any character.
    pub comm: String,
    /// Its policy: `fifo`, `rr` or `deadline`.
    pub policy: &'static str,
    /// Its priority, 1 to 99; 0 under SCHED_DEADLINE.
    pub priority: u32,
    /// True if it runs, or waits for a CPU.
    pub runs: bool,
}

/// Looks at the threads of each process that is seen.
///
/// # Errors
/// When /proc cannot be listed.
pub(super) fn look(tree: &Tree) -> Result<RealTime, UnseenError> {
    let mut found = RealTime {
        // Process 1 is another user's, unless it is the only one to be seen.
        hidden: !matches!(tree.text("proc/1/stat"), Ok(Some(_))),
        ..RealTime::default()
    };
    let mut processes: Vec<u32> =
        tree.names("proc")?.iter().filter_map(|name| name.parse().ok()).collect();
    processes.sort_unstable();
    for process in processes {
        let folder = format!("proc/{process}");
        let whole = tree.text(&format!("{folder}/stat")).ok().flatten();
        if whole.is_none_or(|stat| Stat::read(&stat).is_none_or(|stat| stat.is_kernel_s())) {
            continue;
        }
        let folder = format!("{folder}/task");
        for tid in tree.numbers(&folder) {
            if found.looked == MOST_TASKS {
                found.cut = true;
                return Ok(found);
            }
            found.looked += 1;
            let stat = tree.text(&format!("{folder}/{tid}/stat")).ok().flatten();
            let stat = stat.as_deref().and_then(Stat::read);
            found.tasks.extend(stat.and_then(|stat| task(tid, &stat)));
        }
    }
    Ok(found)
}

/// The task, if it is of a class above sched_ext.
fn task(tid: u32, stat: &Stat<'_>) -> Option<Task> {
    // SCHED_FIFO, SCHED_RR and SCHED_DEADLINE of sched(7).
    let policy = match stat.policy {
        1 => "fifo",
        2 => "rr",
        6 => "deadline",
        _ => return None,
    };
    Some(Task {
        tid,
        comm: stat.comm.to_string(),
        policy,
        priority: stat.priority,
        runs: stat.state == "R",
    })
}
