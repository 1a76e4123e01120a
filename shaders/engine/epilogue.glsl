// The epilogue of a kernel that schedules itself: the engine's step, done by the last workgroup of a table.
//
// Each workgroup, when all its invocations have ended, counts itself down from the table's. The one that finds itself
// the last marks the table's dispatches as done, as the engine's round would (dispatch.glsl). Then the lanes, which are
// the invocations of its first subgroup, serve the engine's queues as the engine's lanes do: those that can go on execute
// their packets up to their next dispatch, and these make up the next table, which runs behind the next barrier of the
// slice's command buffer. So a dependency between dispatches costs one dispatch and not two. A queue is one lane's, so that
// none is claimed; what lanes agree on, by compare-exchange, is the kernel of the next table (joins_table).
//
// The lanes are of one subgroup: the others of the workgroup have ended by then. On lavapipe, whose lanes are those of the
// CPU's vectors and go in step, they have no barriers (ORDERS): there a barrier, in version 22 one of memory too, is one
// of the whole workgroup, and a subgroup that waits at one when another has ended never comes back. That lanes in step
// load and store in their order is practice, of x86-64 for those who look from elsewhere.
//
// What runs next stands in another of a kernel's records: where several kernels stand behind each other in the command
// buffer, one that this table did not run may still have to read that it does not.
//
// Left to the engine, which comes at its next place in the command buffer:
//     soon   a dispatch that does not fit in: of another kernel or process, alone, refused; a transfer. Tables go on.
//     now    a signal that raises, stores backwards or faults; signals of the kernel itself; a post in the mailbox, a
//            request, the end of the slice's time; or nothing that could go on. The next table is the last one.
// Nothing of these is begun here, so the engine finds all as after its own round.
//
// The engine does not run beside it, and adopts nothing meanwhile: a shadow is what it was in the engine's last round. A
// signal that is stored here comes before the adoption that follows, which reads its CurrentValue (NF-07).
//
// Loops have their condition at the end. A compiler that executes what is masked, as lavapipe 22's, would make one pass
// more, for nothing, of each that has it at the beginning, and a pass here is hundreds of memory operations.
//
// A driver that cuts loops may cut these: what a loop has not come to is the engine's. Whether the table has run is one
// word, stored first; where marks are missing the engine makes them.
//
// What the kernel stored is seen by the next table through the barrier between them. Who learns of a signal otherwise,
// as another engine or the CPU, sees what was stored through `nonprivate` references; and so does this epilogue, where it
// is counts or parameters of packets that follow.

// Queues of an invocation at most: bits of l_stood.
const uint MOST_PLACES = 64u;
// Times that an invocation takes each of its queues: a signal lets go others, and these signal in turn.
const uint EPILOGUE_PASSES = 4u;

const uint ENGINE_SOON = 1u;
const uint ENGINE_NOW = 2u;

shared uint e_scheduling; // SCHEDULING_* of the workgroup that is the last, else SCHEDULING_NONE
shared uint e_marked;     // places of the table whose jobs are marked as done, or came to nothing
shared uint e_engine;     // what the engine is asked for: 0, or ENGINE_*
shared uint e_votes;      // lanes that have said yes, so far
shared uint e_lanes;      // invocations of the first subgroup

DispatchRound e_round;
uint64_t e_handle_directory_va; // the table's process
uint64_t l_stood;               // by place: nothing more comes of the queue in this epilogue
uint l_votes;                   // e_votes when this lane looked last

void remember_look(uint64_t va, uint64_t value) {
    // It is looked at in memory alone.
}

void ring(uint doorbell) {
    // What rings is left to the engine.
}

bool only_hears() {
    return false;
}

void ask_for_engine(uint when) {
    atomicMax(e_engine, when);
}

bool joins_table(bool alone, uint only) {
    bool joins = only != OF_SEVERAL && q_handle_directory_va == e_handle_directory_va;
    if (joins) {
        uint before = atomicCompSwap(s_only, 0u, only);
        joins = before == 0u || before == only;
    }
    return joins;
}

void note_refused() {
    // Whoever is refused asks for the engine, which gives turns.
}

// As begin_round of the engine does, but for a job whose kernel has signalled: false, and it is left to the engine.
bool mark_as_done(DispatchJob job) {
    uint64_t state_va = PEEK(job.state_va);
    if (state_va == 0ul) {
        return true;
    }
    if (PEEK(job.signals) != 0ul) {
        return false;
    }
    uint64_t sequence;
    QueueState newer = newer_state(state_va, sequence);
    PUBLISH(newer.transferred, DISPATCH_RELEASED);
    PUT(job.state_va, 0ul);
    return true;
}

// Whether the OS wants something of the engine, or the slice's time is over.
bool engine_is_wanted() {
    EngineControl control = EngineControl(PEEK(e_round.control_va));
    return OBSERVE(control.request) != PEEK(e_round.request)
           || OBSERVE(control.mailbox_write) != PEEK(e_round.mailbox_read)
           || OBSERVE(control.rescan) != PEEK(e_round.rescan_seen)
           || now() - PEEK(e_round.began) >= PEEK(e_round.time_budget);
}

// What the lanes of the epilogue did before is done for each of them after.
void meet_lanes() {
    ORDERED(controlBarrier(gl_ScopeSubgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared,
                           gl_SemanticsAcquireRelease));
}

// Whether any lane says so; each lane asks as often as the others.
bool anyone(bool says) {
    if (says) {
        atomicAdd(e_votes, 1u);
    }
    meet_lanes();
    uint votes = e_votes;
    meet_lanes();
    bool any = votes != l_votes;
    l_votes = votes;
    return any;
}

// The place, in the lane's, of its next queue that can go on, behind `place` and round about; `places` if none can.
uint find_place(uint place, uint lane, uint lanes, uint places) {
    bool goes;
    uint looks = 0u;
    do {
        place = place + 1u < places ? place + 1u : 0u;
        QueueLook look = look_at(lane + place * lanes);
        goes = (l_stood >> place & 1ul) == 0ul && OBSERVE(Word(PEEK(look.va)).value) >= PEEK(look.value);
        ++looks;
    } while (!goes && looks < places);
    // A driver that has cut the loop ends the turns as well, and the engine comes.
    return goes || looks < places ? place : places;
}

// The queue in registers, as far as a look at its head gets it: whether it or another may get further.
bool step_on() {
    l_stored = false;
    bool may = !l_holding && step_queue();
    return l_stored || (may && !(p_fetched && is_dispatch(uint(p_control) & 0xffu)));
}

// The queue in registers leaves them; true if nothing more comes of it here.
bool end_queue() {
    bool ends = true;
    if (l_for_engine) {
        ask_for_engine(ENGINE_NOW);
    } else if (is_at_dispatch()) {
        if (!prepare_dispatch()) {
            ask_for_engine(ENGINE_SOON);
        }
    } else if (q_status != STATUS_FAULTED && p_fetched && is_transfer(uint(p_control) & 0xffu)) {
        ask_for_engine(ENGINE_SOON);
    } else {
        ends = q_status == STATUS_FAULTED;
    }
    save_queue();
    return ends;
}

// All queues that can go on, and those that these let go: each lane its own, one at a time. While lanes have queues in
// their registers they step until nothing moves, so two queues of two lanes that pass a fence to and fro are loaded and
// saved once. A lane's only queue is loaded whether it can go on or not, since another may let it go; and each lane looks
// again in each turn, since what lets go a queue of one that had none may be the signal of another.
void serve_queues(uint lane, uint lanes) {
    uint most_places = min((g_queue_count + lanes - 1u) / lanes, MOST_PLACES);
    uint places = lane < g_queue_count ? (g_queue_count - 1u - lane) / lanes + 1u : 0u;
    if (places > MOST_PLACES) {
        ask_for_engine(ENGINE_NOW);
        places = MOST_PLACES;
    }
    l_stood = 0ul;
    uint place = places > 1u ? find_place(places, lane, lanes, places) : 0u;
    uint turns = 0u;
    bool goes;
    do {
        bool has = place < places;
        l_holding = true;
        if (has) {
            load_queue(lane + place * lanes);
            l_for_engine = false;
            begin_rounds();
        }
        uint steps = 0u;
        bool moves;
        do {
            moves = anyone(step_on());
            ++steps;
        } while (moves && steps < ROUNDS);
        if (has && end_queue()) {
            l_stood |= 1ul << place;
        }
        if (places != 0u) {
            place = find_place(place, lane, lanes, places);
        }
        ++turns;
        goes = anyone(place < places);
    } while (goes && turns < EPILOGUE_PASSES * most_places);
    if (goes) {
        ask_for_engine(ENGINE_NOW);
    }
}

// By one invocation, last: what runs next.
void end_epilogue() {
    uint turn = PEEK(e_round.turn);
    uint kernel = PEEK(e_round.kernel);
    PUT(record_at(kernel, turn).x, 0u);
    uint engine = e_engine;
    if (s_ready != 0u) {
        uint next = s_only - 1u;
        uint groups = s_together[0] & (TOGETHER_JOB - 1u);
        turn = (turn + 1u) % DISPATCH_DEPTH;
        DispatchRecord record = record_at(next, turn);
        PUT(record.x, groups);
        PUT(record.y, 1u);
        PUT(record.z, 1u);
        PUT(record_of(kernel).jobs, 0u);
        PUT(record_of(next).jobs, s_together[0] / TOGETHER_JOB);
        PUT(e_round.jobs, s_jobs);
        PUT(e_round.kernel, next);
        PUT(e_round.ready, s_ready);
        PUT(e_round.left, uint64_t(groups));
        PUT(e_round.turn, turn);
        PUT(e_round.released_at, l_ticks);
        PUT(e_round.scheduled, PEEK(e_round.scheduled) + uint64_t(s_ready));
        PUT(e_round.ran, 0ul);
        name_job(s_first);
    }
    if (engine != 0u || s_ready == 0u) {
        PUT(e_round.x, 1u);
    }
    if (engine == ENGINE_NOW) {
        PUT(e_round.scheduling, SCHEDULING_ENDS);
    }
}

// By each lane of the last workgroup.
void run_epilogue(uint lane, uint lanes) {
    bool leads = lane == 0u;
    if (leads) {
        PUT(e_round.ran, 1ul);
    }
    uint jobs = min(PEEK(e_round.jobs), MAX_JOBS);
    uint marked = 0u;
    uint i = lane;
    do {
        if (i < jobs) {
            marked += mark_as_done(job_at(i)) ? 1u : 0u;
        }
        i += lanes;
    } while (i < jobs);
    atomicAdd(e_marked, marked);
    l_ticks = PEEK(e_round.released_at);
    g_run_list_va = PEEK(e_round.run_list_va);
    g_queue_count = uint(PEEK(e_round.queue_count));
    g_version = PEEK(e_round.version);
    g_in_slice = PEEK(e_round.in_slice);
    d_slice = PEEK(e_round.slice);
    e_handle_directory_va = PEEK(e_round.handle_directory_va);
    if (leads) {
        uint64_t began = l_ticks;
        g_report_va = PEEK(EngineControl(PEEK(e_round.control_va)).report_va);
        if (e_scheduling != uint(SCHEDULING_ON) || engine_is_wanted()) {
            ask_for_engine(ENGINE_NOW);
        }
        learn_of_kernel(PEEK(e_round.kernel), now() - began, PEEK(e_round.time_budget), uint64_t(jobs));
    }
    meet_lanes();
    bool goes = e_marked == jobs && e_engine == 0u;
    if (leads && e_marked == jobs) {
        forget_names();
    }
    meet_lanes();
    l_votes = 0u;
    if (goes) {
        serve_queues(lane, lanes);
    }
    meet_lanes();
    if (leads) {
        if (e_marked != jobs) {
            ask_for_engine(ENGINE_NOW);
        }
        end_epilogue();
    }
}

// By every invocation of a kernel that schedules itself, after all else.
void end_workgroup(uint64_t job_va) {
    DispatchJob job = DispatchJob(job_va);
    g_dispatch_va = job_va - DISPATCH_JOBS - uint64_t(job.place) * DISPATCH_JOB_BYTES;
    e_round = DispatchRound(g_dispatch_va);
    bool leads = gl_LocalInvocationIndex == 0u;
    if (leads) {
        e_lanes = 0u;
    }
    // What this invocation stored comes before the count, and what the others of the table stored before what follows it.
    make_available();
    meet();
    uint lane = 0u;
    if (gl_SubgroupID == 0u) {
        lane = atomicAdd(e_lanes, 1u);
    }
    if (leads) {
        uint scheduling = uint(PEEK(e_round.scheduling));
        bool is_last = scheduling != uint(SCHEDULING_NONE) && COUNT_DOWN(e_round.left) == 1ul;
        e_scheduling = is_last ? scheduling : uint(SCHEDULING_NONE);
        if (is_last) {
            begin_table();
            s_together[0] = 0u;
            e_marked = 0u;
            e_engine = 0u;
            e_votes = 0u;
        }
    }
    meet();
    if (gl_SubgroupID == 0u && e_scheduling != uint(SCHEDULING_NONE)) {
        ORDERED(make_visible());
        g_clock_is_short = job.clock_bits == 32u;
        run_epilogue(lane, e_lanes);
    }
}
