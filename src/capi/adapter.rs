//! Adapter: opening, asking, closing.

use super::handles;
use super::object::{Object, OpenedAdapter};
use super::private_data::OpenAdapter;
use super::refusal::Refusal;
use crate::abi::wddm::{
    CloseAdapter, KmtHandle, NtStatus, QueryAdapterInfo, QueryAdapterInfoType, Wddm31Caps,
};
use crate::sync::Arc;
use crate::{Adapter, AdapterOptions};

pub(super) fn open(args: &mut OpenAdapter, device: Option<String>) -> Result<(), Refusal> {
    let options = AdapterOptions {
        device,
        ..AdapterOptions::default()
    };
    args.adapter = insert(Adapter::open(&options)?)?;
    Ok(())
}

fn insert(adapter: Adapter) -> Result<KmtHandle, Refusal> {
    let adapter = Arc::new(OpenedAdapter { adapter });
    handles::insert_root(Object::Adapter(adapter))
}

/// A handle of this interface for an adapter that Rust opened, on engines that `NfOpenAdapter` has no
/// choice of; `NfD3DKMTCloseAdapter` closes the handle.
///
/// # Errors
/// `STATUS_INSUFFICIENT_RESOURCES`: no handle is left.
pub fn adapter_handle(adapter: Adapter) -> Result<KmtHandle, NtStatus> {
    insert(adapter).map_err(|refusal| refusal.status)
}

pub(super) fn close(args: CloseAdapter) -> Result<(), Refusal> {
    handles::destroy::<OpenedAdapter>(args.adapter, |_| Ok(()))
}

/// The answer to a query, 32 bits.
pub(super) fn query(args: &QueryAdapterInfo) -> Result<Wddm31Caps, Refusal> {
    let adapter = handles::find::<OpenedAdapter>(args.adapter)?;
    if args.info_type != QueryAdapterInfoType::WDDM_3_1_CAPS {
        let why = format!(
            "a query of type {}: KMTQAITYPE_WDDM_3_1_CAPS alone is answered",
            args.info_type.0
        );
        return Err(Refusal::not_supported(why));
    }
    if (args.private_driver_data_size as usize) < size_of::<Wddm31Caps>() {
        let why = "the answer has 4 bytes: PrivateDriverDataSize is less";
        return Err(Refusal::new(NtStatus::BUFFER_TOO_SMALL, why));
    }
    Ok(adapter.adapter.os().query_wddm_3_1_caps())
}
