// Packets: the commands of a hardware queue. Twin of src/abi/packet.rs.

#ifndef NF_ABI_PACKET
#define NF_ABI_PACKET

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Packet {
    uint64_t control;    // 0..8 opcode, 8..16 length in 64 bytes, 16..32 zero, 32..64 handle, or kind of a stall
    uint64_t log_number; // running number in the log that it writes to
    uint64_t value;
    uint64_t destination_offset;
    uint64_t bytes;
    uint64_t source_handle;
    uint64_t source_offset;
    uint64_t counts_offset;
};

const uint64_t PACKET_BYTES = 64ul;

const uint OPCODE_NONE = 0u; // no packet at hand
const uint OPCODE_NOP = 1u;
const uint OPCODE_WAIT = 2u;
const uint OPCODE_SIGNAL = 3u;
const uint OPCODE_PROGRESS = 4u;
const uint OPCODE_TIMESTAMP = 5u;
const uint OPCODE_FILL = 6u;
const uint OPCODE_COPY = 7u;
const uint OPCODE_STALL = 8u; // with fault injection alone
const uint OPCODE_DISPATCH = 9u;

const uint STALL_HEEDS_NOTHING = 0u;
const uint STALL_HEEDS_ABORT = 1u;

#endif
