// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader of traces as text: the lines that `trace-cmd report` prints, raw (`-R -t -l`) or by
//! default, and the kernel's own `trace`.

use std::io::{BufRead, Read};

use crate::event::{Context, Event, Kind, Name, State};
use crate::weave::Weaver;
use crate::{ImportError, Origin};

const LONGEST_LINE: u64 = 1 << 16;
/// The bytes of a line in which its task and CPU stand: names have up to 16, numbers up to 10. Were they
/// looked for everywhere, a line of nothing but their marks would take the square of its length.
const HEAD: usize = 128;

/// Reads the lines that trace-cmd prints.
pub(crate) fn lines(input: &mut dyn BufRead, weaver: &mut Weaver) -> Result<Origin, ImportError> {
    let mut origin = Origin { tool: "trace-cmd", ..Origin::default() };
    let mut line = Vec::new();
    let mut number = 0u64;
    loop {
        line.clear();
        number += 1;
        let read = input.take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(origin);
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        let wrong = || {
            ImportError::Input(format!(
                "line {number} of the trace makes no sense: \"{}\"; expected TASK-PID [CPU] FLAGS TIME: EVENT: FIELDS, with flags such as d.h1. (the kernel's option irq-info)",
                text.chars().take(200).collect::<String>()
            ))
        };
        if let Some(count) = text.strip_prefix("cpus=") {
            origin.cpus = count.parse().ok();
        } else if let Some(rest) = text.strip_prefix("# entries-in-buffer/entries-written:") {
            let (lost, cpus) = header(rest).ok_or_else(wrong)?;
            (origin.lost, origin.cpus) = (lost, Some(cpus));
        } else if let Some(text) = text.strip_prefix("# tracer:") {
            origin.tool = "ftrace";
            if text.trim() != "nop" {
                return Err(ImportError::Input(format!(
                    "its tracer is {}: expected nop, with the sched events on",
                    text.trim()
                )));
            }
        } else if text.starts_with('#') {
        } else if let Some(rest) = text.strip_prefix("CPU:").filter(|rest| rest.contains('[')) {
            let lost = dropped(rest).and_then(|lost| origin.lost.checked_add(lost));
            origin.lost = lost.ok_or_else(wrong)?;
        } else if let Some((head, name, fields)) = parts(text).or_else(|| readable(text)) {
            match kind(name, fields).ok_or_else(wrong)? {
                Some(kind) => weaver.event(&Event { kind, ..head })?,
                None => weaver.leave_out(name, 1),
            }
        } else if text.contains(": sched_") {
            return Err(wrong());
        }
    }
}

/// Reads ` 9/12   #P:4` of the kernel's trace: the events that were overwritten, and the CPUs.
fn header(rest: &str) -> Option<(u64, u32)> {
    let (counts, cpus) = rest.split_once("#P:")?;
    let (kept, written) = counts.trim().split_once('/')?;
    let (kept, written) = (kept.parse::<u64>().ok()?, written.parse::<u64>().ok()?);
    Some((written.checked_sub(kept)?, cpus.trim().parse().ok()?))
}

/// Reads ` [12 EVENTS DROPPED]` or ` [LOST 12 EVENTS]`, which have no number where the kernel did
/// not count.
fn dropped(rest: &str) -> Option<u64> {
    let (_, inside) = rest.split_once('[')?;
    let inside = inside.strip_suffix("]")?;
    let lost = || inside.strip_prefix("LOST")?.strip_suffix("EVENTS");
    let count = inside.strip_suffix("EVENTS DROPPED").or_else(lost)?.trim();
    match count {
        "" => Some(1),
        count => count.parse().ok(),
    }
}

/// Splits `hackbenc-204     1-0x11    25.295181732: sched_waking:   comm=...` into the task, CPU
/// and time, the event's name, and its fields. The task's name may hold any characters.
fn parts(text: &str) -> Option<(Event, &str, &str)> {
    let mut marks = text.match_indices("-0x").take_while(|(at, _)| *at < HEAD);
    marks.find_map(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + 3..]);
        let (task, cpu) = before.rsplit_once(char::is_whitespace)?;
        let cpu = cpu.parse().ok()?;
        let (_, pid) = task.trim_end().rsplit_once('-')?;
        let pid = pid.parse().ok()?;
        let (flags, after) = after.split_once(char::is_whitespace)?;
        let context = Context::of_flags(u32::from_str_radix(flags, 16).ok()?.into());
        let (time, after) = after.trim_start().split_once(':')?;
        let at_ns = nanoseconds(time)?;
        let (name, fields) = after.trim_start().split_once(':')?;
        let event = Event { at_ns, cpu, pid, process: None, context, kind: Kind::Migrate };
        Some((event, name, fields.trim()))
    })
}

/// Splits `<idle>-0  ( 12) [001] d.h2.  1.299999: sched_waking: comm=...` likewise: the task, its
/// process where the kernel was asked for it, CPU, flags and time. Without flags a timer's wake-up
/// would be taken for the interrupted task's.
fn readable(text: &str) -> Option<(Event, &str, &str)> {
    let mut marks = text.match_indices('[').take_while(|(at, _)| *at < HEAD);
    marks.find_map(|(at, _)| {
        let (cpu, after) = text[at + 1..].split_once(']')?;
        let cpu = cpu.parse().ok()?;
        let mut task = text[..at].trim_end();
        let mut process = None;
        if let Some(inside) = task.strip_suffix(')') {
            let (before, inside) = inside.rsplit_once('(')?;
            process = inside.trim().parse().ok();
            task = before.trim_end();
        }
        let pid = task.rsplit_once('-')?.1.parse().ok()?;
        let (flags, after) = after.trim_start().split_once(char::is_whitespace)?;
        let context = match flags.chars().nth(2)? {
            'h' | 'H' | 'z' | 'Z' => Context::Interrupt,
            's' => Context::Softirq,
            '.' => Context::Task,
            _ => return None,
        };
        let (time, after) = after.trim_start().split_once(':')?;
        let (name, fields) = after.trim_start().split_once(':')?;
        let event =
            Event { at_ns: nanoseconds(time)?, cpu, pid, process, context, kind: Kind::Migrate };
        Some((event, name, fields.trim()))
    })
}

/// Reads seconds with six or nine digits after the point.
fn nanoseconds(time: &str) -> Option<u64> {
    let (seconds, fraction) = time.split_once('.')?;
    let scale = match fraction.len() {
        6 => 1000,
        9 => 1,
        _ => return None,
    };
    let at_ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    at_ns.checked_add(fraction.parse::<u64>().ok()? * scale)
}

/// Reads the state of a task that leaves its CPU, in the kernel's letters or as bits.
fn state(text: &str) -> Option<State> {
    match text.chars().next()? {
        '0'..='9' => text.parse().ok().map(State::of_bits),
        'R' => Some(State::Runnable),
        'X' | 'Z' | 'x' => Some(State::Dead),
        'S' | 'D' | 'T' | 't' | 'P' | 'I' | 'K' | 'W' | 'N' => Some(State::Asleep),
        _ => None,
    }
}

/// Reads `hackbench:204 [120] S`, as trace-cmd's own words for an event are: the name, the task, its
/// priority, and what follows.
fn in_short(text: &str) -> Option<(Name, i32, i32, &str)> {
    let (before, after) = text.rsplit_once(" [")?;
    let (prio, rest) = after.split_once(']')?;
    let (name, pid) = before.rsplit_once(':')?;
    let name = Name::new(name.as_bytes());
    Some((name, pid.parse().ok()?, prio.parse().ok()?, rest.trim()))
}

/// Reads the kind of an event in trace-cmd's own words; `None` for any other.
fn kind_in_short(name: &str, fields: &str) -> Option<Kind> {
    if name == "sched_switch" {
        let (prev, next) = fields.rsplit_once(" ==> ")?;
        let (prev_name, prev, prev_prio, left) = in_short(prev)?;
        let (next_name, next, next_prio, _) = in_short(next)?;
        return Some(Kind::Switch {
            prev,
            prev_name,
            prev_prio,
            state: state(left)?,
            next,
            next_prio,
            next_name,
        });
    }
    let (of, pid, ..) = in_short(fields)?;
    match name {
        "sched_waking" => Some(Kind::Waking { pid, name: of }),
        "sched_wakeup" => Some(Kind::Wakeup { pid, name: of }),
        "sched_wakeup_new" => Some(Kind::WakeupNew { pid, name: of }),
        _ => None,
    }
}

/// Reads the kind of an event; the outer `None` stands for missing fields, the inner for other
/// events.
fn kind(name: &str, fields: &str) -> Option<Option<Kind>> {
    if let Some(kind) = kind_in_short(name, fields).filter(|_| !fields.contains("comm=")) {
        return Some(Some(kind));
    }
    let field = |name: &str| {
        let (_, after) = fields.rsplit_once(name)?;
        Some(after.split_ascii_whitespace().next().unwrap_or(""))
    };
    let pid = |name: &str| field(name)?.parse::<i32>().ok();
    // A name ends where the field after it begins, and may hold spaces.
    let text = |from: &str, to: &str| {
        let (before, _) = fields.rsplit_once(to)?;
        let (_, text) = before.rsplit_once(from)?;
        Some(Name::new(text.as_bytes()))
    };
    Some(Some(match name {
        "sched_switch" => Kind::Switch {
            prev: pid(" prev_pid=")?,
            prev_name: text("prev_comm=", " prev_pid=")?,
            prev_prio: pid(" prev_prio=")?,
            state: state(field(" prev_state=")?)?,
            next: pid(" next_pid=")?,
            next_prio: pid(" next_prio=")?,
            next_name: text("next_comm=", " next_pid=")?,
        },
        "sched_waking" => Kind::Waking { pid: pid(" pid=")?, name: text("comm=", " pid=")? },
        "sched_wakeup" => Kind::Wakeup { pid: pid(" pid=")?, name: text("comm=", " pid=")? },
        "sched_wakeup_new" => Kind::WakeupNew { pid: pid(" pid=")?, name: text("comm=", " pid=")? },
        "sched_process_fork" => {
            Kind::Fork { child: pid(" child_pid=")?, name: text("child_comm=", " child_pid=")? }
        }
        "sched_process_exec" => Kind::Exec,
        "sched_migrate_task" => Kind::Migrate,
        _ => return Some(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let line = " a-0xb-1 -7     12-0x11    25.295181732: sched_switch:   prev_comm=x prev_pid=1 \
            prev_pid=7 prev_prio=120 prev_state=256 next_comm=y next_pid=3 next_pid=9 next_prio=19";
        let (event, name, fields) = parts(line).expect("a line");
        assert_eq!((event.pid, event.cpu, event.at_ns), (7, 12, 25_295_181_732));
        assert_eq!((event.context, name), (Context::Softirq, "sched_switch"));
        let Some(Some(Kind::Switch { prev, state, next, next_prio, next_name, .. })) =
            kind(name, fields)
        else {
            panic!("no switch: {fields}");
        };
        assert_eq!((prev, state, next, next_prio), (7, State::Runnable, 9, 19));
        assert_eq!(next_name.to_string(), "y next_pid=3");
    }

    #[test]
    fn lost_events_are_counted() {
        assert_eq!(dropped("3 [17 EVENTS DROPPED]"), Some(17));
        assert_eq!(dropped("3 [EVENTS DROPPED]"), Some(1));
        assert_eq!(dropped("3 is empty"), None);
    }

    /// Found by fuzzing: an optimised build went on with what was left of the sum.
    #[test]
    fn more_lost_events_than_a_count_holds_are_refused() {
        let text = format!("CPU:0 [{} EVENTS DROPPED]\nCPU:1 [1 EVENTS DROPPED]\n", u64::MAX);
        let mut weaver = Weaver::new(&crate::Options::default());
        let error = lines(&mut text.as_bytes(), &mut weaver).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
