// SPDX-License-Identifier: GPL-2.0-or-later
//! A build by `make -jN`, as of the kernel: make forks a shell for each file while fewer than N of
//! them are at work, and waits for one to end otherwise. The shell runs the compiler's driver, which
//! runs the compiler and then the assembler; each is a process of its own that execs, and whose end
//! wakes the parent that waits for it.
//!
//! The build ends with its last file, without a link. The score is the time in seconds. All costs are
//! guesses, of the small C files that kernels consist of; a file's time to compile is exponential, as
//! few files take much longer than the others.

use perch_engine::Dist;

use crate::keys::Keys;
use crate::workload::{MAX_TASKS, Workload, one_process_each};
use crate::{Demand, Measure, Op, SpecError, TaskSpec};

/// Tasks of a file: the shell, the driver, the compiler and the assembler.
const EACH: u64 = 4;
/// Work of a fork, of an exec with what the linker of shared objects does, and of an exit.
const FORK_NS: u64 = 100_000;
const EXEC_NS: u64 = 400_000;
const EXIT_NS: u64 = 100_000;
/// Times that a compiler waits for files.
const READS: u64 = 4;
/// Cache lines of its own that a process uses each time it runs.
const FOOTPRINT: u32 = 900;

pub(crate) fn build(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let cpus = keys.place()?.weight() as u64;
    let jobs = keys.count("jobs", cpus, 1, MAX_TASKS)?;
    let files = keys.number("files", 400, 1, MAX_TASKS / EACH - 1)?;
    // make's own work for a file, which no other CPU shares.
    let make_us = keys.number("make_us", 500, 0, 1_000_000)?;
    let compile_ms = keys.number("compile_ms", 60, 1, 1_000_000)?;
    let assemble_ms = keys.number("assemble_ms", 6, 1, 1_000_000)?;
    let io_us = keys.number("io_us", 100, 0, 1_000_000)?;
    let allowed = keys.cpus()?;
    let (tasks, jobs) = (EACH * files + 1, jobs.min(files));
    let counts = Demand::new(tasks, 31 * files + 2 * jobs, 2 * files + 1);
    keys.afford(&[("files", &files)], counts)?;

    let exec = [Op::Run(Dist::around(EXEC_NS, 20)), Op::Exec];
    let fork = |child| [Op::Run(Dist::around(FORK_NS, 20)), Op::Fork(child)];
    let wait = |channel| Op::Receive { channel };
    // The end of a child wakes its parent in a sync wake-up.
    let exit = |channel| {
        let tell = Op::Send { channel, lines: 1, sync: true };
        [Op::Run(Dist::around(EXIT_NS, 20)), tell, Op::Exit]
    };
    let task = |program: Vec<Op>, start| TaskSpec::new(program, &allowed, FOOTPRINT, start);
    let mut all = Vec::with_capacity(tasks as usize);
    let mut make = vec![Op::StartClock];
    let make_work = Op::Run(Dist::around(make_us * 1000, 50));
    let ended = 2 * files as u32;
    for file in 0..files as u32 {
        if u64::from(file) >= jobs {
            make.push(wait(ended));
        }
        let [shell, driver, compiler, assembler] = [0, 1, 2, 3].map(|i| EACH as u32 * file + i);
        let [of_shell, of_driver] = [0, 1].map(|i| 2 * file + i);
        make.push(make_work);
        make.extend(fork(shell));
        let shell = [&exec[..], &fork(driver), &[wait(of_shell)], &exit(ended)].concat();
        let [compiles, assembles] = [compiler, assembler].map(fork);
        let driver = [
            &exec[..],
            &compiles,
            &[wait(of_driver)],
            &assembles,
            &[wait(of_driver)],
            &exit(of_shell),
        ];
        let part = Dist::Exponential(compile_ms * 1_000_000 / READS);
        let read = Op::Sleep(Dist::Exponential(io_us * 1000));
        let again = Op::Repeat { to: exec.len() as u32, times: READS };
        let compiler = [&exec[..], &[read, Op::Run(part), again, Op::Count], &exit(of_driver)];
        let assembles = Op::Run(Dist::around(assemble_ms * 1_000_000, 50));
        let assembler = [&exec[..], &[assembles], &exit(of_driver)];
        let programs = [shell, driver.concat(), compiler.concat(), assembler.concat()];
        all.extend(programs.map(|program| task(program, None)));
    }
    make.push(wait(ended));
    let to = make.len() as u32 - 1;
    make.extend([Op::Repeat { to, times: jobs }, Op::StopClock, Op::Exit]);
    all.push(task(make, Some(Dist::Uniform(0, 1_000_000))));
    let spaces = one_process_each(&mut all);
    Ok(Workload { channels: ended as usize + 1, ..Workload::of(all, spaces, Measure::time()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_ends_for_each_fork_beyond_the_jobs() {
        let machine = perch_machine::resolve("juno").unwrap();
        for (spec, jobs) in [("make:files=12,jobs=3", 3), ("make:files=5,jobs=9", 5), ("make", 6)] {
            let workload = Workload::parse(spec, &machine).unwrap();
            let make = workload.tasks.last().unwrap();
            let (mut at_work, mut most) = (0u64, 0);
            for op in make.program.iter() {
                match op {
                    Op::Fork(_) => at_work += 1,
                    Op::Receive { .. } => at_work -= 1,
                    Op::Repeat { times, .. } => at_work -= times - 1,
                    _ => {}
                }
                most = most.max(at_work);
            }
            assert_eq!((most, at_work), (jobs, 0), "{spec}");
        }
    }
}
