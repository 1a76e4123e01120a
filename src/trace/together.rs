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
    /// There are not as many as adapters.
    #[must_use]
    pub fn join(&mut self, mut traces: Vec<Trace>) -> Trace {
        assert_eq!(traces.len(), self.adapters.len(), "a trace of each adapter");
        if let [_] = traces[..] {
            return traces.remove(0);
        }
        let began_ns = traces.iter().map(|trace| trace.began_ns).min().unwrap_or(0);
        let mut whole = Trace {
            began_ns,
            ..Trace::default()
        };
        for (adapter, mut trace) in traces.into_iter().enumerate() {
            let numbers = self.number(adapter, whole.clocks.len() as u32, &trace);
            let later = trace.began_ns - began_ns;
            for event in &mut trace.events {
                event.at += later;
                event.shift(|time| time + later);
                event.renumber(numbers);
            }
            whole.adapters.push(AdapterName {
                name: numbers.name.clone(),
                first_node: numbers.first_node,
            });
            whole.about.append(&mut trace.about);
            whole.length = whole.length.max(trace.length + later);
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
                node_ordinal: first_node + queue.node_ordinal,
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
        let node = |node: &mut u32| *node += numbers.first_node;
        match &mut self.what {
            What::Command(command) => {
                queue(&mut command.queue);
                fence(&mut command.fence);
            }
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
                | LostFrom::WaitQueuedLog(number) => queue(number),
                LostFrom::Slices(node_ordinal) => node(node_ordinal),
                LostFrom::Notes | LostFrom::Trace => {}
            },
        }
    }
}
