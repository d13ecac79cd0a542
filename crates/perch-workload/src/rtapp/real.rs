// SPDX-License-Identifier: GPL-2.0-or-later
//! Files for the real rt-app. Its reader keeps only one of several equal keys, so this file numbers
//! the keys, as rt-app's own workgen does.

use super::error::{KeyError, RtAppError};
use super::event::{LATER, event_of};
use super::json::{Member, Value, parse};
use super::value::{members, wrong};

/// Changes a file so that the real rt-app does what perch simulates of it: every key is there once,
/// each `suspend` has its name, and rt-app runs for `seconds` and writes nothing but its log, into
/// the folder that it is started in.
///
/// # Errors
/// Those of a file that is no JSON, or that rt-app 1.0 reads in another way than perch does.
pub fn runnable(file: &str, seconds: u64) -> Result<String, RtAppError> {
    let Value::Object(mut top) = parse(file)? else {
        return Err(RtAppError::NoObject);
    };
    if !top.iter().any(|member| member.key == "tasks") {
        return Err(RtAppError::NothingToRun);
    }
    if !top.iter().any(|member| member.key == "global") {
        top.push(Member::of("global", Value::Object(Vec::new())));
    }
    for member in &mut top {
        let own = [
            ("duration", Value::Number(seconds as i64)),
            ("logdir", Value::Text("./".to_string())),
            ("ftrace", Value::Bool(false)),
            ("gnuplot", Value::Bool(false)),
        ];
        match member.key.as_str() {
            "global" => {
                members(member)?;
                let Value::Object(global) = &mut member.value else {
                    continue;
                };
                global.retain(|m| own.iter().all(|(key, _)| m.key != *key));
                global.extend(own.map(|(key, value)| Member::of(key, value)));
            }
            "tasks" => {
                members(member)?;
                let Value::Object(tasks) = &mut member.value else {
                    continue;
                };
                for task in tasks {
                    members(task)?;
                    known(task, &PASSED_OVER)?;
                    let name = task.key.clone();
                    name_suspends(&mut task.value, &name);
                    into_phases(&mut task.value);
                }
            }
            _ => {}
        }
    }
    let mut text = String::new();
    write(&Value::Object(top), 0, &mut text);
    text.push('\n');
    Ok(text)
}

/// Keys of a task or a phase that rt-app 1.0 passes over in silence.
const PASSED_OVER: [&str; 4] = ["taskgroup", "util_min", "util_max", "nodes_membind"];
/// Keys that belong to a task and not to its phases.
const OF_TASKS: [&str; 6] = ["instance", "loop", "delay", "policy", "priority", "cpus"];

/// Refuses a task or a phase with a key that rt-app 1.0 would pass over.
fn known(member: &Member, passed_over: &[&str]) -> Result<(), RtAppError> {
    let Value::Object(members) = &member.value else {
        return Ok(());
    };
    for inner in members {
        let later = event_of(&inner.key).is_some_and(|event| LATER.contains(&event));
        if later || passed_over.contains(&inner.key.as_str()) {
            return wrong(inner, KeyError::PassedOver);
        }
        if inner.key == "phases" {
            let Value::Object(phases) = &inner.value else {
                continue;
            };
            for phase in phases {
                known(phase, &[&PASSED_OVER[..], &["policy", "priority"]].concat())?;
            }
        }
    }
    Ok(())
}

/// Makes a phase of the events of a task with a `loop`: without phases rt-app 1.0 goes on for ever,
/// whatever `loop` says.
fn into_phases(task: &mut Value) {
    let Value::Object(members) = task else {
        return;
    };
    let has = |key: &str| members.iter().any(|member| member.key == key);
    if has("phases") || !has("loop") {
        return;
    }
    let (own, events) = std::mem::take(members)
        .into_iter()
        .partition(|member: &Member| {
            let deadline = member.key.starts_with("dl-");
            deadline || OF_TASKS.contains(&member.key.as_str())
        });
    *members = own;
    let phase = Member::of("all", Value::Object(events));
    members.push(Member::of("phases", Value::Object(vec![phase])));
}

/// Gives each `suspend` without a name the name of its own task, which it means.
fn name_suspends(value: &mut Value, task: &str) {
    let Value::Object(members) = value else {
        return;
    };
    for member in members {
        if member.key.starts_with("suspend") && member.value == Value::Null {
            member.value = Value::Text(task.to_string());
        }
        name_suspends(&mut member.value, task);
    }
}

fn indent(depth: usize, text: &mut String) {
    text.push('\n');
    text.extend(std::iter::repeat_n('\t', depth));
}

fn quoted(name: &str, text: &mut String) {
    text.push('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
}

/// Appends a value to `text`, and numbers the keys that repeat in an object.
pub fn write(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut had: Vec<&str> = members.iter().map(|member| member.key.as_str()).collect();
            had.sort_unstable();
            let mut used = std::collections::BTreeSet::new();
            text.push('{');
            for (i, member) in members.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                let mut key = member.key.clone();
                let mut number = 1;
                while !used.insert(key.clone()) {
                    number += 1;
                    key = format!("{}{number}", member.key);
                    // The file itself has this key further down: the next number is tried.
                    if had.binary_search(&key.as_str()).is_ok() {
                        key.clone_from(&member.key);
                    }
                }
                indent(depth + 1, text);
                quoted(&key, text);
                text.push_str(": ");
                write(&member.value, depth + 1, text);
            }
            indent(depth, text);
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for (i, value) in values.iter().enumerate() {
                if i > 0 {
                    text.push_str(", ");
                }
                write(value, depth, text);
            }
            text.push(']');
        }
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::Real(real) => text.push_str(&format!("{real:?}")),
        Value::Text(words) => quoted(words, text),
        Value::Bool(is) => text.push_str(if *is { "true" } else { "false" }),
        Value::Null => text.push_str("\"\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_made_unique_and_the_rest_is_as_it_was() {
        let file = "{\"tasks\": {\"a\\\"b\": {\"run\": 1, \"run2\": 2, \"run\": 3, \"run\": 4, \"cpus\": [0, 1,],\n\
            \"suspend\", \"suspend\": \"x\"}}, \"global\": {\"duration\": 77, \"calibration\": \"CPU0\"}}";
        let made = runnable(file, 5).expect("it is one");
        let Value::Object(top) = parse(&made).expect("JSON") else {
            panic!("{made}");
        };
        let task = members(&members(&top[0]).expect("tasks")[0]).expect("a task");
        let keys: Vec<&str> = task.iter().map(|member| member.key.as_str()).collect();
        assert_eq!(
            keys,
            ["run", "run2", "run3", "run4", "cpus", "suspend", "suspend2"]
        );
        assert_eq!(task[2].value, Value::Number(3));
        assert_eq!(task[5].value, Value::Text("a\"b".to_string()));
        assert!(
            made.contains("\"duration\": 5") && !made.contains("77"),
            "{made}"
        );
        assert_eq!(runnable(&made, 5).expect("it is one still"), made);
        assert!(
            runnable("{\"tasks\": {\"a\": {}}}", 1)
                .expect("one")
                .contains("logdir")
        );
        let once = runnable(
            "{\"tasks\": {\"a\": {\"loop\": 3, \"run\": 7, \"cpus\": [1]}}}",
            1,
        )
        .expect("one");
        let phases = once.find("phases").expect("phases");
        assert!(
            once.find("\"run\"") > Some(phases) && once.find("cpus") < Some(phases),
            "{once}"
        );
        for (task, why) in [
            (
                "\"run\": 1,\n\"taskgroup\": \"/a\"",
                "line 2: \"taskgroup\": rt-app 1.0 ignores",
            ),
            (
                "\"phases\": {\"p\": {\"run\": 1,\n\"priority\": 3}}",
                "line 2: \"priority\"",
            ),
            ("\n\"sem_post\": \"a\"", "line 2: \"sem_post\""),
        ] {
            let file = format!("{{\"tasks\": {{\"a\": {{{task}}}}}}}");
            let error = runnable(&file, 1).expect_err(task).to_string();
            assert!(error.starts_with(why), "{error}");
        }
        assert!(runnable("{}", 1).is_err() && runnable("[]", 1).is_err());
        assert!(runnable("{\"tasks\": 3}", 1).is_err());
    }
}
