//! Check: one rule of the contract, and how it is asked.

use super::Ground;

/// How a rule is asked.
#[derive(Clone, Copy)]
pub enum Asked {
    /// By a story: it fails with what was seen instead, or with [`Unfit`](super::Unfit) where it has not what it needs.
    By(fn(&Ground) -> anyhow::Result<()>),
    /// Not by this suite, on any subject: why, and what shows the rule instead.
    Not(&'static str),
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::By(_) => f.write_str("By"),
            Self::Not(why) => f.debug_tuple("Not").field(why).finish(),
        }
    }
}

/// See the file's head.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The rule's id, as `NF-05`.
    pub rule: &'static str,
    /// What the rule says, in half a line.
    pub title: &'static str,
    /// How it is asked.
    pub asked: Asked,
}

impl Check {
    pub(super) const fn by(
        rule: &'static str,
        title: &'static str,
        story: fn(&Ground) -> anyhow::Result<()>,
    ) -> Self {
        Self {
            rule,
            title,
            asked: Asked::By(story),
        }
    }

    pub(super) const fn not(rule: &'static str, title: &'static str, why: &'static str) -> Self {
        Self {
            rule,
            title,
            asked: Asked::Not(why),
        }
    }

    /// The family of rules: `NF` of `NF-05`.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.rule.split('-').next().unwrap_or(self.rule)
    }
}
