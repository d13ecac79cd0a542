// SPDX-License-Identifier: GPL-2.0-or-later
//! Guests themselves: they look as they should, do what they are told and leave nothing behind.

use std::io::Read;
use std::process::{Child, Command as HostCommand, Stdio};
use std::time::{Duration, Instant};

use perch_lab::Cpus;
use perch_lab::guest::{Command, Guest, Signal, Snapshot, Status};
use perch_machine::Machine;

use crate::guest::{Lab, PATIENCE, PERCH, Place, Use, comes, deterministic, resolve, setup};
use crate::support;

/// A kunpeng920 of 8 CPUs: two nodes with two clusters each.
fn kunpeng() -> Use {
    Lab::boot("", 8)
}

/// Demands that the guest's kernel and perch find the machine that the topology promised, and returns what
/// perch finds.
pub fn looks_as_promised(lab: &Lab) -> Machine {
    let detected = lab.text("perch machine detect");
    let detected = Machine::from_toml_str(&detected, "the guest").unwrap();
    let promised = lab.machine();
    assert_eq!(detected.cpus, promised.cpus, "{}", promised.name);
    assert_eq!(detected.node_distance, promised.node_distance);
    lab.is_well();
    detected
}

#[test]
fn a_machine_with_clusters_and_nodes_comes_up_as_promised() {
    let lab = kunpeng();
    assert_eq!(lab.machine().clusters(), 4);
    looks_as_promised(&lab);
    // The scheduler's own levels, innermost first.
    let domains = "for d in /sys/kernel/debug/sched/domains/cpu0/*; do cat $d/name; done";
    let script = format!("mount -t debugfs none /sys/kernel/debug 2>/dev/null; {domains}");
    assert_eq!(lab.text(&script), "CLS\nMC\nNUMA\n");
}

#[test]
#[ignore = "a guest of its own, like that of kunpeng920, for --long"]
fn an_irregular_machine_comes_up_as_promised() {
    // The machine has SMT on one core only, clusters of two sizes, a core in none, and nodes of two
    // sizes.
    let machine = "name = \"odd\"\n\
        [[core]]\ncpus = \"0-1\"\n\
        [[cluster]]\ncpus = \"0-2\"\n[[cluster]]\ncpus = \"3-4\"\n\
        [[llc]]\ncpus = \"0-4\"\n[[llc]]\ncpus = \"5-6\"\n[[llc]]\ncpus = \"7\"\n\
        [[node]]\ncpus = \"0-6\"\n[[node]]\ncpus = \"7\"\n\
        [[package]]\ncpus = \"0-6\"\n[[package]]\ncpus = \"7\"\n";
    let machine = Machine::from_toml_str(machine, "odd").unwrap();
    let lab = Lab::on(&machine, "");
    assert_eq!(lab.machine().cpus, machine.cpus);
    looks_as_promised(&lab);
}

#[test]
#[ignore = "a guest of its own, like that of kunpeng920, for --long"]
fn packages_that_share_a_node_come_up_as_promised() {
    let lab = Lab::of(setup(&resolve("xeon240"), Cpus::AtMost(8), ""));
    let promised = lab.machine();
    assert_eq!((promised.llcs(), promised.nodes()), (2, 1));
    assert!(promised.has_smt());
    looks_as_promised(&lab);
    let console = lab.power_off();
    assert!(console.trim_end().ends_with("Power down"), "{console}");
}

#[test]
fn guests_that_go_on_from_one_state_are_apart() {
    let _place = Place::take();
    let setup = || setup(&resolve("kunpeng920"), Cpus::AtMost(4), "");
    let mut job = setup();
    job.job = Some(Command::new(["true"]));
    let refused = Snapshot::take(job).err().unwrap().to_string();
    assert!(refused.starts_with("a guest with a job cannot"), "{refused}");
    let refused = deterministic(&resolve("kunpeng920"), Cpus::AtMost(4));
    assert!(Snapshot::take(refused).err().unwrap().is_input());

    let began = Instant::now();
    let snapshot = Snapshot::take(setup()).unwrap();
    let took = began.elapsed();
    let [one, other] = [(); 2].map(|()| snapshot.restore().unwrap());
    // They need it no longer.
    let promised = snapshot.setup().topology.machine().clone();
    drop(snapshot);
    println!("{took:?}, then {:?} and {:?}", one.boot_time(), other.boot_time());
    let text = |guest: &Guest, script: &str| guest.run(&Command::shell(script)).unwrap().text();
    assert_eq!(text(&one, "echo 1 > /tmp/mine; cat /tmp/mine"), "1\n");
    assert_eq!(text(&other, "ls /tmp"), "");
    for guest in [&one, &other] {
        let detected = text(guest, "perch machine detect");
        let detected = Machine::from_toml_str(&detected, "the guest").unwrap();
        assert_eq!(detected.cpus, promised.cpus);
        // Its log begins with the boot, and time does not jump.
        assert!(guest.log().unwrap().contains("Linux version"));
        assert_eq!(guest.trouble().unwrap(), [""; 0]);
    }
    drop(one);
    assert_eq!(text(&other, "nproc"), "4\n");
    let console = other.power_off().unwrap();
    assert!(console.trim_end().ends_with("Power down"), "{console}");
}

#[test]
fn commands_are_heard_and_their_end_is_told() {
    let lab = kunpeng();
    let guest = lab.guest();
    let command = Command::shell("cat; echo $WORD >&2; exit 7");
    let output = guest.run(&command.stdin("in").env("WORD", "set")).unwrap();
    assert_eq!((output.text(), output.error_text()), ("in".into(), "set\n".into()));
    assert_eq!(output.status, Status::Code(7));

    let long =
        "i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done; head -c 1000000 /dev/zero";
    let output = guest.run(&Command::shell(long)).unwrap();
    assert_eq!(output.stdout.len(), 8890 + 1_000_000);

    let none = guest.run(&Command::new(["no-such-program"])).unwrap_err();
    assert!(none.to_string().contains("no-such-program: there is no such program"), "{none}");
    let endless = Command::shell("echo here; while :; do :; done");
    let late = guest.run(&endless.clone().timeout(Duration::ZERO));
    let late = late.unwrap_err().to_string();
    assert!(late.contains("did not end within 0 s"), "{late}");
    let mut late = guest.start(&endless).unwrap();
    late.wait_for("here", PATIENCE).unwrap();
    let late = late.wait_for("there", Duration::ZERO).unwrap_err();
    let late = late.to_string();
    assert!(late.contains("did not say `there` within 0 s"), "{late}");
    assert!(late.ends_with("here"), "what it wrote is not told: {late}");

    let began = Instant::now();
    for _ in 0..10 {
        guest.run(&Command::new(["true"])).unwrap();
    }
    println!("a command takes {:.0} ms", began.elapsed().as_secs_f64() * 100.0);
    println!("hackbench: {}", lab.text("hackbench -g 1 -l 50").trim());
}

#[test]
fn programs_in_the_background_are_watched_and_killed() {
    let lab = kunpeng();
    let guest = lab.guest();
    let script = "trap 'echo interrupted; exit 4' INT; echo on; while :; do sleep 0.1; done";
    let mut polite = guest.start(&Command::shell(script)).unwrap();
    polite.wait_for("on\n", PATIENCE).unwrap();
    assert!(polite.is_running());
    polite.signal(Signal::INT).unwrap();
    let output = polite.wait().unwrap();
    assert_eq!((output.text().as_str(), output.status), ("on\ninterrupted\n", Status::Code(4)));

    let mut stubborn = guest.start(&Command::shell("trap '' INT; echo on; sleep 1000")).unwrap();
    stubborn.wait_for("on\n", PATIENCE).unwrap();
    let there = format!("kill -0 {}", stubborn.pid());
    lab.text(&there);
    stubborn.signal(Signal::KILL).unwrap();
    assert_eq!(stubborn.wait().unwrap().status, Status::Signal(9));

    // No program that was dropped still runs.
    let mut dropped = guest.start(&Command::shell("echo on; sleep 1234")).unwrap();
    dropped.wait_for("on\n", PATIENCE).unwrap();
    drop(dropped);
    lab.text("while grep -qs 'sleep.123[4]' /proc/[0-9]*/cmdline; do sleep 0.1; done");
    let missing = guest.start(&Command::shell("echo one")).unwrap();
    let missing = { missing }.wait_for("two", PATIENCE).unwrap_err().to_string();
    assert!(missing.contains("without a word of `two`") && missing.ends_with("one"), "{missing}");
}

#[test]
fn files_travel_both_ways() {
    let lab = kunpeng();
    let guest = lab.guest();
    let bytes: Vec<u8> = (0..300_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    guest.put("/tmp/file", 0o700, &bytes).unwrap();
    assert_eq!(guest.get("/tmp/file").unwrap(), bytes);
    assert_eq!(lab.text("stat -c %a /tmp/file"), "700\n");
    let missing = guest.get("/no/such/file").unwrap_err().to_string();
    assert!(missing.contains("/no/such/file"), "{missing}");
}

#[test]
fn a_guest_that_does_not_come_up_shows_its_console() {
    let _place = Place::take();
    let mut setup = setup(&resolve("kunpeng920"), Cpus::AtMost(2), "");
    setup.kernel_words = Some("rdinit=/nowhere root=/dev/nowhere".to_string());
    let panicked = Guest::boot(&setup).err().unwrap().to_string();
    assert!(panicked.starts_with("the guest did not come up: QEMU ended"), "{panicked}");
    assert!(panicked.contains("the last lines of its console:\n"), "{panicked}");
    assert!(panicked.contains("Kernel panic"), "{panicked}");

    let hangs =
        "#!/bin/busybox sh\necho waiting for nobody >/dev/console\nwhile :; do sleep 1; done\n";
    setup.contents.bytes("init", 0o755, hangs);
    setup.kernel_words = None;
    // A host that is too slow for one limit has the next.
    let shown = [12, 60, 300, 1800].into_iter().any(|seconds| {
        setup.boot_timeout = Duration::from_secs(seconds);
        let hung = Guest::boot(&setup).err().unwrap().to_string();
        let words = format!("the guest did not come up within {seconds} s");
        assert!(hung.starts_with(&words), "{hung}");
        println!("{hung}");
        hung.contains("waiting for nobody")
    });
    assert!(shown, "its console is not shown");
}

/// `perch lab run` with a command that would take long.
fn long_run() -> Child {
    // A shell's background jobs ignore SIGINT, and a test that such a job started would pass that
    // on.
    HostCommand::new("env")
        .args(["--default-signal=INT", PERCH])
        .args(["lab", "run", "-m", "kunpeng920", "--cpus", "2", "--"])
        .args(["sh", "-c", "echo up; sleep 1000"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The processes whose parent is `parent`.
fn children(parent: u32) -> Vec<u32> {
    let parent_of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let after_name = stat.rsplit_once(')')?.1;
        after_name.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

#[test]
fn no_qemu_outlives_perch() {
    let _place = Place::take();
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let mut perch = long_run();
        if signal == Signal::INT {
            let mut word = [0; 3];
            let output = perch.stdout.as_mut().unwrap();
            output.read_exact(&mut word).unwrap();
            assert_eq!(&word, b"up\n");
        } else {
            // While it boots.
            assert!(comes(|| !children(perch.id()).is_empty()));
        }
        let qemu = children(perch.id());
        assert_eq!(qemu.len(), 1, "{signal:?}: {qemu:?}");
        let pid = rustix::process::Pid::from_child(&perch);
        rustix::process::kill_process(pid, signal).unwrap();
        perch.wait().unwrap();
        // A process that is gone, or a zombie that init has not waited for yet, runs nothing.
        let runs = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", qemu[0]));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        assert!(comes(|| !runs()), "{signal:?}: QEMU runs on");
    }
}

#[test]
fn the_command_reports_the_guests_exit_code() {
    let _place = Place::take();
    let run = |script: &str| {
        let arguments = ["lab", "run", "-m", "kunpeng920", "--cpus", "8", "--", "sh", "-c", script];
        let output = support::perch_with(&arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, err) = run("nproc; echo words >&2; exit 3");
    assert_eq!((code, out.as_str()), (Some(1), "8\n"), "{err}");
    assert!(err.contains("8 CPUs of kunpeng920, booted in"), "{err}");
    assert!(err.contains("left out: 120 of kunpeng920's 128 CPUs"), "{err}");
    assert!(err.contains("\nwords\n"), "{err}");
    assert!(err.ends_with("perch: the command ended with 3 in the guest\n"), "{err}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_boots() {
    let refused = |arguments: &[&str]| {
        let output = support::perch_with(&[&["lab", "run"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let asymmetric = refused(&["-m", "juno", "--arch", "amd64", "--", "true"]);
    assert!(asymmetric.contains("differ in capacity"), "{asymmetric}");
    let too_many = refused(&["-m", "rt480", "--cpus", "all", "--", "true"]);
    assert!(too_many.contains("APIC ID"), "{too_many}");
    let idle = refused(&["-m", "x5570", "--set", "cluster=off", "--", "true"]);
    assert!(idle.contains("--scheduler perch"), "{idle}");
    let unknown = refused(&["-m", "kunpeng920", "--", "no-such-program-anywhere"]);
    assert!(unknown.contains("no-such-program-anywhere"), "{unknown}");
}
