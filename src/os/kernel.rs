//! Kernel: a compute shader of a process that its DISPATCH packets run.
//!
//! It has a handle of the process's one table, as fences and allocations have; packets name it by that.

use super::adapter::OsError;
use super::process::Process;
use crate::abi::{KernelId, LocalHandle};
use crate::kmd::{CreateKernel, KernelCode};
use crate::sync::{Arc, AtomicBool, Ordering};

/// A kernel and the handle by which its process knows it. Dropping it closes the handle and takes the kernel from
/// the engines, in its turn: it waits for a registration that is under way. The handle's place is used again when no
/// slice refers to it any more.
#[derive(Debug)]
pub struct Kernel {
    id: KernelId,
    handle: LocalHandle,
    parameter_bytes: u32,
    closed: AtomicBool,
    process: Arc<Process>,
}

impl Kernel {
    /// Registers a kernel with every engine of the adapter (choice: the documents leave what a packet runs to
    /// the driver).
    ///
    /// # Errors
    /// No handle left, or the driver's reason: an engine does not take the kernel; a lost device.
    pub fn create(process: &Arc<Process>, code: &Arc<KernelCode>) -> Result<Self, OsError> {
        process.adapter().check_up()?;
        process.state().check()?;
        let kernel = Self {
            id: process.adapter().next_kernel(),
            handle: process.allocate_handle()?,
            parameter_bytes: code.parameter_bytes(),
            closed: AtomicBool::new(false),
            process: Arc::clone(process),
        };
        process.adapter().ddi().create_kernel(&CreateKernel {
            global: kernel.id,
            process: process.id(),
            local: kernel.handle,
            code,
        })?;
        Ok(kernel)
    }

    /// The handle that the process's packets carry.
    #[must_use]
    pub fn handle(&self) -> LocalHandle {
        self.handle
    }

    /// The process whose handle it is.
    #[must_use]
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Bytes of parameters that it takes.
    #[must_use]
    pub fn parameter_bytes(&self) -> u32 {
        self.parameter_bytes
    }

    /// Closes the handle: dispatches that carry it fault. One that is under way runs to its end.
    pub fn close(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            let ddi = self.process.adapter().ddi();
            ddi.close_kernel(self.process.id(), self.handle);
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.close();
        let place = self.process.handle_slot(self.handle);
        self.process.adapter().retire_kernel(self.id, place);
    }
}
