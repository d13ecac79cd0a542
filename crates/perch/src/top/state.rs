// SPDX-License-Identifier: GPL-2.0-or-later
//! What `perch top` knows and what its keys change; it asks nobody and has no clock.

use perch_plan::interface::Event;
use perch_scheduler::stats::Report;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::groups::Group;

/// A reason or an event, counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Its name, as `perch stats` shows it.
    pub name: String,
    /// True for a reason of a decision, false for an event.
    pub is_reason: bool,
    /// How often in a second of the last interval.
    pub rate: f64,
    /// How often since the scheduler was loaded.
    pub total: u64,
}

/// What the screen shows.
#[derive(Debug)]
pub struct State {
    /// The last report.
    pub report: Report,
    /// What happened between the last two; the whole of the first.
    pub change: Report,
    /// The cgroups that used a CPU between the last two, the busiest first.
    pub groups: Vec<Group>,
    /// How many counts are above the first one shown; drawing holds it to what there is.
    pub above: usize,
    /// How often the scheduler went while the screen watched.
    pub losses: u64,
    /// Why there is no newer report, if so.
    pub problem: Option<String>,
}

impl State {
    /// The state after the first report.
    pub fn new(report: Report) -> State {
        State {
            change: report.clone(),
            report,
            groups: Vec::new(),
            above: 0,
            losses: 0,
            problem: None,
        }
    }

    /// A new report has come, and a look at the cgroups with it.
    pub fn take(&mut self, report: Report, groups: Vec<Group>) {
        self.change = report.since(&self.report);
        self.report = report;
        self.groups = groups;
        self.problem = None;
    }

    /// No report has come.
    pub fn lose(&mut self, problem: &str) {
        if self.problem.is_none() {
            self.losses += 1;
        }
        self.problem = Some(problem.to_string());
    }

    /// Somebody pressed a key. True: they want to end.
    pub fn press(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return true,
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Down | KeyCode::Char('j') => self.above = self.above.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.above = self.above.saturating_sub(1),
            KeyCode::PageDown => self.above = self.above.saturating_add(10),
            KeyCode::PageUp => self.above = self.above.saturating_sub(10),
            KeyCode::Home => self.above = 0,
            KeyCode::End => self.above = usize::MAX,
            _ => {}
        }
        false
    }

    /// How often something happened in a second, that happened so often in the last interval.
    pub fn rate(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.change.uptime_ns.max(1) as f64
    }

    /// The reasons and events that there ever were, in order.
    pub fn counts(&self) -> Vec<Count> {
        let reasons = self.report.reasons.iter().map(|(name, reason)| {
            let change = self.change.reasons.get(name);
            let change = change.map_or(0, |change| change.wakeups);
            (name.clone(), true, change, reason.wakeups)
        });
        let events = Event::ALL.iter().map(|&event| {
            let name = event.name().replace('_', " ");
            let (change, total) = (self.change.event(event), self.report.event(event));
            (name, false, change, total)
        });
        let all = reasons.chain(events).filter(|(.., total)| *total > 0);
        let mut counts: Vec<_> = all
            .map(|(name, is_reason, change, total)| Count {
                name,
                is_reason,
                rate: self.rate(change),
                total,
            })
            .collect();
        // A stable order, so that equals do not change places from look to look.
        counts.sort_by(|a, b| {
            let first = b.rate.total_cmp(&a.rate).then(b.total.cmp(&a.total));
            first.then(a.name.cmp(&b.name)).then(b.is_reason.cmp(&a.is_reason))
        });
        counts
    }
}
