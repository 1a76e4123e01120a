//! Handle: the `HANDLE` by which a published structure names what OS and driver name by ids here.
//!
//! None is NULL, which has meanings of its own in interrupts. Which number a handle is, the documents leave
//! to who makes it (choice).

use crate::abi::wddm::Handle;
use crate::abi::{FenceId, LocalHandle};
use crate::kmd::{ContextHandle, DoorbellId, HwQueueHandle, ProcessId};

/// What has a `HANDLE`.
pub trait PublishedHandle: Sized {
    /// Its handle; never 0.
    fn handle(self) -> Handle;

    /// What a handle names, if it can be one: any number that another side wrote.
    fn from_handle(handle: Handle) -> Option<Self>;
}

/// `hGlobalNativeFence`: the OS's, which interrupts carry back. Generation above, slot below.
impl PublishedHandle for FenceId {
    fn handle(self) -> Handle {
        self.word()
    }

    fn from_handle(handle: Handle) -> Option<Self> {
        let id = Self {
            slot: handle as u32,
            generation: (handle >> 32) as u32,
        };
        (id.generation != 0).then_some(id)
    }
}

/// A handle that the driver makes: one more than the node above, the number below.
fn of_driver(node_ordinal: u32, number: u32) -> Handle {
    (u64::from(node_ordinal) + 1) << 32 | u64::from(number)
}

/// Node and number of such a handle, if it can be one.
fn driver_names(handle: Handle) -> Option<(u32, u32)> {
    Some((((handle >> 32) as u32).checked_sub(1)?, handle as u32))
}

/// `hHwQueue`: the driver's.
impl PublishedHandle for HwQueueHandle {
    fn handle(self) -> Handle {
        of_driver(self.node_ordinal, self.number)
    }

    fn from_handle(handle: Handle) -> Option<Self> {
        let (node_ordinal, number) = driver_names(handle)?;
        Some(Self {
            node_ordinal,
            number,
        })
    }
}

/// `hContext`: the driver's.
impl PublishedHandle for ContextHandle {
    fn handle(self) -> Handle {
        of_driver(self.node_ordinal, self.number)
    }

    fn from_handle(handle: Handle) -> Option<Self> {
        let (node_ordinal, number) = driver_names(handle)?;
        Some(Self {
            node_ordinal,
            number,
        })
    }
}

/// `hDoorbell`: the OS's number, which begins at 1.
impl PublishedHandle for DoorbellId {
    fn handle(self) -> Handle {
        self.0
    }

    fn from_handle(handle: Handle) -> Option<Self> {
        (handle != 0).then_some(Self(handle))
    }
}

/// `hDevice`: a process is one device of an adapter here. The OS's number, which begins at 1.
impl PublishedHandle for ProcessId {
    fn handle(self) -> Handle {
        self.0
    }

    fn from_handle(handle: Handle) -> Option<Self> {
        (handle != 0).then_some(Self(handle))
    }
}

/// `hLocalNativeFence`: the low half of the process's number above, the handle that its packets carry
/// below.
#[must_use]
pub fn local_handle(process: ProcessId, local: LocalHandle) -> Handle {
    process.0 << 32 | u64::from(local.raw())
}
