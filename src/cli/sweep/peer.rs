//! `nfence sweep-peer`: the second process of a story, which the first one starts.

use super::super::Ending;
use crate::shared::bind_to_parent;
use crate::sweep::serve_peer;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};

/// What it is called by.
pub(in crate::cli) const NAME: &str = "sweep-peer";

/// The peer's command: it has a socket for its input.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Peer {
    #[arg(long)]
    device: Option<String>,
}

impl Peer {
    pub(in crate::cli) fn run(self) -> anyhow::Result<Ending> {
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        serve_peer(socket, self.device.as_deref())?;
        Ok(Ending::Well)
    }
}

/// Starts it, on a thread that lasts as long as it is needed.
pub(super) fn start(socket: OwnedFd, device: Option<&str>) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(NAME).stdin(socket).stdout(Stdio::null());
    if let Some(device) = device {
        command.arg("--device").arg(device);
    }
    bind_to_parent(&mut command);
    command.spawn()
}
