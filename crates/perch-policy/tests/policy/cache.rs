// SPDX-License-Identifier: GPL-2.0-or-later
//! The reference for cache-aware wake-up (docs/mechanisms/cache.md), CPU by CPU as the text has
//! it, and for perch mode's thresholds as docs/mechanisms/cache.md has them.

use perch_policy::{CacheStep, Mode};

use crate::model::Model;
use crate::scenario::Home;

/// `prev'` of §3, and what was done.
pub fn prev(m: &Model) -> (usize, CacheStep) {
    let home = m.s.wake.prev;
    let on = matches!(m.cache, Mode::Posted | Mode::Perch);
    let Some((process, pref)) = m.s.home.as_ref().filter(|_| on).and_then(|h| Some((h, h.pref?)))
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
    m.shape.llc[cpu].as_deref().expect("preferred CPUs have an LLC")
}

/// Whether the wakee's process prefers an LLC.
pub fn prefers(m: &Model) -> bool {
    matches!(m.cache, Mode::Posted | Mode::Perch)
        && m.s.home.as_ref().is_some_and(|h| h.pref.is_some())
}

/// Why `valid(c, p)` of §3 is false.
fn full(m: &Model, process: &Home, llc: &[usize]) -> Option<CacheStep> {
    let width = llc.len() as u32;
    let (util, nr) = m.s.state.full[llc[0]];
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
        return leave(m, process).map_or((home, CacheStep::None), gone);
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
    leave(m, process).map_or((home, last), gone)
}

fn gone(cpu: usize) -> (usize, CacheStep) {
    (cpu, CacheStep::Redirected)
}

/// The way out of a crowded LLC: an idle CPU of the next one with clearly fewer tasks and clearly
/// less used; preferred ones first.
fn leave(m: &Model, process: &Home) -> Option<usize> {
    let leaders: Vec<usize> = {
        let leads = |&c: &usize| m.shape.llc[c].as_ref().is_some_and(|llc| llc[0] == c);
        (0..m.shape.nr_cpus()).filter(leads).collect()
    };
    let home = m.shape.llc[m.s.wake.prev].as_ref()?[0];
    let nr = |leader: usize| m.s.state.full[leader].1 as usize;
    let cores = |leader: usize| {
        let cpus = llc(m, leader).iter();
        cpus.filter(|&&c| m.shape.core[c][0] == c).count()
    };
    if nr(home) * 10 < cores(home) * 9 {
        return None;
    }
    let at = leaders.iter().position(|&l| l == home)?;
    let around: Vec<usize> =
        (1..leaders.len()).map(|k| leaders[(at + k) % leaders.len()]).collect();
    let (first, rest): (Vec<usize>, Vec<usize>) =
        around.into_iter().partition(|l| process.llcs.contains(l));
    first.into_iter().chain(rest).find_map(|leader| {
        let used = |leader: usize| f64::from(m.s.state.full[leader].0);
        let fewer =
            nr(leader) + 1 + cores(leader) / 8 < nr(home) && used(leader) / 7.0 < used(home) / 8.0;
        let idle = |&c: &usize| m.idle_ok(c) && suits(m, c);
        let idle: Vec<usize> = llc(m, leader).iter().copied().filter(idle).collect();
        let busy = |c: usize| move |&s: &usize| s != c && !m.s.state.idle[s];
        let alone = |c: &usize| !m.shape.core[*c].iter().any(busy(*c));
        let core = idle.iter().copied().find(alone);
        core.or(idle.first().copied()).filter(|_| fewer)
    })
}

/// Whether the search goes on for an idle core although this CPU is idle (perch): for a wakee that
/// comes from another LLC, and for one of a gathered process beside a busy sibling; while there is
/// thought to be an idle core, a budget to look for it, and fewer tasks than four fifths of the
/// cores.
pub fn passes(m: &Model, prev: usize, target: usize, cpu: usize) -> bool {
    let gathered = m.s.home.as_ref().is_some_and(|home| home.pref.is_some());
    let leads = |&c: &usize| m.shape.llc[c].as_ref().is_some_and(|llc| llc[0] == c);
    let one = (0..m.shape.nr_cpus()).filter(leads).count() < 2;
    if m.cache != Mode::Perch || !gathered || !m.shape.smt || one {
        return false;
    }
    let comes = prev != m.s.wake.prev;
    let busy = |&c: &usize| c != cpu && !m.s.state.idle[c];
    let beside = m.shape.core[cpu].iter().any(busy);
    let Some(llc) = m.shape.llc[target].as_ref().filter(|_| comes || beside) else {
        return false;
    };
    let state = &m.s.state;
    let cores = llc.iter().filter(|&&c| m.shape.core[c][0] == c).count();
    let (_, nr) = state.full[llc[0]];
    let sparse = f64::from(nr) < (cores as f64 * 0.8).ceil();
    sparse && state.idle_cores[llc[0]] && state.scan[llc[0]] > 0
}

fn enter(m: &Model, llc: &[usize], hot: usize) -> Result<usize, CacheStep> {
    let (util, nr) = m.s.state.full[llc[0]];
    let capacity: u32 = llc.iter().map(|&c| m.shape.capacity(c)).sum();
    let cores = llc.iter().filter(|&&c| m.shape.core[c][0] == c).count();
    let share = if cores < llc.len() { 0.4 } else { 0.6 };
    if f64::from(util) >= f64::from(capacity) * share {
        return Err(CacheStep::FullUtil);
    }
    if f64::from(nr) >= (cores as f64 * 0.8).ceil() {
        return Err(CacheStep::FullRunnable);
    }
    room(m, llc, hot).ok_or(CacheStep::Unfit)
}

/// The hot CPU, or the first of the LLC, where the wakee may run and fits.
fn room(m: &Model, llc: &[usize], hot: usize) -> Option<usize> {
    let rest = llc.iter().copied();
    std::iter::once(hot).chain(rest).find(|&c| suits(m, c))
}

fn suits(m: &Model, cpu: usize) -> bool {
    m.s.allowed[cpu] && (!m.shape.asymmetric() || m.stock_fits(cpu))
}
