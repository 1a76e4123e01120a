// Words in memory that several parties share, and the only ways to touch them.
//
// Every access is atomic, so that no word is torn and none is kept in a register; structures are
// buffer references at addresses of this engine's own mapping. Each name says what it orders.
//
// Between invocations of this device the Vulkan memory model gives these orders. Between a running
// shader and the host they are practice on coherent memory, not promise; the end of a slice, with
// its barrier to the host, is the backstop.

#ifndef NF_ABI_WORD
#define NF_ABI_WORD

// Reads a word; orders nothing.
#define PEEK(word) atomicLoad(word, gl_ScopeDevice, 0, gl_SemanticsRelaxed)

// Reads a word; all that its writer stored before it published the word is visible afterwards.
#define OBSERVE_ALWAYS(word) \
    atomicLoad(word, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire)

// Stores a word; orders nothing.
#define PUT(word, content) atomicStore(word, content, gl_ScopeDevice, 0, gl_SemanticsRelaxed)

// Stores a word; all that this lane stored before is visible to whoever observes it.
#define PUBLISH_ALWAYS(word, content) \
    atomicStore(word, content, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease)

// Adds to a word that several write, and gives what stood there; orders nothing.
#define ADD(word, more) atomicAdd(word, more, gl_ScopeDevice, 0, gl_SemanticsRelaxed)

// Takes one from a word that several count down, and gives what stood there: all that those before stored before they
// did is visible afterwards, and what this lane stored before to those that follow.
#define COUNT_DOWN_ALWAYS(word) \
    atomicAdd(word, ~0ul, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease)

// The same by code that runs in the engine and in the epilogue of a kernel, which says whether it ORDERS anything: on a
// device on which nothing has to be done for it, it does not (engine/epilogue.glsl).
#ifdef NF_HAS_ORDERS
#define ORDERED(barrier) \
    if (ORDERS) { \
        barrier; \
    }
#define OBSERVE(word) (ORDERS ? OBSERVE_ALWAYS(word) : PEEK(word))
#define PUBLISH(word, content) \
    if (ORDERS) { \
        PUBLISH_ALWAYS(word, content); \
    } else { \
        PUT(word, content); \
    }
#define COUNT_DOWN(word) (ORDERS ? COUNT_DOWN_ALWAYS(word) : ADD(word, ~0ul))
#else
#define ORDERED(barrier) barrier
#define OBSERVE(word) OBSERVE_ALWAYS(word)
#define PUBLISH(word, content) PUBLISH_ALWAYS(word, content)
#endif

// A word by itself, in an array or at an address that a structure holds.
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Word {
    uint64_t value;
};

// Orders what this lane stored before against what it loads and stores after: the one barrier of a
// signal, between the log index and the comparison with the monitored value (IN-01, LG-05), and of another
// packet, between the log index and the read index, behind which the next entry is logged (LG-06).
void order_log_before_comparison() {
    memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease);
}

// What others made available before this lane learned of it, its plain loads see from here on.
void make_visible() {
    memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer,
                  gl_SemanticsAcquire | gl_SemanticsMakeVisible);
}

// What this lane stored plainly before can be seen by all of the device.
void make_available() {
    memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer,
                  gl_SemanticsRelease | gl_SemanticsMakeAvailable);
}

// Orders the lanes of the engine: what any lane did before is done for every lane after
// (decisions.md 2: adopt | execute | adopt). Plain barrier() would order shared memory only.
void meet() {
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup,
                   gl_StorageSemanticsBuffer | gl_StorageSemanticsShared,
                   gl_SemanticsAcquireRelease);
}

#endif
