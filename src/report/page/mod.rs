//! Page: the report as one file for a browser.
//!
//! Everything is in it, style and pictures too: nothing is loaded, no script runs. Pictures are SVG whose places are
//! shares of the width, so that text has its size on every screen; colours are the reader's theme's. What it says is what
//! the tables say ([`super::tables`]).
#![forbid(unsafe_code)]

mod axis;
mod chart;
mod distribution;
mod glance;
mod growth_chart;
mod handoff_picture;
mod section;

use super::Report;
use super::cells::LEGEND;
use super::remarks::{INTERRUPTED, about, not_run};
use crate::workload::Mechanism;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use section::Section;

const STYLE: &str = include_str!("style.css");

/// The whole page, as text of HTML.
#[must_use]
pub fn page(report: &Report) -> String {
    let sections = Section::all(report);
    let title = format!("nfence compare: {}", report.device.name);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(format!("nfence {}", report.version));
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { (head(report)) }
                main {
                    @if report.rows.is_empty() {
                        p { "Nothing was measured." }
                    } @else {
                        (glance::glance(report))
                        (contents(&sections))
                        @for section in &sections { (section.markup()) }
                    }
                    (left_out(report))
                }
                footer {
                    @for line in LEGEND.lines() { p { (line) } }
                    p {
                        "In the pictures of distributions: the thick bar is from the median to what nine of ten do not \
                         exceed, the thin one goes on to 99 of 100, the dot is the slowest; ticks below are the batches, each \
                         by its time per operation."
                    }
                    p { "Written by nfence " (report.version) "." }
                }
            }
        }
    };
    page.into_string()
}

fn head(report: &Report) -> Markup {
    html! {
        p.kind { "Native fences, timeline semaphores, monitored fences and the bare control: the same work by each" }
        h1 { (report.device.name) }
        p { (report.device.line()) }
        @for line in about(report) { p { (line) } }
        @if let Some(measured_at) = &report.measured_at { p { "Measured at " time datetime=(measured_at) { (measured_at) } } }
        @if report.interrupted { p.warning { (INTERRUPTED) } }
        (key(report))
    }
}

/// Which colour is whose.
fn key(report: &Report) -> Markup {
    let has_run = |mechanism: &Mechanism| report.rows.iter().any(|row| row.mechanism == *mechanism);
    html! {
        ul.key aria-label="Colours" {
            @for mechanism in Mechanism::ALL.into_iter().filter(has_run) {
                li class=(mechanism.name()) { span.sign { (chart::sign(mechanism)) } (mechanism.name()) }
            }
        }
    }
}

fn contents(sections: &[Section<'_>]) -> Markup {
    html! {
        nav aria-label="Scenarios" {
            ul {
                @for section in sections {
                    li { a href=(format!("#{}", section.scenario)) { (section.title()) } }
                }
            }
        }
    }
}

/// Who did not run.
fn left_out(report: &Report) -> Markup {
    html! {
        @if !report.not_run.is_empty() {
            section #not-run {
                h2 { "Not run" }
                ul { @for line in not_run(report) { li { (line) } } }
            }
        }
    }
}
