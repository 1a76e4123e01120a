//! Doorbell: creating, connecting, destroying, and telling the driver that it was rung.

use super::caller::cpu_va;
use super::handles;
use super::hw_queue::{doorbell_status, has_no_own_ring, last_queued_value};
use super::object::{Doorbell, HwQueue, Object};
use super::refusal::Refusal;
use crate::abi;
use crate::abi::wddm::{
    ConnectDoorbell, CreateDoorbell, CreateDoorbellFlags, DestroyDoorbell, NotifyWorkSubmission,
    NtStatus,
};
use crate::os;
use crate::sync::{Arc, Mutex, lock};

/// A doorbell starts disconnected (HQ-02). The OS refuses a second one of a queue.
pub(super) fn create(args: &mut CreateDoorbell) -> Result<(), Refusal> {
    let queue = handles::find::<HwQueue>(args.hw_queue)?;
    if args.flags.unknown() != 0 {
        return Err(Refusal::parameter("a reserved flag of the doorbell is set"));
    }
    if args.flags != CreateDoorbellFlags::default() {
        let why = "no second address and no other size of the ring are offered: Flags must be 0";
        return Err(Refusal::not_supported(why));
    }
    has_no_own_ring(args.ring_buffer, args.ring_buffer_control)?;
    if args.private_driver_data_size != 0 {
        let why = "a doorbell has no private data: PrivateDriverDataSize must be 0";
        return Err(Refusal::parameter(why));
    }
    let status = doorbell_status(&queue.queue);
    let last_queued_value = last_queued_value(&queue.queue);
    let rings = cpu_va(
        queue
            .queue
            .memory()
            .doorbell
            .word(abi::Doorbell::RINGS)
            .address(),
    );
    queue.queue.create_doorbell()?;
    let doorbell = Arc::new(Doorbell::new(queue));
    let object = Object::Doorbell(Arc::clone(&doorbell));
    // A refusal: no handle was left, or the queue was destroyed meanwhile.
    args.doorbell =
        handles::insert::<HwQueue>(args.hw_queue, object).inspect_err(|_| doorbell.end())?;
    args.doorbell_cpu_virtual_address = rings;
    args.doorbell_secondary_cpu_virtual_address = 0;
    args.doorbell_status_cpu_virtual_address = status;
    args.last_queued_value_cpu_virtual_address = last_queued_value;
    Ok(())
}

pub(super) fn connect(args: ConnectDoorbell) -> Result<(), Refusal> {
    let doorbell = handles::find::<Doorbell>(args.doorbell)?;
    flags_are_zero(args.flags)?;
    doorbell.while_it_is(|queue| {
        if let Some(error) = queue.error() {
            return Err(error.into());
        }
        Ok(queue.connect_doorbell()?)
    })
}

pub(super) fn notify(args: NotifyWorkSubmission) -> Result<(), Refusal> {
    let doorbell = handles::find::<Doorbell>(args.doorbell)?;
    flags_are_zero(args.flags)?;
    doorbell.while_it_is(|queue| {
        queue.notify_work_submission();
        Ok(())
    })
}

/// What is in the ring stays there, and runs when another doorbell is connected.
pub(super) fn destroy(args: DestroyDoorbell) -> Result<(), Refusal> {
    handles::destroy::<Doorbell>(args.doorbell, |_| Ok(()))
}

impl Doorbell {
    fn new(queue: Arc<HwQueue>) -> Self {
        Self {
            queue,
            is_destroyed: Mutex::new(false),
        }
    }

    /// Does something with its queue that its end must not come into: another thread may destroy it
    /// after it was found. Who connects holds the lock that `end` takes, so either `end` finds it
    /// connected and disconnects it, or nobody connects it.
    ///
    /// The lock is taken before all of the OS's, and no call of the driver's comes back here.
    ///
    /// # Errors
    /// It was destroyed; or what `act` refuses.
    fn while_it_is(
        &self,
        act: impl FnOnce(&os::HwQueue) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let is_destroyed = lock(&self.is_destroyed);
        if *is_destroyed {
            let why = "the doorbell was destroyed during the call";
            return Err(Refusal::new(NtStatus::INVALID_HANDLE, why));
        }
        act(&self.queue.queue)
    }

    /// Disconnects and destroys it.
    pub(super) fn end(&self) {
        let mut is_destroyed = lock(&self.is_destroyed);
        if !*is_destroyed {
            *is_destroyed = true;
            // None is left where its process has ended, with which it went.
            let _ = self.queue.queue.destroy_doorbell();
        }
    }
}

fn flags_are_zero(flags: u32) -> Result<(), Refusal> {
    if flags == 0 {
        Ok(())
    } else {
        Err(Refusal::parameter("no bit of these Flags is published: 0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Adapter;
    use crate::abi::{DoorbellStatus, QueueProgress};
    use crate::umd::HwQueueOptions;

    /// HQ-02 where threads meet: one has found the doorbell, another destroys it, then the first
    /// connects. The next doorbell of the queue starts disconnected.
    ///
    /// Kills `a-destroyed-doorbell-is-connected`.
    #[test]
    fn hq_02_a_doorbell_that_was_destroyed_meanwhile_is_not_connected() {
        let adapter = match Adapter::open_best() {
            Ok(adapter) => adapter,
            Err(error) => {
                let required = std::env::var_os("NFENCE_REQUIRE_DEVICE").is_some();
                assert!(!required, "{error}");
                println!("left out: {error}");
                return;
            }
        };
        let options = HwQueueOptions::default();
        let device = adapter.create_device();
        let queue = device
            .create_hw_queue_without_doorbell(options)
            .expect("a device with native fences");
        let queue = Arc::clone(queue.os());
        let status = || {
            let progress = &queue.memory().progress;
            progress.word(QueueProgress::DOORBELL_STATUS).observe()
        };
        let object = Arc::new(HwQueue {
            queue: Arc::clone(&queue),
        });
        let made = |queue: &os::HwQueue| {
            queue.create_doorbell().expect("one at a time");
            Arc::new(Doorbell::new(Arc::clone(&object)))
        };
        let doorbell = made(&queue);
        let connect = || doorbell.while_it_is(|queue| Ok(queue.connect_doorbell()?));

        connect().expect("a doorbell that is there");
        assert_ne!(status(), DoorbellStatus::DisconnectedRetry as u64);
        Object::Doorbell(Arc::clone(&doorbell)).end();
        let refusal = connect().expect_err("it was destroyed");
        assert_eq!(refusal.status, NtStatus::INVALID_HANDLE);
        assert_eq!(status(), DoorbellStatus::DisconnectedRetry as u64);
        // Nor is the one that came after it.
        let _next = made(&queue);
        connect().expect_err("it was destroyed");
        assert_eq!(status(), DoorbellStatus::DisconnectedRetry as u64);
    }
}
