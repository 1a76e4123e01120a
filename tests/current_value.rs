//! CurrentValue: its 64 bits.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::CommandList;
use support::bench::{Bench, native, until_completed};

/// CurrentValue is 8 bytes at a multiple of 8, in the mappings and in the memory itself, and all 64
/// bits of it are kept: each by itself and all of them, stored by the CPU and by the GPU. That no
/// reader sees a torn value is `tests/load_torn_values.rs`.
///
/// Kills `engine-stores-low-halves` and `cpu-stores-low-halves`.
#[test]
fn nf_01_current_value_has_64_bits_at_a_multiple_of_8() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    for _ in 0..70 {
        let fence = bench.fence(0);
        let address = fence.current_value_address();
        assert!(address.is_none_or(|address| (address as usize).is_multiple_of(8)));
        assert_eq!(native(&fence).current_value_place().1 % 8, 0);
    }
    let (from_cpu, from_gpu) = (bench.fence(0), bench.fence(0));
    for value in (0..64).map(|bit| 1 << bit).chain([u64::MAX]) {
        from_cpu.signal(value).unwrap();
        assert_eq!(from_cpu.current_value(), value);
        let end = queue
            .submit(
                CommandList::new()
                    .signal(&from_gpu, value)
                    .wait(&from_gpu, value),
            )
            .unwrap();
        until_completed(&queue, end);
        assert_eq!(from_gpu.current_value(), value);
    }
}
