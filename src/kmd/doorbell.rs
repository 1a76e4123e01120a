//! Doorbell: what OS and driver tell each other of one (`layouts.md` part 3).

use super::{HwQueueHandle, Place};
use crate::abi::DoorbellStatus;
use crate::abi::wddm::{CreateDoorbellFlags, DriverConnectDoorbellFlags};
use crate::shared::Block;

/// The OS's handle of a doorbell: a number that is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DoorbellId(pub u64);

/// `DXGKARG_CREATEDOORBELL`: with it the queue gets its ring.
#[derive(Clone, Copy, Debug)]
pub struct CreateDoorbell<'a> {
    /// A queue for user-mode submission that has no doorbell.
    pub hw_queue: HwQueueHandle,
    /// The doorbell, which is new.
    pub doorbell: DoorbellId,
    /// `hRingBuffer` and `hRingBufferControl`: ring control and ring, written by the user. Indices go on
    /// where the queue's last doorbell left them, in the same ring or in another one.
    pub ring: Place<'a>,
    /// Offset of the first packet from `ring`.
    pub ring_packets: u64,
    /// Packets of the ring, a power of two.
    pub ring_capacity: u64,
    /// The OS's view of what the user writes for it, [`Doorbell`](crate::abi::Doorbell): no engine
    /// looks there.
    pub words: &'a Block,
    /// None: there is no second address, and another size is another doorbell.
    pub flags: CreateDoorbellFlags,
}

/// `DXGKARG_CONNECTDOORBELL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectDoorbell {
    /// A doorbell that was created.
    pub doorbell: DoorbellId,
    /// None: there is no second address.
    pub flags: DriverConnectDoorbellFlags,
}

impl ConnectDoorbell {
    /// Of a doorbell, without flags.
    #[must_use]
    pub fn of(doorbell: DoorbellId) -> Self {
        Self {
            doorbell,
            flags: DriverConnectDoorbellFlags::default(),
        }
    }
}

/// `DisconnectReason`: what the user reads from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// Connect and ring again.
    Retry,
    /// The queue is lost.
    Abort,
}

impl DisconnectReason {
    /// The status word that says so.
    #[must_use]
    pub const fn status(self) -> DoorbellStatus {
        match self {
            Self::Retry => DoorbellStatus::DisconnectedRetry,
            Self::Abort => DoorbellStatus::DisconnectedAbort,
        }
    }
}

/// `DXGKARGCB_DISCONNECTDOORBELL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisconnectDoorbell {
    /// Its queue.
    pub hw_queue: HwQueueHandle,
    /// Which.
    pub doorbell: DoorbellId,
    /// Why.
    pub reason: DisconnectReason,
}
