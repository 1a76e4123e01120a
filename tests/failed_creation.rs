//! Failed creation: what the driver refuses to make or to open is neither closed nor destroyed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::FenceOptions;
use native_fence::gpu::NodePolicy;
use support::bench::{Call, Failing, LONG, on_every_bench};

fn of_fences(calls: Vec<Call>) -> Vec<Call> {
    let mut calls = calls;
    calls.retain(|call| {
        matches!(
            call,
            Call::CreateNativeFence(_)
                | Call::OpenNativeFence(..)
                | Call::CloseNativeFence(..)
                | Call::DestroyNativeFence(_)
        )
    });
    calls
}

/// NF-14: of a fence that the driver could not create it hears no more; of one that it created and could
/// not open, that it is destroyed; of a second handle that it could not open, nothing. What comes
/// afterwards is as if that had not been.
///
/// Kills `a-fence-that-was-not-created-is-destroyed`, `a-created-fence-is-not-destroyed`.
#[test]
fn nf_14_what_the_driver_did_not_make_is_not_taken_back() {
    on_every_bench(NodePolicy::default(), |bench| {
        bench.spy.take();
        bench.spy.fail(Failing::CreateNativeFence);
        bench.device.create_fence(0).unwrap_err();
        let calls = of_fences(bench.spy.take());
        assert!(
            matches!(calls[..], [Call::CreateNativeFence(_)]),
            "{calls:?}"
        );
        bench.spy.succeed();

        bench.spy.fail(Failing::OpenNativeFence);
        bench.device.create_fence(0).unwrap_err();
        match of_fences(bench.spy.take())[..] {
            [
                Call::CreateNativeFence(made),
                Call::OpenNativeFence(opened, ..),
                Call::DestroyNativeFence(gone),
            ] => assert_eq!((made, made), (opened, gone)),
            ref calls => panic!("{calls:?}"),
        }
        bench.spy.succeed();

        let options = FenceOptions {
            shared: true,
            ..FenceOptions::default()
        };
        let fence = bench.device.create_fence_with(options).unwrap();
        bench.spy.take();
        bench.spy.fail(Failing::OpenNativeFence);
        let other = bench.adapter.create_device();
        other.open_fence(&fence.share().unwrap()).unwrap_err();
        let calls = of_fences(bench.spy.take());
        assert!(
            matches!(calls[..], [Call::OpenNativeFence(..)]),
            "{calls:?}"
        );
        bench.spy.succeed();
        let opened = other.open_fence(&fence.share().unwrap()).unwrap();
        let mut queue = bench.device.create_hw_queue().unwrap();
        let list = native_fence::CommandList::new().signal(&fence, 1).clone();
        queue.submit(&list).unwrap();
        opened.wait(1, LONG).unwrap();
    });
}
