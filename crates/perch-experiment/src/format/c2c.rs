// SPDX-License-Identifier: GPL-2.0-or-later
//! The report of `perf c2c` about a cache line, as an experiment's file has it.

use perch_file::Spanned;
use perch_sim::Symbol;

use super::raw::{RawC2c, RawLineUser};
use super::refuse::refuse;
use crate::contention::LineUser;
use crate::error::{ExperimentError, Source};
use crate::line::PublishedLine;
use crate::model::Load;

/// The number of bytes of the longest cache line that a machine may have.
const LONGEST_LINE: u32 = 4096;

/// Reads the published line; one of `loads` must be where the line was seen.
pub(super) fn read(
    source: &Source,
    raw: &RawC2c,
    loads: &[Load],
) -> Result<PublishedLine, ExperimentError> {
    let (benchmark, place) = (raw.benchmark.get_ref(), raw.place.get_ref());
    let here = |load: &&Load| (&load.benchmark, &load.place) == (benchmark, place);
    if loads.iter().filter(here).count() != 1 {
        let reason = format!("{benchmark}/{place} is not one workload of this file");
        let expected = "expected the benchmark and the place of a table with one row";
        return Err(refuse(source, &raw.benchmark, "c2c", &reason, expected));
    }
    if raw.users.get_ref().is_empty() {
        let expected = "expected a row for each function";
        return Err(refuse(source, &raw.users, "c2c.users", "it is empty", expected));
    }
    let users = raw.users.get_ref().iter().map(|user| read_user(source, user));
    Ok(PublishedLine {
        benchmark: benchmark.clone(),
        place: place.clone(),
        remote_hitm: raw.remote_hitm.into(),
        local_hitm: raw.local_hitm.into(),
        store_hits: raw.store_hits.into(),
        users: users.collect::<Result<_, _>>()?,
    })
}

fn read_user(source: &Source, raw: &RawLineUser) -> Result<LineUser, ExperimentError> {
    let name = raw.symbol.get_ref();
    let mut known = Symbol::ALL.iter().map(|symbol| symbol.name());
    let Some(symbol) = known.find(|known| known == name) else {
        let known: Vec<&str> = Symbol::ALL.iter().map(|symbol| symbol.name()).collect();
        let reason = format!("`{name}` is not a function of the simulated kernel");
        let expected = format!("expected one of {}", known.join(", "));
        return Err(refuse(source, &raw.symbol, "c2c.users.symbol", &reason, &expected));
    };
    if *raw.offset.get_ref() >= LONGEST_LINE {
        let reason = format!("{} bytes", raw.offset.get_ref());
        let expected = "expected an offset within a cache line";
        return Err(refuse(source, &raw.offset, "c2c.users.offset", &reason, expected));
    }
    let percent = |value: &Spanned<f64>, key: &str| match *value.get_ref() {
        percent if (0.0..=100.0).contains(&percent) => Ok(percent),
        other => {
            let expected = "expected percent of the line's, 0 to 100";
            Err(refuse(source, value, key, &other.to_string(), expected))
        }
    };
    Ok(LineUser {
        symbol: symbol.to_string(),
        seen: true,
        offset: *raw.offset.get_ref(),
        remote_hitm_pct: percent(&raw.remote, "c2c.users.remote")?,
        local_hitm_pct: percent(&raw.local, "c2c.users.local")?,
        store_hit_pct: percent(&raw.store, "c2c.users.store")?,
        load_cycles: raw.cycles.into(),
        longest_cycles: 0.0,
        records: raw.records.into(),
    })
}

#[cfg(test)]
mod tests {
    use crate::error::ExperimentError;
    use crate::model::Experiment;

    const TEXT: &str = include_str!("../../../../experiments/rt-overload.toml");
    const FIGURES: &str = include_str!("../../../../experiments/rt-overload.csv");

    fn read(text: &str) -> Result<Experiment, ExperimentError> {
        Experiment::from_toml(text, "e.toml", &|_| Ok(FIGURES.to_string()))
    }

    #[test]
    fn what_is_no_line_of_a_table_is_named_with_line_and_key() {
        for (from, to, words) in [
            (
                "[c2c]\nbenchmark = \"ffmpeg\"",
                "[c2c]\nbenchmark = \"ffmpg\"",
                &["`c2c`", "ffmpg/rt480 is not one workload"][..],
            ),
            (
                "symbol = \"pull_rt_task\"",
                "symbol = \"push_rt_task\"",
                &["`c2c.users.symbol`", "`push_rt_task` is not a function", "pull_rt_task"],
            ),
            (
                "offset = 0x4, symbol = \"pull",
                "offset = 0x1000, symbol = \"pull",
                &["`c2c.users.offset`", "4096 bytes", "within a cache line"],
            ),
            ("remote = 22.51", "remote = -22.51", &["`c2c.users.remote`: -22.51", "0 to 100"]),
            ("local = 27.91", "local = nan", &["`c2c.users.local`: NaN"]),
            ("store = 45.83", "store = 145.83", &["`c2c.users.store`"]),
            ("cycles = 5041", "cycles = -1", &["e.toml"]),
            ("remote_hitm = 231\n", "", &["missing field `remote_hitm`"]),
        ] {
            assert!(TEXT.contains(from), "the file no longer says `{from}`");
            let error = read(&TEXT.replacen(from, to, 1)).unwrap_err().to_string();
            for word in words {
                assert!(error.contains(word), "{from}: no \"{word}\" in: {error}");
            }
        }
    }
}
