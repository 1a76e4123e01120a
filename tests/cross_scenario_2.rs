//! Scenarios 2a and 2b of the article, "Cross-adapter native fences": the iGPU has none, and waits (XA-06) or signals
//! (XA-07). A test for each pair of the tables. Whichever made the fence, it is monitored there and native on the dGPU
//! (XA-08).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod two_benches;
}

use native_fence::os::OsError;
use native_fence::umd::MonitoredFenceOptions;
use native_fence::{CommandList, CreateError, CrossAdapter, FenceOptions, ShareError};
use support::bench::{Call, complete, monitored, native, until};
use support::two_benches::{
    Before, By, MonitoredWait, NativeWait, Seen, knows_native_fences, of_two_kinds, on_two_kinds,
    seen, signal_native, stands_for_a_while, two_drivers,
};

/// How often a file of memory is mapped by this process for reading and writing.
fn writable_mappings(inode: u64) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let is_one = |line: &&str| {
        let words: Vec<_> = line.split_whitespace().collect();
        words[1].starts_with("rw") && words[4] == inode.to_string()
    };
    maps.lines().filter(is_one).count()
}

/// XA-02: the side of an adapter without native fences is the same word of the same file of memory, and its driver is
/// given it: its engine has the page in a mapping of its own, beside those of the OS and of the other driver.
///
/// Kills `a-monitored-side-is-not-mapped`, `the-other-driver-does-not-map-the-page`.
#[test]
fn xa_02_both_drivers_map_the_page_of_current_value() {
    on_two_kinds(|without, with| {
        let made = with
            .device
            .create_fence_with(FenceOptions {
                cross_adapter: Some(CrossAdapter::Propagated),
                initial: 7,
                ..FenceOptions::default()
            })
            .unwrap();
        let (region, offset) = native(&made).current_value_place();
        let file = region.file().unwrap().unwrap();
        let before = writable_mappings(file.1);
        let shared = made.share().unwrap();
        let opened = without.device.open_monitored_fence(&shared).unwrap();
        assert_eq!(writable_mappings(file.1), before + 1);
        let fence = opened.object().fence();
        let (region, there) = fence.current_value_place();
        assert_eq!((region.file().unwrap().unwrap(), there), (file, offset));
        let mapped = Call::MapMonitoredFence(fence.id());
        assert_eq!(without.spy.count(|call| *call == mapped), 1);
        assert_eq!(opened.current_value(), 7);
        made.signal(8).unwrap();
        assert_eq!(opened.current_value(), 8);
        opened.signal(9).unwrap();
        assert_eq!(native(&made).current_value(), 9);
    });
}

fn cell_2a(wait: By, signal: By) {
    on_two_kinds(|igpu, dgpu| {
        for made_native in [true, false] {
            let (waited, signalled) = of_two_kinds(igpu, dgpu, made_native);
            let waits = MonitoredWait::standing(igpu, &waited, wait);
            let seen_there = signal_native(dgpu, &signalled, signal, waits.watch());
            waits.ends();
            assert_eq!(waited.current_value(), 10);
            assert_eq!(seen(&dgpu.spy, &signalled), seen_there);
            assert!(!knows_native_fences(&igpu.spy));
        }
    });
}

/// Kills `monitored-sides-do-not-hear`, `queues-are-taken-for-threads`.
#[test]
fn xa_06_wait_from_gpu_signal_from_gpu() {
    cell_2a(By::Gpu, By::Gpu);
}

/// Kills `a-cpu-signal-stays-on-its-adapter`, `propagated-before-it-is-stored`.
#[test]
fn xa_06_wait_from_gpu_signal_from_cpu() {
    cell_2a(By::Gpu, By::Cpu);
}

/// Kills `nobody-propagates`, `who-was-released-stays-in-its-list`.
#[test]
fn xa_06_wait_from_cpu_signal_from_gpu() {
    cell_2a(By::Cpu, By::Gpu);
}

/// Kills `a-cpu-signal-stays-on-its-adapter`, `monitored-sides-do-not-hear`, `propagated-before-it-is-stored`.
#[test]
fn xa_06_wait_from_cpu_signal_from_cpu() {
    cell_2a(By::Cpu, By::Cpu);
}

fn cell_2b(wait: By, signal: By) {
    on_two_kinds(|igpu, dgpu| {
        for made_native in [true, false] {
            let (signalled, waited) = of_two_kinds(igpu, dgpu, made_native);
            let waits = NativeWait::standing(dgpu, &waited, wait);
            let (stored, stands) = (signalled.clone(), waits.watch());
            let before = Before::each_call(dgpu, move || {
                (stored.current_value(), stands_for_a_while(&stands))
            });
            match signal {
                By::Gpu => {
                    let gate = monitored::starts_at(igpu, 0);
                    let mut queue = igpu.device.create_kernel_queue().unwrap();
                    queue.wait(&gate, 1).unwrap();
                    queue.signal(&signalled, 10).unwrap().flush().unwrap();
                    assert!(
                        stands_for_a_while(&waits.watch()),
                        "it is not at the head of its software context"
                    );
                    assert_eq!(waited.current_value(), 0);
                    gate.signal(1).unwrap();
                    waits.ends();
                }
                By::Cpu => {
                    signalled.signal(10).unwrap();
                    waits.ends();
                }
            }
            assert_eq!(
                (signalled.current_value(), waited.current_value()),
                (10, 10)
            );
            assert_eq!(seen(&dgpu.spy, &waited), [Seen::Notified(10)]);
            assert_eq!(
                before.end(dgpu),
                [(10, true)],
                "the value comes before the notification, and the waiter after it"
            );
            assert!(!knows_native_fences(&igpu.spy));
        }
    });
}

/// Kills `monitored-signals-stay-on-their-adapter`, `an-engine-stores-a-cross-adapter-fence`,
/// `released-before-they-are-notified`.
#[test]
fn xa_07_wait_from_gpu_signal_from_gpu() {
    cell_2b(By::Gpu, By::Gpu);
}

/// Kills `monitored-signals-stay-on-their-adapter`, `propagated-before-the-os-stores-it`, `released-before-they-are-notified`.
#[test]
fn xa_07_wait_from_gpu_signal_from_cpu() {
    cell_2b(By::Gpu, By::Cpu);
}

/// Kills `monitored-signals-stay-on-their-adapter`, `propagated-before-the-os-stores-it`.
#[test]
fn xa_07_wait_from_cpu_signal_from_gpu() {
    cell_2b(By::Cpu, By::Gpu);
}

/// Kills `monitored-signals-stay-on-their-adapter`, `released-before-they-are-notified`.
#[test]
fn xa_07_wait_from_cpu_signal_from_cpu() {
    cell_2b(By::Cpu, By::Cpu);
}

/// XA-08: one value on both, all of its 64 bits, whatever the engines of the adapter without native fences store; in
/// turn, in both directions; back as well.
///
/// Kills `a-side-of-32-bits`.
#[test]
fn xa_08_values_pass_in_both_directions() {
    on_two_kinds(|without, with| {
        for made_native in [true, false] {
            let (monitored, fence) = of_two_kinds(without, with, made_native);
            assert!(monitored.is_64_bit());
            let mut queue = without.device.create_kernel_queue().unwrap();
            let mut user = with.queue();
            // Each waits for the other's value and answers with the next.
            let mut list = CommandList::new();
            for turn in 0..4u64 {
                let at = |part: u64| (1 << 33) * turn + part;
                queue.signal(&monitored, at(1)).unwrap();
                queue.wait(&monitored, at(2)).unwrap();
                list.wait(&fence, at(1)).signal(&fence, at(2));
            }
            let end = user.submit(&list).unwrap();
            let done = queue.submit(CommandList::new().nop()).unwrap();
            until("both have done all", || {
                user.progress_fence().current_value() >= end
                    && queue.progress_fence().current_value() >= done
            });
            assert_eq!(monitored.current_value(), (3 << 33) + 2);
            assert_eq!(native(&fence).current_value(), (3 << 33) + 2);
        }
    });
}

/// XA-08, NF-26: what was raised before the value was taken back releases nobody who waits after that, on either adapter;
/// who waited before and was satisfied goes on.
///
/// Kills `a-rewind-is-heard-by-nobody`.
#[test]
fn xa_08_a_rewind_is_heard_on_the_other_adapter() {
    on_two_kinds(|without, with| {
        let (monitored, fence) = of_two_kinds(without, with, true);
        let mut queue = with.queue();
        with.until_parked();
        with.spy.take();
        with.spy.keep_interrupts();
        let before = monitored::sleeper(&monitored, 9);
        complete(&mut queue, CommandList::new().signal(&fence, 10));
        fence.rewind(5).unwrap();
        before.join().unwrap().unwrap();
        let after = monitored::sleeper(&monitored, 6);
        with.spy.pass_interrupts();
        for interrupt in with.spy.interrupts() {
            with.spy.interrupt(interrupt);
        }
        assert!(!after.is_finished(), "the record is older than the rewind");
        assert_eq!(monitored.object().fence().standing().len(), 1);
        monitored.signal(6).unwrap();
        after.join().unwrap().unwrap();
        assert_eq!(native(&fence).current_value(), 6);
    });
}

/// XA-08: what a fence is on an adapter is not the user's choice.
///
/// Kills `a-monitored-side-beside-native-fences`.
#[test]
fn xa_08_what_it_is_not_there_is_refused() {
    on_two_kinds(|without, with| {
        let (monitored, fence) = of_two_kinds(without, with, true);
        let shared = fence.share().unwrap();
        let is = |error: CreateError, is: fn(&OsError) -> bool| match error {
            CreateError::Os(error) => assert!(is(&error), "{error}"),
            other => panic!("{other}"),
        };
        let refused = with.device.open_monitored_fence(&shared).unwrap_err();
        is(refused, |error| matches!(error, OsError::NativeHere));
        let options = MonitoredFenceOptions {
            cross_adapter: true,
            ..MonitoredFenceOptions::default()
        };
        let refused = with
            .device
            .create_monitored_fence_with(options)
            .unwrap_err();
        is(refused, |error| matches!(error, OsError::NativeHere));
        let refused = without.device.open_fence(&shared).unwrap_err();
        is(refused, |error| matches!(error, OsError::NoNativeFences(_)));

        let plain = monitored::starts_at(without, 0);
        assert_eq!(plain.share().unwrap_err(), ShareError::Monitored);
        let options = FenceOptions {
            shared: true,
            ..FenceOptions::default()
        };
        let shared = with
            .device
            .create_fence_with(options)
            .unwrap()
            .share()
            .unwrap();
        let refused = without.device.open_monitored_fence(&shared).unwrap_err();
        is(refused, |error| matches!(error, OsError::NotCrossAdapter));
        monitored.close();
        assert_eq!(monitored.share().unwrap_err(), ShareError::Closed);
    });
}

/// XA-02, XA-06 to XA-08: all of the above on two drivers of one process, of which one has no native fences as it stands.
///
/// Kills `monitored-sides-do-not-hear`, `the-other-driver-does-not-map-the-page`.
#[test]
fn xa_08_all_of_it_holds_on_two_drivers() {
    two_drivers::hold_on_two_drivers("xa_0", 12);
}
