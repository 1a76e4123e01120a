// The table of the dispatches that run next: packets of one process, each a job. Who makes it, the engine or the last
// workgroup of the table before, has it in these words of its workgroup.
//
// Lanes change them by atomics while they execute; after a meeting they stand.

shared uint s_jobs;        // places of it that were taken, some for nothing
shared uint s_ready;       // jobs that came to something
shared uint s_first;       // the first of these
shared uint s_most;        // jobs that it may have, by the kernels that it has
shared uint s_only;        // the one kernel + 1 of it, which schedules itself; 0: none; OF_SEVERAL
shared uint s_alone;       // the kernel + 1 of the job that is alone
shared uint s_alone_x;
shared uint s_alone_y;
shared uint s_alone_z;
// Of its jobs, by kernel: workgroups, and TOGETHER_JOB for each. A table that an epilogue makes is of one kernel.
shared uint s_together[EPILOGUE ? 1u : MAX_KERNELS];

// What s_only says of a table with several kernels, or with one that does not schedule itself.
const uint OF_SEVERAL = ~0u;
const uint TOGETHER_JOB = 1u << 24;

// By one lane, before a meeting.
void begin_table() {
    s_alone = 0u;
    s_jobs = 0u;
    s_ready = 0u;
    s_first = MAX_JOBS;
    s_most = MAX_JOBS;
    s_only = 0u;
}
