// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads policy/include/perch/mechanisms.def, strictly: whatever a line has too much, too little
//! or wrong is an error with the line's number.
//!
//! The table has a parser of its own instead of a run of the C preprocessor, which would hand over
//! tokens without their lines and would still leave Rust's names to be made from C's.

use std::collections::BTreeMap;

/// A macro's line: its name, its arguments, and where it stands.
struct Line {
    number: usize,
    name: String,
    arguments: Vec<Argument>,
}

/// An argument of a line: a word or a text in quotes.
#[derive(Clone)]
enum Argument {
    Word(String),
    Text(String),
}

/// A mechanism with everything that the table says of it.
pub struct Mechanism {
    pub name: String,
    pub help: String,
    /// Modes besides off.
    pub modes: Vec<String>,
    /// The first Linux that has it.
    pub since: Option<(u32, u32)>,
    pub era: (u32, u32),
    /// Its premise, and how a machine without it is told.
    pub premise: (String, String),
    /// Its setting of the live scheduler, and how a scheduler without it is told.
    pub setting: Option<(String, String)>,
    /// The recordings that hold the facts by which it decides, and the facts that others lack.
    pub recording: (String, String),
}

/// A reason for a verdict.
pub struct Reason {
    /// As in C, without `PERCH_BY_`.
    pub name: String,
    pub number: usize,
    pub words: String,
    pub class: String,
    pub meaning: String,
}

/// The whole table.
pub struct Table {
    pub mechanisms: Vec<Mechanism>,
    /// By number, without a gap.
    pub reasons: Vec<Reason>,
}

/// The words that the build accepts where one of a few words must stand.
const MODES: &[&str] = &["posted", "upstream", "perch"];
const PREMISES: &[&str] = &["none", "clusters", "capacities", "llcs", "counters"];
const SETTINGS: &[&str] = &["band", "groups"];
const RECORDINGS: &[&str] = &["kernel", "simulated", "never"];
const CLASSES: &[&str] = &["none", "given", "idle", "queued", "slow"];
const STAGES: &[&str] = &["first", "leave", "aim", "near", "scan", "unbudgeted", "home", "last"];

/// A defect: the number of its line, and a sentence that says what is wrong.
pub type Wrong = (usize, String);

/// Reads the table's text.
pub fn parse(text: &str) -> Result<Table, Wrong> {
    let lines = lines(text)?;
    let mut mechanisms: Vec<(usize, Mechanism)> = Vec::new();
    let mut reasons: BTreeMap<usize, Reason> = BTreeMap::new();
    // The lines that each mechanism has had, to refuse a second one and to find a missing one.
    let mut had: BTreeMap<(String, String), usize> = BTreeMap::new();
    for line in &lines {
        let macro_name = line.name.as_str();
        if macro_name == "PERCH_REASON" {
            let reason = reason(line)?;
            let owner = line.word(0)?;
            if owner != "stock" {
                find(&mut mechanisms, line, &owner)?;
            }
            if reasons.values().any(|other| other.name == reason.name) {
                return Err(line.wrong(format!("{} stands here for the second time", reason.name)));
            }
            let (number, name) = (reason.number, reason.name.clone());
            if let Some(other) = reasons.insert(number, reason) {
                let other = other.name;
                return Err(line.wrong(format!("{name} has the number {number} of {other}")));
            }
            continue;
        }
        if macro_name == "PERCH_STAGE" {
            line.takes(2)?;
            let (stage, name) = (line.one_of(0, STAGES)?, line.word(1)?);
            find(&mut mechanisms, line, &name)?;
            once(&mut had, line, &name, &format!("PERCH_STAGE({stage})"))?;
            continue;
        }
        let name = line.word(0)?;
        once(&mut had, line, &name, macro_name)?;
        if macro_name == "PERCH_MECHANISM" {
            line.takes(2)?;
            mechanisms.push((line.number, Mechanism::new(name, line.text(1)?)));
            continue;
        }
        let mechanism = find(&mut mechanisms, line, &name)?;
        mechanism.take(line)?;
    }
    for (number, mechanism) in &mechanisms {
        for needed in ["MODES", "SINCE", "ERA", "PREMISE", "RECORDING"] {
            if !had.contains_key(&(mechanism.name.clone(), format!("PERCH_{needed}"))) {
                let name = &mechanism.name;
                return Err((*number, format!("{name} has no line PERCH_{needed}({name}, ...)")));
            }
        }
    }
    let gap = reasons.keys().enumerate().find(|(i, number)| i != *number);
    if let Some((missing, _)) = gap {
        let message = format!("no reason has the number {missing}: expected them without a gap");
        return Err((lines.last().map_or(1, |line| line.number), message));
    }
    Ok(Table {
        mechanisms: mechanisms.into_iter().map(|(_, m)| m).collect(),
        reasons: reasons.into_values().collect(),
    })
}

/// The mechanism of that name, which an earlier line must have introduced.
fn find<'a>(
    mechanisms: &'a mut [(usize, Mechanism)],
    line: &Line,
    name: &str,
) -> Result<&'a mut Mechanism, Wrong> {
    let found = mechanisms.iter_mut().find(|(_, m)| m.name == name);
    found.map(|(_, m)| m).ok_or_else(|| {
        line.wrong(format!(
            "\"{name}\" is not a mechanism: expected PERCH_MECHANISM({name}, ...) above"
        ))
    })
}

/// Notes that `name` has had the line `what`, which it may have once.
fn once(
    had: &mut BTreeMap<(String, String), usize>,
    line: &Line,
    name: &str,
    what: &str,
) -> Result<(), Wrong> {
    let before = had.insert((name.to_string(), what.to_string()), line.number);
    before.map_or(Ok(()), |before| {
        Err(line.wrong(format!("{what} of {name} stands in line {before} already")))
    })
}

/// A line PERCH_REASON.
fn reason(line: &Line) -> Result<Reason, Wrong> {
    line.takes(6)?;
    let (name, number) = (line.word(1)?, line.word(2)?);
    if !name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') {
        return Err(line.wrong(format!("reason {name}: expected capitals and _")));
    }
    let number = number
        .parse()
        .map_err(|_| line.wrong(format!("reason {name}: expected a number, not {number}")))?;
    Ok(Reason {
        name,
        number,
        words: line.text(3)?,
        class: line.one_of(4, CLASSES)?,
        meaning: line.text(5)?,
    })
}

impl Mechanism {
    fn new(name: String, help: String) -> Mechanism {
        Mechanism {
            name,
            help,
            modes: Vec::new(),
            since: None,
            era: (0, 0),
            premise: Default::default(),
            setting: None,
            recording: Default::default(),
        }
    }

    /// Takes what a line says of it.
    fn take(&mut self, line: &Line) -> Result<(), Wrong> {
        match line.name.as_str() {
            "PERCH_MODES" => {
                for i in 1..line.arguments.len() {
                    self.modes.push(line.one_of(i, MODES)?);
                }
            }
            "PERCH_SINCE" => {
                line.takes(2)?;
                self.since = match line.word(1)?.as_str() {
                    "never" => None,
                    _ => Some(line.version(1)?),
                };
            }
            "PERCH_ERA" => {
                line.takes(2)?;
                self.era = line.version(1)?;
            }
            "PERCH_PREMISE" => {
                line.takes(3)?;
                self.premise = (line.one_of(1, PREMISES)?, line.text(2)?);
            }
            "PERCH_SETTING" => {
                line.takes(3)?;
                self.setting = Some((line.one_of(1, SETTINGS)?, line.text(2)?));
            }
            "PERCH_RECORDING" => {
                line.takes(3)?;
                self.recording = (line.one_of(1, RECORDINGS)?, line.text(2)?);
            }
            other => return Err(line.wrong(format!("{other} is not a macro of this table"))),
        }
        Ok(())
    }
}

impl Line {
    fn wrong(&self, message: String) -> Wrong {
        (self.number, message)
    }

    fn takes(&self, count: usize) -> Result<(), Wrong> {
        let (name, has) = (&self.name, self.arguments.len());
        match has == count {
            true => Ok(()),
            false => Err(self.wrong(format!("{name} has {has} arguments: expected {count}"))),
        }
    }

    fn word(&self, i: usize) -> Result<String, Wrong> {
        match self.arguments.get(i) {
            Some(Argument::Word(word)) => Ok(word.clone()),
            _ => Err(self.wrong(format!("{}: expected a word as argument {}", self.name, i + 1))),
        }
    }

    fn text(&self, i: usize) -> Result<String, Wrong> {
        match self.arguments.get(i) {
            Some(Argument::Text(text)) => Ok(text.clone()),
            _ => Err(self.wrong(format!(
                "{}: expected a text in quotes as argument {}",
                self.name,
                i + 1
            ))),
        }
    }

    fn one_of(&self, i: usize, words: &[&str]) -> Result<String, Wrong> {
        let word = self.word(i)?;
        match words.contains(&word.as_str()) {
            true => Ok(word),
            false => Err(self.wrong(format!(
                "{}: unknown \"{word}\": expected {}",
                self.name,
                words.join(", ")
            ))),
        }
    }

    fn version(&self, i: usize) -> Result<(u32, u32), Wrong> {
        let word = self.word(i)?;
        let parts = word.split_once('.');
        let parts = parts.and_then(|(a, b)| a.parse().ok().zip(b.parse().ok()));
        parts.ok_or_else(|| {
            self.wrong(format!("{}: \"{word}\": expected a version like 6.7", self.name))
        })
    }
}

/// The macros' lines; comments and the preprocessor's own lines are left out.
fn lines(text: &str) -> Result<Vec<Line>, Wrong> {
    let text = without_comments(text)?;
    let mut kept = String::new();
    for line in text.lines() {
        kept += if line.starts_with('#') { "" } else { line };
        kept.push('\n');
    }
    let mut rest = kept.as_str();
    let at = |rest: &str| kept[..kept.len() - rest.len()].matches('\n').count() + 1;
    let mut lines = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(lines);
        }
        let number = at(rest);
        let open = rest.find('(').filter(|&i| rest[..i].chars().all(is_word));
        let Some(open) = open.filter(|_| rest.starts_with("PERCH_")) else {
            let found = rest.lines().next().unwrap_or_default();
            return Err((number, format!("expected PERCH_...(...), found {found}")));
        };
        let name = rest[..open].to_string();
        let (arguments, after) =
            arguments(&rest[open + 1..]).map_err(|message| (number, message))?;
        lines.push(Line { number, name, arguments });
        rest = after;
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

/// Arguments up to the closing parenthesis, and what follows it. Adjacent texts are one.
fn arguments(text: &str) -> Result<(Vec<Argument>, &str), String> {
    let (mut arguments, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start();
        let mut joined: Option<String> = None;
        while let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find(['"', '\\', '\n']).filter(|&i| quoted[i..].starts_with('"'));
            let end = end.ok_or("expected a text that ends in its line and has no \\")?;
            *joined.get_or_insert_default() += &quoted[..end];
            rest = quoted[end + 1..].trim_start();
        }
        arguments.push(match joined {
            Some(text) => Argument::Text(text),
            None => {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                if end == 0 {
                    return Err("expected a word or a text in quotes".to_string());
                }
                let word = rest[..end].to_string();
                rest = rest[end..].trim_start();
                Argument::Word(word)
            }
        });
        match rest.chars().next() {
            Some(',') => rest = &rest[1..],
            Some(')') => return Ok((arguments, &rest[1..])),
            _ => return Err("expected , or ) after an argument".to_string()),
        }
    }
}

/// The text with its comments' characters, but not their line ends, taken out.
fn without_comments(text: &str) -> Result<String, Wrong> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(start) = rest.find("/*") {
        out += &rest[..start];
        let number = out.matches('\n').count() + 1;
        let end = rest[start..].find("*/");
        let end = start + end.ok_or((number, "a comment without an end".to_string()))? + 2;
        out.extend(rest[start..end].chars().filter(|&c| c == '\n'));
        rest = &rest[end..];
    }
    Ok(out + rest)
}
