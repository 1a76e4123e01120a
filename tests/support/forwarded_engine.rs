//! Forwarded engine: what an engine of a test's own leaves to the model's that it stands before.

/// Methods of `Engine`, all that say nothing of a loss, by the field that has the model's.
macro_rules! forwards_to {
    ($engine:ident) => {
        fn attach(
            &mut self,
            control: native_fence::gpu::GpuVa,
            before: u64,
        ) -> Result<(), native_fence::gpu::MapError> {
            self.$engine.attach(control, before)
        }

        fn abandon(&self, slice: u64) {
            self.$engine.abandon(slice);
        }

        fn prepare_doorbells(&self) -> Result<(), native_fence::gpu::MapError> {
            self.$engine.prepare_doorbells()
        }

        fn prepare_verbose(&self) -> Result<(), native_fence::gpu::MapError> {
            self.$engine.prepare_verbose()
        }

        fn caps(&self) -> native_fence::gpu::EngineCaps {
            self.$engine.caps()
        }

        fn base_ticks(&self) -> u64 {
            self.$engine.base_ticks()
        }

        fn clock_bits(&self) -> u64 {
            self.$engine.clock_bits()
        }

        fn ticks_in(&self, time: std::time::Duration) -> u64 {
            self.$engine.ticks_in(time)
        }
    };
}

pub(crate) use forwards_to;
