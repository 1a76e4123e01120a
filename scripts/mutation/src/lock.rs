//! Lock: one run at a time works in a folder.

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, create_dir_all};
use std::path::Path;

/// Held until it is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct Lock(#[allow(dead_code, reason = "held, not read")] File);

impl Lock {
    /// Takes the folder, which is made if there is none.
    ///
    /// # Errors
    /// Another run has it.
    pub(crate) fn take(folder: &Path) -> anyhow::Result<Self> {
        create_dir_all(folder)?;
        let path = folder.join("lock");
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self(file)),
            Err(Errno::WOULDBLOCK) => bail!(
                "another run works in {}: wait for its end, or give this one a place of its own with \
                 CARGO_TARGET_DIR",
                folder.display()
            ),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]
    use super::*;

    #[test]
    fn a_folder_is_one_run_s_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lock::take(folder.path()).unwrap();
        let refused = Lock::take(folder.path()).unwrap_err();
        assert!(refused.to_string().contains("CARGO_TARGET_DIR"));
        drop(first);
        Lock::take(folder.path()).unwrap();
    }
}
