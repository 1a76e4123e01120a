//! Second process: a fence of this process that another one has open, and one of that which this one has, signalled in the
//! one and waited for in the other by engines and CPUs. What fails are the calls, descriptors, mappings and threads of
//! this process.

use super::{Chapter, Teller};
use crate::sweep::peer::Peer;
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::sweep::waiters::{Waiters, woken};
use crate::{Adapter, CommandList, Device, EventHandle, Fence, FenceOptions, SharedHandle};

/// Tells it.
pub(super) fn tell(
    teller: &mut Teller<'_>,
    adapter: &Adapter,
    waiters: &mut Waiters,
) -> Result<(), Told> {
    // That it is there is no concern of the chapter's.
    teller.end_chapter();
    let peer = step("a second process", Peer::start(teller.start_peer))?;
    teller.begin(Chapter::SecondProcess)?;
    let told = pass(teller, adapter, waiters, &peer);
    let ended = peer.end(told.is_ok());
    teller.beat();
    told.and(ended)
}

fn pass(
    teller: &mut Teller<'_>,
    adapter: &Adapter,
    waiters: &mut Waiters,
    peer: &Peer,
) -> Result<(), Told> {
    peer.hear()?;
    let device = adapter.create_device();
    let theirs = SharedHandle::receive(peer.socket());
    let theirs = step("a handle of a second process", theirs)?;
    let theirs = teller.make("a fence of a second process", &device, || {
        device.open_fence(&theirs)
    })?;
    let told = answer(teller, &device, waiters, peer, &theirs);
    if told.is_err() {
        // What a waiter waits for may not come any more.
        theirs.close();
    }
    told
}

fn answer(
    teller: &mut Teller<'_>,
    device: &Device,
    waiters: &mut Waiters,
    peer: &Peer,
    theirs: &Fence,
) -> Result<(), Told> {
    let options = FenceOptions {
        shared: true,
        ..FenceOptions::default()
    };
    let ours = teller.make("a fence to share", device, || {
        device.create_fence_with(options)
    })?;
    let shared = teller.make("a handle to share", device, || ours.share())?;
    step("a handle to send", shared.send(peer.socket()))?;
    let mut queue = teller.make("a queue", device, || device.create_hw_queue())?;
    let event = step("an event handle", EventHandle::new())?;
    let waiter = waiters.add("a fence of a second process", theirs, 2, event);
    step("a waiter", waiter)?;
    // Its queue waits.
    peer.hear()?;
    teller.beat();
    let mut list = CommandList::new();
    list.signal(&ours, 1).wait(theirs, 1).signal(&ours, 2);
    let end = step("a submission", queue.submit(&list))?;
    let progress = queue.progress_fence();
    let ended = woken(|most| progress.wait(end, most));
    step("the queue's progress", ended)?;
    let ended = woken(|most| theirs.wait(2, most));
    step("a wait for a second process", ended)?;
    peer.hear()?;
    teller.beat();
    Ok(())
}
