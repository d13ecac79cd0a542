// SPDX-License-Identifier: GPL-2.0-only
//! The reference for cache-aware wake-up (mechanisms.md §3), CPU by CPU as the text has it, and
//! for perch mode's thresholds as docs/cache.md has them.

use perch_policy::{CacheStep, Mode};

use crate::model::Model;
use crate::scenario::Home;

/// `prev'` of §3, and what was done.
pub fn prev(m: &Model) -> (usize, CacheStep) {
    let home = m.s.wake.prev;
    let on = matches!(m.cache, Mode::Posted | Mode::Perch);
    let Some((process, pref)) =
        m.s.home
            .as_ref()
            .filter(|_| on)
            .and_then(|h| Some((h, h.pref?)))
    else {
        return (home, CacheStep::None);
    };
    if m.cache == Mode::Perch {
        return most(m, process, pref);
    }
    if m.shape.share_llc(home, pref) {
        return (home, CacheStep::None);
    }
    match full(m, process, llc(m, pref)) {
        None => (pref, CacheStep::Redirected),
        Some(why) => (home, why),
    }
}

fn llc<'a>(m: &'a Model, cpu: usize) -> &'a [usize] {
    m.shape.llc[cpu]
        .as_deref()
        .expect("preferred CPUs have an LLC")
}

/// Why `valid(c, p)` of §3 is false.
fn full(m: &Model, process: &Home, llc: &[usize]) -> Option<CacheStep> {
    let width = llc.len() as u32;
    let Some((util, nr)) = m.s.state.full[llc[0]] else {
        return Some(CacheStep::FullUtil);
    };
    if process.threads < width {
        None
    } else if f64::from(util) >= f64::from(width) * 1024.0 / 4.0 {
        Some(CacheStep::FullUtil)
    } else if f64::from(nr) >= f64::from(width) / 3.0 {
        Some(CacheStep::FullRunnable)
    } else {
        None
    }
}

/// perch mode: "both checks always, whatever the thread count", on the waker's preferred LLC, the
/// most preferred, then the others; a CPU that is allowed and fits.
fn most(m: &Model, process: &Home, pref: usize) -> (usize, CacheStep) {
    let home = m.s.wake.prev;
    let first = |cpu: usize| m.shape.llc[cpu].as_ref().map(|llc| llc[0]);
    let preferred = |cpu: usize| first(cpu).is_some_and(|f| process.llcs.contains(&f));
    if preferred(home) {
        return (home, CacheStep::None);
    }
    let own = first(pref).expect("an LLC");
    let mut order = vec![own];
    if preferred(m.s.wake.this) {
        order.insert(0, first(m.s.wake.this).expect("an LLC"));
    }
    order.dedup();
    // LLCs are numbered as their first CPUs are.
    let tried = order.clone();
    order.extend(process.llcs.iter().filter(|f| !tried.contains(f)));
    let mut last = CacheStep::None;
    for leader in order {
        let hot = if leader == own { pref } else { leader };
        match enter(m, llc(m, leader), hot) {
            Ok(cpu) => return (cpu, CacheStep::Redirected),
            Err(why) => last = why,
        }
    }
    (home, last)
}

fn enter(m: &Model, llc: &[usize], hot: usize) -> Result<usize, CacheStep> {
    let (util, nr) = m.s.state.full[llc[0]].unwrap_or((0, 0));
    let capacity: u32 = llc.iter().map(|&c| m.shape.capacity(c)).sum();
    let cores = llc.iter().filter(|&&c| m.shape.core[c][0] == c).count();
    let share = if cores < llc.len() { 0.4 } else { 0.6 };
    if f64::from(util) >= f64::from(capacity) * share {
        return Err(CacheStep::FullUtil);
    }
    if f64::from(nr) >= (cores as f64 * 0.8).ceil() {
        return Err(CacheStep::FullRunnable);
    }
    let suits = |&c: &usize| m.s.allowed[c] && (!m.shape.asymmetric() || m.stock_fits(c));
    let rest = llc.iter().copied();
    let mut candidates = std::iter::once(hot).chain(rest);
    candidates.find(suits).ok_or(CacheStep::Unfit)
}
