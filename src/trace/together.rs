//! Together: traces of several adapters, recorded at one time, as one trace.
//!
//! All have CLOCK_MONOTONIC, so times are moved by when each began and stay as right as they were. Nodes are counted
//! through. Queues and fences get numbers of the whole when they are first met, and keep them in all that is brought
//! together by the same [`Together`]: whoever looks at recordings while they go on has one number for each.
//!
//! A cross-adapter fence has the same name in the trace of each adapter and is one fence here, so arrows go from one
//! adapter to another. One that came from another process has no such name: what is known of it is its adapter's.

use super::{AdapterName, Event, FenceName, LostFrom, QueueName, Trace, What};
use std::collections::HashMap;

/// See the file's head.
#[derive(Debug)]
pub struct Together {
    adapters: Vec<Numbers>,
    queues: Vec<QueueName>,
    fences: Vec<FenceName>,
    fence_numbers: HashMap<FenceName, u32>,
}

/// What the numbers of one adapter's traces are in the whole.
#[derive(Debug)]
struct Numbers {
    name: String,
    first_node: u32,
    queues: Vec<u32>,
    fences: Vec<u32>,
}

impl Together {
    /// Of adapters with these names.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        let adapters = names.into_iter().map(|name| Numbers {
            name,
            first_node: 0,
            queues: Vec::new(),
            fences: Vec::new(),
        });
        Self {
            adapters: adapters.collect(),
            queues: Vec::new(),
            fences: Vec::new(),
            fence_numbers: HashMap::new(),
        }
    }

    /// The trace of them all: one of each adapter, in their order, of the same time, or cut at about the same. Each has a
    /// clock of each of its adapter's nodes. That of one adapter stays as it is.
    ///
    /// # Panics
    /// There are not as many as adapters, or one is of several already.
    #[must_use]
    pub fn join(&mut self, mut traces: Vec<Trace>) -> Trace {
        assert_eq!(traces.len(), self.adapters.len(), "a trace of each adapter");
        if let [_] = traces[..] {
            return traces.remove(0);
        }
        let is_of_one = |trace: &Trace| trace.adapters.is_empty();
        assert!(traces.iter().all(is_of_one), "each of one adapter");
        let began_ns = traces.iter().map(|trace| trace.began_ns).min().unwrap_or(0);
        let mut whole = Trace {
            began_ns,
            ..Trace::default()
        };
        for (adapter, mut trace) in traces.into_iter().enumerate() {
            let numbers = self.number(adapter, whole.clocks.len() as u32, &trace);
            let later = trace.began_ns - began_ns;
            for event in &mut trace.events {
                event.at = event.at.saturating_add(later);
                event.shift(|time| time.saturating_add(later));
                event.renumber(numbers);
            }
            whole.adapters.push(AdapterName {
                name: numbers.name.clone(),
                first_node: numbers.first_node,
            });
            whole.about.append(&mut trace.about);
            whole.length = whole.length.max(trace.length.saturating_add(later));
            whole.clocks.append(&mut trace.clocks);
            whole.events.append(&mut trace.events);
        }
        whole.events.sort_by_key(|event| event.at);
        whole.queues.clone_from(&self.queues);
        whole.fences.clone_from(&self.fences);
        whole
    }

    /// Gives numbers to what is new in a trace.
    fn number(&mut self, adapter: usize, first_node: u32, trace: &Trace) -> &Numbers {
        let numbers = &mut self.adapters[adapter];
        numbers.first_node = first_node;
        for queue in trace.queues.iter().skip(numbers.queues.len()) {
            numbers.queues.push(self.queues.len() as u32);
            self.queues.push(QueueName {
                node_ordinal: first_node.saturating_add(queue.node_ordinal),
                ..*queue
            });
        }
        for name in trace.fences.iter().skip(numbers.fences.len()) {
            let name = name.on(adapter as u32);
            let next = self.fences.len() as u32;
            let number = *self.fence_numbers.entry(name).or_insert(next);
            if number == next {
                self.fences.push(name);
            }
            numbers.fences.push(number);
        }
        numbers
    }
}

impl Trace {
    /// Traces of adapters, with their names, as one: see [`Together`].
    #[must_use]
    pub fn together(traces: Vec<(String, Self)>) -> Self {
        let (names, traces) = traces.into_iter().unzip();
        Together::new(names).join(traces)
    }
}

impl FenceName {
    fn on(self, adapter: u32) -> Self {
        match self {
            Self::Native {
                slot, generation, ..
            } => Self::Native {
                adapter,
                slot,
                generation,
            },
            Self::Handle {
                process, handle, ..
            } => Self::Handle {
                adapter,
                process,
                handle,
            },
            Self::CrossAdapter { .. } => self,
        }
    }
}

impl Event {
    fn renumber(&mut self, numbers: &Numbers) {
        let queue = |queue: &mut u32| *queue = numbers.queues[*queue as usize];
        let fence = |fence: &mut u32| *fence = numbers.fences[*fence as usize];
        let node = |node: &mut u32| *node = node.saturating_add(numbers.first_node);
        match &mut self.what {
            What::Command(command) => {
                queue(&mut command.queue);
                fence(&mut command.fence);
            }
            What::Dispatch(dispatch) => queue(&mut dispatch.queue),
            What::Slice(slice) => node(&mut slice.node_ordinal),
            What::Interrupt { node_ordinal, .. } => node_ordinal.iter_mut().for_each(node),
            What::CpuSignal { fence: number, .. } | What::MonitoredValue { fence: number, .. } => {
                fence(number);
            }
            What::CpuWait(wait) => fence(&mut wait.fence),
            What::Preemption { node_ordinal } | What::Recovery { node_ordinal, .. } => {
                node(node_ordinal);
            }
            What::Lost(lost) => match &mut lost.from {
                LostFrom::WaitLog(number)
                | LostFrom::SignalLog(number)
                | LostFrom::VerboseLog(number) => queue(number),
                LostFrom::Slices(node_ordinal) => node(node_ordinal),
                LostFrom::Notes | LostFrom::Trace => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Command, CpuWait, GpuClock, Lost, Operation, Release, Releaser, Slice, WaitEnd, WaiterKind,
    };
    use super::*;

    const CROSS: FenceName = FenceName::CrossAdapter { number: 40 };

    fn local(adapter: u32, slot: u32) -> FenceName {
        FenceName::Native {
            adapter,
            slot,
            generation: 1,
        }
    }

    fn queue(node_ordinal: u32, number: u32) -> QueueName {
        QueueName {
            node_ordinal,
            number,
            process: 1,
            is_kernel_mode: false,
        }
    }

    fn command(queue: u32, operation: Operation, fence: u32, times: [u64; 3]) -> Event {
        let [queued, observed, end] = times;
        let what = What::Command(Command {
            queue,
            operation,
            fence,
            value: 5,
            queued: Some(queued),
            observed: (operation == Operation::Wait).then_some(observed),
            end: Some(end),
            is_lost: false,
        });
        Event { at: queued, what }
    }

    fn slice(node_ordinal: u32, begin: u64) -> Event {
        let what = What::Slice(Slice {
            node_ordinal,
            number: 1,
            reason: 1,
            submitted: begin,
            begin,
            end: begin + 1,
            seen: begin + 2,
        });
        Event { at: begin, what }
    }

    /// Of two nodes, begun at that time, with a queue of each.
    fn trace(began_ns: u64, fences: &[FenceName], events: Vec<Event>) -> Trace {
        Trace {
            began_ns,
            length: 1000,
            clocks: vec![GpuClock::default(); 2],
            queues: vec![queue(0, 3), queue(1, 3)],
            fences: fences.to_vec(),
            events,
            ..Trace::default()
        }
    }

    fn together() -> Together {
        Together::new(vec![String::from("here"), String::from("there")])
    }

    /// Mutants: `times-of-the-later-adapter-stand-too-early`, `nodes-of-two-adapters-are-one`.
    #[test]
    fn times_are_since_the_first_began_and_nodes_are_counted_through() {
        let marks = [LostFrom::Slices(1), LostFrom::WaitLog(1)].map(|from| Event {
            at: 30,
            what: What::Lost(Lost { from, count: 2 }),
        });
        let wait = CpuWait {
            fence: 0,
            value: 5,
            began: 20,
            woke: 25,
            waiter: WaiterKind::Event,
            end: WaitEnd::GivenUp,
        };
        let wait = Event {
            at: 20,
            what: What::CpuWait(wait),
        };
        let later = [vec![slice(1, 10), wait], marks.to_vec()].concat();
        let here = trace(500, &[local(0, 3)], vec![slice(1, 110)]);
        let whole = together().join(vec![here, trace(600, &[local(0, 3)], later)]);
        assert_eq!((whole.began_ns, whole.length), (500, 1100));
        assert!(whole.events.is_sorted_by_key(|event| event.at));
        let of: Vec<_> = (0..4).map(|node| whole.adapter_of_node(node)).collect();
        assert_eq!(of, [(0, 0), (0, 1), (1, 0), (1, 1)].map(Some));
        let nodes: Vec<_> = whole.queues.iter().map(|q| q.node_ordinal).collect();
        assert_eq!(nodes, [0, 1, 2, 3]);
        assert_eq!(whole.fences, [local(0, 3), local(1, 3)]);
        assert_eq!(whole.fence_name(1), "fence 3 of adapter 1");
        let expected = [slice(1, 110), slice(3, 110)];
        assert_eq!(whole.events[..2], expected);
        let What::CpuWait(wait) = &whole.events[2].what else {
            panic!("{whole:?}")
        };
        assert_eq!((wait.fence, wait.began, wait.woke), (1, 120, 125));
        let lost: Vec<_> = whole.lost().map(|lost| lost.from).collect();
        assert_eq!(lost, [LostFrom::Slices(3), LostFrom::WaitLog(3)]);
        let names: Vec<_> = whole.adapters.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["here", "there"]);
    }

    /// Mutant: `a-fence-of-two-adapters-is-two`.
    #[test]
    fn a_cross_adapter_fence_is_one_and_releases_from_one_adapter_to_the_other() {
        let signal = command(1, Operation::Signal, 1, [10, 0, 200]);
        let wait = command(0, Operation::Wait, 0, [20, 30, 150]);
        let here = trace(500, &[local(0, 0), CROSS], vec![signal]);
        let there = trace(600, &[CROSS, local(0, 0)], vec![wait]);
        let whole = together().join(vec![here, there]);
        assert_eq!(whole.fences, [local(0, 0), CROSS, local(1, 0)]);
        let release = Release {
            signal: Releaser::Command(0),
            wait: 1,
        };
        assert_eq!(whole.releases(), [release]);
    }

    /// Mutants: `numbers-change-from-cut-to-cut`, `what-is-new-has-a-number-that-is-taken`.
    #[test]
    fn numbers_stay_in_all_cuts() {
        let mut together = together();
        let first = trace(500, &[local(0, 0)], Vec::new());
        let other = trace(600, &[local(0, 7), CROSS], Vec::new());
        let before = together.join(vec![first.clone(), other.clone()]);
        // One more queue here, and the fence that the other had already.
        let mut first = trace(
            500,
            &[local(0, 0), CROSS, local(0, 1)],
            vec![command(2, Operation::Signal, 1, [10, 0, 20])],
        );
        first.queues.push(queue(1, 8));
        let mut other = other;
        other.events = vec![command(1, Operation::Wait, 1, [1, 2, 3])];
        let after = together.join(vec![first, other]);
        assert_eq!(before.queues[..], after.queues[..4]);
        assert_eq!(before.fences[..], after.fences[..3]);
        assert_eq!(after.queues[4..], [queue(1, 8)]);
        assert_eq!(after.fences[3..], [local(0, 1)]);
        let named: Vec<_> = after.commands().map(|(_, c)| (c.queue, c.fence)).collect();
        assert_eq!(named, [(4, 2), (3, 2)]);
    }

    #[test]
    fn that_of_one_adapter_stays_as_it_is() {
        let alone = trace(500, &[local(0, 3), CROSS], vec![slice(1, 10)]);
        let named = vec![(String::from("alone"), alone.clone())];
        assert_eq!(Trace::together(named), alone);
    }
}
