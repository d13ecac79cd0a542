// SPDX-License-Identifier: GPL-2.0-or-later
//! Twice the input, at most twice the work: each construct of each format, by the instructions that
//! valgrind counts in its reader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use perch_experiment::{Experiment, Limits, Sweep};
use perch_machine::{Machine, cpulist, detect, import};
use perch_plan::Settings;
use perch_policy::{Era, Modes, Policy};
use perch_report::Results;
use perch_workload::Workload;

use crate::{budget, perfdata, read, scratch};

/// What the instructions of a reader may grow by where the input doubles. Sorting takes a little
/// more than twice; a reader whose square shows takes three times and more.
const MOST: f64 = 2.35;
/// The word of the environment by which the test runs itself below valgrind.
const COUNTED: &str = "PERCH_FUZZ_COUNTED";

type Read = fn(&Path) -> Result<(), String>;

/// A construct: what it is, how its reader is called, how many of it there are at first, and the
/// input that has so many.
struct Construct {
    name: &'static str,
    read: Read,
    n: usize,
    input: Box<dyn Fn(usize) -> Vec<u8>>,
    /// Writes what the input's file names.
    beside: fn(&Path, usize),
    is_refused: bool,
}

#[derive(Default)]
struct Table(Vec<Construct>);

impl Table {
    fn bytes(
        &mut self,
        name: &'static str,
        read: Read,
        n: usize,
        input: impl Fn(usize) -> Vec<u8> + 'static,
    ) -> &mut Construct {
        self.0.push(Construct {
            name,
            read,
            n,
            input: Box::new(input),
            beside: |_, _| {},
            is_refused: false,
        });
        self.0.last_mut().expect("it was just added")
    }

    /// Adds a construct that is read.
    fn add(
        &mut self,
        name: &'static str,
        read: Read,
        n: usize,
        input: fn(usize) -> String,
    ) -> &mut Construct {
        self.bytes(name, read, n, move |n| input(n).into_bytes())
    }

    /// Adds one that is refused.
    fn refuse(&mut self, name: &'static str, read: Read, n: usize, input: fn(usize) -> String) {
        self.add(name, read, n, input).is_refused = true;
    }
}

fn said<T>(found: Result<T, impl ToString>) -> Result<(), String> {
    found.map(drop).map_err(|error| error.to_string())
}

fn text(path: &Path) -> String {
    String::from_utf8(read(path)).expect("it was a string")
}

fn machine_toml(path: &Path) -> Result<(), String> {
    said(Machine::from_file(path))
}

fn machine_import(path: &Path) -> Result<(), String> {
    said(import(path))
}

/// The tree of a machine lies beside the file, whose text is the number of its CPUs.
fn sysfs(path: &Path) -> Result<(), String> {
    said(detect(&path.with_extension(text(path))))
}

fn sweep(path: &Path) -> Result<(), String> {
    let sweep = Sweep::from_toml(&text(path), "s.toml").map_err(|error| error.to_string())?;
    let limits = Limits { budget: budget(), ..Limits::default() };
    said(sweep.within(limits).points().next().expect("a point"))
}

fn experiment(path: &Path) -> Result<(), String> {
    said(Experiment::from_file(path, budget()))
}

fn settings(path: &Path) -> Result<(), String> {
    said(Settings::from_file(path))
}

fn results(path: &Path) -> Result<(), String> {
    said(Results::parse(&text(path)))
}

fn modes(path: &Path) -> Result<(), String> {
    said(text(path).parse::<Modes>())
}

fn cpus(path: &Path) -> Result<(), String> {
    said(cpulist::parse(&text(path)))
}

fn workload(spec: &str) -> Result<(), String> {
    let machine = perch_machine::library::load("x5570").expect("it is in the library");
    said(Workload::parse_within(spec, &machine, budget()))
}

fn spec(path: &Path) -> Result<(), String> {
    workload(&text(path))
}

fn rt_app(path: &Path) -> Result<(), String> {
    workload(&format!("rtapp:{}", path.display()))
}

fn recorded(path: &Path) -> Result<(), String> {
    workload(&format!("recorded:{}", path.display()))
}

fn trace(path: &Path) -> Result<(), String> {
    said(perch_import::import(path, &perch_import::Options::default()))
}

fn wake_ups(path: &Path) -> Result<(), String> {
    crate::recordings::replayed(&read(path))
}

fn counts(path: &Path) -> Result<(), String> {
    said(perch_lab::coherence::Counted::parse(&text(path)))
}

/// A tree of a machine of `n` CPUs beside the file.
fn make_tree(path: &Path, n: usize) {
    let root = path.with_extension(n.to_string());
    let system = root.join("sys/devices/system");
    let put = |file: String, value: String| {
        let file = system.join(file);
        fs::create_dir_all(file.parent().expect("it is in a folder")).expect("a folder");
        fs::write(file, value).expect("a file");
    };
    for set in ["online", "present", "possible"] {
        put(format!("cpu/{set}"), format!("0-{}", n - 1));
    }
    for cpu in 0..n {
        let (first, eight) = (cpu & !1, cpu & !7);
        let cpu = format!("cpu/cpu{cpu}");
        put(format!("{cpu}/topology/physical_package_id"), "0".into());
        let core = format!("{first}-{}", first + 1);
        put(format!("{cpu}/topology/core_cpus_list"), core);
        for (key, value) in [("level", "3"), ("type", "Unified"), ("size", "32768K")] {
            put(format!("{cpu}/cache/index3/{key}"), value.into());
        }
        let shared = format!("{eight}-{}", eight + 7);
        put(format!("{cpu}/cache/index3/shared_cpu_list"), shared);
    }
}

/// Returns the text that has a piece for each number up to `n`.
fn all(n: usize, piece: impl Fn(usize) -> String) -> String {
    (0..n).map(piece).collect()
}

const XML: &str = "<topology version=\"2.0\">";
const PU: &str = "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\"/>";
const SWEEP: &str = "machine = \"x5570\"\nworkload = \"pipe\"\n[axes]\n";
const TRACE: &str = "cpus=2\n";
const KERNEL: &str = "# tracer: nop\n";

fn constructs() -> Vec<Construct> {
    let mut table = Table::default();
    table.bytes("perf.data: events", trace, 500, |n| perfdata::file(false, n as u64));
    table.bytes("perch's recordings: wake-ups", wake_ups, 100, |n| {
        let juno = perch_machine::library::load("juno").expect("it is in the library");
        let policy = Policy::new(Era::V7_2, Modes::default());
        crate::recordings::of(n as u64, &juno, policy)
    });

    let toml = machine_toml;
    table.add("machine: CPUs, regular", toml, 1000, |n| {
        format!("name = \"a\"\n[topology]\ncores_per_llc = {n}\n")
    });
    table.add("machine: LLCs", toml, 500, |n| {
        "name = \"a\"\n".to_string() + &all(n, |i| format!("[[llc]]\ncpus = \"{i}\"\n"))
    });
    table.add("machine: groups of every kind", toml, 100, |n| {
        let kinds = ["core", "cluster", "llc", "package", "capacity"];
        let value = |kind| {
            if kind == "capacity" { "value = 1024\n" } else { "" }
        };
        let table = |i, kind| format!("[[{kind}]]\ncpus = \"{i}\"\n{}", value(kind));
        "name = \"a\"\n".to_string() + &all(n, |i| kinds.map(|kind| table(i, kind)).concat())
    });
    table.add("machine: CPUs of a list", toml, 1000, |n| {
        format!(
            "name = \"a\"\n[[llc]]\ncpus = \"{}\"\n",
            all(n, |i| format!("{i},")).trim_end_matches(',')
        )
    });
    table.add("machine: sources", toml, 500, |n| {
        let sources = all(n, |i| format!("\"source {i}\",\n"));
        format!("name = \"a\"\nsources = [{sources}]\n[topology]\ncores_per_llc = 4\n")
    });
    table.refuse("machine: unknown keys", toml, 500, |n| {
        "name = \"a\"\n".to_string() + &all(n, |i| format!("k{i} = {i}\n"))
    });
    table.refuse("machine: dots", toml, 1000, |n| {
        format!("name = \"a\"\n{}b = 1\n", "a.".repeat(n))
    });
    table.refuse("machine: brackets", toml, 1000, |n| format!("name = {}\n", "[".repeat(n)));

    let xml = machine_import;
    table.add("hwloc: attributes", xml, 1000, |n| {
        let attributes = all(n, |i| format!(" a{i}=\"{i}\""));
        format!("{XML}<object type=\"Machine\" os_index=\"0\"{attributes}>{PU}</object></topology>")
    });
    table.add("hwloc: elements", xml, 1000, |n| {
        let elements = all(n, |i| format!("<info name=\"a{i}\" value=\"b\"/>"));
        format!("{XML}<object type=\"Machine\" os_index=\"0\">{elements}{PU}</object></topology>")
    });
    table.add("hwloc: CPUs", xml, 300, |n| {
        let cpus = all(n, |i| {
            format!(
                "<object type=\"Core\" os_index=\"{i}\"><object type=\"PU\" os_index=\"{i}\"/></object>"
            )
        });
        format!("{XML}<object type=\"Machine\" os_index=\"0\">{cpus}</object></topology>")
    });
    table.refuse("hwloc: levels", xml, 500, |n| {
        let (open, close) = ("<object type=\"Group\">".repeat(n), "</object>".repeat(n));
        format!(
            "{XML}<object type=\"Machine\" os_index=\"0\">{open}{PU}{close}</object></topology>"
        )
    });
    table.add("hwloc: text and comments", xml, 1000, |n| {
        let words = "a &amp; &lt; <!-- b --> ".repeat(n);
        format!("{XML}<object type=\"Machine\" os_index=\"0\">{words}{PU}</object></topology>")
    });
    table.add("hwloc: words of a set", xml, 500, |n| {
        let set = "0x00000000,".repeat(n);
        format!(
            "{XML}<object type=\"Machine\" os_index=\"0\" cpuset=\"{set}0x1\">{PU}</object></topology>"
        )
    });
    table.add("hwloc: distances", xml, 20, |n| {
        let nodes = all(n, |i| {
            format!(
                "<object type=\"Package\" os_index=\"{i}\"><object type=\"NUMANode\" os_index=\"{i}\"/><object type=\"PU\" os_index=\"{i}\"/></object>"
            )
        });
        let indexes = all(n, |i| format!("{i} "));
        let values = all(n * n, |i| {
            (if i % (n + 1) == 0 { "10 " } else { "20 " }).to_string()
        });
        format!(
            "{XML}<object type=\"Machine\" os_index=\"0\">{nodes}</object><distances2 type=\"NUMANode\" nbobjs=\"{n}\" kind=\"5\" indexing=\"os\"><indexes length=\"{}\">{indexes}</indexes><u64values length=\"{}\">{values}</u64values></distances2></topology>",
            indexes.len(),
            values.len()
        )
    });

    table.add("lscpu: -p", xml, 500, |n| {
        "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n".to_string()
            + &all(n, |i| format!("{i},{i},{0},{0},,{i},{i},{i},{0}\n", i / 8))
    });
    table.add("lscpu: -J of CPUs", xml, 300, |n| {
        let cpu = |i| {
            format!(
                "{{\"cpu\": {i}, \"node\": 0, \"socket\": 0, \"core\": {i}, \"l1d:l1i:l2:l3\": \"{i}:{i}:{i}:0\", \"online\": true}},"
            )
        };
        format!("{{\"cpus\": [{}]}}", all(n, cpu).trim_end_matches(','))
    });
    table.add("lscpu: nodes of a summary", xml, 100, |n| {
        format!(
            "Architecture: x86_64\nCPU(s): {n}\nOn-line CPU(s) list: 0-{}\nThread(s) per core: 1\nSocket(s): {n}\n{}",
            n - 1,
            all(n, |i| format!("NUMA node{i} CPU(s): {i}\n"))
        )
    });
    table.add("lscpu: fields of a summary in JSON", xml, 300, |n| {
        let field = |i| format!(", {{\"field\": \"F{i}:\", \"data\": \"{i}\"}}");
        format!(
            "{{\"lscpu\": [{{\"field\": \"Architecture:\", \"data\": \"x86_64\"}}, {{\"field\": \"CPU(s):\", \"data\": \"4\"}}, {{\"field\": \"On-line CPU(s) list:\", \"data\": \"0-3\"}}, {{\"field\": \"Thread(s) per core:\", \"data\": \"1\"}}, {{\"field\": \"Socket(s):\", \"data\": \"1\"}}{}]}}",
            all(n, field)
        )
    });
    table.refuse("lscpu: levels of JSON", xml, 60, |n| {
        format!("{{\"lscpu\": {}{}}}", "[".repeat(n), "]".repeat(n))
    });
    table.add("sysfs: CPUs", sysfs, 64, |n| n.to_string()).beside = make_tree;

    table.refuse("sweep: axes beyond the limit", sweep, 1000, |n| {
        SWEEP.to_string() + &all(n, |i| format!("workload.k{i} = [1]\n"))
    });
    table.refuse("sweep: axes", sweep, 100, |n| {
        SWEEP.to_string() + &all(n, |i| format!("workload.k{i} = [1]\n"))
    });
    table.add("sweep: values of an axis", sweep, 500, |n| {
        format!("{SWEEP}workload.pairs = [{}]\n", all(n, |i| format!("{},", i + 1)))
    });
    table.refuse("sweep: dots of a key", sweep, 1000, |n| {
        format!("{SWEEP}{}b = [1]\n", "hardware.".repeat(n))
    });
    table.refuse("sweep: dots of a quoted key", sweep, 2500, |n| {
        format!("{SWEEP}\"{}b\" = [1]\n", "hardware.".repeat(n))
    });
    table.add("sweep: conditions", sweep, 100, |n| {
        let conditions = "\"workload.pairs <= 2 * cpus\",".repeat(n);
        format!("conditions = [{conditions}]\n{SWEEP}workload.pairs = [1, 2]\n")
    });
    table.refuse("sweep: a condition's terms", sweep, 100, |n| {
        let condition = format!("workload.pairs <= {}cpus", "2 * ".repeat(n));
        format!("conditions = [\"{condition}\"]\n{SWEEP}workload.pairs = [1, 2]\n")
    });

    table.add("rt-app: tasks", rt_app, 100, |n| {
        let tasks = all(n, |i| format!("\"t{i}\": {{\"run\": 10, \"sleep\": 10}},"));
        format!("{{\"tasks\": {{{}}}}}", tasks.trim_end_matches(','))
    });
    table.add("rt-app: events", rt_app, 300, |n| {
        let events = "\"run\": 10, \"sleep\": 10,".repeat(n);
        format!("{{\"tasks\": {{\"a\": {{{}}}}}}}", events.trim_end_matches(','))
    });
    table.add("rt-app: phases", rt_app, 200, |n| {
        let phases = all(n, |i| format!("\"p{i}\": {{\"run\": 10}},"));
        format!("{{\"tasks\": {{\"a\": {{\"phases\": {{{}}}}}}}}}", phases.trim_end_matches(','))
    });
    table.add("rt-app: locks", rt_app, 200, |n| {
        let locks = all(n, |i| format!("\"lock\": \"m{i}\", \"unlock\": \"m{i}\","));
        format!("{{\"tasks\": {{\"a\": {{{locks}\"run\": 1}}}}}}")
    });
    table.add("rt-app: forks", rt_app, 100, |n| {
        let tasks = all(n, |i| format!("\"t{i}\": {{\"instance\": 0, \"run\": 10}},"));
        let forks = all(n, |i| format!("\"fork\": \"t{i}\","));
        format!("{{\"tasks\": {{{tasks}\"a\": {{\"loop\": 1, {forks}\"run\": 1}}}}}}")
    });
    table.add("rt-app: comments", rt_app, 1000, |n| {
        format!("{}{{\"tasks\": {{\"a\": {{\"run\": 10}}}}}}", "/* a */ // b\n".repeat(n))
    });
    table.add("rt-app: instances", rt_app, 1000, |n| {
        format!("{{\"tasks\": {{\"a\": {{\"instance\": {n}, \"run\": 10, \"sleep\": 10}}}}}}")
    });

    table.add("recorded: steps", recorded, 1000, |n| {
        let steps = "c10 s10\n".repeat(n);
        format!(
            "perch-workload 1\nspan 10000\ntask 0 process=1 nice=0 start=0 name=a\n{steps}end tasks=1 steps={}\n",
            2 * n
        )
    });
    table.add("recorded: wake-ups", recorded, 500, |n| {
        let task = |i, steps: &str| {
            format!("task {i} process=1 nice=0 start=0 name=a\n{}\n", steps.repeat(n))
        };
        format!(
            "perch-workload 1\nspan 10000\n{}{}end tasks=2 steps={}\n",
            task(0, "c9 w1 a1 "),
            task(1, "a0 w0 "),
            5 * n
        )
    });
    table.add("recorded: tasks", recorded, 300, |n| {
        let tasks = all(n, |i| format!("task {i} process={i} nice=0 start=0 name=a\nc10\n"));
        format!("perch-workload 1\nspan 10000\n{tasks}end tasks={n} steps={n}\n")
    });

    table.add("trace: lines of trace-cmd -R -t -l", trace, 500, |n| {
        let line = |i| switch(&format!("0-0x0  9.99{i:07}"), 1 + i % 2, "0", "", 2 - i % 2);
        TRACE.to_string() + &all(n, line)
    });
    table.add("trace: lines of the kernel's", trace, 500, |n| {
        let line =
            |i| switch(&format!("[000] d..2. 9.99{i:04}"), 1 + i % 2, "R", " ==>", 2 - i % 2);
        KERNEL.to_string() + &all(n, line)
    });
    table.add("trace: tasks", trace, 300, |n| {
        let line = |i| switch(&format!("[000] d..2. 9.99{i:04}"), i + 1, "S", " ==>", i + 2);
        KERNEL.to_string() + &all(n, line)
    });
    table.add("trace: CPUs", trace, 300, |n| {
        let line = |i| switch(&format!("[{i:03}] d..2. 9.99{i:04}"), 0, "R", " ==>", i + 1);
        KERNEL.to_string() + &all(n, line)
    });
    table.refuse("trace: brackets of a line", trace, 2000, |n| {
        format!("{TRACE}{}\n", "[".repeat(n))
    });
    table.refuse("trace: brackets of numbers", trace, 2000, |n| {
        format!("{TRACE}{}\n", "a-1 [1] ".repeat(n))
    });
    table
        .refuse("trace: flags of a line", trace, 2000, |n| format!("{TRACE}{}\n", "-0x".repeat(n)));
    table.refuse("trace: other lines", trace, 1000, |n| {
        TRACE.to_string() + &"any words\n".repeat(n)
    });

    let arms = table.add("experiment: arms", experiment, 60, |n| {
        let arm = |i| format!("[[arm]]\nname = \"a{i}\"\nmodes = \"cluster=posted\"\n");
        of_experiment("one.csv", 1, &all(n, arm))
    });
    arms.beside = |path, _| figures(path, "one.csv", "", &figure("tbench", 0));
    let benchmarks = table.add("experiment: benchmarks", experiment, 60, |n| {
        let benchmark = |i| BENCHMARK.replace("tbench\"", &format!("b{i}\""));
        let csv = format!("benchmarks{n}.csv");
        of_experiment(&csv, 1, &all(n, benchmark))
    });
    benchmarks.beside = |path, n| {
        let more = all(n, |i| figure(&format!("b{i}"), 0));
        let rows = figure("tbench", 0) + &more;
        figures(path, &format!("benchmarks{n}.csv"), "", &rows);
    };
    let rows = table.add("experiment: rows and figures", experiment, 200, |n| {
        of_experiment(&format!("rows{n}.csv"), n, "")
    });
    rows.beside = |path, n| {
        let rows = all(n, |i| figure("tbench", i));
        figures(path, &format!("rows{n}.csv"), "", &rows);
    };
    let columns = table.add("experiment: columns of figures", experiment, 300, |n| {
        of_experiment(&format!("columns{n}.csv"), 1, "")
    });
    columns.beside = |path, n| {
        let names = all(n, |i| format!(",repeat_v{i}"));
        let row = figure("tbench", 0).trim_end().to_string() + &",".repeat(n);
        figures(path, &format!("columns{n}.csv"), &names, &row);
    };

    table.add("settings: bands", settings, 8, |n| {
        all(n, |i| format!("[[band]]\ncomm = \"a{i}*\"\npriority = 1\n"))
    });
    table.refuse("settings: characters of a name", settings, 1000, |n| {
        format!("[[band]]\ncomm = \"{}\"\n", "*a".repeat(n))
    });
    table.refuse("results: lists", results, 1000, |n| {
        format!("{{\"arms\": [{}1]}}", "1,".repeat(n))
    });
    table.refuse("results: levels", results, 60, |n| {
        format!("{{\"arms\": {}{}}}", "[".repeat(n), "]".repeat(n))
    });
    table.add("counts: moves", counts, 300, |n| counts_with(&all(n, |i| format!(",[{i},1,2,10]"))));
    table.add("counts: slots", counts, 100, |n| counts_with("").repeat(n));
    table.refuse("modes", modes, 5000, |n| "cluster=off,".repeat(n));
    table.add("a list of CPUs", cpus, 2000, |n| {
        all(n, |i| format!("{},", 2 * i)).trim_end_matches(',').to_string()
    });
    table.refuse("a workload's keys", spec, 500, |n| {
        "pipe:".to_string() + &all(n, |i| format!("k{i}=1,"))
    });
    table.add("a workload's pairs", spec, 200, |n| format!("pipe:pairs={n}"));
    table.0
}

/// Returns the counts of a slot with more moves by code.
fn counts_with(moves: &str) -> String {
    let head = r#"{"number":3,"rounds":2,"accesses":50,"instructions":[[10,90]],"spent":[]"#;
    format!("{head},\"moved\":[[],[]],\"code\":[[0,1,2,10]{moves}]}}\n")
}

/// Writes published figures beside the experiment at the path.
fn figures(path: &Path, name: &str, columns: &str, rows: &str) {
    let head =
        "source,benchmark,where,unit,row,baseline,patched,printed_delta_pct,sd_baseline,sd_patched";
    let figures = format!("{head}{columns}\n{rows}");
    fs::write(path.with_file_name(name), figures).expect("a file");
}

/// Returns the figures of a row.
fn figure(benchmark: &str, row: usize) -> String {
    format!("a,{benchmark},all,MB/s,latency_us={},1,2,,,\n", row + 1)
}

const BENCHMARK: &str = "[[benchmark]]\nname = \"tbench\"\nworkload = \"tbench-net:n=1,{row},where={where}\"\n\
                         unit = \"MB/s\"\nplaces = [\"all\"]\nrows = [\"latency_us=1\"]\n";

/// Returns the line of a switch.
fn switch(at: &str, prev: usize, state: &str, arrow: &str, next: usize) -> String {
    format!(
        "  a-{prev}   {at}: sched_switch: prev_comm=a prev_pid={prev} prev_prio=120 \
         prev_state={state}{arrow} next_comm=a next_pid={next} next_prio=120\n"
    )
}

/// Returns an experiment of so many rows.
fn of_experiment(published: &str, rows: usize, more: &str) -> String {
    let rows = all(rows, |i| format!("\"latency_us={}\",", i + 1));
    let benchmark = BENCHMARK.replace("\"latency_us=1\"", &rows);
    format!(
        "name = \"a\"\ntitle = \"b\"\nsource = \"c\"\nmachine = \"x5570\"\nera = \"6.5\"\n\
         hz = 250\npublished = \"{published}\"\nrepetitions = 1\nwarmup_ms = 1\nmeasure_ms = 1\n\
         [[arm]]\nname = \"baseline\"\nmodes = \"cluster=off\"\n\
         [[arm]]\nname = \"patched\"\nmodes = \"cluster=posted\"\n{benchmark}{more}"
    )
}

/// What valgrind counts: callgrind writes a file of the instructions of each call.
#[inline(never)]
fn read_counted(read: Read, path: &Path) -> Result<(), String> {
    std::hint::black_box(read(path))
}

/// Reads every input that is in the folder; the runs below valgrind do.
fn read_all(folder: &Path) {
    let mut said = String::new();
    for (nth, construct) in constructs().into_iter().enumerate() {
        for n in [construct.n, 2 * construct.n] {
            let found = read_counted(construct.read, &path(folder, nth, n));
            said += &format!("{}\n", found.err().unwrap_or_default().replace('\n', " "));
        }
    }
    fs::write(folder.join("said"), said).expect("a file");
}

fn path(folder: &Path, nth: usize, n: usize) -> PathBuf {
    folder.join(format!("{nth}-{n}.input"))
}

/// Returns the instructions that a file of callgrind's counts.
fn instructions(file: &Path) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total = total.and_then(|number| number.parse().ok());
    total.unwrap_or_else(|| panic!("{}: no totals", file.display()))
}

#[test]
fn twice_the_input_is_at_most_twice_the_work() {
    if let Some(folder) = std::env::var_os(COUNTED) {
        return read_all(Path::new(&folder));
    }
    let folder = scratch("scale");
    let constructs = constructs();
    for (nth, construct) in constructs.iter().enumerate() {
        for n in [construct.n, 2 * construct.n] {
            let path = path(&folder, nth, n);
            fs::write(&path, (construct.input)(n)).expect("a file");
            (construct.beside)(&path, n);
        }
    }
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--zero-before=*scale::read_counted"])
        .arg("--dump-after=*scale::read_counted")
        .arg(format!("--callgrind-out-file={}", folder.join("counts").display()))
        .arg(std::env::current_exe().expect("a running program has a file"))
        .args(["--exact", "--test-threads=1"])
        .arg("scale::twice_the_input_is_at_most_twice_the_work")
        .env(COUNTED, &folder)
        .output()
        .expect("valgrind counts instructions: apt-get install valgrind");
    let words = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "valgrind: {}: {words}", ran.status);
    let said = fs::read_to_string(folder.join("said")).expect("the reader wrote it");
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), 2 * constructs.len());
    let mut wrong = String::new();
    for (nth, construct) in constructs.iter().enumerate() {
        let words = &said[2 * nth..2 * nth + 2];
        let of = |run: usize| instructions(&folder.join(format!("counts.{}", 2 * nth + run)));
        let (once, twice) = (of(1), of(2));
        let (name, n) = (construct.name, construct.n);
        if words.iter().any(|word| word.is_empty() == construct.is_refused) {
            let words = [words[0], words[1]].map(|word| word.chars().take(300).collect::<String>());
            wrong += &format!("{name}, {n} and twice as many: read, or refused with {words:?}\n");
        }
        if twice as f64 > MOST * once as f64 {
            wrong += &format!("{name}: {once} instructions for {n}, {twice} for twice as many\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
