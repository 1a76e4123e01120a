// The parties of a litmus test: two, which take up one instance after another at about the same time.
//
// Each lane of a party has a partner lane, or the CPU, and tells it how many instances it has done. A party begins an
// instance when the partner is at most `slack` behind it. How far they are apart then, and how long one waits before it
// begins, changes from run to run: so come the many interleavings.
//
// Who finds no partner leaves and says so (GONE), and what was not done counts as not met. So do the passes of the one
// loop that each party has: some drivers end longer loops as if they were done.

#ifndef NF_LITMUS_PARTIES
#define NF_LITMUS_PARTIES

// A whole subgroup, of which PLAYERS take part: lavapipe lets the lanes that a smaller workgroup leaves empty run the
// loop to its bound.
layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint MOST_PASSES = 20000u;
// Which party this dispatch is; of BOTH the workgroups take turns.
const uint BOTH = 2u;
layout(constant_id = 2) const uint ROLE = BOTH;
layout(constant_id = 3) const uint PLAYERS = 1u;
// Nobody is waited for, and nothing told: what the orders cost by themselves.
layout(constant_id = 4) const bool ALONE = false;

// What a run is, written by the CPU before it is submitted. Twin of src/litmus/setup.rs.
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Setup {
    uint64_t generation; // what this run stores
    uint64_t iterations; // of each lane
    uint64_t slack;
    uint64_t most_delay; // passes, a power of two less one
    uint64_t seed;
    uint64_t warm;       // 1: the reader has looked at the data before
    uint64_t cell_mask;  // cells of an array, less one
    uint64_t first_step; // places of cells are permuted, each array in its own way
    uint64_t first_offset;
    uint64_t second_step;
    uint64_t second_offset;
};

layout(push_constant) uniform Push {
    uint64_t setup;
    uint64_t first;       // an array of words, each on a line of its own
    uint64_t second;
    uint64_t results[2];  // of each party: a word an instance
    uint64_t progress[2]; // of each party: a line a lane
    uint64_t control;     // an engine's control block, where one is asked
} push;

const uint64_t LINE_BYTES = 64ul;
const uint64_t GONE = 0xfffffffful;

// Words of a lane's line.
const uint64_t DONE = 0ul;    // high half generation, low half instances done, or GONE
const uint64_t POSTS = 8ul;   // the same of posts, see litmus_buffering.comp
const uint64_t SINK = 16ul;   // what was read for nothing
const uint64_t COUNTS = 24ul; // what a party counts itself

// What a party says of an instance.
const uint64_t SAW_NEW = 1ul;
const uint64_t SAW_OLD = 2ul;

uint64_t l_generation;
uint l_iterations;
uint l_role;
uint l_lane; // among those of all workgroups of its party
uint l_width;
uint64_t l_mine;  // its line
uint64_t l_other; // the partner's
uint64_t l_sink;
uint l_delayed;

void begin_party() {
    Setup setup = Setup(push.setup);
    l_generation = PEEK(setup.generation);
    l_role = ROLE == BOTH ? gl_WorkGroupID.x & 1u : ROLE;
    uint group = ROLE == BOTH ? gl_WorkGroupID.x / 2u : gl_WorkGroupID.x;
    uint groups = ROLE == BOTH ? gl_NumWorkGroups.x / 2u : gl_NumWorkGroups.x;
    bool plays = gl_LocalInvocationIndex < PLAYERS;
    l_lane = group * PLAYERS + min(gl_LocalInvocationIndex, PLAYERS - 1u);
    l_width = groups * PLAYERS;
    l_iterations = plays ? uint(PEEK(setup.iterations)) : 0u;
    l_mine = push.progress[l_role] + uint64_t(l_lane) * LINE_BYTES;
    l_other = push.progress[1u - l_role] + uint64_t(l_lane) * LINE_BYTES;
    l_sink = 0ul;
    l_delayed = 0u;
    if (plays && !ALONE) {
        PUT(Word(l_mine + DONE).value, l_generation << 32);
    }
}

void end_party(uint done) {
    if (gl_LocalInvocationIndex < PLAYERS && !ALONE) {
        PUT(Word(l_mine + SINK).value, l_sink);
        if (done < l_iterations) {
            PUT(Word(l_mine + DONE).value, l_generation << 32 | GONE);
        }
    }
}

// The number of the lane's instance.
uint instance(uint i) {
    return i * l_width + l_lane;
}

uint64_t first_of(uint n) {
    Setup setup = Setup(push.setup);
    return push.first
           + ((uint64_t(n) * PEEK(setup.first_step) + PEEK(setup.first_offset)) & PEEK(setup.cell_mask)) * LINE_BYTES;
}

uint64_t second_of(uint n) {
    Setup setup = Setup(push.setup);
    return push.second
           + ((uint64_t(n) * PEEK(setup.second_step) + PEEK(setup.second_offset)) & PEEK(setup.cell_mask)) * LINE_BYTES;
}

uint mixed_by(uint seed, uint n) {
    uint x = n * 0x9e3779b9u ^ seed;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

uint mixed(uint n) {
    return mixed_by(uint(PEEK(Setup(push.setup).seed)), n);
}

// What the partner says of itself.
uint64_t partner() {
    return ALONE ? l_generation << 32 : PEEK(Word(l_other + DONE).value);
}

bool has_gone(uint64_t other) {
    return other == (l_generation << 32 | GONE);
}

bool is_there(uint64_t other) {
    return other >> 32 == l_generation;
}

// Whether the instance may begin now, by what the partner says of itself.
bool begins(uint64_t other, uint i) {
    if (ALONE) {
        return true;
    }
    bool may = is_there(other) && (other & 0xfffffffful) + PEEK(Setup(push.setup).slack) >= uint64_t(i);
    uint delay = mixed(instance(i) * 2u + l_role) & uint(PEEK(Setup(push.setup).most_delay));
    if (may && l_delayed < delay) {
        ++l_delayed;
        may = false;
    }
    return may;
}

// The instance is done, with what its party saw.
void done_with(inout uint i, uint64_t saw) {
    if (!ALONE) {
        PUT(Word(push.results[l_role] + uint64_t(instance(i)) * 8ul).value, l_generation << 32 | saw);
        PUT(Word(l_mine + DONE).value, l_generation << 32 | uint64_t(i + 1u));
    }
    l_delayed = 0u;
    ++i;
}

#endif
