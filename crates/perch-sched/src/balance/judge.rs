// SPDX-License-Identifier: GPL-2.0-or-later
//! The judgement of two groups: whether the busiest one is busy enough compared with the local one,
//! and what should move (`find_busiest_group`, `calculate_imbalance`).

use super::imbalance::{Group, Idle, Migrate};
use super::sums::GroupType;

/// A pair of tasks may stay together: a gap of at most this many tasks is no NUMA imbalance.
const NUMA_IMBALANCE_MIN: i64 = 2;

/// The terms by which two groups are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// The domain's load per capacity; 0 where it is not needed.
    pub mean: u64,
    /// The domain's imbalance_pct.
    pub pct: u64,
    /// The state of the CPU that balances.
    pub idle: Idle,
    /// True if tasks should spread over the domain's groups.
    pub prefer_sibling: bool,
    /// The number of tasks that a NUMA node may keep to itself.
    pub numa: Option<u32>,
    /// True if spare capacity is filled by number of tasks.
    pub by_tasks: bool,
    /// True if a fully busy local group takes nothing once it is as loaded as the mean or the busiest
    /// group (not yet in 5.5).
    pub stops_at_mean: bool,
}

/// Returns the quantity and the amount that should move, if the busiest group is busy enough
/// compared with the local one.
pub(super) fn judge(mut local: Group, busiest: Group, terms: &Terms) -> Option<(Migrate, i64)> {
    if busiest.group_type == GroupType::Misfit {
        return Some((Migrate::Misfit, 1));
    }
    if local.group_type > busiest.group_type {
        return None;
    }
    if local.group_type == GroupType::Overloaded {
        let worse = busiest.avg_load > local.avg_load
            && local.avg_load < terms.mean
            && 100 * busiest.avg_load > terms.pct * local.avg_load;
        return worse.then(|| by_load(&local, &busiest, terms.mean));
    }
    let spread = terms.prefer_sibling
        && local.group_type == GroupType::HasSpare
        && (busiest.group_type == GroupType::LlcBalance || busiest.running > local.running + 1);
    if !spread && busiest.group_type != GroupType::Overloaded {
        let alike = busiest.weight > 1 && local.idle <= busiest.idle + 1;
        if terms.idle == Idle::Busy || alike || busiest.running == 1 {
            return None;
        }
    }
    if busiest.group_type == GroupType::LlcBalance {
        return Some((Migrate::LlcTask, 1));
    }
    if local.group_type == GroupType::HasSpare {
        if busiest.group_type == GroupType::Overloaded && !terms.by_tasks {
            let spare = local.capacity.saturating_sub(local.util) as i64;
            if spare == 0 && terms.idle != Idle::Busy {
                return Some((Migrate::Task, 1));
            }
            return Some((Migrate::Util, spare));
        }
        let mut gap = if busiest.weight == 1 || terms.prefer_sibling {
            (i64::from(busiest.running) - i64::from(local.running)).max(0)
        } else {
            (i64::from(local.idle) - i64::from(busiest.idle)).max(0)
        };
        if let Some(limit) = terms.numa {
            if local.running < limit && gap <= NUMA_IMBALANCE_MIN {
                gap = 0;
            }
        }
        return Some((Migrate::Task, gap >> 1));
    }
    // The local group is fully busy: level the loads, if the busiest group is more than that. A
    // fully busy group has no average load in 6.5, and so never more than the local one.
    local.set_avg_load();
    if terms.stops_at_mean && (local.avg_load >= busiest.avg_load || local.avg_load >= terms.mean) {
        return None;
    }
    Some(by_load(&local, &busiest, terms.mean))
}

/// Returns the load that raises the local group up to the mean, or lowers the busiest one down to
/// it, if that is less. Where one of the differences is negative it wraps around, as the kernel's
/// does, and the other one counts (5.5; later kernels do not get here then).
fn by_load(local: &Group, busiest: &Group, mean: u64) -> (Migrate, i64) {
    let above = busiest.avg_load.wrapping_sub(mean);
    let below = mean.wrapping_sub(local.avg_load);
    let above = above.wrapping_mul(busiest.capacity);
    let below = below.wrapping_mul(local.capacity);
    (Migrate::Load, (above.min(below) / 1024) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        mean: 0,
        pct: 117,
        idle: Idle::Due,
        prefer_sibling: false,
        numa: None,
        by_tasks: false,
        stops_at_mean: true,
    };

    /// Returns a group of four CPUs with a task on so many of them, or more tasks than CPUs.
    fn group(running: u32, load: u64) -> Group {
        let group_type = match running {
            0..4 => GroupType::HasSpare,
            4 => GroupType::FullyBusy,
            _ => GroupType::Overloaded,
        };
        let mut group = Group {
            load,
            util: u64::from(running.min(4)) * 1024,
            capacity: 4096,
            running,
            idle: 4u32.saturating_sub(running),
            weight: 4,
            group_type,
            avg_load: 0,
            misfit: 0,
        };
        if group_type == GroupType::Overloaded {
            group.set_avg_load();
        }
        group
    }

    fn loads(tasks: u32) -> Group {
        group(tasks, u64::from(tasks) * 1024)
    }

    #[test]
    fn equal_groups_stay_as_they_are() {
        for tasks in 0..10 {
            let terms = Terms { mean: u64::from(tasks) * 256, ..TERMS };
            let moves = judge(loads(tasks), loads(tasks), &terms);
            assert!(moves.is_none_or(|(_, amount)| amount <= 0), "{tasks}: {moves:?}");
        }
    }

    #[test]
    fn judgements_by_hand() {
        use Migrate::{LlcTask, Load, Misfit, Task, Util};
        let busy = Terms { idle: Idle::Busy, ..TERMS };
        let spread = Terms { prefer_sibling: true, ..TERMS };
        let node = Terms { numa: Some(2), ..TERMS };
        let mean = |mean| Terms { mean, ..TERMS };
        let one = Group { weight: 1, idle: 0, ..loads(1) };
        let full = Group { util: 4096, ..loads(3) };
        let misfit = Group { group_type: GroupType::Misfit, misfit: 900, ..loads(4) };
        let wanted = Group { group_type: GroupType::LlcBalance, ..loads(4) };
        for (name, local, busiest, terms, expected) in [
            ("less busy than an overloaded one", loads(6), loads(3), TERMS, None),
            ("less busy than a full one", loads(4), loads(3), TERMS, None),
            ("half of the gap in idle CPUs", loads(0), loads(4), TERMS, Some((Task, 2))),
            ("one idle CPU more is no reason", loads(2), loads(3), TERMS, None),
            ("a busy CPU takes from overloaded groups only", loads(1), loads(4), busy, None),
            ("a single task stays", loads(0), one, TERMS, None),
            ("unless groups prefer to spread", loads(0), loads(2), spread, Some((Task, 1))),
            ("spare capacity", group(2, 2048), loads(8), TERMS, Some((Util, 2048))),
            ("an idle CPU takes one task", full, loads(8), TERMS, Some((Task, 1))),
            ("a busy one without spare capacity", full, loads(8), busy, Some((Util, 0))),
            ("few tasks may stay on a node", loads(0), loads(2), node, Some((Task, 0))),
            ("many may not", loads(0), loads(4), node, Some((Task, 2))),
            // 1280 is a quarter of 5 loads, 3840 of 15, and 2560 lies between them.
            ("to the mean", loads(5), loads(15), mean(2560), Some((Load, 5 * 1024))),
            ("within tolerance", group(8, 10_000), group(8, 11_000), mean(2563), None),
            ("above the mean", loads(8), loads(16), mean(1000), None),
            ("a full group stops at the mean", loads(4), loads(6), mean(1000), None),
            ("misfits one by one", loads(4), misfit, TERMS, Some((Misfit, 1))),
            ("wanted tasks one by one", loads(2), wanted, spread, Some((LlcTask, 1))),
        ] {
            assert_eq!(judge(local, busiest, &terms), expected, "{name}");
        }
        let by_tasks = Terms { by_tasks: true, ..TERMS };
        let (what, _) = judge(group(2, 2048), loads(8), &by_tasks).expect("a move");
        assert_eq!(what, Task);
        assert!(judge(group(8, 10_000), group(8, 13_000), &mean(2563)).is_some());
        let older = Terms { stops_at_mean: false, ..mean(1000) };
        let (what, amount) = judge(loads(4), loads(6), &older).expect("a move");
        assert_eq!((what, amount > 0), (Load, true));
    }

    #[test]
    fn amounts_never_overshoot_the_smaller_of_the_two_gaps() {
        for (here, there) in [(5, 6), (5, 9), (8, 20), (6, 40)] {
            let (local, busiest) = (loads(here), loads(there));
            let mean = u64::from(here + there) * 128;
            let (what, amount) = by_load(&local, &busiest, mean);
            assert_eq!(what, Migrate::Load);
            let gap = i64::from(there - here) * 1024;
            assert!(amount >= 0 && 2 * amount <= gap, "{here} and {there}: {amount}");
        }
    }
}
