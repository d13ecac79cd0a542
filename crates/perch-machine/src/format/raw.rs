// SPDX-License-Identifier: GPL-2.0-or-later
//! The keys of a machine file, in the form in which serde reads them. This module checks only their
//! types.

use perch_file::Spanned;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A machine, as `-m FILE` reads it.
#[derive(Deserialize, JsonSchema)]
#[schemars(title = "machine")]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub sources: Vec<String>,
    pub topology: Option<Spanned<RawTopology>>,
    #[serde(default)]
    pub core: Vec<RawGroup>,
    #[serde(default)]
    pub cluster: Vec<RawGroup>,
    #[serde(default)]
    pub llc: Vec<RawLlc>,
    #[serde(default)]
    pub node: Vec<RawGroup>,
    #[serde(default)]
    pub package: Vec<RawGroup>,
    pub declared: Option<RawDeclared>,
    #[serde(default)]
    pub capacity: Vec<RawValue>,
    #[serde(default)]
    pub ranking: Vec<RawValue>,
    pub numa: Option<RawNuma>,
    pub hardware: Option<RawHardware>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTopology {
    pub packages: Option<u64>,
    pub nodes_per_package: Option<u64>,
    #[serde(default)]
    pub node_interleave: bool,
    pub llcs_per_node: Option<u64>,
    pub clusters_per_llc: Option<u64>,
    pub cores_per_cluster: Option<u64>,
    pub cores_per_llc: Option<u64>,
    pub threads_per_core: Option<u64>,
    #[serde(default)]
    pub numbering: super::Numbering,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGroup {
    pub cpus: Spanned<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLlc {
    pub cpus: Spanned<String>,
    pub bytes: Option<Bytes>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDeclared {
    pub llc: Vec<Spanned<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawValue {
    pub cpus: Spanned<String>,
    pub value: Spanned<i64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNuma {
    pub distance: Spanned<Vec<Vec<u32>>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHardware {
    pub frequency_mhz: Option<Spanned<u32>>,
    pub line_bytes: Option<Spanned<u32>>,
    pub l1d_bytes: Option<Spanned<Bytes>>,
    pub l2_bytes: Option<Spanned<Bytes>>,
    pub l2_per_cluster: Option<bool>,
    pub llc_bytes: Option<Spanned<Bytes>>,
    pub transfer_ns: Option<Spanned<RawByDistance>>,
    pub ipi_ns: Option<Spanned<RawByDistance>>,
    pub context_switch_ns: Option<Spanned<u32>>,
    pub switch_out_ns: Option<Spanned<u32>>,
    pub switch_in_ns: Option<Spanned<u32>>,
    pub llc_hit_ns: Option<Spanned<u32>>,
    pub wake_ns: Option<Spanned<u32>>,
    pub examine_ns: Option<Spanned<u32>>,
    pub balance_ns: Option<Spanned<u32>>,
    pub balance_lines: Option<Spanned<u32>>,
    pub tick_ns: Option<Spanned<u32>>,
    pub memory_ns: Option<Spanned<RawMemory>>,
    pub smt_throughput_1024: Option<Spanned<u32>>,
    pub stall_pct: Option<Spanned<u32>>,
    pub contended_line: Option<Spanned<RawContendedLine>>,
    pub core: Option<RawCore>,
    #[serde(default)]
    pub idle_state: Vec<Spanned<RawIdleState>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawByDistance {
    pub cpu: Option<u32>,
    pub core: Option<u32>,
    pub cluster: Option<u32>,
    pub llc: Option<u32>,
    pub node: Option<u32>,
    pub package: Option<u32>,
    pub machine: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawContendedLine {
    pub hit_ns: Option<u32>,
    pub atomic_ns: Option<u32>,
    pub hold_ns: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCore {
    pub instructions_per_100_cycles: Option<Spanned<u32>>,
    pub misses_at_once: Option<Spanned<u32>>,
    pub reorder_instructions: Option<Spanned<u32>>,
    pub store_buffer: Option<Spanned<u32>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMemory {
    pub local: Option<u32>,
    pub remote: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawIdleState {
    pub name: String,
    pub exit_ns: u32,
    pub residency_ns: u32,
}

/// A size: a number of bytes, or text such as `"512K"`, `"32 MiB"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bytes(pub u64);

/// The largest size of a cache: 1 TiB, beyond any cache, so that sums never overflow.
const MAX_BYTES: u64 = 1 << 40;

impl Bytes {
    pub fn parse(text: &str) -> Option<Bytes> {
        let (number, unit) = Bytes::split(text)?;
        let bytes = number.parse::<u64>().ok()?.checked_mul(unit)?;
        (bytes <= MAX_BYTES).then_some(Bytes(bytes))
    }

    /// Splits a size into the text of its number and the bytes of its unit.
    pub fn split(text: &str) -> Option<(&str, u64)> {
        let text = text.trim();
        let number = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let shift = match text[number.len()..].trim() {
            "" | "B" => 0,
            "K" | "KiB" => 10,
            "M" | "MiB" => 20,
            "G" | "GiB" => 30,
            _ => return None,
        };
        Some((number, 1 << shift))
    }
}

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "bytes up to 1 TiB, as a number or as text such as \"512K\" or \"32M\"",
            "type": ["integer", "string"],
            "minimum": 0,
            "maximum": MAX_BYTES,
            "pattern": "^\\s*[0-9]+\\s*(B|K|KiB|M|MiB|G|GiB)?\\s*$",
        })
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        struct Size;
        impl Visitor<'_> for Size {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("bytes up to 1 TiB, as a number or as text such as \"512K\" or \"32M\"")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Bytes, E> {
                match u64::try_from(value) {
                    Ok(bytes) if bytes <= MAX_BYTES => Ok(Bytes(bytes)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(value), &self)),
                }
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Bytes, E> {
                Bytes::parse(value)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(value), &self))
            }
        }
        deserializer.deserialize_any(Size)
    }
}
