//! Opening a fence that came from another operating system, by several threads at once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod engines;
    pub(crate) mod passing;
    pub(crate) mod until;
}

use native_fence::abi::FenceId;
use native_fence::shared::Block;
use native_fence::{Device, Fence};
use std::pin::pin;
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use support::engines::model;
use support::passing::{passed, shared};
use support::until::LONG;

/// NF-15: one that several threads open at once is one fence as well, with one slot of the page: nobody's
/// opening takes another's.
///
/// Kills `each-thread-opens-a-fence-of-its-own`.
#[test]
fn nf_15_a_fence_that_several_threads_open_at_once_is_one_fence() {
    const THREADS: usize = 20;
    let (a, b) = (model().0, model().0);
    for _ in 0..4 {
        let made = shared(&a.create_device(), 3);
        let handle = passed(&made);
        let start = Barrier::new(THREADS);
        let opened: Vec<_> = std::thread::scope(|scope| {
            let open = || {
                let device = b.create_device();
                start.wait();
                device.open_fence(&handle).unwrap()
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(open)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let id = |fence: &Fence| fence.object().fence().id();
        assert!(opened.iter().all(|fence| id(fence) == id(&opened[0])));
        opened[THREADS - 1].signal(4).unwrap();
        made.wait(4, LONG).unwrap();
    }
}

/// Passes a fence on and opens what came, as soon as it is woken.
struct PassesOn {
    fence: Fence,
    device: Device,
    opened: Mutex<Option<FenceId>>,
}

impl Wake for PassesOn {
    fn wake(self: Arc<Self>) {
        let opened = self.device.open_fence(&passed(&self.fence)).unwrap();
        *self.opened.lock().unwrap() = Some(opened.object().fence().id());
    }
}

/// NF-14, NF-15: from the moment at which its pages can be had, a fence that is passed for the first time is
/// the one that its own adapter opens by them. A waker runs in the middle of that: of a wait that the first
/// look on behalf of others satisfies.
///
/// Kills `pages-are-given-out-before-they-are-known`.
#[test]
fn nf_15_a_fence_that_is_being_passed_is_one_fence() {
    let adapter = model().0;
    let device = adapter.create_device();
    let fence = shared(&device, 0);
    let passes_on = Arc::new(PassesOn {
        fence: fence.clone(),
        device: adapter.create_device(),
        opened: Mutex::new(None),
    });
    let waker = Waker::from(Arc::clone(&passes_on));
    let mut wait = pin!(fence.wait_async(5));
    let pending = wait.as_mut().poll(&mut Context::from_waker(&waker));
    assert_eq!(pending, Poll::Pending);
    // As an engine of whose store nobody has told yet.
    let (region, offset) = fence.object().fence().current_value_place();
    let words = Block::whole(&region.map().unwrap());
    words.word(offset).publish(5);
    passed(&fence);
    let opened = *passes_on.opened.lock().unwrap();
    assert_eq!(opened, Some(fence.object().fence().id()));
}
