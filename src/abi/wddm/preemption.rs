//! Preemption: how a driver is asked for it, and how fine it says that it is (`layouts.md` part 5).

use super::published::{enumeration, structure};
use bytemuck::{Pod, Zeroable};

/// `DXGKARG_PREEMPTCOMMAND`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DriverPreemptCommand {
    /// \[in\] Names the request in the interrupt that answers it.
    pub preemption_fence_id: u32,
    /// \[in\] Node.
    pub node_ordinal: u32,
    /// \[in\] Engine.
    pub engine_ordinal: u32,
    /// \[in\] Reserved bits alone.
    pub flags: u32,
}

structure!(DriverPreemptCommand is "DXGKARG_PREEMPTCOMMAND", 16 bytes {
    preemption_fence_id "PreemptionFenceId" @ 0,
    node_ordinal "NodeOrdinal" @ 4,
    engine_ordinal "EngineOrdinal" @ 8,
    flags "Flags" @ 12,
});

enumeration! {
    /// `D3DKMDT_GRAPHICS_PREEMPTION_GRANULARITY`.
    GraphicsPreemption is "D3DKMDT_GRAPHICS_PREEMPTION_GRANULARITY" {
        /// Not at all.
        NONE "D3DKMDT_GRAPHICS_PREEMPTION_NONE" = 0,
        /// Between buffers.
        DMA_BUFFER "D3DKMDT_GRAPHICS_PREEMPTION_DMA_BUFFER_BOUNDARY" = 100,
        /// Between primitives.
        PRIMITIVE "D3DKMDT_GRAPHICS_PREEMPTION_PRIMITIVE_BOUNDARY" = 200,
        /// Between triangles.
        TRIANGLE "D3DKMDT_GRAPHICS_PREEMPTION_TRIANGLE_BOUNDARY" = 300,
        /// Between pixels.
        PIXEL "D3DKMDT_GRAPHICS_PREEMPTION_PIXEL_BOUNDARY" = 400,
        /// Within a shader.
        SHADER "D3DKMDT_GRAPHICS_PREEMPTION_SHADER_BOUNDARY" = 500,
    }
}

enumeration! {
    /// `D3DKMDT_COMPUTE_PREEMPTION_GRANULARITY`.
    ComputePreemption is "D3DKMDT_COMPUTE_PREEMPTION_GRANULARITY" {
        /// Not at all.
        NONE "D3DKMDT_COMPUTE_PREEMPTION_NONE" = 0,
        /// Between buffers.
        DMA_BUFFER "D3DKMDT_COMPUTE_PREEMPTION_DMA_BUFFER_BOUNDARY" = 100,
        /// Between dispatches.
        DISPATCH "D3DKMDT_COMPUTE_PREEMPTION_DISPATCH_BOUNDARY" = 200,
        /// Between thread groups.
        THREAD_GROUP "D3DKMDT_COMPUTE_PREEMPTION_THREAD_GROUP_BOUNDARY" = 300,
        /// Between threads.
        THREAD "D3DKMDT_COMPUTE_PREEMPTION_THREAD_BOUNDARY" = 400,
        /// Within a shader.
        SHADER "D3DKMDT_COMPUTE_PREEMPTION_SHADER_BOUNDARY" = 500,
    }
}

/// `D3DKMDT_PREEMPTION_CAPS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PreemptionCaps {
    /// The coarsest of what engines do with graphics.
    pub graphics: GraphicsPreemption,
    /// The same with compute.
    pub compute: ComputePreemption,
}

structure!(PreemptionCaps is "D3DKMDT_PREEMPTION_CAPS", 8 bytes {
    graphics "GraphicsPreemptionGranularity" @ 0,
    compute "ComputePreemptionGranularity" @ 4,
});

impl PreemptionCaps {
    /// The published names of both; a number that has none as it is.
    #[must_use]
    pub fn names(self) -> (String, String) {
        let name = |values: &[(&str, u32)], value: u32| {
            let mut values = values.iter();
            let named = values.find(|(_, number)| *number == value);
            named.map_or_else(|| value.to_string(), |(name, _)| (*name).to_owned())
        };
        (
            name(GraphicsPreemption::VALUES.values, self.graphics.0),
            name(ComputePreemption::VALUES.values, self.compute.0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_have_their_published_names() {
        let caps = PreemptionCaps {
            graphics: GraphicsPreemption::NONE,
            compute: ComputePreemption::THREAD_GROUP,
        };
        assert_eq!(
            caps.names(),
            (
                String::from("D3DKMDT_GRAPHICS_PREEMPTION_NONE"),
                String::from("D3DKMDT_COMPUTE_PREEMPTION_THREAD_GROUP_BOUNDARY"),
            )
        );
    }
}
