// Cross-adapter doorbells (XA-10): a signal here wakes who waits on another adapter, and the other way round.
//
// Fences that have one are signalled by a ring besides: the lane stores CurrentValue, takes the next number of the engine's
// line, a ring of words in a page that all adapters map, and stores number and fence to that word. Who hears reads the word
// that is the next one of each line, a line a lane, in every round. A queue that stands at a wait for such a fence is
// closed: nobody looks at its fence until a ring has named it. So of many queues that wait only those are looked at for
// which something has come.
//
// Why no wake-up is lost: who signals stores CurrentValue and then the word, who hears reads the word and then
// CurrentValue (release and acquire, PUBLISH and OBSERVE). A number is one lane's, and words are read in the order of the
// numbers, whichever is stored first. Between executions the line says up to where all are stored: a word that is not there
// then was stored over, by a later number or by one that came late, and all queues are opened. Who finds a number of the
// next lap opens all queues too, and hears none of those before it: numbers are taken by acquire and release, so he sees the
// values of all of these, though their words come late. A queue is closed only by a
// look of this slice, and the slice has read before it up to where each line stood; what that look did not see was stored
// after it, and rings after it. A ring opens all queues of its fence, wherever they are kept.
//
// Only the queues are opened that wait for the fence which was rung for. Within a workgroup what was rung for stands by
// name, each at one of some places; who finds another's name there leaves the word, and reads it again in the next
// execution. In each the places are others, so that no two fences meet for long; but of many that are rung for at once
// fewer are heard in an execution than there are places.
//
// That a running shader sees at all what another device stores is practice, as it is for CurrentValue itself. The
// backstop: each slice, and each of its rounds, begins with all queues open; so what is stored without a ring, by commands
// of the user's own, is seen by the next slice at the latest.

// The fences that were rung for, each by its mark at its place (place_of), by the parity of the execution. Put there in
// it, by all lanes; read in it and as the next one begins; forgotten between that one and the one after.
const uint MOST_RUNG_PLACES = 64u;
shared uint s_rung[2u * MOST_RUNG_PLACES];
// Not 0: whatever was rung for. Likewise, but read as the next one begins alone.
shared uint s_all_rung[2];
// Lines that anybody rings; by lane 0, between executions.
shared uint s_lines;
// Numbers of the own line that were taken.
shared uint s_taken;
// By line: the last number that was heard. Each is one lane's.
shared uint s_heard[CROSS_DOORBELL_LINES];
// A queue was closed before the execution. Joined in it, as it begins, by all lanes; taken by lane 0 after it.
shared uint s_awaited;

uint64_t g_doorbells_va; // the page
CrossDoorbellLine g_own_line;
uint l_line;      // the line that the lane reads next
uint k_published; // of lane 0: how many numbers the line says were taken
uint64_t k_awaited_window; // of lane 0: ticks without a step after which a slice is idle that has a closed queue

CrossDoorbellLine line_of(uint line) {
    return CrossDoorbellLine(g_doorbells_va + CROSS_DOORBELL_FIRST_LINE + uint64_t(line) * CROSS_DOORBELL_LINE_BYTES);
}

// After CurrentValue was stored.
void ring(uint doorbell) {
    // Who reads the word of a later number sees what was stored before this one was taken.
    uint number = atomicAdd(s_taken, 1u, gl_ScopeWorkgroup, gl_StorageSemanticsShared | gl_StorageSemanticsBuffer,
                            gl_SemanticsAcquireRelease) + 1u;
    PUBLISH(g_own_line.words[number % CROSS_DOORBELL_PLACES], (uint64_t(number) << 32) | uint64_t(doorbell - 1u));
}

// As a slice or a round begins, before any look.
void begin_hearing() {
    g_doorbells_va = PEEK(g_control.cross_doorbells_va);
    g_own_line = line_of(uint(PEEK(g_control.cross_doorbell_line)));
    for (uint line = gl_LocalInvocationID.x; line < CROSS_DOORBELL_LINES; line += gl_WorkGroupSize.x) {
        s_heard[line] = uint(OBSERVE(line_of(line).taken));
    }
    l_line = gl_LocalInvocationID.x;
    if (gl_LocalInvocationID.x == 0u) {
        k_published = uint(PEEK(g_own_line.taken));
        s_taken = k_published;
        k_awaited_window = PEEK(g_control.cross_doorbell_window);
        s_awaited = 0u;
    }
}

// In s_closed: it was rung for, and is looked at.
const uint RUNG_FOR = 0x80000000u;

bool is_closed(uint ordinal) {
    return s_closed[ordinal] != 0u && (s_closed[ordinal] & RUNG_FOR) == 0u;
}

// What it was rung for is not what it waits for: the look came after the ring.
void close_again(uint ordinal) {
    s_closed[ordinal] &= ~RUNG_FOR;
}

// By lane 0, between executions: ticks without a step after which the slice is idle, at least so many. As long as a queue
// waits for another adapter an engine that stays costs less than the OS there and here, which would have to bring it back;
// and none stays for nothing. (In later rounds of a slice that dispatches, which begin with all queues open, those that are
// not in registers do not count.)
uint64_t take_window(uint64_t least) {
    bool awaits = s_awaited != 0u;
    s_awaited = 0u;
    return awaits ? max(least, k_awaited_window) : least;
}

// By lane 0, behind executions: all words up to the last number are stored.
void say_what_was_taken() {
    if (s_taken != k_published) {
        k_published = s_taken;
        PUBLISH(g_own_line.taken, uint64_t(k_published));
    }
}

// By lane 0, between executions, of which `executions` are over.
void prepare_hearing(uint executions) {
    say_what_was_taken();
    s_lines = min(uint(OBSERVE(CrossDoorbells(g_doorbells_va).lines_in_use)), CROSS_DOORBELL_LINES);
    s_all_rung[executions & 1u] = 0u;
}

// Two a lane: no loop forgets them, which a driver may count.
uint rung_places() {
    return min(2u * gl_WorkGroupSize.x, MOST_RUNG_PLACES);
}

// Where the doorbell stands that was rung in an execution.
uint place_of(uint doorbell, uint execution) {
    uint factor = (execution + 1u) * 0x9e3779b9u;
    factor = (factor ^ (factor >> 15)) | 1u;
    return (execution & 1u) * MOST_RUNG_PLACES + ((doorbell * factor) >> 16) % rung_places();
}

// By all lanes, between executions, before the one of this number.
void forget_rings(uint execution) {
    uint of_each_half = rung_places() / 2u;
    if (gl_LocalInvocationID.x < of_each_half) {
        uint place = (execution & 1u) * MOST_RUNG_PLACES + gl_LocalInvocationID.x;
        s_rung[place] = 0u;
        s_rung[place + of_each_half] = 0u;
    }
}

// Reads the next word of a line; lanes that are fewer than lines take turns.
void hear() {
    if (l_line < s_lines) {
        uint next = s_heard[l_line] + 1u;
        uint64_t word = OBSERVE(line_of(l_line).words[next % CROSS_DOORBELL_PLACES]);
        // Modulo 2^32, with what was there a lap before below.
        uint ahead = uint(word >> 32) - next;
        if (ahead < 0x80000000u) {
            bool is_heard = true;
            if (ahead == 0u && uint(word) != CROSS_DOORBELL_ALL) {
                uint doorbell = uint(word) + 1u;
                uint stood = atomicCompSwap(s_rung[place_of(doorbell, g_iterations)], 0u, doorbell);
                is_heard = stood == 0u || stood == doorbell;
            } else {
                atomicOr(s_all_rung[g_iterations & 1u], 1u);
            }
            if (is_heard) {
                s_heard[l_line] = uint(word >> 32);
            }
        }
    }
    l_line += gl_WorkGroupSize.x;
    l_line = l_line < s_lines ? l_line : gl_LocalInvocationID.x;
}

// Whether a doorbell was rung by its name in the execution.
bool is_rung(uint doorbell, uint execution) {
    return atomicLoad(s_rung[place_of(doorbell, execution)], gl_ScopeWorkgroup, 0, gl_SemanticsRelaxed) == doorbell;
}

// As an execution begins: whether the next word of the line that the lane reads was stored over.
void find_lost_word() {
    if (l_line < s_lines) {
        uint next = s_heard[l_line] + 1u;
        uint said = uint(OBSERVE(line_of(l_line).taken));
        uint ahead = uint(OBSERVE(line_of(l_line).words[next % CROSS_DOORBELL_PLACES]) >> 32) - next;
        if (said - next < 0x80000000u && ahead >= 0x80000000u) {
            s_heard[l_line] = said;
            atomicOr(s_all_rung[g_iterations & 1u], 1u);
        }
    }
}

// As an execution begins: opens the queues for which something came in the one before.
void open_rung_queues() {
    find_lost_word();
    if (g_iterations != 0u) {
        uint before = g_iterations - 1u;
        bool all = atomicLoad(s_all_rung[before & 1u], gl_ScopeWorkgroup, 0, gl_SemanticsRelaxed) != 0u;
        // Whoever goes on now steps; who was rung for in vain still waits.
        bool awaits = q_closed != 0u;
        if (q_closed != 0u && (all || is_rung(q_closed, before))) {
            q_closed = 0u;
        }
        for (uint place = 0u; place < l_places; ++place) {
            uint ordinal = ordinal_of(place);
            awaits = awaits || s_closed[ordinal] != 0u;
            if (is_closed(ordinal) && (all || is_rung(s_closed[ordinal], before))) {
                s_closed[ordinal] |= RUNG_FOR;
            }
        }
        if (awaits) {
            atomicOr(s_awaited, 1u);
        }
    }
}

// In each round of a lane. True if it has nothing to step: its queue is closed, or it has none; then it hears for others.
bool only_hears() {
    hear();
    if (q_closed != 0u && is_rung(q_closed, g_iterations)) {
        q_closed = 0u;
    }
    return has_nothing_to_step() || q_closed != 0u;
}
