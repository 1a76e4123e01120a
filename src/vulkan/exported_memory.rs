//! Exported memory: host-visible memory of a device, mapped, and with a descriptor for others.

use super::external_buffer::{ExternalBuffer, Refused};
use super::{AdapterInfo, Device, Refusal};
use crate::shared::{DeviceIdentity, DeviceMemory, Exported};
use crate::sync::{Ordering, fence};
use ash::vk;
use rustix::fd::{AsFd, FromRawFd, OwnedFd};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

pub(super) const OPAQUE: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;

/// See the module's page.
pub(super) struct ExportedMemory {
    descriptor: OwnedFd,
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
unsafe impl Send for ExportedMemory {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for ExportedMemory {}

impl ExportedMemory {
    /// `len` bytes, whole pages, all zero, of the best type that `worth` names of those that will do:
    /// none for one that will not.
    pub(super) fn new<W: Ord>(
        device: &Arc<Device>,
        len: u64,
        worth: impl Fn(vk::MemoryPropertyFlags) -> Option<W>,
    ) -> Result<Self, Refusal> {
        let refusal = |(call, code): Refused| Refusal::of(call, code);
        let functions = device.external_memory_fd().ok_or_else(|| Refusal {
            call: "vkGetMemoryFdKHR",
            code: String::from("that there is no such function"),
        })?;
        let mut buffer = ExternalBuffer::new(device, len, OPAQUE).map_err(refusal)?;
        let needs = buffer.needs();
        let memory_type = best(device.memory_types(), needs.types, worth).ok_or_else(|| {
            let call = "vkGetPhysicalDeviceMemoryProperties";
            let code = String::from("no memory type that would do");
            Refusal { call, code }
        })?;
        let dedicated = needs.dedicated || device.adapter().features.opaque_fd.dedicated_only;
        let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(OPAQUE);
        // SAFETY: size and type are what the buffer needs, and its memory may be exported so.
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
        let info = vk::MemoryGetFdInfoKHR::default()
            .memory(buffer.memory())
            .handle_type(OPAQUE);
        // SAFETY: the extension is on, and the memory was allocated for this.
        let descriptor = unsafe { functions.get_memory_fd(&info) }
            .map_err(|code| Refusal::of("vkGetMemoryFdKHR", code))?;
        // SAFETY: the descriptor is new, and the caller's.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
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

    pub(super) fn flags(&self) -> vk::MemoryPropertyFlags {
        self.buffer.device().memory_types()[self.memory_type as usize].property_flags
    }
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
unsafe impl DeviceMemory for ExportedMemory {
    fn pages(&self) -> (NonNull<u8>, usize) {
        (self.start, self.len)
    }

    fn exported(&self) -> Exported<'_> {
        Exported {
            descriptor: self.descriptor.as_fd(),
            bytes: self.bytes,
            memory_type: self.memory_type,
            dedicated: self.dedicated,
            identity: identity(self.buffer.device().adapter()),
        }
    }
}

impl fmt::Debug for ExportedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            bytes, memory_type, ..
        } = self;
        write!(f, "ExportedMemory({bytes} bytes of type {memory_type})")
    }
}
