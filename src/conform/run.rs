//! Run: a check on a subject, and what came of it.

use super::ground::ResetFailed;
use super::{Check, Ground, Subject, Unfit};
use crate::sync::Arc;
use anyhow::{anyhow, bail};
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a check takes whose waits all fail.
const MOST: Duration = Duration::from_secs(180);

/// Whether a rule holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "why", rename_all = "kebab-case")]
pub enum Verdict {
    /// All was seen that the check looks at.
    Holds,
    /// Something else was seen.
    Broken(String),
    /// It could not be asked here: why.
    Skipped(String),
}

/// What came of a check.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Whether its rule holds.
    pub verdict: Verdict,
    /// How long that took.
    pub took: Duration,
    /// It was skipped since the driver itself failed to reset its adapter, which a driver may where an engine hangs, or
    /// where it says that it resets none that runs.
    pub reset_failed: bool,
    /// Parts of it that were left out, though the rest was asked: why.
    pub left_out: Vec<String>,
}

/// Asks a subject one rule. What panics breaks the rule; a check that does not end within three minutes does as well, and
/// its thread is left behind.
#[must_use]
pub fn run(check: &Check, subject: &Arc<dyn Subject>) -> Ran {
    let began = Instant::now();
    let (told, mut left_out) = told(check, subject);
    let reset_failed = told.as_ref().is_err_and(anyhow::Error::is::<ResetFailed>);
    let verdict = verdict(told);
    if matches!(verdict, Verdict::Skipped(_)) {
        left_out.clear();
    }
    Ran {
        verdict,
        took: began.elapsed(),
        reset_failed,
        left_out,
    }
}

fn verdict(told: anyhow::Result<()>) -> Verdict {
    let Err(error) = told else {
        return Verdict::Holds;
    };
    let unfit = error.downcast_ref().map(|Unfit(why)| why);
    let reset_failed = error.downcast_ref().map(|ResetFailed(why)| why);
    match unfit.or(reset_failed) {
        Some(why) => Verdict::Skipped(why.clone()),
        None => Verdict::Broken(format!("{error:#}")),
    }
}

/// How the story ended, and what of it was left out.
fn told(check: &Check, subject: &Arc<dyn Subject>) -> (anyhow::Result<()>, Vec<String>) {
    let story = check.story;
    // What an earlier check left is not this one's.
    drop(subject.take_misdeeds());
    let (tell, ended) = mpsc::sync_channel(1);
    let subject = Arc::clone(subject);
    let thread = thread::Builder::new().name(check.rule.to_owned());
    let thread = thread.spawn(move || {
        let ground = Ground::new(&subject);
        let told = catch_unwind(AssertUnwindSafe(|| {
            let told = story(&ground).map_err(|error| ground.told_of(error));
            told.and_then(|()| ground.judge())
        }));
        // Who waited long enough is gone.
        let _ = tell.send((told, ground.take_left_out()));
    });
    let thread = match thread {
        Ok(thread) => thread,
        Err(error) => {
            let why = format!("the system gives no thread for it: {error}");
            return (Err(Unfit(why).into()), Vec::new());
        }
    };
    let Ok((told, left_out)) = ended.recv_timeout(MOST) else {
        let late = anyhow!("the check did not end within {} s", MOST.as_secs());
        return (Err(late), Vec::new());
    };
    // What it made goes before the program does.
    let _ = thread.join();
    let told = told.unwrap_or_else(|panic| bail!("it panicked: {}", said(panic.as_ref())));
    (told, left_out)
}

/// What a panic said.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "with no words".into())
}
