// SPDX-License-Identifier: GPL-2.0-or-later
//! The reader of a recorded workload's file, which checks every line.

use std::io::{self, BufRead};
use std::str::FromStr;

use super::error::{LineError, ReadError};
use super::script::{MAGIC, Script, ScriptTask, Step, VERSION};
use crate::Class;

/// The most tasks that a file may have.
pub const MOST_TASKS: usize = 1 << 20;
/// The most steps that a file may have: a simulation holds each in some 50 bytes of memory.
pub const MOST_STEPS: u64 = 1 << 25;
/// Length that a line must not reach, bytes.
pub(super) const LONGEST_LINE: u64 = 1 << 16;
/// Longest time that a step may take, nanoseconds: an hour.
pub const LONGEST_NS: u64 = 3600 * 1_000_000_000;

type Result<T> = std::result::Result<T, ReadError>;

impl Script {
    /// Reads a file that [`Script::write`] or a person wrote.
    ///
    /// # Errors
    /// This function refuses another format or version, a line or a step that makes no sense, a
    /// file that was cut off, and tasks that would wait forever. The error displays what is wrong,
    /// in which line, and what was expected.
    pub fn read(input: &mut dyn BufRead) -> Result<Script> {
        let mut reader = Reader { input, line: 0, text: String::new() };
        reader.first()?;
        let mut script = Script::default();
        let mut at = Vec::new();
        let mut steps = 0;
        loop {
            if !reader.next()? {
                return reader.wrong(LineError::CutOff);
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
                        return reader.wrong(LineError::NoTask { word: word.to_string() });
                    };
                    for word in text.split_ascii_whitespace() {
                        task.steps.push(reader.step(word)?);
                        steps += 1;
                    }
                    if steps > MOST_STEPS {
                        return reader.wrong(LineError::TooManySteps);
                    }
                }
            }
        }
        script.check().map_err(|error| ReadError::Line {
            line: at.get(error.task).copied().unwrap_or(1),
            why: error.into(),
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
    fn wrong<T>(&self, why: LineError) -> Result<T> {
        let line = self.line;
        Err(ReadError::Line { line, why })
    }

    /// Reads the next line; returns false at the end of the file.
    fn next(&mut self) -> Result<bool> {
        self.text.clear();
        self.line += 1;
        let mut line = io::Read::take(&mut *self.input, LONGEST_LINE);
        let read = line.read_line(&mut self.text).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => {
                ReadError::Line { line: self.line, why: LineError::NotText }
            }
            _ => ReadError::Io(error),
        })?;
        if read as u64 == LONGEST_LINE {
            return self.wrong(LineError::TooLong);
        }
        Ok(read > 0)
    }

    /// Reads the first line, which names format and version.
    fn first(&mut self) -> Result<()> {
        self.next()?;
        let text = self.text.trim_end();
        match text.split_once(' ') {
            Some((MAGIC, version)) if version.parse() == Ok(VERSION) => Ok(()),
            Some((MAGIC, version)) => {
                self.wrong(LineError::Version { version: version.to_string() })
            }
            _ => self.wrong(LineError::NoWorkload),
        }
    }

    fn number<T: FromStr + PartialOrd + Into<u64>>(
        &self,
        text: &str,
        key: &str,
        most: T,
    ) -> Result<T> {
        match text.parse::<T>() {
            Ok(number) if number <= most => Ok(number),
            _ => self.wrong(LineError::Number {
                key: key.to_string(),
                value: text.to_string(),
                most: most.into(),
            }),
        }
    }

    /// Reads a `task` line: the task's number, then keys, of which `name` is the last.
    fn task(&self, rest: &str, expected: usize) -> Result<ScriptTask> {
        let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if number.parse() != Ok(expected) {
            return self.wrong(LineError::TaskNumber { number: number.to_string(), expected });
        }
        if expected >= MOST_TASKS {
            return self.wrong(LineError::TooManyTasks);
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
                    task.process = self.number(value, "process", u32::MAX)?;
                }
                Some(("nice", value)) => match value.parse() {
                    Ok(nice) if (-20..=19).contains(&nice) => task.nice = nice,
                    _ => {
                        return self.wrong(LineError::Nice { value: value.to_string() });
                    }
                },
                Some(("class", value)) => match Class::parse(value) {
                    Ok(class) => task.class = class,
                    Err(why) => return self.wrong(why.into()),
                },
                Some(("start", "forked")) => task.start = None,
                Some(("start", value)) => {
                    task.start = Some(self.number(value, "start", LONGEST_NS)?);
                }
                _ => {
                    return self.wrong(LineError::Key { key: key.to_string() });
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
                return self.wrong(LineError::Step { word: word.to_string() });
            }
        })
    }

    /// Reads the `end` line, which has to count the tasks and steps before it; only empty lines may
    /// follow.
    fn ends(&mut self, rest: &str, tasks: usize, steps: u64) -> Result<()> {
        if rest != format!("tasks={tasks} steps={steps}") {
            return self.wrong(LineError::Counts { counted: rest.to_string(), tasks, steps });
        }
        while self.next()? {
            if !self.text.trim().is_empty() {
                return self.wrong(LineError::AfterEnd);
            }
        }
        Ok(())
    }
}
