// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes what Rust knows of mechanisms.def: src/mechanism.rs, src/modes.rs, src/policy.rs
//! and src/reason.rs include it and have everything that does not depend on which lines there are.

use std::fmt::Write;

use crate::table::{Mechanism, Table};

/// `CLUSTER_SCAN` and `cluster_scan` as `ClusterScan`.
fn camel(name: &str) -> String {
    let parts = name.split('_').map(|part| {
        let (first, rest) = part.split_at(1);
        first.to_uppercase() + &rest.to_lowercase()
    });
    parts.collect()
}

/// A list of variants of `name`, as an enum's declaration and as its constant `ALL`.
fn variants(out: &mut String, name: &str, derive: &str, of: &[(String, &str)]) {
    *out += &format!("{derive}\npub enum {name} {{\n");
    for (variant, doc) in of {
        *out += &format!("    #[doc = {doc:?}]\n    {variant},\n");
    }
    let all: Vec<_> = of.iter().map(|(v, _)| format!("{name}::{v}")).collect();
    *out += &format!(
        "}}\n\nimpl {name} {{\n    /// All, in the table's order.\n    \
         pub const ALL: [{name}; {}] = [{}];\n}}\n\n",
        of.len(),
        all.join(", ")
    );
}

/// `enum Mechanism`, what the table says of each, `Modes` and its mirror in C.
pub fn mechanisms(table: &Table) -> String {
    let all = &table.mechanisms;
    let mut out = String::new();
    let named: Vec<_> = all.iter().map(|m| (camel(&m.name), m.help.as_str())).collect();
    let derive = "/// A mechanism of policy/include/perch/mechanisms.def.\n\
                  #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]";
    variants(&mut out, "Mechanism", derive, &named);
    let _ = writeln!(out, "static FACTS: [Facts; {}] = [", all.len());
    for m in all {
        out += &facts(m);
    }
    out += "];\n";
    out
}

fn facts(m: &Mechanism) -> String {
    let modes: Vec<_> = m.modes.iter().map(|mode| format!("Mode::{}", camel(mode))).collect();
    let setting = m.setting.as_ref();
    let setting = setting.map(|(setting, lack)| format!("(Setting::{}, {lack:?})", camel(setting)));
    let option = |value: Option<String>| match value {
        Some(value) => format!("Some({value})"),
        None => "None".to_string(),
    };
    format!(
        "    Facts {{ name: {:?}, help: {:?}, modes: &[{}], since: {}, era: {:?}, \
         premise: (Premise::{}, {:?}), setting: {}, recording: (Recording::{}, {:?}) }},\n",
        m.name,
        m.help,
        ["Mode::Off".to_string()].iter().chain(&modes).cloned().collect::<Vec<_>>().join(", "),
        option(m.since.map(|since| format!("{since:?}"))),
        m.era,
        camel(&m.premise.0),
        m.premise.1,
        option(setting),
        camel(&m.recording.0),
        m.recording.1
    )
}

/// `struct Modes`, one field a mechanism.
pub fn modes(table: &Table) -> String {
    let all = &table.mechanisms;
    let mut out = "/// One mode a mechanism: all that an experiment's arm consists of.\n\
                   #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]\n\
                   pub struct Modes {\n"
        .to_string();
    for m in all {
        let _ = writeln!(out, "    #[doc = {:?}]\n    pub {}: Mode,", m.help, m.name);
    }
    out += "    /// How the overload counters lie in memory, if not as the mode has it: to tell\n    \
            /// what padding does from what the rest of a mode does.\n    \
            pub layout: Option<Layout>,\n}\n\n";
    out += "impl Modes {\n";
    for (name, reference) in [("field", "&"), ("field_mut", "&mut ")] {
        let _ = writeln!(
            out,
            "    fn {name}({reference}self, mechanism: Mechanism) -> {reference}Mode {{\n        \
             match mechanism {{"
        );
        for m in all {
            let variant = camel(&m.name);
            let _ =
                writeln!(out, "            Mechanism::{variant} => {reference}self.{},", m.name);
        }
        out += "        }\n    }\n";
    }
    out += "}\n";
    out
}

/// The modes as the bytes of `struct perch_modes`, whose fields are in the table's order.
pub fn mirror(table: &Table) -> String {
    let mut out = "impl From<Modes> for ffi::Modes {\n    \
                   fn from(modes: Modes) -> ffi::Modes {\n        \
                   let mut bytes = [0; ffi::generated::PERCH_MODES_SIZE as usize];\n"
        .to_string();
    for (i, m) in table.mechanisms.iter().enumerate() {
        let _ = writeln!(out, "        bytes[{i}] = modes.{} as u8;", m.name);
    }
    let _ = writeln!(
        out,
        "        bytes[{}] = modes.overload_layout() as u8;\n        \
         ffi::Modes {{ _bindgen_opaque_blob: bytes }}\n    }}\n}}",
        table.mechanisms.len()
    );
    out
}

/// `enum Reason` with its names and classes.
pub fn reasons(table: &Table) -> String {
    let all = &table.reasons;
    let mut out = String::new();
    let named: Vec<_> = all.iter().map(|r| (camel(&r.name), r.meaning.as_str())).collect();
    let derive = "/// Why a CPU was chosen. The simulator's metrics, the live statistics and the \
                  replay\n/// count the same reasons. The numbers are those of `enum perch_reason`.\n\
                  #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u32)]";
    variants(&mut out, "Reason", derive, &named);
    let _ = writeln!(out, "const NAMES: [(&str, Class, &str); {}] = [", all.len());
    for r in all {
        let (words, class) = (&r.words, camel(&r.class));
        let _ = writeln!(out, "    ({words:?}, Class::{class}, {:?}),", r.meaning);
    }
    out += "];\n";
    out
}
