// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of machines as others hand them over: each a small file or tree that was read wrongly once, and
//! its siblings.

use crate::common::Tree;
use perch_machine::hwloc::from_xml_str;
use perch_machine::{Host, Machine, cpulist, detect, import};
use std::path::{Path, PathBuf};
use std::process::Command;

fn data(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("tests/data").join(name)
}

fn imported(name: &str) -> Machine {
    import(&data(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the file of hwloc whose Machine has these attributes and contains `objects`.
fn hwloc(attributes: &str, objects: &str, after: &str) -> String {
    let machine = format!("<object type=\"Machine\" {attributes}>{objects}</object>");
    format!("<topology version=\"2.0\">{machine}{after}</topology>")
}

fn read(text: &str) -> Machine {
    from_xml_str(text, "file.xml").unwrap_or_else(|error| panic!("{error}"))
}

fn pus(numbers: impl IntoIterator<Item = u32>) -> String {
    let pu = |number| {
        format!("<object type=\"Core\"><object type=\"PU\" os_index=\"{number}\"/></object>")
    };
    numbers.into_iter().map(pu).collect()
}

fn capacities(machine: &Machine) -> Vec<u32> {
    machine.cpus.iter().map(|cpu| cpu.capacity).collect()
}

/// The CPUs of each group, as lists.
fn lists(machine: &Machine, of: impl Fn(&perch_machine::Cpu) -> u32) -> Vec<String> {
    let mut groups = std::collections::BTreeMap::<u32, Vec<u32>>::new();
    for (number, cpu) in machine.cpus.iter().enumerate() {
        groups.entry(of(cpu)).or_default().push(number as u32);
    }
    groups.values().map(|cpus| cpulist::format(cpus)).collect()
}

/// Returns the tree of a kernel with `cpus` CPUs, which are alike.
fn tree(cpus: u32) -> Tree {
    let tree = Tree::new();
    tree.write("cpu/online", format!("0-{}", cpus - 1));
    for cpu in 0..cpus {
        tree.write(&format!("cpu/cpu{cpu}/topology/core_id"), cpu);
        tree.write(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"), cpu);
    }
    tree
}

/// Gives each CPU an L3 that `sharers` lists.
fn share_l3(tree: &Tree, cpus: std::ops::Range<u32>, sharers: &str, size: &str) {
    for cpu in cpus {
        let file = |name: &str| format!("cpu/cpu{cpu}/cache/index3/{name}");
        tree.write(&file("level"), 3);
        tree.write(&file("type"), "Unified");
        tree.write(&file("size"), size);
        tree.write(&file("shared_cpu_list"), sharers);
    }
}

#[test]
fn matrices_between_nodes_and_devices_are_left_alone() {
    let machine = imported("hetero-distances.xml");
    assert_eq!(machine.node_distance, [[10, 21], [21, 10]]);

    // A matrix without a name is of latencies where bit 2 of its kind says so.
    let objects = |node: u32| {
        let pu = pus([node]);
        format!(
            "<object type=\"Package\"><object type=\"NUMANode\" os_index=\"{node}\"/>{pu}</object>"
        )
    };
    let matrix = |kind: u32, far: u32| {
        format!(
            "<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"{kind}\"><indexes>1</indexes>\
             <indexes>0</indexes><u64values>10 {far}</u64values><u64values>{far} 10</u64values></distances2>"
        )
    };
    let both = matrix(9, 200) + &matrix(5, 32);
    let machine = read(&hwloc("", &(objects(0) + &objects(1)), &both));
    assert_eq!(machine.node_distance, [[10, 32], [32, 10]]);
}

#[test]
fn cpus_that_hwloc_left_out_are_said() {
    let machine = imported("restricted-export.xml");
    assert_eq!(machine.cpus.len(), 2);
    let said = &machine.description;
    assert!(
        said.contains("CPUs 0-1 were offline, or hwloc was not allowed to use them,"),
        "{said}"
    );
    assert!(said.contains("the kernel's 2-3, are numbered from 0 up"), "{said}");
    assert_eq!(machine.sources[1], "CPUs 0-1 are the kernel's 2-3, in this order");

    let machine = imported("restricted-export-tail.xml");
    assert_eq!((machine.cpus.len(), machine.sources.len()), (2, 1));
    let said = &machine.description;
    assert!(said.contains("CPUs 2-3 were offline, or"), "{said}");
    assert!(!said.contains("numbered"), "{said}");

    // POWER with SMT switched off: every fourth thread; the words of a mask may be empty.
    let text = hwloc("complete_cpuset=\"0x000000ff,,0x0\"", &pus((64..72).step_by(4)), "");
    let machine = read(&text);
    assert_eq!(machine.sources[1], "CPUs 0-1 are the kernel's 64,68, in this order");
    assert!(machine.description.contains("CPUs 65-67,69-71 were"), "{}", machine.description);

    let text = hwloc("complete_cpuset=\"0xf...f\"", &pus([0]), "");
    let message = from_xml_str(&text, "file.xml").unwrap_err().to_string();
    assert!(message.contains("the complete_cpuset is not a set of CPUs"), "{message}");
}

#[test]
fn cpus_outside_any_package_are_in_one_for_each_outermost_object() {
    let machine = imported("package-left-out.xml");
    assert_eq!(lists(&machine, |cpu| cpu.package), ["0-1", "2-3"]);
    assert_eq!(machine.node_distance, [[10, 21], [21, 10]]);
}

#[test]
fn kinds_of_cores_have_capacities() {
    let machine = imported("hybrid-kinds.xml");
    assert_eq!(capacities(&machine), [1024, 1024, 798, 798]);
    assert_eq!(machine.hardware.frequency_mhz, 5000);
    assert!(machine.sources[1].contains("IntelAtom 3900 MHz, IntelCore 5000 MHz"));

    let kind = |set: u32, efficiency: u32, infos: &[(&str, &str)]| {
        let infos =
            infos.iter().map(|(name, value)| format!("<info name=\"{name}\" value=\"{value}\"/>"));
        let infos: String = infos.collect();
        format!("<cpukind cpuset=\"{set:#x}\" forced_efficiency=\"{efficiency}\">{infos}</cpukind>")
    };
    let of = |kinds: String| from_xml_str(&hwloc("", &pus(0..4), &kinds), "file.xml");
    let capacity = |set, value| kind(set, 0, &[("LinuxCapacity", value)]);

    // NVIDIA's GB10: hwloc has the capacity of one CPU of each kind.
    let machine = of(capacity(3, "718") + &capacity(12, "997")).unwrap();
    assert_eq!(capacities(&machine), [737, 737, 1024, 1024]);
    assert!(machine.sources[1].contains("997 of 1024"), "{:?}", machine.sources);
    let message = of(capacity(3, "718")).unwrap_err().to_string();
    assert!(message.contains("the kinds have 2 CPUs of 4"), "{message}");
    let message = of(capacity(7, "718") + &capacity(12, "997")).unwrap_err().to_string();
    assert!(message.contains("is of another, too"), "{message}");
    let message = of(capacity(3, "718") + &capacity(12, "1025")).unwrap_err().to_string();
    assert!(message.contains("capacity 1025 is out of range"), "{message}");

    // Preferred cores are of one type; dense cores may reach what the others reach; nothing is known of
    // types without frequencies.
    let core = |mhz| [("CoreType", "IntelCore"), ("FrequencyMaxMHz", mhz)];
    let (small, mhz) = (("CoreType", "IntelAtom"), "FrequencyMaxMHz");
    let machine = of(kind(1, 1, &core("5200"))
        + &kind(2, 1, &core("5000"))
        + &kind(12, 0, &[small, (mhz, "3900")]));
    assert_eq!(capacities(&machine.unwrap()), [1024, 1024, 768, 768]);
    for (first, second) in [
        (kind(3, 1, &core("5000")), kind(12, 0, &[small, (mhz, "5000")])),
        (kind(3, 1, &core("3900")), kind(12, 0, &[small, (mhz, "5000")])),
        (kind(3, 1, &[("CoreType", "IntelCore")]), kind(12, 0, &[small])),
        (kind(3, 1, &[(mhz, "5000")]), kind(12, 0, &[(mhz, "3900")])),
    ] {
        let machine = of(first + &second).unwrap();
        assert!(!machine.is_asymmetric());
        assert!(machine.sources[1].contains("2 kinds of CPUs"), "{:?}", machine.sources);
    }
}

#[test]
fn nodes_of_memory_alone_leave_one_node() {
    let machine = imported("only-memory-nodes.xml");
    assert_eq!(machine.node_distance, [[10]]);
    assert_eq!(machine.sources[1], "nodes without CPUs are left out: 2-3");

    // Memory of the CPUs' own is nearer than CXL's on the package, through a cache in front of it too.
    let l3 = |node: u32| {
        let pus = pus([2 * node, 2 * node + 1]);
        format!(
            "<object type=\"Group\" kind=\"1001\"><object type=\"MemCache\"><object type=\"NUMANode\" \
             os_index=\"{node}\"/></object><object type=\"L3Cache\">{pus}</object></object>"
        )
    };
    let cxl = "<object type=\"NUMANode\" os_index=\"2\" subtype=\"CXL-DRAM\"/>";
    let slit = "<distances2 type=\"NUMANode\" name=\"NUMALatency\"><indexes>0 1 2</indexes>\
                <u64values>10 12 30 12 10 31 30 31 10</u64values></distances2>";
    let objects = format!("<object type=\"Package\">{cxl}{}{}</object>", l3(0), l3(1));
    let machine = read(&hwloc("", &objects, slit));
    assert_eq!(lists(&machine, |cpu| cpu.node), ["0-1", "2-3"]);
    assert_eq!(machine.node_distance, [[10, 12], [12, 10]]);
    assert_eq!(machine.clusters(), 0);

    // CPUs whose memory hwloc was not allowed to use.
    let package =
        |memory: &str, cpu| format!("<object type=\"Package\">{memory}{}</object>", pus([cpu]));
    let objects = package("<object type=\"NUMANode\" os_index=\"1\"/>", 1) + &package("", 0);
    let machine = read(&hwloc("", &objects, slit));
    assert_eq!((machine.nodes(), machine.node_distance[0][1]), (2, 20));
    assert!(machine.sources[1].contains("in no NUMANode"), "{:?}", machine.sources);
}

#[test]
fn groups_of_a_place_alone_are_no_clusters() {
    let group = |kind: u32, cpus: [u32; 2]| {
        format!("<object type=\"Group\" kind=\"{kind}\">{}</object>", pus(cpus))
    };
    for (kind, clusters) in
        [(222, 2), (102, 2), (0, 2), (110, 0), (220, 0), (900, 0), (1000, 0), (1001, 0)]
    {
        let groups = group(kind, [0, 1]) + &group(kind, [2, 3]);
        let machine = read(&hwloc("", &format!("<object type=\"L3Cache\">{groups}</object>"), ""));
        assert_eq!(machine.clusters(), clusters, "kind {kind}");
    }
}

#[test]
fn an_l3_of_several_packages_is_cut_where_the_kernel_cuts_it() {
    let phone = tree(8);
    share_l3(&phone, 0..8, "0-7", "4M");
    for (package, cpus) in [0..4, 4..7, 7..8].into_iter().enumerate() {
        let list = cpulist::format(&cpus.clone().collect::<Vec<u32>>());
        for cpu in cpus {
            phone.write(&format!("cpu/cpu{cpu}/topology/physical_package_id"), package);
            phone.write(&format!("cpu/cpu{cpu}/topology/core_siblings_list"), &list);
            phone.write(&format!("cpu/cpu{cpu}/cpu_capacity"), [280, 855, 1024][package]);
        }
    }
    let machine = detect(phone.root()).unwrap();
    assert_eq!((machine.llcs(), machine.packages()), (1, 1));
    assert_eq!(lists(&machine, |cpu| cpu.declared_llc), ["0-3", "4-6", "7"]);
    assert!(machine.sources[1].contains("several of the 3 packages"), "{:?}", machine.sources);

    // x86 takes the cache as it is, and has the same file on new kernels; so do others, which lack it.
    phone.write_at("proc/cpuinfo", "vendor_id : GenuineIntel");
    assert_eq!(detect(phone.root()).unwrap().declared_llcs(), 1);
    phone.write_at("proc/cpuinfo", "");
    for cpu in 0..8 {
        phone.remove(&format!("cpu/cpu{cpu}/cpu_capacity"));
    }
    let machine = detect(phone.root()).unwrap();
    assert_eq!((machine.packages(), machine.declared_llcs()), (1, 1));

    // The same two as hwloc has them: its packages lie inside the cache.
    let packages = ["0-3", "4-6", "7"].map(|list| {
        let cpus = cpulist::parse(list).unwrap();
        format!("<object type=\"Package\">{}</object>", pus(cpus))
    });
    for (arch, declared) in [("aarch64", 3), ("riscv64", 3), ("loongarch64", 1), ("x86_64", 1)] {
        let objects = format!(
            "<info name=\"Architecture\" value=\"{arch}\"/><object type=\"L3Cache\">{}</object>",
            packages.concat()
        );
        let machine = read(&hwloc("", &objects, ""));
        assert_eq!((machine.packages(), machine.declared_llcs()), (1, declared), "{arch}");
    }
}

#[test]
fn l3s_of_unequal_sizes_keep_both() {
    // A Ryzen 7950X3D: one of its two L3s has more memory on top.
    let mut machine = Machine::regular("x3d", 1, 1, 2, 0, 2, 2).unwrap();
    machine.hardware.llc_bytes = 96 << 20;
    let tree = Tree::of(&machine);
    share_l3(&tree, 0..4, "0-3", "98304K");
    share_l3(&tree, 4..8, "4-7", "32768K");
    let detected = detect(tree.root()).unwrap();
    let cache = |size: u64, cpus| {
        let size = size << 20;
        format!("<object type=\"L3Cache\" cache_size=\"{size}\">{}</object>", pus(cpus))
    };
    let imported = read(&hwloc("", &(cache(96, 0..4) + &cache(32, 4..8)), ""));
    for machine in [detected, imported] {
        assert_eq!([machine.llc_bytes(0), machine.llc_bytes(1)], [96 << 20, 32 << 20]);
        assert_eq!(machine.hardware.llc_bytes, 96 << 20);
        let text = machine.to_toml();
        assert!(text.contains("cpus = \"4-7\"\nbytes = \"32M\""), "{text}");
        assert_eq!(Machine::from_toml_str(&text, "again").unwrap(), machine);
        assert!(perch_machine::draw::draw(&machine, 80).contains("96M or 32M an LLC"));
        // A part has what is left, and each half of a cache has half.
        let small = machine.part(&[4, 5]);
        assert_eq!((small.llc_bytes(0), small.llcs()), (32 << 20, 1));
        assert!(machine.part(&[0, 1]).llc_bytes.is_empty());
        let halves = machine.split_llcs(2).unwrap();
        assert_eq!(halves.llc_bytes, [48 << 20, 48 << 20, 16 << 20, 16 << 20]);
        let again = Machine::from_toml_str(&halves.to_toml(), "again").unwrap();
        assert_eq!(again, halves);
    }
    let text = "name = \"a\"\n[[llc]]\ncpus = \"0-1\"\nbytes = \"2T\"\n";
    let message = Machine::from_toml_str(text, "a.toml").unwrap_err().to_string();
    assert!(message.contains("a.toml:4: `bytes`"), "{message}");
}

#[test]
fn nuls_around_the_text_of_a_file_are_stripped() {
    let padded = tree(4);
    padded.write("node/node0/cpulist", "0-3\n\0");
    padded.write("node/node0/distance", "10\n\0\0\0");
    padded.write("cpu/online", "0-3\0");
    assert_eq!(detect(padded.root()).unwrap().cpus.len(), 4);
    padded.write("node/node0/cpulist", "0-\0\x33");
    padded.refused(&["node0/cpulist"]);
}

#[test]
fn masks_tell_what_lists_do_not() {
    let masks = tree(8);
    for (node, mask) in ["0000000f", "000000f0"].into_iter().enumerate() {
        masks.write(&format!("node/node{node}/cpumap"), mask);
        masks.write(&format!("node/node{node}/distance"), ["10 20", "20 10"][node]);
    }
    for cpu in 0..8_u32 {
        masks.remove(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"));
        let file = |name: &str| format!("cpu/cpu{cpu}/{name}");
        masks.write(&file("topology/thread_siblings"), format!("{:08x}", 3 << (cpu & !1)));
        masks.write(&file("topology/core_siblings"), format!("0,{:08x}", 15 << (cpu & !3)));
        masks.write(&file("cache/index2/level"), 2);
        masks.write(&file("cache/index2/type"), "Unified");
        masks.write(&file("cache/index2/shared_cpu_map"), format!("{:x}", 15 << (cpu & !3)));
    }
    let machine = detect(masks.root()).unwrap();
    assert_eq!(lists(&machine, |cpu| cpu.node), ["0-3", "4-7"]);
    assert_eq!(lists(&machine, |cpu| cpu.package), ["0-3", "4-7"]);
    assert_eq!(lists(&machine, |cpu| cpu.llc), ["0-3", "4-7"]);
    assert_eq!(machine.cores(), 4);

    masks.write("node/node0/cpumap", "f,");
    masks.refused(&["node0/cpumap`: `f,` is not a mask of CPUs"]);
}

#[test]
fn lists_of_packages_go_before_their_numbers() {
    // s390: no numbers in a guest; in a partition each book numbers its sockets anew.
    for numbers in [[-1; 8], [1, 1, 2, 2, 1, 1, 2, 2]] {
        let books = tree(8);
        for (cpu, number) in numbers.into_iter().enumerate() {
            let list = ["0-1", "2-3", "4-5", "6-7"][cpu / 2];
            books.write(&format!("cpu/cpu{cpu}/topology/physical_package_id"), number);
            books.write(&format!("cpu/cpu{cpu}/topology/core_siblings_list"), list);
            let book = ["0-3", "4-7"][cpu / 4];
            books.write(&format!("cpu/cpu{cpu}/topology/book_siblings_list"), book);
        }
        // A core's own caches are all that s390 shows; a socket is an LLC.
        for cpu in 0..8 {
            let file = |name: &str| format!("cpu/cpu{cpu}/{name}");
            books.write(&file("topology/book_id"), cpu / 4);
            books.write(&file("cache/index2/level"), 2);
            books.write(&file("cache/index2/type"), "Data");
            books.write(&file("cache/index2/size"), "2M");
            books.write(&file("cache/index2/shared_cpu_list"), cpu);
        }
        let machine = detect(books.root()).unwrap();
        assert_eq!(lists(&machine, |cpu| cpu.package), ["0-1", "2-3", "4-5", "6-7"]);
        assert_eq!((machine.llcs(), machine.hardware.l2_bytes), (4, 2 << 20));
    }
}

#[test]
fn cpus_and_nodes_that_are_offline_are_known_without_lists() {
    let old = tree(4);
    old.remove("cpu/online");
    old.write("cpu/cpu2/online", 0);
    old.remove("cpu/cpu2/topology");
    let host = Host::detect(old.root()).unwrap();
    assert_eq!((host.numbers, host.offline), (vec![0, 1, 3], vec![2]));

    // The node of CPUs 0 and 1 has gone offline with its memory, and has a column still.
    let gone = tree(4);
    gone.cpus(0..4, "topology/physical_package_id", |cpu| cpu / 2);
    gone.write("node/node1/cpulist", "2-3");
    gone.write("node/node1/distance", "21 10");
    let machine = detect(gone.root()).unwrap();
    assert_eq!(lists(&machine, |cpu| cpu.package), ["0-1", "2-3"]);
    assert_eq!(machine.nodes(), 2);
    assert!(machine.sources[1].contains("CPUs that no node has"), "{:?}", machine.sources);

    // A kernel that has each CPU in each node.
    for node in 0..3 {
        gone.write(&format!("node/node{node}/cpulist"), "0-3");
        gone.write(&format!("node/node{node}/distance"), "10 10 10");
    }
    let machine = detect(gone.root()).unwrap();
    assert_eq!((machine.nodes(), machine.sources.len()), (1, 3));
}

/// The page's line copies what tells the kinds of cores of a hybrid, from hosts that lack it too.
#[test]
fn documented_line_copies_kinds_of_cores() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/machines.md");
    let page = std::fs::read_to_string(page).unwrap();
    let line = page.lines().find(|line| line.contains("cp -r --parents"));
    let line = line.expect("the page tells how to copy a tree");
    let hybrid = tree(4);
    hybrid.cpus(0..4, "acpi_cppc/highest_perf", |cpu| if cpu < 2 { 62 } else { 38 });
    hybrid.write_at("proc/cpuinfo", "model name : A hybrid");
    hybrid.write("node/node0/cpulist", "0-3");
    let copied = || {
        let copy = Tree::new();
        let line = line.replace("cd /", &format!("cd {}", hybrid.root().display()));
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &line]).current_dir(copy.root());
        let done = shell.output().unwrap();
        let complaint = String::from_utf8_lossy(&done.stderr).into_owned();
        detect(&copy.root().join("tree")).unwrap_or_else(|error| panic!("{error}: {complaint}"))
    };
    let alike = copied();
    assert!(!alike.is_asymmetric());
    let note = alike.sources.last().unwrap();
    assert!(note.contains("from 38 to 62") && note.contains("sys/devices/cpu_core"), "{note}");
    hybrid.write_at("sys/devices/cpu_core/cpus", "0-1");
    hybrid.write_at("sys/devices/cpu_atom/cpus", "2-3");
    let machine = copied();
    assert_eq!(capacities(&machine), [1024, 1024, 627, 627]);
    assert!(machine.description.starts_with("A hybrid, 4 CPUs"));
}

/// Westmere-EX as the CPU buddies of 2012 were measured on it.
#[test]
fn four_nodes_of_ten_cores_with_threads_are_a_regular_machine() {
    let text = "name = \"westmere-4x10x2\"\n[topology]\npackages = 4\nllcs_per_node = 1\n\
                cores_per_llc = 10\nthreads_per_core = 2\nnumbering = \"threads-last\"\n[hardware]\n\
                frequency_mhz = 2400\nl2_bytes = \"256K\"\nllc_bytes = \"30M\"\n";
    let machine = Machine::from_toml_str(text, "westmere.toml").unwrap();
    assert_eq!((machine.cpus.len(), machine.cores()), (80, 40));
    assert_eq!((machine.packages(), machine.nodes(), machine.llcs()), (4, 4, 4));
    assert_eq!(lists(&machine, |cpu| cpu.node)[1], "10-19,50-59");
    assert_eq!(machine.cpus[0].core, machine.cpus[40].core);
    assert_eq!(machine.hardware.llc_bytes, 30 << 20);
}
