// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads with clients on other computers, and the chat rooms: the score of one client or room
//! alone, and sums that are conserved.

use perch_policy::Era;
use perch_sim::Outcome;

use crate::common::{self, MS, machine};

fn run(spec: &str, ms: [u64; 2]) -> Outcome {
    common::run(&machine("x5570"), Era::V6_5, spec, ms)
}

/// A request waits for the network twice and for the work on either side.
#[test]
fn one_client_alone_waits_for_the_network() {
    let each_us = |spec: &str| {
        let outcome = run(spec, [50, 1000]);
        1e6 / outcome.metrics.counted as f64
    };
    let near = each_us("tbench-net:n=1,latency_us=20");
    let far = each_us("tbench-net:n=1,latency_us=220");
    assert!((far - near - 400.0).abs() < 12.0, "{near} {far}");
    assert!((48.0..90.0).contains(&near), "{near}");
    let thinks = each_us("trade:users=1,think_us=20000");
    assert!((25_400.0..27_500.0).contains(&thinks), "{thinks}");
}

/// Of a burst of 100 the first goes alone and 99 together: the network's two ways are waited for
/// twice a burst, and so are the client's calls.
#[test]
fn a_burst_waits_for_the_network_twice() {
    let burst_us = |latency: u64| {
        let spec = format!("httperf:calls=100000,latency_us={latency}");
        let outcome = run(&spec, [50, 4000]);
        4e6 / outcome.metrics.counted as f64 * 100.0
    };
    let (near, far) = (burst_us(20), burst_us(1020));
    // A task that waits that long wakes up on a CPU in C6, whose exit takes 200 us.
    assert!((4000.0..4420.0).contains(&(far - near)), "{near} {far}");
    // 99 calls wait for the server: 60 and 10 us each, and a switch now and then.
    assert!((7000.0..7800.0).contains(&near), "{near}");
}

/// Ten rooms keep the CPUs as busy as two do; the messages of one user reach no user
/// in another room.
#[test]
fn two_rooms_fill_the_machine() {
    let rooms = |n: u32| run(&format!("volano:rooms={n}"), [50, 200]);
    let (two, ten) = (rooms(2), rooms(10));
    let ratio = ten.scores[0].value / two.scores[0].value;
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    let idle = 16 * 200 * MS - two.metrics.busy_ns;
    assert!(idle < 16 * 20 * MS, "{idle}");
}

/// More clients ask more, up to what the CPUs can serve.
#[test]
fn throughput_grows_with_clients() {
    let rate = |n: u32| {
        let outcome = run(&format!("tbench-net:n={n}"), [50, 300]);
        outcome.scores[0].value
    };
    let (one, eight) = (rate(1), rate(8));
    assert!((4.0..8.2).contains(&(eight / one)), "{one} {eight}");
}
