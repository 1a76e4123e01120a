//! Event handles in tokio's runtime (NF-25), and futures beside them (NF-22); with the feature `tokio`
//! alone, for which no mutant is tried.
#![cfg(feature = "tokio")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, EventHandle, TokioEvent, WaitError};
use std::io::ErrorKind;
use std::time::Duration;
use support::bench::{LONG, nobody_waits, on_every_bench};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// The task is woken for each end of a wait, with the count of those since the last, and for failures
/// too; an event that nobody signals leaves it waiting.
#[test]
fn a_tokio_task_waits_for_an_event() {
    on_every_bench(NodePolicy::default(), |bench| {
        runtime().block_on(async {
            let event = EventHandle::new().unwrap();
            let registered = TokioEvent::new(event.clone()).unwrap();
            let (fence, mut queue) = (bench.fence(0), bench.queue());
            for value in 1..=100 {
                let wait = fence.wait_event(value, &event);
                queue
                    .submit(CommandList::new().signal(&fence, value))
                    .unwrap();
                let count = timeout(LONG, registered.ready()).await.unwrap();
                assert_eq!(count.unwrap(), 1);
                assert_eq!(wait.outcome(), Some(Ok(())));
            }
            // Its readiness is the runtime's memory; the count was taken.
            let brief = Duration::from_millis(2);
            assert!(timeout(brief, registered.ready()).await.is_err());

            let waits = [200, 300].map(|value| fence.wait_event(value, registered.event()));
            fence.close();
            let count = timeout(LONG, registered.ready()).await.unwrap();
            assert_eq!(count.unwrap(), 2);
            let closed = Some(Err(WaitError::Closed));
            assert!(waits.iter().all(|wait| wait.outcome() == closed));

            let twice = TokioEvent::new(event.clone()).map(drop);
            assert_eq!(twice.unwrap_err().kind(), ErrorKind::AlreadyExists);
            drop(registered);
            TokioEvent::new(event).unwrap();
        });
    });
}

/// Tasks of one thread await fences, which the GPU signals, with the runtime's time-outs: one that is
/// timed out is cancelled.
#[test]
fn tokio_tasks_await_fences() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, mut queue) = (bench.fence(0), bench.queue());
        runtime().block_on(async {
            let tasks: Vec<_> = (1..=50)
                .map(|value| tokio::spawn(fence.wait_async(value)))
                .collect();
            tokio::task::yield_now().await;
            let brief = Duration::from_millis(2);
            assert!(timeout(brief, fence.wait_async(1)).await.is_err());
            queue.submit(CommandList::new().signal(&fence, 50)).unwrap();
            for task in tasks {
                assert_eq!(timeout(LONG, task).await.unwrap().unwrap(), Ok(()));
            }
        });
        assert!(nobody_waits(&[fence]));
    });
}
