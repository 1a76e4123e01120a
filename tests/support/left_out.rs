//! Left out: a test that needs a device says so where there is none; `NFENCE_REQUIRE_DEVICE` set makes that
//! a failure.

use std::fmt::Display;

/// What was opened; none, with a printed line, where it could not be.
///
/// # Panics
/// When it could not be and `NFENCE_REQUIRE_DEVICE` is set.
#[must_use]
pub(crate) fn opened_or_left_out<T>(opened: Result<T, impl Display>) -> Option<T> {
    match opened {
        Ok(opened) => Some(opened),
        Err(error) => {
            let required = std::env::var_os("NFENCE_REQUIRE_DEVICE");
            assert!(required.is_none(), "{error}");
            println!("left out: {error}");
            None
        }
    }
}
