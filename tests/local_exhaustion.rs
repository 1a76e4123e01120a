//! What is said when a device gives no memory that can be shared.
//!
//! One test alone in its program: the driver is asked for what the validation layers rightly complain
//! of.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/memory.rs"]
mod memory;

use native_fence::abi::{Home, WordGroup};
use native_fence::{Adapter, AdapterOptions, CommandList};
use std::time::Duration;

/// Far more than any machine has.
const TOO_MUCH: u64 = 1 << 50;

/// NF-12: memory that the device has not is an error with the driver's word and what it was for, of
/// either kind, and what was made before goes on. What was asked for in local memory is put nowhere
/// else; what had better lie there is, where local memory has no room.
///
/// Kills `exhausted-local-memory-falls-back` and `exhausted-local-memory-is-the-end`.
#[test]
fn nf_12_memory_that_the_device_has_not_is_an_error_that_says_so() {
    for memory in [memory::LOCAL, memory::EXPORTED] {
        let options = AdapterOptions {
            memory,
            ..AdapterOptions::default()
        };
        let adapter = Adapter::open(&options).unwrap();
        let providers = adapter.providers();
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let refused = if let Ok(local) = providers.local() {
            assert_eq!(local.home(), Home::LocalHostVisible);
            // A file as large is no memory yet, and is never mapped here.
            let elsewhere = providers.for_words(WordGroup::Ring, TOO_MUCH).unwrap();
            assert_eq!(elsewhere.home(), Home::CachedSystem, "it says where it is");
            providers.local_for_words(WordGroup::Ring, TOO_MUCH)
        } else {
            providers.for_words(WordGroup::Ring, TOO_MUCH)
        };
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("hw-queue-ring"), "for what: {refused}");
        assert!(refused.contains("vk"), "by whom: {refused}");
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        fence.wait(1, Duration::from_secs(20)).unwrap();
    }
}
