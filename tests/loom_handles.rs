//! Handles of a process, in every order that loom finds: the OS opens and closes them while an engine resolves what packets
//! name. As `tests/loom.rs` otherwise.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_rig;
}

use loom::thread;
use native_fence::CommandList;
use native_fence::abi::{FaultCode, LocalHandle, WordGroup};
use native_fence::gpu::{ExploredHandles, Resolution};
use native_fence::shared::ExploresMore;
use support::loom_rig::{Rig, RigOptions, explore};

/// HQ-04, HQ-05: a handle is opened and closed while a lane resolves it and the handle that the place will be for next. It
/// names nothing, then its fence, whole, then nothing any more; and the other one names nothing.
#[test]
fn loom_a_handle_is_opened_and_closed_while_a_lane_resolves_it() {
    let handle = |generation| LocalHandle::new(0, generation).unwrap();
    explore(3..=4, move || {
        let (mut handles, lane) = ExploredHandles::new().unwrap();
        handles.open(LocalHandle::new(1, 1).unwrap(), 9).unwrap();
        loom::explore();
        let opens = thread::spawn(move || {
            handles.open(handle(1), 7).unwrap();
            handles.always_signal(handle(1));
            handles.close(handle(1));
            handles
        });
        let stages = [
            Resolution::Fault(FaultCode::Handle),
            Resolution::Fence(7, 7),
            Resolution::Fault(FaultCode::StaleHandle),
        ];
        let mut stage = 0;
        for _ in 0..2 {
            let found = lane.resolve(handle(1)).unwrap();
            let now = stages.iter().position(|stage| *stage == found);
            let now = now.unwrap_or_else(|| panic!("{found:?} is none of its stages"));
            assert!(now >= stage, "{found:?} after {:?}", stages[stage]);
            stage = now;
        }
        let next = lane.resolve(handle(2)).unwrap();
        assert!(matches!(next, Resolution::Fault(_)), "{next:?}");
        // The slice is over, so the place may be another handle's.
        let mut handles = opens.join().unwrap();
        loom::stop_exploring();
        handles.open(handle(2), 8).unwrap();
        assert_eq!(lane.resolve(handle(1)).unwrap(), stages[2]);
        assert_eq!(lane.resolve(handle(2)).unwrap(), Resolution::Fence(8, 8));
    });
}

/// HQ-05: a packet is on its way when the handle that it carries is closed: the handle that has the place of that next, and
/// names another fence, is not taken for it in the midst.
#[test]
fn loom_a_late_packet_does_not_name_the_next_handles_fence() {
    explore(1..=2, || {
        let _more = ExploresMore::of(&[WordGroup::HandleTable]);
        let rig = Rig::new(RigOptions::default());
        let (old, mut queue) = (rig.fence(), rig.queue());
        rig.rest();
        loom::explore();
        queue.submit(CommandList::new().signal(&old, 7)).unwrap();
        drop(old);
        let new = rig.fence();
        new.signal(1).unwrap();
        loom::stop_exploring();
        // No slice runs any more.
        queue.os().disconnect_doorbell();
        assert_eq!(new.current_value(), 1);
    });
}
