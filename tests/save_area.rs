//! Save areas (PR-13, PR-14): where a context's queues are saved, who makes and frees it, and what becomes of a
//! preempted packet when it moves.
//!
//! Eviction is a move here: all memory of areas is system memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod queue_of;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::abi::{Home, Packet, QueueState, QueueStatus, StallKind};
use native_fence::gpu::{NodePolicy, SaveArea};
use native_fence::kmd::{
    ContextAllocation, ContextAllocationId, ContextHandle, CreateContextAllocation, DriverOptions,
    Place, SubmitCommandFlags,
};
use native_fence::os::{self, MoveError, Record, SystemDevice};
use native_fence::shared::Block;
use native_fence::{Allocation, CommandList, HwContext, HwQueue, WaitError};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::bench::{
    Bench, Call, FOR_EVER, LONG, Moment, complete, fill, hang, large, on_every_bench,
    on_recovering_benches, short, soon, until, words,
};
use support::queue_of::queue_of;

fn context(bench: &Bench) -> HwContext {
    bench.device.create_context(0, 1).unwrap()
}

fn is_made(call: &Call) -> Option<(CreateContextAllocation, ContextAllocationId)> {
    match call {
        Call::CreateContextAllocation(asked, id) => Some((*asked, *id)),
        _ => None,
    }
}

/// What the driver has asked for, oldest first.
fn made(bench: &Bench) -> Vec<(CreateContextAllocation, ContextAllocationId)> {
    bench.spy.calls().iter().filter_map(is_made).collect()
}

fn destroyed(bench: &Bench) -> Vec<ContextAllocationId> {
    let is_destroyed = |call| match call {
        Call::DestroyContextAllocation(id) => Some(id),
        _ => None,
    };
    let calls = bench.spy.calls().into_iter();
    calls.filter_map(is_destroyed).collect()
}

/// Where in the calls the first of this kind stands.
fn place_of(bench: &Bench, is_it: impl Fn(&Call) -> bool) -> usize {
    bench.spy.calls().iter().position(is_it).unwrap()
}

fn only_area(bench: &Bench, context: ContextHandle) -> ContextAllocation {
    let mut areas = bench.spy.save_areas(context);
    assert_eq!(areas.len(), 1);
    areas.remove(0)
}

fn is_at_one_place(one: &ContextAllocation, other: &ContextAllocation) -> bool {
    Arc::ptr_eq(&one.region, &other.region) && one.offset == other.offset
}

fn bytes_of(area: &ContextAllocation) -> Block {
    let region = area.region.host().unwrap();
    region.part(area.offset, SaveArea::BYTES)
}

fn words_of(area: &ContextAllocation) -> Vec<u64> {
    let block = bytes_of(area);
    let words = (0..SaveArea::BYTES).step_by(8);
    words.map(|at| block.word(at).observe()).collect()
}

/// The two copies of a queue's state in its area, the one that holds first.
fn copies(area: &ContextAllocation, slot: u64) -> [Block; 2] {
    let block = bytes_of(area);
    let copy = |copy| block.part((2 * slot + copy) * QueueState::BYTES, QueueState::BYTES);
    let [even, odd] = [copy(0), copy(1)];
    let sequence = |of: &Block| of.word(QueueState::SEQUENCE).observe();
    if sequence(&odd) > sequence(&even) {
        [odd, even]
    } else {
        [even, odd]
    }
}

/// PR-13: a save area is made by a callback within the creation of its context, one for each context, and
/// is there before a queue is; it is system memory of the OS, zero, a page of its own. A context of more
/// queues than its area has slots gets another one. Each goes back by the other callback, once, after the last
/// queue of the context was destroyed, and the engine has no mapping of any then.
///
/// Kills `save-areas-are-kept`, `queues-share-a-slot`.
#[test]
fn pr_13_a_save_area_is_made_with_its_context_and_freed_with_it() {
    on_every_bench(NodePolicy::default(), |bench| {
        // The OS's own queue, which initialises areas, stays with the device.
        drop(bench.queue());
        until("its area has gone back", || destroyed(bench).len() == 1);
        bench.until_parked();
        bench.spy.take();
        let mappings = bench.counters().mappings;
        let (one, other) = (context(bench), context(bench));
        let handles = [one.os().handle(), other.os().handle()];
        let areas = made(bench);
        assert_eq!(areas.len(), 2);
        for ((asked, _), handle) in areas.iter().zip(handles) {
            assert_eq!(asked.context, Some(handle));
            assert_eq!(asked.process, bench.device.process().id());
            assert_eq!(asked.bytes, SaveArea::BYTES);
            let created = place_of(bench, |call| *call == Call::CreateContext(handle));
            let area = place_of(bench, |call| {
                is_made(call).is_some_and(|made| made.0 == *asked)
            });
            assert!(area < created, "the context is not made before");
            let area = only_area(bench, handle);
            assert_eq!(area.region.home(), Home::CachedSystem);
            assert!(area.region.exported().is_none(), "memory of no device");
            assert_eq!(area.offset % 4096, 0);
            assert!(words_of(&area).iter().all(|word| *word == 0));
        }

        let fence = bench.fence(0);
        let mut queues: Vec<_> = (0..=u64::from(SaveArea::SLOTS))
            .map(|_| one.create_hw_queue(8).unwrap())
            .collect();
        assert_eq!(made(bench).len(), 3, "one more for one queue more");
        assert_eq!(made(bench)[2].0.context, Some(handles[0]));
        for (queue, value) in queues.iter_mut().zip(1..) {
            complete(queue, CommandList::new().signal(&fence, value));
        }
        assert_eq!(fence.current_value(), u64::from(SaveArea::SLOTS) + 1);

        drop(queues);
        assert_eq!(destroyed(bench), [], "the context may get other queues");
        drop((one, other));
        until("all areas have gone back", || destroyed(bench).len() == 3);
        let mut last_queue = bench.spy.calls().into_iter();
        let last_queue = last_queue
            .rposition(|call| matches!(call, Call::DestroyHwQueue(_)))
            .unwrap();
        let first_area = place_of(bench, |call| {
            matches!(call, Call::DestroyContextAllocation(_))
        });
        assert!(last_queue < first_area);
        let mut gone = destroyed(bench);
        gone.sort();
        let ids: Vec<_> = made(bench).iter().map(|made| made.1).collect();
        assert_eq!(gone, ids);
        drop(fence);
        // What was retired before may have gone as well.
        until("nothing of it is mapped", || {
            bench.counters().mappings <= mappings
        });
    });
}

/// PR-13: the OS's own device has contexts as well, system contexts, for which no memory is asked. The common
/// area of a device is made and freed by the same callbacks, named by no context (this driver asks for none).
///
/// Kills `a-system-context-has-a-save-area`.
#[test]
fn pr_13_a_system_context_has_none_and_a_device_may_have_one() {
    on_every_bench(NodePolicy::default(), |bench| {
        let system = SystemDevice::open(bench.adapter.os(), 0).unwrap();
        let contexts = bench
            .spy
            .count(|call| matches!(call, Call::CreateContext(_)));
        assert_eq!((contexts, made(bench).len()), (1, 0));
        drop(system);

        let os = bench.spy.os();
        let asked = CreateContextAllocation {
            process: bench.device.process().id(),
            context: None,
            bytes: 40,
        };
        let common = os.create_context_allocation(&asked).unwrap();
        let other = os.create_context_allocation(&asked).unwrap();
        assert_ne!(common.id, other.id);
        let words = common.region.host().unwrap().part(common.offset, 40);
        assert_eq!(words.peek_words::<5>(0), [0; 5]);
        os.destroy_context_allocation(common.id);
        for bytes in [0, 12] {
            let asked = CreateContextAllocation { bytes, ..asked };
            assert!(os.create_context_allocation(&asked).is_err());
        }
        os.destroy_context_allocation(other.id);
    });
}

/// A queue in the middle of a fill, suspended; what it fills, and the value that completes it.
fn fill_in_the_middle(bench: &Bench) -> (HwQueue, Allocation, u64) {
    let mut queue = bench.queue();
    let memory = large(bench);
    bench.until_parked();
    let gate = bench.engine.close();
    let end = queue.submit(&fill(&memory, 7)).unwrap();
    until("the fill has begun", || {
        if word(&memory, 0) == 0 && bench.engine.at_gate() > 0 {
            gate.let_pass(1);
        }
        word(&memory, 0) == 7
    });
    let request = of(&queue).begin_suspend().unwrap();
    drop(gate);
    of(&queue).wait_suspended(request, Some(LONG)).unwrap();
    assert_eq!(word(&memory, memory.bytes() - 8), 0, "it is in the middle");
    (queue, memory, end)
}

fn of(queue: &HwQueue) -> Arc<os::HwContext> {
    Arc::clone(queue.os().context())
}

fn word(of: &Allocation, at: u64) -> u64 {
    let mut word = [0];
    of.read(at, &mut word);
    word[0]
}

fn is_filled(memory: &Allocation, from: u64) -> bool {
    let from = from as usize / 8;
    words(memory)[from..].iter().all(|word| *word == 7)
}

/// PR-13: what a preempted packet needs to go on lies in the area. A save that was begun and not finished is
/// not taken: whatever stands in the copy that does not hold, the fill goes on where the other one says. And a
/// save that was finished there is: the fill begins anew when it says so.
///
/// Kills `a-torn-save-is-taken`.
#[test]
fn pr_13_a_packet_goes_on_from_its_area() {
    on_every_bench(short(), |bench| {
        for (is_finished, first_word) in [(false, 0), (true, 7)] {
            let (queue, memory, end) = fill_in_the_middle(bench);
            let area = only_area(bench, of(&queue).handle());
            let [holds, other] = copies(&area, 0);
            let done = holds.word(QueueState::TRANSFERRED).observe();
            assert!(done > 0 && done < memory.bytes(), "{done}");
            let saved: [u64; QueueState::BYTES as usize / 8] = holds.peek_words(0);
            for (at, word) in (0..).step_by(8).zip(saved).skip(1) {
                let is_done = at == QueueState::TRANSFERRED;
                let word = if is_done { 0 } else { word };
                let torn = if is_finished { word } else { !word };
                other.word(at).put(torn);
            }
            if is_finished {
                other.word(QueueState::SEQUENCE).publish(saved[0] + 1);
            }
            memory.write(0, &[0]);
            of(&queue).resume();
            queue.progress_fence().wait(end, LONG).unwrap();
            assert_eq!(word(&memory, 0), first_word);
            assert!(is_filled(&memory, 8));
        }
    });
}

/// PR-13, PR-02: of a queue that was taken out at a wait the area says where it stands: at which packet, for
/// which fence and value, since when; and which packets are done.
///
/// Kills `a-saved-wait-has-no-first-look`.
#[test]
fn pr_13_the_area_says_where_a_queue_stands() {
    on_every_bench(NodePolicy::default(), |bench| {
        let suspended = context(bench);
        let mut queue = suspended.create_hw_queue(64).unwrap();
        let (gate, done) = (bench.fence(0), bench.fence(0));
        let mut list = CommandList::new();
        list.signal(&done, 1).wait(&gate, 5).signal(&done, 2);
        bench.then_parked(|| queue.submit(&list).unwrap());
        suspended.suspend(LONG).unwrap();
        let area = only_area(bench, suspended.os().handle());
        let [holds, _] = copies(&area, 0);
        let word = |offset| holds.word(offset).observe();
        assert_eq!(word(QueueState::STATUS), QueueStatus::Blocked as u64);
        assert_eq!(word(QueueState::HEAD_VALUE), 5);
        let handle = word(QueueState::HEAD_CONTROL) >> 32;
        assert_eq!(handle, u64::from(gate.handle().raw()));
        assert_eq!(word(QueueState::READ_INDEX), 1);
        assert_eq!(word(QueueState::SIGNAL_NUMBER), 1);
        assert!(word(QueueState::OBSERVED_TICKS) > 0);
        suspended.resume();
        gate.signal(5).unwrap();
        done.wait(2, LONG).unwrap();
    });
}

/// PR-14: before a command of a context runs, a paging packet of the OS's has initialised its save area, whatever
/// stood there: the packet completes, the driver is told, and only then the queue is in a slice. So is each
/// further area of a context with many queues. Nobody waits for it: queues are made and rung meanwhile.
///
/// Kills `a-save-area-is-not-initialised`, `a-queue-runs-before-its-area-is-initialised`,
/// `the-driver-is-not-told-of-an-initialised-area`.
#[test]
fn pr_14_a_save_area_is_initialised_before_the_first_command() {
    on_every_bench(NodePolicy::default(), |bench| {
        // The OS's own queue is there.
        let (fence, mut other) = (bench.fence(0), bench.queue());
        bench.until_parked();
        bench.spy.take();
        let gate = bench.engine.close();
        // A slice that does no transfers: the areas are initialised in a later one.
        other.submit(CommandList::new().nop()).unwrap();
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        let is_told = |call: &Call| matches!(call, Call::ContextAllocationInitialised(_));
        let _ = bench.engine.take_works();
        let told = Arc::new(Mutex::new(Vec::new()));
        let (noted, spy) = (Arc::clone(&told), Arc::clone(&bench.spy));
        bench
            .engine
            .on_start(move |_| noted.lock().unwrap().push(spy.count(is_told)));
        let new = context(bench);
        let mut queues: Vec<_> = (0..=u64::from(SaveArea::SLOTS))
            .map(|_| new.create_hw_queue(8).unwrap())
            .collect();
        let areas = bench.spy.save_areas(new.os().handle());
        assert_eq!(areas.len(), 2);
        for area in &areas {
            let block = bytes_of(area);
            (0..SaveArea::BYTES)
                .step_by(8)
                .for_each(|at| block.word(at).put(!0));
        }
        let values = queues.iter_mut().zip(1..).map(|(queue, value)| {
            let mut list = CommandList::new();
            list.wait(&fence, value - 1).signal(&fence, value);
            queue.submit(&list).unwrap()
        });
        let values: Vec<_> = values.collect();
        assert_eq!(bench.spy.count(is_told), 0);
        drop(gate);
        for (queue, value) in queues.iter().zip(values) {
            queue.progress_fence().wait(value, LONG).unwrap();
        }
        assert_eq!(fence.current_value(), u64::from(SaveArea::SLOTS) + 1);
        bench.engine.on_start(|_| {});
        let slices = bench.engine.take_works().into_iter();
        let told = std::mem::take(&mut *told.lock().unwrap());
        let before: Vec<u64> = (slices.zip(told))
            .filter_map(|(slice, told)| (told == 0).then_some(slice.queues))
            .collect();
        assert!(!before.is_empty());
        // The other one and the OS's own.
        assert!(before.iter().all(|queues| *queues <= 2), "{before:?}");
        let calls = bench.spy.calls();
        let place = |is_it: &dyn Fn(&Call) -> bool| calls.iter().position(is_it).unwrap();
        for (area, (_, made)) in areas.iter().zip(made(bench)) {
            assert_eq!(area.id, made);
            let told = place(&|call| *call == Call::ContextAllocationInitialised(area.id));
            let packet = place(
                &|call| matches!(call, Call::SubmitCommand { flags, .. } if flags.has(SubmitCommandFlags::PAGING)),
            );
            assert!(packet < told);
        }
        let packets = bench.spy.count(
            |call| matches!(call, Call::SubmitCommand { flags, .. } if *flags == SubmitCommandFlags::PAGING),
        );
        assert_eq!(packets, 2, "one for each");
    });
}

/// PR-14, TD-20: the packet that initialises an area is lost with a reset of the whole adapter. It is queued again
/// behind that, and the device, which has lost nothing, goes on.
///
/// Kills `a-lost-initialisation-is-not-made-again`, `a-lost-initialisation-is-a-loss`.
#[test]
fn pr_14_a_lost_initialisation_is_made_again() {
    let wide = DriverOptions {
        adapter_wide_tdr: true,
        ..DriverOptions::default()
    };
    on_recovering_benches(1, soon(), &wide, |bench| {
        let mut guilty = bench.queue();
        bench.until_parked();
        hang(&mut guilty);
        bench.until_stalled();
        let innocent = bench.adapter.create_device();
        let mut queue = queue_of(&innocent, 0);
        until("the adapter was reset", || {
            !bench.adapter.os().records().is_empty()
        });
        let records = bench.take_records();
        assert_eq!(records[0].code, Record::VIDEO_TDR_TIMEOUT_DETECTED);
        assert_eq!(innocent.execution_state(), DeviceExecutionState::ACTIVE);
        let value = queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
    });
}

/// PR-14: a save area is moved while a fill is preempted, by a paging packet of the system device: it has
/// the same content in the new place, the old one is free for others, and the fill goes on where it was, none of
/// it twice. It can be moved again.
///
/// Kills `a-moved-area-is-looked-for-where-it-was`, `a-moved-area-is-empty`.
#[test]
fn pr_14_a_moved_save_area_keeps_its_content() {
    move_between_parts();
}

/// PR-15: what a split packet is saved in is moved between two of its parts: it is found at its new place, and
/// not used at the old one, where another's words stand by then.
///
/// Kills `a-moved-area-is-looked-for-where-it-was`.
#[test]
fn pr_15_a_save_area_moved_between_two_parts_is_found_at_its_new_place() {
    move_between_parts();
}

fn move_between_parts() {
    on_every_bench(short(), |bench| {
        let system = SystemDevice::open(bench.adapter.os(), 0).unwrap();
        let (queue, memory, end) = fill_in_the_middle(bench);
        let context = of(&queue);
        let first = only_area(bench, context.handle());
        let mut moves = 0;
        while moves < 2 || is_at_one_place(&first, &only_area(bench, context.handle())) {
            let before = only_area(bench, context.handle());
            let (old, content) = (bytes_of(&before), words_of(&before));
            assert!(content.iter().any(|word| *word != 0));
            system.move_save_areas(&context, Some(LONG)).unwrap();
            let after = only_area(bench, context.handle());
            assert!(!is_at_one_place(&before, &after));
            assert_eq!(words_of(&after), content);
            for at in (0..SaveArea::BYTES).step_by(8) {
                old.word(at).publish(!0);
            }
            let other = bench.fence(0);
            complete(&mut bench.queue(), CommandList::new().signal(&other, 1));
            moves += 1;
        }
        memory.write(0, &[0]);
        context.resume();
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(word(&memory, 0), 0, "that part was done");
        assert!(is_filled(&memory, 8));
    });
}

/// PR-14: who does not wait for a copy to its end leaves it to itself: it ends when the engine comes to it, with
/// what it names open until then, and the system device goes on. The area is where it was, and can be moved.
///
/// Kills `a-late-copy-is-closed`.
#[test]
fn pr_14_a_copy_that_is_not_waited_for_ends_by_itself() {
    on_every_bench(NodePolicy::default(), |bench| {
        let system = SystemDevice::open(bench.adapter.os(), 0).unwrap();
        let suspended = context(bench);
        let mut queue = suspended.create_hw_queue(64).unwrap();
        suspended.suspend(LONG).unwrap();
        bench.until_parked();
        let before = only_area(bench, suspended.os().handle());
        let paging = system.queue();
        let gate = bench.engine.close();
        let moved = system.move_save_areas(suspended.os(), Some(Duration::ZERO));
        let is_late = matches!(moved, Err(MoveError::Copy(WaitError::TimedOut)));
        assert!(is_late, "{moved:?}");
        drop(gate);
        bench.until_parked();
        assert_eq!(paging.error(), None);
        let stays = only_area(bench, suspended.os().handle());
        assert!(is_at_one_place(&before, &stays));
        system.move_save_areas(suspended.os(), Some(LONG)).unwrap();
        let after = only_area(bench, suspended.os().handle());
        assert!(!is_at_one_place(&before, &after));
        suspended.resume();
        complete(&mut queue, CommandList::new().nop());
    });
}

/// PR-13: a save area outlives the engine, in the memory where it was: another engine takes the place of one
/// that hangs, finds there where a suspended queue stands, and goes on. It moves then as ever.
///
/// Kills `a-successor-saves-where-the-one-before-did`.
#[test]
fn pr_13_a_save_area_outlives_its_engine() {
    on_recovering_benches(1, soon(), &DriverOptions::default(), |bench| {
        let gate = bench.fence(0);
        let mut suspended = [context(bench), context(bench)].map(|suspended| {
            let mut queue = suspended.create_hw_queue(64).unwrap();
            let memory = bench.device.create_allocation(64).unwrap();
            let end = bench.then_parked(|| {
                let mut list = CommandList::new();
                queue
                    .submit(list.fill(&memory, 0..64, 7).wait(&gate, 5))
                    .unwrap()
            });
            suspended.suspend(LONG).unwrap();
            memory.write(0, &[0]);
            (suspended, queue, memory, end)
        });
        let saved = |context: &HwContext| {
            let area = only_area(bench, context.os().handle());
            let [holds, _] = copies(&area, 0);
            // But for the number of the save, and whether its engine has looked at the wait.
            let words = (0..QueueState::BYTES).step_by(8);
            let words = words.filter(|at| ![QueueState::SEQUENCE, QueueState::STATUS].contains(at));
            let words: Vec<_> = words.map(|at| holds.word(at).observe()).collect();
            (area.id, area.offset, words)
        };
        let before = suspended.each_ref().map(|(context, ..)| saved(context));

        let guilty = bench.adapter.create_device();
        let mut hung = guilty.create_hw_queue().unwrap();
        hang(&mut hung);
        until("the recovery is noted", || {
            !bench.adapter.os().records().is_empty()
        });
        assert_eq!(bench.take_records().len(), 1);
        let after = suspended.each_ref().map(|(context, ..)| saved(context));
        assert_eq!(after, before);

        let system = SystemDevice::open(bench.adapter.os(), 0).unwrap();
        let moved = suspended[0].0.os();
        system.move_save_areas(moved, Some(LONG)).unwrap();
        gate.signal(5).unwrap();
        for (context, queue, memory, end) in &mut suspended {
            context.resume();
            queue.progress_fence().wait(*end, LONG).unwrap();
            let waits = queue.read_wait_log().unwrap().entries;
            assert_eq!(waits.len(), 1);
            assert!(waits[0].observed_ticks > 0);
            assert_eq!(word(memory, 0), 0, "that packet was done");
            assert_eq!(word(memory, 8), 7);
        }
    });
}

/// PR-14: an area that the host writes to between the copy and the move, as when a log moves, is copied
/// again; and one whose context is not suspended stays where it is.
///
/// Kills `an-area-moves-without-its-content`, `the-area-of-a-running-context-moves`.
#[test]
fn pr_14_an_area_that_was_written_to_since_is_copied_again() {
    on_every_bench(NodePolicy::default(), |bench| {
        let system = SystemDevice::open(bench.adapter.os(), 0).unwrap();
        let mut queue = bench.queue();
        let (gate, done) = (bench.fence(0), bench.fence(0));
        let mut list = CommandList::new();
        list.wait(&gate, 5).signal(&done, 1);
        bench.then_parked(|| queue.submit(&list).unwrap());
        let context = of(&queue);
        let area = only_area(bench, context.handle());
        let refused = system.move_save_areas(&context, Some(LONG));
        assert!(matches!(refused, Err(MoveError::NotSuspended)));
        let same = Place {
            region: &area.region,
            offset: area.offset,
        };
        let moved = bench.spy.driver().move_context_allocation(area.id, same);
        assert!(moved.is_err(), "{moved:?}");

        context.suspend(Some(LONG)).unwrap();
        let last = bytes_of(&area);
        bench.spy.once(Moment::BeforeMoveOfAllocation, move || {
            last.word(SaveArea::BYTES - 8).publish(9);
        });
        system.move_save_areas(&context, Some(LONG)).unwrap();
        let moves = |call: &Call| *call == Call::MoveContextAllocation(area.id);
        assert_eq!(bench.spy.count(moves), 2);
        let after = only_area(bench, context.handle());
        assert_eq!(words_of(&after).last(), Some(&9));
        context.resume();
        assert_eq!(done.current_value(), 0);
        gate.signal(5).unwrap();
        done.wait(1, LONG).unwrap();
        let fill = bench.device.create_allocation(64).unwrap();
        complete(&mut queue, CommandList::new().fill(&fill, 0..64, 7));
    });
}

/// TD-08, PR-14: the copy of an area that is lost, since its engine hangs: the area stays where it was, the
/// device whose context it is of is in error, others are not, and the system device moves the next one.
///
/// Kills `a-save-area-is-nobodys`.
#[test]
fn td_08_an_area_whose_copy_is_lost_stays_where_it_was() {
    on_recovering_benches(1, soon(), &DriverOptions::default(), |bench| {
        let owner = bench.adapter.create_device();
        let [lost, next] = [&owner, &bench.device].map(|device| {
            let context = device.create_context(0, 1).unwrap();
            context.suspend(LONG).unwrap();
            context
        });
        let before = only_area(bench, lost.os().handle());
        let system = SystemDevice::open(bench.adapter.os(), 0).unwrap();
        let stall = Packet::stall(StallKind::HeedsNothing, FOR_EVER);
        let queue = system.queue();
        queue.queue_commands(&[stall], Vec::new()).unwrap();
        let moved = system.move_save_areas(lost.os(), Some(LONG));
        assert!(matches!(moved, Err(MoveError::Copy(_))), "{moved:?}");
        until("the recovery is noted", || {
            !bench.adapter.os().records().is_empty()
        });
        assert_eq!(bench.take_records().len(), 1);
        let after = only_area(bench, lost.os().handle());
        assert!(is_at_one_place(&before, &after));
        assert_eq!(owner.execution_state(), DeviceExecutionState::RESET);
        let active = DeviceExecutionState::ACTIVE;
        assert_eq!(bench.device.execution_state(), active);
        assert_eq!(system.execution_state(), active);
        system.move_save_areas(next.os(), Some(LONG)).unwrap();
    });
}
