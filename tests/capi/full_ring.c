/* A program that submits more than its ring holds, behind a wait that stands: it is told so, and what is
 * in the ring is obeyed. Prints "done" when all was as it should be. */
#include "world.h"

int main(void) {
  NF_OPENADAPTER adapter = open_adapter();
  create_device(&adapter);
  D3DKMT_CREATEHWCONTEXT context = create_context();
  D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION queue = create_queue(&context, 8);
  D3DKMT_CREATE_DOORBELL doorbell = create_doorbell(&queue);
  D3DKMT_CREATENATIVEFENCE gate = create(0), behind = create(0);
  NF_RING ring;
  NfRingInit(&ring, &queue, &doorbell);

  /* A wait in the place that the ninth packet would have, a signal, and six submissions: eight. */
  CHECK(NfRingWait(&ring, NfPacketHandle(&gate), 1));
  CHECK(NfRingSignal(&ring, NfPacketHandle(&behind), 1));
  uint64_t done = 0;
  for (uint64_t value = 1; value <= 6; value++) {
    GOOD(NfRingSubmit(&ring, &done));
    CHECK(done == value);
  }
  CHECK(NfRingRoom(&ring) == 0);

  NF_RING before = ring;
  for (int times = 0; times < 2; times++) {
    CHECK(NfRingSubmit(&ring, &done) == STATUS_INSUFFICIENT_RESOURCES);
    CHECK(done == 6 && memcmp(&before, &ring, sizeof ring) == 0);
    CHECK(*(uint64_t *)queue.ProgressFenceLastQueuedValueCpuVa == 6);
    CHECK((ring.Packets[0] & 0xff) == NF_OPCODE_WAIT);
  }
  CHECK(value_of(&behind.Info.NativeFenceMapping) == 0);

  GOOD(signal_to(gate.hSyncObject, 1, 0));
  GOOD(wait_for(queue.hProgressFence, 6));
  CHECK(value_of(&behind.Info.NativeFenceMapping) == 1);
  GOOD(NfRingSubmit(&ring, &done));
  CHECK(done == 7);
  GOOD(wait_for(queue.hProgressFence, done));
  D3DKMT_CLOSEADAPTER close_adapter = {adapter.hAdapter};
  GOOD(NfD3DKMTCloseAdapter(&close_adapter));
  puts("done");
  return 0;
}
