// A lane and the queue that it has in its registers.
//
// One invocation serves the queues of its own places in the run list, one at a time. Everything
// about that queue is in registers while it runs; switch.glsl moves it to and from memory.

const uint NO_QUEUE = ~0u;

// The engine.
EngineControl g_control;
uint64_t g_control_va;
uint64_t g_report_va;
uint64_t g_run_list_va;
uint g_queue_count;
bool g_clock_is_short;
uint g_iterations; // executions of the slice so far; every lane counts them
uint g_turn; // the lane that comes first of those which claim; the same in all
uint64_t g_dispatch_va; // the dispatch block
uint64_t g_version;     // of the kernels that the slice has
uint64_t g_in_slice;    // by place: whether the slice has it

// The lane.
uint l_places;     // queues of this lane
uint l_cursor;     // which of them is in registers
uint l_quantum;    // iterations that it has had
uint64_t l_ticks;  // the whole clock as last read
uint64_t l_began;  // the same when the round began; not in an epilogue
bool l_stepped;    // the lane took a step in this iteration
uint l_rounds;     // whole rounds that it has had in this iteration, before the one it left in
uint l_favours;    // its queue whose turn it is to dispatch first, as its ordinal + 1; 0: none is
bool l_holding;    // it can do no more in this iteration
bool l_ordered;    // a barrier stands behind the last log index of its step
bool l_stored;     // it has stored a CurrentValue; in an epilogue, in this step
bool l_for_engine; // in an epilogue: what the queue stands at is the engine's to do
uint l_fruitless;  // looks in a row that found nothing
uint l_backward;   // signals below the value before, in this iteration

// The queue in registers: what the descriptor says.
uint q_ordinal;
uint64_t q_descriptor_va;
uint64_t q_ring_va;
uint64_t q_ring_control_va;
uint64_t q_ring_capacity;
uint64_t q_wait_log_va;
uint64_t q_signal_log_va;
uint q_wait_log_entries;
uint q_signal_log_entries;
uint64_t q_handle_directory_va;
uint64_t q_state_va;
uint64_t q_progress_va;
uint q_progress_handle;
uint64_t q_verbose_log_va; // 0: none
uint q_verbose_log_entries;

// What its state says.
uint64_t q_sequence;
uint64_t q_read;
uint64_t q_write; // last write index that was seen and can be
uint64_t q_wait_number;
uint64_t q_signal_number;
uint64_t q_wait_log_index;
uint64_t q_signal_log_index;
uint64_t q_verbose_log_index;
uint64_t q_observed;
uint64_t q_progress_value;
uint64_t q_transferred; // what is done of the head: bytes of a transfer, passes of a stall, DISPATCH_RELEASED
uint64_t q_stall_abort; // what ABORT was when it went into the stall at the head, + 1; 0: it did not
uint q_status;
uint q_fault;
uint q_closed; // it stands at a wait: one more than the index of the doorbell that has it looked at; 0: it is open
bool q_stands; // it stands at a dispatch that goes or waits: nothing more is done for it in this round

// The packet at its head, copied once: what is checked is what is executed (HQ-04).
bool p_fetched;
uint p_handle_fault; // its handle names no open fence
uint64_t p_control;
uint64_t p_log_number;
uint64_t p_value;

// Handles resolved last, one for waits and one for signals; the progress fence is always known.
// A shadow is read once an iteration, and with a fence that is resolved later: it changes only while the lanes adopt, and when another lane
// raises the same fence, after which a second raise is spurious and allowed (NF-06).
uint c_wait_handle;
uint c_wait_access;
uint64_t c_wait_cv;
uint c_signal_handle;
uint c_signal_access;
uint64_t c_signal_cv;
uint64_t c_signal_entry;
uint64_t c_signal_shadow;
uint64_t c_progress_cv;
uint64_t c_progress_entry;
uint64_t c_progress_shadow;

// The transfer whose part the lane prepared.
uint64_t t_bytes;

// Whether the slice has the kernel of the dispatch that the lane prepared; see dispatch_packet.glsl.
bool d_is_here;
uint64_t d_slice; // the number of the slice

// What the lane raised in this iteration: at most RAISES, then it holds.
const uint RAISES = 2u;
uint i_raised;
bool i_faults[RAISES];
uint64_t i_fence_entry[RAISES];
uint64_t i_value[RAISES];
uint64_t i_log_number[RAISES];
