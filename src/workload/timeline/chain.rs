//! Chain: submissions without command buffers, each of which waits for the one before.
//!
//! Link `number` raises one of two timelines, by turns, and waits for what link `number - 1` raised the other to.

use crate::vulkan::{Queue, Submission, Timeline};

/// A link's wait and signal, on the timelines by number.
pub(super) type Link = (Option<(usize, u64)>, (usize, u64));

/// Link `number` of a chain that begins above `value`.
pub(super) fn link(value: u64, number: u64) -> Link {
    let raised = |number: u64| (number as usize % 2, value + number / 2 + 1);
    (number.checked_sub(1).map(raised), raised(number))
}

/// Hands `submit` the first so many links of a chain: for each of so many queues those that are its own, in their order.
pub(super) fn with_links<R>(
    timelines: &[Timeline; 2],
    value: u64,
    links: u64,
    queues: usize,
    submit: impl FnOnce(&[Vec<Submission<'_>>]) -> R,
) -> R {
    let on_timeline = |(timeline, value): (usize, u64)| (&timelines[timeline], value);
    let links: Vec<_> = (0..links)
        .map(|number| link(value, number))
        .map(|(wait, signal)| (wait.map(on_timeline), [on_timeline(signal)]))
        .collect();
    let lists: Vec<Vec<_>> = (0..queues)
        .map(|queue| {
            let of_queue = links.iter().skip(queue).step_by(queues);
            of_queue
                .map(|(wait, signals)| Submission {
                    commands: &[],
                    waits: wait.as_slice(),
                    signals,
                })
                .collect()
        })
        .collect();
    submit(&lists)
}

/// One `vkQueueSubmit` of each queue.
pub(super) fn submit(queues: &mut [Queue], lists: &[Vec<Submission<'_>>]) -> anyhow::Result<()> {
    for (queue, list) in queues.iter_mut().zip(lists) {
        queue.submit(list)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: u64 = 256;

    #[test]
    fn every_link_waits_for_what_the_one_before_signals() {
        for batch in 0..2 {
            let value = batch * LINKS / 2;
            assert_eq!(link(value, 0), (None, (0, value + 1)));
            for number in 1..LINKS {
                let (_, before) = link(value, number - 1);
                let (wait, signal) = link(value, number);
                assert_eq!(wait, Some(before));
                assert_ne!(signal.0, before.0);
            }
        }
        assert_eq!(link(0, LINKS - 1).1, (1, LINKS / 2));
    }
}
