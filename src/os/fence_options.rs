//! Fence terms: what a program may ask of a native fence when it is made, beside where its values lie.

use crate::abi::HandleAccess;

/// See the file's head.
#[derive(Clone, Copy, Debug)]
pub struct FenceTerms {
    /// What each of its handles may do (NF-23, NF-30).
    pub access: HandleAccess,
    /// `NoSignalMaxValueOnTdr`: it does not become AlwaysSignaled where a device is lost that could signal
    /// it, and goes on (TD-14).
    pub no_signal_max_value_on_tdr: bool,
}

impl From<HandleAccess> for FenceTerms {
    fn from(access: HandleAccess) -> Self {
        Self {
            access,
            no_signal_max_value_on_tdr: false,
        }
    }
}
