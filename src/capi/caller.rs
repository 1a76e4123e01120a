//! The caller's memory: structures are copied in, worked on, and copied back when the call has
//! succeeded; so an error changes nothing, and what the caller's other threads scribble meanwhile
//! is not looked at twice.
//!
//! Of a pointer it can be seen that it is NULL or not aligned. That it points to what it says is
//! the caller's promise, as in any C interface.

use super::last_error;
use super::refusal::Refusal;
use crate::abi::wddm::{KmtHandle, NtStatus};
use bytemuck::Pod;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a call: its status, with the sentence on an error kept. A panic ends here.
pub(super) fn guarded(body: impl FnOnce() -> Result<(), Refusal>) -> NtStatus {
    // What a panic may have left half done is behind locks whose sections leave their data whole.
    let ended = catch_unwind(AssertUnwindSafe(body));
    let refusal = match ended {
        Ok(Ok(())) => return NtStatus::SUCCESS,
        Ok(Err(refusal)) => refusal,
        Err(_) => {
            let why = "a defect of this library: what it panicked with stands on standard error";
            Refusal::new(NtStatus::INTERNAL_ERROR, why)
        }
    };
    last_error::keep(&refusal.why);
    refusal.status
}

/// An address of a word, as structures hold it.
pub(super) fn cpu_va(address: *const u64) -> u64 {
    address.expose_provenance() as u64
}

fn check<T>(pointer: *const T, what: &str) -> Result<(), Refusal> {
    if pointer.is_null() {
        return Err(Refusal::parameter(format!("{what} is NULL")));
    }
    if !pointer.is_aligned() {
        let bytes = align_of::<T>();
        let why = format!("{what} is not aligned to {bytes} bytes");
        return Err(Refusal::parameter(why));
    }
    Ok(())
}

/// Runs a call that reads its arguments and writes them back.
///
/// # Safety
/// `args` is NULL, not aligned, or points to a `T` that nobody else touches during the call.
pub(super) unsafe fn in_out<T: Pod>(
    args: *mut T,
    body: impl FnOnce(&mut T) -> Result<(), Refusal>,
) -> NtStatus {
    guarded(|| {
        check(args, "the argument structure")?;
        // SAFETY: neither NULL nor misaligned, so it points to a `T`, by the caller's promise; any
        // bytes are one.
        let mut copy = unsafe { args.read() };
        body(&mut copy)?;
        // SAFETY: as above.
        unsafe { args.write(copy) };
        Ok(())
    })
}

/// Runs a call that only reads its arguments.
///
/// # Safety
/// `args` is NULL, not aligned, or points to a `T` that nobody writes during the call.
pub(super) unsafe fn input<T: Pod>(
    args: *const T,
    body: impl FnOnce(T) -> Result<(), Refusal>,
) -> NtStatus {
    guarded(|| {
        check(args, "the argument structure")?;
        // SAFETY: neither NULL nor misaligned, so it points to a `T`, by the caller's promise; any
        // bytes are one.
        body(unsafe { args.read() })
    })
}

/// The pointer that stands in a member.
fn pointer_of<T>(address: u64) -> *mut T {
    // 64-bit machines alone have these layouts; elsewhere a wide address would be another one.
    const {
        assert!(
            size_of::<usize>() == 8,
            "the published layouts are of 64 bits"
        );
    };
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// Copies an array of 1 to `most` elements.
///
/// # Errors
/// Their number, or an address that cannot be.
///
/// # Safety
/// `address` is 0, not aligned, or that of `count` elements that nobody writes during the call.
pub(super) unsafe fn array<T: Pod>(
    address: u64,
    count: u32,
    most: u32,
    what: &str,
) -> Result<Vec<T>, Refusal> {
    if count == 0 || count > most {
        let why = format!("{what} of {count} objects: one call takes 1 to {most}");
        return Err(Refusal::parameter(why));
    }
    let first: *const T = pointer_of(address);
    check(first, what)?;
    // SAFETY: neither NULL nor misaligned, so it points to `count` elements, by the caller's
    // promise; any bytes are one.
    let elements = unsafe { std::slice::from_raw_parts(first, count as usize) };
    Ok(elements.to_vec())
}

/// Copies the handles of 1 to `most` fences, and a value for each.
///
/// # Errors
/// As [`array()`]; `values_name` is what the values are called.
///
/// # Safety
/// As [`array()`], for both addresses.
pub(super) unsafe fn fence_values(
    count: u32,
    most: u32,
    handles: u64,
    (values, values_name): (u64, &str),
) -> Result<(Vec<KmtHandle>, Vec<u64>), Refusal> {
    // SAFETY: the caller's promise.
    let handles = unsafe { array(handles, count, most, "ObjectHandleArray") }?;
    // SAFETY: as above.
    let values = unsafe { array(values, count, most, values_name) }?;
    Ok((handles, values))
}

/// Stores a value at an address that stands in a member.
///
/// # Errors
/// An address that cannot be.
///
/// # Safety
/// `address` is 0, not aligned, or that of a `T` that nobody else touches during the call.
pub(super) unsafe fn store<T: Pod>(address: u64, value: T, what: &str) -> Result<(), Refusal> {
    let place: *mut T = pointer_of(address);
    check(place, what)?;
    // SAFETY: neither NULL nor misaligned, so it points to a `T`, by the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// A descriptor of the program's, for the time of a call. Nothing says yet that it is open.
///
/// # Errors
/// The number is none.
///
/// # Safety
/// Nobody closes `number` during the call.
unsafe fn borrow<'a>(number: RawFd) -> Result<BorrowedFd<'a>, Errno> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: not -1; that it stays open, if it is, is the caller's promise.
    Ok(unsafe { BorrowedFd::borrow_raw(number) })
}

/// The file descriptor that a handle is: the program's own.
///
/// # Errors
/// None of this process has that number.
///
/// # Safety
/// Nobody closes it during the call.
pub(super) unsafe fn descriptor<'a>(handle: u64, what: &str) -> Result<BorrowedFd<'a>, Refusal> {
    let none = || {
        let why = format!("{what} is no file descriptor of this process");
        Refusal::new(NtStatus::INVALID_HANDLE, why)
    };
    let number = i32::try_from(handle).map_err(|_| none())?;
    // SAFETY: the caller's promise.
    let descriptor = unsafe { borrow(number) }.map_err(|_| none())?;
    rustix::io::fcntl_getfd(descriptor).map_err(|_| none())?;
    Ok(descriptor)
}

/// A descriptor of this library's own for what a descriptor of the program's stands for.
///
/// # Errors
/// The system's: among them that it stands for nothing.
///
/// # Safety
/// Nobody closes `number` during the call.
pub(super) unsafe fn duplicate(number: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: the caller's promise. Whether it stands for anything is for the system to see, which is
    // asked for nothing but a duplicate.
    fcntl_dupfd_cloexec(unsafe { borrow(number) }?, 0)
}

/// A text that may be left out.
///
/// # Errors
/// It is no UTF-8, or empty.
///
/// # Safety
/// `address` is 0 or that of a text that ends with a zero byte and that nobody writes during the
/// call.
pub(super) unsafe fn text(address: u64, what: &str) -> Result<Option<String>, Refusal> {
    if address == 0 {
        return Ok(None);
    }
    // SAFETY: not NULL, so it is a text, by the caller's promise.
    let text = unsafe { std::ffi::CStr::from_ptr(pointer_of(address)) };
    match text.to_str() {
        Ok("") => Err(Refusal::parameter(format!("{what} is empty; NULL is any"))),
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => Err(Refusal::parameter(format!("{what} is no UTF-8"))),
    }
}

/// Copies a text with its final zero byte, as much as there is room for; its length without it.
///
/// # Safety
/// `buffer` is NULL or that of `bytes` bytes that nobody else touches during the call.
pub(super) unsafe fn copy_text(text: &str, buffer: *mut u8, bytes: usize) -> usize {
    let Some(room) = bytes.checked_sub(1).filter(|_| !buffer.is_null()) else {
        return text.len();
    };
    let most = text.len().min(room);
    let fits = |bytes: &usize| text.is_char_boundary(*bytes);
    let copied = (0..=most).rev().find(fits).unwrap_or(0);
    // SAFETY: `copied` is at most `bytes` - 1, and the buffer is the caller's alone.
    unsafe { buffer.copy_from_nonoverlapping(text.as_ptr(), copied) };
    let end = buffer.wrapping_add(copied);
    // SAFETY: the byte after them is still within `bytes`.
    unsafe { end.write(0) };
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let status = guarded(|| panic!("on purpose, in a test"));
        assert_eq!(status, NtStatus::INTERNAL_ERROR);
        assert!(last_error::kept().contains("defect"));
    }

    #[test]
    fn an_error_changes_nothing_that_the_caller_points_to() {
        let mut args = 7_u32;
        let refuse = |copy: &mut u32| {
            *copy = 8;
            Err(Refusal::parameter("refused"))
        };
        // SAFETY: a place of this test's own.
        let status = unsafe { in_out(&raw mut args, refuse) };
        assert_eq!((status, args), (NtStatus::INVALID_PARAMETER, 7));
        assert_eq!(last_error::kept(), "refused");
    }

    #[test]
    fn a_text_is_cut_where_a_letter_ends() {
        let mut buffer = [0xff_u8; 8];
        // SAFETY: a buffer of this test's own.
        let length = unsafe { copy_text("aéé", buffer.as_mut_ptr(), 5) };
        assert_eq!(length, 5);
        assert_eq!(buffer[..4], *"aé\0".as_bytes());
        assert_eq!(
            buffer[4..],
            [0xff; 4],
            "no byte behind the final one is touched"
        );
    }
}
