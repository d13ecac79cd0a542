// SPDX-License-Identifier: GPL-2.0-or-later
//! A guest with perch in it, and the requests that tests make of the two.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use perch_lab::guest::{Clock, Command, Guest, Output, Process, Setup, Snapshot, contents};
use perch_lab::kernel::Kernel;
use perch_lab::qemu::Qemu;
use perch_lab::{Arch, Cpus, Error, Store, Topology};
use perch_machine::Machine;

use crate::arm64;
use crate::loaded::Perch;

pub const PERCH: &str = env!("CARGO_BIN_EXE_perch");

/// A copy of perch without debug information, which is a third of what a guest unpacks at boot.
static STRIPPED: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (mine, shared) =
        (folder.join(format!("perch-{}", std::process::id())), folder.join("perch"));
    let mut strip = std::process::Command::new("strip");
    let ended = strip.arg("-o").arg(&mine).arg(PERCH).status();
    assert!(ended.expect("strip, of binutils").success(), "{strip:?}");
    std::fs::rename(&mine, &shared).unwrap();
    shared
});

/// The number of guests in use at once: one for each of the host's CPUs, which a guest keeps busy, as
/// it skips the time in which its own CPUs idle.
static GUESTS: LazyLock<usize> = LazyLock::new(|| {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    cpus.clamp(2, 8)
});

/// The host's time after which a test gives up. No host that is merely busy takes that long for the
/// longest wait, which is 10 s on an idle one: a test that gives up has met a hang.
pub const PATIENCE: Duration = Duration::from_secs(3600);

/// Returns whether `is_so` becomes true before [`PATIENCE`] ends.
pub fn comes(mut is_so: impl FnMut() -> bool) -> bool {
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
pub struct Place;

impl Place {
    /// Waits until a place is free.
    pub fn take() -> Place {
        let busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = FREED.wait_while(busy, |busy| *busy >= *GUESTS);
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

/// A machine of two equal nodes with equal clusters that share an L2.
fn nodes() -> Machine {
    resolve("kunpeng920")
}

/// The programs in a guest: those of all tests, so that any test can use the guest.
fn programs(arch: Arch) -> &'static [&'static str] {
    match arch {
        Arch::X86_64 => &[
            "chrt",
            "cyclictest",
            "hackbench",
            "nice",
            "perf",
            "stress-ng",
            "sysbench",
            "tbench",
            "tbench_srv",
            "trace-cmd",
        ],
        Arch::Aarch64 => &["hackbench", "sysbench"],
    }
}

/// The setup of a guest that shows so many CPUs of a machine to a kernel (a version as `--kernel`
/// takes it, "" for the default).
pub fn setup(machine: &Machine, cpus: Cpus, kernel: &str) -> Setup {
    setup_with(machine, cpus, kernel, &programs, Clock::Host)
}

/// As [`setup`], of a deterministic guest.
pub fn deterministic(machine: &Machine, cpus: Cpus) -> Setup {
    setup_with(machine, cpus, "", &programs, Clock::Deterministic)
}

/// As [`deterministic`], without programs beside perch and busybox: such a guest takes longer to
/// boot the more files it has, and shares no snapshot.
pub fn bare_deterministic(machine: &Machine, cpus: Cpus) -> Setup {
    setup_with(machine, cpus, "", &|_| &[], Clock::Deterministic)
}

/// Shell functions for scripts in guests.
pub const SHELL: &str = "
    [ -e /tmp/never ] || mkfifo /tmp/never; exec 9<>/tmp/never
    # Waits for so many seconds without a child: a shell that forks makes its wakes the child's.
    pause() { read -t $1 never <&9; }
    # Prints files as they are at one moment. With a program for each file, others run in between: of
    # two looks at hogs, 4 s apart, a part of a CPU came out as 1.15. Needs chrt.
    at_once() { chrt -f 99 cat $*; }
    ROOT=/sys/fs/cgroup
    # Mounts the cgroups at $ROOT. With `favordynmods`, moving a task between them waits for no grace
    # period.
    cgroups() { [ -e $ROOT/cgroup.procs ] || mount -t cgroup2 -o ${1:-rw} none $ROOT; }
    # `look N TASKS`: N times, 5 ms apart, the number of the look, the task and its CPU.
    look() { looks=0; while [ $looks -lt $1 ]; do for task in $2; do
        read -r stat < /proc/$task/stat; stat=${stat##*) }; set -- $1 \"$2\" $stat
        echo $looks $task ${39}; done; pause 0.005; looks=$((looks+1)); done; }
    # Loads perch with these arguments. What it says goes to /tmp/said.
    load() {
        perch run \"$@\" >/tmp/said 2>&1 & perch=$!
        until grep -q 'Ctrl-C unloads' /tmp/said || ! kill -0 $perch; do pause 0.01; done
    }
    ";

fn setup_with(
    machine: &Machine,
    cpus: Cpus,
    kernel: &str,
    programs: &dyn Fn(Arch) -> &'static [&'static str],
    clock: Clock,
) -> Setup {
    let made = || {
        let topology = Topology::new(machine, cpus)?;
        if topology.arch() == Arch::Aarch64 {
            arm64::is_up_to_date();
        }
        let store = Store::open()?;
        let kernel = Kernel::find(&store, kernel, topology.arch())?;
        let qemu = Qemu::find(&store, topology.need().with_clock(clock))?;
        let programs = programs(topology.arch());
        let perch = match Arch::host() == Some(topology.arch()) {
            true => &*STRIPPED,
            false => Path::new(PERCH),
        };
        let files = contents(&store, &kernel, perch, programs)?;
        Ok::<_, Error>(Setup::new(kernel, qemu, topology, files))
    };
    let mut setup = made().unwrap_or_else(|error| panic!("no guest for this test: {error}"));
    setup.clock = clock;
    setup.boot_timeout = PATIENCE;
    setup
}

pub fn boot(setup: &Setup) -> Guest {
    let guest = Guest::boot(setup).unwrap_or_else(|error| panic!("{error}"));
    println!(
        "Linux {} on {} CPUs of {}: up in {:.1} s",
        setup.kernel.release,
        setup.topology.cpus(),
        setup.topology.machine().name,
        guest.boot_time().as_secs_f64()
    );
    guest
}

/// The numbers of tasks as a shell takes them.
pub fn listed(tasks: &[u32]) -> String {
    tasks.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

/// What the job of a guest prints until it ends, which must be with success.
pub fn printed(guest: &Guest) -> String {
    let output = guest.job().unwrap().wait().unwrap();
    assert!(output.success(), "{}", output.error_text());
    output.text()
}

/// What a script with the functions of [`SHELL`] prints in a guest of its own that shows so many CPUs
/// of a machine to a kernel. It goes on from a snapshot, as [`Lab::of`].
pub fn shell(machine: &Machine, cpus: Cpus, kernel: &str, script: &str) -> String {
    Lab::of(setup(machine, cpus, kernel)).text(&format!("{SHELL}{script}"))
}

/// Runs the job of a deterministic guest in two of them, demands the same output and console, and
/// returns that output.
pub fn same_twice(setup: &Setup) -> String {
    let run = || {
        let guest = boot(setup);
        let text = printed(&guest);
        assert!(guest.job().is_none());
        (text, guest.console_tail(1000))
    };
    let (first, second) = (run(), run());
    assert_eq!(first.0, second.0);
    // The kernels go on while the host reads their consoles, and may say more meanwhile.
    let common = first.1.len().min(second.1.len());
    assert_eq!(first.1[..common], second.1[..common]);
    first.0
}

/// As [`shell`], of a deterministic guest with these programs, which boots: for what holds where an
/// instruction takes a nanosecond and not four.
pub fn deterministic_shell(
    machine: &Machine,
    cpus: Cpus,
    programs: &'static [&'static str],
    script: &str,
) -> String {
    let _place = Place::take();
    let mut setup = setup_with(machine, cpus, "7.2", &|_| programs, Clock::Deterministic);
    setup.job = Some(Command::shell(format!("{SHELL}{script}")));
    printed(&boot(&setup))
}

/// The job of a guest in modelled time: it waits until the guest has settled, lets modelled time begin,
/// and then runs this script. A guest that has just booted checks certificates for seconds.
pub fn watched(seed: &str, script: &str) -> Command {
    let agent = ["/bin/perch", "agent", "watched", "--seed", seed];
    let words = agent.into_iter().chain(["--", "sh", "-c", script]);
    Command::new(words)
}

/// A file that a script leaves in a guest with perch and busybox in modelled time, which boots.
pub fn timed_file(machine: &Machine, kernel: &str, script: &str, path: &str) -> Vec<u8> {
    let _place = Place::take();
    let clock = Clock::Deterministic;
    let mut setup = setup_with(machine, Cpus::All, kernel, &|_| &[], clock);
    setup.timed = true;
    setup.job = Some(watched("1", script));
    let guest = boot(&setup);
    println!("{}", printed(&guest).trim());
    guest.get(path).unwrap_or_else(|error| panic!("{error}"))
}

/// What `perch lab teach` makes of pairs of processes on a machine, as JSON.
pub fn taught(machine: &str, kernel: &str, by: &str, pairs: &str) -> serde_json::Value {
    let _place = Place::take();
    let file = format!("{}/taught-{by}-{pairs}.toml", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&file, machine).unwrap();
    let mut perch = std::process::Command::new(env!("CARGO_BIN_EXE_perch"));
    perch.args(["lab", "teach", "-m", &file, "--kernel", kernel, "--by", by, "--pairs", pairs]);
    let output = perch.args(["--format", "json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    println!("{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A machine of the library.
pub fn resolve(name: &str) -> Machine {
    perch_machine::resolve(name).unwrap_or_else(|error| panic!("{error}"))
}

/// Snapshots of guests that had just come up, the one that was used last at the end. A boot takes as
/// long as many tests, so the guest of each test goes on from a snapshot.
static SNAPSHOTS: Mutex<Vec<Arc<Kept>>> = Mutex::new(Vec::new());

/// The number of snapshots that are kept. Each takes up to 400 MiB.
const KEPT: usize = 8;

/// MiB of the host's memory that snapshots must leave free; where less is free, all but the last
/// of them go.
const LEFT_MIB: u64 = 3000;

/// The snapshot of guests that show a machine under a kernel, once one was booted.
struct Kept {
    machine: Machine,
    release: String,
    snapshot: OnceLock<Snapshot>,
}

impl Kept {
    /// Finds the snapshot of guests like this, or a place for one.
    fn find(setup: &Setup) -> Arc<Kept> {
        let (machine, release) = (setup.topology.machine(), &setup.kernel.release);
        let mut all = SNAPSHOTS.lock().unwrap_or_else(PoisonError::into_inner);
        let like = |kept: &Arc<Kept>| kept.machine == *machine && kept.release == *release;
        let kept = match all.iter().position(like) {
            Some(index) => all.remove(index),
            None => Arc::new(Kept {
                machine: machine.clone(),
                release: release.clone(),
                snapshot: OnceLock::new(),
            }),
        };
        all.push(Arc::clone(&kept));
        while all.len() > KEPT || all.len() > 1 && available_mib() < LEFT_MIB {
            all.remove(0);
        }
        kept
    }

    /// The snapshot, which the first test takes while others that want it wait.
    fn snapshot(&self, setup: Setup) -> &Snapshot {
        self.snapshot.get_or_init(|| {
            let _place = Place::take();
            let began = Instant::now();
            let snapshot = Snapshot::take(setup).unwrap_or_else(|error| panic!("{error}"));
            let seconds = began.elapsed().as_secs_f64();
            println!(
                "Linux {} on {}: booted and saved in {seconds:.1} s",
                self.release, self.machine.name
            );
            snapshot
        })
    }
}

/// MiB of memory that the host could still give; a large number where the host does not tell.
fn available_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib >> 10)
}

/// A guest that shows a machine. Its clocks count instructions, and it runs only while the test waits
/// for something in it: what happens there depends on what the test asks for, and not on the time that
/// the host takes.
pub struct Lab {
    guest: Guest,
    /// The machine that it shows.
    machine: Machine,
    /// The number of waits that need the guest to run.
    waits: Mutex<usize>,
}

/// The guest runs until this is dropped.
#[must_use]
pub struct Awake<'a>(&'a Lab);

impl Drop for Awake<'_> {
    fn drop(&mut self) {
        let mut waits = self.0.waits.lock().unwrap_or_else(PoisonError::into_inner);
        *waits -= 1;
        if *waits == 0 {
            // It fails when the guest is gone, and then nothing runs.
            let _ = self.0.guest.pause();
        }
    }
}

/// The use of a guest, until dropped.
pub struct Use {
    lab: Lab,
    // The place is given back after the guest, because fields are dropped in this order.
    _place: Place,
}

impl std::ops::Deref for Use {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl Use {
    /// Powers the guest off and returns all that its console showed.
    pub fn power_off(self) -> String {
        self.lab.guest.resume().unwrap();
        self.lab.guest.power_off().unwrap()
    }

    fn of(setup: &Setup, guest: Guest, place: Place) -> Use {
        guest.pause().unwrap_or_else(|error| panic!("{error}"));
        let lab = Lab { guest, machine: setup.topology.machine().clone(), waits: Mutex::new(0) };
        Use { lab, _place: place }
    }
}

impl Lab {
    /// Linux of this version on this many CPUs in two nodes with two clusters each.
    pub fn boot(kernel: &str, cpus: usize) -> Use {
        Lab::of(setup(&nodes(), Cpus::AtMost(cpus), kernel))
    }

    /// As [`Lab::boot`], on the machine given; an arm64 guest where capacities differ.
    pub fn on(machine: &Machine, kernel: &str) -> Use {
        Lab::of(setup(machine, Cpus::All, kernel))
    }

    /// Four CPUs of one LLC in clusters of two.
    pub fn small(kernel: &str) -> Use {
        let text = "name = \"small\"\n[topology]\nclusters_per_llc = 2\ncores_per_cluster = 2\n";
        let machine = Machine::from_toml_str(text, "small").unwrap();
        assert_eq!((machine.cpus.len(), machine.llcs()), (4, 1));
        Lab::on(&machine, kernel)
    }

    /// A guest of this setup, which no test used before. It goes on from a snapshot, for which the
    /// first test boots.
    pub fn of(mut setup: Setup) -> Use {
        setup.clock = Clock::Instructions;
        let kept = Kept::find(&setup);
        let snapshot = kept.snapshot(setup);
        let place = Place::take();
        let guest = snapshot.restore().unwrap_or_else(|error| panic!("{error}"));
        println!(
            "Linux {} on {}: goes on after {:.1} s",
            kept.release,
            kept.machine.name,
            guest.boot_time().as_secs_f64()
        );
        Use::of(snapshot.setup(), guest, place)
    }

    /// The machine that it shows.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The guest itself, which runs from now on.
    pub fn guest(&self) -> &Guest {
        std::mem::forget(self.awake());
        &self.guest
    }

    /// Lets the guest run.
    pub fn awake(&self) -> Awake<'_> {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if *waits == 0 {
            let resumed = self.guest.resume();
            resumed.unwrap_or_else(|error| panic!("{error}"));
        }
        *waits += 1;
        Awake(self)
    }

    /// Panics with the last words of the kernel and of the schedulers in it.
    pub fn fail(&self, what: &str) -> ! {
        let _awake = self.awake();
        let log = self.guest.log().unwrap_or_else(|error| error.to_string());
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(40)..].join("\n");
        panic!("{what}\n--- the end of the kernel's log\n{last}");
    }

    /// Runs a script to its end, whatever its exit code.
    pub fn run(&self, script: &str) -> Output {
        let command = Command::shell(script).timeout(PATIENCE);
        let _awake = self.awake();
        match self.guest.run(&command) {
            Ok(output) => output,
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// The output of what must have succeeded.
    fn of_success(&self, what: &str, output: &Output) -> String {
        if !output.success() {
            let (text, errors) = (output.text(), output.error_text());
            self.fail(&format!("{what}: {:?}\n{text}{errors}", output.status));
        }
        output.text()
    }

    /// Runs a script that must succeed, and returns its output.
    pub fn text(&self, script: &str) -> String {
        self.of_success(&format!("`{script}`"), &self.run(script))
    }

    /// Ends tasks.
    pub fn kill(&self, tasks: &[u32]) {
        self.text(&format!("kill {}; sleep 0.3", listed(tasks)));
    }

    /// As [`Lab::text`], and prints the time that the script took.
    pub fn timed(&self, name: &str, script: &str) -> String {
        let began = Instant::now();
        let text = self.text(script);
        println!("{name}: {:.1} s", began.elapsed().as_secs_f64());
        text
    }

    /// Starts a script that goes on beside the test.
    pub fn start(&self, script: &str) -> Process {
        let _awake = self.awake();
        match self.guest.start(&Command::shell(script).timeout(PATIENCE)) {
            Ok(process) => process,
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// Waits for the end of a script that goes on, which must succeed.
    pub fn join(&self, what: &str, process: Process) -> String {
        self.of_success(what, &self.end(what, process))
    }

    /// Waits for the end of a program that is about to end.
    pub fn end(&self, what: &str, mut process: Process) -> Output {
        self.until(&format!("{what} has ended"), || !process.is_running());
        match process.wait() {
            Ok(output) => output,
            Err(error) => self.fail(&format!("{what}: {error}")),
        }
    }

    /// Looks again and again until `is_so` is true, while the guest runs; if that never comes, the
    /// test fails.
    pub fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        let _awake = self.awake();
        if !comes(is_so) {
            let seconds = PATIENCE.as_secs();
            self.fail(&format!("not within {seconds} s: {what}"));
        }
    }

    /// Writes a file in the guest.
    pub fn put(&self, path: &str, text: &str) {
        let _awake = self.awake();
        self.guest.put(path, 0o644, text.as_bytes()).unwrap();
    }

    /// Reads a file in the guest.
    pub fn get(&self, path: &str) -> Vec<u8> {
        let _awake = self.awake();
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

    /// Demands that the kernel's log tells of no trouble.
    pub fn is_well(&self) {
        let _awake = self.awake();
        let trouble = self.guest.trouble().unwrap();
        if !trouble.is_empty() {
            self.fail(&format!("the kernel complains:\n{}", trouble.join("\n")));
        }
    }

    /// Demands that the kernel runs its own scheduler.
    pub fn is_on_its_own(&self) {
        let scheduler = self.scheduler();
        if !scheduler.is_empty() {
            self.fail(&format!("{scheduler} is still loaded"));
        }
    }

    /// Starts `perch run` with these arguments, and returns once it is loaded.
    pub fn load(&self, arguments: &str) -> Perch<'_> {
        let process = self.start(&format!("exec perch run {arguments}"));
        let perch = Perch::new(self, process);
        perch.says("Ctrl-C unloads");
        perch.is_well();
        perch
    }
}
