//! Mapped memory: host-visible memory of a device, mapped, and where it is exported with a descriptor for others.

use super::external_buffer::{ExternalBuffer, Refused};
use super::{AdapterInfo, Device, Refusal};
use crate::shared::{DeviceIdentity, DeviceMemory, Exported};
use crate::sync::{Ordering, fence};
use ash::vk;
use rustix::fd::{AsFd, FromRawFd, OwnedFd};
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

pub(super) const OPAQUE: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;

/// Who can use memory that a device allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Devices of the same identity, which import it: it stays when another of them is lost.
    Exported,
    /// That device alone, with which it is lost.
    OwnDevice,
}

impl Reach {
    fn handles(self) -> vk::ExternalMemoryHandleTypeFlags {
        match self {
            Self::Exported => OPAQUE,
            Self::OwnDevice => vk::ExternalMemoryHandleTypeFlags::empty(),
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exported => "memory that is exported",
            Self::OwnDevice => "memory of one device",
        })
    }
}

/// See the module's page.
pub(super) struct MappedMemory {
    /// Of what is exported.
    descriptor: Option<OwnedFd>,
    start: NonNull<u8>,
    /// Bytes of the buffer; the allocation may have more.
    len: usize,
    bytes: u64,
    memory_type: u32,
    dedicated: bool,
    buffer: ExternalBuffer,
}

// SAFETY: the mapping is memory of the process, is valid until drop wherever that happens, and is
// touched through atomics only; Vulkan's handles may be used from any thread.
unsafe impl Send for MappedMemory {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for MappedMemory {}

impl MappedMemory {
    /// Whether there is a type that would do.
    pub(super) fn has_type<W: Ord>(
        device: &Arc<Device>,
        reach: Reach,
        worth: impl Fn(vk::MemoryPropertyFlags) -> Option<W>,
    ) -> bool {
        ExternalBuffer::new(device, rustix::param::page_size() as u64, reach.handles())
            .is_ok_and(|buffer| best(device.memory_types(), buffer.needs().types, worth).is_some())
    }

    /// `len` bytes, whole pages, all zero, of the best type that `worth` names of those that will do:
    /// none for one that will not. For others of the same identity, or for this device alone.
    pub(super) fn new<W: Ord>(
        device: &Arc<Device>,
        len: u64,
        reach: Reach,
        worth: impl Fn(vk::MemoryPropertyFlags) -> Option<W>,
    ) -> Result<Self, Refusal> {
        let refusal = |(call, code): Refused| Refusal::of(call, code);
        let handles = reach.handles();
        let mut buffer = ExternalBuffer::new(device, len, handles).map_err(refusal)?;
        let needs = buffer.needs();
        let memory_type = best(device.memory_types(), needs.types, worth).ok_or_else(|| {
            let call = "vkGetPhysicalDeviceMemoryProperties";
            let code = format!("no memory type that would do for {reach}");
            Refusal { call, code }
        })?;
        let dedicated = needs.dedicated || device.adapter().features.opaque_fd.dedicated_only;
        let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(handles);
        // SAFETY: size and type are what the buffer needs, and its memory may be exported so, or is not.
        unsafe { buffer.allocate(needs.bytes, memory_type, dedicated, &mut export) }
            .map_err(refusal)?;
        let raw = device.raw();
        let flags = vk::MemoryMapFlags::empty();
        // SAFETY: the memory is host-visible, as `worth` sees to, and is mapped once.
        let start = unsafe { raw.map_memory(buffer.memory(), 0, vk::WHOLE_SIZE, flags) }
            .map_err(|code| Refusal::of("vkMapMemory", code))?;
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(|| Refusal {
            call: "vkMapMemory",
            code: String::from("null"),
        })?;
        // Vulkan promises less; whoever imports pages of the host elsewhere relies on it.
        if !(start.as_ptr() as usize).is_multiple_of(rustix::param::page_size()) {
            return Err(Refusal {
                call: "vkMapMemory",
                code: String::from("an address within a page"),
            });
        }
        // SAFETY: the mapping is at least as long as the buffer, and nobody else knows of it yet.
        unsafe { start.as_ptr().write_bytes(0, needs.bytes as usize) };
        // Zeros of write-combined memory leave the core before its address does.
        fence(Ordering::SeqCst);
        let descriptor = match reach {
            Reach::Exported => Some(descriptor_of(&buffer)?),
            Reach::OwnDevice => None,
        };
        Ok(Self {
            descriptor,
            start,
            len: len as usize,
            bytes: needs.bytes,
            memory_type,
            dedicated,
            buffer,
        })
    }

    /// What it is a buffer of on the device that allocated it.
    pub(super) fn buffer(&self) -> &ExternalBuffer {
        &self.buffer
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn flags(&self) -> vk::MemoryPropertyFlags {
        self.buffer.device().memory_types()[self.memory_type as usize].property_flags
    }
}

/// What others import it by.
fn descriptor_of(buffer: &ExternalBuffer) -> Result<OwnedFd, Refusal> {
    let call = "vkGetMemoryFdKHR";
    let functions = buffer.device().external_memory_fd();
    let functions = functions.ok_or_else(|| Refusal {
        call,
        code: String::from("that there is no such function"),
    })?;
    let info = vk::MemoryGetFdInfoKHR::default()
        .memory(buffer.memory())
        .handle_type(OPAQUE);
    // SAFETY: the extension is on, and the memory was allocated for this.
    let descriptor = unsafe { functions.get_memory_fd(&info) };
    let descriptor = descriptor.map_err(|code| Refusal::of(call, code))?;
    // lavapipe succeeds without one where the program has none left.
    if descriptor < 0 {
        return Err(Refusal {
            call,
            code: String::from("no file descriptor; raise the program's limit (ulimit -n)"),
        });
    }
    // SAFETY: the descriptor is new, and the caller's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Which device and driver opaque descriptors of an adapter belong to.
pub(super) fn identity(adapter: &AdapterInfo) -> DeviceIdentity {
    DeviceIdentity {
        device: adapter.uuid,
        driver: adapter.driver_uuid,
    }
}

/// Properties that this program knows the meaning of: some others need features to be turned on.
const KNOWN: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::from_raw(
    vk::MemoryPropertyFlags::DEVICE_LOCAL.as_raw()
        | vk::MemoryPropertyFlags::HOST_VISIBLE.as_raw()
        | vk::MemoryPropertyFlags::HOST_COHERENT.as_raw()
        | vk::MemoryPropertyFlags::HOST_CACHED.as_raw(),
);

/// The type of most worth among those whose bits are set; of equals the first.
pub(super) fn best<W: Ord>(
    types: &[vk::MemoryType],
    allowed: u32,
    worth: impl Fn(vk::MemoryPropertyFlags) -> Option<W>,
) -> Option<u32> {
    (0_u32..)
        .zip(types)
        .filter(|(index, kind)| allowed & (1 << index) != 0 && KNOWN.contains(kind.property_flags))
        .filter_map(|(index, kind)| Some((worth(kind.property_flags)?, index)))
        .max_by(|(a, i), (b, j)| a.cmp(b).then(j.cmp(i)))
        .map(|(_, index)| index)
}

// SAFETY: the mapping lives as long as the memory, which `self` owns; it begins at a page, as was
// looked at when it was made; the allocation is at least as long as the buffer. All access is by `shared::Word`.
unsafe impl DeviceMemory for MappedMemory {
    fn pages(&self) -> (NonNull<u8>, usize) {
        (self.start, self.len)
    }

    fn memory_type(&self) -> u32 {
        self.memory_type
    }

    fn exported(&self) -> Option<Exported<'_>> {
        Some(Exported {
            descriptor: self.descriptor.as_ref()?.as_fd(),
            bytes: self.bytes,
            memory_type: self.memory_type,
            dedicated: self.dedicated,
            identity: identity(self.buffer.device().adapter()),
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for MappedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            bytes, memory_type, ..
        } = self;
        write!(f, "MappedMemory({bytes} bytes of type {memory_type})")
    }
}
