// A word of the bare control, 64 bits wide as a fence's values are, or 32 where a device has no
// 64-bit atomics (NARROW).
//
// The same orders as in abi/word.glsl, which is of 64 bits only; addresses come as two 32-bit
// halves, since a narrow device has no 64-bit integers to hold them.

#ifndef NF_BARE_WORD
#define NF_BARE_WORD

#ifdef NARROW
#define WORD_T uint
#define WORD_BYTES 4
#else
#define WORD_T uint64_t
#define WORD_BYTES 8
#endif

#define OBSERVE(word) \
    atomicLoad(word, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire)
#define PUBLISH(word, content) \
    atomicStore(word, content, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease)

// Words that share a cache line with nothing else: a line is the stride, in words of 32 bits.
#define LINE_WORDS (64 / WORD_BYTES)

layout(buffer_reference, std430, buffer_reference_align = 64) buffer Words {
    WORD_T at[];
};

#endif
