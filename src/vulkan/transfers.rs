//! Transfers: what a command buffer does to regions without a shader.

use super::RegionImport;
use super::command_buffer::{CommandRecorder, Recorded};
use super::refusal::OutOfMemory;
use super::timestamp_query::TimestampQuery;
use ash::vk;
use std::sync::Arc;

impl CommandRecorder {
    /// Bytes of one [`CommandRecorder::update`].
    pub const MOST_UPDATED: usize = 65536;

    /// Copies bytes between regions, or within one, and keeps both.
    ///
    /// # Panics
    /// A region is of another device, the bytes do not lie in both, or they overlap.
    #[must_use]
    pub fn copy(
        self,
        (from, source): (&Arc<RegionImport>, u64),
        (to, destination): (&Arc<RegionImport>, u64),
        bytes: u64,
    ) -> Self {
        self.must_hold(from, source, bytes);
        self.must_hold(to, destination, bytes);
        let overlaps = source < destination + bytes && destination < source + bytes;
        assert!(
            !(Arc::ptr_eq(from, to) && overlaps),
            "a copy within one region overlaps"
        );
        let region = vk::BufferCopy {
            src_offset: source,
            dst_offset: destination,
            size: bytes,
        };
        // SAFETY: as above; the regions are of this device, were made for transfers, hold the whole
        // range, do not overlap, and are kept below.
        unsafe {
            self.inner.device.raw().cmd_copy_buffer(
                self.inner.raw,
                from.raw(),
                to.raw(),
                &[region],
            );
        };
        self.keep(Arc::clone(from) as _)
            .keep(Arc::clone(to) as _)
            .recorded(Recorded::Copy {
                from: source,
                to: destination,
                bytes,
            })
    }

    /// Fills a range of a region with `word`, and keeps the region.
    ///
    /// # Panics
    /// The region is of another device, or the range does not lie in it in whole words.
    #[must_use]
    pub fn fill_range(
        self,
        region: &Arc<RegionImport>,
        offset: u64,
        bytes: u64,
        word: u32,
    ) -> Self {
        self.must_hold(region, offset, bytes);
        // SAFETY: as above; the region is of this device, was made for transfers, holds the whole
        // range, and is kept below.
        unsafe {
            self.inner.device.raw().cmd_fill_buffer(
                self.inner.raw,
                region.raw(),
                offset,
                bytes,
                word,
            );
        };
        self.keep(Arc::clone(region) as _)
            .recorded(Recorded::FillRange {
                offset,
                bytes,
                word,
            })
    }

    /// Stores `data` at `offset` of a region, without a shader, and keeps the region.
    ///
    /// Vulkan does not promise that eight bytes become one store; at a multiple of eight a driver has
    /// no reason to do it otherwise, and on CPU implementations they are one. Four are.
    ///
    /// # Panics
    /// The region is of another device, the data does not lie in it in whole words, or is more than
    /// [`CommandRecorder::MOST_UPDATED`].
    #[must_use]
    pub fn update(self, region: &Arc<RegionImport>, offset: u64, data: &[u8]) -> Self {
        self.must_hold(region, offset, data.len() as u64);
        assert!(
            data.len() <= Self::MOST_UPDATED,
            "{} bytes are updated at once",
            data.len()
        );
        // SAFETY: as above; the region is of this device, was made for transfers, holds the whole
        // range, and is kept below.
        unsafe {
            self.inner
                .device
                .raw()
                .cmd_update_buffer(self.inner.raw, region.raw(), offset, data);
        };
        self.keep(Arc::clone(region) as _)
            .recorded(Recorded::Update {
                offset,
                data: data.to_vec(),
            })
    }

    /// Stores the device's time at `offset` of a region, when all before it is complete, and keeps the
    /// region. The device must have [`Features::timestamps`](super::Features::timestamps).
    ///
    /// # Errors
    /// The driver is out of memory.
    ///
    /// # Panics
    /// The region is of another device, or the time does not lie in it at a multiple of 8.
    pub fn timestamp(self, region: &Arc<RegionImport>, offset: u64) -> Result<Self, OutOfMemory> {
        self.must_hold(region, offset, 8);
        assert!(offset.is_multiple_of(8), "a time at {offset}");
        let query = Arc::new(TimestampQuery::new(&self.inner.device)?);
        let (device, raw) = (self.inner.device.raw(), self.inner.raw);
        let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
        // SAFETY: as above; the query is new, of this device, and kept below.
        unsafe { device.cmd_reset_query_pool(raw, query.raw(), 0, 1) };
        // SAFETY: the same; the device has such times, which the caller looked for.
        unsafe { device.cmd_write_timestamp(raw, stage, query.raw(), 0) };
        // SAFETY: the same; the region is kept below, was made for transfers and holds eight bytes there.
        unsafe {
            device.cmd_copy_query_pool_results(
                raw,
                query.raw(),
                0,
                1,
                region.raw(),
                offset,
                8,
                flags,
            );
        };
        Ok(self
            .keep(query as _)
            .keep(Arc::clone(region) as _)
            .recorded(Recorded::Timestamp { offset }))
    }

    fn must_hold(&self, region: &RegionImport, offset: u64, bytes: u64) {
        self.inner.must_share_device(region.device(), "a region");
        assert!(
            bytes > 0
                && (offset | bytes).is_multiple_of(4)
                && offset <= region.bytes()
                && bytes <= region.bytes() - offset,
            "{bytes} bytes at {offset} of a region of {} bytes",
            region.bytes()
        );
    }
}
