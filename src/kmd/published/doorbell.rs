//! Doorbells (`layouts.md` part 3).

use super::PublishedHandle;
use crate::abi;
use crate::abi::wddm::{
    self, DoorbellStatus, DriverConnectDoorbell, DriverCreateDoorbell, DriverDisconnectDoorbell,
};
use crate::kmd::{ConnectDoorbell, CreateDoorbell, DisconnectDoorbell};
use bytemuck::Zeroable;

/// The published status of a word.
fn published(status: abi::DoorbellStatus) -> DoorbellStatus {
    wddm::DoorbellStatus(status as u32)
}

impl CreateDoorbell<'_> {
    /// `DXGKARG_CREATEDOORBELL`. Ring and ring control are the OS's own memory here and no allocations
    /// (choice): their handles are NULL.
    #[must_use]
    pub fn published(&self) -> DriverCreateDoorbell {
        DriverCreateDoorbell {
            hw_queue: self.hw_queue.handle(),
            doorbell: self.doorbell.handle(),
            flags: self.flags,
            ..DriverCreateDoorbell::zeroed()
        }
    }
}

impl ConnectDoorbell {
    /// `DXGKARG_CONNECTDOORBELL`, before the call.
    #[must_use]
    pub fn published(&self) -> DriverConnectDoorbell {
        DriverConnectDoorbell {
            doorbell: self.doorbell.handle(),
            flags: self.flags,
            ..DriverConnectDoorbell::zeroed()
        }
    }

    /// The same with the driver's answer: how it is connected, and the address that the user rings.
    #[must_use]
    pub fn answered(&self, status: abi::DoorbellStatus, cpu_va: u64) -> DriverConnectDoorbell {
        DriverConnectDoorbell {
            kernel_cpu_virtual_address: cpu_va,
            status: published(status),
            ..self.published()
        }
    }
}

impl DisconnectDoorbell {
    /// `DXGKARGCB_DISCONNECTDOORBELL`. The OS knows queues by the driver's handle here.
    #[must_use]
    pub fn published(&self) -> DriverDisconnectDoorbell {
        DriverDisconnectDoorbell {
            hw_queue: self.hw_queue.handle(),
            doorbell: self.doorbell.handle(),
            flags: 0,
            disconnect_reason: published(self.reason.status()),
        }
    }
}
