// What the functions of the shader library tell a kernel. Twin of src/abi/kernel_result.rs.

#ifndef NF_ABI_KERNEL_RESULT
#define NF_ABI_KERNEL_RESULT

const uint NF_DONE = 0u;
const uint NF_NO_FENCE = 3u;  // the handle names no fence that the process has open
const uint NF_CLOSED = 4u;    // the handle was closed
const uint NF_DENIED = 7u;    // the fence's flags forbid it
const uint NF_NOT_REACHED = 256u; // the value was not there in as many passes
const uint NF_NO_ROOM = 257u; // the packet has made as many signals as it can

#endif
