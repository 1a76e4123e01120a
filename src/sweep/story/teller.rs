//! Teller: who is told how a story goes, and looks meanwhile whether another adapter goes on.

use super::Chapter;
use super::own_loss::{OwnLoss, is_own_failure, records_beside};
use crate::sweep::Planned;
use crate::sweep::kept::Kept;
use crate::sweep::limit::{Limit, fill_gaps, highest_descriptor, open_descriptors};
use crate::sweep::peer::StartPeer;
use crate::sweep::play::{Played, Told};
use crate::sweep::step::{Other, step};
use crate::sweep::strike::{has_struck_here, struck_on};
use crate::sweep::waiters::Waiters;
use crate::{Adapter, Device, HwQueue, HwQueueOptions};
use rustix::fd::OwnedFd;
use std::fmt::Display;

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
    /// The story has lost an engine of the adapter that it is at ([`own_loss`](super::own_loss)).
    pub(in crate::sweep) own_loss: Option<OwnLoss>,
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

    /// Something is made for a device, at the second try where a fault has the first one refused. Then the first leaves
    /// nothing on the adapter and the device, which live on.
    pub(super) fn make<T, E: Display>(
        &mut self,
        what: &str,
        device: &Device,
        make: impl FnMut() -> Result<T, E>,
    ) -> Result<T, Told> {
        let before = Kept::of(device);
        self.again_where(what, make, || before.left(device))
    }

    /// The same of what has more of an adapter than a device's, and may keep it.
    pub(super) fn again<T, E: Display>(
        &mut self,
        what: &str,
        act: impl FnMut() -> Result<T, E>,
    ) -> Result<T, Told> {
        self.again_where(what, act, Vec::new)
    }

    /// A queue on a node.
    pub(super) fn queue_on(&mut self, device: &Device, node_ordinal: u32) -> Result<HwQueue, Told> {
        let options = HwQueueOptions {
            node_ordinal,
            ..HwQueueOptions::default()
        };
        self.make("a queue", device, || device.create_hw_queue_with(options))
    }

    fn again_where<T, E: Display>(
        &mut self,
        what: &str,
        mut act: impl FnMut() -> Result<T, E>,
        left: impl FnOnce() -> Vec<String>,
    ) -> Result<T, Told> {
        let is_to_come = struck_on().is_none() && self.planned.strikes_once();
        let ended = step(what, act());
        // What strikes on another thread may stop all that there is.
        let is_tried_again = is_to_come && has_struck_here();
        match ended {
            Err(refused) if is_tried_again => {
                self.played.tried_again = Some(refused);
                self.played.left.extend(left());
                step(&format!("{what}, tried again"), act())
            }
            ended => ended,
        }
    }

    /// What is told of an adapter, which has its own errors and says what it has to say beside them.
    pub(super) fn of_adapter(
        &mut self,
        tell: impl FnOnce(&mut Self) -> Result<(), Told>,
    ) -> Result<(), Told> {
        let errors = |played: &Played| (played.told.len(), played.tried_again.is_some());
        let (said, had) = (self.played.announced.len(), errors(&self.played));
        let told = tell(self);
        let played = &mut self.played;
        if told.is_err() || errors(played) != had {
            let beside = &played.announced[said..];
            played.announced_with_errors.extend_from_slice(beside);
        }
        told
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
        let own_loss = self.own_loss.take();
        let announced = &mut self.played.announced;
        let records = adapter.os().records();
        let beside = records_beside(&records, own_loss);
        announced.extend(beside.map(ToString::to_string));
        if let Some(stopped) = adapter.os().stopped() {
            announced.push(stopped.to_string());
        }
        let passed_over = adapter.providers().passed_over().iter();
        announced.extend(passed_over.map(|(name, why)| format!("{name} is passed over: {why}")));
        if let Some(elsewhere) = adapter.providers().elsewhere() {
            announced.push(elsewhere.why);
        }
        // Whoever waits for a lost engine is told no more than that it is lost.
        let nodes = 0..adapter.os().ddi().node_count();
        let failures = nodes.filter_map(|node| Some((node, adapter.engine_failure(node)?)));
        let beside =
            failures.filter(|(node, why)| own_loss.is_none() || !is_own_failure(*node, why));
        announced.extend(beside.map(|(_, why)| why));
        if let Err(why) = adapter.os().native_fence_caps() {
            announced.push(why.to_string());
        }
    }
}

#[cfg(test)]
impl<'a> Teller<'a> {
    /// One of a chapter's test: a mapping may be refused, and there is no second process.
    pub(super) fn of_test(other: &'a mut Other) -> Self {
        Self {
            other,
            start_peer: &|_| unreachable!("nobody starts a second process"),
            others: None,
            highest_descriptor: 0,
            played: Played::default(),
            planned: Planned::Mapping(1),
            chapter: None,
            limited: None,
            own_loss: None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use crate::supply::MAPPINGS;
    use crate::sweep::model_adapter::model_adapter;

    fn device() -> Device {
        model_adapter().create_device()
    }

    /// What a fault has refused is made at the second try; what the first has left is seen on the adapter, which lives on.
    ///
    /// Kills `what-was-refused-is-not-tried-again`, `what-a-refused-call-leaves-is-not-looked-at`.
    #[test]
    fn what_was_refused_once_is_tried_again_and_what_it_left_is_seen() {
        let mut other = Other::of(device()).unwrap();
        let device = device();
        let mut teller = Teller::of_test(&mut other);
        let mut tries = 0;
        let made = teller.make("a mapping", &device, || {
            tries += 1;
            if tries == 1 {
                std::mem::forget(device.create_fence(0));
                MAPPINGS.refuse(1);
            }
            MAPPINGS.ask_for("a mapping")
        });
        assert_eq!(made, Ok(()));
        let refused = teller.played.tried_again.unwrap();
        assert_eq!(refused.step, "a mapping");
        let left = teller.played.left;
        assert!(
            left.iter().any(|left| left.starts_with("native fence")),
            "{left:?}"
        );
        assert!(
            left.iter().any(|left| left.starts_with("handle")),
            "{left:?}"
        );
    }

    /// An adapter's error is of what that adapter said, whether the story ends by it or one of its waiters was told it.
    ///
    /// Kills `an-error-is-of-all-that-was-said`.
    #[test]
    fn what_an_adapter_says_stands_with_its_own_errors() {
        let mut other = Other::of(device()).unwrap();
        let mut teller = Teller::of_test(&mut other);
        let error = Told {
            step: "a wait".into(),
            error: "it is lost".into(),
        };
        let mut tell = |said: &str, waiters: &[Told], ended: Result<(), Told>| {
            let told = teller.of_adapter(|teller| {
                teller.played.announced.push(said.into());
                teller.played.told.extend_from_slice(waiters);
                ended.clone()
            });
            assert_eq!(told, ended);
            teller.played.announced_with_errors.clone()
        };
        assert_eq!(tell("first", &[], Ok(())), [""; 0]);
        assert_eq!(
            tell("second", std::slice::from_ref(&error), Ok(())),
            ["second"]
        );
        assert_eq!(tell("third", &[], Ok(())), ["second"]);
        assert_eq!(tell("fourth", &[], Err(error)), ["second", "fourth"]);
    }
}
