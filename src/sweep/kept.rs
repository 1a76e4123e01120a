//! Kept: what an adapter and one of its devices have, to which a call that was refused adds nothing.

use super::play::until_nothing;
use crate::Device;
use std::time::Duration;

/// What an engine may still refer to goes within this.
const GOES: Duration = Duration::from_secs(5);

/// See the file's head.
#[derive(Debug)]
pub(super) struct Kept(Vec<(&'static str, usize)>);

impl Kept {
    pub(super) fn of(device: &Device) -> Self {
        Self(device.process().object_counts())
    }

    /// What there is more, in words, once what goes by itself has gone.
    pub(super) fn left(&self, device: &Device) -> Vec<String> {
        until_nothing(GOES, || Self::of(device).more_than(self))
    }

    fn more_than(&self, before: &Self) -> Vec<String> {
        let both = self.0.iter().zip(&before.0);
        let more = both.filter(|((_, now), (_, had))| now > had);
        more.map(|((kind, now), (_, had))| format!("{kind} of a living adapter: {now}, was {had}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_refused_call_adds_is_named() {
        let before = Kept(vec![("context", 2), ("handle", 3)]);
        let now = Kept(vec![("context", 1), ("handle", 4)]);
        let more = ["handle of a living adapter: 4, was 3"];
        assert_eq!(now.more_than(&before), more);
        assert!(before.more_than(&before).is_empty());
    }
}
