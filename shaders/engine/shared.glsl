// Words of the engine's workgroup.

// Room in the run list of the slice, and where each queue is looked at while it is not in registers:
// it can go on when the word at look_va is at least look_value.
shared uint64_t s_look_va[MAX_HW_QUEUES];
shared uint64_t s_look_value[MAX_HW_QUEUES];
// And there only when this is 0, or has RUNG_FOR; else it is one more than the index of the doorbell that makes it so, see
// cross_doorbell.glsl.
shared uint s_closed[MAX_HW_QUEUES];

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

// Turns, where jobs of a table keep out others: the least distance, in the run list, from the queue whose turn it was, or
// else that came first, to one that was kept out, which comes first in the next round.
shared uint s_refused;
shared uint s_favours;
shared uint s_table;       // 0: it has no process yet; else the ordinal + 1 of a queue of it, and TABLE_IS_FULL
shared uint s_waits;       // 1: a queue stands at a dispatch that this round does not release
shared uint s_more;        // 1: a lane can do more, in this iteration
