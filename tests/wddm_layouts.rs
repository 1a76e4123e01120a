//! The published structures against a table that was written down by hand from the documents.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod wddm_table;
}

use native_fence::abi::wddm::{
    BIT_FIELDS, CreateNativeFence, ENUMERATIONS, INTERFACE_VERSION_WDDM3_1,
    INTERFACE_VERSION_WDDM3_2, IsFeatureEnabledResult, MAX_OBJECT_SIGNALED, MAX_OBJECT_WAITED_ON,
    NATIVE_FENCE_PRIVATE_BYTES, NativeFenceInfo, NotifyInterruptData, NtStatus, STRUCTURES,
    SynchronizationObjectFlags, VidSchCaps,
};
use std::collections::BTreeMap;
use support::wddm_table::{BITS, DRIVER, PROGRAM, PROGRAM_LATER, STATUSES, VALUES};

/// Every structure of the table is one of the crate's, and every one of the crate's is in the table:
/// the same size, the same members, the same offsets.
///
/// Kills `a-published-member-has-another-name`; what moves a member does not compile.
#[test]
fn every_structure_has_the_published_layout() {
    let mut ours: BTreeMap<&str, _> = STRUCTURES.iter().map(|s| (s.name, s)).collect();
    assert_eq!(ours.len(), STRUCTURES.len(), "a name stands twice");
    for (name, bytes, members) in [DRIVER, PROGRAM_LATER, PROGRAM].concat() {
        let structure = ours
            .remove(name)
            .unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(structure.bytes, bytes, "size of {name}");
        let found: Vec<_> = structure
            .members
            .iter()
            .map(|m| (m.name, m.offset))
            .collect();
        assert_eq!(found, members, "{name}");
    }
    let left: Vec<_> = ours.keys().collect();
    assert!(left.is_empty(), "not in the table: {left:?}");
}

/// Kills `no-wait-is-another-bit`.
#[test]
fn every_flag_is_the_published_bit() {
    let mut ours: BTreeMap<&str, _> = BIT_FIELDS.iter().map(|b| (b.name, b.parts)).collect();
    for (name, parts) in BITS {
        assert_eq!(ours.remove(name), Some(*parts), "{name}");
    }
    let left: Vec<_> = ours.keys().collect();
    assert!(left.is_empty(), "not in the table: {left:?}");
    // What the names of Rust stand for.
    use SynchronizationObjectFlags as Flags;
    assert_eq!((Flags::NO_SIGNAL.0, Flags::NO_WAIT.0), (0x10, 0x20));
    assert_eq!(Flags(1 << 9).unknown(), 1 << 9, "bit 9 is unused");
    assert_eq!(VidSchCaps::NATIVE_GPU_FENCE.0, 0x800);
    assert_eq!(
        VidSchCaps::OPTIMIZED_NATIVE_FENCE_SIGNALED_INTERRUPT.0,
        0x1000
    );
    assert_eq!(VidSchCaps::HW_QUEUE_PACKET_CAP.0, 0x780);
    assert_eq!(IsFeatureEnabledResult::SUPPORTED_ON_CURRENT_CONFIG, 8);
}

/// Kills `native-fences-are-another-feature`.
#[test]
fn every_enumeration_has_the_published_values() {
    let mut ours: BTreeMap<&str, _> = ENUMERATIONS.iter().map(|e| (e.name, e.values)).collect();
    for (name, values) in VALUES {
        assert_eq!(ours.remove(name), Some(*values), "{name}");
    }
    let left: Vec<_> = ours.keys().collect();
    assert!(left.is_empty(), "not in the table: {left:?}");
    let statuses: BTreeMap<_, _> = NtStatus::ALL.iter().copied().collect();
    assert_eq!(statuses, STATUSES.iter().copied().collect());
    assert_eq!(NtStatus::INVALID_PARAMETER.0.cast_unsigned(), 0xC000_000D);
    assert!(NtStatus::PENDING.is_success() && !NtStatus::ACCESS_DENIED.is_success());
    let text = format!("{:?} {:?}", NtStatus::NOT_SUPPORTED, NtStatus(7));
    assert_eq!(text, "STATUS_NOT_SUPPORTED NTSTATUS 0x00000007");
}

#[test]
fn constants_are_the_published_ones() {
    assert_eq!(NATIVE_FENCE_PRIVATE_BYTES, 64);
    assert_eq!((MAX_OBJECT_WAITED_ON, MAX_OBJECT_SIGNALED), (32, 32));
    let versions = (INTERFACE_VERSION_WDDM3_1, INTERFACE_VERSION_WDDM3_2);
    assert_eq!(versions, (0x10004, 0x11007));
}

/// A structure is its bytes: written by name, read where the documents say, here in two that hold
/// others.
#[test]
fn members_lie_in_the_bytes_where_the_documents_say() {
    let mut create: CreateNativeFence = bytemuck::Zeroable::zeroed();
    create.info.fence_type.0 = 0x0102_0304;
    create.info.native_fence_mapping.monitored_value_gpu_va = 0x1112_1314_1516_1718;
    let bytes = bytemuck::bytes_of(&create);
    assert_eq!(bytes[72 + 12..][..4], 0x0102_0304_u32.to_le_bytes());
    let at = 72 + 24 + 16;
    assert_eq!(bytes[at..][..8], 0x1112_1314_1516_1718_u64.to_le_bytes());
    assert_eq!(size_of::<NativeFenceInfo>(), 112);

    let mut data: NotifyInterruptData = bytemuck::Zeroable::zeroed();
    data.payload[3] = 7;
    assert_eq!(
        bytemuck::bytes_of(&data)[32],
        7,
        "hHWQueue, of a native fence"
    );
}
