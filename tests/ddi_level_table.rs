//! The level of each DDI, as published (`DXGKDDI_*` pages; those of user-mode submission say it of
//! all doorbell DDIs at once), or as chosen where a call is this project's own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use native_fence::abi::wddm::FenceStorageValueType;
use native_fence::abi::{
    AllocationId, FenceId, HandleAccess, KernelId, LocalHandle, LogType, WordGroup,
};
use native_fence::kmd::{
    Callbacks, ConnectDoorbell, ContextAllocation, ContextAllocationId, ContextHandle, ContextKind,
    CreateAllocation, CreateContext, CreateContextAllocation, CreateDoorbell, CreateDoorbellFlags,
    CreateHwQueue, CreateHwQueueFlags, CreateKernel, CreateKernelQueue, CreateNativeFence,
    CrossAdapterSignals, CurrentValueUpdate, Ddi, DdiError, DisconnectDoorbell, DoorbellId, Driver,
    FeatureError, FeatureId, FenceSegments, HwQueueHandle, Interrupt, IsFeatureEnabledResult,
    KernelCode, Level, LevelChecked, MonitoredValueUpdate, NativeFenceInterface, NativeFenceType,
    OpenAllocation, OpenNativeFence, Place, PreemptCommand, ProcessId, QueryFeatureInterface,
    SetCrossDoorbells, SetNativeFenceLogBuffer, SuspendContext, UpdateCurrentValuesFlags,
    WrongLevel,
};
use native_fence::shared::{Block, Region};
use native_fence::vulkan::shaders;
use std::sync::{Arc, Mutex};

/// An OS that writes down what it is told of levels.
#[derive(Default)]
struct Notes(Mutex<Vec<WrongLevel>>);

impl Callbacks for Notes {
    fn notify_interrupt(&self, interrupt: Interrupt) {
        panic!("there is no engine: {interrupt:?}");
    }

    fn disconnect_doorbell(&self, args: &DisconnectDoorbell) {
        panic!("there is no doorbell: {args:?}");
    }

    fn create_context_allocation(
        &self,
        args: &CreateContextAllocation,
    ) -> Result<ContextAllocation, DdiError> {
        panic!("there is no context: {args:?}");
    }

    fn destroy_context_allocation(&self, id: ContextAllocationId) {
        panic!("there is no context: {id:?}");
    }

    fn wrong_level(&self, wrong: WrongLevel) {
        self.0.lock().unwrap().push(wrong);
    }

    fn is_feature_enabled(&self, _: FeatureId) -> IsFeatureEnabledResult {
        IsFeatureEnabledResult::default()
    }

    fn query_feature_interface(
        &self,
        query: &QueryFeatureInterface,
    ) -> Result<NativeFenceInterface, FeatureError> {
        Err(FeatureError::Unknown(query.feature))
    }
}

/// What the calls name: nothing that the driver knows, so none has an effect.
struct Names {
    os: Arc<Notes>,
    region: Arc<Region>,
    block: Block,
}

impl Names {
    fn place(&self) -> Place<'_> {
        Place {
            region: &self.region,
            offset: 0,
        }
    }
}

const QUEUE: HwQueueHandle = HwQueueHandle {
    node_ordinal: 0,
    number: 0,
};
const CONTEXT: ContextHandle = ContextHandle {
    node_ordinal: 0,
    number: 0,
};
const FENCE: FenceId = FenceId {
    slot: 0,
    generation: 1,
};
const PROCESS: ProcessId = ProcessId(1);
const DOORBELL: DoorbellId = DoorbellId(1);
const ALLOCATION: AllocationId = AllocationId(1);

fn handle() -> LocalHandle {
    LocalHandle::new(0, 1).unwrap()
}

type MadeCall = fn(&dyn Ddi, &Names);

/// Each call with its level.
const CALLS: &[(&str, Level, MadeCall)] = &[
    ("Start", Level::Passive, |ddi, names| {
        let _ = ddi.start(Arc::clone(&names.os) as _);
    }),
    ("Stop", Level::Passive, |ddi, _| ddi.stop()),
    ("NativeFenceCaps", Level::Passive, |ddi, _| {
        ddi.native_fence_caps();
    }),
    ("VidSchCaps", Level::Passive, |ddi, _| {
        ddi.vidsch_caps();
    }),
    ("CalibrateGpuClock", Level::Passive, |ddi, _| {
        let _ = ddi.calibrate_gpu_clock(0, 0);
    }),
    ("TakeEndedSlices", Level::Passive, |ddi, _| {
        let _ = ddi.take_ended_slices(0, false);
    }),
    ("SetCrossDoorbells", Level::Passive, |ddi, names| {
        let _ = ddi.set_cross_doorbells(&SetCrossDoorbells {
            page: &names.region,
            lines: &[1],
        });
    }),
    ("CreateNativeFence", Level::Passive, |ddi, names| {
        let _ = ddi.create_native_fence(&CreateNativeFence {
            cross_adapter: CrossAdapterSignals::No,
            global: FENCE,
            fence_type: NativeFenceType::DEFAULT,
            current_value: names.place(),
            monitored_value: names.place(),
            system_process: None,
        });
    }),
    ("OpenNativeFence", Level::Passive, |ddi, _| {
        let _ = ddi.open_native_fence(&OpenNativeFence {
            global: FENCE,
            process: PROCESS,
            local: handle(),
            access: HandleAccess::FULL,
        });
    }),
    ("CloseNativeFence", Level::Passive, |ddi, _| {
        let _ = ddi.close_native_fence(PROCESS, handle());
    }),
    ("DestroyNativeFence", Level::Passive, |ddi, _| {
        let _ = ddi.destroy_native_fence(FENCE);
    }),
    (
        "UpdateMonitoredValues",
        Level::DeviceInterrupt,
        |ddi, names| {
            let word = names.block.word(0);
            let update = MonitoredValueUpdate {
                fence: FENCE,
                value: 1,
                word,
            };
            let _ = ddi.update_monitored_values(&[update]);
        },
    ),
    (
        "UpdateCurrentValuesFromCpu",
        Level::Dispatch,
        |ddi, names| {
            let word = names.block.word(0);
            let update = CurrentValueUpdate {
                fence: FENCE,
                value: 1,
                word,
            };
            let _ =
                ddi.update_current_values_from_cpu(&[update], UpdateCurrentValuesFlags::default());
        },
    ),
    ("SetNativeFenceLogBuffer", Level::Dispatch, |ddi, names| {
        let _ = ddi.set_native_fence_log_buffer(&SetNativeFenceLogBuffer {
            hw_queue: QUEUE,
            log: LogType::Signals,
            buffer: names.place(),
            entries: 84,
            system_process: None,
        });
    }),
    ("UpdateNativeFenceLogs", Level::Dispatch, |ddi, _| {
        let _ = ddi.update_native_fence_logs(&[QUEUE]);
    }),
    ("CreateHwQueue", Level::Passive, |ddi, names| {
        let _ = ddi.create_hw_queue(&CreateHwQueue {
            process: PROCESS,
            context: CONTEXT,
            node_ordinal: 0,
            engine_affinity: 1,
            flags: CreateHwQueueFlags::USER_MODE_SUBMISSION,
            progress: names.place(),
            progress_fence: FENCE,
            progress_handle: handle(),
        });
    }),
    ("DestroyHwQueue", Level::Passive, |ddi, _| {
        ddi.destroy_hw_queue(QUEUE);
    }),
    ("CreateHwQueue", Level::Passive, |ddi, names| {
        let _ = ddi.create_kernel_queue(&CreateKernelQueue {
            process: PROCESS,
            context: CONTEXT,
            node_ordinal: 0,
            engine_affinity: 1,
            flags: CreateHwQueueFlags::default(),
            progress_fence: FENCE,
            progress_value: names.place(),
            progress_handle: handle(),
        });
    }),
    ("CreateHwContext", Level::Passive, |ddi, _| {
        let _ = ddi.create_context(&CreateContext {
            process: PROCESS,
            node_ordinal: 0,
            engine_affinity: 1,
            kind: ContextKind::Program,
        });
    }),
    ("DestroyHwContext", Level::Passive, |ddi, _| {
        ddi.destroy_context(CONTEXT);
    }),
    ("PreemptCommand", Level::Dispatch, |ddi, _| {
        let _ = ddi.preempt_command(&PreemptCommand {
            preemption_id: 1,
            node_ordinal: 0,
            engine_ordinal: 0,
        });
    }),
    (
        "SetContextSchedulingProperties",
        Level::Dispatch,
        |ddi, _| {
            let _ = ddi.set_context_scheduling_properties(CONTEXT, 1);
        },
    ),
    ("PreemptionCaps", Level::Passive, |ddi, _| {
        let _ = ddi.preemption_caps();
    }),
    ("SuspendContext", Level::Dispatch, |ddi, _| {
        let _ = ddi.suspend_context(&SuspendContext {
            context: CONTEXT,
            suspend_fence: 1,
        });
    }),
    ("ResumeContext", Level::Dispatch, |ddi, _| {
        ddi.resume_context(CONTEXT);
    }),
    ("ContextAllocationInitialised", Level::Dispatch, |ddi, _| {
        ddi.context_allocation_initialised(ContextAllocationId(1));
    }),
    ("MoveContextAllocation", Level::Passive, |ddi, names| {
        let _ = ddi.move_context_allocation(ContextAllocationId(1), names.place());
    }),
    ("CreateDoorbell", Level::Passive, |ddi, names| {
        let _ = ddi.create_doorbell(&CreateDoorbell {
            hw_queue: QUEUE,
            doorbell: DOORBELL,
            ring: names.place(),
            ring_packets: 0,
            ring_capacity: 2,
            words: &names.block,
            flags: CreateDoorbellFlags::default(),
        });
    }),
    ("DestroyDoorbell", Level::Passive, |ddi, _| {
        ddi.destroy_doorbell(DOORBELL);
    }),
    ("ConnectDoorbell", Level::Passive, |ddi, _| {
        let _ = ddi.connect_doorbell(&ConnectDoorbell::of(DOORBELL));
    }),
    ("DisconnectDoorbell", Level::Passive, |ddi, _| {
        ddi.disconnect_doorbell(DOORBELL);
    }),
    ("NotifyWorkSubmission", Level::Passive, |ddi, _| {
        ddi.notify_work_submission(DOORBELL);
    }),
    ("UserModeSubmissionCaps", Level::Passive, |ddi, _| {
        ddi.user_mode_submission_caps();
    }),
    ("CreateAllocation", Level::Passive, |ddi, names| {
        let _ = ddi.create_allocation(&CreateAllocation {
            global: ALLOCATION,
            memory: names.place(),
            bytes: 8,
        });
    }),
    ("OpenAllocation", Level::Passive, |ddi, _| {
        let _ = ddi.open_allocation(&OpenAllocation {
            global: ALLOCATION,
            process: PROCESS,
            local: handle(),
        });
    }),
    ("CloseAllocation", Level::Passive, |ddi, _| {
        ddi.close_allocation(PROCESS, handle());
    }),
    ("DestroyAllocation", Level::Passive, |ddi, _| {
        let _ = ddi.destroy_allocation(ALLOCATION);
    }),
    ("DestroyProcess", Level::Passive, |ddi, _| {
        ddi.destroy_process(PROCESS);
    }),
    // Those of this project's own.
    ("CreateKernel", Level::Passive, |ddi, _| {
        let code = KernelCode::new(shaders::ADD_WORDS.words, 32).unwrap();
        let _ = ddi.create_kernel(&CreateKernel {
            global: KernelId(1),
            process: PROCESS,
            local: handle(),
            code: &Arc::new(code),
        });
    }),
    ("CloseKernel", Level::Passive, |ddi, _| {
        ddi.close_kernel(PROCESS, handle());
    }),
    ("DestroyKernel", Level::Passive, |ddi, _| {
        let _ = ddi.destroy_kernel(KernelId(1));
    }),
    ("NativeFenceGap", Level::Passive, |ddi, _| {
        ddi.native_fence_gap();
    }),
    ("MapToGpuSystemProcess", Level::Passive, |ddi, names| {
        let _ = ddi.map_to_gpu_system_process(names.place());
    }),
    ("RemoveNativeFenceLogBuffer", Level::Dispatch, |ddi, _| {
        let _ = ddi.remove_native_fence_log_buffer(QUEUE, LogType::Verbose);
    }),
    ("AbortDoorbell", Level::Dispatch, |ddi, _| {
        ddi.abort_doorbell(QUEUE);
    }),
    (
        "GetStandardAllocationDriverData",
        Level::Passive,
        |ddi, _| {
            let current = FenceStorageValueType::CURRENT_VALUE;
            let mut data = FenceSegments::question(current, NativeFenceType::DEFAULT);
            ddi.get_standard_allocation_driver_data(&mut data).unwrap();
        },
    ),
    ("WithdrawDoorbell", Level::Passive, |ddi, _| {
        let _ = ddi.withdraw_doorbell(DOORBELL);
    }),
    ("HwQueueWait", Level::Passive, |ddi, _| {
        let _ = ddi.hw_queue_wait(QUEUE);
    }),
    ("ParkEngine", Level::Dispatch, |ddi, _| {
        ddi.park_engine(0, 1);
    }),
    ("ResumeEngine", Level::Dispatch, |ddi, _| {
        ddi.resume_engine(0);
    }),
    ("LookForInterrupts", Level::Passive, |ddi, _| {
        ddi.look_for_interrupts(&|| true, None);
    }),
    ("WatchInterrupts", Level::Passive, |ddi, _| {
        ddi.watch_interrupts(&|| true, None);
    }),
];

/// FQ-09: from its own level and from below each call is right; from each level above it is a record
/// that names the call and both levels.
///
/// Kills `create-native-fence-at-device-interrupt-level`, `set-log-at-device-interrupt-level`,
/// `disconnect-doorbell-at-dispatch-level`, `update-of-monitored-values-at-dispatch` and
/// `park-engine-belongs-at-passive-level`.
#[test]
fn fq_09_each_ddi_has_its_published_level() {
    let driver = Driver::new(Vec::new());
    let region = driver
        .providers()
        .for_words(WordGroup::CurrentValues, 4096)
        .unwrap();
    let block = Block::whole(&region.map().unwrap());
    let os = Arc::new(Notes::default());
    let names = Names { os, region, block };
    let ddi = LevelChecked::over(driver);
    ddi.start(Arc::clone(&names.os) as _).unwrap();
    for (name, documented, call) in CALLS {
        for thread in [Level::Passive, Level::Dispatch, Level::DeviceInterrupt] {
            thread.during(|| call(ddi.as_ref(), &names));
            let wrong = WrongLevel {
                ddi: name,
                thread,
                documented: *documented,
            };
            let expected = Vec::from_iter((thread > *documented).then_some(wrong));
            let noted = std::mem::take(&mut *names.os.0.lock().unwrap());
            assert_eq!(noted, expected, "{name} from {thread}");
        }
    }
}
