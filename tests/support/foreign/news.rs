//! News: what the engines tell the foreign driver, and how it tells the OS.
//!
//! Of signalled native fences a thread of its own tells, when it comes to it and the last one first; of all else, whoever
//! brings it. The engines' threads do not wait for the OS then. What is told late is allowed: who waits for it wakes, and
//! when the records were taken is said.

use super::fault::Fault;
use super::numbers::Numbers;
use native_fence::kmd::{
    Callbacks, ContextAllocation, ContextAllocationId, CreateContextAllocation, DdiError,
    DisconnectDoorbell, FeatureError, FeatureId, Interrupt, IsFeatureEnabledResult,
    NativeFenceInterface, NativeFenceSignaled, QueryFeatureInterface, WrongLevel,
};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

/// What is to be told of fences.
#[derive(Debug, Default)]
struct Post {
    letters: Mutex<Letters>,
    has_come: Condvar,
}

#[derive(Debug, Default)]
struct Letters {
    kept: VecDeque<NativeFenceSignaled>,
    is_over: bool,
}

impl Post {
    /// The next one, when there is one; none when the driver is stopped.
    fn next(&self) -> Option<NativeFenceSignaled> {
        let letters = self.letters.lock().unwrap();
        let is_quiet = |letters: &mut Letters| letters.kept.is_empty() && !letters.is_over;
        let mut letters = self.has_come.wait_while(letters, is_quiet).unwrap();
        if letters.is_over {
            return None;
        }
        letters.kept.pop_front()
    }
}

/// The thread that tells of fences.
#[derive(Debug)]
pub(crate) struct Teller {
    post: Arc<Post>,
    thread: JoinHandle<()>,
}

impl Teller {
    /// Ends it: what it has not told is told no more.
    pub(crate) fn end(self) {
        self.post.letters.lock().unwrap().is_over = true;
        self.post.has_come.notify_all();
        // The OS may stop its driver from what it was told by it.
        if self.thread.thread().id() != thread::current().id() {
            self.thread.join().unwrap();
        }
    }
}

/// The OS, as the engines see it.
pub(crate) struct News {
    os: Arc<dyn Callbacks>,
    numbers: Numbers,
    fault: Option<Fault>,
    post: Arc<Post>,
}

impl News {
    /// With the thread, which has begun.
    pub(crate) fn of(
        os: Arc<dyn Callbacks>,
        numbers: Numbers,
        fault: Option<Fault>,
    ) -> Result<(Arc<Self>, Teller), DdiError> {
        let post = Arc::new(Post::default());
        let (letters, tells) = (Arc::clone(&post), Arc::clone(&os));
        let thread = thread::Builder::new().name("nf-foreign".into());
        let thread = thread.spawn(move || {
            while let Some(signaled) = letters.next() {
                tells.notify_interrupt(Interrupt::NativeFenceSignaled(signaled));
            }
        });
        let thread = thread.map_err(DdiError::NoThread)?;
        let news = Self {
            os,
            numbers,
            fault,
            post: Arc::clone(&post),
        };
        Ok((Arc::new(news), Teller { post, thread }))
    }

    /// By the driver's names, and in its order.
    fn signaled(&self, mut signaled: NativeFenceSignaled) -> NativeFenceSignaled {
        signaled.node_ordinal = self.numbers.node(signaled.node_ordinal);
        signaled.hw_queue = signaled.hw_queue.map(|queue| self.numbers.queue(queue));
        if let Some(fences) = &mut signaled.fences {
            for fence in fences.iter_mut() {
                fence.hw_queue = fence.hw_queue.map(|queue| self.numbers.queue(queue));
            }
            fences.reverse();
        }
        signaled
    }
}

impl Callbacks for News {
    fn notify_interrupt(&self, interrupt: Interrupt) {
        let numbers = self.numbers;
        let told = match interrupt {
            Interrupt::NativeFenceSignaled(signaled) => {
                if self.fault != Some(Fault::LosesInterrupts) {
                    let signaled = self.signaled(signaled);
                    self.post.letters.lock().unwrap().kept.push_back(signaled);
                    self.post.has_come.notify_one();
                }
                return;
            }
            Interrupt::MonitoredFenceSignaled {
                node_ordinal,
                engine_ordinal,
            } => Interrupt::MonitoredFenceSignaled {
                node_ordinal: numbers.node(node_ordinal),
                engine_ordinal,
            },
            Interrupt::DmaCompleted {
                submission_id,
                node_ordinal,
                engine_ordinal,
            } => Interrupt::DmaCompleted {
                submission_id,
                node_ordinal: numbers.node(node_ordinal),
                engine_ordinal,
            },
            Interrupt::DmaPreempted {
                preemption_id,
                last_completed_id,
                node_ordinal,
                engine_ordinal,
            } => Interrupt::DmaPreempted {
                preemption_id,
                last_completed_id,
                node_ordinal: numbers.node(node_ordinal),
                engine_ordinal,
            },
            Interrupt::SuspendContextCompleted {
                context,
                suspend_fence,
            } => Interrupt::SuspendContextCompleted {
                context: numbers.context(context),
                suspend_fence,
            },
            Interrupt::ResampleFences {
                node_ordinal,
                mut slots,
            } => {
                slots.reverse();
                Interrupt::ResampleFences {
                    node_ordinal: numbers.node(node_ordinal),
                    slots,
                }
            }
            Interrupt::HwQueueFaulted { hw_queue, fault } => Interrupt::HwQueueFaulted {
                hw_queue: numbers.queue(hw_queue),
                fault,
            },
            Interrupt::ObjectsRetired { mut objects } => {
                objects.reverse();
                Interrupt::ObjectsRetired { objects }
            }
            Interrupt::EngineParking {
                node_ordinal,
                parking,
            } => Interrupt::EngineParking {
                node_ordinal: numbers.node(node_ordinal),
                parking,
            },
            Interrupt::EngineLost { node_ordinal } => Interrupt::EngineLost {
                node_ordinal: numbers.node(node_ordinal),
            },
        };
        self.os.notify_interrupt(told);
    }

    fn is_feature_enabled(&self, feature: FeatureId) -> IsFeatureEnabledResult {
        self.os.is_feature_enabled(feature)
    }

    fn query_feature_interface(
        &self,
        query: &QueryFeatureInterface,
    ) -> Result<NativeFenceInterface, FeatureError> {
        self.os.query_feature_interface(query)
    }

    fn disconnect_doorbell(&self, args: &DisconnectDoorbell) {
        self.os.disconnect_doorbell(&DisconnectDoorbell {
            hw_queue: self.numbers.queue(args.hw_queue),
            ..*args
        });
    }

    fn create_context_allocation(
        &self,
        args: &CreateContextAllocation,
    ) -> Result<ContextAllocation, DdiError> {
        self.os.create_context_allocation(&CreateContextAllocation {
            context: args.context.map(|context| self.numbers.context(context)),
            ..*args
        })
    }

    fn destroy_context_allocation(&self, id: ContextAllocationId) {
        self.os.destroy_context_allocation(id);
    }

    fn wrong_level(&self, wrong: WrongLevel) {
        self.os.wrong_level(wrong);
    }
}
