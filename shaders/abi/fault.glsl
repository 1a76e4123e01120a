// Codes of faults. Twin of src/abi/fault.rs.

#ifndef NF_ABI_FAULT
#define NF_ABI_FAULT

const uint FAULT_NONE = 0u;
const uint FAULT_OPCODE = 1u;
const uint FAULT_LENGTH = 2u;
const uint FAULT_HANDLE = 3u;
const uint FAULT_STALE_HANDLE = 4u;
const uint FAULT_WRITE_INDEX = 5u;
const uint FAULT_LOG_NUMBER = 6u;
const uint FAULT_ACCESS_DENIED = 7u;
const uint FAULT_PROGRESS = 8u;
const uint FAULT_RANGE = 9u;
const uint FAULT_OVERLAP = 10u;
const uint FAULT_ABORTED = 12u;
const uint FAULT_GROUPS = 13u;
const uint FAULT_PARAMETERS = 14u;

#endif
