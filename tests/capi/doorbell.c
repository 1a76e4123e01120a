/* A C program that makes and destroys the doorbell of a queue, and ends its device in order. Prints "done"
 * when all was as it should be. */
#include "world.h"

static NTSTATUS end_device(uint64_t milliseconds) {
  NF_ENDDEVICE end = {device, 0, milliseconds};
  return NfEndDevice(&end);
}

static void last_error_has(const char *part) {
  char why[512] = "";
  NfLastErrorText((uint8_t *)why, sizeof why);
  CHECK(strstr(why, part) != NULL);
}

int main(void) {
  NF_OPENADAPTER adapter = open_adapter();
  create_device(&adapter);
  D3DKMT_CREATEHWCONTEXT context = create_context();
  D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION queue = create_queue(&context, 16);
  D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION other = create_queue(&context, 16);
  D3DKMT_CREATE_DOORBELL doorbell = create_doorbell(&queue), others = create_doorbell(&other);
  NF_RING ring, other_ring;
  NfRingInit(&ring, &queue, &doorbell);
  NfRingInit(&other_ring, &other, &others);
  D3DKMT_CREATENATIVEFENCE fence = create(0);
  uint64_t done = 0, other_done = 0;
  CHECK(NfRingSignal(&ring, NfPacketHandle(&fence), 1));
  GOOD(NfRingSubmit(&ring, &done));
  GOOD(wait_for(fence.hSyncObject, 1));

  /* A queue has one doorbell at a time. */
  D3DKMT_CREATE_DOORBELL second;
  memset(&second, 0, sizeof second);
  second.hHwQueue = queue.hHwQueue;
  CHECK(NfD3DKMTCreateDoorbell(&second) == STATUS_INVALID_PARAMETER);
  last_error_has("destroy it first");
  CHECK(second.hDoorbell == 0);

  /* Without one nothing runs, however the ring is rung; other queues do. */
  D3DKMT_DESTROY_DOORBELL destroy_doorbell = {doorbell.hDoorbell};
  GOOD(NfD3DKMTDestroyDoorbell(&destroy_doorbell));
  CHECK(NfD3DKMTDestroyDoorbell(&destroy_doorbell) == STATUS_INVALID_HANDLE);
  CHECK(NfRingSignal(&ring, NfPacketHandle(&fence), 2));
  CHECK(NfRingSubmit(&ring, &done) == STATUS_INVALID_HANDLE && done == 2);
  for (int turn = 0; turn < 2; turn++) {
    GOOD(NfRingSubmit(&other_ring, &other_done));
    GOOD(wait_for(other.hProgressFence, other_done));
  }
  CHECK(value_of(&fence.Info.NativeFenceMapping) == 1);
  CHECK(value_of(&queue.ProgressFenceMapping) == 1);

  /* So it cannot be waited for. */
  CHECK(end_device(UINT64_MAX) == STATUS_INVALID_PARAMETER);
  last_error_has("has no doorbell");

  /* By its next doorbell the queue goes on, when that is rung. */
  D3DKMT_CREATE_DOORBELL next = create_doorbell(&queue);
  CHECK(next.hDoorbell != doorbell.hDoorbell);
  CHECK(next.DoorbellStatusCPUVirtualAddress == doorbell.DoorbellStatusCPUVirtualAddress);
  CHECK(*(const uint64_t *)queue.DoorbellStatusCpuVa == D3DDDI_DOORBELLSTATUS_DISCONNECTED_RETRY);
  NfRingSetDoorbell(&ring, &next);
  GOOD(NfRingRing(&ring));
  GOOD(wait_for(queue.hProgressFence, done));
  CHECK(value_of(&fence.Info.NativeFenceMapping) == 2);

  /* An end that comes to its time-out says where the queue stands, and has destroyed nothing. */
  D3DKMT_CREATENATIVEFENCE gate = create(0);
  D3DKMT_CREATEHWQUEUE kernel = create_kernel_queue(&context);
  CHECK(NfRingWait(&ring, NfPacketHandle(&gate), 1));
  CHECK(NfRingSignal(&ring, NfPacketHandle(&fence), 3));
  GOOD(NfRingSubmit(&ring, &done));
  CHECK(end_device(0) == STATUS_IO_TIMEOUT);
  last_error_has("has completed 2 of 3");
  GOOD(NfRingSubmit(&other_ring, &other_done));
  GOOD(wait_for(other.hProgressFence, other_done));
  CHECK(value_of(&fence.Info.NativeFenceMapping) == 2);

  /* One that has time waits for what was queued, not for what was destroyed before. */
  GOOD(signal_to(gate.hSyncObject, 1, 0));
  GOOD(end_device(60000));
  CHECK(value_of(&fence.Info.NativeFenceMapping) == 3);
  GOOD(end_device(0));

  /* Then there is no queue, which is what a wait for more of it says; its handle is there. */
  CHECK(wait_for(queue.hProgressFence, 4) == STATUS_DEVICE_REMOVED);
  last_error_has("its process ends or has ended");
  CHECK(wait_for(kernel.hHwQueueProgressFence, 4) == STATUS_DEVICE_REMOVED);
  GOOD(wait_for(queue.hProgressFence, 3));
  CHECK(NfRingSubmit(&ring, &done) == STATUS_DEVICE_REMOVED);
  D3DKMT_DESTROY_DOORBELL destroy_next = {next.hDoorbell};
  GOOD(NfD3DKMTDestroyDoorbell(&destroy_next));
  CHECK(NfD3DKMTCreateDoorbell(&second) == STATUS_DEVICE_REMOVED);
  CHECK(NfD3DKMTCreateHwQueue(&kernel) == STATUS_DEVICE_REMOVED);
  GOOD(signal_to(fence.hSyncObject, 4, 0));
  D3DKMT_DESTROYHWQUEUE destroy_queue = {queue.hHwQueue};
  GOOD(NfD3DKMTDestroyHwQueue(&destroy_queue));
  CHECK(wait_for(queue.hProgressFence, 3) == STATUS_INVALID_HANDLE);
  D3DKMT_CLOSEADAPTER close_adapter = {adapter.hAdapter};
  GOOD(NfD3DKMTCloseAdapter(&close_adapter));
  CHECK(end_device(0) == STATUS_INVALID_HANDLE);
  puts("done");
  return 0;
}
