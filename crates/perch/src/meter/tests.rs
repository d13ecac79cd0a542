// SPDX-License-Identifier: GPL-2.0-or-later
//! Meters by a clock that the tests set, on a terminal that keeps what it is sent.

use std::sync::{Arc, Mutex};

use indicatif::TermLike;

use super::*;

/// A clock and a terminal's text.
#[derive(Clone, Debug, Default)]
struct Bench {
    now: Arc<Mutex<Duration>>,
    text: Arc<Mutex<String>>,
}

impl Bench {
    fn meter(&self, what: &str, unit: Unit, quiet: bool) -> Meter {
        Meter::amid(Box::new(self.clone()), what, unit, quiet)
    }

    fn set(&self, seconds: f64) {
        *self.now.lock().unwrap() = Duration::from_secs_f64(seconds);
    }

    fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }
}

impl Surroundings for Bench {
    fn elapsed(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn target(&self) -> ProgressDrawTarget {
        ProgressDrawTarget::term_like(Box::new(self.clone()))
    }
}

/// All that moves the cursor leaves the text alone.
impl TermLike for Bench {
    fn width(&self) -> u16 {
        120
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.write_str(line)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.text.lock().unwrap().push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn long_work_has_a_bar_with_rate_and_time_left() {
    let bench = Bench::default();
    let meter = bench.meter("tbench:n=4", Unit::Each, false);
    bench.set(1.9);
    meter.advance(3, 10);
    assert_eq!(bench.text(), "");
    bench.set(2.1);
    meter.advance(4, 10);
    let text = bench.text();
    assert!(text.contains("tbench:n=4 ["), "{text:?}");
    assert!(text.contains("4/10, "), "{text:?}");
    assert!(text.contains("/s, ") && text.contains(" left"), "{text:?}");
    bench.set(3.25);
    meter.advance(10, 10);
    assert_eq!(meter.words("simulations", 2), "tbench:n=4: 10 simulations in 3.2 s on 2 threads");
}

/// One of four simulations took 3 s, and a tenth of the work: 27 s are left.
#[test]
fn time_left_follows_from_costs() {
    let bench = Bench::default();
    let meter = bench.meter("s.toml", Unit::Weighed, false);
    meter.advance_by_cost(0, 4, 0.0);
    bench.set(3.0);
    meter.advance_by_cost(1, 4, 0.1);
    let text = bench.text();
    assert!(text.contains("1/4, ") && text.contains(", 27s left"), "{text:?}");
    // Sums of parts may end beside 1.
    meter.advance_by_cost(4, 4, 1.0 + 1e-12);
    // Before the first simulation is over, nothing is known.
    let bench = Bench::default();
    let meter = bench.meter("s.toml", Unit::Weighed, false);
    bench.set(3.0);
    meter.advance_by_cost(0, 4, 0.0);
    let text = bench.text();
    assert!(text.contains("0/4, ") && !text.contains(" left"), "{text:?}");
}

#[test]
fn quiet_work_draws_nothing() {
    let bench = Bench::default();
    let meter = bench.meter("tbench:n=4", Unit::Each, true);
    bench.set(100.0);
    meter.advance(4, 10);
    assert_eq!(bench.text(), "");
}

/// Where the total is unknown the bar shows the amount read.
#[test]
fn reading_has_a_bar_until_the_input_ends() {
    let bench = Bench::default();
    let meter = bench.meter("stdin", Unit::Bytes, false);
    let mut reader = Metered::new(&[0u8; 4096][..], meter, 0);
    let mut buffer = [0; 3000];
    assert_eq!(reader.read(&mut buffer).unwrap(), 3000);
    assert_eq!(bench.text(), "");
    bench.set(2.1);
    assert_eq!(reader.read(&mut buffer).unwrap(), 1096);
    let text = bench.text();
    assert!(text.contains("stdin 4.00 KiB, "), "{text:?}");
    assert!(text.contains("iB/s"), "{text:?}");
    assert_eq!(reader.read(&mut buffer).unwrap(), 0);
    assert!(reader.meter.bar.is_finished());
}
