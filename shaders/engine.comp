// The engine: one workgroup that executes the hardware queues of its run list for one slice.
//
// The OS submits slices; each invocation (a lane) serves the queues of its places in the run list,
// one step of one packet at a time. A blocked queue costs a look, never the engine. The slice ends
// after a budget, when nothing can go on, when an interrupt must be raised, or when the OS asks;
// the state of the queues is saved and the next slice goes on.
//
// The engine writes CurrentValues, logs, progress words, saved states and its report; it reads
// everything else. It never writes a ring, a descriptor, a handle table or a MonitoredValue.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_EXT_shader_realtime_clock : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

// Lanes: whole subgroups of the device.
layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
// Steps of each lane between two adoptions.
layout(constant_id = 1) const uint ROUNDS = 32u;
// Iterations that a queue may keep its lane while another of the lane's queues can go on.
layout(constant_id = 2) const uint QUANTUM = 8u;
// Whether a lane can have more than one queue: without, it never switches.
layout(constant_id = 3) const bool MANY_QUEUES = true;
// Whether it does transfers: without, a queue that stands at one ends the slice.
layout(constant_id = 4) const bool TRANSFERS = true;
// Whether it logs waits that it finds unsatisfied, of queues that have such a log (LG-11).
layout(constant_id = 5) const bool VERBOSE = false;
// Whether it knows stalls, with which a test brings it to a standstill: without, they are no opcode.
layout(constant_id = 6) const bool STALLS = false;
// Whether it makes dispatches: without, a queue that stands at one ends the slice.
layout(constant_id = 7) const bool DISPATCHES = false;
// Whether it rings for other adapters, and hears of them.
layout(constant_id = 8) const bool DOORBELLS = false;
// Whether a lane resolves a new fence in the midst of an iteration, as one does that makes dispatches. On a CPU device all
// lanes pay for that in each round; on a GPU those that do it, and less than for another iteration.
layout(constant_id = 9) const bool RESOLVES = false;
// Looks in a row that find nothing after which a lane leaves the iteration: in a slice that dispatches one for each
// packet that can stand between two dispatches, since they are waited for.
const uint PATIENCE = DISPATCHES ? 3u : 8u;

layout(push_constant, scalar) uniform Slice {
    uint64_t control_va;
    uint64_t slot; // slot of arguments, run list and result
    uint64_t dispatch_va; // the dispatch block, where dispatches are made
    uint64_t round; // of the slice, from 0
    uint64_t rounds; // the last, in which nothing is released
    uint64_t depth; // times that kernels run between two rounds
    uint64_t version; // of the kernels that the slice has
    uint64_t kernels; // places of kernels in the block
    uint64_t in_slice; // by place: whether the slice has it
} push;

// The engine itself, and not the last workgroup of a kernel that does its step (include/self_scheduling.glsl).
const bool EPILOGUE = false;

#include "abi/word.glsl"
#include "abi/packet.glsl"
#include "abi/dispatch.glsl"
#include "abi/ring.glsl"
#include "abi/log_buffer.glsl"
#include "abi/interrupt_record.glsl"
#include "abi/fence_entry.glsl"
#include "abi/handle_entry.glsl"
#include "abi/fault.glsl"
#include "abi/hw_queue.glsl"
#include "abi/slice.glsl"
#include "abi/engine_control.glsl"
#include "abi/engine_report.glsl"
#include "abi/cross_doorbell.glsl"
#include "engine/lane.glsl"
#include "engine/shared.glsl"
#include "engine/table.glsl"
#include "engine/clock.glsl"
#include "engine/resolve.glsl"
#include "engine/switch.glsl"
#include "engine/choice.glsl"
#include "engine/step.glsl"
#include "engine/allocation.glsl"
#include "engine/transfer.glsl"
#include "engine/stall.glsl"
#include "engine/cross_doorbell.glsl"
#include "engine/raise.glsl"
#include "engine/dispatch_packet.glsl"
#include "engine/kernel_signal.glsl"
#include "engine/dispatch.glsl"
#include "engine/adopt.glsl"
#include "engine/slice.glsl"

void main() {
    run_slice();
}
