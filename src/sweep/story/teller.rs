//! Teller: who is told how a story goes, and looks meanwhile whether another adapter goes on.

use super::Chapter;
use crate::Adapter;
use crate::sweep::Planned;
use crate::sweep::limit::{Limit, fill_gaps, highest_descriptor, open_descriptors};
use crate::sweep::peer::StartPeer;
use crate::sweep::play::{Played, Told};
use crate::sweep::step::{Other, step};
use crate::sweep::waiters::Waiters;
use rustix::fd::OwnedFd;

/// See the file's head.
pub(in crate::sweep) struct Teller<'a> {
    pub(in crate::sweep) other: &'a mut Other,
    pub(in crate::sweep) start_peer: &'a StartPeer,
    /// What the other adapter said first, where it did not go on.
    pub(in crate::sweep) others: Option<Told>,
    pub(in crate::sweep) highest_descriptor: u64,
    pub(in crate::sweep) played: Played,
    pub(in crate::sweep) planned: Planned,
    /// The one that is told, and the descriptors that were open when it began.
    pub(in crate::sweep) chapter: Option<(Chapter, u64)>,
    /// Its limit, with what fills the gaps below.
    pub(in crate::sweep) limited: Option<(Limit, Vec<OwnedFd>)>,
}

impl Teller<'_> {
    /// Between two steps: the other adapter goes on.
    pub(in crate::sweep) fn beat(&mut self) {
        self.count();
        if self.others.is_none() {
            self.others = self.other.pass().err();
        }
    }

    /// Counts descriptors, which may be within a step too.
    pub(super) fn count(&mut self) {
        self.highest_descriptor = self.highest_descriptor.max(highest_descriptor());
        if let Some((chapter, before)) = self.chapter {
            // There is none to look by where all are taken.
            let all = self.number_in(chapter).unwrap_or(0);
            let more = open_descriptors().map_or(all, |open| open.saturating_sub(before));
            let row = chapter.descriptors().to_owned();
            let most = self.played.descriptors_in.entry(row).or_default();
            *most = more.max(*most);
        }
    }

    /// The descriptor of a chapter that is not to be had.
    fn number_in(&self, chapter: Chapter) -> Option<u64> {
        match self.planned {
            Planned::DescriptorIn(of, number) => (of == chapter).then_some(number),
            _ => None,
        }
    }

    /// A chapter begins, and with it the limit of its descriptors; that of the one before ends.
    pub(super) fn begin(&mut self, chapter: Chapter) -> Result<(), Told> {
        self.end_chapter();
        let number = self.number_in(chapter);
        let gaps = number.map(|_| fill_gaps()).transpose();
        let gaps = step("descriptors that fill gaps", gaps)?;
        self.chapter = open_descriptors().map(|open| (chapter, open));
        let limit = number.map(Limit::before).transpose();
        self.limited = step("a limit of descriptors", limit)?.zip(gaps);
        Ok(())
    }

    /// A chapter ends, and with it the limit of its descriptors.
    pub(super) fn end_chapter(&mut self) {
        self.limited = None;
        self.chapter = None;
    }

    /// Waiters end: what each was told that did not end well, and those that hang.
    pub(super) fn end(&mut self, waiters: Waiters) {
        let (by_waiters, hung) = waiters.end();
        let told = by_waiters.into_iter().map(|(step, error)| Told {
            step,
            error: error.to_string(),
        });
        self.played.told.extend(told);
        self.played.hung.extend(hung);
    }

    /// What an adapter says beside errors.
    pub(super) fn hear(&mut self, adapter: &Adapter) {
        let announced = &mut self.played.announced;
        let records = adapter.os().records();
        announced.extend(records.iter().map(ToString::to_string));
        if let Some(stopped) = adapter.os().stopped() {
            announced.push(stopped.to_string());
        }
        let passed_over = adapter.providers().passed_over().iter();
        announced.extend(passed_over.map(|(name, why)| format!("{name} is passed over: {why}")));
        if let Some(elsewhere) = adapter.providers().elsewhere() {
            announced.push(elsewhere.why);
        }
        if let Err(why) = adapter.os().native_fence_caps() {
            announced.push(why.to_string());
        }
    }
}
