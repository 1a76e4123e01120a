/* The user side of a hardware queue: packets written into its ring, and its doorbell rung. No call is
 * made while the engine looks at the ring by itself. One thread at a time uses a ring.
 *
 *   NF_RING ring;
 *   NfRingInit(&ring, &queue, &doorbell);        // as the two creations filled them in
 *   NfRingWait(&ring, NfPacketHandle(&a), 1);    // the queue stands still until a is at least 1 ...
 *   NfRingSignal(&ring, NfPacketHandle(&b), 1);  // ... then stores 1 to b
 *   uint64_t done;
 *   NTSTATUS status = NfRingSubmit(&ring, &done);  // the progress fence gets the value `done`
 *
 * The order of a submission (published for user-mode work submission): packets whose last writes the
 * progress fence; the last queued value; the write index; the doorbell; then its status. */
#ifndef NATIVE_FENCE_RING_H
#define NATIVE_FENCE_RING_H

#include "native_fence.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a packet; what one can ask for, NF_OPCODE_..., stands in native_fence.h. */
#define NF_PACKET_BYTES 64

/* A ring, as its one writer knows it. */
typedef struct NF_RING {
  uint64_t *WriteIndex;            /* in the ring: packets that the engine may take */
  const uint64_t *ReadIndex;       /* in the ring: packets that the engine has executed */
  uint64_t *Packets;
  uint64_t *LastQueuedValue;
  uint64_t *Rings;
  const uint64_t *DoorbellStatus;
  uint64_t Capacity;
  uint64_t Written;                /* packets written so far, submitted or not */
  uint64_t Waits;                  /* running number of the next wait in the log of waits */
  uint64_t Signals;                /* ... of the next signal or progress in the log of signals */
  uint64_t Queued;                 /* last value queued for the progress fence */
  uint32_t ProgressPacketHandle;
  D3DKMT_HANDLE hDoorbell;
} NF_RING;

/* The handle by which packets name a fence. */
static inline uint32_t NfPacketHandle(const D3DKMT_CREATENATIVEFENCE *fence) {
  NF_NATIVEFENCE_PRIVATEDATA data;
  memcpy(&data, fence->PrivateDriverData, sizeof data);
  return data.PacketHandle;
}

/* Another doorbell of the same queue, in the place of one that was destroyed: what stands in the ring runs
 * when NfRingRing or the next submission has connected it. */
static inline void NfRingSetDoorbell(NF_RING *ring, const D3DKMT_CREATE_DOORBELL *doorbell) {
  ring->Rings = (uint64_t *)doorbell->DoorbellCPUVirtualAddress;
  ring->DoorbellStatus = (const uint64_t *)doorbell->DoorbellStatusCPUVirtualAddress;
  ring->hDoorbell = doorbell->hDoorbell;
}

/* For a queue and a doorbell that were just created, in which nothing was queued yet. */
static inline void NfRingInit(NF_RING *ring,
                              const D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION *queue,
                              const D3DKMT_CREATE_DOORBELL *doorbell) {
  NF_HWQUEUE_PRIVATEDATA data;
  memcpy(&data, queue->PrivateDriverData, sizeof data);
  memset(ring, 0, sizeof *ring);
  ring->WriteIndex = (uint64_t *)data.WriteIndexCpuVa;
  ring->ReadIndex = (const uint64_t *)data.ReadIndexCpuVa;
  ring->Packets = (uint64_t *)data.RingCpuVa;
  ring->LastQueuedValue = (uint64_t *)queue->ProgressFenceLastQueuedValueCpuVa;
  ring->Capacity = data.RingCapacity;
  ring->ProgressPacketHandle = data.ProgressPacketHandle;
  NfRingSetDoorbell(ring, doorbell);
}

/* Packets that can be written now; one place is kept for the progress packet. The read index is the
 * engine's word: one that cannot be is taken for a full ring. */
static inline uint64_t NfRingRoom(const NF_RING *ring) {
  uint64_t read = __atomic_load_n(ring->ReadIndex, __ATOMIC_ACQUIRE);
  uint64_t queued = ring->Written - read;
  return queued < ring->Capacity ? ring->Capacity - queued - 1 : 0;
}

static inline void NfRingPut(NF_RING *ring, uint64_t opcode, uint32_t handle, uint64_t number,
                             uint64_t value) {
  uint64_t *packet = ring->Packets + ring->Written % ring->Capacity * (NF_PACKET_BYTES / 8);
  /* Opcode, length in units of 64 bytes, handle; then the number in the log, and the value. The other
   * words are read of transfers alone. */
  __atomic_store_n(packet + 0, opcode | 1u << 8 | (uint64_t)handle << 32, __ATOMIC_RELAXED);
  __atomic_store_n(packet + 1, number, __ATOMIC_RELAXED);
  __atomic_store_n(packet + 2, value, __ATOMIC_RELAXED);
  ring->Written += 1;
}

/* Writes a wait: the queue goes on when the fence is at least `value`. 0 if there is no room now. */
static inline int NfRingWait(NF_RING *ring, uint32_t packetHandle, uint64_t value) {
  if (NfRingRoom(ring) == 0) {
    return 0;
  }
  NfRingPut(ring, NF_OPCODE_WAIT, packetHandle, ring->Waits++, value);
  return 1;
}

/* Writes a signal: `value` is stored to the fence. 0 if there is no room now. */
static inline int NfRingSignal(NF_RING *ring, uint32_t packetHandle, uint64_t value) {
  if (NfRingRoom(ring) == 0) {
    return 0;
  }
  NfRingPut(ring, NF_OPCODE_SIGNAL, packetHandle, ring->Signals++, value);
  return 1;
}

/* Rings, and does what the doorbell's status then asks. */
static inline NTSTATUS NfRingRing(const NF_RING *ring) {
  for (;;) {
    /* By read-modify-write, after the write index: the OS changes the status, then touches the same
     * word, then looks at the write index. One of the two sees the other. */
    __atomic_fetch_add(ring->Rings, 1, __ATOMIC_ACQ_REL);
    switch (__atomic_load_n(ring->DoorbellStatus, __ATOMIC_ACQUIRE)) {
      case D3DDDI_DOORBELLSTATUS_CONNECTED:
        return STATUS_SUCCESS;
      case D3DDDI_DOORBELLSTATUS_CONNECTED_NOTIFY_KMD: {
        D3DKMT_NOTIFY_WORK_SUBMISSION notify = {ring->hDoorbell, 0};
        return NfD3DKMTNotifyWorkSubmission(&notify);
      }
      case D3DDDI_DOORBELLSTATUS_DISCONNECTED_RETRY: {
        D3DKMT_CONNECT_DOORBELL connect = {ring->hDoorbell, 0};
        NTSTATUS status = NfD3DKMTConnectDoorbell(&connect);
        if (status < 0) {
          return status;
        }
        break;
      }
      default:
        /* The queue was stopped: destroy it and make it anew. */
        return STATUS_DEVICE_REMOVED;
    }
  }
}

/* Submits what was written: it is completed when the progress fence is at least `*value`.
 * STATUS_INSUFFICIENT_RESOURCES: the ring is full, and nothing was changed; wait for an earlier value of
 * the progress fence and submit again. After any other error it stands in the ring, and runs if the
 * doorbell connects later. */
static inline NTSTATUS NfRingSubmit(NF_RING *ring, uint64_t *value) {
  /* A submission of nothing needs a place too, which no NfRingWait or NfRingSignal has kept for it. */
  if (ring->Written - __atomic_load_n(ring->ReadIndex, __ATOMIC_ACQUIRE) >= ring->Capacity) {
    return STATUS_INSUFFICIENT_RESOURCES;
  }
  ring->Queued += 1;
  *value = ring->Queued;
  NfRingPut(ring, NF_OPCODE_PROGRESS, ring->ProgressPacketHandle, ring->Signals++, ring->Queued);
  /* Before the packets can be seen: the OS knows of pending work by it. */
  __atomic_store_n(ring->LastQueuedValue, ring->Queued, __ATOMIC_RELEASE);
  /* Full fences, not a release alone: the ring may be memory of a GPU, whose stores leave the core in
   * any order, and late, unless something makes it send them. */
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(ring->WriteIndex, ring->Written, __ATOMIC_RELEASE);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return NfRingRing(ring);
}

#ifdef __cplusplus
}
#endif

#endif /* NATIVE_FENCE_RING_H */
