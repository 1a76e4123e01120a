//! Values stored backwards (NF-21): from the CPU with leave alone, from the GPU always, and counted.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, SignalError};
use support::bench::{complete, monitored_value, on_every_bench};

/// A CPU signal below CurrentValue is refused and names the value; nothing is stored, no waiter
/// released, no MonitoredValue posted. The same value again is none, and stored.
///
/// Kills `a-lower-value-is-stored-from-the-cpu`.
#[test]
fn nf_21_a_lower_value_is_refused_from_the_cpu() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(7);
        let waiter = bench.waiter(&fence, 9);
        for value in [6, 0] {
            let refused = Err(SignalError::Backward { current: 7 });
            assert_eq!(fence.signal(value), refused);
            assert_eq!(fence.current_value(), 7);
            assert_eq!(monitored_value(&fence), 8);
        }
        assert_eq!(fence.signal(7), Ok(()));
        assert!(!waiter.is_finished());
        fence.signal(9).unwrap();
        assert_eq!(waiter.join(), Ok(()));
    });
}

/// With AllowFenceRewind it is stored, and later signals of the GPU raise as they did before.
///
/// Kills `a-rewind-is-refused`.
#[test]
fn nf_21_a_rewind_stores_a_lower_value_and_the_fence_goes_on() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        for _ in 0..3 {
            let waiter = bench.waiter(&fence, 5);
            complete(&mut queue, CommandList::new().signal(&fence, 5));
            assert_eq!(waiter.join(), Ok(()));
            fence.rewind(2).unwrap();
            assert_eq!(fence.current_value(), 2);
        }
    });
}

/// A GPU signal below CurrentValue is stored, and counted; one of the same value is not counted.
///
/// Open: the trace that tells of it comes with tracing.
///
/// Kills `backward-stores-are-not-counted`.
#[test]
fn nf_21_a_lower_value_from_the_gpu_is_stored_and_counted() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let mut queue = bench.queue();
        let list = &mut CommandList::new();
        list.signal(&fence, 5).signal(&fence, 5).signal(&fence, 3);
        complete(&mut queue, list);
        assert_eq!(fence.current_value(), 3);
        bench.until_parked();
        assert_eq!(bench.counters().backward_signals, 1);
    });
}
