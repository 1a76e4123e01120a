//! Who is kept out while an engine or its adapter is reset, in every order that loom finds: calls of the driver, and
//! interrupts; and the watch that finds what is to be reset. As `tests/loom.rs` otherwise.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_rig;
}

use loom::cell::UnsafeCell;
use loom::thread;
use native_fence::gpu::ExploredActivity;
use native_fence::kmd::ExploredInside;
use native_fence::os::ExploredDeferral;
use std::sync::Arc;
use support::loom_rig::explore;

/// What calls, or interrupts, look at, and a reset changes: loom fails where one does so while the other does, or cannot
/// see that the other has.
#[derive(Default)]
struct Guarded(UnsafeCell<()>);

impl Guarded {
    fn look(&self) {
        self.0.with(|_| ());
    }

    fn change(&self) {
        self.0.with_mut(|_| ());
    }
}

/// TD-18: two threads call the driver while its adapter is reset, twice: each call is over before a reset or comes after
/// it, and who sleeps for the other wakes up.
#[test]
fn loom_calls_come_while_an_adapter_is_reset() {
    explore(2..=3, || {
        let driver = Arc::new((ExploredInside::default(), Guarded::default()));
        loom::explore();
        let calls = [1, 2].map(|calls| {
            let driver = Arc::clone(&driver);
            thread::spawn(move || (0..calls).for_each(|_| driver.0.call(|| driver.1.look())))
        });
        for _ in 0..2 {
            driver.0.alone(|| driver.1.change());
        }
        calls.into_iter().for_each(|calls| calls.join().unwrap());
        loom::stop_exploring();
        // All have left: nobody is waited for.
        driver.0.alone(|| driver.1.change());
    });
}

/// TD-02: an engine raises while it is reset, twice: each interrupt is handled before a reset or after it, or is kept by
/// one; it is one of these, and once. What is kept of one thread is kept in its order.
#[test]
fn loom_interrupts_come_while_an_engine_is_reset() {
    explore(3..=3, || {
        let engine = Arc::new((ExploredDeferral::default(), Guarded::default()));
        loom::explore();
        let raises = [1..2, 2..4].map(|numbers| {
            let engine = Arc::clone(&engine);
            thread::spawn(move || {
                let raised = numbers.filter(|number| engine.0.raise(*number, || engine.1.look()));
                raised.collect::<Vec<_>>()
            })
        });
        let kept = [(); 2].map(|()| engine.0.reset(|| engine.1.change()));
        let handled = raises.map(|raises| raises.join().unwrap());
        loom::stop_exploring();
        let kept = kept.concat();
        let of_second = kept.iter().filter(|number| **number > 1);
        assert!(of_second.is_sorted(), "{kept:?}");
        let mut all = [kept, handled.concat()].concat();
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

/// Engines are taken from Parked while the watch over them goes to sleep, one of them again after it was let go: the watch
/// sees each that runs on, or it would find no hang of it.
#[test]
fn loom_engines_are_taken_while_their_watch_goes_to_sleep() {
    explore(2..=3, || {
        let engines = Arc::new(ExploredActivity::default());
        loom::explore();
        let takes = [0, 1].map(|engine| {
            let engines = Arc::clone(&engines);
            thread::spawn(move || {
                if engine == 0 {
                    engines.take(engine);
                    engines.park(engine);
                }
                engines.take(engine);
            })
        });
        engines.watch(|seen| seen == [true; 2]);
        takes.into_iter().for_each(|takes| takes.join().unwrap());
        loom::stop_exploring();
    });
}
