/* A C program as the header means it: native fences that a hardware queue and the CPU signal and wait
 * for, through a ring that the program writes itself. Prints "done" when all was as it should be. */
#include "world.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void *waits(void *fence) {
  GOOD(wait_for(*(D3DKMT_HANDLE *)fence, 100));
  return NULL;
}

int main(void) {
  NF_OPENADAPTER adapter = open_adapter();
  D3DKMT_WDDM_3_1_CAPS caps = {{0, 0}};
  D3DKMT_QUERYADAPTERINFO query;
  memset(&query, 0, sizeof query);
  query.hAdapter = adapter.hAdapter;
  query.Type = KMTQAITYPE_WDDM_3_1_CAPS;
  query.pPrivateDriverData = &caps;
  query.PrivateDriverDataSize = sizeof caps;
  GOOD(NfD3DKMTQueryAdapterInfo(&query));
  CHECK(caps.NativeGpuFenceSupported && caps.Value == 1);

  create_device(&adapter);
  D3DKMT_CREATEHWCONTEXT context = create_context();
  D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION queue = create_queue(&context, 8);
  CHECK(queue.LogBufferInfo.WaitLogNumberOfEntries == 84);

  D3DKMT_CREATE_DOORBELL doorbell = create_doorbell(&queue);
  CHECK(doorbell.DoorbellStatusCPUVirtualAddress == queue.DoorbellStatusCpuVa);
  CHECK(*(const uint64_t *)queue.DoorbellStatusCpuVa == D3DDDI_DOORBELLSTATUS_DISCONNECTED_RETRY);

  /* The queue waits for what the CPU signals, then signals what the CPU waits for. */
  D3DKMT_CREATENATIVEFENCE from_cpu = create(0), from_gpu = create(5);
  NF_RING ring;
  NfRingInit(&ring, &queue, &doorbell);
  CHECK(NfRingRoom(&ring) == 7);
  CHECK(NfRingWait(&ring, NfPacketHandle(&from_cpu), 1));
  CHECK(NfRingSignal(&ring, NfPacketHandle(&from_gpu), 6));
  uint64_t done = 0;
  GOOD(NfRingSubmit(&ring, &done));
  CHECK(done == 1 && *(uint64_t *)queue.ProgressFenceLastQueuedValueCpuVa == 1);
  CHECK(value_of(&from_gpu.Info.NativeFenceMapping) == 5);
  GOOD(signal_to(from_cpu.hSyncObject, 1, 0));
  GOOD(wait_for(from_gpu.hSyncObject, 6));
  CHECK(value_of(&from_gpu.Info.NativeFenceMapping) == 6);
  GOOD(wait_for(queue.hProgressFence, done));
  CHECK(value_of(&queue.ProgressFenceMapping) == 1);

  /* More than the ring holds, a thread of the program waiting for the last one. */
  D3DKMT_CREATENATIVEFENCE counter = create(0);
  pthread_t waiter;
  CHECK(pthread_create(&waiter, NULL, waits, &counter.hSyncObject) == 0);
  for (uint64_t value = 1; value <= 100; value++) {
    while (!NfRingSignal(&ring, NfPacketHandle(&counter), value)) {
      GOOD(wait_for(queue.hProgressFence, done));
    }
    GOOD(NfRingSubmit(&ring, &done));
  }
  CHECK(pthread_join(waiter, NULL) == 0);
  GOOD(wait_for(queue.hProgressFence, done));
  CHECK(value_of(&counter.Info.NativeFenceMapping) == 100 && done == 101);

  /* One of several is enough. */
  D3DKMT_HANDLE both[2] = {from_cpu.hSyncObject, counter.hSyncObject};
  uint64_t values[2] = {1000, 100};
  D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU any;
  memset(&any, 0, sizeof any);
  any.hDevice = device;
  any.ObjectCount = 2;
  any.ObjectHandleArray = both;
  any.FenceValueArray = values;
  any.Flags.WaitAny = 1;
  GOOD(NfD3DKMTWaitForSynchronizationObjectFromCpu(&any));

  /* Told by an event instead of a thread, when the wait is satisfied and when it fails. */
  D3DKMT_CREATENATIVEFENCE told = create(0);
  int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  CHECK(event > 0);
  D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU later;
  memset(&later, 0, sizeof later);
  later.hDevice = device;
  later.ObjectCount = 1;
  later.ObjectHandleArray = &told.hSyncObject;
  later.hAsyncEvent = (NF_HANDLE)event;
  struct pollfd readable = {event, POLLIN, 0};
  for (uint64_t value = 1; value <= 2; value++) {
    later.FenceValueArray = &value;
    GOOD(NfD3DKMTWaitForSynchronizationObjectFromCpu(&later));
    CHECK(poll(&readable, 1, 0) == 0);
    if (value == 1) {
      CHECK(NfRingSignal(&ring, NfPacketHandle(&told), value));
      GOOD(NfRingSubmit(&ring, &done));
    } else {
      GOOD(destroy(told.hSyncObject));
    }
    CHECK(poll(&readable, 1, 60000) == 1);
    uint64_t ends = 0;
    CHECK(read(event, &ends, sizeof ends) == sizeof ends && ends == 1);
    CHECK(wait_for(told.hSyncObject, value) == (value == 1 ? STATUS_SUCCESS : STATUS_INVALID_HANDLE));
  }
  CHECK(close(event) == 0);

  /* Backward only when it is asked for; and an error has a sentence. */
  CHECK(signal_to(counter.hSyncObject, 3, 0) == STATUS_INVALID_PARAMETER);
  char why[256];
  CHECK(NfLastErrorText((uint8_t *)why, sizeof why) == strlen(why));
  CHECK(strstr(why, "AllowFenceRewind") != NULL);
  CHECK(value_of(&counter.Info.NativeFenceMapping) == 100);
  GOOD(signal_to(counter.hSyncObject, 3, 1));
  CHECK(value_of(&counter.Info.NativeFenceMapping) == 3);

  /* Destroyed things are gone, and so is what was made on them. */
  GOOD(destroy(counter.hSyncObject));
  CHECK(destroy(counter.hSyncObject) == STATUS_INVALID_HANDLE);
  D3DKMT_DESTROY_DOORBELL destroy_doorbell = {doorbell.hDoorbell};
  GOOD(NfD3DKMTDestroyDoorbell(&destroy_doorbell));
  CHECK(*(const uint64_t *)queue.DoorbellStatusCpuVa == D3DDDI_DOORBELLSTATUS_DISCONNECTED_RETRY);
  D3DKMT_DESTROYHWQUEUE destroy_queue = {queue.hHwQueue};
  GOOD(NfD3DKMTDestroyHwQueue(&destroy_queue));
  CHECK(wait_for(queue.hProgressFence, 1) == STATUS_INVALID_HANDLE);
  D3DKMT_DESTROYDEVICE destroy_device = {device};
  GOOD(NfD3DKMTDestroyDevice(&destroy_device));
  CHECK(destroy(from_gpu.hSyncObject) == STATUS_INVALID_HANDLE);
  D3DKMT_DESTROYHWCONTEXT destroy_context = {context.hHwContext};
  CHECK(NfD3DKMTDestroyHwContext(&destroy_context) == STATUS_INVALID_HANDLE);
  D3DKMT_CLOSEADAPTER close_adapter = {adapter.hAdapter};
  GOOD(NfD3DKMTCloseAdapter(&close_adapter));
  puts("done");
  return 0;
}
