//! Compiled aside: the shaders that this process has had a driver compile for a device on which nobody waits.
//!
//! A driver that compiles a shader when a queue first runs it, and keeps what it compiled on the disk, finds it there
//! from then on: once a process is enough for each shader and driver.

use crate::sync::plain::{Mutex, lock};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

static COMPILED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Shaders, as what tells them from others.
#[derive(Debug, Default)]
pub(super) struct CompiledAside(Vec<u64>);

impl CompiledAside {
    /// And one more.
    pub(super) fn with(mut self, shader: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        shader.hash(&mut hasher);
        self.0.push(hasher.finish());
        self
    }

    /// Whether all of them have been compiled.
    pub(super) fn are_known(&self) -> bool {
        let known = lock(&COMPILED);
        self.0.iter().all(|shader| known.contains(shader))
    }

    /// They are compiled.
    pub(super) fn note(self) {
        lock(&COMPILED).extend(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_known() {
        let of = |shaders: &[&str]| {
            let none = CompiledAside::default();
            shaders.iter().fold(none, CompiledAside::with)
        };
        of(&["a shader", "another one"]).note();
        assert!(of(&["another one"]).are_known());
        assert!(!of(&["another one", "a third"]).are_known());
    }
}
