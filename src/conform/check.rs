//! Check: one rule of the contract, and the story by which it is asked.

use super::Ground;

/// See the file's head.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The rule's id, as `NF-05`.
    pub rule: &'static str,
    /// What the rule says, in half a line.
    pub title: &'static str,
    /// Fails with what was seen instead, or with [`Unfit`](super::Unfit) where it has not what it needs.
    pub story: fn(&Ground) -> anyhow::Result<()>,
}

impl Check {
    pub(super) const fn by(
        rule: &'static str,
        title: &'static str,
        story: fn(&Ground) -> anyhow::Result<()>,
    ) -> Self {
        Self { rule, title, story }
    }

    /// The family of rules: `NF` of `NF-05`.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.rule.split('-').next().unwrap_or(self.rule)
    }
}
