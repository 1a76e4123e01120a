// Engine report: written here, read by the OS. Twin of src/abi/engine_report.rs.

#ifndef NF_ABI_ENGINE_REPORT
#define NF_ABI_ENGINE_REPORT

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer EngineReport {
    uint64_t mailbox_read;
    uint64_t rescan_seen;
    uint64_t record_write;
    uint64_t collapsed;
    uint64_t backward_signals;
    uint64_t last_reason;
    uint64_t stalled_queue;  // number + 1; 0: the engine is in no stall or dispatch
    uint64_t stalled_packet; // running index of the packet
    uint64_t stayed;         // ticks that slices stayed for a ring until their time was over
    uint64_t reserved[7];
};

const uint64_t REPORT_SLICE_RESULTS = 128ul;
const uint64_t REPORT_RECORDS = REPORT_SLICE_RESULTS + SLICE_SLOTS * SLICE_RESULT_BYTES;

#endif
