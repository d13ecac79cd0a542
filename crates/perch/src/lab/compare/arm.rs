// SPDX-License-Identifier: GPL-2.0-or-later
//! What `--arm` says: the scheduler of a guest, and what else is different in the guest.

use perch_plan::Settings;

use super::change::{Change, Kernel};
use crate::arguments::{BadValue, quoted};

/// How the scheduler of an arm's guests comes to be theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The kernel has its own.
    Stock,
    /// `perch run` with this `--set`, where it is not empty.
    Perch(String),
    /// A program with its arguments, which loads another scheduler and stays until SIGINT.
    Program(Vec<String>),
}

/// One arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// The name that tables use.
    pub name: String,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// The kernel that the arm's guests boot, as `--kernel` takes it; none for that of all arms.
    pub image: Option<String>,
    /// The changes of the kernel that the scheduler runs on.
    pub kernel: Kernel,
    /// All of it but the name, in the words of the user.
    pub words: String,
}

/// The word between a scheduler and what changes in the kernel.
const WITH: &str = "with";

/// The character between a scheduler and the kernel that it runs on.
const ON: char = '@';

impl Arm {
    /// Reads `[NAME=]SCHEDULER[@KERNEL] [with CHANGE…]`, in which the scheduler is `stock`,
    /// `perch[:KEY=VALUE,…]`, or a program and its arguments, quoted as for a shell. The kernel is
    /// behind the program, before its arguments, which may have an `@` of their own.
    ///
    /// # Errors
    /// What was wrong, and what was expected.
    pub fn parse(text: &str) -> Result<Arm, BadValue> {
        let words = shlex::split(text).ok_or("it has a quote that is not closed")?;
        let Some((first, _)) = words.split_first() else {
            return Err("it is empty: expected stock, perch, or NAME=PROGRAM".into());
        };
        let (name, first) = named(first)?;
        let with = words.iter().rposition(|word| word == WITH).filter(|at| *at > 0);
        let (mine, changes) = match with {
            None => (&words[1..], &[][..]),
            Some(at) => (&words[1..at], &words[at + 1..]),
        };
        if with.is_some() && changes.is_empty() {
            return Err("nothing comes after `with`".into());
        }
        let alone = [mine.last(), changes.last()];
        if let Some(word) = alone.into_iter().flatten().find(|w| w.starts_with(ON)) {
            return Err(format!("`{word}` stands alone; {}", place_of(word, &first)).into());
        }
        let (program, image) = on(&first)?;
        let scheduler = scheduler(program, mine)?;
        let change = |word: &String| {
            word.parse().map_err(|error| match word.find(ON) {
                Some(at) => format!("{error}; {}", place_of(&word[at..], &first)).into(),
                None => error,
            })
        };
        let changes: Result<Vec<Change>, BadValue> = changes.iter().map(change).collect();
        let name = match name {
            Some(name) => name,
            None => default_name(&scheduler),
        };
        // The name has a column of its own in tables.
        let all = [&[first], &words[1..]].concat();
        let all: Vec<String> = all.iter().map(|word| quoted(word)).collect();
        Ok(Arm { words: all.join(" "), name, scheduler, image, kernel: Kernel::of(changes?) })
    }

    /// The program that loads the arm's scheduler, with its arguments; none for the kernel's own.
    pub fn loader(&self) -> Option<Vec<String>> {
        match &self.scheduler {
            Scheduler::Stock => None,
            Scheduler::Perch(set) => {
                let mut words = vec!["/bin/perch".to_string(), "run".to_string()];
                if !set.is_empty() {
                    words.extend(["--set".to_string(), set.clone()]);
                }
                Some(words)
            }
            Scheduler::Program(words) => Some(words.clone()),
        }
    }
}

/// Takes the name from the first word, and returns both.
fn named(first: &str) -> Result<(Option<String>, String), BadValue> {
    if first.starts_with("perch:") || first.starts_with("stock:") {
        return Ok((None, first.to_string()));
    }
    let split = first.split_once('=');
    // An `=` behind the kernel's `@` is in the name of a file.
    let Some((name, rest)) = split.filter(|(name, _)| !name.contains(ON)) else {
        return Ok((None, first.to_string()));
    };
    let is_plain = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!(
            "`{name}` is not a name: expected letters, digits and -_.+ before the first `=`"
        )
        .into());
    }
    if rest.is_empty() {
        return Err(format!(
            "no scheduler after `{name}=`: expected stock, perch[:KEY=VALUE,…] or a program"
        )
        .into());
    }
    Ok((Some(name.to_string()), rest.to_string()))
}

/// Takes the kernel from the scheduler's word, and returns both.
fn on(first: &str) -> Result<(&str, Option<String>), BadValue> {
    let Some((scheduler, kernel)) = first.split_once(ON) else {
        return Ok((first, None));
    };
    if scheduler.is_empty() {
        return Err(
            format!("no scheduler before `{first}`: expected for example stock{first}").into()
        );
    }
    if kernel.is_empty() {
        return Err(format!(
            "no kernel after `{first}`: expected a version (`{first}7.2`) or a file \
             (`{first}/path/to/bzImage`)"
        )
        .into());
    }
    Ok((scheduler, Some(kernel.to_string())))
}

/// Says where in an arm a kernel belongs that was found somewhere else.
fn place_of(kernel: &str, first: &str) -> String {
    let scheduler = first.split(ON).next().unwrap_or(first);
    format!("a kernel comes right behind the scheduler: `{scheduler}{kernel}`")
}

fn scheduler(first: &str, more: &[String]) -> Result<Scheduler, BadValue> {
    let (word, set) = match first.split_once(':') {
        Some((word, set)) => (word, Some(set)),
        None => (first, None),
    };
    if (word == "stock" || word == "perch") && !more.is_empty() {
        return Err(format!(
            "`{}` after {word}: expected `{WITH}` and what is different in its kernel, for \
             example `{word} {WITH} clusters=off`",
            more.join(" ")
        )
        .into());
    }
    match (word, set) {
        ("stock", None) => Ok(Scheduler::Stock),
        ("stock", Some(set)) => Err(format!(
            "stock has no modes; what is different in its kernel comes after `{WITH}`: `stock \
             {WITH} {}`",
            if set.is_empty() { "clusters=off" } else { set }
        )
        .into()),
        ("perch", None) => Ok(Scheduler::Perch(String::new())),
        ("perch", Some("")) => {
            Err("no modes after `perch:`: expected for example perch:cluster=perch".into())
        }
        ("perch", Some(set)) => {
            let mut settings = Settings::default();
            settings.set_all(&[set]).map_err(|error| error.to_string())?;
            Ok(Scheduler::Perch(set.to_string()))
        }
        _ => {
            let words = [&[first.to_string()], more].concat();
            Ok(Scheduler::Program(words))
        }
    }
}

fn default_name(scheduler: &Scheduler) -> String {
    match scheduler {
        Scheduler::Stock => "stock".to_string(),
        Scheduler::Perch(_) => "perch".to_string(),
        Scheduler::Program(words) => {
            let name = words[0].rsplit('/').next();
            name.unwrap_or_default().to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Arm::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn schedulers_have_names_or_get_them() {
        let arm = |text: &str| {
            let arm = Arm::parse(text).unwrap();
            let loader = arm.loader().unwrap_or_default().join(" ");
            (arm.name, arm.words, loader)
        };
        let words = |a: &str, b: &str, c: &str| (a.to_string(), b.to_string(), c.to_string());
        assert_eq!(arm("stock"), words("stock", "stock", ""));
        assert_eq!(arm("base=stock"), words("base", "stock", ""));
        assert_eq!(arm("perch"), words("perch", "perch", "/bin/perch run"));
        assert_eq!(
            arm("perch:cluster=perch,balance_ms=8"),
            words(
                "perch",
                "perch:cluster=perch,balance_ms=8",
                "/bin/perch run --set cluster=perch,balance_ms=8"
            )
        );
        assert_eq!(arm("near=perch:cluster=perch").2, "/bin/perch run --set cluster=perch");
        assert_eq!(
            arm("cosmos=scx_cosmos -s 700"),
            words("cosmos", "scx_cosmos -s 700", "scx_cosmos -s 700")
        );
        assert_eq!(arm("/opt/scx_rusty").0, "scx_rusty");
        assert_eq!(
            Arm::parse("x=loader 'two words' -a=b").unwrap().scheduler,
            Scheduler::Program(["loader", "two words", "-a=b"].map(str::to_string).to_vec())
        );
    }

    #[test]
    fn any_scheduler_runs_with_another_kernel() {
        let stock = Arm::parse("noscan=stock with clusters=off boot=preempt=full").unwrap();
        assert_eq!(stock.words, "stock with clusters=off boot=preempt=full");
        assert!(stock.kernel.clusters_hidden);
        assert_eq!(stock.kernel.boot, ["preempt=full"]);
        let cosmos = Arm::parse("scx_cosmos -s 700 with feature=NO_SIS_UTIL").unwrap();
        assert_eq!(cosmos.loader().unwrap(), ["scx_cosmos", "-s", "700"]);
        assert_eq!(cosmos.kernel.writes.len(), 1);
    }

    #[test]
    fn any_scheduler_may_name_its_kernel() {
        let arm = |text: &str| {
            let arm = Arm::parse(text).unwrap();
            let loader = arm.loader().unwrap_or_default().join(" ");
            (arm.name, arm.image.unwrap_or_default(), loader, arm.words)
        };
        let same = |text: &str, expected: [&str; 4]| {
            let [name, image, loader, words] = expected.map(str::to_string);
            assert_eq!(arm(text), (name, image, loader, words), "{text}");
        };
        same("old=stock@7.2", ["old", "7.2", "", "stock@7.2"]);
        same("stock@/a=b/bzImage", ["stock", "/a=b/bzImage", "", "stock@/a=b/bzImage"]);
        same("new=stock@'/my kernel/a@b'", ["new", "/my kernel/a@b", "", "'stock@/my kernel/a@b'"]);
        same("p=perch@6.18", ["p", "6.18", "/bin/perch run", "perch@6.18"]);
        let set = "/bin/perch run --set cluster=perch";
        same("perch:cluster=perch@7.2", ["perch", "7.2", set, "perch:cluster=perch@7.2"]);
        let words = "scx_cosmos@7.2 -s 700 --at a@b with clusters=off";
        same(words, ["scx_cosmos", "7.2", "scx_cosmos -s 700 --at a@b", words]);
        same("stock", ["stock", "", "", "stock"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_was_expected() {
        for (text, words) in [
            ("", "it is empty"),
            ("x='a", "quote"),
            ("a b=stock", "nosuch"),
            ("=stock", "`` is not a name"),
            ("x:y=stock", "`x:y` is not a name"),
            ("x=", "no scheduler after `x=`"),
            ("stock:clusters=off", "`stock with clusters=off`"),
            ("stock clusters=off", "`stock with clusters=off`"),
            ("perch:", "no modes after `perch:`"),
            ("perch:clutser=perch", "clutser"),
            ("perch:cluster=never", "never"),
            ("stock with", "nothing comes after `with`"),
            ("stock with clutser=off", "`clutser=off`"),
            ("stock@", "no kernel after `stock@`: expected a version"),
            ("x=@7.2", "no scheduler before `@7.2`"),
            ("stock with clusters=off@7.2", "behind the scheduler: `stock@7.2`"),
            ("stock with feature=NO_SIS_UTIL@7.2", "`stock@7.2`"),
            ("stock with clusters=off @7.2", "`@7.2` stands alone"),
            ("scx_cosmos -s 700 @7.2", "`scx_cosmos@7.2`"),
            ("perch:cluster=prech@7.2", "prech"),
        ] {
            if words == "nosuch" {
                // The first word is a program, which is looked for before any guest boots.
                assert_eq!(Arm::parse(text).unwrap().name, "a");
                continue;
            }
            let found = refusal(text);
            assert!(found.contains(words), "{text}: {found}");
        }
    }
}
