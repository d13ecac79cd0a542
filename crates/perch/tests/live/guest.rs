// SPDX-License-Identifier: GPL-2.0-only
//! A guest with perch in it, and what every test asks of the two.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use perch_lab::guest::{Command, Guest, Output, Process, Setup, Signal, Status, contents};
use perch_lab::kernel::Kernel;
use perch_lab::qemu::Qemu;
use perch_lab::{Cpus, Error, Store, Topology};
use perch_machine::Machine;
use perch_scheduler::stats::Report;

pub const PERCH: &str = env!("CARGO_BIN_EXE_perch");

/// A guest keeps one of the host's CPUs busy, and a busy host makes a guest's times worthless.
const GUESTS: usize = 2;

/// How long a command in a guest may take, and whatever else is waited for. The longest takes 10 s
/// on an idle host; one that is busy with other things needs many times as much.
const PATIENCE: Duration = Duration::from_secs(300);

/// What goes on beside a test, perch above all, may do so as long as the test itself: how long that
/// is says more about the host than about perch.
const LIFETIME: Duration = Duration::from_secs(3600);

/// Whether something is so before patience ends.
fn comes(mut is_so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

static BUSY: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// The right to keep a CPU of the host busy.
struct Place;

impl Place {
    fn take() -> Place {
        let busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = FREED.wait_while(busy, |busy| *busy >= GUESTS);
        *busy.unwrap_or_else(PoisonError::into_inner) += 1;
        Place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *BUSY.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}

/// Two nodes, in each of them two clusters that share an L2, all alike.
fn machine(cpus: usize) -> Machine {
    let text = format!(
        "name = \"clusters\"\n[topology]\npackages = 2\nclusters_per_llc = 2\n\
         cores_per_cluster = {}\n",
        cpus / 4
    );
    Machine::from_toml_str(&text, "clusters").unwrap()
}

/// A guest that shows a machine.
pub struct Lab {
    guest: Guest,
    began: Instant,
    // Given back when the guest is gone: fields are dropped in this order.
    _place: Place,
}

impl Lab {
    /// Boots a kernel (a version as `--kernel` takes it, "" for the default) with these programs
    /// on two nodes with clusters in them.
    pub fn boot(kernel: &str, cpus: usize, tools: &[&str]) -> Lab {
        let machine = machine(cpus);
        assert_eq!((machine.cpus.len(), machine.clusters()), (cpus, 4));
        assert_eq!((machine.llcs(), machine.nodes()), (2, 2));
        Lab::on(&machine, kernel, tools)
    }

    /// As [`Lab::boot`], on a machine of one's own; where capacities differ, an arm64 guest.
    pub fn on(machine: &Machine, kernel: &str, tools: &[&str]) -> Lab {
        Lab::of(machine, kernel, tools, false)
    }

    /// Four CPUs of one LLC in clusters of two, whose clock counts instructions: what one CPU does
    /// keeps pace with what the others do, however busy the host is.
    pub fn counting(kernel: &str, tools: &[&str]) -> Lab {
        let text = "name = \"counting\"\n[topology]\nclusters_per_llc = 2\ncores_per_cluster = 2\n";
        let machine = Machine::from_toml_str(text, "counting").unwrap();
        assert_eq!((machine.cpus.len(), machine.llcs()), (4, 1));
        Lab::of(&machine, kernel, tools, true)
    }

    fn of(machine: &Machine, kernel: &str, tools: &[&str], deterministic: bool) -> Lab {
        let topology = Topology::new(machine, Cpus::All).unwrap();
        assert_eq!(topology.machine().cpus, machine.cpus);

        let cpus = topology.cpus();
        let place = Place::take();
        let began = Instant::now();
        let setup = || {
            let store = Store::open()?;
            let kernel = Kernel::find(&store, kernel, topology.arch())?;
            kernel.require_sched_ext()?;
            let qemu = Qemu::find(&store, topology.need())?;
            let files = contents(&store, &kernel, Path::new(PERCH), tools)?;
            let mut setup = Setup::new(kernel, qemu, topology, files);
            setup.deterministic = deterministic;
            Ok::<_, Error>(setup)
        };
        let setup = setup().unwrap_or_else(|error| panic!("no guest for this test: {error}"));
        let guest = Guest::boot(&setup).unwrap_or_else(|error| panic!("{error}"));
        println!(
            "Linux {}, {cpus} CPUs, up in {:.1} s",
            setup.kernel.release,
            guest.boot_time().as_secs_f64()
        );
        Lab {
            guest,
            began,
            _place: place,
        }
    }

    /// Panics with what the kernel and the schedulers in it said last.
    pub fn fail(&self, what: &str) -> ! {
        let log = self.guest.log().unwrap_or_else(|error| error.to_string());
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(40)..].join("\n");
        panic!("{what}\n--- the end of the kernel's log\n{last}");
    }

    /// Runs a script to its end, whatever its exit code.
    pub fn run(&self, script: &str) -> Output {
        let command = Command::shell(script).timeout(PATIENCE);
        match self.guest.run(&command) {
            Ok(output) => output,
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// Runs a script that must succeed, for what it writes.
    pub fn text(&self, script: &str) -> String {
        let output = self.run(script);
        if !output.success() {
            self.fail(&format!(
                "`{script}`: {:?}\n{}{}",
                output.status,
                output.text(),
                output.error_text()
            ));
        }
        output.text()
    }

    /// As [`Lab::text`], and says how long it took.
    pub fn timed(&self, name: &str, script: &str) -> String {
        let began = Instant::now();
        let text = self.text(script);
        println!("{name}: {:.1} s", began.elapsed().as_secs_f64());
        text
    }

    /// Starts a script that goes on meanwhile.
    pub fn start(&self, script: &str) -> Process {
        match self.guest.start(&Command::shell(script).timeout(LIFETIME)) {
            Ok(process) => process,
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// Waits for a script that goes on, which must succeed.
    pub fn join(&self, what: &str, process: Process) -> String {
        let output = self.end(what, process);
        if !output.success() {
            self.fail(&format!(
                "{what}: {:?}\n{}{}",
                output.status,
                output.text(),
                output.error_text()
            ));
        }
        output.text()
    }

    /// Waits for the end of something that is about to end.
    fn end(&self, what: &str, mut process: Process) -> Output {
        self.until(&format!("{what} has ended"), || !process.is_running());
        match process.wait() {
            Ok(output) => output,
            Err(error) => self.fail(&format!("{what}: {error}")),
        }
    }

    /// Looks again and again until something is so. What takes how long on a busy host nobody
    /// knows; what never comes fails the test.
    pub fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        if !comes(is_so) {
            let seconds = PATIENCE.as_secs();
            self.fail(&format!("not within {seconds} s: {what}"));
        }
    }

    /// Writes a file in the guest.
    pub fn put(&self, path: &str, text: &str) {
        self.guest.put(path, 0o644, text.as_bytes()).unwrap();
    }

    /// Reads a file in the guest.
    pub fn get(&self, path: &str) -> Vec<u8> {
        self.guest.get(path).unwrap()
    }

    /// The name of the scheduler that the kernel runs, "" when it is its own.
    pub fn scheduler(&self) -> String {
        let script = "cat /sys/kernel/sched_ext/state; cat /sys/kernel/sched_ext/root/ops; true";
        let mut text = String::new();
        self.until("one scheduler has left and the other begun", || {
            text = self.text(script);
            !text.starts_with("disabling") && !text.starts_with("enabling")
        });
        let mut lines = text.lines();
        match lines.next() {
            Some("disabled") => String::new(),
            Some("enabled") => lines.next().unwrap_or_default().to_string(),
            state => self.fail(&format!("the state of sched_ext: {state:?}")),
        }
    }

    /// The kernel has nothing to complain of. That it lets a scheduler go because a CPU went or
    /// came is no complaint.
    pub fn is_well(&self) {
        let mut trouble = self.guest.trouble().unwrap();
        trouble.retain(|line| !line.contains("(unregistered from the main kernel)"));
        if !trouble.is_empty() {
            self.fail(&format!("the kernel complains:\n{}", trouble.join("\n")));
        }
    }

    /// The kernel runs its own scheduler.
    pub fn is_on_its_own(&self) {
        let scheduler = self.scheduler();
        if !scheduler.is_empty() {
            self.fail(&format!("{scheduler} is still loaded"));
        }
    }

    /// `perch run` with these arguments, once it is loaded.
    pub fn load(&self, arguments: &str) -> Perch<'_> {
        let process = self.start(&format!("exec perch run {arguments}"));
        let perch = Perch {
            lab: self,
            process: RefCell::new(process),
        };
        perch.says("Ctrl-C unloads");
        perch.is_well();
        perch
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        println!("{:.1} s in all", self.began.elapsed().as_secs_f64());
    }
}

/// A scheduler that is loaded; killed when dropped.
pub struct Perch<'a> {
    lab: &'a Lab,
    process: RefCell<Process>,
}

impl Perch<'_> {
    /// Waits until it has said this, on standard error or output.
    pub fn says(&self, words: &str) {
        let said = self.process.borrow_mut().wait_for(words, PATIENCE);
        if let Err(error) = said {
            self.lab.fail(&error.to_string());
        }
    }

    /// Waits until it has said this so many times on standard error. One that has ended says
    /// nothing more.
    pub fn says_often(&self, words: &str, times: usize) {
        let enough = || self.said().matches(words).count() >= times;
        comes(|| !self.process.borrow_mut().is_running() || enough());
        if !enough() {
            let said = self.said();
            self.lab.fail(&format!(
                "not the {times}th time `{words}`; perch said:\n{said}"
            ));
        }
    }

    /// What it has said on standard error.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(self.process.borrow_mut().stderr()).into_owned()
    }

    /// It schedules, and the kernel has nothing to complain of.
    pub fn is_well(&self) {
        self.lab.is_well();
        let scheduler = self.lab.scheduler();
        if scheduler != "perch" || !self.process.borrow_mut().is_running() {
            let said = self.said();
            self.lab.fail(&format!(
                "the scheduler is `{scheduler}`; perch said:\n{said}"
            ));
        }
    }

    /// What `perch stats` tells.
    pub fn report(&self) -> Report {
        let text = self.lab.text("perch stats --format json");
        let report: Report = serde_json::from_str(&text).unwrap();
        assert!(report.uptime_ns > 0 && report.busy_ns > 0, "{text}");
        report
    }

    /// Unloads it by Ctrl-C: a clean end after which the kernel is on its own.
    pub fn unload(self) -> String {
        self.is_well();
        let process = self.process.into_inner();
        process.signal(Signal::INT).unwrap();
        let output = self.lab.end("perch, after Ctrl-C,", process);
        if output.status != Status::Code(0) {
            self.lab.fail(&format!(
                "perch ended with {:?}:\n{}",
                output.status,
                output.error_text()
            ));
        }
        self.lab.is_on_its_own();
        self.lab.is_well();
        output.text()
    }

    /// Waits for an end that nobody asked for: its exit status and what it said.
    pub fn ended(self) -> (Status, String) {
        let output = self.lab.end("perch", self.process.into_inner());
        (output.status, output.error_text())
    }

    /// Kills it without a chance to clean up.
    pub fn kill(self) {
        let process = self.process.into_inner();
        process.signal(Signal::KILL).unwrap();
        let output = self.lab.end("perch, killed,", process);
        assert_eq!(output.status, Status::Signal(9));
    }
}
