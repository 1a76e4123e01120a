//! Section: a scenario on the page, with all of its groups.

use super::super::cells::{HEADER, baseline, cells};
use super::super::growth::growth;
use super::super::remarks::remarks;
use super::super::verdict::{scenario_title, title, verdict};
use super::super::{Report, Row};
use super::chart::sign;
use super::distribution::distribution;
use super::growth_chart::growth_charts;
use super::handoff_picture::handoff_picture;
use crate::workload::Scenario;
use maud::{Markup, html};

/// See the file's head.
pub(super) struct Section<'a> {
    pub(super) scenario: Scenario,
    groups: Vec<Vec<&'a Row>>,
    report: &'a Report,
}

impl<'a> Section<'a> {
    /// Of all scenarios that were measured, in their order.
    pub(super) fn all(report: &'a Report) -> Vec<Self> {
        let mut sections: Vec<Self> = Vec::new();
        for group in report.groups() {
            let scenario = group[0].scenario;
            match sections.iter_mut().find(|one| one.scenario == scenario) {
                Some(section) => section.groups.push(group),
                None => sections.push(Self {
                    scenario,
                    groups: vec![group],
                    report,
                }),
            }
        }
        sections
    }

    fn growth(&self) -> Option<String> {
        growth(&self.report.rows.iter().collect::<Vec<_>>())
    }

    pub(super) fn title(&self) -> &'static str {
        scenario_title(self.scenario)
    }

    pub(super) fn markup(&self) -> Markup {
        html! {
            section id=(self.scenario) {
                h2 { (self.title()) }
                @if self.scenario == Scenario::Scale && let Some(growth) = self.growth() { p.verdict { (growth) } }
                (growth_charts(self.scenario, &self.groups))
                @for group in &self.groups { (of_group(group)) }
                @if self.scenario == Scenario::Handoff { (handoff_picture(self.report)) }
            }
        }
    }
}

fn of_group(group: &[&Row]) -> Markup {
    let first = group[0];
    let timeline = baseline(group);
    html! {
        article {
            @if let Some(form) = first.form() { h3 { (form) } }
            @if let Some(verdict) = verdict(group) { p.verdict { (verdict) } }
            @if let Some(picture) = distribution(group) { (picture) }
            div.table tabindex="0" role="region" aria-label=(format!("Figures of {}", title(first))) {
                table {
                    caption { "Times of one " (first.scenario.operation()) }
                    thead { tr { @for head in HEADER { th scope="col" { (head) } } } }
                    tbody {
                        @for row in group {
                            @let [name, figures @ ..] = cells(row, timeline);
                            tr class=(row.mechanism.name()) {
                                th scope="row" { span.sign { (sign(row.mechanism)) } (name) }
                                @for figure in figures { td { (figure) } }
                            }
                        }
                    }
                }
            }
            ul.remarks { @for line in remarks(group) { li { (line) } } }
        }
    }
}
