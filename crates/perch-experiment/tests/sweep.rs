// SPDX-License-Identifier: GPL-2.0-or-later
//! Sweeps and stores: what is simulated, once, by whomever; and what a damaged store says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use perch_experiment::{
    Advance, ExperimentError, Limits, MODEL, Shard, Simulation, Store, Stored, Sweep, SweepRow,
};
use proptest::prelude::*;

const SWEEP: &str = r#"
machine = "kunpeng920"
workload = "pipe:where=node0"
era = "6.5"
effort = { warmup_ms = 1, measure_ms = 2, repetitions = 2 }
baseline = "stock"
conditions = ["workload.pairs <= 4"]
[axes]
workload.pairs = [1, 2, 64]
hardware.transfer_ns.llc = [40, 55]
arm = { stock = "off", posted = "cluster=posted" }
"#;

fn sweep(text: &str) -> Result<Sweep, ExperimentError> {
    Sweep::from_toml(text, "test.toml")
}

fn quiet(_: Advance) -> Result<(), ExperimentError> {
    Ok(())
}

/// Runs parts of the sweep into a store of their own, and returns the bytes of all files by name.
fn files(folder: &Path, shards: &[&str], jobs: usize) -> Vec<(PathBuf, Vec<u8>)> {
    let store = Store::open(folder).unwrap();
    for shard in shards {
        let shard = shard.parse().unwrap();
        let sweep = sweep(SWEEP).unwrap();
        let done = sweep.run(folder, shard, jobs, &mut quiet);
        assert_eq!(done.unwrap().failed, Vec::<String>::new());
    }
    assert_eq!(store.verify().unwrap(), []);
    let files = walk(folder).into_iter().map(|path| {
        let name = path.strip_prefix(folder).unwrap().to_path_buf();
        (name, fs::read(&path).unwrap())
    });
    let mut files: Vec<_> = files.collect();
    files.sort();
    files
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| match path.is_dir() {
            true => walk(&path),
            false => vec![path],
        })
        .collect();
    found.sort();
    found
}

#[test]
fn the_same_bytes_whoever_computes_them() {
    let folder = tempfile::tempdir().unwrap();
    let whole = files(&folder.path().join("whole"), &["1/1"], 1);
    assert_eq!(whole.len(), 8 + 1, "8 results and the header");
    let threads = folder.path().join("threads");
    assert_eq!(whole, files(&threads, &["1/1"], 3));
    let parts = folder.path().join("parts");
    assert_eq!(whole, files(&parts, &["3/3", "1/3", "2/3"], 2));
    // Twice: the second time there is nothing to do.
    let again = folder.path().join("again");
    assert_eq!(whole, files(&again, &["1/1", "1/1"], 1));
}

#[test]
fn a_table_has_changes_from_the_baseline_at_the_same_point() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let sweep = sweep(SWEEP).unwrap();
    let names = ["arm", "hardware.transfer_ns.llc", "workload.pairs"];
    assert_eq!(sweep.names(), names);
    let (rows, missing) = sweep.collect(&store).unwrap();
    assert_eq!((rows.len(), missing), (0, 8));
    let done = sweep.run(folder.path(), Shard::WHOLE, 2, &mut quiet);
    assert_eq!(done.unwrap().made, 8);
    let (rows, missing) = sweep.collect(&store).unwrap();
    assert_eq!(missing, 0);
    for row in &rows {
        let is_base = |base: &&SweepRow| {
            let is_same = |name: &&str| base.point[*name] == row.point[*name];
            base.point["arm"].as_str() == Some("stock")
                && names[1..].iter().all(is_same)
                && base.score == row.score
        };
        let base = rows.iter().find(is_base).unwrap();
        let expected = 100.0 * (row.mean / base.mean - 1.0);
        let change = row.change_pct.unwrap();
        assert!((change - expected).abs() < 1e-9, "{row:?}");
    }
}

fn simulation() -> Simulation {
    let text = r#"{"machine": "kunpeng920", "workload": "pipe:pairs=1", "era": "6.5",
        "effort": {"warmup_ms": 1, "measure_ms": 1, "repetitions": 1}}"#;
    Simulation::from_json(text, "test.json").unwrap()
}

fn key(simulation: Simulation) -> String {
    simulation.prepare("test", Limits::default()).unwrap().key.to_string()
}

#[test]
fn every_input_is_in_the_key() {
    let changes: [fn(&mut Simulation); 8] = [
        |one| one.machine = "epyc7543".to_string(),
        |one| one.workload = "pipe:pairs=2".to_string(),
        |one| one.era = "6.15".to_string(),
        |one| one.hz = 1000,
        |one| one.modes = "cluster=posted".to_string(),
        |one| one.seed = 2,
        |one| one.effort = perch_experiment::Times::default(),
        |one| {
            let value = toml::Value::Integer(41);
            let key = "hardware.transfer_ns.llc".to_string();
            one.changed.insert(key, value);
        },
    ];
    let mut keys = BTreeSet::from([key(simulation())]);
    for change in changes {
        let mut one = simulation();
        change(&mut one);
        assert!(keys.insert(key(one.clone())), "{one:?}");
    }
}

#[test]
fn a_machine_has_one_key_by_name_path_and_text() {
    let folder = tempfile::tempdir().unwrap();
    let machine = perch_machine::library::load("kunpeng920").unwrap();
    let path = folder.path().join("renamed.toml");
    fs::write(&path, machine.to_toml()).unwrap();
    let mut by_path = simulation();
    by_path.machine = path.display().to_string();
    let mut by_text = simulation();
    by_text.machine = String::new();
    by_text.machine_toml = Some(machine.to_toml());
    assert_eq!(key(simulation()), key(by_path.clone()));
    assert_eq!(key(simulation()), key(by_text));
    // The store keeps the text, since another machine does not have the file.
    let asked = by_path.prepare("test", Limits::default()).unwrap().asked;
    assert!(asked.machine_toml.is_some() && asked.machine.is_empty());
}

#[test]
fn a_workloads_file_is_in_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.json");
    let of = |text: &str| {
        fs::write(&path, text).unwrap();
        let mut one = simulation();
        one.workload = format!("rtapp:{},lines=3", path.display());
        key(one)
    };
    let text = r#"{"tasks": {"a": {"loop": 9, "run": 1000, "sleep": 1000}}}"#;
    assert_ne!(of(text), of(&text.replace('9', "8")));
}

#[test]
fn a_store_of_another_model_is_refused_until_it_is_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let prepared = simulation().prepare("test", Limits::default()).unwrap();
    let found = prepared.run().unwrap();
    let stored = Stored::new(prepared.key.clone(), prepared.asked, found);
    store.put(&stored).unwrap();
    assert_eq!(store.get(&prepared.key).unwrap().as_ref(), Some(&stored));
    let header = folder.path().join("perch-store.json");
    let text = fs::read_to_string(&header).unwrap();
    fs::write(&header, text.replace(MODEL, "0123456789abcdef")).unwrap();
    let refused = Store::open(folder.path()).unwrap_err().to_string();
    let names_both = refused.contains("0123456789abcdef") && refused.contains(MODEL);
    assert!(names_both, "{refused}");
    let pruned = Store::prune(folder.path(), |_| true).unwrap();
    assert_eq!(pruned.results, 1);
    let store = Store::open(folder.path()).unwrap();
    assert!(store.keys().unwrap().is_empty());
}

/// The first simulation has two tasks, the second one more than there are CPUs.
#[test]
fn progress_goes_by_cost() {
    let folder = tempfile::tempdir().unwrap();
    let text = "machine = \"x5570\"\nworkload = \"pipe\"\n\
                effort = { warmup_ms = 1, measure_ms = 1, repetitions = 1 }\n\
                axes.workload.pairs = [1, 100]\n";
    let sweep = sweep(text).unwrap();
    let mut parts = vec![0.0];
    let done = sweep.run(folder.path(), Shard::WHOLE, 1, &mut |at| {
        assert_eq!(at.all, 2);
        parts.resize(at.done + 1, at.part);
        Ok::<_, ExperimentError>(())
    });
    assert_eq!(done.unwrap().made, 2);
    let [_, first, last] = parts[..] else {
        panic!("{parts:?}");
    };
    // 2 busy CPUs, and all 16 of the machine.
    assert!((first - 2.0 / 18.0).abs() < 1e-9, "{parts:?}");
    assert!((last - 1.0).abs() < 1e-9, "{parts:?}");
}

#[test]
fn damage_is_found_and_half_files_are_no_results() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let sweep = sweep(SWEEP).unwrap();
    let done = sweep.run(folder.path(), Shard::WHOLE, 2, &mut quiet);
    assert_eq!(done.unwrap().made, 8);
    let results = walk(&folder.path().join("results"));
    // As a writer leaves it that is killed.
    let half = fs::read(&results[0]).unwrap();
    let unfinished = folder.path().join("unfinished/.perch-x");
    fs::write(unfinished, &half[..half.len() / 2]).unwrap();
    assert_eq!(store.keys().unwrap().len(), 8);
    // What prune leaves, and is to be moved.
    let other = folder.path().join("unfinished/thesis.tex");
    fs::write(&other, "").unwrap();
    let reasons: Vec<String> =
        (store.verify().unwrap().into_iter()).map(|fault| fault.reason).collect();
    assert_eq!(reasons.len(), 2);
    for words in ["prune removes it", "not written by perch"] {
        assert!(reasons.iter().any(|reason| reason.contains(words)), "{reasons:?}");
    }
    fs::remove_file(&other).unwrap();
    // Another value in a result, a result under another's name, and a name that is none.
    let text = fs::read_to_string(&results[1]).unwrap();
    let other = text.replacen("\"values\":[", "\"values\":[7", 1);
    fs::write(&results[1], other).unwrap();
    fs::copy(&results[3], &results[2]).unwrap();
    fs::write(folder.path().join("results/readme"), "").unwrap();
    let faults = store.verify().unwrap();
    assert_eq!(faults.len(), 4, "{faults:?}");
    // Nobody takes such a result for one, and whoever repairs it simulates it again.
    let again = sweep.run(folder.path(), Shard::WHOLE, 2, &mut quiet);
    let why = again.unwrap_err().to_string();
    assert!(why.contains("--repair"), "{why}");
    assert!(sweep.collect(&store).is_err());
    let simulations = sweep.simulations(Shard::WHOLE).unwrap();
    assert_eq!(store.repair(&simulations).unwrap(), 2);
    let again = sweep.run(folder.path(), Shard::WHOLE, 2, &mut quiet);
    assert_eq!(again.unwrap().made, 2);
    let pruned = Store::prune(folder.path(), |_| true).unwrap();
    assert_eq!((pruned.results, pruned.unfinished), (0, 1));
    // So is what a link leads to.
    let precious = tempfile::tempdir().unwrap();
    fs::write(precious.path().join(".perch-thesis"), "").unwrap();
    fs::remove_dir(folder.path().join("unfinished")).unwrap();
    std::os::unix::fs::symlink(precious.path(), folder.path().join("unfinished")).unwrap();
    assert!(Store::prune(folder.path(), |_| true).is_err());
    assert!(precious.path().join(".perch-thesis").exists());
    // A folder of something else is left alone.
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("thesis.tex"), "").unwrap();
    assert!(Store::open(other.path()).is_err());
    assert!(Store::existing(&other.path().join("none")).is_err());
}

#[test]
fn mistakes_name_the_key_before_anything_runs() {
    let llc = "axes.hardware.transfer_ns.llc";
    for (from, to, named) in [
        ("transfer_ns.llc", "transfer_ns.lcc", "hardware.transfer_ns.lcc"),
        ("workload.pairs = [1", "workload.pears = [1", "pears"),
        ("repetitions = 2", "repetitions = 0", "repetitions"),
        ("workload.pairs = [1", "workloads.pairs = [1", "axes.workloads.pairs"),
        ("[40, 55]", "[40, 40]", llc),
        ("[40, 55]", "[]", llc),
        ("[40, 55]", "{ from = 60, to = 50, step = 2 }", llc),
        ("[40, 55]", "{ from = 1, to = 50, stop = 2 }", "stop"),
        ("off\"", "on\"", "modes"),
        ("cluster=posted", "capacity=cleverly", "modes"),
        ("baseline = \"stock\"", "baseline = \"stick\"", "baseline"),
        ("workload.pairs <= 4", "workload.pairs <= 4 ms", "conditions"),
        ("workload.pairs <= 4", "workload.pair <= 4", "conditions"),
        ("workload.pairs <= 4", "arm <= 4", "conditions"),
        ("where=node0", "where=node9", "where=node9"),
        ("kunpeng920", "kunpeng92", "kunpeng92"),
        ("machine = \"kunpeng920\"", "", "machine"),
        ("era = \"6.5\"", "era = \"6.5.1\"", "era"),
        ("repetitions = 2", "repetitions = \"2\"", "effort"),
    ] {
        assert!(SWEEP.contains(from), "{from}");
        let text = SWEEP.replace(from, to);
        let error = sweep(&text).and_then(|sweep| sweep.simulations(Shard::WHOLE));
        let error = error.expect_err(to);
        assert!(error.is_input(), "{error}");
        assert!(error.to_string().contains(named), "{to}: {error}");
    }
}

/// Work that grows with the input is bounded before it is done.
#[test]
fn names_without_end_and_axes_without_number_are_refused() {
    let deep = format!("[axes]\n\"hardware{}\" = [1]", ".x".repeat(5000));
    let many: String = (0..1000).map(|i| format!("axes.workload.k{i} = [1]\n")).collect();
    let conditions = format!("conditions = [{}]", "\"cpus > 0\",".repeat(257));
    let drawn: String = (0..11).map(|i| format!("axes.workload.k{i} = [1]\n")).collect();
    let drawn = format!("[design]\npoints = 99999\n{drawn}");
    for (rest, reason) in [
        (deep, "of at most 8 parts"),
        (many, "at most 256 axes"),
        (conditions, "`conditions`"),
        (drawn, "99999 points of 11 axes"),
    ] {
        let text = format!("machine = \"kunpeng920\"\nworkload = \"pipe\"\n{rest}");
        let error = sweep(&text).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_design_has_one_point_in_each_part_of_each_axis() {
    let text = r#"
machine = "kunpeng920"
workload = "pipe:where=node0"
[axes]
arm = { stock = "off", posted = "cluster=posted" }
[design]
points = 16
seed = 3
axes.hardware.transfer_ns.llc = { from = 30, to = 60 }
axes.hardware.ipi_ns.llc = { from = 100, to = 1000, scale = "log" }
"#;
    let sweep = sweep(text).unwrap();
    let points: Vec<_> = sweep.points().map(Result::unwrap).collect();
    assert_eq!(points.len(), 32);
    let of_arm = |arm: &str| -> Vec<_> {
        let points = points.iter();
        let of_arm = points.filter(|point| point.values[0].as_str() == Some(arm));
        of_arm.map(|point| point.values[1..].to_vec()).collect()
    };
    let stock = of_arm("stock");
    let mut llc: Vec<i64> = stock.iter().filter_map(|p| p[1].as_integer()).collect();
    llc.sort_unstable();
    for (index, value) in llc.iter().enumerate() {
        // 30 ns in 16 parts, and half a nanosecond of rounding.
        let from = 30.0 + 30.0 / 16.0 * index as f64;
        let part = from - 0.5..=from + 30.0 / 16.0 + 0.5;
        assert!(part.contains(&(*value as f64)), "{llc:?}");
    }
    assert_eq!(stock, of_arm("posted"), "all arms have the same points");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn parts_make_the_whole(of in 1_usize..20) {
        let sweep = sweep(SWEEP).unwrap();
        let keys = |shard: Shard| -> Vec<_> {
            let simulations = sweep.simulations(shard).unwrap();
            simulations.into_iter().map(|one| one.key).collect()
        };
        let mut parts: Vec<_> = (1..=of)
            .flat_map(|index| keys(format!("{index}/{of}").parse().unwrap()))
            .collect();
        let mut whole = keys(Shard::WHOLE);
        parts.sort();
        whole.sort();
        prop_assert_eq!(parts, whole);
    }

    #[test]
    fn a_part_out_of_range_is_refused(index in 0_usize..100, of in 0_usize..100) {
        let shard = format!("{index}/{of}").parse::<Shard>();
        prop_assert_eq!(shard.is_ok(), index >= 1 && index <= of);
    }
}

/// A sweep is somebody's file: it runs their code only for a user who asks for that.
#[test]
fn code_of_others_is_asked_for() {
    for text in [
        "machine = \"x5570\"\nworkload = \"pipe\"\nmodes = \"scx:/nowhere.c\"",
        "machine = \"x5570\"\nworkload = \"pipe\"\naxes.arm = { a = \"off\", b = \"scx:/nowhere.c\" }",
    ] {
        let error = sweep(text).unwrap().simulations(Shard::WHOLE);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("`modes`") && error.contains("--allow-scx"), "{error}");
        let limits = Limits { allow_scx: true, ..Limits::default() };
        let allowed = sweep(text).unwrap().within(limits);
        let error = allowed.simulations(Shard::WHOLE).unwrap_err().to_string();
        assert!(error.contains("/nowhere.c: No such file"), "{error}");
    }
}

#[test]
fn a_machine_s_file_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.toml");
    fs::write(&path, perch_machine::resolve("x5570").unwrap().to_toml()).unwrap();
    let text = format!(
        "machine = {path:?}\nworkload = \"pipe\"\naxes.hardware.context_switch_ns = [900, 901]"
    );
    let sweep = sweep(&text).unwrap();
    let mut points = sweep.points();
    points.next().unwrap().unwrap();
    fs::remove_file(&path).unwrap();
    points.next().unwrap().unwrap();
}

#[test]
fn times_beyond_an_hour_are_refused() {
    let text = "machine = \"x5570\"\nworkload = \"pipe\"\n\
                effort = { warmup_ms = 1, measure_ms = 3600001, repetitions = 1 }";
    let error = sweep(text).unwrap().simulations(Shard::WHOLE).unwrap_err();
    assert!(error.to_string().contains("at most an hour"), "{error}");
}
