//! The spy between OS and driver, by which the suite and these tests keep interrupts from the OS and count them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod queue_of;
    pub(crate) mod until;
}

use native_fence::conform::spy::DdiSpy;
use native_fence::conform::{ModelSubject, Subject, Wanted};
use native_fence::kmd::Interrupt;
use native_fence::{Adapter, CommandList};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use support::queue_of::queue_of;
use support::until::{LONG, until};

/// An interrupt that comes while another is with the hook comes to the hook as well: of what passed it by the OS would
/// learn though it was to be kept from it.
///
/// Kills `an-interrupt-passes-a-hook-that-is-busy`.
#[test]
fn interrupts_of_two_engines_at_once_both_come_to_the_hook() {
    let driver = ModelSubject::default().driver(&Wanted::nodes(2)).unwrap();
    let spy = DdiSpy::over(driver);
    let adapter = Adapter::with_driver(spy.clone()).unwrap();
    let device = adapter.create_device();
    let with_hook = Arc::new((Mutex::new(0), Condvar::new()));
    let met = Arc::new(AtomicU32::new(0));
    let (hook, meets) = (Arc::clone(&with_hook), Arc::clone(&met));
    let fences = [(); 2].map(|()| device.create_fence(0).unwrap());
    let ids = fences.each_ref().map(|fence| fence.object().fence().id());
    spy.on_interrupt(move |interrupt| {
        let Interrupt::NativeFenceSignaled(signaled) = interrupt else {
            return;
        };
        let mut named = signaled.fences.iter().flatten();
        if named.any(|named| ids.contains(&named.fence)) {
            let (count, changed) = &*hook;
            let mut count = count.lock().unwrap();
            *count += 1;
            changed.notify_all();
            let waited = changed.wait_timeout_while(count, LONG, |count| *count < 2);
            meets.fetch_add(u32::from(!waited.unwrap().1.timed_out()), Ordering::AcqRel);
        }
    });
    let armed = fences.each_ref().map(|fence| fence.arm(1));
    let mut queues = [0, 1].map(|node| queue_of(&device, node));
    // Whoever submits may take the interrupt itself.
    thread::scope(|threads| {
        for (queue, fence) in queues.iter_mut().zip(&fences) {
            threads.spawn(|| queue.submit(CommandList::new().signal(fence, 1)).unwrap());
        }
    });
    until("both have been with the hook", || {
        met.load(Ordering::Acquire) == 2
    });
    drop(armed);
}
