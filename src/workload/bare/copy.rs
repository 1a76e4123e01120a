//! Copy of the bare control: the CPU copies.

use crate::workload::copy::{self, COPIES, COPY_BYTES, WORDS};
use crate::workload::{Counts, Params, Runner, Sample};
use std::hint::black_box;
use std::time::Instant;

/// See the module's page.
#[derive(Debug)]
pub struct Copy {
    source: Vec<u64>,
    destination: Vec<u64>,
    batch: u64,
}

impl Default for Copy {
    fn default() -> Self {
        Self {
            source: vec![0; WORDS],
            destination: vec![0; WORDS],
            batch: 0,
        }
    }
}

impl Runner for Copy {
    fn work(&self) -> &'static str {
        "The CPU itself copies 16 times 1 MiB of its memory, by memcpy: no device, no packet, no \
         signal."
    }

    fn params(&self) -> Params {
        copy::params()
    }

    fn ops_per_batch(&self) -> u64 {
        COPIES
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.batch += 1;
        self.source = copy::words_of(self.batch);
        Ok(())
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        let words = (COPY_BYTES / 8) as usize;
        let copies = self.source.chunks_exact(words);
        for (from, to) in copies.zip(self.destination.chunks_exact_mut(words)) {
            black_box(&mut *to).copy_from_slice(black_box(from));
        }
        let wall = start.elapsed();
        copy::check(self.batch, &self.destination)?;
        Ok(Sample::whole(wall))
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }
}
