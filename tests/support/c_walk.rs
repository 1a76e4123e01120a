//! Walk: calls of the C interface with each argument wrong in turn, each refused with the documented
//! status, and nothing changed.
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test file uses a part"
)]

use crate::c_world::{self, World};
use bytemuck::Pod;
use native_fence::abi::wddm::NtStatus;

pub(crate) const HANDLE: NtStatus = NtStatus::INVALID_HANDLE;
pub(crate) const PARAMETER: NtStatus = NtStatus::INVALID_PARAMETER;
pub(crate) const DENIED: NtStatus = NtStatus::ACCESS_DENIED;
pub(crate) const NOT_BUILT: NtStatus = NtStatus::NOT_SUPPORTED;

/// Calls that must be refused, and leave everything as it was.
pub(crate) struct Walk<'a> {
    pub(crate) world: &'a World,
    /// What is there besides the world, as it is seen from outside.
    pub(crate) besides: &'a dyn Fn() -> Vec<u64>,
    pub(crate) calls: usize,
}

impl<'a> Walk<'a> {
    pub(crate) fn of(world: &'a World, besides: &'a dyn Fn() -> Vec<u64>) -> Self {
        Self {
            world,
            besides,
            calls: 0,
        }
    }

    fn seen(&self) -> (Vec<u64>, (u32, u32)) {
        let mut seen = self.world.seen();
        seen.extend((self.besides)());
        (seen, self.world.next_slots())
    }

    /// One call: its status, a sentence, the structure as it was, the world as it was.
    pub(crate) fn refused<T: Pod>(
        &mut self,
        name: &str,
        args: T,
        wanted: NtStatus,
        call: impl FnOnce(*mut T) -> NtStatus,
    ) {
        let before = self.seen();
        let mut passed = args;
        let status = call(&raw mut passed);
        assert_eq!(status, wanted, "{name}: {}", c_world::last_error());
        assert_ne!(c_world::last_error(), "", "{name}: a sentence");
        let bytes = bytemuck::bytes_of;
        assert!(
            bytes(&passed) == bytes(&args),
            "{name}: its arguments changed"
        );
        self.nothing_changed(name, &before);
    }

    fn nothing_changed(&mut self, name: &str, before: &(Vec<u64>, (u32, u32))) {
        let (seen, next) = self.seen();
        let slots = before.1;
        assert_eq!(seen, before.0, "{name}");
        assert_eq!(
            next,
            (slots.0 + 1, slots.1 + 1),
            "{name}: a handle is left over"
        );
        self.calls += 1;
    }

    /// Each bit of a word of flags in turn, where it has a `status`.
    pub(crate) fn bits<T: Pod>(
        &mut self,
        name: &str,
        good: T,
        word: fn(&mut T) -> &mut u32,
        status: impl Fn(u32) -> Option<NtStatus>,
        call: impl Fn(*mut T) -> NtStatus,
    ) {
        for bit in 0..u32::BITS {
            let Some(wanted) = status(bit) else { continue };
            let mut args = good;
            *word(&mut args) |= 1 << bit;
            self.refused(&format!("{name}, bit {bit}"), args, wanted, &call);
        }
    }

    /// A pointer that cannot be, which every call refuses.
    pub(crate) fn pointers<T: Pod>(
        &mut self,
        name: &str,
        args: T,
        call: impl Fn(*mut T) -> NtStatus,
    ) {
        let before = self.seen();
        assert_eq!(call(std::ptr::null_mut()), PARAMETER, "{name}: NULL");
        self.nothing_changed(name, &before);
        let before = self.seen();
        let mut room = [args; 2];
        let crooked = (&raw mut room[0]).wrapping_byte_add(1);
        assert_eq!(call(crooked), PARAMETER, "{name}: not aligned");
        self.nothing_changed(name, &before);
    }
}

/// Walks one call: its pointer, its handle, then the changes of good arguments that are listed.
macro_rules! walk {
    ($walk:ident, $call:ident, $good:expr, $handle:ident: $kind:literal,
        $($what:literal: $change:expr => $wanted:expr),* $(,)?) => {{
        let good = $good;
        let name = stringify!($call);
        // SAFETY: NULL, not aligned, or a structure of this test's own, whose pointers are too.
        let call = |args: *mut _| unsafe { $call(args) };
        $walk.pointers(name, good, call);
        for (what, handle) in $walk.world.not($kind) {
            let mut args = good;
            args.$handle = handle;
            $walk.refused(&format!("{name}, {what}"), args, HANDLE, call);
        }
        $({
            let mut args = good;
            #[allow(clippy::redundant_closure_call, reason = "a list of changes")]
            ($change)(&mut args);
            $walk.refused(&format!("{name}, {}", $what), args, $wanted, call);
        })*
    }};
}
pub(crate) use walk;
