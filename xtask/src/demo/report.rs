//! What happened, once for people and once for programs.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use indicatif::HumanCount;
use serde::Serialize;

use super::check::Verdict;
use super::log::Recorded;
use super::plan::Command;
use super::rush::{Answered, Outcome};

/// How many courses the table of the most wanted ones has.
const SHOWN_COURSES: usize = 5;

/// Everything there is to tell.
pub(super) struct Report<'a> {
    pub(super) answers: &'a [Answered],
    pub(super) log: &'a [Recorded],
    pub(super) verdict: &'a Verdict,
    pub(super) took: Duration,
    /// How often the host was killed, if that was part of the show.
    pub(super) killed: Option<usize>,
}

/// The last line of the demo's output.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    accepted: usize,
    rejected: BTreeMap<&'a str, usize>,
    conflicts: u64,
    commands_per_s: f64,
    events: usize,
    violations: usize,
    gaps: u64,
    /// Commands that met a conflict at every attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    exhausted: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    killed: Option<usize>,
    /// Commands whose answer was lost, as with a host that is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<usize>,
}

impl<'a> Report<'a> {
    pub(super) fn summary(&self) -> Summary<'a> {
        let count = |wanted: fn(&Outcome) -> bool| self.answers.iter().filter(|a| wanted(&a.outcome)).count();
        let exhausted = count(|outcome| matches!(outcome, Outcome::Exhausted));
        let unknown = count(|outcome| matches!(outcome, Outcome::Unknown));
        let commands_per_s = self.answers.len() as f64 / self.took.as_secs_f64();
        Summary {
            accepted: count(|outcome| matches!(outcome, Outcome::Accepted { .. })),
            rejected: self.rejections().into_iter().map(|(code, (count, _))| (code, count)).collect(),
            conflicts: self.answers.iter().map(|answered| answered.conflicts).sum(),
            commands_per_s: (commands_per_s * 10.0).round() / 10.0,
            events: self.log.len(),
            violations: self.verdict.violations(),
            gaps: self.verdict.gaps,
            exhausted: (exhausted > 0).then_some(exhausted),
            killed: self.killed,
            unknown: (unknown > 0 || self.killed.is_some()).then_some(unknown),
        }
    }

    /// The refusals by code: how many, and one of them in the handler's own words.
    fn rejections(&self) -> BTreeMap<&'a str, (usize, &'a str)> {
        let mut rejections = BTreeMap::new();
        for answered in self.answers {
            if let Outcome::Rejected { code, detail, .. } = &answered.outcome {
                rejections.entry(code.as_str()).or_insert((0, detail.as_str())).0 += 1;
            }
        }
        rejections
    }

    pub(super) fn print(&self) {
        println!("{}\n\nThe most wanted courses\n{}\n", self.what_happened(), self.most_wanted());
        for rule in &self.verdict.rules {
            println!("{}", rule.lines().join("\n"));
        }
        match self.verdict.gaps {
            0 => println!("✓ Positions run from 1 to {} without a gap", count(self.log.len())),
            gaps => println!("✗ {gaps} positions are missing"),
        }
        println!();
    }

    fn what_happened(&self) -> Table {
        let summary = self.summary();
        let mut table = table(["What happened", "How often", ""]);
        let mut row = |what: &str, how_many: String, note: &str| {
            table.add_row([what, &how_many, note]);
        };
        row("accepted", count(summary.accepted), "");
        let mut rejections: Vec<_> = self.rejections().into_iter().collect();
        rejections.sort_by_key(|&(_, (how_many, _))| std::cmp::Reverse(how_many));
        for (code, (how_many, detail)) in rejections {
            row(&format!("refused: {code}"), count(how_many), detail);
        }
        if let Some(exhausted) = summary.exhausted {
            row("given up", count(exhausted), "every attempt met a conflict");
        }
        if let Some(unknown) = summary.unknown {
            row("answer lost", count(unknown), &format!("kills of the host: {}", self.killed.unwrap_or(0)));
        }
        row(
            "conflict",
            HumanCount(summary.conflicts).to_string(),
            "decided again, on the events that came between",
        );
        row("commands a second", count(summary.commands_per_s as usize), "");
        row("latency", format!("{} ms", self.latency(0.5)), &self.slower_latencies());
        table
    }

    fn slower_latencies(&self) -> String {
        let [p95, p99, max] = [0.95, 0.99, 1.0].map(|share| self.latency(share));
        format!("for half of them, p95 {p95} ms, p99 {p99} ms, max {max} ms")
    }

    /// How many milliseconds this share of the commands took at most.
    fn latency(&self, share: f64) -> String {
        let mut latencies: Vec<_> = self.answers.iter().map(|answered| answered.latency).collect();
        latencies.sort_unstable();
        let rank = (latencies.len() as f64 * share).ceil() as usize;
        let latency = latencies.get(rank.saturating_sub(1)).copied().unwrap_or_default();
        format!("{:.1}", latency.as_secs_f64() * 1000.0)
    }

    fn most_wanted(&self) -> Table {
        let mut courses: BTreeMap<&str, Course> = BTreeMap::new();
        for answered in self.answers {
            if let Command::Subscribe { course_id, .. } = &answered.command {
                courses.entry(course_id).or_default().applications += 1;
            }
        }
        for Recorded { written, .. } in self.log {
            let data = &written.data;
            let Some(course) = data["courseId"].as_str().and_then(|id| courses.get_mut(id)) else { continue };
            match written.event_type.as_str() {
                "StudentSubscribedToCourse" => course.students += 1,
                _ => course.places.extend(data["capacity"].as_u64().or(data["newCapacity"].as_u64())),
            }
        }
        let mut courses: Vec<_> = courses.into_iter().collect();
        courses.sort_by_key(|(_, course)| std::cmp::Reverse(course.applications));
        let mut table = table(["Course", "Applications", "Students", "Places"]);
        for (id, course) in courses.into_iter().take(SHOWN_COURSES) {
            let places: Vec<_> = course.places.iter().map(u64::to_string).collect();
            table.add_row([id, &count(course.applications), &count(course.students), &places.join(" → ")]);
        }
        table
    }
}

#[derive(Default)]
struct Course {
    applications: usize,
    students: usize,
    /// Every capacity it had, in order.
    places: Vec<u64>,
}

/// A table whose second column is for numbers.
fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(header);
    if let Some(numbers) = table.column_mut(1) {
        numbers.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn count(n: usize) -> String {
    HumanCount(n as u64).to_string()
}
