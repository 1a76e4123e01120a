//! The end of a process that has an adapter open.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod engines;
    pub(crate) mod respawned;
    pub(crate) mod until;
}

use native_fence::CommandList;
use native_fence::vulkan::{Alive, EndsAtExit, InVulkan, at_exit};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};
use support::until::{until, until_sleeping};
use support::{engines, respawned};

/// What a child says before it ends.
const ENDS: &str = "the child ends with an adapter open";

/// Whether a thread of a driver is there that may be in Vulkan.
fn has_interrupt_threads() -> bool {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks.flatten().any(|task| {
        let name = fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.starts_with("nf-irq"))
    })
}

/// Runs after all that was registered later. A thread that has left its service may need a moment to
/// be gone.
extern "C" fn refuse_interrupt_threads() {
    let patience = Instant::now() + Duration::from_secs(20);
    while has_interrupt_threads() {
        if Instant::now() > patience {
            // SAFETY: ends the process, with nothing that it would have done at its end.
            unsafe { libc::_exit(3) };
        }
        thread::yield_now();
    }
}

#[test]
#[ignore = "run by another test, as a process that ends"]
fn child_ends_with_an_adapter_open() {
    // SAFETY: a function without arguments, which may run on any thread.
    assert_eq!(unsafe { libc::atexit(refuse_interrupt_threads) }, 0);
    let adapter = engines::shader().unwrap();
    until("the driver's thread has its name", has_interrupt_threads);
    std::mem::forget(adapter);
    println!("{ENDS}");
}

/// A program may end with an adapter open: no thread of the driver is in Vulkan any more when that
/// takes itself apart.
///
/// Kills `nothing-ends-at-exit`, `a-stopped-node-leaves-its-thread-at-exit`.
#[test]
fn a_process_may_end_with_an_adapter_open() {
    if engines::shader().is_some() {
        respawned::run_well("child_ends_with_an_adapter_open", &[], ENDS);
    }
}

/// The process is about to end.
static ENDS_NOW: AtomicBool = AtomicBool::new(false);

/// Whether what was being dropped at the end of the process is.
static DROPPED: AtomicBool = AtomicBool::new(false);

extern "C" fn refuse_what_is_not_dropped() {
    if !DROPPED.load(Ordering::Acquire) {
        // SAFETY: as above.
        unsafe { libc::_exit(3) };
    }
}

/// Takes until the thread that ends the process sleeps for it.
struct Slow {
    begins: mpsc::Sender<()>,
    ends_process: rustix::thread::Pid,
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.begins.send(()).unwrap();
        until("the process ends", || ENDS_NOW.load(Ordering::Acquire));
        until_sleeping(self.ends_process);
        DROPPED.store(true, Ordering::Release);
    }
}

/// What a driver is to the handler.
struct SlowToDrop {
    _slow: Slow,
    _alive: Alive,
}

impl EndsAtExit for SlowToDrop {
    fn end_at_exit(&self, _: Instant) {}
}

#[test]
#[ignore = "run by another test, as a process that ends"]
fn child_ends_while_it_drops() {
    // SAFETY: as above.
    assert_eq!(unsafe { libc::atexit(refuse_what_is_not_dropped) }, 0);
    let (begins, begun) = mpsc::channel();
    let what = Arc::new_cyclic(|me: &Weak<SlowToDrop>| SlowToDrop {
        _slow: Slow {
            begins,
            ends_process: rustix::thread::gettid(),
        },
        _alive: at_exit(me.clone()),
    });
    thread::spawn(move || drop(what));
    begun.recv().unwrap();
    println!("{ENDS}");
    ENDS_NOW.store(true, Ordering::Release);
    std::process::exit(0);
}

/// It may end while another thread drops what it had open, which is waited for.
///
/// Kills `an-end-under-way-is-not-waited-for`.
#[test]
fn a_process_may_end_while_an_adapter_is_dropped() {
    respawned::run_well("child_ends_while_it_drops", &[], ENDS);
}

extern "C" fn refuse_to_run() {
    // SAFETY: as above.
    unsafe { libc::_exit(3) };
}

#[test]
#[ignore = "run by another test, as a process that ends"]
fn child_ends_with_a_device_given_up() {
    // As a driver does when something of it is first used: after the adapter was opened, whose handler this one
    // would run before.
    // SAFETY: as above.
    assert_eq!(unsafe { libc::atexit(refuse_to_run) }, 0);
    std::mem::forget(InVulkan::begin());
    println!("{ENDS}");
}

/// It may end while a device that was given up is still in use: it ends at once, and nothing of a driver is
/// taken apart, whenever that was registered.
///
/// Kills `a-device-that-is-given-up-registers-nothing`.
#[test]
fn a_process_may_end_with_a_device_that_was_given_up() {
    respawned::run_well("child_ends_with_a_device_given_up", &[], ENDS);
}

/// Ends the process on the thread that wakes it.
struct EndsTheProcess;

impl Wake for EndsTheProcess {
    fn wake(self: Arc<Self>) {
        println!("{ENDS}");
        std::process::exit(0);
    }
}

#[test]
#[ignore = "run by another test, as a process that ends"]
fn child_ends_in_a_waker() {
    let adapter = engines::shader().unwrap();
    let device = adapter.create_device();
    let fence = device.create_fence(0).unwrap();
    let mut queue = device.create_hw_queue().unwrap();
    let mut wait = Box::pin(fence.wait_async(1));
    let waker = Waker::from(Arc::new(EndsTheProcess));
    assert_eq!(
        wait.as_mut().poll(&mut Context::from_waker(&waker)),
        Poll::Pending
    );
    queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
    loop {
        thread::park();
    }
}

/// It may end on a thread of the driver, which then waits for all of them but itself.
#[test]
fn a_process_may_end_on_an_interrupt_thread() {
    if engines::shader().is_some() {
        respawned::run_well("child_ends_in_a_waker", &[], ENDS);
    }
}
