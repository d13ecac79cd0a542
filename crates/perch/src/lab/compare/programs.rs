// SPDX-License-Identifier: GPL-2.0-or-later
//! The benchmarks whose outputs perch reads.

use perch_experiment::MeasuredScore as Score;

/// A program whose output perch reads.
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// Returns the scores in the lines of an output; none where the program wrote none of them.
    pub read: fn(&[&str]) -> Vec<Score>,
}

/// All of them. No program's lines look like another's.
pub const KNOWN: [Known; 9] = [
    known("hackbench", hackbench),
    known("tbench and dbench", dbench),
    known("sysbench", sysbench),
    known("perf bench sched", perf_bench),
    known("schbench", schbench),
    known("netperf's TCP_RR and UDP_RR", netperf),
    known("cyclictest", cyclictest),
    known("perch lab ping", ping),
    known("perch lab pairs", pairs),
];

const fn known(name: &'static str, read: fn(&[&str]) -> Vec<Score>) -> Known {
    Known { name, read }
}

/// A score of this name, unit and value, of which more is better if `more`.
pub fn score(name: impl Into<String>, unit: &str, more: bool, value: f64) -> Score {
    Score { name: name.into(), unit: unit.to_string(), higher_is_better: more, value }
}

/// The names of all.
pub fn names() -> String {
    KNOWN.map(|known| known.name).join(", ")
}

/// The number with which `text` begins, which a unit may follow.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    text[..end.unwrap_or(text.len())].parse().ok()
}

/// The number behind `words`, which may stand anywhere in the line.
fn after(line: &str, words: &str) -> Option<f64> {
    let (_, rest) = line.split_once(words)?;
    number(rest)
}

/// The first number of any line behind `words`.
fn any_after(lines: &[&str], words: &str) -> Option<f64> {
    lines.iter().find_map(|line| after(line, words))
}

/// The stretches of lines that begin with a line that begins with `words`.
fn blocks<'a, 'b>(lines: &'a [&'b str], words: &str) -> Vec<&'a [&'b str]> {
    let begins = |at: &usize| lines[*at].starts_with(words);
    let starts: Vec<usize> = (0..lines.len()).filter(begins).collect();
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    starts.iter().zip(ends).map(|(start, end)| &lines[*start..end]).collect()
}

fn hackbench(lines: &[&str]) -> Vec<Score> {
    let times = lines.iter().filter_map(|line| number(line.strip_prefix("Time: ")?));
    times.map(|s| score("time", "s", false, s)).collect()
}

fn dbench(lines: &[&str]) -> Vec<Score> {
    let found = lines.iter().filter_map(|line| {
        let rate = number(line.strip_prefix("Throughput ")?)?;
        // A run of one second ends before the program has counted anything, and says 0.
        let rate = Some(rate).filter(|rate| *rate > 0.0)?;
        let longest = after(line, "max_latency=")?;
        Some([
            score("throughput", "MB/s", true, rate),
            score("longest latency", "ms", false, longest),
        ])
    });
    found.flatten().collect()
}

fn sysbench(lines: &[&str]) -> Vec<Score> {
    let one = |lines: &&[&str]| -> Option<Vec<Score>> {
        let events = any_after(lines, "total number of events:")?;
        let mut scores = Vec::new();
        let time = any_after(lines, " total time:");
        // Only the test of processors prints the rate itself.
        let rate = any_after(lines, "events per second:");
        let rate = rate.or_else(|| Some(events / time.filter(|time| *time > 0.0)?));
        scores.extend(rate.map(|rate| score("events per second", "1/s", true, rate)));
        scores.push(score("events", "events", true, events));
        let latency = lines.iter().position(|line| line.starts_with("Latency (ms):"))?;
        for (words, name) in [("avg:", "mean latency"), ("95th percentile:", "95th latency")] {
            let found = any_after(&lines[latency..], words);
            scores.extend(found.map(|ms| score(name, "ms", false, ms)));
        }
        Some(scores)
    };
    let found = blocks(lines, "sysbench ");
    found.iter().filter_map(one).flatten().collect()
}

fn perf_bench(lines: &[&str]) -> Vec<Score> {
    let one = |lines: &&[&str]| -> Option<Score> {
        let per_operation = lines.iter().find(|line| line.trim_end().ends_with("usecs/op"));
        if let Some(us) = per_operation.and_then(|line| number(line)) {
            return Some(score("time per operation", "us", false, us));
        }
        let time = any_after(lines, "Total time:")?;
        Some(score("time", "s", false, time))
    };
    let found = blocks(lines, "# Running '");
    found.iter().filter_map(one).collect()
}

/// schbench prints its tables again and again, and the last ones at its end.
fn schbench(lines: &[&str]) -> Vec<Score> {
    let mut scores = Vec::new();
    for kind in ["Wakeup", "Request"] {
        let Some(table) = blocks(lines, &format!("{kind} Latencies percentiles (usec)")).pop()
        else {
            continue;
        };
        let rows = table[1..].iter().map_while(|line| {
            let (percentile, rest) = line.trim_start_matches(['*', ' ', '\t']).split_once("th:")?;
            Some((percentile, number(rest)?))
        });
        scores.extend(rows.map(|(percentile, us)| {
            let name = format!("{} latency, {percentile}th", kind.to_lowercase());
            score(name, "us", false, us)
        }));
    }
    let last = |words: &str| lines.iter().rev().find_map(|line| number(line.strip_prefix(words)?));
    let rps = last("average rps:");
    scores.extend(rps.map(|rate| score("requests per second", "1/s", true, rate)));
    let transfers = last("avg worker transfer:");
    scores.extend(transfers.map(|rate| score("transfers per second", "1/s", true, rate)));
    scores
}

/// The rate of netperf's test of requests is the sixth number of the line that begins with four
/// sizes and the time; the line below that one has only the other side's sizes.
fn netperf(lines: &[&str]) -> Vec<Score> {
    let one = |lines: &&[&str]| -> Option<Score> {
        let mut words = lines[0].split_whitespace().skip(1);
        let (protocol, what) = (words.next()?, words.next()?);
        if what != "REQUEST/RESPONSE" {
            return None;
        }
        let rate = lines[1..].iter().find_map(|line| {
            let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
            match numbers.ok()?[..] {
                [_, _, _, _, _, rate] => Some(rate),
                _ => None,
            }
        })?;
        let name = format!("{protocol}_RR transactions");
        Some(score(name, "1/s", true, rate))
    };
    let found = blocks(lines, "MIGRATED ");
    found.iter().filter_map(one).collect()
}

/// The mean and the maximum over cyclictest's threads, which it prints anew while it runs unless
/// it is quiet.
fn cyclictest(lines: &[&str]) -> Vec<Score> {
    let Some(last) = blocks(lines, "T: 0 ").pop() else {
        return Vec::new();
    };
    let threads = last.iter().map_while(|line| {
        line.starts_with("T:").then(|| Some((after(line, "Avg:")?, after(line, "Max:")?))).flatten()
    });
    let threads: Vec<(f64, f64)> = threads.collect();
    if threads.is_empty() {
        return Vec::new();
    }
    let mean = threads.iter().map(|(mean, _)| mean).sum::<f64>() / threads.len() as f64;
    let longest = threads.iter().map(|(_, most)| *most).fold(0.0, f64::max);
    vec![score("mean latency", "us", false, mean), score("longest latency", "us", false, longest)]
}

fn ping(lines: &[&str]) -> Vec<Score> {
    let found = lines.iter().filter_map(|line| {
        let (between, rest) = line.strip_suffix(" ns each")?.split_once(": ")?;
        let (_, each) = rest.split_once(" rounds, ")?;
        let is_ping = ["pipe", "tcp", "udp"].contains(&between.split(' ').next()?);
        is_ping.then(|| Some(score(between, "ns", false, number(each)?)))?
    });
    found.collect()
}

fn pairs(lines: &[&str]) -> Vec<Score> {
    let found = lines.iter().filter_map(|line| {
        let (pairs, rounds) = line.strip_suffix(" rounds a second")?.split_once(": ")?;
        let (by, count) = pairs.strip_suffix(" pairs")?.split_once(", ")?;
        let is_pairs = ["pipe", "tcp", "udp"].contains(&by) && count.parse::<u32>().is_ok();
        is_pairs.then(|| Some(score(pairs, "1/s", true, number(rounds)?)))?
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::score::scores;

    /// The scores in an output, one per line.
    fn read(output: &str) -> Vec<String> {
        let found = scores(output, &[]).unwrap();
        let line = |s: &super::Score| {
            let sign = if s.higher_is_better { '+' } else { '-' };
            format!("{sign} {}: {} {}", s.name, s.value, s.unit)
        };
        found.iter().map(line).collect()
    }

    #[test]
    fn hackbench_of_debian_is_read() {
        assert_eq!(read(include_str!("output/hackbench.txt")), ["- time: 0.458 s"]);
    }

    #[test]
    fn tbench_and_dbench_of_debian_are_read() {
        assert_eq!(
            read(include_str!("output/tbench.txt")),
            ["+ throughput: 53.7477 MB/s", "- longest latency: 4.606 ms"]
        );
        assert_eq!(
            read(include_str!("output/dbench.txt")),
            ["+ throughput: 140.562 MB/s", "- longest latency: 13.277 ms"]
        );
    }

    #[test]
    fn sysbench_of_debian_is_read() {
        assert_eq!(
            read(include_str!("output/sysbench-cpu.txt")),
            [
                "+ events per second: 915.17 1/s",
                "+ events: 919 events",
                "- mean latency: 1.08 ms",
                "- 95th latency: 1.21 ms"
            ]
        );
        let threads = read(include_str!("output/sysbench-threads.txt"));
        assert_eq!(threads[0], format!("+ events per second: {} 1/s", 1156.0 / 2.0097));
        assert_eq!(
            threads[1..],
            ["+ events: 1156 events", "- mean latency: 4.36 ms", "- 95th latency: 12.75 ms"]
        );
        assert_eq!(read(include_str!("output/sysbench-memory.txt"))[1], "+ events: 51200 events");
    }

    #[test]
    fn perf_bench_of_debian_is_read() {
        assert_eq!(read(include_str!("output/perf-pipe.txt")), ["- time per operation: 66.882 us"]);
        assert_eq!(read(include_str!("output/perf-messaging.txt")), ["- time: 0.525 s"]);
    }

    #[test]
    fn schbenchs_last_tables_are_read() {
        assert_eq!(
            read(include_str!("output/schbench.txt")),
            [
                "- wakeup latency, 50.0th: 392 us",
                "- wakeup latency, 90.0th: 6456 us",
                "- wakeup latency, 99.0th: 12944 us",
                "- wakeup latency, 99.9th: 24864 us",
                "- request latency, 50.0th: 37312 us",
                "- request latency, 90.0th: 88704 us",
                "- request latency, 99.0th: 195328 us",
                "- request latency, 99.9th: 206592 us",
                "+ requests per second: 38.33 1/s"
            ]
        );
        let pipe = read(include_str!("output/schbench-pipe.txt"));
        assert_eq!(pipe.len(), 6);
        assert_eq!(pipe[5], "+ transfers per second: 17526.85 1/s");
    }

    #[test]
    fn cyclictest_of_debian_is_read() {
        assert_eq!(
            read(include_str!("output/cyclictest.txt")),
            ["- mean latency: 133.5 us", "- longest latency: 638 us"]
        );
    }

    #[test]
    fn pings_are_told_apart_by_their_way() {
        assert_eq!(
            read(include_str!("output/ping.txt")),
            ["- pipe between CPUs 0 and 1: 98786.3 ns", "- udp between CPUs 0 and 1: 98672.1 ns"]
        );
    }

    #[test]
    fn pairs_are_told_apart_by_their_number() {
        assert_eq!(
            read(
                "tcp, 8 pairs: 254340.0 rounds a second\npipe, 1 pairs: 88280.0 rounds a second\n"
            ),
            ["+ tcp, 8 pairs: 254340 1/s", "+ pipe, 1 pairs: 88280 1/s"]
        );
    }

    #[test]
    fn netperfs_transactions_are_read() {
        assert_eq!(
            read(include_str!("output/netperf.txt")),
            ["+ TCP_RR transactions: 53834.48 1/s", "+ UDP_RR transactions: 51234.73 1/s"]
        );
    }

    #[test]
    fn a_tbench_that_counted_nothing_has_no_score() {
        let nothing = include_str!("output/tbench.txt").replace("53.7477", "0");
        let words = scores(&nothing, &[]).unwrap_err().message;
        assert!(words.contains("no score") && words.contains("Throughput 0 MB"), "{words}");
    }

    /// A program that was ended in the middle of its output has no score, and none is made up.
    #[test]
    fn half_an_output_has_no_score() {
        for output in [
            include_str!("output/tbench.txt"),
            include_str!("output/sysbench-cpu.txt"),
            include_str!("output/perf-messaging.txt"),
            include_str!("output/hackbench.txt"),
        ] {
            let lines: Vec<&str> = output.lines().collect();
            let half = lines[..lines.len() / 2].join("\n");
            assert!(scores(&half, &[]).is_err(), "{half}");
        }
    }
}
