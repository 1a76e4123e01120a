//! Teller: who is told how a story goes, and looks meanwhile whether another adapter goes on.

use crate::Adapter;
use crate::sweep::limit::highest_descriptor;
use crate::sweep::play::{Played, Told};
use crate::sweep::step::Other;

/// See the file's head.
pub(in crate::sweep) struct Teller<'a> {
    pub(in crate::sweep) other: &'a mut Other,
    /// What the other adapter said first, where it did not go on.
    pub(in crate::sweep) others: Option<Told>,
    pub(in crate::sweep) highest_descriptor: u64,
    pub(in crate::sweep) played: Played,
}

impl Teller<'_> {
    /// Between two steps: the other adapter goes on.
    pub(in crate::sweep) fn beat(&mut self) {
        self.highest_descriptor = self.highest_descriptor.max(highest_descriptor());
        if self.others.is_none() {
            self.others = self.other.pass().err();
        }
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
