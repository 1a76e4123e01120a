/* A C program that submits through the OS: monitored fences, which its commands store, and a queue that
 * the OS holds back at its waits. Prints "done" when all was as it should be. */
#include "world.h"

#define VALUE(fence) value_at((fence).Info.MonitoredFence.FenceValueCPUVirtualAddress)

static NTSTATUS submit(const D3DKMT_CREATEHWQUEUE *queue, uint64_t progress,
                       const NF_HWQUEUE_COMMAND *commands, size_t count) {
  D3DKMT_SUBMITCOMMANDTOHWQUEUE submit;
  memset(&submit, 0, sizeof submit);
  submit.hHwQueue = queue->hHwQueue;
  submit.HwQueueProgressFenceId = progress;
  submit.pPrivateDriverData = commands;
  submit.PrivateDriverDataSize = (uint32_t)(count * sizeof *commands);
  return NfD3DKMTSubmitCommandToHwQueue(&submit);
}

static NTSTATUS queue_waits(const D3DKMT_CREATEHWQUEUE *queue, D3DKMT_HANDLE fence, uint64_t value) {
  D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE wait = {queue->hHwQueue, 1, &fence, &value};
  return NfD3DKMTSubmitWaitForSyncObjectsToHwQueue(&wait);
}

static NTSTATUS queue_signals(const D3DKMT_CREATEHWQUEUE *queue, const D3DKMT_HANDLE *fences,
                              const uint64_t *values, uint32_t count) {
  D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE signal;
  memset(&signal, 0, sizeof signal);
  signal.BroadcastHwQueueCount = 1;
  signal.BroadcastHwQueueArray = &queue->hHwQueue;
  signal.ObjectCount = count;
  signal.ObjectHandleArray = fences;
  signal.FenceValueArray = values;
  return NfD3DKMTSubmitSignalSyncObjectsToHwQueue(&signal);
}

static NTSTATUS context_waits(const D3DKMT_CREATEHWCONTEXT *context, D3DKMT_HANDLE fence,
                              uint64_t value) {
  D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait;
  memset(&wait, 0, sizeof wait);
  wait.hContext = context->hHwContext;
  wait.ObjectCount = 1;
  wait.ObjectHandleArray = &fence;
  wait.MonitoredFenceValueArray = &value;
  return NfD3DKMTWaitForSynchronizationObjectFromGpu(&wait);
}

static NTSTATUS context_signals(const D3DKMT_CREATEHWCONTEXT *context, D3DKMT_HANDLE fence,
                                uint64_t value) {
  D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal;
  memset(&signal, 0, sizeof signal);
  signal.hContext = context->hHwContext;
  signal.ObjectCount = 1;
  signal.ObjectHandleArray = &fence;
  signal.MonitoredFenceValueArray = &value;
  return NfD3DKMTSignalSynchronizationObjectFromGpu(&signal);
}

static NTSTATUS context_signals_2(const D3DKMT_CREATEHWCONTEXT *context, D3DKMT_HANDLE fence,
                                  uint64_t value) {
  D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 signal;
  memset(&signal, 0, sizeof signal);
  signal.ObjectCount = 1;
  signal.ObjectHandleArray = &fence;
  signal.BroadcastContextCount = 1;
  signal.BroadcastContextArray = &context->hHwContext;
  signal.MonitoredFenceValueArray = &value;
  return NfD3DKMTSignalSynchronizationObjectFromGpu2(&signal);
}

int main(void) {
  NF_OPENADAPTER adapter = open_adapter();
  create_device(&adapter);
  D3DKMT_CREATEHWCONTEXT context = create_context();
  D3DKMT_CREATEHWQUEUE queue = create_kernel_queue(&context);
  const void *progress = queue.HwQueueProgressFenceCPUVirtualAddress;
  CHECK(value_at(progress) == 0);

  /* The CPU signals a monitored fence and reads it. */
  D3DKMT_CREATESYNCHRONIZATIONOBJECT2 gate = create_monitored(5), stored = create_monitored(0);
  CHECK(VALUE(gate) == 5);
  GOOD(signal_to(gate.hSyncObject, 6, 0));
  CHECK(VALUE(gate) == 6);
  CHECK(signal_to(gate.hSyncObject, 5, 0) == STATUS_INVALID_PARAMETER);

  /* The engine stores it, and the progress fence says when the command is finished. */
  NF_HWQUEUE_COMMAND commands[3];
  memset(commands, 0, sizeof commands);
  commands[0].Opcode = commands[2].Opcode = NF_OPCODE_NOP;
  commands[1].Opcode = NF_OPCODE_SIGNAL;
  commands[1].hSyncObject = stored.hSyncObject;
  commands[1].FenceValue = 1;
  CHECK(submit(&queue, 1, commands, 3) == STATUS_INVALID_PARAMETER);
  GOOD(submit(&queue, 2, commands, 3));
  GOOD(wait_for(queue.hHwQueueProgressFence, 2));
  CHECK(value_at(progress) == 2 && VALUE(stored) == 1);

  /* The OS holds back what stands behind a wait, and signals fences of both kinds behind it. */
  D3DKMT_CREATENATIVEFENCE native = create(0);
  D3DKMT_HANDLE ends[2] = {native.hSyncObject, stored.hSyncObject};
  uint64_t values[2] = {7, 3};
  GOOD(queue_waits(&queue, gate.hSyncObject, 7));
  commands[1].FenceValue = 2;
  GOOD(submit(&queue, 4, commands, 3));
  GOOD(queue_signals(&queue, ends, values, 2));
  CHECK(value_at(progress) == 2 && VALUE(stored) == 1);
  CHECK(value_of(&native.Info.NativeFenceMapping) == 0);
  GOOD(signal_to(gate.hSyncObject, 7, 0));
  GOOD(wait_for(native.hSyncObject, 7));
  GOOD(wait_for(stored.hSyncObject, 3));
  CHECK(value_at(progress) == 4 && VALUE(stored) == 3);

  /* The same by the context of the queue. */
  GOOD(context_waits(&context, gate.hSyncObject, 8));
  GOOD(context_signals(&context, stored.hSyncObject, 4));
  GOOD(context_signals_2(&context, native.hSyncObject, 8));
  CHECK(VALUE(stored) == 3);
  GOOD(signal_to(gate.hSyncObject, 8, 0));
  GOOD(wait_for(native.hSyncObject, 8));
  CHECK(VALUE(stored) == 4);

  /* One wait and one signal of the CPU take fences of both kinds. */
  D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal;
  memset(&signal, 0, sizeof signal);
  signal.hDevice = device;
  signal.ObjectCount = 2;
  signal.ObjectHandleArray = ends;
  signal.FenceValueArray = values;
  values[0] = 9;
  CHECK(NfD3DKMTSignalSynchronizationObjectFromCpu(&signal) == STATUS_INVALID_PARAMETER);
  CHECK(value_of(&native.Info.NativeFenceMapping) == 8);
  values[1] = 5;
  GOOD(NfD3DKMTSignalSynchronizationObjectFromCpu(&signal));
  D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait;
  memset(&wait, 0, sizeof wait);
  wait.hDevice = device;
  wait.ObjectCount = 2;
  wait.ObjectHandleArray = ends;
  wait.FenceValueArray = values;
  GOOD(NfD3DKMTWaitForSynchronizationObjectFromCpu(&wait));

  /* A queue is of one kind for its life, and destroyed things are gone. */
  D3DKMT_CREATE_DOORBELL doorbell;
  memset(&doorbell, 0, sizeof doorbell);
  doorbell.hHwQueue = queue.hHwQueue;
  CHECK(NfD3DKMTCreateDoorbell(&doorbell) == STATUS_INVALID_HANDLE);
  D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION user = create_queue(&context, 8);
  D3DKMT_CREATEHWQUEUE other = queue;
  other.hHwQueue = user.hHwQueue;
  CHECK(submit(&other, 1, commands, 1) == STATUS_INVALID_HANDLE);
  CHECK(queue_waits(&other, gate.hSyncObject, 0) == STATUS_INVALID_HANDLE);
  CHECK(destroy(queue.hHwQueueProgressFence) == STATUS_INVALID_PARAMETER);
  D3DKMT_DESTROYHWQUEUE destroy_queue = {queue.hHwQueue};
  GOOD(NfD3DKMTDestroyHwQueue(&destroy_queue));
  CHECK(submit(&queue, 5, commands, 1) == STATUS_INVALID_HANDLE);
  CHECK(wait_for(queue.hHwQueueProgressFence, 0) == STATUS_INVALID_HANDLE);
  GOOD(destroy(gate.hSyncObject));
  CHECK(wait_for(gate.hSyncObject, 0) == STATUS_INVALID_HANDLE);
  D3DKMT_CLOSEADAPTER close_adapter = {adapter.hAdapter};
  GOOD(NfD3DKMTCloseAdapter(&close_adapter));
  CHECK(destroy(stored.hSyncObject) == STATUS_INVALID_HANDLE);
  puts("done");
  return 0;
}
