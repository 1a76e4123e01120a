//! Things: what the handles name that a case has, by what its calls have told it.

use super::ring::Ring;
use arbitrary::{Arbitrary, Result, Unstructured};
use native_fence::abi::wddm::KmtHandle;
use native_fence::capi::open_handles;

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Adapter,
    Device,
    Fence,
    Context,
    UserQueue,
    KernelQueue,
    Doorbell,
}

/// How a handle is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pick {
    /// One of the kind that the call wants.
    Live(u8),
    /// One of any kind.
    Any(u8),
    Closed(u8),
    Wild(u32),
    Nothing,
}

impl<'a> Arbitrary<'a> for Pick {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=31)? {
            0 => Self::Nothing,
            1 => Self::Wild(u.arbitrary()?),
            2 => Self::Closed(u.arbitrary()?),
            3 => Self::Any(u.arbitrary()?),
            _ => Self::Live(u.arbitrary()?),
        })
    }
}

/// What one handle names.
#[derive(Debug)]
pub(super) struct Thing {
    pub(super) handle: KmtHandle,
    pub(super) kind: Kind,
    parent: KmtHandle,
    /// By which packets name a fence.
    pub(super) packet_handle: u32,
    pub(super) is_progress: bool,
    pub(super) ring: Option<Ring>,
    /// The last value of a kernel-mode queue's progress.
    pub(super) progress: u64,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Things {
    live: Vec<Thing>,
    closed: Vec<KmtHandle>,
}

impl Things {
    /// A new thing, made on `parent`.
    ///
    /// # Panics
    /// If the handle names something already, or has named something.
    pub(super) fn add(&mut self, kind: Kind, handle: KmtHandle, parent: KmtHandle) -> &mut Thing {
        assert!(handle != 0 && self.of(handle).is_none() && !self.closed.contains(&handle));
        self.live.push(Thing {
            handle,
            kind,
            parent,
            packet_handle: 0,
            is_progress: false,
            ring: None,
            progress: 0,
        });
        let last = self.live.len() - 1;
        &mut self.live[last]
    }

    /// Takes a thing out, and what was made on it.
    pub(super) fn remove(&mut self, handle: KmtHandle) {
        let on_it: Vec<_> = self
            .live
            .iter()
            .filter(|thing| thing.parent == handle)
            .collect();
        for child in on_it.iter().map(|thing| thing.handle).collect::<Vec<_>>() {
            self.remove(child);
        }
        self.live.retain(|thing| thing.handle != handle);
        self.closed.push(handle);
    }

    pub(super) fn pick(&self, pick: Pick, kind: Kind) -> KmtHandle {
        let nth = |of: Vec<KmtHandle>, at: u8| of.get(usize::from(at) % of.len().max(1)).copied();
        let chosen = match pick {
            Pick::Live(at) => nth(self.all_of(kind), at),
            Pick::Any(at) => nth(self.all(|_| true), at),
            Pick::Closed(at) => nth(self.closed.clone(), at),
            Pick::Wild(handle) => Some(handle),
            Pick::Nothing => None,
        };
        chosen.unwrap_or(0)
    }

    /// A fence, of the device of what `of` names if it is to be a live one.
    pub(super) fn pick_beside(&self, pick: Pick, of: KmtHandle) -> KmtHandle {
        let device = self.above(of, Kind::Device);
        let fences = device.map(|device| self.under(device, Kind::Fence));
        match (pick, fences.as_deref()) {
            (Pick::Live(at), Some(fences @ [_, ..])) => fences[usize::from(at) % fences.len()],
            _ => self.pick(pick, Kind::Fence),
        }
    }

    /// All of a kind, in the order in which they were made.
    pub(super) fn all_of(&self, kind: Kind) -> Vec<KmtHandle> {
        self.all(|thing| thing.kind == kind)
    }

    fn all(&self, is: impl Fn(&Thing) -> bool) -> Vec<KmtHandle> {
        let all = self.live.iter().filter(|thing| is(thing));
        all.map(|thing| thing.handle).collect()
    }

    fn of(&self, handle: KmtHandle) -> Option<&Thing> {
        self.live.iter().find(|thing| thing.handle == handle)
    }

    pub(super) fn first(&self, kind: Kind) -> Option<KmtHandle> {
        self.all_of(kind).first().copied()
    }

    /// What the handle names, if that is of this kind.
    pub(super) fn get(&self, handle: KmtHandle, kind: Kind) -> Option<&Thing> {
        self.of(handle).filter(|thing| thing.kind == kind)
    }

    pub(super) fn get_mut(&mut self, handle: KmtHandle, kind: Kind) -> Option<&mut Thing> {
        let mut live = self.live.iter_mut();
        live.find(|thing| thing.handle == handle && thing.kind == kind)
    }

    pub(super) fn is(&self, handle: KmtHandle, kind: Kind) -> bool {
        self.get(handle, kind).is_some()
    }

    pub(super) fn is_queue(&self, handle: KmtHandle) -> bool {
        self.is(handle, Kind::UserQueue) || self.is(handle, Kind::KernelQueue)
    }

    /// What a thing stands on of this kind: itself, what it was made on, and so on.
    pub(super) fn above(&self, handle: KmtHandle, kind: Kind) -> Option<KmtHandle> {
        let thing = self.of(handle)?;
        if thing.kind == kind {
            return Some(handle);
        }
        self.above(thing.parent, kind)
    }

    /// Of the kind, and made on `parent` or on what was.
    pub(super) fn under(&self, parent: KmtHandle, kind: Kind) -> Vec<KmtHandle> {
        let of = self.of(parent).map(|thing| thing.kind);
        self.all(|thing| {
            thing.kind == kind && of.is_some_and(|of| self.above(thing.handle, of) == Some(parent))
        })
    }

    /// # Panics
    /// If there are other handles than the case knows of.
    pub(super) fn check(&self) {
        assert_eq!(
            open_handles(),
            self.live.len(),
            "handles that nobody has, or lost ones"
        );
    }
}
