//! Sample: a trace for tests, a microsecond a step.

use crate::trace::{
    Command, CpuWait, Event, FenceName, Operation, QueueName, Slice, Trace, WaitEnd, WaiterKind,
    What,
};

pub(super) const US: u64 = 1000;

fn command(queue: u32, operation: Operation, value: u64, at: [Option<u64>; 3]) -> What {
    let [queued, observed, end] = at.map(|time| time.map(|time| time * US));
    What::Command(Command {
        queue,
        operation,
        fence: 1,
        value,
        queued,
        observed,
        end,
        is_lost: false,
    })
}

/// Queue 9 of node 1 releases queue 2, which stands first, and a thread; ten signals are queued behind it.
pub(super) fn trace() -> Trace {
    use Operation::{Signal, Wait};
    let queue = |node_ordinal, number| QueueName {
        node_ordinal,
        number,
        process: 7,
        is_kernel_mode: false,
    };
    let fence = |slot| FenceName::Native {
        adapter: 0,
        slot,
        generation: 1,
    };
    let wait = CpuWait {
        fence: 1,
        value: 5,
        began: 30 * US,
        woke: 60 * US,
        waiter: WaiterKind::Thread,
        end: WaitEnd::Released,
    };
    let slice = Slice {
        node_ordinal: 1,
        number: 3,
        reason: 2,
        submitted: 0,
        begin: 5 * US,
        end: 55 * US,
        seen: 56 * US,
    };
    let mut events = vec![
        (5, What::Slice(slice)),
        (10, command(0, Signal, 5, [Some(10), None, Some(50)])),
        (11, command(1, Wait, 5, [Some(11), Some(20), Some(51)])),
        (30, What::CpuWait(wait)),
    ];
    for value in 6..16 {
        let at = [Some(12), None, Some(46 + value)];
        events.push((12, command(1, Signal, value, at)));
    }
    events.sort_by_key(|(at, _)| *at);
    Trace {
        length: 100 * US,
        queues: vec![queue(1, 9), queue(1, 2)],
        fences: vec![fence(8), fence(4)],
        events: events
            .into_iter()
            .map(|(at, what)| Event { at: at * US, what })
            .collect(),
        ..Trace::default()
    }
}
