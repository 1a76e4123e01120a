//! Chrome line: a line of Chrome's trace events, and where it is written.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::io::{self, Write};

/// One line of the file.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) ph: &'static str,
    pub(super) pid: u32,
    pub(super) tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cat: Option<&'static str>,
    /// Microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u64>,
    /// Of its process alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id2: Option<LocalId>,
    /// That an arrow ends in the box around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bp: Option<&'static str>,
    /// Of an instant: how far its mark goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) s: Option<&'static str>,
    #[serde(skip_serializing_if = "Args::is_empty")]
    pub(super) args: Args<'a>,
}

impl<'a> Line<'a> {
    pub(super) fn new(ph: &'static str, (pid, tid): (u32, u32), name: &'a str) -> Self {
        Self {
            name,
            ph,
            pid,
            tid,
            cat: None,
            ts: None,
            dur: None,
            id: None,
            id2: None,
            bp: None,
            s: None,
            args: Args(Vec::new()),
        }
    }

    pub(super) fn at(self, ns: u64) -> Self {
        Self {
            ts: Some(us(ns)),
            ..self
        }
    }

    /// A box from one time to another; one that seems to end before it begins, since clocks may be off, has no length.
    pub(super) fn over(track: (u32, u32), name: &'a str, (begin, end): (u64, u64)) -> Self {
        Self {
            dur: Some(us(end.saturating_sub(begin))),
            ..Self::new("X", track, name).at(begin)
        }
    }

    /// A moment, marked on its track.
    pub(super) fn instant(track: (u32, u32), name: &'a str, at: u64) -> Self {
        Self {
            s: Some("t"),
            ..Self::new("i", track, name).at(at)
        }
    }

    pub(super) fn of(self, cat: &'static str) -> Self {
        Self {
            cat: Some(cat),
            ..self
        }
    }

    pub(super) fn with(mut self, name: &'a str, value: impl Into<Arg<'a>>) -> Self {
        self.args.0.push((name, value.into()));
        self
    }
}

#[derive(Serialize)]
pub(super) struct LocalId {
    pub(super) local: String,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Arg<'a> {
    Number(u64),
    Time(f64),
    Text(&'a str),
}

impl From<u64> for Arg<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

pub(super) struct Args<'a>(pub(super) Vec<(&'a str, Arg<'a>)>);

impl Args<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Args<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "of a trace, which lasts no 104 days"
)]
pub(super) fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

pub(super) struct Out<W> {
    pub(super) to: W,
    pub(super) is_first: bool,
}

impl<W: Write> Out<W> {
    pub(super) fn line(&mut self, line: &Line<'_>) -> io::Result<()> {
        self.to
            .write_all(if self.is_first { b"\n" } else { b",\n" })?;
        self.is_first = false;
        Ok(serde_json::to_writer(&mut self.to, line)?)
    }

    pub(super) fn process(&mut self, pid: u32, name: &str, order: u64) -> io::Result<()> {
        self.line(&Line::new("M", (pid, 0), "process_name").with("name", name))?;
        self.line(&Line::new("M", (pid, 0), "process_sort_index").with("sort_index", order))
    }

    pub(super) fn track(&mut self, track: (u32, u32), name: &str) -> io::Result<()> {
        self.line(&Line::new("M", track, "thread_name").with("name", name))?;
        let order = u64::from(track.1);
        self.line(&Line::new("M", track, "thread_sort_index").with("sort_index", order))
    }
}
