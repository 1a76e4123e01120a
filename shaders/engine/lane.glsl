// A lane and the queue that it has in its registers.
//
// One invocation serves the queues of its own places in the run list, one at a time. Everything
// about that queue is in registers while it runs; switch.glsl moves it to and from memory.

const uint NO_QUEUE = ~0u;

// Room in the run list of the slice, and where each queue is looked at while it is not in registers:
// it can go on when the word at look_va is at least look_value.
shared uint64_t s_look_va[MAX_HW_QUEUES];
shared uint64_t s_look_value[MAX_HW_QUEUES];

// Votes and records of one iteration; who writes them when stands in slice.glsl.
shared uint s_backward;      // signals below the value before, in the slice
shared uint s_end;           // REASON_* once the slice is to end
shared uint s_progress;      // rounds of the lane that took most, of those that stepped; 0: none did
shared uint s_raised;        // records that lanes stored in this iteration
shared uint s_record_room;   // 1 if the record ring has room for one record of every lane
shared uint64_t s_record_base; // running index of the first of them

// Transfers, see transfer.glsl.
shared uint s_claim[2];
shared uint s_job_words;
shared uint s_job_shares; // lanes that have done theirs
shared uint64_t s_job_to;
shared uint64_t s_job_from; // 0: every word becomes the value
shared uint64_t s_job_value;

// The lane that is in a stall, see stall.glsl.
shared uint s_staller;

// The table of this round, see dispatch.glsl. Lanes change it in the execution, by atomics; after a meeting it stands.
shared uint s_table;       // 0: it has no process yet; else the ordinal + 1 of a queue of it, and TABLE_IS_FULL
shared uint s_jobs;        // places of it that were taken, some for nothing
shared uint s_ready;       // jobs that came to something
shared uint s_first;       // the first of these
shared uint s_most;        // jobs that it may have, by the kernels that it has
shared uint s_waits;       // 1: a queue stands at a dispatch that this round does not release
shared uint s_more;        // 1: a lane can do more, in this iteration
shared uint s_alone;       // the kernel + 1 of the job that is alone
shared uint s_alone_x;
shared uint s_alone_y;
shared uint s_alone_z;
// Turns, where jobs keep out others: the least distance, in the run list, from the queue whose turn it was, or else that
// came first, to one that was kept out, which comes first in the next round.
shared uint s_refused;
shared uint s_favours;
shared uint s_together[MAX_KERNELS]; // of its jobs: workgroups, and TOGETHER_JOB for each

// The engine.
EngineControl g_control;
uint64_t g_control_va;
uint64_t g_report_va;
uint64_t g_run_list_va;
uint g_queue_count;
bool g_clock_is_short;
uint g_iterations; // executions of the slice so far; every lane counts them
uint g_turn; // the lane that comes first of those which claim; the same in all

// The lane.
uint l_places;     // queues of this lane
uint l_cursor;     // which of them is in registers
uint l_quantum;    // iterations that it has had
uint64_t l_ticks;  // the whole clock as last read
bool l_stepped;    // the lane took a step in this iteration
uint l_rounds;     // whole rounds that it has had in this iteration, before the one it left in
uint l_favours;    // its queue whose turn it is to dispatch first, as its ordinal + 1; 0: none is
bool l_holding;    // it can do no more in this iteration
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
uint64_t q_queued_log_va; // 0: none
uint q_queued_log_entries;

// What its state says.
uint64_t q_sequence;
uint64_t q_read;
uint64_t q_write; // last write index that was seen and can be
uint64_t q_wait_number;
uint64_t q_signal_number;
uint64_t q_wait_log_index;
uint64_t q_signal_log_index;
uint64_t q_queued_log_index;
uint64_t q_observed;
uint64_t q_progress_value;
uint64_t q_transferred; // what is done of the head: bytes of a transfer, passes of a stall, DISPATCH_RELEASED
uint64_t q_stall_abort; // what ABORT was when it went into the stall at the head, + 1; 0: it did not
uint q_status;
uint q_fault;
bool q_stands; // it stands at a dispatch that goes or waits: nothing more is done for it in this round

// The packet at its head, copied once: what is checked is what is executed (HQ-04).
bool p_fetched;
uint p_handle_fault; // its handle names no open fence
uint64_t p_control;
uint64_t p_log_number;
uint64_t p_value;

// Handles resolved last, one for waits and one for signals; the progress fence is always known.
// A shadow is read once an iteration: it changes only while the lanes adopt, and when another lane
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

// Whether the slice has the kernel of the dispatch that the lane prepared.
bool d_is_here;

// What the lane raised in this iteration: at most RAISES, then it holds.
const uint RAISES = 2u;
uint i_raised;
bool i_faults[RAISES];
uint64_t i_fence_entry[RAISES];
uint64_t i_value[RAISES];
uint64_t i_log_number[RAISES];
