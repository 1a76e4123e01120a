//! Node policy: how slices end, and how long a waiter looks.

use crate::abi::Delivery;
use std::time::Duration;

/// How a node spends its engine.
#[derive(Clone, Copy, Debug)]
pub struct NodePolicy {
    /// GPU time after which a slice ends, so that others get the device.
    pub slice_time: Duration,
    /// GPU time without a step of any queue after which a slice ends as idle. Long enough that a
    /// producer which keeps writing need not ring, short enough that an idle GPU is let go.
    pub idle_window: Duration,
    /// The same while another engine runs, or sleeps for a value, and the device has room for all:
    /// longer than it takes to bring one back, or two that wait for each other would take turns in
    /// being parked.
    pub company_window: Duration,
    /// The same while other engines want the device and it has no room for all, or while they do not
    /// answer: some 20 steps.
    pub crowded_window: Duration,
    /// The same, if it is longer, while a queue stands at a wait for which an engine of another adapter may ring (XA-10),
    /// and no engine of this one wants the device: longer than that adapter's OS and engine need to come to a processor,
    /// on a busy machine too, where it is another thread's for some milliseconds.
    pub doorbell_window: Duration,
    /// How interrupts come. Polled: a CPU waiter does not sleep but watches, and slices go on when
    /// they raise; only what sleeps, a parked engine, is interrupted for.
    pub delivery: Delivery,
    /// How long a CPU waiter looks before it sleeps, while a slice is in flight: about what the
    /// way from the end of a slice to the waiter costs once both have slept (25 to 130 µs on the
    /// two-core machines that this was measured on).
    pub wait_spin: Duration,
}

impl Default for NodePolicy {
    fn default() -> Self {
        Self {
            slice_time: Duration::from_millis(4),
            idle_window: Duration::from_micros(50),
            company_window: Duration::from_micros(300),
            crowded_window: Duration::from_micros(10),
            doorbell_window: Duration::from_millis(6),
            delivery: Delivery::Event,
            wait_spin: Duration::from_micros(100),
        }
    }
}
