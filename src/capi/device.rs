//! Device and hardware context: what a program opens on an adapter, and where it makes queues.

use super::async_waits::AsyncWaits;
use super::handles;
use super::object::{Device, HwContext, Object, OpenedAdapter};
use super::private_data::EndDevice;
use super::refusal::Refusal;
use crate::abi::wddm::{
    CreateDevice, CreateHwContext, DestroyDevice, DestroyHwContext, DeviceStateType, GetDeviceState,
};
use crate::sync::Arc;
use crate::umd::Timeout;
use std::time::Duration;

pub(super) fn create(args: &mut CreateDevice) -> Result<(), Refusal> {
    let adapter = handles::find::<OpenedAdapter>(args.adapter)?;
    if args.flags != 0 || args.padding != 0 {
        let why = "Flags must be 0, and so must the upper half of the union with hAdapter";
        return Err(Refusal::parameter(why));
    }
    let device = adapter.adapter.create_device();
    let device = Object::Device(Arc::new(Device {
        device,
        waits: AsyncWaits::new(),
    }));
    args.device = handles::insert::<OpenedAdapter>(args.adapter, device)?;
    Ok(())
}

pub(super) fn destroy(args: DestroyDevice) -> Result<(), Refusal> {
    handles::destroy::<Device>(args.device, |_| Ok(()))
}

/// Answers for a lost device too: that is what it is for.
pub(super) fn get_state(args: &mut GetDeviceState) -> Result<(), Refusal> {
    let device = handles::find::<Device>(args.device)?;
    if args.state_type != DeviceStateType::EXECUTION {
        let why = "of a device's states D3DKMT_DEVICESTATE_EXECUTION alone is offered";
        return Err(Refusal::not_supported(why));
    }
    args.execution_state = device.device.execution_state();
    Ok(())
}

/// Takes the doorbells and waits, with no lock of the table: other calls go on, and what is destroyed
/// meanwhile is none of the device's any more.
pub(super) fn end(args: EndDevice) -> Result<(), Refusal> {
    let device = handles::find::<Device>(args.device)?;
    if args.flags != 0 {
        return Err(Refusal::parameter("no bit of these Flags is published: 0"));
    }
    let timeout = match args.timeout_in_milliseconds {
        u64::MAX => Timeout::Never,
        milliseconds => Timeout::After(Duration::from_millis(milliseconds)),
    };
    Ok(device.device.end(timeout)?)
}

pub(super) fn create_context(args: &mut CreateHwContext) -> Result<(), Refusal> {
    let device = handles::find::<Device>(args.device)?;
    if args.flags != 0 || args.private_driver_data_size != 0 {
        let why = "a context has no flags and no private data: both must be 0";
        return Err(Refusal::parameter(why));
    }
    let context = device
        .device
        .create_context(args.node_ordinal, args.engine_affinity)?;
    let context = Object::HwContext(Arc::new(HwContext { device, context }));
    args.hw_context = handles::insert::<Device>(args.device, context)?;
    Ok(())
}

pub(super) fn destroy_context(args: DestroyHwContext) -> Result<(), Refusal> {
    handles::destroy::<HwContext>(args.hw_context, |_| Ok(()))
}
