// Dispatch: operands of the packet, and the block by which a kernel is released. Twin of src/abi/dispatch.rs.

#ifndef NF_ABI_DISPATCH
#define NF_ABI_DISPATCH

// Operand of an indirect dispatch.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer DispatchRecord {
    uint x;
    uint y;
    uint z;
    uint released; // of the next round: the kernel that was released last, + 1; 0: none
};

const uint64_t MAX_KERNELS = 64ul;
const uint64_t DISPATCH_RECORD_BYTES = 16ul;
const uint64_t DISPATCH_KERNELS = DISPATCH_RECORD_BYTES;
const uint64_t DISPATCH_PARAMETERS = DISPATCH_KERNELS + MAX_KERNELS * DISPATCH_RECORD_BYTES;

const uint64_t MOST_PARAMETER_BYTES = 256ul;
const uint64_t MOST_GROUPS = 65535ul;
const uint64_t COUNTS_BYTES = 16ul;
const uint64_t DISPATCH_RELEASED = ~0ul;
const uint64_t DISPATCH_ROUNDS = 16ul;

#endif
