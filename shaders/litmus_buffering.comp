// Store buffering: each party stores its word and looks at the other's.
//
// The question of a lost wake-up. Party 0 signals: it stores CurrentValue and looks at MonitoredValue. Party 1 is a
// waiter: it stores MonitoredValue and looks at CurrentValue. Forbidden: neither sees the other; the waiter sleeps and
// nobody wakes it.
//
// No order that the Vulkan memory model has forbids that, since it has no sequentially consistent one: release and acquire
// do not (bare), and a barrier of both between store and look is not promised to (fenced). So the engine does not ask
// for it: the waiter posts, and the engine adopts the post in its own program order, beside its own signals, and looks at
// CurrentValue after that (engine/adopt.glsl, which is what runs here). Then one invocation has stored CurrentValue and
// compared with the shadow before the adoption, whose look finds its own store, or it compares after it with the new shadow.
//
//! variant: fenced FENCED
//! variant: adopted ADOPTED

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

#include "abi/word.glsl"
#include "abi/fence_entry.glsl"
#include "abi/hw_queue.glsl"
#include "abi/slice.glsl"
#include "abi/engine_control.glsl"
#include "litmus/parties.glsl"

#ifdef ADOPTED
uint64_t g_control_va;
#include "engine/adopt.glsl"

// Signals, and raises if the shadow says so: the order of engine/step.glsl.
bool signal(FenceEntry entry) {
    PUBLISH(Word(PEEK(entry.current_value_va)).value, l_generation);
    order_log_before_comparison();
    bool raises = l_generation > PEEK(entry.shadow);
    if (raises) {
        PUT(entry.shadow, ~0ul);
    }
    return raises;
}

FenceEntry entry_of(uint slot) {
    uint64_t leaf = PEEK(Word(g_control_va + CONTROL_FENCE_DIRECTORY
                              + uint64_t(slot >> FENCE_LEAF_BITS) * 8ul).value);
    return FenceEntry(leaf + uint64_t(slot & ((1u << FENCE_LEAF_BITS) - 1u)) * FENCE_ENTRY_BYTES);
}

uint slot_of(uint i) {
    return instance(i) & uint(PEEK(Setup(push.setup).cell_mask));
}

// An engine of one lane: its signals, and adoptions of what is posted to it, in any order.
void run_engine() {
    g_control_va = push.control;
    uint i = 0u;
    bool signalled = false;
    bool adopted = false;
    bool raised = false;
    for (uint pass = 0u; pass < MOST_PASSES && i < l_iterations; ++pass) {
        uint64_t other = partner();
        if (has_gone(other)) {
            break;
        }
        uint slot = slot_of(i);
        if (!signalled && begins(other, i)) {
            raised = signal(entry_of(slot)) || raised;
            signalled = true;
        }
        uint64_t posts = OBSERVE(Word(l_other + POSTS).value);
        if (!adopted && posts >= (l_generation << 32 | uint64_t(i + 1u))) {
            uint64_t id = 0ul;
            uint64_t value = 0ul;
            raised = adopt(slot, id, value) || raised;
            adopted = true;
        }
        if (signalled && adopted) {
            PUT(entry_of(slot).shadow, ~0ul);
            done_with(i, raised ? SAW_NEW : SAW_OLD);
            signalled = false;
            adopted = false;
            raised = false;
        }
    }
    end_party(i);
}

void wait_for_values() {
    g_control_va = push.control;
    uint i = 0u;
    for (uint pass = 0u; pass < MOST_PASSES && i < l_iterations; ++pass) {
        uint64_t other = partner();
        if (has_gone(other)) {
            break;
        }
        if (begins(other, i)) {
            FenceEntry entry = entry_of(slot_of(i));
            PUBLISH(Word(PEEK(entry.monitored_value_va)).value, l_generation - 1ul);
            PUBLISH(Word(l_mine + POSTS).value, l_generation << 32 | uint64_t(i + 1u));
            uint64_t value = OBSERVE(Word(PEEK(entry.current_value_va)).value);
            done_with(i, value == l_generation ? SAW_NEW : SAW_OLD);
        }
    }
    end_party(i);
}
#else
void store_and_look() {
    uint i = 0u;
    for (uint pass = 0u; pass < MOST_PASSES && i < l_iterations; ++pass) {
        uint64_t other = partner();
        if (has_gone(other)) {
            break;
        }
        if (begins(other, i)) {
            uint n = instance(i);
            uint64_t mine = l_role == 0u ? first_of(n) : second_of(n);
            uint64_t others = l_role == 0u ? second_of(n) : first_of(n);
            PUBLISH(Word(mine).value, l_generation);
#ifdef FENCED
            order_log_before_comparison();
#endif
            uint64_t seen = OBSERVE(Word(others).value);
            l_sink += seen;
            done_with(i, seen == l_generation ? SAW_NEW : SAW_OLD);
        }
    }
    end_party(i);
}
#endif

void main() {
    begin_party();
#ifdef ADOPTED
    if (l_role == 0u) {
        run_engine();
    } else {
        wait_for_values();
    }
#else
    store_and_look();
#endif
}
