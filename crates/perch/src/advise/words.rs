// SPDX-License-Identifier: GPL-2.0-or-later
//! The meaning of the figures, in sentences.

use perch_policy::{Mechanism, Mode, Recording};
use perch_record::advice::{Advice, Change, LEAST_SLICES, NOTABLE, Net, Share, Verdict};

use super::{Of, seconds};

/// The longest time of two loads of a cache line that every CPU wants, in nanoseconds: 7,000 cycles
/// each, as perf c2c measured them (docs/mechanisms/overload.md), at 2.7 GHz.
const TWO_LOADS_NS: f64 = 2.0 * 7_000.0 / 2.7;

/// The advice on a mechanism in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The machine gives the mechanism nothing to do.
    CannotAct,
    /// The recording is too short, or lacks the data that the mechanism decides by.
    CannotTell,
    /// Some mode is worth a trial.
    Try,
    /// Some mode gains something and loses something.
    Trade,
    /// The kernel's own mode is the best, as far as the recording shows.
    Leave,
}

impl Word {
    /// The word's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Word::CannotAct => "cannot act",
            Word::CannotTell => "cannot tell",
            Word::Try => "try",
            Word::Trade => "trade",
            Word::Leave => "leave",
        }
    }
}

/// The advice on a mechanism.
pub struct Said {
    /// The advice in one word.
    pub advice: Word,
    /// The reasons, in a few sentences.
    pub text: String,
}

fn said(advice: Word, text: impl Into<String>) -> Said {
    Said { advice, text: text.into() }
}

fn leave(text: impl Into<String>) -> Said {
    said(Word::Leave, text)
}

fn cannot_tell(text: impl Into<String>) -> Said {
    said(Word::CannotTell, text)
}

/// A share of 1 as a percentage with about two digits.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        0.0 => "0 %".to_string(),
        p if p < 0.01 => "<0.01 %".to_string(),
        p if p < 1.0 => format!("{p:.2} %"),
        p if p < 10.0 => format!("{p:.1} %"),
        p if p < 99.0 => format!("{p:.0} %"),
        p => format!("{p:.2} %"),
    }
}

/// A share's interval, in per cent.
pub fn range(share: &Share) -> String {
    let end = |x: f64| percent(x).trim_end_matches(" %").to_string();
    format!("{} to {}", end(share.low), end(share.high))
}

/// The sentence that names the recording, its length, its kernel and its command.
pub fn subject(of: &Of, advice: &Advice) -> String {
    let ran = match of.command.as_str() {
        "" => String::new(),
        command => format!("; ran {command}"),
    };
    format!(
        "{}: {} wake-ups in {:.1} s, Linux {}, {} CPUs{ran}",
        of.file,
        advice.asked,
        seconds(advice),
        of.kernel,
        of.cpus
    )
}

/// The sentence that tells how far the reader can trust the model.
pub fn trust(advice: &Advice, era: &str) -> String {
    match &advice.explained {
        Some(share) => format!(
            "The model of {era} explains {} of the kernel's choices (95 %: {}).",
            percent(share.value()),
            range(share)
        ),
        None => format!(
            "Too short for advice: wake-ups in {} tenths of a second, and it takes {LEAST_SLICES}. \
             Record for longer.",
            advice.slices.0
        ),
    }
}

/// The questions that no replay of this file answers.
pub fn unknown(of: &Of, advice: &Advice) -> Vec<String> {
    let mut points = vec![
        "what comes of it. This says where tasks would land, not how much faster anything gets, \
         and every other choice changes all that follow. Simulate it (perch compare), then load it \
         (perch run)."
            .to_string(),
    ];
    points.push(
        "where a task's data are: with its waker, or where it ran last. Near is what is near the \
         CPU that the kernel aims at (wake_affine); whether a task leaves its last CPU for that is \
         not weighed."
            .to_string(),
    );
    if let Some(explained) = &advice.explained {
        let rest = explained.of - explained.part;
        if rest > 0 {
            points.push(format!(
                "{rest} wake-ups whose choice the model does not explain: they are in no figure."
            ));
        }
    }
    match of.lost {
        Some(0) => {}
        Some(lost) => points.push(format!("{lost} wake-ups that were lost while recording.")),
        None => points.push("what came after the place where the file was cut off.".to_string()),
    }
    let recordings = Mechanism::ALL.into_iter().map(Mechanism::recording);
    let lacks = recordings.filter(|(whose, _)| *whose != Recording::Kernel);
    let lacks: Vec<_> = lacks.map(|(_, what)| what).collect();
    points.push(format!("what the file does not hold: {}.", lacks.join("; ")));
    points
}

/// The advice on a mechanism.
pub fn mechanism(advice: &Advice, mechanism: Mechanism, cpus: usize) -> Said {
    if !advice.shape.can_act(mechanism) {
        let (_, why) = mechanism.premise();
        return said(Word::CannotAct, format!("cannot act here: {why}."));
    }
    let Some(explained) = &advice.explained else {
        return cannot_tell("nothing can be said: the recording is too short.");
    };
    match (mechanism, mechanism.recording()) {
        (Mechanism::Cache, _) => cache(advice),
        (Mechanism::Overload, _) => overload(advice, cpus),
        (Mechanism::Steer, _) => steer(advice),
        (_, (Recording::Kernel, _)) => replayed(advice, mechanism, explained),
        (_, (_, lacks)) => cannot_tell(format!(
            "a recording cannot tell: it does not have what {mechanism} decides by, {lacks}."
        )),
    }
}

/// The advice on a mechanism whose modes the replay asked.
fn replayed(advice: &Advice, mechanism: Mechanism, explained: &Share) -> Said {
    let mut own = None;
    let mut best: Option<&Change> = None;
    let rank = |verdict: Verdict| match verdict {
        Verdict::Better => 3,
        Verdict::Trade => 2,
        Verdict::Unclear | Verdict::Unsure => 1,
        Verdict::Nothing | Verdict::Worse | Verdict::Sideways => 0,
    };
    let order = |change: &Change| (rank(change.verdict), change.changed.part);
    for change in advice.changes.iter().filter(|c| c.mechanism == mechanism) {
        if change.mode == Mode::Off {
            own = Some(change);
        } else if best.is_none_or(|b| order(change) > order(b)) {
            best = Some(change);
        }
    }
    let mut text = String::new();
    let mut word = Word::Leave;
    if let Some(off) = own {
        text += &match off.verdict {
            Verdict::Nothing => format!(
                "in this kernel, and it hardly matters here: without it under {} of wake-ups would change.",
                percent(off.changed.high.max(0.0001))
            ),
            Verdict::Worse => format!("in this kernel, and it pays. Without it {}.", lands(off)),
            Verdict::Better => format!("in this kernel; try without it: {}.", lands(off)),
            Verdict::Trade => {
                format!("in this kernel, and gains some and loses some. Without it {}.", lands(off))
            }
            Verdict::Sideways => format!(
                "in this kernel, without a gain that can be seen. Without it {}.",
                lands(off)
            ),
            Verdict::Unclear | Verdict::Unsure => {
                format!("in this kernel; whether it pays {}", not_told(off, explained))
            }
        };
        word = match off.verdict {
            Verdict::Better => Word::Try,
            Verdict::Trade => Word::Trade,
            Verdict::Unclear | Verdict::Unsure => Word::CannotTell,
            _ => Word::Leave,
        };
        text.push(' ');
    }
    let Some(change) = best else {
        return said(word, text.trim_end());
    };
    let mode = format!("{mechanism}={}", change.mode);
    let (what, its) = match change.verdict {
        Verdict::Better => (Word::Try, format!("{mode} is worth a trial: {}.", lands(change))),
        Verdict::Trade => {
            (Word::Trade, format!("{mode} is a trade, and only a trial tells: {}.", lands(change)))
        }
        Verdict::Unclear | Verdict::Unsure => {
            (Word::CannotTell, format!("Whether {mode} would pay {}", not_told(change, explained)))
        }
        _ => (Word::Leave, nothing_better(advice, mechanism)),
    };
    // A verdict on another mode goes before the word for the kernel's own.
    if what != Word::Leave {
        word = what;
    }
    said(word, text + &its)
}

/// The CPUs on which a change lets wake-ups land, in words.
fn lands(change: &Change) -> String {
    let all = change.changed.of.max(1) as f64;
    let pair = |net: &Net, one: &str, other: &str| match (net.gains, net.losses) {
        (0, 0) => None,
        (gains, 0) => Some(format!("{} {one}", percent(gains as f64 / all))),
        (0, losses) => Some(format!("{} {other}", percent(losses as f64 / all))),
        (gains, losses) => Some(format!(
            "{} {one}, {} {other}",
            percent(gains as f64 / all),
            percent(losses as f64 / all)
        )),
    };
    let parts = [
        pair(&change.near, "nearer to where the kernel aims", "farther from where it aims"),
        pair(
            &change.idle,
            "on an idle CPU instead of a busy one",
            "on a busy one instead of an idle one",
        ),
        pair(&change.fits, "on a CPU that they fit", "on one that they do not fit"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let destination = if parts.is_empty() {
        "none nearer to or farther from where the kernel aims, none idler".to_string()
    } else {
        parts.join("; ")
    };
    format!(
        "{} of wake-ups ({} %) would land on another CPU: {destination}",
        percent(change.changed.value()),
        range(&change.changed)
    )
}

/// The reason why there is no verdict.
fn not_told(change: &Change, explained: &Share) -> String {
    let changed = percent(change.changed.value());
    match change.verdict {
        Verdict::Unclear => format!(
            "cannot be said: {changed} of wake-ups would change, and the model may be wrong about \
             {}.",
            percent(1.0 - explained.low)
        ),
        _ => format!(
            "cannot be said: {changed} of wake-ups ({} %) would change, and {} is where it begins \
             to matter. A longer recording tells.",
            range(&change.changed),
            percent(NOTABLE)
        ),
    }
}

/// The sentence that no mode is worth a trial, with the reason.
fn nothing_better(advice: &Advice, mechanism: Mechanism) -> String {
    let changes = || {
        let of = advice.changes.iter();
        of.filter(|c| c.mechanism == mechanism && c.mode != Mode::Off)
    };
    let most = changes().map(|c| c.changed.high).fold(0.0, f64::max);
    if most < NOTABLE {
        return format!(
            "No other mode is worth a trial: each changes under {} of wake-ups.",
            percent(most.max(0.0001))
        );
    }
    let all: Vec<String> = changes().map(|c| format!("{}: {}", c.mode, c.verdict.name())).collect();
    format!("No other mode is worth a trial ({}).", all.join(", "))
}

fn cache(advice: &Advice) -> Said {
    let (Some(spread), asked) = (&advice.spread, advice.asked.max(1) as f64) else {
        let text = "nothing can be said: there are more than 64 last-level caches.";
        return cannot_tell(text);
    };
    let away = spread.away as f64 / asked;
    let free = (spread.away - spread.crowded) as f64 / asked;
    let most = format!(
        "{} of wake-ups found their task in another last-level cache than most of its process",
        percent(away)
    );
    if spread.threaded == 0 {
        return leave("nothing to do here: no process had several threads that woke up.");
    }
    if away < NOTABLE {
        return leave(format!("next to nothing to do: {most}."));
    }
    if free < NOTABLE {
        return leave(format!(
            "would be inhibited: {most}, and nearly always (all but {}) that cache was too \
                 busy for more.",
            percent(free)
        ));
    }
    cannot_tell(format!(
        "a recording cannot tell, a trial may be worth it: {most}, {} while that cache was not \
             too busy. That is the most that cache=perch could bring together; which cache the \
             kernel would prefer is not recorded.",
        percent(free)
    ))
}

fn overload(advice: &Advice, cpus: usize) -> Said {
    if advice.real_time == 0 {
        return leave("nothing to do here: no real-time task woke up.");
    }
    let seconds = seconds(advice);
    let rate = advice.real_time as f64 / seconds.max(1e-9);
    let most = rate * TWO_LOADS_NS / 1e9 / cpus as f64;
    let each = format!(
        "{rate:.0} real-time wake-ups a second: if each paid two loads of a line that all CPUs want \
         (7,000 cycles), it would be {} of the machine's time",
        percent(most)
    );
    if most < NOTABLE {
        return leave(format!("not worth a trial. {each}."));
    }
    cannot_tell(format!(
        "a recording cannot tell, a trial may be worth it. It chooses no CPU; it spares loads \
             of one line. {each}."
    ))
}

fn steer(advice: &Advice) -> Said {
    let Some(busy) = &advice.busy else {
        return cannot_tell("nothing can be said: the model explains no wake-up.");
    };
    let share = format!("{} of wake-ups ({} %)", percent(busy.value()), range(busy));
    if busy.high < NOTABLE {
        return leave(format!("next to nothing to do: {share} found no idle CPU."));
    }
    cannot_tell(format!(
        "a recording cannot tell. {share} found no idle CPU, and only those can be steered, if \
             their task is in a group that has nothing queued elsewhere: where groups have \
             something queued is not recorded."
    ))
}
