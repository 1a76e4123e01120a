//! Nodes and affinities (HQ-11): where a queue is made, and who is named when it signals.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::{ContextKind, NodePolicy};
use native_fence::kmd::{CreateContext, Ddi, DdiError};
use native_fence::{CommandList, HwQueueOptions};
use support::bench::{LONG, complete, native, on_benches_of};

const NODES: u32 = 3;

/// A queue is made on a node that the adapter has, with an affinity of exactly one bit, that of its
/// one engine; anything else is refused with the reason, and nothing of it stays.
///
/// Kills `any-affinity-will-do`.
#[test]
fn hq_11_a_queue_is_made_on_a_node_that_there_is_with_one_engine() {
    on_benches_of(NODES, NodePolicy::default(), |bench| {
        let create = |node_ordinal, engine_affinity| {
            let options = HwQueueOptions {
                node_ordinal,
                engine_affinity,
                ..HwQueueOptions::default()
            };
            bench.device.create_hw_queue_with(options)
        };
        let fence = bench.fence(0);
        for node_ordinal in 0..NODES {
            for affinity in [0, 2, 3, 1 << 31, u32::MAX] {
                let refused = create(node_ordinal, affinity).unwrap_err();
                assert!(refused.to_string().contains("affinity"), "{refused}");
            }
            let mut queue = create(node_ordinal, 1).unwrap();
            let value = u64::from(node_ordinal) + 1;
            complete(&mut queue, CommandList::new().signal(&fence, value));
            assert_eq!(fence.current_value(), value);
            assert_eq!(queue.os().handle().node_ordinal, node_ordinal);
        }
        for node_ordinal in [NODES, NODES + 1, u32::MAX] {
            let refused = create(node_ordinal, 1).unwrap_err();
            assert!(refused.to_string().contains("node ordinal"), "{refused}");
        }
    });
}

/// The driver looks for itself: the same at the Ddi, of whoever asks it for a context and by that for what is made in
/// one, and for a clock.
///
/// Kills `a-node-too-many`.
#[test]
fn hq_11_the_driver_refuses_a_node_that_there_is_not() {
    on_benches_of(NODES, NodePolicy::default(), |bench| {
        let (ddi, process) = (&bench.spy, bench.device.process().id());
        let create = |node_ordinal| {
            ddi.create_context(&CreateContext {
                process,
                node_ordinal,
                engine_affinity: 1,
                kind: ContextKind::Program,
            })
        };
        for node_ordinal in 0..NODES {
            let made = create(node_ordinal).unwrap();
            assert_eq!(made.node_ordinal, node_ordinal);
            ddi.destroy_context(made);
            ddi.calibrate_gpu_clock(node_ordinal, 0).unwrap();
        }
        for node_ordinal in [NODES, NODES + 1, u32::MAX] {
            let refused = create(node_ordinal).unwrap_err();
            assert!(
                matches!(refused, DdiError::InvalidParameter(_)),
                "{refused}"
            );
            let refused = ddi.calibrate_gpu_clock(node_ordinal, 0).unwrap_err();
            assert!(
                matches!(refused, DdiError::InvalidParameter(_)),
                "{refused}"
            );
        }
    });
}

/// An interrupt names the node whose engine signalled, and engine 0 of it.
///
/// Open: preemptions and resets name them too, when there are such.
///
/// Kills `interrupts-name-the-first-node`.
#[test]
fn hq_11_an_interrupt_names_the_node_that_raised_it() {
    on_benches_of(NODES, NodePolicy::default(), |bench| {
        for node_ordinal in 0..NODES {
            let fence = bench.fence(0);
            let mut queue = bench.queue_on(node_ordinal);
            let waiter = bench.waiter(&fence, 1);
            complete(&mut queue, CommandList::new().signal(&fence, 1));
            assert_eq!(waiter.join(), Ok(()));
            bench.until_told();
            let payloads = bench.spy.payloads();
            let of_fence = payloads.iter().filter(|payload| {
                let mut fences = payload.fences.iter().flatten();
                fences.any(|named| named.fence == native(&fence).id())
            });
            let raised: Vec<_> = of_fence
                .map(|payload| (payload.node_ordinal, payload.engine_ordinal))
                .collect();
            assert!(!raised.is_empty(), "node {node_ordinal} raised nothing");
            assert!(
                raised.iter().all(|named| *named == (node_ordinal, 0)),
                "{raised:?}"
            );
        }
    });
}

/// HQ-11: a context is made on a node that there is, for exactly the engine that it has, anything else is
/// refused and asks the driver for nothing; queues of both kinds that are made in it run there, and outlive
/// it.
///
/// Kills `a-context-on-any-node`, `a-context-of-any-engine`, `a-context-makes-queues-elsewhere`,
/// `a-context-makes-kernel-queues-elsewhere`.
#[test]
fn hq_11_a_context_says_where_its_queues_run() {
    on_benches_of(NODES, NodePolicy::default(), |bench| {
        bench.spy.take();
        for node_ordinal in [0, NODES - 1] {
            for affinity in [0, 2, 3, 1 << 31, u32::MAX] {
                let refused = bench.device.create_context(node_ordinal, affinity);
                let refused = refused.unwrap_err().to_string();
                // By the operating system, of this and the next: the driver says it otherwise.
                let said = format!("engine affinity {affinity:#x}:");
                assert!(refused.contains(&said), "{refused}");
            }
        }
        for node_ordinal in [NODES, NODES + 1, u32::MAX] {
            let refused = bench.device.create_context(node_ordinal, 1).unwrap_err();
            let refused = refused.to_string();
            let said = format!("node ordinal {node_ordinal}: the adapter has {NODES} nodes");
            assert!(refused.contains(&said), "{refused}");
        }
        assert_eq!(bench.spy.calls_of_os(), []);

        let fence = bench.device.create_monitored_fence(0).unwrap();
        let made: Vec<_> = (0..NODES)
            .map(|node_ordinal| {
                let context = bench.device.create_context(node_ordinal, 1).unwrap();
                assert_eq!(context.node_ordinal(), node_ordinal);
                assert_eq!(context.engine_affinity(), 1);
                let user = context.create_hw_queue(64).unwrap();
                let kernel = context.create_kernel_queue().unwrap();
                (node_ordinal, user, kernel)
            })
            .collect();
        for (value, (node_ordinal, mut user, mut kernel)) in (1..).zip(made) {
            assert_eq!(user.os().handle().node_ordinal, node_ordinal);
            assert_eq!(kernel.os().handle().node_ordinal, node_ordinal);
            complete(&mut user, CommandList::new().nop());
            kernel.signal(&fence, value).unwrap();
            kernel.flush().unwrap();
            fence.wait(value, LONG).unwrap();
        }
    });
}
