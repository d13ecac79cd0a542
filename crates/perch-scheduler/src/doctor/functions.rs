// SPDX-License-Identifier: GPL-2.0-or-later
//! Compares what perch's BPF object needs of a kernel with the type information of that kernel, by the
//! rules of libbpf, which loads the object.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;

use libbpf_rs::btf::types::{Func, FuncProto, Struct, Var};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, TypeId};
use libbpf_rs::{ReferencesType, btf};
use object::{Object as _, ObjectSymbol as _};

use perch_plan::Abilities;

use crate::program::{OBJECT, abilities_of, hear, heard};
use crate::tree::{Tree, UnseenError};

/// Functions of which a kernel must have one: the newer form, and the older one that it replaced
/// (bpf/base/kernel.h).
const EITHER: [[&str; 2]; 3] = [
    ["scx_bpf_dsq_insert___v2", "scx_bpf_dsq_insert"],
    ["__scx_bpf_dsq_insert_vtime", "scx_bpf_dsq_insert_vtime"],
    ["scx_bpf_dsq_move_to_local___v2", "scx_bpf_dsq_move_to_local"],
];

/// Functions that perch calls without asking, though libbpf's headers declare them as ones that may be
/// missing.
const UNASKED: [&str; 1] = ["bpf_rdonly_cast"];

/// The kernel's type information.
const TYPES: &str = "sys/kernel/btf/vmlinux";

/// The most bytes of type information that are read. Linux 7.2 of Debian has 7 MiB.
const MOST_BYTES: u64 = 256 << 20;

/// What a kernel has of that which perch needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Functions {
    /// Functions and variables of the kernel that perch cannot do without.
    pub needed: usize,
    /// Those that the kernel lacks.
    pub missing: Vec<String>,
    /// Functions that the kernel describes with other arguments than perch passes.
    pub unlike: Vec<Unlike>,
    /// Callbacks of perch's that the kernel does not know, whatever perch is asked to do.
    pub callbacks: BTreeSet<String>,
    /// What this kernel does and others do not.
    pub abilities: Abilities,
}

/// A function of the kernel that perch calls otherwise than the kernel describes it.
#[derive(Debug, PartialEq, Eq)]
pub struct Unlike {
    /// Its name.
    pub name: String,
    /// Arguments that the kernel says it takes.
    pub takes: usize,
    /// Arguments that perch passes.
    pub passed: usize,
}

/// A type as far as libbpf compares it: typedefs and qualifiers do not count, nor what is in a
/// structure.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    Plain(&'static str),
    Pointer(Box<Shape>),
    Array(Box<Shape>),
    Function(Vec<Shape>, Box<Shape>),
}

/// Types within types that are followed; libbpf follows 32.
const DEEPEST: usize = 32;

/// The shape of a type; none if the type information contradicts itself.
fn shape(btf: &Btf<'_>, id: TypeId, depth: usize) -> Option<Shape> {
    let depth = depth.checked_sub(1)?;
    let mut of: BtfType<'_> = btf.type_by_id(id)?;
    // A chain of names for one type is short, and one that leads back to itself has no end.
    for _ in 0..DEEPEST {
        use BtfKind::{Const, Restrict, TypeTag, Typedef, Volatile};
        if !matches!(of.kind(), Const | Restrict | TypeTag | Typedef | Volatile) {
            break;
        }
        of = of.next_type()?;
    }
    let next = |id| shape(btf, id, depth).map(Box::new);
    Some(match of.kind() {
        BtfKind::Void => Shape::Plain("void"),
        BtfKind::Int => Shape::Plain("int"),
        BtfKind::Float => Shape::Plain("float"),
        BtfKind::Struct => Shape::Plain("struct"),
        BtfKind::Union => Shape::Plain("union"),
        BtfKind::Fwd => Shape::Plain("forward"),
        BtfKind::Enum | BtfKind::Enum64 => Shape::Plain("enum"),
        BtfKind::Ptr => {
            let pointer = btf::types::Ptr::try_from(of).ok()?;
            Shape::Pointer(next(pointer.referenced_type_id())?)
        }
        BtfKind::Array => {
            let array = btf::types::Array::try_from(of).ok()?;
            Shape::Array(next(array.ty())?)
        }
        BtfKind::FuncProto => {
            let function = FuncProto::try_from(of).ok()?;
            let arguments = function.iter().map(|argument| shape(btf, argument.ty, depth));
            let arguments = arguments.collect::<Option<Vec<_>>>()?;
            Shape::Function(arguments, next(function.referenced_type_id())?)
        }
        _ => return None,
    })
}

/// The functions of some names with their shapes, and the variables of some names.
struct Known {
    functions: BTreeMap<String, Option<Shape>>,
    variables: BTreeSet<String>,
}

impl Known {
    /// Those of `names` in a kernel's types, or in an object's.
    fn of(btf: &Btf<'_>, names: &BTreeSet<&str>) -> Known {
        let named = |name: Option<&OsStr>| {
            let name = name.and_then(OsStr::to_str);
            name.filter(|name| names.contains(name)).map(str::to_string)
        };
        let mut functions = BTreeMap::new();
        for function in btf.type_by_kind::<Func<'_>>() {
            if let Some(name) = named(function.name()) {
                let shape = shape(btf, function.referenced_type_id(), DEEPEST);
                functions.entry(name).or_insert(shape);
            }
        }
        let variables = btf.type_by_kind::<Var<'_>>();
        let variables = variables.filter_map(|variable| named(variable.name()));
        Known { functions, variables: variables.collect() }
    }
}

/// A name of the object's without what only tells declarations apart, as libbpf has it.
fn essential(name: &str) -> &str {
    match name.rfind("___") {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// A thing of the kernel that the object names.
struct Extern {
    name: String,
    /// True if the object can do without it.
    weak: bool,
}

/// All that the object names and does not have.
fn externs() -> Result<Vec<Extern>, String> {
    let file = object::File::parse(OBJECT).map_err(|error| error.to_string())?;
    let symbols = file.symbols().filter(|symbol| symbol.is_undefined());
    let externs = symbols.filter_map(|symbol| {
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        Some(Extern { name: name.to_string(), weak: symbol.is_weak() })
    });
    Ok(externs.collect())
}

/// The names of a structure's members.
fn members(btf: &Btf<'_>, name: &str) -> BTreeSet<String> {
    let structure = btf.type_by_name::<Struct<'_>>(name);
    let mut names = BTreeSet::new();
    for member in structure.iter().flat_map(|structure| structure.iter()) {
        names.extend(member.name.map(|name| name.to_string_lossy().into_owned()));
    }
    names
}

/// Compares perch's object with the kernel's types. None where the kernel has none.
///
/// # Errors
/// When the types cannot be read.
pub(super) fn look(tree: &Tree) -> Result<Option<Functions>, UnseenError> {
    let path = tree.path(TYPES);
    let wrong = |why: String| UnseenError::Types { path: path.clone(), why };
    if !path.exists() {
        return Ok(None);
    }
    let mut magic = [0; 2];
    let mut file: File = perch_file::open(&path)?;
    let length = file.metadata().map_or(0, |found| found.len());
    if file.read_exact(&mut magic).is_err() || u16::from_ne_bytes(magic) != 0xeb9f {
        return Err(wrong("it is not BTF".to_string()));
    }
    if length > MOST_BYTES {
        let why = format!("it has {} MiB; expected at most {}", length >> 20, MOST_BYTES >> 20);
        return Err(wrong(why));
    }
    // libbpf would write its complaints to stderr.
    hear();
    let kernel = Btf::from_path(&path);
    let kernel = kernel.map_err(|error| wrong(format!("{error}{}", said())))?;
    compare(&kernel).map(Some).map_err(wrong)
}

/// The last line of libbpf's complaint.
fn said() -> String {
    let heard = heard();
    let last = heard.lines().next_back();
    last.map(|line| format!(" ({line})")).unwrap_or_default()
}

fn compare(kernel: &Btf<'_>) -> Result<Functions, String> {
    let ours = Btf::from_raw("perch", OBJECT).map_err(|error| format!("{error}{}", said()))?;
    let ours = ours.ok_or("perch's BPF object has no types")?;
    let externs = externs()?;
    let names: BTreeSet<&str> = externs.iter().map(|one| one.name.as_str()).collect();
    let passed = Known::of(&ours, &names);
    let names: BTreeSet<&str> = names.iter().map(|name| essential(name)).collect();
    let has = Known::of(kernel, &names);

    let mut found = Functions { abilities: abilities_of(kernel), ..Functions::default() };
    let fits = |one: &Extern| {
        let name = essential(&one.name);
        match passed.functions.get(&one.name) {
            Some(shape) => shape.is_some() && has.functions.get(name) == Some(shape),
            None => has.variables.contains(name),
        }
    };
    for one in &externs {
        let name = essential(&one.name);
        let pair = EITHER.iter().find(|pair| pair.contains(&name));
        let is_there = match (pair, one.weak) {
            // Both forms of a function would say the same: the newer speaks for them.
            (Some([newer, _]), _) if name != *newer => continue,
            (Some(pair), _) => {
                externs.iter().any(|other| pair.contains(&essential(&other.name)) && fits(other))
            }
            (None, true) if !UNASKED.contains(&name) => continue,
            (None, _) => fits(one),
        };
        found.needed += 1;
        if is_there {
            continue;
        }
        let count = |shape: Option<&Option<Shape>>| match shape {
            Some(Some(Shape::Function(arguments, _))) => Some(arguments.len()),
            _ => None,
        };
        let (takes, passed) = (has.functions.get(name), passed.functions.get(&one.name));
        match (count(takes), count(passed)) {
            (Some(takes), Some(passed)) => {
                found.unlike.push(Unlike { name: name.to_string(), takes, passed });
            }
            _ => found.missing.push(name.to_string()),
        }
    }
    found.missing.sort();
    found.unlike.sort_by(|a, b| a.name.cmp(&b.name));
    let theirs = members(kernel, "sched_ext_ops");
    let ours = members(&ours, "sched_ext_ops");
    found.callbacks = ours.difference(&theirs).cloned().collect();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A weak function has an older form, or perch writes the field itself that it would set.
    #[test]
    fn functions_that_perch_can_do_without_have_another_way() {
        let externs = externs().unwrap();
        let weak = |name: &&str| {
            let mut of = externs.iter().filter(|one| essential(&one.name) == *name);
            of.next().is_some_and(|one| one.weak)
        };
        assert!(EITHER.iter().flatten().all(weak));
        let mut alone: Vec<_> = externs
            .iter()
            .filter(|one| one.weak)
            .map(|one| essential(&one.name))
            .filter(|name| !EITHER.iter().flatten().chain(&UNASKED).any(|other| other == name))
            .collect();
        alone.sort_unstable();
        assert_eq!(
            alone,
            [
                // Without it cpu.max holds tasks where they sleep, and nowhere else.
                "__irq_regs",
                // Without it a task that was born without memory stays in the root group.
                "scx_bpf_task_cgroup",
                "scx_bpf_task_set_dsq_vtime",
                "scx_bpf_task_set_slice"
            ]
        );
        assert!(externs.iter().any(|one| one.name == "runqueues" && !one.weak));
    }

    #[test]
    fn names_end_where_libbpf_ends_them() {
        assert_eq!(essential("scx_bpf_dsq_insert___v2___new"), "scx_bpf_dsq_insert___v2");
        assert_eq!(essential("scx_bpf_now"), "scx_bpf_now");
        assert_eq!(essential("__scx_bpf_dsq_insert_vtime"), "__scx_bpf_dsq_insert_vtime");
    }
}
