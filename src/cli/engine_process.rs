//! `nfence engine-process`: an engine in a process of its own, which native-fence starts by itself.

use super::Ending;
use crate::gpu::{self, serve_engine};
use std::os::fd::AsFd;

/// What native-fence calls it by.
pub(super) const NAME: &str = gpu::ENGINE_COMMAND;

/// An engine of the program that starts it.
#[derive(Debug, clap::Args)]
pub(super) struct EngineProcess {}

impl EngineProcess {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let Self {} = self;
        serve_engine(std::io::stdin().as_fd().try_clone_to_owned()?)?;
        Ok(Ending::Well)
    }
}
