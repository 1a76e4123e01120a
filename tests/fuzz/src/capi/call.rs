//! Call: a structure passed to a function of C, with memory around it that nobody may touch, and
//! what holds of every call looked at.
#![allow(unsafe_code, reason = "these are functions of C")]

use super::header;
use arbitrary::{Arbitrary, Result, Unstructured};
use bytemuck::{Pod, bytes_of, bytes_of_mut};
use native_fence::abi::wddm::NtStatus;
use native_fence::capi::NfLastErrorText;

/// How a pointer is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    Good,
    Null,
    /// So many bytes too far, by no multiple of four.
    Crooked(u8),
}

impl<'a> Arbitrary<'a> for Pointer {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=31)? {
            0 => Self::Null,
            at @ 1..=3 => Self::Crooked(at),
            _ => Self::Good,
        })
    }
}

impl Pointer {
    /// The address of this thing as it is passed.
    pub(super) fn to<T>(self, thing: *const T) -> u64 {
        let address = thing.expose_provenance() as u64;
        match self {
            Self::Good => address,
            Self::Null => 0,
            Self::Crooked(by) => address + u64::from(by),
        }
    }
}

/// What a call may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// It succeeds, or is refused as the header says.
    Anything,
    /// It is refused as the header says.
    Refusal,
    /// It is refused so.
    Exactly(NtStatus),
}

pub(super) const PARAMETER: Expected = Expected::Exactly(NtStatus::INVALID_PARAMETER);
pub(super) const HANDLE: Expected = Expected::Exactly(NtStatus::INVALID_HANDLE);

impl Expected {
    /// The first in the order in which a call looks at things, unless it is well.
    pub(super) fn or(self, next: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Anything => next(),
            refused => refused,
        }
    }

    /// This, where it is so.
    #[must_use]
    pub(super) fn when(self, is_so: bool) -> Self {
        if is_so { self } else { Self::Anything }
    }
}

/// A function, as the header names it.
pub(super) struct Function {
    pub(super) name: &'static str,
    /// It writes nothing to its structure when it succeeds either.
    pub(super) only_reads: bool,
}

/// Calls a function that fills in its structure.
macro_rules! fills {
    ($name:ident, $($given:expr),+) => {
        $crate::capi::call::passed!($name, false, $($given),+)
    };
}

/// Calls a function that only reads its structure.
macro_rules! reads {
    ($name:ident, $($given:expr),+) => {
        $crate::capi::call::passed!($name, true, $($given),+)
    };
}

macro_rules! passed {
    ($name:ident, $only_reads:literal, $pointer:expr, $args:expr, $expected:expr) => {{
        let function = $crate::capi::call::Function {
            name: stringify!($name),
            only_reads: $only_reads,
        };
        // SAFETY: NULL, not aligned, or a structure of `call`'s own; what its pointers point to is there
        // while the call lasts, or is NULL or not aligned too.
        #[allow(unsafe_code, reason = "these are functions of C")]
        let act = |args: *mut _| unsafe { native_fence::capi::$name(args) };
        $crate::capi::call::call(&function, $pointer, $args, $expected, act)
    }};
}
pub(super) use {fills, passed, reads};

/// What stands around a structure, byte by byte.
const AROUND: u8 = 0xa5;

/// Calls a function; the structure as it was left, if it has succeeded.
///
/// # Panics
/// If the call has done what it may not.
pub(super) fn call<T: Pod>(
    function: &Function,
    pointer: Pointer,
    args: T,
    expected: Expected,
    act: impl FnOnce(*mut T) -> NtStatus,
) -> Option<T> {
    let name = function.name;
    let mut room = [args; 3];
    bytes_of_mut(&mut room[0]).fill(AROUND);
    bytes_of_mut(&mut room[2]).fill(AROUND);
    let place: *mut T = match pointer {
        Pointer::Good => &raw mut room[1],
        Pointer::Null => std::ptr::null_mut(),
        Pointer::Crooked(by) => (&raw mut room[1]).wrapping_byte_add(by.into()),
    };
    let status = act(place);
    let around = [room[0], room[2]];
    let is_whole = |thing: &T| bytes_of(thing).iter().all(|byte| *byte == AROUND);
    assert!(
        around.iter().all(is_whole),
        "{name} wrote beside its structure"
    );
    let is_unchanged = bytes_of(&room[1]) == bytes_of(&args);
    let expected = if pointer == Pointer::Good {
        expected
    } else {
        PARAMETER
    };
    if status == NtStatus::SUCCESS {
        assert_eq!(expected, Expected::Anything, "{name} was not refused");
        assert!(
            is_unchanged || !function.only_reads,
            "{name} wrote to what it reads"
        );
        return Some(room[1]);
    }
    assert!(
        is_unchanged,
        "{name} was refused, {status:?}, and wrote to its structure"
    );
    match expected {
        Expected::Exactly(wanted) => assert_eq!(status, wanted, "{name}: {}", last_error()),
        Expected::Refusal | Expected::Anything => {
            let errors = header::errors_of(name);
            assert!(
                errors.contains(&status),
                "{name}: {status:?} is not in the header: {}",
                last_error()
            );
        }
    }
    assert!(
        !last_error().is_empty(),
        "{name}: {status:?} without a sentence"
    );
    None
}

/// The sentence on the last call that failed.
pub(super) fn last_error() -> String {
    let mut text = [0_u8; 512];
    let length = copy_last_error(Some(&mut text));
    String::from_utf8_lossy(&text[..length.min(511)]).into_owned()
}

/// Asks for the sentence; its whole length.
fn copy_last_error(buffer: Option<&mut [u8]>) -> usize {
    let (place, bytes) = match buffer {
        Some(buffer) => (buffer.as_mut_ptr(), buffer.len()),
        None => (std::ptr::null_mut(), usize::MAX),
    };
    // SAFETY: NULL, or a buffer of so many bytes that is the caller's alone.
    unsafe { NfLastErrorText(place, bytes) }
}

/// Asks for the sentence with a buffer of so many bytes: it is cut, ends with a zero byte, and nothing
/// beside it is written.
///
/// # Panics
/// If it is not so.
pub(super) fn check_last_error(bytes: usize) {
    let whole = copy_last_error(None);
    let mut buffer = vec![AROUND; bytes + 8];
    assert_eq!(copy_last_error(Some(&mut buffer[..bytes])), whole);
    assert!(buffer[bytes..].iter().all(|byte| *byte == AROUND));
    let copied = buffer[..bytes].iter().position(|byte| *byte == 0);
    assert_eq!(copied.is_some(), bytes > 0, "a text that does not end");
    let copied = std::str::from_utf8(&buffer[..copied.unwrap_or(0)]);
    assert!(copied.expect("UTF-8").len() <= whole);
}
