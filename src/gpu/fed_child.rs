//! Fed child: what an engine's process makes of whatever its parent sends, before it does anything about it.
//!
//! Who parses the words and looks at the kernels is the real one; the engine is left out, and with it the process. It is for
//! `tests/fuzz`, which sends anything at all.

use super::Kernels;
use super::engine_process::received_kernels;
use super::engine_protocol::{ProtocolError, Request};
use std::os::fd::AsFd;

/// See the file's head.
#[derive(Clone, Debug)]
pub struct HeardRequest {
    /// The words that a parent would send for what was heard.
    pub words: Vec<u64>,
    /// What came with them: the kernels, or why there are none, in words. `None` where no kernels are sent.
    pub kernels: Option<Result<Kernels, String>>,
}

impl HeardRequest {
    /// Receives the next, by a child that has kernels already.
    ///
    /// # Errors
    /// It is none, or none can come any more.
    pub fn receive(socket: impl AsFd, known: &Kernels) -> Result<Self, ProtocolError> {
        let (request, number, descriptor) = Request::receive(socket)?;
        let kernels = match request {
            Request::SetKernels { bytes } => Some(received_kernels(descriptor, bytes, known)),
            _ => None,
        };
        Ok(Self {
            words: request.words(number),
            kernels,
        })
    }
}
