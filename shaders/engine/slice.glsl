// The slice: adopt | execute | adopt, until the lanes vote for an end.
//
// Lane 0 alone does the control part, between the meeting that ends an execution and the one that
// begins the next: publish the records that lanes stored, adopt posts, vote. The shared words obey
// these turns: s_end, s_record_base and s_record_room are written in the control part only; s_raised,
// s_progress and s_backward are changed in the execution only, atomically, and reset in the control part.

// Posts taken in one control part: as many as its execution can cause, or the mailbox would fill while
// waiters come and go on many fences, and every fence be looked at again and again. A raise is
// answered by one post, and the next waiter is another; 16 of 8 lanes cause 32.
const uint ADOPTIONS = 32u;

// What lane 0 remembers between control parts.
uint64_t k_record_write;
uint64_t k_record_read;
uint64_t k_rescan;       // fence slot at which a rescan stands
uint64_t k_collapsed;
uint64_t k_backward;
uint64_t k_last_step;    // ticks of the last step of any lane
uint64_t k_stayed;       // ticks that the slices before stayed for a ring, without a step since
uint64_t k_idle_window;  // ticks without a step after which a slice is idle
uint64_t k_window;       // the same, or none in a slice that only looks
uint k_idle_iterations;
uint k_parts;            // parts of transfers
uint k_held_back;        // executions for which a dispatch was ready and other queues went on
uint64_t k_before_passes; // of the rounds before
uint64_t k_before_iterations;
uint k_answers;          // steps that came after a look that had found nothing
uint k_passes;           // loop passes so far, at most: see vote
bool k_raised;           // a record was published, or lost
bool k_kept_back;        // the slice before had a table ready that it did not release
bool k_interrupts;       // which ends the slice
uint k_most_places;      // queues of the lane that has most
uint k_fixed_passes;     // of an iteration, besides its rounds and adoptions
uint64_t k_pass_budget;

bool record_ring_has(uint64_t records) {
    if (k_record_write + records - k_record_read > RECORD_RING_CAPACITY) {
        k_record_read = OBSERVE(g_control.record_read);
    }
    // A read index that cannot be is taken for a full ring.
    return k_record_write - k_record_read + records <= RECORD_RING_CAPACITY;
}

// In the first control part of a round: takes what signals of kernels raised before the lanes met. True if any did; one
// that had no room takes all with it.
bool take_what_kernels_raised(inout bool lost) {
    DispatchRound round = DispatchRound(g_dispatch_va);
    uint64_t raised = PEEK(round.raised);
    k_passes += uint(PEEK(round.logged));
    lost = (raised >> 32) != 0ul;
    k_record_write += lost ? 0ul : raised;
    PUT(round.raised, 0ul);
    PUT(round.logged, 0ul);
    return raised != 0ul;
}

// Publishes what the lanes raised; then adopts, which may raise in turn. True if anything was.
bool publish_and_adopt() {
    EngineReport report = EngineReport(g_report_va);
    uint64_t published = k_record_write;
    bool lost = false;
    if (s_raised != 0u) {
        lost = s_record_room == 0u;
        k_record_write += lost ? 0ul : uint64_t(s_raised);
    }
    bool raised = s_raised != 0u;
    s_raised = 0u;
    if (DISPATCHES && g_iterations == 0u && push.round != 0ul) {
        raised = take_what_kernels_raised(lost);
    }

    uint64_t written = OBSERVE(g_control.mailbox_write);
    uint64_t rescan = OBSERVE(g_control.rescan);
    if (rescan != k_rescan_seen && k_rescan_end == 0ul) {
        k_rescan = 0ul;
        k_rescan_end = PEEK(g_control.fence_slots);
        k_rescan_seen = rescan;
        if (k_rescan_end == 0ul) {
            PUBLISH(report.rescan_seen, k_rescan_seen);
        }
    }
    uint64_t taken = k_mailbox_read;
    for (uint i = 0u; i < ADOPTIONS; ++i) {
        bool scans = k_rescan_end != 0ul;
        if (!scans && k_mailbox_read == written) {
            break;
        }
        uint64_t slot = k_rescan;
        if (!scans) {
            slot = PEEK(Word(g_control_va + CONTROL_MAILBOX
                             + (k_mailbox_read % MAILBOX_CAPACITY) * 8ul).value);
        }
        uint64_t fence_id = 0ul;
        uint64_t value = 0ul;
        if (adopt(uint(slot), fence_id, value)) {
            raised = true;
            if (record_ring_has(1ul)) {
                store_record(k_record_write, fence_id, value, RECORD_NO_QUEUE, 0ul);
                k_record_write += 1ul;
            } else {
                lost = true;
            }
        }
        if (scans) {
            k_rescan += 1ul;
            if (k_rescan >= k_rescan_end) {
                k_rescan_end = 0ul;
                PUBLISH(report.rescan_seen, k_rescan_seen);
            }
        } else {
            k_mailbox_read += 1ul;
        }
        k_passes += 1u;
    }
    if (lost) {
        k_collapsed += 1ul;
        PUBLISH(report.collapsed, k_collapsed);
    }
    if (k_record_write != published) {
        PUBLISH(report.record_write, k_record_write);
    }
    if (k_mailbox_read != taken) {
        PUBLISH(report.mailbox_read, k_mailbox_read);
    }
    uint64_t most = uint64_t(gl_WorkGroupSize.x * RAISES);
    s_record_room = record_ring_has(most) ? 1u : 0u;
    s_record_base = k_record_write;
    return raised;
}

// Votes: the reason why the slice ends now, or REASON_CUT for none.
//
// Passes are counted as a driver that cuts loops may count them, which takes every lane for the
// slowest: the rounds of the lane that took most and stepped; one that did not step left after
// PATIENCE looks.
//
// A slice that ends as idle has looked at every queue since its last step, and none could go on:
// the OS parks the engine by that alone. So the end of a budget is idle too where that holds, and
// a budget ends no slice that has not had the time to find out. Where it stays for another adapter's
// ring the next slice goes on staying, and counts on, so that none stays longer for being cut in slices.
uint vote(bool raised) {
    uint64_t ticks = now();
    k_passes += k_fixed_passes + max(s_progress, PATIENCE) + (DOORBELLS ? k_most_places + 1u : 0u);
    bool stepped = s_progress != 0u;
    if (stepped) {
        // The vote before the first execution counts as one.
        k_answers += k_idle_iterations > 1u ? 1u : 0u;
        k_last_step = ticks;
        k_idle_iterations = 0u;
        k_stayed = 0ul;
        k_window = k_idle_window;
    } else {
        k_idle_iterations += 1u;
    }
    s_progress = 0u;
    uint whole_look = k_most_places + 1u;
    bool stands_at_transfer = !TRANSFERS && claim_made() != NO_CLAIM;
    s_claim[g_iterations & 1u] = NO_CLAIM;
    bool stands_at_dispatch = s_ready != 0u || s_waits != 0u;
    if (stands_at_dispatch) {
        k_held_back += 1u;
        k_passes += DISPATCHES ? DISPATCH_PASSES : 0u;
    }
    // Once, at the first end that comes, for a table that another slice has kept back: or queues that signal for
    // waiters again and again would starve those that dispatch. The round behind it ends then, and what was raised is
    // published already.
    bool first = k_kept_back && s_ready != 0u;
    // What other queues can do before it, they have done; or some go on for ever.
    bool held_back = DISPATCHES && !first && s_more != 0u
                     && k_held_back <= 2u * whole_look + DISPATCH_PATIENCE;
    s_more = 0u;
    // A lane may stay with a queue that stands there, and look at no other.
    bool found_nothing = k_idle_iterations > whole_look && !stands_at_dispatch;
    bool spent = uint64_t(k_passes) >= k_pass_budget || ticks - k_began >= k_time_budget;
    uint64_t window = DOORBELLS ? take_window(k_window) : k_window;
    bool stays = DOORBELLS && window > k_window;
    uint64_t stood = ticks - k_last_step + k_stayed;
    k_raised = k_raised || raised;
    uint reason = REASON_CUT;
    bool interrupts = k_raised && k_interrupts;
    bool is_asked = OBSERVE(g_control.request) != k_request;
    if (g_iterations == 0u) {
        // Every slice executes at least once: one request after another would starve the queues.
    } else if (interrupts && !first) {
        reason = REASON_INTERRUPT;
    } else if (is_asked && !first) {
        reason = REASON_REQUEST;
    } else if (stands_at_transfer) {
        reason = REASON_TRANSFER;
    } else if (stands_at_dispatch && !held_back && !(DISPATCHES && spent && push.round != 0ul)) {
        reason = REASON_DISPATCH;
    } else if (found_nothing && (stood >= window || (spent && !stays))) {
        reason = REASON_IDLE;
    } else if (spent && g_iterations > whole_look) {
        reason = REASON_BUDGET;
    }
    if (reason != REASON_CUT) {
        k_stayed = reason == REASON_BUDGET && found_nothing ? stood : 0ul;
    }
    if (DISPATCHES && reason == REASON_CUT && g_iterations == 1u) {
        forget_who_let_come_first();
    }
    return reason;
}

// A round counts on from the ones before: the OS sees one slice.
void go_on_counting() {
    SliceResult result = SliceResult(g_report_va + REPORT_SLICE_RESULTS + push.slot * SLICE_RESULT_BYTES);
    k_before_passes = PEEK(result.passes);
    k_before_iterations = PEEK(result.iterations);
    k_answers = uint(PEEK(result.answers));
    uint64_t done = PEEK(result.done);
    k_parts = uint(done);
    // With those that epilogues have made since, but for a table that is given up.
    DispatchRound round = DispatchRound(g_dispatch_va);
    bool scheduled = PEEK(round.scheduling) != SCHEDULING_NONE;
    k_dispatches = uint(done >> 32) + (scheduled ? uint(PEEK(round.scheduled)) : 0u)
                   - (has_run(round) ? 0u : PEEK(round.ready));
    k_schedules_itself = (PEEK(result.stands_at) & SCHEDULES_ITSELF) != 0ul;
    k_began = PEEK(result.begin_ticks);
}

void run_slice() {
    uint lane = gl_LocalInvocationID.x;
    bool leads = lane == 0u;
    g_control_va = push.control_va;
    g_control = EngineControl(g_control_va);
    g_dispatch_va = push.dispatch_va;
    g_version = push.version;
    g_in_slice = push.in_slice;
    g_report_va = PEEK(g_control.report_va);
    g_clock_is_short = PEEK(g_control.clock_bits) == 32ul;
    EngineReport report = EngineReport(g_report_va);
    SliceArgs args = SliceArgs(g_control_va + CONTROL_SLICE_ARGS + push.slot * SLICE_ARGS_BYTES);
    g_run_list_va = g_control_va + CONTROL_RUN_LISTS + push.slot * uint64_t(MAX_HW_QUEUES) * 8ul;
    g_queue_count = min(uint(PEEK(args.queue_count)), MAX_HW_QUEUES);
    // The OS may have read its clock long before the slice in flight ended, or the round before this one.
    uint64_t slot_before = DISPATCHES && push.round != 0ul ? push.slot : push.slot + SLICE_SLOTS - 1ul;
    SliceResult before = SliceResult(g_report_va + REPORT_SLICE_RESULTS
                                     + (slot_before % SLICE_SLOTS) * SLICE_RESULT_BYTES);
    l_ticks = max(PEEK(args.base_ticks), PEEK(before.end_ticks));
    if (DISPATCHES && push.round != 0ul) {
        // Epilogues have read it since.
        l_ticks = max(l_ticks, PEEK(DispatchRound(g_dispatch_va).released_at));
    }
    uint64_t began = now();
    l_began = began;
    if (DOORBELLS) {
        begin_hearing();
        if (DISPATCHES) {
            // Signals of kernels ring as the round begins.
            meet();
        }
    }

    // A queue that is not in registers is looked at once in any case: its handle may have been
    // closed since, which its look does not show.
    l_places = lane < g_queue_count
             ? (g_queue_count - lane + gl_WorkGroupSize.x - 1u) / gl_WorkGroupSize.x : 0u;
    uint most_places = (g_queue_count + gl_WorkGroupSize.x - 1u) / gl_WorkGroupSize.x;
    l_favours = 0u;
    uint64_t favoured_va = DISPATCHES ? PEEK(DispatchRound(g_dispatch_va).favours_va) : 0ul;
    for (uint place = 0u; place < l_places; ++place) {
        uint ordinal = ordinal_of(place);
        if (DOORBELLS) {
            s_closed[ordinal] = 0u;
        }
        if (DISPATCHES && push.round != 0ul) {
            s_look_va[ordinal] = PEEK(look_at(ordinal).va);
            s_look_value[ordinal] = PEEK(look_at(ordinal).value);
        } else {
            uint64_t at = PEEK(Word(g_run_list_va + uint64_t(ordinal) * 8ul).value);
            s_look_va[ordinal] = PEEK(QueueDescriptor(at).ring_control_va);
            s_look_value[ordinal] = 0ul;
            if (DISPATCHES) {
                l_favours = at == favoured_va ? ordinal + 1u : l_favours;
                PUT(look_at(ordinal).va, s_look_va[ordinal]);
                PUT(look_at(ordinal).value, 0ul);
            }
        }
    }
    l_backward = 0u;
    if (DISPATCHES) {
        begin_round();
        // A queue is loaded by another lane than the one that marks its dispatch as done; and whether it is done its
        // kernel's record says, until all are marked.
        meet();
        learn_of_kernels(began, PEEK(args.time_budget));
    }
    // Slices begin at the lane's queues by turns, or one that ends every slice starved the others.
    l_cursor = l_places > 1u ? uint(PEEK(args.slice) + (DISPATCHES ? push.round : 0ul)) % l_places : 0u;
    i_raised = 0u;
    q_ordinal = NO_QUEUE;
    p_fetched = false;
    c_wait_handle = 0u;
    c_signal_handle = 0u;
    // A round looks at those of many first that can go on, or whose turn it is.
    bool loads = l_places == 1u || (l_places != 0u && !(DISPATCHES && push.round != 0ul));
    if (DISPATCHES) {
        loads = begin_with_favoured() || loads;
    }
    if (loads) {
        load_queue(ordinal_of(l_cursor));
    }
    g_iterations = 0u;
    uint64_t round = DISPATCHES ? push.round : 0ul;
    d_slice = PEEK(args.slice);
    g_turn = uint(PEEK(args.slice) + round) % gl_WorkGroupSize.x;
    if (leads) {
        k_record_write = PEEK(report.record_write);
        k_record_read = PEEK(g_control.record_read);
        k_mailbox_read = PEEK(report.mailbox_read);
        k_rescan_seen = PEEK(report.rescan_seen);
        k_collapsed = PEEK(report.collapsed);
        k_backward = PEEK(report.backward_signals);
        k_rescan = 0ul;
        k_rescan_end = 0ul;
        k_last_step = began;
        k_stayed = PEEK(report.stayed);
        k_idle_iterations = 0u;
        k_answers = 0u;
        k_parts = 0u;
        k_dispatches = 0u;
        k_schedules_itself = false;
        k_held_back = 0u;
        k_before_passes = 0ul;
        k_before_iterations = 0ul;
        k_passes = most_places + (DISPATCHES ? ROUND_PASSES : 0u) + (DOORBELLS ? CROSS_DOORBELL_LINES + 1u : 0u);
        k_raised = DISPATCHES && push.round != 0ul
                   && PEEK(DispatchRound(g_dispatch_va).interrupts) != 0ul;
        k_kept_back = DISPATCHES && PEEK(DispatchRound(g_dispatch_va).kept_back) != 0ul;
        k_most_places = most_places;
        // The slice's own, the choice of a queue, the records, the entry of the adoptions.
        k_fixed_passes = 1u + (DISPATCHES ? 2u : 1u) * most_places + RAISES + 1u + (STALLS ? 1u : 0u);
        k_began = began;
        k_request = PEEK(args.request);
        k_interrupts = PEEK(args.delivery) != DELIVERY_POLLED;
        k_pass_budget = PEEK(args.pass_budget);
        k_time_budget = PEEK(args.time_budget);
        // The one before found nothing to do: look once and leave, but stay after a step, since what
        // came once comes again, and a running engine is quicker than the way to start one; and where another
        // adapter may ring (take_window).
        k_idle_window = PEEK(args.idle_window);
        k_window = PEEK(report.last_reason) == uint64_t(REASON_IDLE) ? 0ul : k_idle_window;
        s_raised = 0u;
        s_progress = 0u;
        s_backward = 0u;
        s_end = REASON_CUT;
        s_claim[1] = NO_CLAIM;
        s_waits = 0u;
        s_more = 0u;
        if (!DISPATCHES) {
            s_ready = 0u;
        }
        if (STALLS) {
            begin_stalls();
        }
        if (DISPATCHES && push.round != 0ul) {
            go_on_counting();
        }
    }

    uint reason = REASON_CUT;
    for (;;) {
        if (leads) {
            bool raised = publish_and_adopt();
            if (DOORBELLS) {
                prepare_hearing(g_iterations);
            }
            s_end = vote(raised);
        }
        if (TRANSFERS && g_iterations != 0u) {
            prepare_part();
        }
        if (DOORBELLS) {
            forget_rings(g_iterations);
        }
        meet();
        reason = s_end;
        if (DISPATCHES && leads && g_iterations == 0u) {
            forget_names();
        }
        l_stepped = false;
        if (TRANSFERS) {
            // Whatever ends the slice: where every slice ended to interrupt, a transfer would never
            // have a part of one.
            uint passes = do_part();
            k_passes += passes;
            k_parts += passes != 0u ? 1u : 0u;
        }
        if (reason != REASON_CUT) {
            break;
        }
        if (DOORBELLS) {
            open_rung_queues();
        }
        choose_queue();
        step_rounds();
        if (STALLS) {
            do_stall();
        }
        claim_transfer();
        stand_at_dispatch();
        if (DISPATCHES) {
            tell_of_more();
        }
        raise_what_was_noted();
        if (l_stepped) {
            atomicMax(s_progress, l_rounds + 1u);
        }
        if (l_backward != 0u) {
            atomicAdd(s_backward, l_backward);
            l_backward = 0u;
        }
        g_iterations += 1u;
        meet();
    }

    save_queue();
    if (DISPATCHES) {
        end_round(reason, leads && k_raised, leads && k_raised && k_interrupts);
    }
    if (leads) {
        // A loop that the driver cut left records unpublished: the next slice's control part
        // cannot know them, so the OS is told to look at every waiter.
        if (s_raised != 0u) {
            PUBLISH(report.collapsed, k_collapsed + 1ul);
        }
        if (DOORBELLS) {
            // Nor does it know which numbers were taken, and would take them again.
            say_what_was_taken();
        }
        PUT(report.backward_signals, k_backward + uint64_t(s_backward));
        SliceResult result = SliceResult(g_report_va + REPORT_SLICE_RESULTS
                                         + push.slot * SLICE_RESULT_BYTES);
        PUT(result.passes, k_before_passes + uint64_t(k_passes));
        PUT(result.iterations, k_before_iterations + uint64_t(g_iterations));
        PUT(result.begin_ticks, k_began);
        PUT(result.end_ticks, now());
        PUT(result.answers, uint64_t(k_answers));
        PUT(result.done, uint64_t(k_parts) | uint64_t(k_dispatches) << 32);
        PUT(result.stands_at, (claim_made() != NO_CLAIM ? STANDS_AT_TRANSFER : 0ul)
                              | (s_ready != 0u || s_waits != 0u ? STANDS_AT_DISPATCH : 0ul)
                              | (k_schedules_itself ? SCHEDULES_ITSELF : 0ul));
        PUT(report.stayed, k_stayed);
        PUT(report.last_reason, uint64_t(reason));
        PUBLISH(result.reason, uint64_t(reason));
    }
}
