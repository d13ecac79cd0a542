// SPDX-License-Identifier: GPL-2.0-or-later
//! The books of the fair class: the numbers of every queue, of a CPU or of a group, agree with the
//! entities in it, and the levels agree with one another.

use perch_policy::Host;

use super::entity::Owner;
use crate::class::RunQueues;
use crate::class::pelt::{Activity, Average};
use crate::core::Life;
use crate::era::FairRules;
use crate::id::{EntityId, IdVec, QueueId, TaskId};
use crate::{Violation, hold};

impl RunQueues {
    fn queue_numbers(&self) -> impl Iterator<Item = QueueId> + use<> {
        self.fair.queues.ids()
    }

    /// Returns the tasks that are queued and do not run.
    pub(crate) fn fair_waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        let queues = self.queue_numbers();
        let entities = queues.flat_map(|q| self.fair.queue(q).timeline.iter().map(|w| w.entity));
        entities.filter_map(|entity| match self.fair.owner(entity) {
            Owner::Task(task) => Some(task),
            Owner::Group(_) => None,
        })
    }

    /// Returns each queue's floor, which never goes back.
    pub(crate) fn floors(&self) -> Vec<i64> {
        let queues = self.queue_numbers();
        queues.map(|q| self.fair.queue(q).min_vruntime).collect()
    }

    /// Returns whether `task` is counted in a queue's averages.
    pub(crate) fn is_attached(&self, task: TaskId) -> bool {
        self.fair.entity_of(task).attached
    }

    pub(crate) fn check_queues(&self, host: &Host) -> Result<(), Violation> {
        let mut est = vec![0; self.cpus.len()];
        for (t, se) in self.tasks.iter().zip(&self.fair.entities) {
            if se.queued && !se.delayed {
                est[t.cpu] += se.est();
            }
        }
        for (cpu, est) in est.into_iter().enumerate() {
            let fair = self.fair.cpu_queue(cpu);
            hold!(fair.est == est, "cpu {cpu}: util_est {}, not {est}", fair.est);
            let current = self.fair_current(cpu);
            let runs = self.each_running(QueueId::of_cpu(cpu));
            hold!(runs == current, "cpu {cpu} runs {current:?}, its queues {runs:?}");
        }
        for queue in self.queue_numbers() {
            let cpu = self.fair.cpu_of(queue);
            self.check_queue(queue)
                .map_err(|e| e.within(format_args!("cpu {cpu}, queue {queue}")))?;
        }
        self.fair.check_shares(host, &self.tasks)
    }

    /// Returns the task that runs, as the queues from this one downwards have it.
    fn each_running(&self, queue: QueueId) -> Option<TaskId> {
        let curr = self.fair.queue(queue).curr;
        if curr == EntityId::NONE {
            return None;
        }
        match self.fair.owner(curr) {
            Owner::Group(below) => self.each_running(below),
            Owner::Task(task) => Some(task),
        }
    }

    /// Checks that a queue's numbers are those of the entities in it.
    fn check_queue(&self, queue: QueueId) -> Result<(), Violation> {
        let (cpu, fair) = (self.fair.cpu_of(queue), self.fair.queue(queue));
        let eevdf = matches!(self.rules.fair, FairRules::Eevdf { .. });
        let (mut weight, mut weighted, mut len) = (0, 0, 0);
        let (mut nr, mut delayed) = (0, 0);
        let mut last = i64::MIN;
        let mut count = |entity: EntityId| -> Result<(), Violation> {
            let se = self.fair.entity(entity);
            len += 1;
            hold!(se.queued, "{entity} stands there and is not queued");
            match self.fair.owner(entity) {
                Owner::Task(task) => {
                    let t = &self.tasks[task];
                    hold!(
                        t.cpu == cpu && self.queue_of(task) == queue,
                        "task {task} thinks it is on cpu {}, queue {}",
                        t.cpu,
                        self.queue_of(task)
                    );
                    nr += 1;
                    delayed += u32::from(se.delayed);
                }
                Owner::Group(below) => {
                    let fair = self.fair.queue(below);
                    hold!(
                        self.fair.above(below) == Some((queue, entity)),
                        "group {entity} stands in the wrong queue"
                    );
                    hold!(
                        (fair.entities == 0) == se.delayed,
                        "group {entity} has {} queued, delayed {}",
                        fair.entities,
                        se.delayed
                    );
                    nr += fair.nr;
                    delayed += fair.nr_delayed;
                }
            }
            Ok(())
        };
        for w in fair.timeline.iter() {
            let se = self.fair.entity(w.entity);
            let key = if eevdf { se.deadline } else { se.vruntime };
            hold!(
                (w.key, w.vruntime, w.weight) == (key, se.vruntime, se.weight),
                "{} changed on the timeline: {w:?} {se:?}",
                w.entity
            );
            hold!(last <= w.key, "the timeline is out of order");
            last = w.key;
            weight += u64::from(w.weight);
            weighted += i64::from(w.weight) * (w.vruntime - fair.min_vruntime);
            count(w.entity)?;
        }
        hold!(
            fair.waiting_weight == weight,
            "waiting weight {}, not {weight}",
            fair.waiting_weight
        );
        hold!(
            !eevdf || fair.weighted_v == weighted,
            "weighted_v {}, not {weighted}",
            fair.weighted_v
        );
        if fair.curr != EntityId::NONE {
            weight += u64::from(self.fair.entity(fair.curr).weight);
            count(fair.curr)?;
            if let Owner::Task(task) = self.fair.owner(fair.curr) {
                let life = self.tasks[task].life;
                hold!(life == Life::Running, "runs task {task}, which is {life:?}");
            }
        }
        hold!(fair.entities == len, "{} entities of {len}", fair.entities);
        hold!(fair.nr == nr, "nr {} of {nr} tasks", fair.nr);
        hold!(
            self.fair.says_runnable(queue).is_none_or(|says| says == (nr > delayed)),
            "the policy is told the opposite of {nr} tasks, {delayed} asleep"
        );
        hold!(fair.weight == weight, "weight {}, not {weight}", fair.weight);
        hold!(fair.nr_delayed == delayed, "{} of {delayed} tasks delayed", fair.nr_delayed);
        self.check_buddies(queue)
    }

    /// Checks that a queue's buddies are queued and not delayed.
    fn check_buddies(&self, queue: QueueId) -> Result<(), Violation> {
        let fair = self.fair.queue(queue);
        for buddy in [fair.next_buddy, fair.last_buddy] {
            hold!(
                buddy == EntityId::NONE
                    || self.fair.entity(buddy).queued && !self.fair.entity(buddy).delayed,
                "its buddy {buddy} is not queued"
            );
        }
        Ok(())
    }

    /// Checks that the sums behind a queue's averages are those of the entities in it, sleepers
    /// included. (The averages themselves lag behind by up to a period, here as in the kernel.)
    pub(crate) fn check_averages(&self) -> Result<(), Violation> {
        // 3.4 keeps no averages of groups.
        if self.rules.by_weight() && self.fair.groups.any() {
            return Ok(());
        }
        let mut sums: IdVec<QueueId, [u64; 3]> = self.queue_numbers().map(|_| [0; 3]).collect();
        let mut members: IdVec<QueueId, u64> = self.queue_numbers().map(|_| 0).collect();
        // The heaviest of all entities: one that has left a queue leaves its rounding error there.
        let tasks = self.tasks.named().map(|(id, _)| self.fair.entity_of(id).weight);
        let groups = self
            .queue_numbers()
            .filter_map(|queue| self.fair.above(queue))
            .map(|(_, entity)| self.fair.entity(entity).weight);
        let heaviest = tasks.chain(groups).max().unwrap_or(0);
        let mut add = |queue: QueueId, now: [u64; 3]| {
            let sum: &mut [u64; 3] = &mut sums[queue];
            sum.iter_mut().zip(now).for_each(|(sum, one)| *sum += one);
            members[queue] += 1;
        };
        for (id, t) in self.tasks.named() {
            let se = self.fair.entity_of(id);
            if t.life == Life::Dead && self.queue_of(id) != QueueId::NONE {
                // A task that ended in this queue left its rounding error there, so it counts as a
                // member.
                add(self.queue_of(id), [0; 3]);
            } else if se.attached {
                let now = self.sums_now(
                    t.cpu,
                    se.average,
                    Activity {
                        weight: if se.queued { se.weight } else { 0 },
                        runnable: (se.queued && !se.delayed).into(),
                        running: t.life == Life::Running,
                    },
                );
                add(self.queue_of(id), now);
            }
        }
        for queue in self.queue_numbers() {
            let Some((parent, entity)) = self.fair.above(queue) else {
                continue;
            };
            let (fair, se) = (self.fair.queue(queue), self.fair.entity(entity));
            let now = self.sums_now(
                self.fair.cpu_of(queue),
                se.average,
                Activity {
                    weight: if se.queued { se.weight } else { 0 },
                    runnable: fair.nr - fair.nr_delayed,
                    running: self.fair.queue(parent).curr == entity,
                },
            );
            add(parent, now);
        }
        // The tolerance for rounding is half a percent, and a thousandth of the heaviest entity for
        // each member.
        let unit = 1024 + u64::from(heaviest);
        for queue in self.queue_numbers() {
            let (cpu, fair) = (self.fair.cpu_of(queue), self.fair.queue(queue));
            let (sums, members) = (sums[queue], members[queue]);
            let mut average = fair.average;
            average.remove(fair.removed);
            let kept = self.sums_now(
                cpu,
                average,
                Activity {
                    weight: fair.weight as u32,
                    runnable: fair.nr - fair.nr_delayed,
                    running: fair.curr != EntityId::NONE,
                },
            );
            // Of a sleeper that a wake-up takes away the kernel leaves behind what it did since its averages
            // last moved, which is a CPU's time at most, and takes its averages for a period's part more
            // than its sums have.
            if fair.has_lost {
                let kept_util = kept[2] + sums[2] / 4 + (1 << 18) + unit * (members + 2);
                let most_util = sums[2] + (1 << 20) + unit * (members + 2);
                hold!(
                    kept_util >= sums[2] && kept[2] <= most_util,
                    "cpu {cpu}, queue {queue}: util {}/1024 of {}/1024, and some have left",
                    kept[2],
                    sums[2]
                );
                continue;
            }
            for (what, (&kept, &sum)) in
                ["load", "runnable", "util"].iter().zip(kept.iter().zip(&sums))
            {
                let near = kept.abs_diff(sum) <= sum / 200 + unit * (members + 2);
                hold!(near, "cpu {cpu}, queue {queue}: {what} {kept}/1024 of {sum}/1024");
            }
        }
        Ok(())
    }

    fn sums_now(&self, cpu: usize, mut average: Average, did: Activity) -> [u64; 3] {
        let did = if did.weight == 0 && did.runnable == 0 { Activity::NONE } else { did };
        average.update(self.cpus[cpu].pelt.read(self.now), did);
        average.sums()
    }
}
