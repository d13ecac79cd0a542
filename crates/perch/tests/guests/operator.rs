// SPDX-License-Identifier: GPL-2.0-or-later
//! The operator's page: each of its commands runs in a guest, and each file that it shows is one that perch
//! takes. `systemctl` is the packages' test's, and `perch lab` the lab's.

use crate::guest::{Lab, SHELL, Use};

/// The page's text, as it was when this test was built.
const PAGE: &str = include_str!("../../../../docs/live/operator.md");

/// What the page takes for given: a file of settings, one of the machine, a cgroup with a task, a counter
/// of requests, and a user.
const GIVEN: &str = "
    mkdir -p /run/web
    echo 'waits = true' >perch.toml
    perch machine detect >my.toml
    echo 1 >/run/web/requests
    cgroups favordynmods; mkdir /sys/fs/cgroup/web
    sh -c 'echo $$ >/sys/fs/cgroup/web/cgroup.procs
        while :; do read -t 0.002 never <&9; done' >/dev/null 2>&1 &
    ";

/// The blocks of the page, without its fences.
fn blocks() -> Vec<Vec<&'static str>> {
    let pieces: Vec<&str> = PAGE.split("\n```").collect();
    assert!(pieces.len() % 2 == 1, "a block of the page never ends");
    let inside = pieces.iter().skip(1).step_by(2);
    inside.map(|block| block.lines().skip(1).collect()).collect()
}

/// The command in a line of a block, without `sudo` and what is said of it.
fn command(line: &str) -> Option<String> {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    let what = line.strip_prefix("perch ")?.split(' ').next()?;
    let known = ["run", "doctor", "record", "advise", "trial", "machine"];
    let end = line.find("  ").unwrap_or(line.len());
    known.contains(&what).then(|| line[..end].to_string())
}

/// The same trial in two turns of a second.
fn in_brief(trial: &str) -> String {
    let mut words = trial.split(' ');
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "--for" | "--every" | "--settle" => drop(words.next()),
            "trial" => kept.push("trial --for 2s --every 1s"),
            _ => kept.push(word),
        }
    }
    kept.join(" ")
}

/// Runs a command of the page as the page means it: `perch run` until it is loaded, others to their end. To
/// load takes seconds, so of the commands of a kind those but the first are `brief`: perch only checks what
/// they would load.
fn does(lab: &Use, command: &str, brief: bool) {
    let said = match command.strip_prefix("perch run") {
        Some(arguments) if brief => {
            lab.text(&format!("perch run --check {}", arguments.replace("--check", "")))
        }
        Some(arguments) if !arguments.contains("--check") => {
            let perch = lab.load(arguments);
            assert!(lab.scheduler().starts_with("perch"), "{command}");
            perch.unload()
        }
        _ if command.starts_with("perch trial") => lab.text(&in_brief(command)),
        _ => lab.text(&command.replace("sleep 60", "sleep 1")),
    };
    println!("{command}:\n{said}");
    lab.is_on_its_own();
}

#[test]
fn commands_of_the_page_work() {
    commands_work(true);
}

#[test]
#[ignore = "loads perch twenty times, for --long"]
fn every_command_of_the_page_works() {
    commands_work(false);
}

fn commands_work(brief: bool) {
    let blocks = blocks();
    let commands = blocks.iter().flatten().filter_map(|line| command(line));
    let mut commands: Vec<String> = commands.collect();
    let lab = Lab::small("7.2");
    lab.text(&format!("{SHELL}{GIVEN}"));
    lab.put("/etc/passwd", "www-data:x:33:33::/var/www:/bin/false\n");
    let mut seen = std::collections::BTreeSet::new();
    commands.retain(|command| seen.insert(command.clone()));
    let kind = |command: &str| command.split(' ').nth(1).unwrap_or_default().to_string();
    let mut kinds = std::collections::BTreeSet::new();
    for command in &commands {
        let is_first = kinds.insert(kind(command));
        if brief && !is_first && kind(command) == "trial" {
            continue;
        }
        does(&lab, command, brief && !is_first);
    }
    assert!(commands.len() >= 20, "{commands:#?}");

    // The files that the page shows.
    let tables = ["[[band]]", "[[partial]]"];
    let shown = blocks.iter().filter(|block| tables.iter().any(|table| block.contains(table)));
    let shown: Vec<String> = shown.map(|block| block.join("\n")).collect();
    assert_eq!(shown.len(), 2);
    for file in shown {
        lab.put("/shown.toml", &file);
        let said = lab.text("perch run --check --config /shown.toml 2>&1");
        println!("{file}\n{said}");
    }

    // The groups of different weights, which the page has one look at in `top`.
    let groups =
        blocks.iter().find(|block| block.iter().any(|line| line.contains("mkdir heavy light")));
    let mut groups = groups.expect("the page makes two groups").clone();
    let top = groups.pop().expect("it looks at them");
    assert!(top.starts_with("top "), "{top}");
    lab.text(&format!("{{ {}\n}} >/dev/null 2>&1", groups.join("\n")));
    lab.until("each group has its task", || {
        let are_there =
            "cd /sys/fs/cgroup && grep -q . heavy/cgroup.procs && grep -q . light/cgroup.procs";
        lab.run(are_there).success()
    });
    lab.text("cd /sys/fs/cgroup; for group in heavy light; do echo 1 >$group/cgroup.kill; done");
    lab.is_well();
}
