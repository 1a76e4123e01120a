//! Barrier: what must be done, and seen, before what.
//!
//! Work of a queue overlaps unless a barrier stands between: all that earlier commands did in the
//! source stages is complete, and what they wrote is visible, before later commands reach the
//! destination stages. Our shaders reach memory by address, which no validation layer follows, so a
//! missing barrier is found by nobody. The ones that slices need therefore stand here by name, and
//! a command buffer tells which it holds.

use std::fmt;
use std::ops::BitOr;

use ash::vk;

macro_rules! flags {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $($(#[$bit_doc:meta])* $bit:ident = $value:literal => $flag:ident;)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(u8);

        impl $name {
            $($(#[$bit_doc])* pub const $bit: Self = Self($value);)+

            const ALL: &'static [(Self, vk::$raw, &'static str)] =
                &[$((Self::$bit, vk::$raw::$flag, stringify!($bit)),)+];

            /// Those of both.
            #[must_use]
            pub const fn and(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Whether all of `other` are among these.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            fn to_vk(self) -> vk::$raw {
                let those = Self::ALL.iter().filter(|(bit, _, _)| self.contains(*bit));
                those.fold(vk::$raw::empty(), |all, (_, flag, _)| all | *flag)
            }

            fn from_vk(flags: vk::$raw) -> Self {
                let those = Self::ALL.iter().filter(|(_, flag, _)| flags.contains(*flag));
                those.fold(Self::default(), |all, (bit, _, _)| all | *bit)
            }
        }

        impl BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.and(other)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let those = Self::ALL.iter().filter(|(bit, _, _)| self.contains(*bit));
                let names: Vec<_> = those.map(|(_, _, name)| *name).collect();
                f.write_str(&names.join("|"))
            }
        }
    };
}

flags! {
    /// Stages of a queue's work.
    Stages, PipelineStageFlags,
    /// Compute shaders run.
    COMPUTE = 1 => COMPUTE_SHADER;
    /// Arguments of indirect dispatches are read.
    DRAW_INDIRECT = 2 => DRAW_INDIRECT;
    /// Fills and copies.
    TRANSFER = 4 => TRANSFER;
    /// The CPU.
    HOST = 8 => HOST;
    /// All that a queue does.
    ALL_COMMANDS = 16 => ALL_COMMANDS;
}

flags! {
    /// Ways in which a stage touches memory.
    Accesses, AccessFlags,
    /// Reads of shaders.
    SHADER_READ = 1 => SHADER_READ;
    /// Writes of shaders.
    SHADER_WRITE = 2 => SHADER_WRITE;
    /// Reads of indirect arguments.
    INDIRECT_COMMAND_READ = 4 => INDIRECT_COMMAND_READ;
    /// Writes of fills and copies.
    TRANSFER_WRITE = 8 => TRANSFER_WRITE;
    /// Reads of the CPU.
    HOST_READ = 16 => HOST_READ;
    /// Reads of copies.
    TRANSFER_READ = 32 => TRANSFER_READ;
    /// All reads.
    MEMORY_READ = 64 => MEMORY_READ;
    /// All writes.
    MEMORY_WRITE = 128 => MEMORY_WRITE;
}

/// A barrier for all memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Barrier {
    /// Stages that must be complete.
    pub src_stage: Stages,
    /// Writes that must be available.
    pub src_access: Accesses,
    /// Stages that wait.
    pub dst_stage: Stages,
    /// Accesses to which those writes must be visible.
    pub dst_access: Accesses,
}

/// The first command of every slice.
///
/// Two submissions of a queue are ordered in their start only. Two slices are in flight, so without
/// this the second would run beside the first and both would own the engine's state. The writes of
/// the slice before (state, arguments of indirect dispatches) must be seen by this slice's engine
/// and by its indirect dispatches; `SHADER_WRITE` in the destination orders writes after writes.
pub const SLICE_BEGIN: Barrier = Barrier {
    src_stage: Stages::COMPUTE,
    src_access: Accesses::SHADER_WRITE,
    dst_stage: Stages::COMPUTE.and(Stages::DRAW_INDIRECT),
    dst_access: Accesses::SHADER_READ
        .and(Accesses::SHADER_WRITE)
        .and(Accesses::INDIRECT_COMMAND_READ),
};

/// The last command of every slice.
///
/// Waiting for a semaphore promises a thread that the slice is complete, but not that it sees what
/// the slice wrote: that takes a barrier to the host in the command buffer. Without it interrupt
/// records and logs may be read old, and the end of a slice would be no backstop for a lost wake-up.
pub const SLICE_END: Barrier = Barrier {
    src_stage: Stages::COMPUTE,
    src_access: Accesses::SHADER_WRITE,
    dst_stage: Stages::HOST,
    dst_access: Accesses::HOST_READ,
};

/// Between transfers of a command buffer, and before its first: they come in their order, those of
/// earlier command buffers of the queue included. The host is among those who see them, so it finds
/// all that came before a fence value that it reads.
pub const TRANSFER_ORDER: Barrier = Barrier {
    src_stage: Stages::TRANSFER,
    src_access: Accesses::TRANSFER_WRITE,
    dst_stage: Stages::TRANSFER.and(Stages::HOST),
    dst_access: Accesses::TRANSFER_READ
        .and(Accesses::TRANSFER_WRITE)
        .and(Accesses::HOST_READ),
};

/// At the end of copies whose result the host reads.
pub const COPY_END: Barrier = Barrier {
    src_stage: Stages::TRANSFER,
    src_access: Accesses::TRANSFER_WRITE,
    dst_stage: Stages::HOST,
    dst_access: Accesses::HOST_READ,
};

/// Before what is recorded into a program's command buffer.
///
/// All that the program's commands did before is done and available when a signal stores its value; and a condition
/// finds the counts that they stored, and overwrites none that they still read.
pub const ENROLLED_BEGIN: Barrier = Barrier {
    src_stage: Stages::ALL_COMMANDS,
    src_access: Accesses::MEMORY_WRITE,
    dst_stage: Stages::COMPUTE,
    dst_access: Accesses::SHADER_READ.and(Accesses::SHADER_WRITE),
};

/// After a signal that is recorded into a program's command buffer.
///
/// The value, and what it stands for, reaches the host by this and not by the submission's semaphore alone. Later
/// commands come after the signal, as they do on a hardware queue.
pub const ENROLLED_SIGNAL_END: Barrier = Barrier {
    src_stage: Stages::COMPUTE,
    src_access: Accesses::SHADER_WRITE,
    dst_stage: Stages::ALL_COMMANDS.and(Stages::HOST),
    dst_access: Accesses::MEMORY_READ
        .and(Accesses::MEMORY_WRITE)
        .and(Accesses::HOST_READ),
};

/// After a condition that is recorded into a program's command buffer.
///
/// The counts are read by the command processor, which no shader's order binds; and the work that they decide on
/// comes after the look at the fence and sees what was published with its value.
pub const ENROLLED_CONDITION_END: Barrier = Barrier {
    src_stage: Stages::COMPUTE,
    src_access: Accesses::SHADER_WRITE,
    dst_stage: Stages::DRAW_INDIRECT.and(Stages::ALL_COMMANDS),
    dst_access: Accesses::INDIRECT_COMMAND_READ
        .and(Accesses::MEMORY_READ)
        .and(Accesses::MEMORY_WRITE),
};

/// A barrier in the driver's terms.
#[derive(Clone, Copy)]
pub(super) struct RawBarrier {
    pub(super) src_stage: vk::PipelineStageFlags,
    pub(super) dst_stage: vk::PipelineStageFlags,
    pub(super) memory: vk::MemoryBarrier<'static>,
}

impl Barrier {
    pub(super) fn to_vk(self) -> RawBarrier {
        RawBarrier {
            src_stage: self.src_stage.to_vk(),
            dst_stage: self.dst_stage.to_vk(),
            memory: vk::MemoryBarrier::default()
                .src_access_mask(self.src_access.to_vk())
                .dst_access_mask(self.dst_access.to_vk()),
        }
    }

    pub(super) fn from_vk(raw: &RawBarrier) -> Self {
        Self {
            src_stage: Stages::from_vk(raw.src_stage),
            src_access: Accesses::from_vk(raw.memory.src_access_mask),
            dst_stage: Stages::from_vk(raw.dst_stage),
            dst_access: Accesses::from_vk(raw.memory.dst_access_mask),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_stages_and_accesses_survives_the_way_to_vulkan_and_back() {
        for bits in 0..32 {
            let stages = Stages(bits);
            assert_eq!(Stages::from_vk(stages.to_vk()), stages);
        }
        for bits in 0..=u8::MAX {
            let accesses = Accesses(bits);
            assert_eq!(Accesses::from_vk(accesses.to_vk()), accesses);
        }
    }

    #[test]
    fn a_slice_begins_after_the_one_before_in_vulkans_own_words() {
        let raw = SLICE_BEGIN.to_vk();
        assert_eq!(raw.src_stage, vk::PipelineStageFlags::COMPUTE_SHADER);
        let waits = vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::DRAW_INDIRECT;
        assert_eq!(raw.dst_stage, waits);
        assert_eq!(raw.memory.src_access_mask, vk::AccessFlags::SHADER_WRITE);
        let sees = vk::AccessFlags::SHADER_READ
            | vk::AccessFlags::SHADER_WRITE
            | vk::AccessFlags::INDIRECT_COMMAND_READ;
        assert_eq!(raw.memory.dst_access_mask, sees);
    }

    #[test]
    fn a_slice_ends_before_the_host_reads_in_vulkans_own_words() {
        let raw = SLICE_END.to_vk();
        assert_eq!(raw.src_stage, vk::PipelineStageFlags::COMPUTE_SHADER);
        assert_eq!(raw.dst_stage, vk::PipelineStageFlags::HOST);
        assert_eq!(raw.memory.src_access_mask, vk::AccessFlags::SHADER_WRITE);
        assert_eq!(raw.memory.dst_access_mask, vk::AccessFlags::HOST_READ);
    }

    #[test]
    fn what_a_program_enrols_comes_after_all_and_before_all_in_vulkans_own_words() {
        use vk::{AccessFlags, PipelineStageFlags as Stage};
        let before = ENROLLED_BEGIN.to_vk();
        assert_eq!(before.src_stage, Stage::ALL_COMMANDS);
        assert_eq!(before.memory.src_access_mask, AccessFlags::MEMORY_WRITE);
        assert_eq!(before.dst_stage, Stage::COMPUTE_SHADER);
        let touches = AccessFlags::SHADER_READ | AccessFlags::SHADER_WRITE;
        assert_eq!(before.memory.dst_access_mask, touches);
        for (after, also, reads) in [
            (ENROLLED_SIGNAL_END, Stage::HOST, AccessFlags::HOST_READ),
            (
                ENROLLED_CONDITION_END,
                Stage::DRAW_INDIRECT,
                AccessFlags::INDIRECT_COMMAND_READ,
            ),
        ] {
            let after = after.to_vk();
            assert_eq!(after.src_stage, Stage::COMPUTE_SHADER);
            assert_eq!(after.memory.src_access_mask, AccessFlags::SHADER_WRITE);
            assert_eq!(after.dst_stage, Stage::ALL_COMMANDS | also);
            let all = AccessFlags::MEMORY_READ | AccessFlags::MEMORY_WRITE;
            assert_eq!(after.memory.dst_access_mask, all | reads);
        }
    }

    #[test]
    fn flags_print_their_names() {
        assert_eq!(
            format!("{:?}", Stages::COMPUTE | Stages::HOST),
            "COMPUTE|HOST"
        );
    }
}
