//! Peer settling: how long another process can keep a thread of this one at a fence.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod passing;
}

use native_fence::abi::OpenerSlot;
use native_fence::gpu::NodePolicy;
use native_fence::shared::Block;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use support::bench::{Moment, on_every_bench, until};
use support::passing::{passed, shared};

/// How often the other changes its mind.
const CHANGES: u64 = 200;

/// NF-08: another process that waits for something else whenever this one has posted what it waits for
/// has a CPU signal post a few times; the rest is done by the thread that hears of it, and done to the end.
///
/// Kills `a-settling-ends-when-others-let-it`, `what-a-settling-leaves-is-forgotten`.
#[test]
fn nf_08_a_signal_posts_a_few_times_and_leaves_the_rest() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = shared(&bench.device, 0);
        let _handle = passed(&fence);
        let (region, _) = fence.object().fence().monitored_value_place();
        let page = Arc::new(Block::whole(&region.map().unwrap()));
        let other = 2 * OpenerSlot::BYTES;
        // One that lives, since it is this process, and never looks.
        let own = page.word(OpenerSlot::OWNER).observe();
        page.word(other + OpenerSlot::AWAITED).publish(1_000);
        page.word(other + OpenerSlot::OWNER).publish(own);
        let (changes, posts) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (changed, posted, words) =
            (Arc::clone(&changes), Arc::clone(&posts), Arc::clone(&page));
        let signaller = thread::current().id();
        bench.spy.hook(move |moment, _| {
            if moment != Moment::BeforeUpdateOfMonitoredValues {
                return;
            }
            if thread::current().id() == signaller {
                posted.fetch_add(1, Ordering::Relaxed);
            }
            let change = 1 + changed.fetch_add(1, Ordering::Relaxed);
            let awaited = 1_000 + change.min(CHANGES);
            words.word(other + OpenerSlot::AWAITED).publish(awaited);
        });
        fence.signal(1).unwrap();
        let posts = posts.load(Ordering::Relaxed);
        assert!((1..=4).contains(&posts), "one signal posted {posts} times");
        until("all is posted", || {
            fence.object().fence().monitored_value() == 1_000 + CHANGES
        });
        bench.spy.unhook();
        page.word(other + OpenerSlot::OWNER).publish(0);
    });
}
