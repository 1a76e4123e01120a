/* Native GPU fence objects, as WDDM 3.2 defines them, on any Vulkan 1.2+ device: the C interface.
 *
 * Made by scripts/capi of src/capi and src/abi/wddm: do not edit it. The published structures have
 * their published names and layouts on 64-bit machines; functions are D3DKMT's with Nf before the
 * name, since gdi32 they are not. An error changes nothing; NfLastErrorText has a sentence on it.
 * Zero a structure before filling it in. native_fence_ring.h has the way of packets. */

#ifndef NATIVE_FENCE_H
#define NATIVE_FENCE_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != 0xFFFFFFFFFFFFFFFF
#error "the published layouts are those of 64-bit machines"
#endif

typedef int32_t NTSTATUS;
typedef uint32_t D3DKMT_HANDLE;
typedef uint64_t D3DGPU_VIRTUAL_ADDRESS;
/* HANDLE: eight bytes, whatever they mean. */
typedef uint64_t NF_HANDLE;

#define STATUS_SUCCESS ((NTSTATUS)0x00000000)
#define STATUS_TIMEOUT ((NTSTATUS)0x00000102)
#define STATUS_PENDING ((NTSTATUS)0x00000103)
#define STATUS_INVALID_HANDLE ((NTSTATUS)0xC0000008)
#define STATUS_INVALID_PARAMETER ((NTSTATUS)0xC000000D)
#define STATUS_NO_MEMORY ((NTSTATUS)0xC0000017)
#define STATUS_ACCESS_DENIED ((NTSTATUS)0xC0000022)
#define STATUS_BUFFER_TOO_SMALL ((NTSTATUS)0xC0000023)
#define STATUS_INSUFFICIENT_RESOURCES ((NTSTATUS)0xC000009A)
#define STATUS_NOT_SUPPORTED ((NTSTATUS)0xC00000BB)
#define STATUS_IO_TIMEOUT ((NTSTATUS)0xC00000B5)
#define STATUS_DEVICE_BUSY ((NTSTATUS)0x80000011)
#define STATUS_INTERNAL_ERROR ((NTSTATUS)0xC00000E5)
#define STATUS_NO_SUCH_DEVICE ((NTSTATUS)0xC000000E)
#define STATUS_DEVICE_REMOVED ((NTSTATUS)0xC00002B6)
#define STATUS_DRIVER_INTERNAL_ERROR ((NTSTATUS)0xC0000183)
#define STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE ((NTSTATUS)0xC01E0200)

#define D3DDDI_NATIVE_FENCE_PDD_SIZE 64
#define D3DDDI_MAX_OBJECT_WAITED_ON 32
#define D3DDDI_MAX_OBJECT_SIGNALED 32
#define D3DDDI_MAX_BROADCAST_CONTEXT 64
#define NF_OPCODE_NOP 1
#define NF_OPCODE_WAIT 2
#define NF_OPCODE_SIGNAL 3
#define NF_OPCODE_PROGRESS 4

typedef enum KMTQUERYADAPTERINFOTYPE {
  KMTQAITYPE_WDDM_3_1_CAPS = 80,
} KMTQUERYADAPTERINFOTYPE;

typedef enum D3DDDI_DOORBELLSTATUS {
  D3DDDI_DOORBELLSTATUS_CONNECTED = 0,
  D3DDDI_DOORBELLSTATUS_CONNECTED_NOTIFY_KMD = 1,
  D3DDDI_DOORBELLSTATUS_DISCONNECTED_RETRY = 2,
  D3DDDI_DOORBELLSTATUS_DISCONNECTED_ABORT = 3,
} D3DDDI_DOORBELLSTATUS;

typedef enum DXGK_FEATURE_ID {
  DXGK_FEATURE_HWSCH = 0,
  DXGK_FEATURE_USER_MODE_SUBMISSION = 4,
  DXGK_FEATURE_NATIVE_FENCE = 37,
} DXGK_FEATURE_ID;

typedef enum D3DKARG_FENCESTORAGETYPE {
  D3DKARG_FENCESTORAGETYPE_CURRENTVALUE = 0,
  D3DKARG_FENCESTORAGETYPE_MONITOREDVALUE = 1,
} D3DKARG_FENCESTORAGETYPE;

typedef enum D3DKMDT_STANDARDALLOCATION_TYPE {
  D3DKMDT_STANDARDALLOCATION_FENCESTORAGE = 6,
} D3DKMDT_STANDARDALLOCATION_TYPE;

typedef enum DXGK_INTERRUPT_TYPE {
  DXGK_INTERRUPT_DMA_COMPLETED = 1,
  DXGK_INTERRUPT_DMA_PREEMPTED = 2,
  DXGK_INTERRUPT_CRTC_VSYNC = 3,
  DXGK_INTERRUPT_DMA_FAULTED = 4,
  DXGK_INTERRUPT_DISPLAYONLY_VSYNC = 5,
  DXGK_INTERRUPT_DISPLAYONLY_PRESENT_PROGRESS = 6,
  DXGK_INTERRUPT_CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY = 7,
  DXGK_INTERRUPT_MICACAST_CHUNK_PROCESSING_COMPLETE = 8,
  DXGK_INTERRUPT_DMA_PAGE_FAULTED = 9,
  DXGK_INTERRUPT_CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY2 = 10,
  DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED = 11,
  DXGK_INTERRUPT_HWQUEUE_PAGE_FAULTED = 12,
  DXGK_INTERRUPT_HWCONTEXTLIST_SWITCH_COMPLETED = 13,
  DXGK_INTERRUPT_PERIODIC_MONITORED_FENCE_SIGNALED = 14,
  DXGK_INTERRUPT_SCHEDULING_LOG_INTERRUPT = 15,
  DXGK_INTERRUPT_GPU_ENGINE_TIMEOUT = 16,
  DXGK_INTERRUPT_SUSPEND_CONTEXT_COMPLETED = 17,
  DXGK_INTERRUPT_CRTC_VSYNC_WITH_MULTIPLANE_OVERLAY3 = 18,
  DXGK_INTERRUPT_NATIVE_FENCE_SIGNALED = 19,
  DXGK_INTERRUPT_GPU_ENGINE_STATE_CHANGE = 20,
} DXGK_INTERRUPT_TYPE;

typedef enum DXGK_ENGINE_STATE {
  DXGK_ENGINE_STATE_ACTIVE = 0,
  DXGK_ENGINE_STATE_TRANSITION_TO_F1 = 1,
  DXGK_ENGINE_STATE_HUNG = 2,
} DXGK_ENGINE_STATE;

typedef enum D3DKMDT_GRAPHICS_PREEMPTION_GRANULARITY {
  D3DKMDT_GRAPHICS_PREEMPTION_NONE = 0,
  D3DKMDT_GRAPHICS_PREEMPTION_DMA_BUFFER_BOUNDARY = 100,
  D3DKMDT_GRAPHICS_PREEMPTION_PRIMITIVE_BOUNDARY = 200,
  D3DKMDT_GRAPHICS_PREEMPTION_TRIANGLE_BOUNDARY = 300,
  D3DKMDT_GRAPHICS_PREEMPTION_PIXEL_BOUNDARY = 400,
  D3DKMDT_GRAPHICS_PREEMPTION_SHADER_BOUNDARY = 500,
} D3DKMDT_GRAPHICS_PREEMPTION_GRANULARITY;

typedef enum D3DKMDT_COMPUTE_PREEMPTION_GRANULARITY {
  D3DKMDT_COMPUTE_PREEMPTION_NONE = 0,
  D3DKMDT_COMPUTE_PREEMPTION_DMA_BUFFER_BOUNDARY = 100,
  D3DKMDT_COMPUTE_PREEMPTION_DISPATCH_BOUNDARY = 200,
  D3DKMDT_COMPUTE_PREEMPTION_THREAD_GROUP_BOUNDARY = 300,
  D3DKMDT_COMPUTE_PREEMPTION_THREAD_BOUNDARY = 400,
  D3DKMDT_COMPUTE_PREEMPTION_SHADER_BOUNDARY = 500,
} D3DKMDT_COMPUTE_PREEMPTION_GRANULARITY;

typedef enum D3DKMT_DEVICEEXECUTION_STATE {
  D3DKMT_DEVICEEXECUTION_ACTIVE = 1,
  D3DKMT_DEVICEEXECUTION_RESET = 2,
  D3DKMT_DEVICEEXECUTION_HUNG = 3,
  D3DKMT_DEVICEEXECUTION_STOPPED = 4,
  D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY = 5,
  D3DKMT_DEVICEEXECUTION_ERROR_DMAFAULT = 6,
  D3DKMT_DEVICEEXECUTION_ERROR_DMAPAGEFAULT = 7,
} D3DKMT_DEVICEEXECUTION_STATE;

typedef enum D3DKMT_DEVICESTATE_TYPE {
  D3DKMT_DEVICESTATE_EXECUTION = 1,
  D3DKMT_DEVICESTATE_PRESENT = 2,
  D3DKMT_DEVICESTATE_RESET = 3,
  D3DKMT_DEVICESTATE_PRESENT_DWM = 4,
  D3DKMT_DEVICESTATE_PAGE_FAULT = 5,
  D3DKMT_DEVICESTATE_PRESENT_QUEUE = 6,
} D3DKMT_DEVICESTATE_TYPE;

typedef enum D3DDDI_NATIVEFENCE_TYPE {
  D3DDDI_NATIVEFENCE_TYPE_DEFAULT = 0,
  D3DDDI_NATIVEFENCE_TYPE_INTRA_GPU = 1,
} D3DDDI_NATIVEFENCE_TYPE;

typedef enum D3DDDI_SYNCHRONIZATIONOBJECT_TYPE {
  D3DDDI_SYNCHRONIZATION_MUTEX = 1,
  D3DDDI_SEMAPHORE = 2,
  D3DDDI_FENCE = 3,
  D3DDDI_CPU_NOTIFICATION = 4,
  D3DDDI_MONITORED_FENCE = 5,
  D3DDDI_PERIODIC_MONITORED_FENCE = 6,
  D3DDDI_NATIVE_FENCE = 7,
  D3DDDI_SYNCHRONIZATION_TYPE_LIMIT = 8,
} D3DDDI_SYNCHRONIZATIONOBJECT_TYPE;

typedef union D3DKMT_WDDM_3_1_CAPS {
  struct {
    uint32_t NativeGpuFenceSupported : 1;
    uint32_t Reserved1 : 31;
  };
  uint32_t Value;
} D3DKMT_WDDM_3_1_CAPS;

typedef union DXGK_VIDSCHCAPS {
  struct {
    uint32_t MultiEngineAware : 1;
    uint32_t VSyncPowerSaveAware : 1;
    uint32_t PreemptionAware : 1;
    uint32_t NoDmaPatching : 1;
    uint32_t CancelCommandAware : 1;
    uint32_t No64BitAtomics : 1;
    uint32_t LowIrqlPreemptCommand : 1;
    uint32_t HwQueuePacketCap : 4;
    uint32_t NativeGpuFence : 1;
    uint32_t OptimizedNativeFenceSignaledInterrupt : 1;
    uint32_t Reserved1 : 19;
  };
  uint32_t Value;
} DXGK_VIDSCHCAPS;

typedef union DXGK_USERMODESUBMISSION_FLAGS {
  struct {
    uint32_t SecondaryDoorbellSupported : 1;
    uint32_t Reserved1 : 31;
  };
  uint32_t Value;
} DXGK_USERMODESUBMISSION_FLAGS;

typedef union D3DKMT_CREATE_DOORBELL_FLAGS {
  struct {
    uint32_t RequireSecondaryCpuVA : 1;
    uint32_t ResizeRingBufferOperation : 1;
    uint32_t Reserved1 : 30;
  };
  uint32_t Value;
} D3DKMT_CREATE_DOORBELL_FLAGS;

typedef union DXGK_CONNECTDOORBELL_FLAGS {
  struct {
    uint32_t RequireSecondaryAddress : 1;
    uint32_t Reserved1 : 31;
  };
  uint32_t Value;
} DXGK_CONNECTDOORBELL_FLAGS;

typedef union DXGKARGCB_FEATURE_NATIVEFENCE_CAPS_1 {
  struct {
    uint32_t SupportOptimizedDefaultFenceType : 1;
    uint32_t SupportIntraGpuFenceType : 1;
    uint32_t Reserved1 : 30;
  };
  uint32_t Value;
} DXGKARGCB_FEATURE_NATIVEFENCE_CAPS_1;

typedef union D3DDDI_CREATEHWQUEUEFLAGS {
  struct {
    uint32_t DisableGpuTimeout : 1;
    uint32_t NoBroadcastSignal : 1;
    uint32_t NoBroadcastWait : 1;
    uint32_t NoKmdAccess : 1;
    uint32_t UserModeSubmission : 1;
    uint32_t NativeProgressFence : 1;
    uint32_t TestQueue : 1;
    uint32_t Reserved1 : 25;
  };
  uint32_t Value;
} D3DDDI_CREATEHWQUEUEFLAGS;

typedef union DXGK_SUBMITCOMMANDFLAGS {
  struct {
    uint32_t Paging : 1;
    uint32_t Present : 1;
    uint32_t RedirectedPresent : 1;
    uint32_t NullRendering : 1;
    uint32_t Flip : 1;
    uint32_t FlipWithNoWait : 1;
    uint32_t ContextSwitch : 1;
    uint32_t Resubmission : 1;
    uint32_t Reserved1 : 24;
  };
  uint32_t Value;
} DXGK_SUBMITCOMMANDFLAGS;

typedef union DXGKCB_NOTIFY_INTERRUPT_DATA_FLAGS {
  struct {
    uint32_t ValidPhysicalAdapterMask : 1;
    uint32_t HsyncFlipCompletion : 1;
    uint32_t EvaluateLegacyMonitoredFences : 1;
    uint32_t Reserved1 : 29;
  };
  uint32_t Value;
} DXGKCB_NOTIFY_INTERRUPT_DATA_FLAGS;

typedef union DXGK_UPDATECURRENTVALUESFROMCPU_FLAGS {
  struct {
    uint32_t AlwaysSignaled : 1;
    uint32_t NotificationOnly : 1;
    uint32_t Reserved1 : 30;
  };
  uint32_t Value;
} DXGK_UPDATECURRENTVALUESFROMCPU_FLAGS;

typedef union D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS {
  struct {
    uint32_t Shared : 1;
    uint32_t NtSecuritySharing : 1;
    uint32_t CrossAdapter : 1;
    uint32_t TopOfPipeline : 1;
    uint32_t NoSignal : 1;
    uint32_t NoWait : 1;
    uint32_t NoSignalMaxValueOnTdr : 1;
    uint32_t NoGPUAccess : 1;
    uint32_t SignalByKmd : 1;
    uint32_t Reserved1 : 1;
    uint32_t UnwaitCpuWaitersOnlyOnDestroy : 1;
    uint32_t Reserved2 : 20;
    uint32_t D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_RESERVED0 : 1;
  };
  uint32_t Value;
} D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS;

typedef union D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS {
  struct {
    uint32_t WaitAny : 1;
    uint32_t Reserved1 : 31;
  };
  uint32_t Value;
} D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS;

typedef union D3DDDICB_SIGNALFLAGS {
  struct {
    uint32_t SignalAtSubmission : 1;
    uint32_t EnqueueCpuEvent : 1;
    uint32_t AllowFenceRewind : 1;
    uint32_t Reserved1 : 28;
    uint32_t DXGK_SIGNAL_FLAG_INTERNAL0 : 1;
  };
  uint32_t Value;
} D3DDDICB_SIGNALFLAGS;


/*
 `NF_OPENADAPTER`.
 */
typedef struct NF_OPENADAPTER {
  /*
   [in] Part of the name of the wanted Vulkan device or its driver, UTF-8; NULL: the best one.
   */
  const char *DeviceName;
  /*
   [out] The adapter.
   */
  D3DKMT_HANDLE hAdapter;
  /*
   Padding.
   */
  uint32_t padding;
} NF_OPENADAPTER;

/*
 `D3DKMT_QUERYADAPTERINFO`.
 */
typedef struct D3DKMT_QUERYADAPTERINFO {
  /*
   [in] The adapter.
   */
  D3DKMT_HANDLE hAdapter;
  /*
   [in] What is asked for.
   */
  KMTQUERYADAPTERINFOTYPE Type;
  /*
   [in] Address of the bytes that the answer is written to.
   */
  void *pPrivateDriverData;
  /*
   [in] How many they are.
   */
  uint32_t PrivateDriverDataSize;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
} D3DKMT_QUERYADAPTERINFO;

/*
 `D3DKMT_CLOSEADAPTER`.
 */
typedef struct D3DKMT_CLOSEADAPTER {
  /*
   [in] The adapter.
   */
  D3DKMT_HANDLE hAdapter;
} D3DKMT_CLOSEADAPTER;

/*
 `D3DKMT_CREATEDEVICE`.
 */
typedef struct D3DKMT_CREATEDEVICE {
  /*
   [in] The adapter; of the published union with a pointer, which is for the kernel's callers.
   */
  D3DKMT_HANDLE hAdapter;
  /*
   The other half of that union.
   */
  uint32_t padding;
  /*
   [in] `D3DKMT_CREATEDEVICEFLAGS`; zero.
   */
  uint32_t Flags;
  /*
   [out] The device.
   */
  D3DKMT_HANDLE hDevice;
  /*
   [out] For kernel-mode submission of WDDM 1.x, as all that follow: zero.
   */
  void *pCommandBuffer;
  /*
   [out] Zero.
   */
  uint32_t CommandBufferSize;
  /*
   Padding of the published structure.
   */
  uint32_t padding1;
  /*
   [out] Zero.
   */
  void *pAllocationList;
  /*
   [out] Zero.
   */
  uint32_t AllocationListSize;
  /*
   Padding of the published structure.
   */
  uint32_t padding2;
  /*
   [out] Zero.
   */
  void *pPatchLocationList;
  /*
   [out] Zero.
   */
  uint32_t PatchLocationListSize;
  /*
   Padding of the published structure.
   */
  uint32_t padding3;
} D3DKMT_CREATEDEVICE;

/*
 `NF_ENDDEVICE`.
 */
typedef struct NF_ENDDEVICE {
  /*
   [in] The device whose queues end.
   */
  D3DKMT_HANDLE hDevice;
  /*
   [in] 0.
   */
  uint32_t Flags;
  /*
   [in] How long the call waits for its queues; `UINT64_MAX`: until they are done.
   */
  uint64_t TimeoutInMilliseconds;
} NF_ENDDEVICE;

/*
 `D3DKMT_DESTROYDEVICE`.
 */
typedef struct D3DKMT_DESTROYDEVICE {
  /*
   [in] The device.
   */
  D3DKMT_HANDLE hDevice;
} D3DKMT_DESTROYDEVICE;

/*
 `D3DKMT_GETDEVICESTATE`.
 */
typedef struct D3DKMT_GETDEVICESTATE {
  /*
   [in] The device.
   */
  D3DKMT_HANDLE hDevice;
  /*
   [in] Which state.
   */
  D3DKMT_DEVICESTATE_TYPE StateType;
  /*
   [out] The first member of a union of 48 bytes.
   */
  D3DKMT_DEVICEEXECUTION_STATE ExecutionState;
  /*
   The rest of that union: the other types' states.
   */
  uint32_t other_states[11];
} D3DKMT_GETDEVICESTATE;

/*
 `D3DDDI_NATIVEFENCEMAPPING`: where a program finds a fence's values.
 */
typedef struct D3DDDI_NATIVEFENCEMAPPING {
  /*
   CurrentValue for the CPU, read-only (NF-02); it may be polled (NF-27).
   */
  const void *CurrentValueCpuVa;
  /*
   CurrentValue for the GPU, to read and write.
   */
  D3DGPU_VIRTUAL_ADDRESS CurrentValueGpuVa;
  /*
   MonitoredValue for the GPU, to read.
   */
  D3DGPU_VIRTUAL_ADDRESS MonitoredValueGpuVa;
  /*
   Reserved.
   */
  uint8_t Reserved[32];
} D3DDDI_NATIVEFENCEMAPPING;

/*
 `D3DDDI_NATIVEFENCEINFO`.
 */
typedef struct D3DDDI_NATIVEFENCEINFO {
  /*
   [in] Where CurrentValue starts (NF-28).
   */
  uint64_t InitialFenceValue;
  /*
   [in] Engines of a linked adapter that the fence is for.
   */
  uint32_t EngineAffinity;
  /*
   [in] Which type.
   */
  D3DDDI_NATIVEFENCE_TYPE Type;
  /*
   [in] What its handles may do, and who may have one.
   */
  D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS Flags;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
  /*
   [out] Where its values lie.
   */
  struct D3DDDI_NATIVEFENCEMAPPING NativeFenceMapping;
  /*
   Reserved. (SDK 28000 has PhysicalAdapterIndex in the first four bytes.)
   */
  uint8_t Reserved[28];
  /*
   Padding of the published structure.
   */
  uint32_t padding1;
} D3DDDI_NATIVEFENCEINFO;

/*
 `D3DKMT_CREATENATIVEFENCE`.
 */
typedef struct D3DKMT_CREATENATIVEFENCE {
  /*
   [in] The device.
   */
  D3DKMT_HANDLE hDevice;
  /*
   [out] The fence.
   */
  D3DKMT_HANDLE hSyncObject;
  /*
   [in, out] What user side and driver tell each other.
   */
  uint8_t PrivateDriverData[D3DDDI_NATIVE_FENCE_PDD_SIZE];
  /*
   [in, out] How, and where its values lie.
   */
  struct D3DDDI_NATIVEFENCEINFO Info;
  /*
   [in] Zero.
   */
  uint32_t Flags;
  /*
   Reserved.
   */
  uint8_t Reserved[28];
} D3DKMT_CREATENATIVEFENCE;

/*
 `NF_SHAREOBJECT`.
 */
typedef struct NF_SHAREOBJECT {
  /*
   [in] The fence, created with Shared.
   */
  D3DKMT_HANDLE hSyncObject;
  /*
   Padding.
   */
  uint32_t padding;
  /*
   [out] A file descriptor, the caller's to close.
   */
  NF_HANDLE hNtHandle;
} NF_SHAREOBJECT;

/*
 `D3DKMT_OPENNATIVEFENCEFROMNTHANDLE`, in the first form of SDK 26100.
 */
typedef struct D3DKMT_OPENNATIVEFENCEFROMNTHANDLE {
  /*
   [in] The shared handle.
   */
  NF_HANDLE hNtHandle;
  /*
   [in] The device that opens it.
   */
  D3DKMT_HANDLE hDevice;
  /*
   [in] Engines of a linked adapter that the handle is for.
   */
  uint32_t EngineAffinity;
  /*
   [in] What the handle may do.
   */
  D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS Flags;
  /*
   [out] The fence.
   */
  D3DKMT_HANDLE hSyncObject;
  /*
   [out] Where its values lie for this process.
   */
  struct D3DDDI_NATIVEFENCEMAPPING NativeFenceMapping;
  /*
   Reserved.
   */
  uint8_t Reserved[32];
} D3DKMT_OPENNATIVEFENCEFROMNTHANDLE;

/*
 `D3DKMT_CREATEHWCONTEXT`.
 */
typedef struct D3DKMT_CREATEHWCONTEXT {
  /*
   [in] The device.
   */
  D3DKMT_HANDLE hDevice;
  /*
   [in] Node of the adapter.
   */
  uint32_t NodeOrdinal;
  /*
   [in] Exactly one bit, 1 << EngineOrdinal (HQ-11).
   */
  uint32_t EngineAffinity;
  /*
   [in] `D3DDDI_CREATEHWCONTEXTFLAGS`; zero.
   */
  uint32_t Flags;
  /*
   [in] Bytes of private data.
   */
  uint32_t PrivateDriverDataSize;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
  /*
   [in] Address of the private data.
   */
  void *pPrivateDriverData;
  /*
   [out] The context.
   */
  D3DKMT_HANDLE hHwContext;
  /*
   Padding of the published structure.
   */
  uint32_t padding1;
} D3DKMT_CREATEHWCONTEXT;

/*
 `D3DKMT_DESTROYHWCONTEXT`.
 */
typedef struct D3DKMT_DESTROYHWCONTEXT {
  /*
   [in] The context.
   */
  D3DKMT_HANDLE hHwContext;
} D3DKMT_DESTROYHWCONTEXT;

/*
 `D3DDDI_NATIVEFENCELOGDETAIL` (SDK 28000): where the two logs of a queue lie, for the GPU; a
 program has no mapping of them.
 */
typedef struct D3DDDI_NATIVEFENCELOGDETAIL {
  /*
   Entries of the log of waits.
   */
  uint32_t WaitLogNumberOfEntries;
  /*
   Entries of the log of signals.
   */
  uint32_t SignalLogNumberOfEntries;
  /*
   Address of the log of waits.
   */
  D3DGPU_VIRTUAL_ADDRESS WaitLogGpuBaseAddress;
  /*
   Address of the log of signals.
   */
  D3DGPU_VIRTUAL_ADDRESS SignalLogGpuBaseAddress;
  /*
   Reserved.
   */
  uint8_t Reserved[64];
} D3DDDI_NATIVEFENCELOGDETAIL;

/*
 `D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION` (SDK 28000).
 */
typedef struct D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION {
  /*
   [in] The context.
   */
  D3DKMT_HANDLE hHwContext;
  /*
   [in] The bits of these flags are not published; zero.
   */
  uint32_t Flags;
  /*
   [in] Allocation of the ring.
   */
  D3DKMT_HANDLE hRingBuffer;
  /*
   [in] Allocation of the ring's control words.
   */
  D3DKMT_HANDLE hRingBufferControl;
  /*
   [in, out] What user side and driver tell each other.
   */
  uint8_t PrivateDriverData[64];
  /*
   [out] The queue.
   */
  D3DKMT_HANDLE hHwQueue;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
  /*
   [out] Where the program reads the doorbell's status, 64 bits.
   */
  const void *DoorbellStatusCpuVa;
  /*
   [out] The progress fence.
   */
  D3DKMT_HANDLE hProgressFence;
  /*
   Padding of the published structure.
   */
  uint32_t padding1;
  /*
   [out] Its values.
   */
  struct D3DDDI_NATIVEFENCEMAPPING ProgressFenceMapping;
  /*
   [out] Where the program publishes the last queued value.
   */
  void *ProgressFenceLastQueuedValueCpuVa;
  /*
   [out] The logs.
   */
  struct D3DDDI_NATIVEFENCELOGDETAIL LogBufferInfo;
  /*
   Reserved.
   */
  uint8_t Reserved[64];
} D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION;

/*
 `D3DKMT_DESTROYHWQUEUE`.
 */
typedef struct D3DKMT_DESTROYHWQUEUE {
  /*
   [in] The queue.
   */
  D3DKMT_HANDLE hHwQueue;
} D3DKMT_DESTROYHWQUEUE;

/*
 `D3DKMT_CREATE_DOORBELL`.
 */
typedef struct D3DKMT_CREATE_DOORBELL {
  /*
   [in] The queue.
   */
  D3DKMT_HANDLE hHwQueue;
  /*
   [in] Allocation of the ring.
   */
  D3DKMT_HANDLE hRingBuffer;
  /*
   [in] Allocation of the ring's control words.
   */
  D3DKMT_HANDLE hRingBufferControl;
  /*
   [in] How.
   */
  D3DKMT_CREATE_DOORBELL_FLAGS Flags;
  /*
   [in] Bytes of private data.
   */
  uint32_t PrivateDriverDataSize;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
  /*
   [in] Address of the private data.
   */
  void *PrivateDriverData;
  /*
   [out] Where the program rings.
   */
  void *DoorbellCPUVirtualAddress;
  /*
   [out] The second address.
   */
  void *DoorbellSecondaryCPUVirtualAddress;
  /*
   [out] Where the program reads the status, 64 bits.
   */
  const void *DoorbellStatusCPUVirtualAddress;
  /*
   [out] Where the program publishes the last queued value.
   */
  void *HwQueueProgressFenceLastQueuedValueCPUVirtualAddress;
  /*
   [out] The doorbell.
   */
  D3DKMT_HANDLE hDoorbell;
  /*
   Padding of the published structure.
   */
  uint32_t padding1;
} D3DKMT_CREATE_DOORBELL;

/*
 `D3DKMT_CONNECT_DOORBELL`, as SDK 26100 has it.
 */
typedef struct D3DKMT_CONNECT_DOORBELL {
  /*
   [in] The doorbell.
   */
  D3DKMT_HANDLE hDoorbell;
  /*
   [in] Zero.
   */
  uint32_t Flags;
} D3DKMT_CONNECT_DOORBELL;

/*
 `D3DKMT_DESTROY_DOORBELL`.
 */
typedef struct D3DKMT_DESTROY_DOORBELL {
  /*
   [in] The doorbell.
   */
  D3DKMT_HANDLE hDoorbell;
} D3DKMT_DESTROY_DOORBELL;

/*
 `D3DKMT_NOTIFY_WORK_SUBMISSION`.
 */
typedef struct D3DKMT_NOTIFY_WORK_SUBMISSION {
  /*
   [in] The doorbell that was rung.
   */
  D3DKMT_HANDLE hDoorbell;
  /*
   [in] Zero.
   */
  uint32_t Flags;
} D3DKMT_NOTIFY_WORK_SUBMISSION;

/*
 `D3DDDI_SYNCHRONIZATIONOBJECTINFO2`, with the member of its union that monitored fences have.
 */
typedef struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2 {
  /*
   [in] Which object.
   */
  D3DDDI_SYNCHRONIZATIONOBJECT_TYPE Type;
  /*
   [in] How.
   */
  D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS Flags;
  struct {
    /*
     [in] Where a monitored fence starts.
     */
    uint64_t InitialFenceValue;
    /*
     [out] Its value for the CPU, read-only.
     */
    const void *FenceValueCPUVirtualAddress;
    /*
     [out] Its value for the GPU.
     */
    D3DGPU_VIRTUAL_ADDRESS FenceValueGPUVirtualAddress;
    /*
     [in] Engines of a linked adapter that it is for.
     */
    uint32_t EngineAffinity;
    /*
     Padding, published as such.
     */
    uint32_t Padding;
  } MonitoredFence;
  /*
   The rest of the union.
   */
  uint64_t union_rest[4];
  /*
   [out] Its shared handle.
   */
  NF_HANDLE SharedHandle;
} D3DDDI_SYNCHRONIZATIONOBJECTINFO2;

/*
 `D3DKMT_CREATESYNCHRONIZATIONOBJECT2`.
 */
typedef struct D3DKMT_CREATESYNCHRONIZATIONOBJECT2 {
  /*
   [in] The device.
   */
  D3DKMT_HANDLE hDevice;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
  /*
   [in, out] Which object, and how.
   */
  struct D3DDDI_SYNCHRONIZATIONOBJECTINFO2 Info;
  /*
   [out] The object.
   */
  D3DKMT_HANDLE hSyncObject;
  /*
   Padding of the published structure.
   */
  uint32_t padding1;
} D3DKMT_CREATESYNCHRONIZATIONOBJECT2;

/*
 `D3DKMT_DESTROYSYNCHRONIZATIONOBJECT`.
 */
typedef struct D3DKMT_DESTROYSYNCHRONIZATIONOBJECT {
  /*
   [in] The fence.
   */
  D3DKMT_HANDLE hSyncObject;
} D3DKMT_DESTROYSYNCHRONIZATIONOBJECT;

/*
 `D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU`.
 */
typedef struct D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU {
  /*
   [in] The device.
   */
  D3DKMT_HANDLE hDevice;
  /*
   [in] Fences, 1 to 32.
   */
  uint32_t ObjectCount;
  /*
   [in] Address of their handles.
   */
  const D3DKMT_HANDLE *ObjectHandleArray;
  /*
   [in] Address of the values that they are to reach, or greater ones.
   */
  const uint64_t *FenceValueArray;
  /*
   [in] What is told when it ends; 0: the call blocks.
   */
  NF_HANDLE hAsyncEvent;
  /*
   [in] How.
   */
  D3DDDI_WAITFORSYNCHRONIZATIONOBJECTFROMCPU_FLAGS Flags;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU;

/*
 `D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU`.
 */
typedef struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU {
  /*
   [in] The device.
   */
  D3DKMT_HANDLE hDevice;
  /*
   [in] Fences, 1 to 32.
   */
  uint32_t ObjectCount;
  /*
   [in] Address of their handles.
   */
  const D3DKMT_HANDLE *ObjectHandleArray;
  /*
   [in] Address of the values to store.
   */
  const uint64_t *FenceValueArray;
  /*
   [in] How.
   */
  D3DDDICB_SIGNALFLAGS Flags;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU;

/*
 `D3DKMT_CREATEHWQUEUE`: a queue whose packets go through the OS.
 */
typedef struct D3DKMT_CREATEHWQUEUE {
  /*
   [in] The context.
   */
  D3DKMT_HANDLE hHwContext;
  /*
   [in] How.
   */
  D3DDDI_CREATEHWQUEUEFLAGS Flags;
  /*
   [in] Bytes of private data.
   */
  uint32_t PrivateDriverDataSize;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
  /*
   [in, out] Address of the private data.
   */
  void *pPrivateDriverData;
  /*
   [out] The queue.
   */
  D3DKMT_HANDLE hHwQueue;
  /*
   [out] Its progress fence.
   */
  D3DKMT_HANDLE hHwQueueProgressFence;
  /*
   [out] Where the program reads that fence's value.
   */
  const void *HwQueueProgressFenceCPUVirtualAddress;
  /*
   [out] Where the GPU writes it.
   */
  D3DGPU_VIRTUAL_ADDRESS HwQueueProgressFenceGPUVirtualAddress;
} D3DKMT_CREATEHWQUEUE;

/*
 `D3DKMT_SUBMITCOMMANDTOHWQUEUE`.
 */
typedef struct D3DKMT_SUBMITCOMMANDTOHWQUEUE {
  /*
   [in] The queue.
   */
  D3DKMT_HANDLE hHwQueue;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
  /*
   [in] The value of the queue's progress fence when the command is finished.
   */
  uint64_t HwQueueProgressFenceId;
  /*
   [in] Where the GPU finds the command buffer.
   */
  D3DGPU_VIRTUAL_ADDRESS CommandBuffer;
  /*
   [in] Its length in bytes.
   */
  uint32_t CommandLength;
  /*
   [in] Bytes of private data.
   */
  uint32_t PrivateDriverDataSize;
  /*
   [in] Address of the private data.
   */
  const void *pPrivateDriverData;
  /*
   [in] Surfaces that the command writes.
   */
  uint32_t NumPrimaries;
  /*
   Padding of the published structure.
   */
  uint32_t padding1;
  /*
   [in] Address of their handles.
   */
  const D3DKMT_HANDLE *WrittenPrimaries;
} D3DKMT_SUBMITCOMMANDTOHWQUEUE;

/*
 `D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE`.
 */
typedef struct D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE {
  /*
   [in] The queue.
   */
  D3DKMT_HANDLE hHwQueue;
  /*
   [in] Fences, 1 to 32.
   */
  uint32_t ObjectCount;
  /*
   [in] Address of their handles.
   */
  const D3DKMT_HANDLE *ObjectHandleArray;
  /*
   [in] Address of the values that they are to reach, or greater ones.
   */
  const uint64_t *FenceValueArray;
} D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE;

/*
 `D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE`.
 */
typedef struct D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE {
  /*
   [in] How.
   */
  D3DDDICB_SIGNALFLAGS Flags;
  /*
   [in] Queues that signal.
   */
  uint32_t BroadcastHwQueueCount;
  /*
   [in] Address of their handles.
   */
  const D3DKMT_HANDLE *BroadcastHwQueueArray;
  /*
   [in] Fences, 1 to 32.
   */
  uint32_t ObjectCount;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
  /*
   [in] Address of their handles.
   */
  const D3DKMT_HANDLE *ObjectHandleArray;
  /*
   [in] Address of the values to store.
   */
  const uint64_t *FenceValueArray;
} D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE;

/*
 `D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU`.
 */
typedef struct D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU {
  /*
   [in] The context that waits.
   */
  D3DKMT_HANDLE hContext;
  /*
   [in] Fences.
   */
  uint32_t ObjectCount;
  /*
   [in] Address of their handles.
   */
  const D3DKMT_HANDLE *ObjectHandleArray;
  /*
   [in] The union's first word: address of the values of monitored fences, or one value.
   */
  const uint64_t *MonitoredFenceValueArray;
  /*
   The rest of the union.
   */
  uint64_t union_rest[7];
} D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU;

/*
 `D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU`.
 */
typedef struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU {
  /*
   [in] The context that signals.
   */
  D3DKMT_HANDLE hContext;
  /*
   [in] Fences, 1 to 32.
   */
  uint32_t ObjectCount;
  /*
   [in] Address of their handles.
   */
  const D3DKMT_HANDLE *ObjectHandleArray;
  /*
   [in] The union's first word: address of the values of monitored fences.
   */
  const uint64_t *MonitoredFenceValueArray;
  /*
   The rest of the union.
   */
  uint64_t union_rest[7];
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU;

/*
 `D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2`.
 */
typedef struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 {
  /*
   [in] Fences.
   */
  uint32_t ObjectCount;
  /*
   Padding of the published structure.
   */
  uint32_t padding;
  /*
   [in] Address of their handles.
   */
  const D3DKMT_HANDLE *ObjectHandleArray;
  /*
   [in] How.
   */
  D3DDDICB_SIGNALFLAGS Flags;
  /*
   [in] Contexts that signal.
   */
  uint32_t BroadcastContextCount;
  /*
   [in] Address of their handles.
   */
  const D3DKMT_HANDLE *BroadcastContextArray;
  /*
   [in] The union's first word: address of the values of monitored fences, or one value.
   */
  const uint64_t *MonitoredFenceValueArray;
  /*
   The rest of the union.
   */
  uint64_t union_rest[7];
} D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2;

/*
 `NF_NATIVEFENCE_PRIVATEDATA`: the private bytes of `D3DKMT_CREATENATIVEFENCE`.
 */
typedef struct NF_NATIVEFENCE_PRIVATEDATA {
  /*
   [out] The handle by which packets of the device's queues name the fence.
   */
  uint32_t PacketHandle;
  /*
   Zero.
   */
  uint32_t Reserved[15];
} NF_NATIVEFENCE_PRIVATEDATA;

/*
 `NF_HWQUEUE_PRIVATEDATA`: the private bytes of `D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION`.
 */
typedef struct NF_HWQUEUE_PRIVATEDATA {
  /*
   [in, out] Packets of the ring, a power of two of 2 to 2^20; 0 asks for 1,024.
   */
  uint64_t RingCapacity;
  /*
   [out] Where the program stores the write index: packets written since the queue was made.
   */
  void *WriteIndexCpuVa;
  /*
   [out] First packet of the ring; each is 64 bytes.
   */
  void *RingCpuVa;
  /*
   [out] Where the program reads how many packets were executed.
   */
  const void *ReadIndexCpuVa;
  /*
   [out] The handle by which packets name the progress fence.
   */
  uint32_t ProgressPacketHandle;
  /*
   Zero.
   */
  uint32_t Reserved[7];
} NF_HWQUEUE_PRIVATEDATA;

/*
 `NF_HWQUEUE_COMMAND`: one command of `D3DKMT_SUBMITCOMMANDTOHWQUEUE`; its private bytes are an array
 of them.
 */
typedef struct NF_HWQUEUE_COMMAND {
  /*
   [in] `NF_OPCODE_NOP`, which does nothing, or `NF_OPCODE_SIGNAL`: the engine stores the value.
   */
  uint32_t Opcode;
  /*
   [in] The monitored fence to signal; 0 of one that does nothing, as is the value.
   */
  D3DKMT_HANDLE hSyncObject;
  /*
   [in] The value to store.
   */
  uint64_t FenceValue;
} NF_HWQUEUE_COMMAND;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Opens a Vulkan device as an adapter: the best one, or the best with `DeviceName` in its name.

 # Errors
 `STATUS_NO_SUCH_DEVICE`: no driver, or no device of that name; `STATUS_INVALID_PARAMETER`: a name
 that is empty or no UTF-8; `STATUS_NO_MEMORY`, `STATUS_INSUFFICIENT_RESOURCES`: its engine could
 not be made; `STATUS_NOT_SUPPORTED`: what its driver says of itself cannot be. A device without
 native fences is opened all the same: its caps say so.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfOpenAdapter(struct NF_OPENADAPTER *args);

/*
 Copies the sentence on this thread's last call that failed to `buffer`, cut to `bytes` bytes with
 its final zero byte; returns its whole length without that byte. Empty if none has failed.

 # Safety
 `buffer` is NULL or has `bytes` bytes that nobody else touches during the call.
 */
size_t NfLastErrorText(uint8_t *buffer, size_t bytes);

/*
 Answers a query about an adapter: of type `KMTQAITYPE_WDDM_3_1_CAPS`, by `D3DKMT_WDDM_3_1_CAPS`
 at `pPrivateDriverData` (FQ-06).

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_NOT_SUPPORTED`: another type; `STATUS_BUFFER_TOO_SMALL`: fewer
 than 4 bytes; `STATUS_INVALID_PARAMETER`: no address for the answer.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTQueryAdapterInfo(const struct D3DKMT_QUERYADAPTERINFO *args);

/*
 Closes an adapter, and destroys the devices that were made on it.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: `args` is NULL or not aligned, as in all
 calls.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTCloseAdapter(const struct D3DKMT_CLOSEADAPTER *args);

/*
 Creates a device: `hAdapter` in, `hDevice` out; the members for command buffers are left as they
 are.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: a flag; `STATUS_INSUFFICIENT_RESOURCES`: no
 handle is left.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTCreateDevice(struct D3DKMT_CREATEDEVICE *args);

/*
 Ends the queues of a device in order (HQ-12): takes their doorbells, waits until each queue of either
 kind has executed what was queued, and destroys them. From its beginning on no queue and no doorbell is
 made and none connected; when it has succeeded, for good. All handles are there until they are destroyed,
 and so are the fences; waits for the progress of these queues for more than they have executed end with
 `STATUS_DEVICE_REMOVED`. A device that has ended ends again at once.

 An error has destroyed nothing: the queues go on, doorbells connect when they are rung next, and it can
 be tried again.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_IO_TIMEOUT`: the time-out came first; the sentence says which queue
 stands at which wait; `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`, `STATUS_DEVICE_REMOVED`,
 `STATUS_DRIVER_INTERNAL_ERROR`: a queue was stopped, or its engine is lost: destroy it, and try again;
 `STATUS_INVALID_PARAMETER`: flags; a queue without a doorbell that has not executed what was queued;
 `STATUS_DEVICE_BUSY`: another thread ends it; `STATUS_INSUFFICIENT_RESOURCES`: the engine takes no more
 queues.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call.
 */
NTSTATUS NfEndDevice(const struct NF_ENDDEVICE *args);

/*
 Destroys a device, and what was made on it: waits for its fences end, packets of its queues are
 executed no more. Who wants executed what was queued calls `NfEndDevice` before.

 # Errors
 `STATUS_INVALID_HANDLE`.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTDestroyDevice(const struct D3DKMT_DESTROYDEVICE *args);

/*
 Says whether a device runs, or what became of it: `ExecutionState` of type
 `D3DKMT_DEVICESTATE_EXECUTION`. A device that is lost stays so: its other calls but those that destroy
 return `STATUS_DEVICE_REMOVED`, and its program destroys it and makes another.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_NOT_SUPPORTED`: the states of another type.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTGetDeviceState(struct D3DKMT_GETDEVICESTATE *args);

/*
 Creates a native fence: `hSyncObject`, `Info.NativeFenceMapping` and
 `PrivateDriverData` (`NF_NATIVEFENCE_PRIVATEDATA`) out.

 `CurrentValueCpuVa` is read-only and good until the fence is destroyed; NULL where the memory has
 no mapping that cannot be written, and of type INTRA_GPU. The GPU addresses are 0: each engine of an
 adapter has a mapping of its own, so there is no one address, and packets name fences by handle. Of type
 INTRA_GPU the CPU waits for and signals nothing: these calls return `STATUS_INVALID_PARAMETER`.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_ACCESS_DENIED`: NoSignal with NoWait; `STATUS_INVALID_PARAMETER`:
 an unknown type or flag, CrossAdapter with INTRA_GPU, INTRA_GPU with an initial value, which a packet
 of the creator sets, NtSecuritySharing without Shared;
 `STATUS_NOT_SUPPORTED`: an adapter without native fences; INTRA_GPU where GetOSCaps does not report it;
 and the flags that are not built: CrossAdapter, TopOfPipeline, NoGPUAccess, SignalByKmd,
 UnwaitCpuWaitersOnlyOnDestroy; `STATUS_NO_MEMORY`, `STATUS_INSUFFICIENT_RESOURCES`;
 `STATUS_DEVICE_REMOVED`: the adapter was stopped.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTCreateNativeFence(struct D3DKMT_CREATENATIVEFENCE *args);

/*
 Makes a handle by which other processes open a fence that was created with Shared: `hNtHandle`, a file
 descriptor, out. It may be opened as often as is wanted, passed on as any descriptor is, and closed by
 `close`; while it is open the fence is there. Each that is open keeps two descriptors in flight, of
 which all programs of a user together may have as many as one may have open (`ulimit -n`).

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_ACCESS_DENIED`: a fence that was not created with Shared (NF-30);
 `STATUS_NOT_SUPPORTED`: type INTRA_GPU, its values lie in memory of a device;
 `STATUS_INSUFFICIENT_RESOURCES`: no descriptor or thread is left, or too many descriptors are in flight.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfShareObject(struct NF_SHAREOBJECT *args);

/*
 Opens a shared fence, of this process or another, on a device: `hSyncObject` and `NativeFenceMapping`
 out; the handle that packets carry in the first four bytes of `Reserved`. `hNtHandle` stays open.

 # Errors
 `STATUS_INVALID_HANDLE`: also a descriptor that `NfShareObject` did not make;
 `STATUS_INVALID_PARAMETER`: a flag, an affinity; `STATUS_NOT_SUPPORTED`: an adapter without native
 fences; `STATUS_NO_MEMORY`; `STATUS_INSUFFICIENT_RESOURCES`: also 16 processes that have it open, or
 no descriptor is left.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; nobody closes `hNtHandle` during it.
 */
NTSTATUS NfD3DKMTOpenNativeFenceFromNtHandle(struct D3DKMT_OPENNATIVEFENCEFROMNTHANDLE *args);

/*
 Creates a hardware context on a node: `hHwContext` out.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: flags or private data, a node that the
 adapter has not, an affinity that is not 1; `STATUS_DEVICE_REMOVED`: the adapter was stopped.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTCreateHwContext(struct D3DKMT_CREATEHWCONTEXT *args);

/*
 Destroys a hardware context and its queues.

 # Errors
 `STATUS_INVALID_HANDLE`.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTDestroyHwContext(const struct D3DKMT_DESTROYHWCONTEXT *args);

/*
 Creates a hardware queue for user-mode submission, with its ring, its progress fence and its two
 logs. `PrivateDriverData` is `NF_HWQUEUE_PRIVATEDATA`: the ring's capacity in, where it lies out.

 The addresses are good until the queue is destroyed. The logs' GPU addresses are 0, as a fence's. The
 library makes the ring: there are no allocations in this interface yet, so `hRingBuffer` and
 `hRingBufferControl` are 0.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: flags, a capacity that no ring has;
 `STATUS_NOT_SUPPORTED`: a ring of the caller's own; `STATUS_NO_MEMORY`,
 `STATUS_INSUFFICIENT_RESOURCES`; `STATUS_DEVICE_REMOVED`: the adapter was stopped, the engine is
 lost, or the device ends or has ended (`NfEndDevice`; try again if that fails).

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTCreateHwQueueForUserModeSubmission(struct D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION *args);

/*
 Destroys a hardware queue of either kind, its doorbell and its progress fence; what it has not
 executed is dropped.

 # Errors
 `STATUS_INVALID_HANDLE`.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTDestroyHwQueue(const struct D3DKMT_DESTROYHWQUEUE *args);

/*
 Creates the doorbell of a queue, disconnected: the addresses and `hDoorbell` out. It is rung as
 `NfRingSubmit` of `native_fence_ring.h` does. No engine has the ring of a queue without a doorbell; the
 addresses of another doorbell of the same queue are the same.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: an unknown flag, private data, a queue that
 has a doorbell; `STATUS_NOT_SUPPORTED`: a second address, another size of the ring, a ring of
 the caller's own; `STATUS_DEVICE_REMOVED`: the adapter was stopped, or the device ends or has ended
 (`NfEndDevice`; try again if that fails); `STATUS_NO_MEMORY`, `STATUS_INSUFFICIENT_RESOURCES`: the driver's.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTCreateDoorbell(struct D3DKMT_CREATE_DOORBELL *args);

/*
 Connects a doorbell: packets are executed from now on.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: flags;
 `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`: the queue was stopped at a packet;
 `STATUS_DEVICE_REMOVED`: the device is lost, the adapter was stopped, or the device ends or has ended
 (`NfEndDevice`; try again if that fails);
 `STATUS_INSUFFICIENT_RESOURCES`: the engine takes no more queues; `STATUS_NO_MEMORY`.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTConnectDoorbell(const struct D3DKMT_CONNECT_DOORBELL *args);

/*
 Disconnects and destroys a doorbell; what the engine has not executed stays in the ring, and runs when
 another doorbell of the queue is connected.

 # Errors
 `STATUS_INVALID_HANDLE`.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTDestroyDoorbell(const struct D3DKMT_DESTROY_DOORBELL *args);

/*
 Tells the driver that a doorbell was rung whose status read CONNECTED_NOTIFY_KMD.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: flags.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTNotifyWorkSubmission(const struct D3DKMT_NOTIFY_WORK_SUBMISSION *args);

/*
 Creates a monitored fence (MF-01): `Info.Type` is `D3DDDI_MONITORED_FENCE`; `hSyncObject` and the
 addresses in `Info.MonitoredFence` out. Every adapter has them, those without native fences too.

 `FenceValueCPUVirtualAddress` is read-only and good until the fence is destroyed; NULL where the
 memory has no mapping that cannot be written. On a device without 64-bit atomics the low 32 bits of
 the value stand there (MF-06), unless NoGPUAccess is set. `FenceValueGPUVirtualAddress` is 0: each
 engine of an adapter has a mapping of its own, so there is no one address, and commands name fences
 by handle.

 Of the flags NoSignal, NoWait, NoGPUAccess and NoSignalMaxValueOnTdr are honoured.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_ACCESS_DENIED`: NoSignal with NoWait; `STATUS_INVALID_PARAMETER`: a
 type that is none, or that of native fences, an unknown flag, NtSecuritySharing without Shared or
 Shared without it, an affinity above 1; `STATUS_NOT_SUPPORTED`: the other types, and the flags that
 are not built: Shared, CrossAdapter, TopOfPipeline, SignalByKmd, UnwaitCpuWaitersOnlyOnDestroy;
 `STATUS_NO_MEMORY`, `STATUS_INSUFFICIENT_RESOURCES`; `STATUS_DEVICE_REMOVED`: the adapter was
 stopped.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTCreateSynchronizationObject2(struct D3DKMT_CREATESYNCHRONIZATIONOBJECT2 *args);

/*
 Destroys a fence, native or monitored: waits for it end with `STATUS_INVALID_HANDLE`, packets that
 name it fault their queue, and a kernel-mode queue that waits for it or comes to signal it stops.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: a progress fence, which goes with its
 queue.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTDestroySynchronizationObject(const struct D3DKMT_DESTROYSYNCHRONIZATIONOBJECT *args);

/*
 Blocks until all fences, native or monitored, have had their values or greater ones, or one of them
 with WaitAny (NF-22, MF-04). The call has no time-out: a wait that has no chance ends with an error.

 With `hAsyncEvent` it returns at once. That is the number of an eventfd of the program's, made with
 `EFD_NONBLOCK`, whose counter gets 1 when the wait has ended, well or with an error (NF-25); the same
 call without it then returns at once, and says how, unless a fence was rewound meanwhile. It is
 duplicated: the program may close its own after the call. The wait stands until it has ended, which
 the end of a fence or of the device does too.

 # Errors
 `STATUS_INVALID_HANDLE`: also when a fence is destroyed during the wait, and an event that is no
 eventfd; `STATUS_INVALID_PARAMETER`: 0 or more than 32 fences, an array that is NULL, an unknown flag,
 an event that blocks, a value too far for a monitored fence of 32 bits (MF-06);
 `STATUS_INSUFFICIENT_RESOURCES`: no file descriptor is left to duplicate the
 event (EMFILE); `STATUS_NOT_SUPPORTED`: an event where no /proc is; `STATUS_ACCESS_DENIED`: a fence made with NoWait (NF-23);
 `STATUS_DEVICE_REMOVED`, `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`, `STATUS_DRIVER_INTERNAL_ERROR`: who
 would have signalled is lost or has ended, was stopped at a packet, or at a command that its driver
 refused.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it. Nobody closes the event during the call.
 */
NTSTATUS NfD3DKMTWaitForSynchronizationObjectFromCpu(const struct D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU *args);

/*
 Stores values to up to 32 fences, native or monitored, all of them or none (NF-17, NF-20, MF-04).

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: 0 or more than 32 fences, one that is named
 twice, an array that is NULL, another flag than AllowFenceRewind, a value below CurrentValue without
 that flag (NF-21), a value too far for a monitored fence of 32 bits (MF-06); `STATUS_ACCESS_DENIED`: a fence made with NoSignal, or a progress fence (NF-23);
 `STATUS_DEVICE_REMOVED`: the adapter was stopped.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTSignalSynchronizationObjectFromCpu(const struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU *args);

/*
 Creates a hardware queue of kernel-mode submission on the context's node: `hHwQueue`, and its progress
 fence, a monitored one, out. Every adapter with engines has them, those without native fences too. It
 is destroyed by `NfD3DKMTDestroyHwQueue`.

 The address of the progress fence is good until the queue is destroyed; that for the GPU is 0, as a
 fence's. NoBroadcastSignal and NoBroadcastWait change nothing: no call names several queues.

 # Errors
 `STATUS_INVALID_HANDLE`; `STATUS_INVALID_PARAMETER`: an unknown flag, private data;
 `STATUS_NOT_SUPPORTED`: UserModeSubmission, which has a call of its own, and the flags that are not
 built: DisableGpuTimeout, NoKmdAccess, NativeProgressFence, TestQueue; `STATUS_NO_MEMORY`,
 `STATUS_INSUFFICIENT_RESOURCES`; `STATUS_DEVICE_REMOVED`: the adapter was stopped, the engine is
 lost, or the device ends or has ended (`NfEndDevice`; try again if that fails).

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTCreateHwQueue(struct D3DKMT_CREATEHWQUEUE *args);

/*
 Queues a command of a kernel-mode queue and returns at once: 1 to 511 of `NF_HWQUEUE_COMMAND` at
 `pPrivateDriverData`, which the engine executes one after the other when all that was queued before
 is over. There are no allocations in this interface yet: `CommandBuffer` and `CommandLength` are 0.

 `HwQueueProgressFenceId` is what the progress fence then has: one more than that of the command
 before, the first being 1, and one more for each signal in it, which the engine tells of by the same
 fence. So a command of another thread that comes before its turn is refused.

 # Errors
 `STATUS_INVALID_HANDLE`: also a queue of user-mode submission, and a fence of another device;
 `STATUS_INVALID_PARAMETER`: another progress value, a size that is not that of 1 to 511 commands, no
 address, an opcode that is none or is a wait or a progress, a native fence, a value too far for a fence
 of 32 bits (MF-06); `STATUS_ACCESS_DENIED`: a fence made with NoSignal or NoGPUAccess, a progress
 fence; `STATUS_NOT_SUPPORTED`: a command buffer, surfaces, and opcodes that store to allocations;
 `STATUS_DEVICE_REMOVED`, `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`: the queue was stopped;
 `STATUS_DRIVER_INTERNAL_ERROR`: by its driver, which refused a command of it: make the queue anew, and the
 adapter should that be refused too.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTSubmitCommandToHwQueue(const struct D3DKMT_SUBMITCOMMANDTOHWQUEUE *args);

/*
 Queues waits of a kernel-mode queue for up to 32 fences, native or monitored, all of them or none, and
 returns at once: what is queued afterwards is held back until each has had its value or a greater one
 (MF-03). A fence that is destroyed meanwhile stops the queue.

 # Errors
 `STATUS_INVALID_HANDLE`: also a queue of user-mode submission, whose waits are packets, and a fence of
 another device; `STATUS_INVALID_PARAMETER`: 0 or more than 32 fences, an array that is NULL, a value
 too far for a fence of 32 bits (MF-06); `STATUS_ACCESS_DENIED`: a fence made with NoWait;
 `STATUS_DEVICE_REMOVED`, `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`: the queue was stopped;
 `STATUS_DRIVER_INTERNAL_ERROR`: by its driver, which refused a command of it: make the queue anew, and the
 adapter should that be refused too.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTSubmitWaitForSyncObjectsToHwQueue(const struct D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE *args);

/*
 Queues signals of a kernel-mode queue for up to 32 fences, native or monitored, all of them or none,
 and returns at once: the OS stores the values when all that was queued before has completed (MF-05), or
 with SignalAtSubmission when all commands among it were submitted to the engine: should the engine be
 taken off them and get them again, nothing is stored again (PR-17). A queue stores any value, so AllowFenceRewind changes nothing (NF-21). `BroadcastHwQueueArray` names
 one queue.

 # Errors
 `STATUS_INVALID_HANDLE`: also a queue of user-mode submission, whose signals are packets, and a fence
 of another device; `STATUS_INVALID_PARAMETER`: 0 or more than 32 fences, 0 or more than 64 queues, an
 array that is NULL, an unknown flag, a value too far for a fence of 32 bits (MF-06);
 `STATUS_ACCESS_DENIED`: a fence made with NoSignal, a progress fence; `STATUS_NOT_SUPPORTED`: 2 to 64
 queues, EnqueueCpuEvent; `STATUS_DEVICE_REMOVED`,
 `STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE`: the queue was stopped.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTSubmitSignalSyncObjectsToHwQueue(const struct D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE *args);

/*
 As `NfD3DKMTSubmitWaitForSyncObjectsToHwQueue`, for a context that has one kernel-mode queue (choice:
 contexts of this interface have no packets but those of their queues).

 # Errors
 As that; `STATUS_INVALID_HANDLE`: no context; `STATUS_INVALID_PARAMETER`: also a context without a
 kernel-mode queue, or with several.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTWaitForSynchronizationObjectFromGpu(const struct D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU *args);

/*
 As `NfD3DKMTSubmitSignalSyncObjectsToHwQueue`, for a context that has one kernel-mode queue.

 # Errors
 As that; `STATUS_INVALID_HANDLE`: no context; `STATUS_INVALID_PARAMETER`: also a context without a
 kernel-mode queue, or with several.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTSignalSynchronizationObjectFromGpu(const struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU *args);

/*
 The same with flags; `BroadcastContextArray` names one context.

 # Errors
 As those two.

 # Safety
 `args` is NULL, not aligned, or points to such a structure, which nobody else touches during the
 call; and so do the pointers in it.
 */
NTSTATUS NfD3DKMTSignalSynchronizationObjectFromGpu2(const struct D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 *args);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NATIVE_FENCE_H */
