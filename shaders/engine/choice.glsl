// Which of its queues a lane of the engine has in its registers.

uint ordinal_of(uint place) {
    return place * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}

void remember_look(uint64_t va, uint64_t value) {
    // Of one that stands nothing more comes in this round: a word of the OS's that is never so great.
    s_look_va[q_ordinal] = q_stands ? q_descriptor_va : va;
    s_look_value[q_ordinal] = q_stands ? ~0ul : value;
    if (DOORBELLS) {
        s_closed[q_ordinal] = q_closed;
    }
}

// Of a queue that is not in registers (cross_doorbell.glsl).
bool is_closed(uint ordinal);
void close_again(uint ordinal);

// The lane's next queue, besides the one in registers, that can go on.
bool find_other(out uint place) {
    place = l_cursor;
    uint others = q_ordinal != NO_QUEUE ? l_places - 1u : l_places;
    for (uint i = 0u; i < others; ++i) {
        place = place + 1u < l_places ? place + 1u : 0u;
        uint ordinal = ordinal_of(place);
        if (DOORBELLS && is_closed(ordinal)) {
            continue;
        }
        if (OBSERVE(Word(s_look_va[ordinal]).value) >= s_look_value[ordinal]) {
            return true;
        }
        if (DOORBELLS) {
            close_again(ordinal);
        }
    }
    return false;
}

// At the end of an execution: tells whether the lane can do more, beside what stands at dispatches.
void tell_of_more() {
    bool more = q_ordinal != NO_QUEUE && q_status == STATUS_READY && !q_stands;
    uint place;
    if (l_places > 1u && !more) {
        more = find_other(place);
    }
    if (more) {
        s_more = 1u;
    }
}

// Chooses the queue that runs in this iteration: the one in registers while it can go on and has
// not had its quantum, else the lane's next one that can.
void choose_queue() {
    bool stays = q_ordinal != NO_QUEUE && q_status == STATUS_READY && !q_stands && l_quantum < QUANTUM;
    l_quantum += 1u;
    if (MANY_QUEUES && l_places > 1u && !stays) {
        uint place;
        if (find_other(place)) {
            save_queue();
            load_queue(ordinal_of(place));
            l_cursor = place;
            if (DOORBELLS) {
                s_closed[q_ordinal] = 0u;
            }
        }
    }
}
