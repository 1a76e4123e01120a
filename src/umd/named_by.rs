//! Named by: whose handles a command list carries.
//!
//! A packet names a fence or an allocation by a number of its process's table. The list remembers the
//! process, so that a queue of another one refuses it and does not do to something else what was meant
//! for this (HQ-05). The engine does not rely on that: it looks in the table of the queue's process alone.

use crate::os::Process;
use crate::sync::Arc;
use std::sync::Weak;

/// See the file's head.
#[derive(Clone, Debug, Default)]
pub(super) enum NamedBy {
    /// Nothing is named.
    #[default]
    Nobody,
    /// All by this one. Not by its number, which is the adapter's; and while this is held no other
    /// process comes to lie at its address.
    One(Weak<Process>),
    /// No queue takes it.
    Several,
}

impl NamedBy {
    /// Something is named that `process` has opened.
    pub(super) fn add(&mut self, process: &Arc<Process>) {
        match self {
            Self::Nobody => *self = Self::One(Arc::downgrade(process)),
            Self::One(one) if one.as_ptr() == Arc::as_ptr(process) => {}
            Self::One(_) | Self::Several => *self = Self::Several,
        }
    }

    /// What is named in another place is named here too.
    pub(super) fn join(&mut self, other: &Self) {
        match (&*self, other) {
            (_, Self::Nobody) => {}
            (Self::Nobody, _) => self.clone_from(other),
            (Self::One(one), Self::One(another)) if Weak::ptr_eq(one, another) => {}
            (Self::One(_) | Self::Several, Self::One(_) | Self::Several) => *self = Self::Several,
        }
    }

    /// Whether nothing is named that `process` has not opened.
    pub(super) fn is(&self, process: &Arc<Process>) -> bool {
        match self {
            Self::Nobody => true,
            Self::One(one) => one.as_ptr() == Arc::as_ptr(process),
            Self::Several => false,
        }
    }
}
