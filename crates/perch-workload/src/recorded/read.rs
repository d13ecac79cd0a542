// SPDX-License-Identifier: GPL-2.0-or-later
//! The reader of a recorded workload's file, which checks every line.

use std::fmt;
use std::io::{self, BufRead};
use std::str::FromStr;

use super::script::{MAGIC, Script, ScriptTask, Step, VERSION};
use crate::Class;

/// The most tasks that a file may have.
pub const MOST_TASKS: usize = 1 << 20;
/// The most steps that a file may have: a simulation holds each in some 50 bytes of memory.
pub const MOST_STEPS: u64 = 1 << 25;
/// Length that a line must not reach, bytes.
const LONGEST_LINE: u64 = 1 << 16;
/// Longest time that a step may take, nanoseconds: an hour.
pub const LONGEST_NS: u64 = 3600 * 1_000_000_000;

/// The reason why [`Script::read`] refused a file.
#[derive(Debug)]
pub enum ReadError {
    /// The system could not read the file.
    Io(io::Error),
    /// A line of the file is wrong: the number of the line, from 1, and what is wrong there.
    Line(u64, String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "{error}"),
            ReadError::Line(line, why) => write!(f, "line {line}: {why}"),
        }
    }
}

impl std::error::Error for ReadError {}

type Result<T> = std::result::Result<T, ReadError>;

impl Script {
    /// Reads a file that [`Script::write`] or a person wrote.
    ///
    /// # Errors
    /// This function refuses another format or version, a line or a step that makes no sense, a
    /// file that was cut off, and tasks that would wait forever. The error says what is wrong, in
    /// which line, and what was expected.
    pub fn read(input: &mut dyn BufRead) -> Result<Script> {
        let mut reader = Reader {
            input,
            line: 0,
            text: String::new(),
        };
        reader.first()?;
        let mut script = Script::default();
        let mut at = Vec::new();
        let mut steps = 0;
        loop {
            if !reader.next()? {
                return reader.wrong("the file ends without its \"end\" line: it was cut off; import the recording again");
            }
            let text = reader.text.trim_end();
            let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
            match word {
                "" => {}
                "#" => script.about.push(rest.to_string()),
                "span" => script.span_ns = reader.number(rest, "span", u64::MAX)?,
                "task" => {
                    script.tasks.push(reader.task(rest, script.tasks.len())?);
                    at.push(reader.line);
                }
                "end" => {
                    let rest = rest.to_string();
                    reader.ends(&rest, script.tasks.len(), steps)?;
                    break;
                }
                _ => {
                    let Some(task) = script.tasks.last_mut() else {
                        return reader.wrong(&format!(
                            "\"{word}\": expected \"task\", \"span\" or \"#\" before the first step"
                        ));
                    };
                    for word in text.split_ascii_whitespace() {
                        task.steps.push(reader.step(word)?);
                        steps += 1;
                    }
                    if steps > MOST_STEPS {
                        return reader.wrong(&format!(
                            "more than {MOST_STEPS} steps: record for a shorter time"
                        ));
                    }
                }
            }
        }
        script.check().map_err(|(task, why)| {
            ReadError::Line(
                at.get(task).copied().unwrap_or(1),
                format!("task {task}: {why}"),
            )
        })?;
        Ok(script)
    }
}

struct Reader<'a> {
    input: &'a mut dyn BufRead,
    line: u64,
    text: String,
}

impl Reader<'_> {
    fn wrong<T>(&self, why: &str) -> Result<T> {
        Err(ReadError::Line(self.line, why.to_string()))
    }

    /// Reads the next line; returns false at the end of the file.
    fn next(&mut self) -> Result<bool> {
        self.text.clear();
        self.line += 1;
        let mut line = io::Read::take(&mut *self.input, LONGEST_LINE);
        let read = line
            .read_line(&mut self.text)
            .map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => {
                    ReadError::Line(self.line, "this is no text".to_string())
                }
                _ => ReadError::Io(error),
            })?;
        if read as u64 == LONGEST_LINE {
            return self.wrong(&format!(
                "a line of {LONGEST_LINE} bytes or more: expected steps in several lines"
            ));
        }
        Ok(read > 0)
    }

    /// Reads the first line, which names format and version.
    fn first(&mut self) -> Result<()> {
        self.next()?;
        let text = self.text.trim_end();
        match text.split_once(' ') {
            Some((MAGIC, version)) if version.parse() == Ok(VERSION) => Ok(()),
            Some((MAGIC, version)) => self.wrong(&format!(
                "the file is of version {version:?}, and this perch reads version {VERSION}: use the perch that wrote it, or import the recording again"
            )),
            _ => self.wrong(&format!("expected \"{MAGIC} {VERSION}\": this is no workload that perch import wrote")),
        }
    }

    fn number<T: FromStr + PartialOrd + fmt::Display>(
        &self,
        text: &str,
        what: &str,
        most: T,
    ) -> Result<T> {
        match text.parse::<T>() {
            Ok(number) if number <= most => Ok(number),
            _ => self.wrong(&format!(
                "{what}: \"{text}\": expected a whole number up to {most}"
            )),
        }
    }

    /// Reads a `task` line: the task's number, then keys, of which `name` is the last.
    fn task(&self, rest: &str, expected: usize) -> Result<ScriptTask> {
        let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if number.parse() != Ok(expected) {
            return self.wrong(&format!(
                "\"task {number}\": expected task {expected}; tasks are numbered from 0"
            ));
        }
        if expected >= MOST_TASKS {
            return self.wrong(&format!(
                "more than {MOST_TASKS} tasks: record for a shorter time"
            ));
        }
        let mut task = ScriptTask {
            name: String::new(),
            process: expected as u32,
            class: Class::Fair,
            nice: 0,
            start: Some(0),
            steps: Vec::new(),
        };
        let (keys, name) = match rest.strip_prefix("name=") {
            Some(name) => ("", name),
            None => rest.split_once(" name=").unwrap_or((rest, "")),
        };
        task.name = name.to_string();
        for key in keys.split_ascii_whitespace() {
            match key.split_once('=') {
                Some(("process", value)) => {
                    task.process = self.number(value, "process", u32::MAX)?
                }
                Some(("nice", value)) => match value.parse() {
                    Ok(nice) if (-20..=19).contains(&nice) => task.nice = nice,
                    _ => return self.wrong(&format!("nice={value}: expected -20 to 19")),
                },
                Some(("class", value)) => match Class::parse(value) {
                    Ok(class) => task.class = class,
                    Err(why) => return self.wrong(&why),
                },
                Some(("start", "forked")) => task.start = None,
                Some(("start", value)) => {
                    task.start = Some(self.number(value, "start", LONGEST_NS)?)
                }
                _ => {
                    return self.wrong(&format!(
                        "\"{key}\": expected process=, nice=, class=, start= or name="
                    ));
                }
            }
        }
        Ok(task)
    }

    /// Reads a step: a letter, and a time or the number of a task.
    fn step(&self, word: &str) -> Result<Step> {
        let (letter, value) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        let time = || self.number(value, word, LONGEST_NS);
        let task = || self.number(value, word, MOST_TASKS as u32 - 1);
        Ok(match letter {
            "c" => Step::Compute(time()?),
            "w" => Step::Wake(task()?),
            "a" => Step::Await(task()?),
            "s" => Step::Sleep(time()?),
            "n" => Step::Next(time()?),
            "f" => Step::Fork(task()?),
            "e" if value.is_empty() => Step::Exec,
            _ => {
                return self.wrong(&format!(
                    "\"{word}\": expected a step: cNS computes, wTASK wakes, aTASK waits for a wake-up, sNS sleeps, nNS sleeps until its next period, fTASK forks, e becomes another program"
                ));
            }
        })
    }

    /// Reads the `end` line, which has to count the tasks and steps before it; only empty lines may
    /// follow.
    fn ends(&mut self, rest: &str, tasks: usize, steps: u64) -> Result<()> {
        let expected = format!("tasks={tasks} steps={steps}");
        if rest != expected {
            return self.wrong(&format!("\"end {rest}\", but there are {expected}: something was cut out, or changed without this line"));
        }
        while self.next()? {
            if !self.text.trim().is_empty() {
                return self.wrong("something follows the \"end\" line: expected nothing");
            }
        }
        Ok(())
    }
}
