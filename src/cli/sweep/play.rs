//! `nfence sweep-play`: one fault, in the process that it is for.

use super::super::Ending;
use super::peer::start;
use crate::sweep::{Hook, Planned, play};
use anyhow::anyhow;
use std::io::Write;

/// What the child is called by.
pub(in crate::cli) const NAME: &str = "sweep-play";

/// The child's command: it plays, and tells what came of it as JSON.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Play {
    fault: Planned,

    #[arg(long)]
    device: Option<String>,
}

/// Names what goes wrong in a run, to see that it is found.
const HOOK: &str = "NFENCE_SWEEP_HOOK";

fn hook() -> Result<Option<Hook>, serde_json::Error> {
    let name = std::env::var(HOOK).ok();
    name.map(|name| serde_json::from_value(name.into()))
        .transpose()
}

impl Play {
    pub(in crate::cli) fn run(self) -> anyhow::Result<Ending> {
        // A run that counts is well in any case.
        let hook = hook()?.filter(|_| self.fault != Planned::Nothing);
        let device = self.device;
        let peers = device.clone();
        let start_peer = move |socket| start(socket, peers.as_deref());
        let played = play(self.fault, device.as_deref(), hook, &start_peer);
        let played = played.map_err(|error| anyhow!("{error}"))?;
        let mut line = serde_json::to_vec(&played)?;
        line.push(b'\n');
        std::io::stdout().write_all(&line)?;
        Ok(Ending::Well)
    }
}
