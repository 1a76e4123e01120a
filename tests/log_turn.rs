//! Wakers that move logs or switch tracing while their thread does (LG-07, LG-11): nobody sleeps for its
//! own thread.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{LogType, TRACED_LOG_ENTRIES};
use native_fence::gpu::NodePolicy;
use native_fence::os::{self, OsError};
use native_fence::umd::WaitFuture;
use native_fence::{Fence, Tracing};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use support::bench::{Bench, LONG, Moment, on_every_bench};

/// What a task does where it is woken, as one of an executor that polls in place.
struct InPlace(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for InPlace {
    fn wake(self: Arc<Self>) {
        let act = self.0.lock().unwrap().take();
        act.unwrap()();
    }
}

/// A future that waits for 1, whose waker does something in place. It waits until it is dropped.
fn wakes(fence: &Fence, act: impl FnOnce() + Send + 'static) -> Pin<Box<WaitFuture>> {
    let mut future = Box::pin(fence.wait_async(1));
    let waker = Waker::from(Arc::new(InPlace(Mutex::new(Some(Box::new(act))))));
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    future
}

type Said = Result<(), OsError>;

/// Has `call` made on a thread, and `act` by a waker on that thread, while the driver sets the first log:
/// what the call gave, and what the waker.
fn within<T: Send + 'static>(
    bench: &Bench,
    call: impl FnOnce() -> Said + Send + 'static,
    act: impl FnOnce() -> T + Send + 'static,
) -> (Said, T) {
    let fence = bench.fence(0);
    let (tell, told) = mpsc::channel();
    let _future = wakes(&fence, move || tell.send(act()).unwrap());
    bench
        .spy
        .once(Moment::AfterSetOfLog, move || fence.signal(1).unwrap());
    let (give, given) = mpsc::channel();
    // One that hangs ends with the process.
    thread::spawn(move || give.send(call()).unwrap());
    let said = told.recv_timeout(LONG).expect("a waker that comes back");
    let call = given.recv_timeout(LONG).expect("a call that comes back");
    (call, said)
}

fn assert_busy(said: &Said) {
    assert!(matches!(said, Err(OsError::Busy)), "{said:?}");
}

fn entries(queue: &os::HwQueue) -> u64 {
    queue.log_entries(LogType::Signals)
}

/// LG-07, LG-11: a waker that runs within the move of a log, or a switch of tracing, and asks for the same,
/// is refused and does not hang; what it ran in is done. It may move the log of another queue, and when
/// nothing is moved on its thread, any.
///
/// Kills `a-waker-sleeps-for-its-own-turn`, `a-switch-is-not-asked-for`.
#[test]
fn lg_07_a_waker_does_not_sleep_for_the_turn_of_its_thread() {
    on_every_bench(NodePolicy::default(), |bench| {
        let queues = [bench.queue(), bench.queue()].map(|queue| Arc::clone(queue.os()));
        let [queue, other] = &queues;
        let adapter = bench.adapter.os();

        let (own, all) = (Arc::clone(queue), (queues.clone(), Arc::clone(adapter)));
        let (resized, [same, another, tracing]) = within(
            bench,
            move || own.resize_logs(500),
            move || {
                let ([queue, other], adapter) = all;
                let another = other.resize_logs(700);
                let tracing = adapter.set_tracing(Tracing::On);
                [queue.resize_logs(600), another, tracing]
            },
        );
        resized.unwrap();
        another.unwrap();
        assert_busy(&same);
        assert_busy(&tracing);
        assert_eq!(adapter.tracing(), Tracing::Off);
        assert_eq!(entries(queue), 500);

        let all = (Arc::clone(queue), Arc::clone(adapter), Arc::clone(adapter));
        let (own, switches, again) = all;
        let (switched, said) = within(
            bench,
            move || switches.set_tracing(Tracing::On),
            move || again.set_tracing(Tracing::Verbose),
        );
        switched.unwrap();
        assert_busy(&said);
        assert_eq!(adapter.tracing(), Tracing::On);
        assert_eq!([queue, other].map(|q| entries(q)), [TRACED_LOG_ENTRIES; 2]);

        let fence = bench.fence(0);
        let _future = wakes(&fence, move || own.resize_logs(800).unwrap());
        fence.signal(1).unwrap();
        assert_eq!(entries(queue), 800);
    });
}

/// LG-07: two threads, each in the turn of a log, whose wakers ask for the other's: neither sleeps for the
/// other.
///
/// Kills `a-waker-sleeps-for-its-own-turn`.
#[test]
fn lg_07_two_wakers_do_not_sleep_for_each_other() {
    on_every_bench(NodePolicy::default(), |bench| {
        let queues = [bench.queue(), bench.queue()].map(|queue| Arc::clone(queue.os()));
        let meet = Arc::new(Barrier::new(2));
        thread::scope(|scope| {
            let moves = [0, 1].map(|at| {
                let (own, all, meet) = (Arc::clone(&queues[at]), queues.clone(), meet.clone());
                scope.spawn(move || {
                    let act = move || {
                        meet.wait();
                        let said = all.each_ref().map(|queue| queue.resize_logs(600));
                        // Neither leaves its turn before the other has asked.
                        meet.wait();
                        said
                    };
                    within(bench, move || own.resize_logs(500), act)
                })
            });
            for moved in moves {
                // Which of the two wakers ran on its thread is the spy's.
                let (resized, said) = moved.join().unwrap();
                resized.unwrap();
                said.iter().for_each(assert_busy);
            }
        });
        assert_eq!(queues.each_ref().map(|queue| entries(queue)), [500; 2]);
    });
}
