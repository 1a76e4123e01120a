/* The ring's words alone, without a queue behind them: what a refused submission leaves as it was. The
 * engine is this program, which moves the read index. Prints "done" when all was as it should be. */
#include "native_fence_ring.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "line %d: %s\n", __LINE__, #x), exit(1)))
enum { CAPACITY = 2, WORDS = CAPACITY * NF_PACKET_BYTES / 8 };

/* The doorbell is connected: no call is made. */
NTSTATUS NfD3DKMTNotifyWorkSubmission(const D3DKMT_NOTIFY_WORK_SUBMISSION *args) {
  (void)args;
  abort();
}
NTSTATUS NfD3DKMTConnectDoorbell(const D3DKMT_CONNECT_DOORBELL *args) {
  (void)args;
  abort();
}

int main(void) {
  uint64_t packets[WORDS] = {0}, write = 0, read = 0, queued = 0, rings = 0;
  uint64_t status = D3DDDI_DOORBELLSTATUS_CONNECTED;
  NF_RING ring = {&write, &read, packets, &queued, &rings, &status, CAPACITY, 0, 0, 0, 0, 7, 8};
  uint64_t done = 0;
  for (uint64_t value = 1; value <= CAPACITY; value++) {
    CHECK(NfRingSubmit(&ring, &done) == STATUS_SUCCESS && done == value);
  }

  uint64_t full[WORDS];
  memcpy(full, packets, sizeof full);
  NF_RING before = ring;
  CHECK(NfRingSubmit(&ring, &done) == STATUS_INSUFFICIENT_RESOURCES);
  CHECK(done == CAPACITY && write == CAPACITY && queued == CAPACITY && rings == CAPACITY);
  CHECK(memcmp(full, packets, sizeof full) == 0 && memcmp(&before, &ring, sizeof ring) == 0);

  /* One was executed: there is a place. A read index that cannot be is none. */
  read = 1;
  CHECK(NfRingSubmit(&ring, &done) == STATUS_SUCCESS && done == CAPACITY + 1);
  CHECK(write == CAPACITY + 1 && memcmp(full, packets, sizeof full) != 0);
  read = write + 1;
  CHECK(NfRingSubmit(&ring, &done) == STATUS_INSUFFICIENT_RESOURCES);
  puts("done");
  return 0;
}
