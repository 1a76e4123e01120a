/* What the C programs of the tests share: checks that end the program with a sentence, and one call of
 * each kind. */
#ifndef NF_TEST_WORLD_H
#define NF_TEST_WORLD_H

#include "native_fence.h"
#include "native_fence_ring.h"

#include <stdio.h>
#include <stdlib.h>

static inline void check(int holds, const char *what, int line) {
  if (!holds) {
    char why[512] = "";
    NfLastErrorText((uint8_t *)why, sizeof why);
    fprintf(stderr, "line %d: %s does not hold; last error: %s\n", line, what, why);
    exit(1);
  }
}
#define CHECK(x) check((x), #x, __LINE__)
#define GOOD(x) CHECK((x) == STATUS_SUCCESS)

static D3DKMT_HANDLE device;

static inline D3DKMT_CREATENATIVEFENCE create(uint64_t initial) {
  D3DKMT_CREATENATIVEFENCE fence;
  memset(&fence, 0, sizeof fence);
  fence.hDevice = device;
  fence.Info.InitialFenceValue = initial;
  fence.Info.Type = D3DDDI_NATIVEFENCE_TYPE_DEFAULT;
  GOOD(NfD3DKMTCreateNativeFence(&fence));
  return fence;
}

static inline uint64_t value_of(const D3DDDI_NATIVEFENCEMAPPING *mapping) {
  return __atomic_load_n((const uint64_t *)mapping->CurrentValueCpuVa, __ATOMIC_ACQUIRE);
}

static inline NTSTATUS wait_for(D3DKMT_HANDLE fence, uint64_t value) {
  D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait;
  memset(&wait, 0, sizeof wait);
  wait.hDevice = device;
  wait.ObjectCount = 1;
  wait.ObjectHandleArray = &fence;
  wait.FenceValueArray = &value;
  return NfD3DKMTWaitForSynchronizationObjectFromCpu(&wait);
}

static inline NTSTATUS signal_to(D3DKMT_HANDLE fence, uint64_t value, int rewind) {
  D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal;
  memset(&signal, 0, sizeof signal);
  signal.hDevice = device;
  signal.ObjectCount = 1;
  signal.ObjectHandleArray = &fence;
  signal.FenceValueArray = &value;
  signal.Flags.AllowFenceRewind = rewind ? 1 : 0;
  return NfD3DKMTSignalSynchronizationObjectFromCpu(&signal);
}

static inline NTSTATUS destroy(D3DKMT_HANDLE fence) {
  D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy = {fence};
  return NfD3DKMTDestroySynchronizationObject(&destroy);
}

static inline NF_OPENADAPTER open_adapter(void) {
  NF_OPENADAPTER adapter;
  memset(&adapter, 0, sizeof adapter);
  GOOD(NfOpenAdapter(&adapter));
  return adapter;
}

/* It is the device of the calls above from now on. */
static inline void create_device(const NF_OPENADAPTER *adapter) {
  D3DKMT_CREATEDEVICE create;
  memset(&create, 0, sizeof create);
  create.hAdapter = adapter->hAdapter;
  GOOD(NfD3DKMTCreateDevice(&create));
  device = create.hDevice;
}

static inline D3DKMT_CREATEHWCONTEXT create_context(void) {
  D3DKMT_CREATEHWCONTEXT context;
  memset(&context, 0, sizeof context);
  context.hDevice = device;
  context.EngineAffinity = 1;
  GOOD(NfD3DKMTCreateHwContext(&context));
  return context;
}

static inline D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION create_queue(
    const D3DKMT_CREATEHWCONTEXT *context, uint64_t capacity) {
  D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION queue;
  memset(&queue, 0, sizeof queue);
  queue.hHwContext = context->hHwContext;
  NF_HWQUEUE_PRIVATEDATA wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.RingCapacity = capacity;
  memcpy(queue.PrivateDriverData, &wanted, sizeof wanted);
  GOOD(NfD3DKMTCreateHwQueueForUserModeSubmission(&queue));
  return queue;
}

static inline D3DKMT_CREATE_DOORBELL create_doorbell(
    const D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION *queue) {
  D3DKMT_CREATE_DOORBELL doorbell;
  memset(&doorbell, 0, sizeof doorbell);
  doorbell.hHwQueue = queue->hHwQueue;
  GOOD(NfD3DKMTCreateDoorbell(&doorbell));
  return doorbell;
}

static inline D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create_monitored(uint64_t initial) {
  D3DKMT_CREATESYNCHRONIZATIONOBJECT2 fence;
  memset(&fence, 0, sizeof fence);
  fence.hDevice = device;
  fence.Info.Type = D3DDDI_MONITORED_FENCE;
  fence.Info.MonitoredFence.InitialFenceValue = initial;
  GOOD(NfD3DKMTCreateSynchronizationObject2(&fence));
  return fence;
}

static inline uint64_t value_at(const void *address) {
  return __atomic_load_n((const uint64_t *)address, __ATOMIC_ACQUIRE);
}

static inline D3DKMT_CREATEHWQUEUE create_kernel_queue(const D3DKMT_CREATEHWCONTEXT *context) {
  D3DKMT_CREATEHWQUEUE queue;
  memset(&queue, 0, sizeof queue);
  queue.hHwContext = context->hHwContext;
  GOOD(NfD3DKMTCreateHwQueue(&queue));
  return queue;
}

#endif /* NF_TEST_WORLD_H */
