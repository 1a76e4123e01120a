//! Adapter: opening, asking, closing.

use super::handles;
use super::object::{Object, OpenedAdapter};
use super::private_data::OpenAdapter;
use super::refusal::Refusal;
use crate::abi::wddm::{
    CloseAdapter, NtStatus, QueryAdapterInfo, QueryAdapterInfoType, Wddm31Caps,
};
use crate::sync::Arc;
use crate::{Adapter, AdapterOptions};

pub(super) fn open(args: &mut OpenAdapter, device: Option<String>) -> Result<(), Refusal> {
    let options = AdapterOptions {
        device,
        ..AdapterOptions::default()
    };
    let adapter = Adapter::open(&options)?;
    let adapter = Arc::new(OpenedAdapter { adapter });
    args.adapter = handles::insert_root(Object::Adapter(adapter))?;
    Ok(())
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
