//! The viewer, over random traces: whatever stands in one, a picture of it is made, no tile of it has too much, and what lies
//! under any point can be told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use native_fence::trace::{
    AdapterName, Command, CpuWait, Event, FenceName, InterruptKind, Lost, LostFrom, NO_CPU_WAITER,
    Operation, QueueName, Slice, Trace, WaitEnd, WaiterKind, What,
};
use native_fence::viewer::{Scale, Scene, Tiles, View};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};

/// A trace has no time beyond this one.
const MOST_NS: u64 = 1 << 53;

/// Of many events some are at one moment, and some far from each other.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![0..40_u64, 0..1_000_000_u64, 0..MOST_NS, Just(MOST_NS)]
}

fn maybe() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(time())
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![0..9_u64, any::<u64>(), Just(NO_CPU_WAITER)]
}

fn command() -> impl Strategy<Value = What> {
    let operation = prop_oneof![Just(Operation::Wait), Just(Operation::Signal)];
    let times = (maybe(), maybe(), maybe());
    (0..3_u32, operation, 0..2_u32, value(), times, any::<bool>()).prop_map(
        |(queue, operation, fence, value, (queued, observed, end), is_lost)| {
            What::Command(Command {
                queue,
                operation,
                fence,
                value,
                queued,
                observed,
                end,
                is_lost,
            })
        },
    )
}

fn wait_end() -> impl Strategy<Value = (WaiterKind, WaitEnd)> {
    use WaitEnd::{AtOnce, GivenUp, Released, Seen};
    use WaiterKind::{Armed, Event, Future, Thread};
    let waiter = prop_oneof![Just(Thread), Just(Future), Just(Event), Just(Armed)];
    (
        waiter,
        prop_oneof![Just(AtOnce), Just(Seen), Just(Released), Just(GivenUp)],
    )
}

fn other() -> impl Strategy<Value = What> {
    let node = || 0..3_u32;
    prop_oneof![
        (node(), [time(), time(), time(), time()]).prop_map(|(node_ordinal, times)| {
            let [submitted, begin, end, seen] = times;
            What::Slice(Slice {
                node_ordinal,
                number: submitted,
                reason: begin,
                submitted,
                begin,
                end,
                seen,
            })
        }),
        (prop::option::of(node()), time()).prop_map(|(node_ordinal, done)| What::Interrupt {
            node_ordinal,
            kind: InterruptKind::EngineParking,
            fences: 0,
            done,
        }),
        (0..2_u32, value(), time()).prop_map(|(fence, value, done)| What::CpuSignal {
            fence,
            value,
            done
        }),
        (0..2_u32, value()).prop_map(|(fence, value)| What::MonitoredValue { fence, value }),
        (0..2_u32, value(), time(), time(), wait_end()).prop_map(
            |(fence, value, began, woke, (waiter, end))| {
                What::CpuWait(CpuWait {
                    fence,
                    value,
                    began,
                    woke,
                    waiter,
                    end,
                })
            }
        ),
        node().prop_map(|node_ordinal| What::Preemption { node_ordinal }),
        node().prop_map(|node_ordinal| What::Recovery {
            node_ordinal,
            step: String::from("a step \n of 字")
        }),
        (node(), any::<u64>()).prop_map(|(place, count)| {
            let from = match place {
                0 => LostFrom::WaitLog(0),
                1 => LostFrom::Slices(7),
                _ => LostFrom::Trace,
            };
            What::Lost(Lost { from, count })
        }),
    ]
}

fn trace() -> impl Strategy<Value = Trace> {
    let event = (time(), prop_oneof![3 => command(), 2 => other()]);
    let event = event.prop_map(|(at, what)| Event { at, what });
    let adapters = prop::collection::vec(0..4_u32, 0..3);
    let events = prop::collection::vec(event, 0..400);
    (events, time(), adapters).prop_map(|(mut events, length, adapters)| {
        events.sort_by_key(|event| event.at);
        let queue = |number| QueueName {
            node_ordinal: number / 2,
            number,
            process: 1,
            is_kernel_mode: number == 2,
        };
        let fence = |slot| FenceName::Native {
            adapter: 0,
            slot,
            generation: 2,
        };
        let adapter = |first_node| AdapterName {
            name: String::from("an adapter"),
            first_node,
        };
        Trace {
            length,
            adapters: adapters.into_iter().map(adapter).collect(),
            queues: (0..3).map(queue).collect(),
            fences: (0..2).map(fence).collect(),
            events,
            ..Trace::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_trace_is_drawn_within_bounds(
        trace in trace(),
        begin in time(),
        length in 1..1_000_000_u64,
        point in [0.0_f32..700.0, 0.0_f32..700.0],
        scroll in 0.0_f32..900.0,
    ) {
        let scene = Scene::new(&trace);
        let size = (640, 640);
        for scale in [Scale::One, Scale::Two] {
            let all = View::new(scene.span(), size, scale);
            let part = View::new((begin, begin + length), size, scale);
            for view in [all, part, all.zoom(1e9, 333.0), part.follow(trace.length)] {
                let view = View { cursor: Some(point), scroll, ..view };
                let picture = scene.picture(&view);
                assert!(picture.primitives.len() < 60_000);
                Tiles::of(&picture.primitives, size).unwrap();
                let _ = scene.details(&view, point);
            }
        }
    }
}
