/* A C program on a device whose fences are kept by 32-bit stores: what is more than UINT_MAX/2 from the
 * last signalled value is refused, whoever asks for it, and changes nothing. Prints "done" when all was as
 * it should be. */
#include "world.h"

#define HALF ((uint64_t)UINT32_MAX / 2)
#define START (((uint64_t)1 << 32) - 5)
#define VALUE(fence) value_at((fence).Info.MonitoredFence.FenceValueCPUVirtualAddress)

static D3DKMT_CREATEHWQUEUE queue;

static NTSTATUS stores(D3DKMT_HANDLE fence, uint64_t value, uint64_t progress) {
  NF_HWQUEUE_COMMAND command = {NF_OPCODE_SIGNAL, fence, value};
  D3DKMT_SUBMITCOMMANDTOHWQUEUE submit;
  memset(&submit, 0, sizeof submit);
  submit.hHwQueue = queue.hHwQueue;
  submit.HwQueueProgressFenceId = progress;
  submit.pPrivateDriverData = &command;
  submit.PrivateDriverDataSize = sizeof command;
  return NfD3DKMTSubmitCommandToHwQueue(&submit);
}

static NTSTATUS waits(D3DKMT_HANDLE fence, uint64_t value) {
  D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE wait = {queue.hHwQueue, 1, &fence, &value};
  return NfD3DKMTSubmitWaitForSyncObjectsToHwQueue(&wait);
}

static NTSTATUS signals(D3DKMT_HANDLE fence, uint64_t value) {
  D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE signal;
  memset(&signal, 0, sizeof signal);
  signal.BroadcastHwQueueCount = 1;
  signal.BroadcastHwQueueArray = &queue.hHwQueue;
  signal.ObjectCount = 1;
  signal.ObjectHandleArray = &fence;
  signal.FenceValueArray = &value;
  return NfD3DKMTSubmitSignalSyncObjectsToHwQueue(&signal);
}

static void too_far(NTSTATUS status, int line) {
  char why[512] = "";
  NfLastErrorText((uint8_t *)why, sizeof why);
  check(status == STATUS_INVALID_PARAMETER && strstr(why, "UINT_MAX/2") != NULL, "too far", line);
}
#define TOO_FAR(x) too_far((x), __LINE__)

int main(void) {
  NF_OPENADAPTER adapter = open_adapter();
  create_device(&adapter);
  D3DKMT_CREATEHWCONTEXT context = create_context();
  queue = create_kernel_queue(&context);
  D3DKMT_CREATESYNCHRONIZATIONOBJECT2 fence = create_monitored(START), wide;
  D3DKMT_CREATESYNCHRONIZATIONOBJECT2 near = create_monitored(START);
  D3DKMT_HANDLE handle = fence.hSyncObject;

  /* By the CPU, by the engine and by the OS; a wait by the CPU and by the queue. */
  TOO_FAR(signal_to(handle, START + HALF + 1, 0));
  TOO_FAR(signal_to(handle, START - HALF - 1, 1));
  TOO_FAR(signal_to(handle, UINT64_MAX, 0));
  TOO_FAR(wait_for(handle, START + HALF + 1));
  TOO_FAR(stores(handle, START + HALF + 1, 2));
  TOO_FAR(signals(handle, START + HALF + 1));
  TOO_FAR(waits(handle, START + HALF + 1));

  /* Of several fences, one that is too far forbids all. */
  D3DKMT_HANDLE both[2] = {near.hSyncObject, handle};
  uint64_t values[2] = {START + 1, START + HALF + 1};
  D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU several;
  memset(&several, 0, sizeof several);
  several.hDevice = device;
  several.ObjectCount = 2;
  several.ObjectHandleArray = both;
  several.FenceValueArray = values;
  TOO_FAR(NfD3DKMTSignalSynchronizationObjectFromCpu(&several));
  CHECK(VALUE(fence) == (uint32_t)START && VALUE(near) == (uint32_t)START);
  CHECK(value_at(queue.HwQueueProgressFenceCPUVirtualAddress) == 0);

  /* Where there is no GPU access, values have 64 bits. */
  memset(&wide, 0, sizeof wide);
  wide.hDevice = device;
  wide.Info.Type = D3DDDI_MONITORED_FENCE;
  wide.Info.Flags.NoGPUAccess = 1;
  GOOD(NfD3DKMTCreateSynchronizationObject2(&wide));
  GOOD(signal_to(wide.hSyncObject, UINT64_MAX, 0));

  /* Exactly as far is allowed, and the wrap is carried: the queue has taken nothing before. */
  GOOD(stores(handle, START + HALF, 2));
  GOOD(wait_for(handle, START + HALF));
  GOOD(wait_for(queue.hHwQueueProgressFence, 2));
  CHECK(VALUE(fence) == (uint32_t)(START + HALF));
  GOOD(signals(handle, START + 2 * HALF));
  GOOD(wait_for(handle, START + 2 * HALF));
  TOO_FAR(wait_for(handle, START + 3 * HALF + 1));
  D3DKMT_CLOSEADAPTER close_adapter = {adapter.hAdapter};
  GOOD(NfD3DKMTCloseAdapter(&close_adapter));
  puts("done");
  return 0;
}
