//! Queue door: the doorbell of a user-mode queue, as its user makes, connects and destroys it, and as the
//! end of its process takes it (HQ-02, HQ-12).
//!
//! A queue has one doorbell at a time, or none. What of the driver's calls waits for slices is made without
//! the lock of the state, since the driver calls back then; all others are made with it, so that two threads
//! do not connect what a third has destroyed.

use super::adapter::OsError;
use super::queue_storage::QueueStorage;
use crate::abi::PAGE_BYTES;
use crate::kmd::{
    ConnectDoorbell, CreateDoorbell, CreateDoorbellFlags, Ddi, DdiError, DoorbellId, HwQueueHandle,
    Place,
};
use crate::sync::{Arc, Mutex, lock, plain};

/// Whether there is a doorbell, and the user may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    /// The user has made none, or has destroyed it: no engine has the ring.
    Missing,
    Open,
    /// The process ends: the engine keeps the ring (HQ-12).
    Withdrawn,
    /// The same, and the user has destroyed the doorbell meanwhile.
    Unwanted,
    /// The process ends, and there is no doorbell.
    Barred,
    /// The driver's queue is destroyed.
    Gone,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct QueueDoor {
    hw_queue: HwQueueHandle,
    /// The last that was made; `door` says whether it is there. Who rings reads it without that lock, and
    /// the driver is told in vain of one that is gone.
    doorbell: plain::Mutex<DoorbellId>,
    door: Mutex<Door>,
    ddi: Arc<dyn Ddi>,
    storage: Arc<QueueStorage>,
}

impl QueueDoor {
    /// Of a queue that has no doorbell yet.
    pub(super) fn new(
        hw_queue: HwQueueHandle,
        ddi: Arc<dyn Ddi>,
        storage: Arc<QueueStorage>,
    ) -> Self {
        Self {
            hw_queue,
            doorbell: plain::Mutex::new(DoorbellId(0)),
            door: Mutex::new(Door::Missing),
            ddi,
            storage,
        }
    }

    /// Makes the doorbell, which starts disconnected. The ring has `ring_capacity` packets.
    ///
    /// With `door` locked, as in `connect`: an end that comes meanwhile finds a doorbell or none, and
    /// bars it then.
    ///
    /// # Errors
    /// The driver's reason; there is one; the process ends.
    pub(super) fn create(&self, doorbell: DoorbellId, ring_capacity: u64) -> Result<(), OsError> {
        let mut door = lock(&self.door);
        match *door {
            Door::Missing => {}
            Door::Open => return Err(OsError::HasDoorbell),
            Door::Withdrawn | Door::Unwanted | Door::Barred | Door::Gone => {
                return Err(OsError::ProcessEnds);
            }
        }
        self.ddi.create_doorbell(&CreateDoorbell {
            hw_queue: self.hw_queue,
            doorbell,
            ring: Place::from(&self.storage.ring),
            ring_packets: PAGE_BYTES,
            ring_capacity,
            words: self.storage.doorbell.block(),
            flags: CreateDoorbellFlags::default(),
        })?;
        *plain::lock(&self.doorbell) = doorbell;
        *door = Door::Open;
        Ok(())
    }

    /// Disconnects the doorbell and destroys it: what the engine has not executed stays in the ring, for
    /// another doorbell. While the process ends the engine keeps the ring, and the doorbell goes with the
    /// end, or when that fails.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn destroy(&self) -> Result<(), OsError> {
        let mut door = lock(&self.door);
        match *door {
            Door::Open => *door = Door::Missing,
            Door::Withdrawn => {
                *door = Door::Unwanted;
                return Ok(());
            }
            Door::Missing | Door::Unwanted | Door::Barred | Door::Gone => {
                return Err(OsError::NoDoorbell);
            }
        }
        // Not with `door` locked, as in `disconnect`. Nobody connects it any more, and the driver refuses
        // another doorbell until this one is gone.
        let doorbell = self.doorbell();
        drop(door);
        self.ddi.destroy_doorbell(doorbell);
        Ok(())
    }

    /// The last doorbell that was made.
    pub(super) fn doorbell(&self) -> DoorbellId {
        *plain::lock(&self.doorbell)
    }

    /// Whether the user has made none, or has destroyed it, and may make one.
    pub(super) fn is_missing(&self) -> bool {
        *lock(&self.door) == Door::Missing
    }

    /// Whether there is a doorbell.
    pub(super) fn has_doorbell(&self) -> bool {
        match *lock(&self.door) {
            Door::Open | Door::Withdrawn | Door::Unwanted => true,
            Door::Missing | Door::Barred | Door::Gone => false,
        }
    }

    /// Connects the doorbell, if the user may have it.
    ///
    /// # Errors
    /// The driver's reason; there is none; the process ends.
    pub(super) fn connect(&self) -> Result<(), OsError> {
        let door = lock(&self.door);
        match *door {
            Door::Open => {
                let args = ConnectDoorbell::of(self.doorbell());
                let _status = self.ddi.connect_doorbell(&args)?;
                return Ok(());
            }
            Door::Missing => return Err(OsError::NoDoorbell),
            // What is in the ring may have come after the engine's last look, with a last queued value
            // that is waited for.
            Door::Withdrawn | Door::Unwanted => self.ddi.withdraw_doorbell(self.doorbell())?,
            Door::Barred | Door::Gone => return Err(OsError::ProcessEnds),
        }
        drop(door);
        self.ddi.notify_work_submission(self.doorbell());
        Err(OsError::ProcessEnds)
    }

    /// Takes the doorbell from its user, who has none to lose while the process ends.
    ///
    /// Not with `door` locked, since the driver waits for slices and calls back. So the end may take the
    /// doorbell in between, and the driver then takes the ring from the engine, whose values are waited
    /// for: it is given back. Either the end comes first and is seen here, at first or at last, or
    /// it comes later and finds a queue that is disconnected.
    pub(super) fn disconnect(&self) {
        if *lock(&self.door) != Door::Open {
            return;
        }
        self.ddi.disconnect_doorbell(self.doorbell());
        let door = lock(&self.door);
        match *door {
            Door::Withdrawn | Door::Unwanted => {
                // A lost engine and a stopped queue end the wait by themselves; of a list that has filled
                // up meanwhile the end tells by its time-out.
                let _ = self.ddi.withdraw_doorbell(self.doorbell());
            }
            Door::Missing | Door::Open | Door::Barred | Door::Gone => {}
        }
    }

    /// The user loses the doorbell, and the engine goes on. What was queued before is covered by the
    /// last queued value that is read after this: who published it later reads the doorbell's status
    /// later as well, and is refused.
    ///
    /// # Errors
    /// The driver's reason.
    pub(super) fn withdraw(&self) -> Result<(), DdiError> {
        let mut door = lock(&self.door);
        match *door {
            Door::Open => {
                self.ddi.withdraw_doorbell(self.doorbell())?;
                *door = Door::Withdrawn;
            }
            Door::Missing => *door = Door::Barred,
            Door::Withdrawn | Door::Unwanted | Door::Barred | Door::Gone => {}
        }
        Ok(())
    }

    /// The user may connect the doorbell again, or make one.
    pub(super) fn give_back(&self) {
        let mut door = lock(&self.door);
        match *door {
            Door::Withdrawn => *door = Door::Open,
            Door::Barred => *door = Door::Missing,
            Door::Unwanted => {
                *door = Door::Missing;
                let doorbell = self.doorbell();
                drop(door);
                self.ddi.destroy_doorbell(doorbell);
            }
            Door::Missing | Door::Open | Door::Gone => {}
        }
    }

    /// The driver's queue goes, and its doorbell before it, once: whether it was not gone before. `first`
    /// is called before the user reads that the doorbell is taken for good, who then asks for the reason.
    pub(super) fn close(&self, first: impl FnOnce()) -> bool {
        let before = std::mem::replace(&mut *lock(&self.door), Door::Gone);
        if before != Door::Gone {
            first();
        }
        match before {
            Door::Open | Door::Withdrawn | Door::Unwanted => {
                self.ddi.destroy_doorbell(self.doorbell());
            }
            Door::Missing | Door::Barred | Door::Gone => {}
        }
        before != Door::Gone
    }

    /// Whether the driver's queue is destroyed.
    pub(super) fn is_closed(&self) -> bool {
        *lock(&self.door) == Door::Gone
    }
}
