//! Malformed dispatches: what no kernel can be run by stops its queue, and nothing else.
//!
//! On the model every load is checked against the allocations that the queue's process has open; on the shader a
//! kernel that ran leaves its words.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod engine_processes;
    pub(crate) mod engines;
    pub(crate) mod hand_ring;
    pub(crate) mod kernels;
    pub(crate) mod until;
}

use native_fence::abi::{Dispatch, FaultCode, LocalHandle, Packet};
use native_fence::gpu::NodeError;
use native_fence::kmd::DdiError;
use native_fence::os::OsError;
use native_fence::umd::DispatchError;
use native_fence::{
    CommandList, CreateError, Device, Groups, Kernel, KernelCapability, KernelCode, KernelError,
    KernelQueueError, Parameters, SubmitError,
};
use support::engine_processes::on_every_engine_and_process;
use support::hand_ring::{Neighbour, Ring, control, with_control};
use support::kernels::{ADD_WORDS_BYTES, add_words, add_words_declaring, sums};
use support::until::LONG;

const BYTES: u64 = 4096;

/// A packet that is well: its parameters lie in `parameters`.
fn good(kernel: LocalHandle, parameters: LocalHandle) -> Packet {
    let packet = Dispatch::direct(kernel, [1, 1, 1]);
    Dispatch::with_parameters(packet, (parameters, 0), ADD_WORDS_BYTES, 3)
}

/// HQ-04, HQ-05: every way in which a dispatch can be malformed stops its queue at that packet, behind one that is
/// done; the kernel does not run, and another queue goes on.
///
/// Kills `model-any-handle-is-a-kernel`, `model-parameters-are-not-counted`, `model-groups-are-not-counted`,
/// `shader-any-handle-is-a-kernel`, `shader-parameters-are-not-counted`, `shader-groups-are-not-counted`,
/// `shader-a-reference-is-not-checked`, `model-a-reference-is-not-checked`.
#[test]
fn hq_04_a_malformed_dispatch_stops_its_queue_and_is_named() {
    on_every_engine_and_process(|adapter| {
        let (owner, device) = (adapter.create_device(), adapter.create_device());
        let mut neighbour = Neighbour::new(&owner);
        let kernel = device.create_kernel(add_words()).unwrap();
        let closed = device.create_kernel(add_words()).unwrap();
        // Of another process, in which it has a number that this one has not given to anything.
        let _fences: Vec<_> = (0..32).map(|_| owner.create_fence(0).unwrap()).collect();
        let foreign = owner.create_kernel(add_words()).unwrap();
        let [target, parameters, gone] =
            [0, 1, 2].map(|_| device.create_allocation(BYTES).unwrap());
        let fence = device.create_fence(0).unwrap();
        closed.close();
        gone.close();
        // The first words: sums of the target with 7, to the target. Then the same of what is closed.
        let reference = |of: LocalHandle, at| Dispatch::reference(of, at);
        let (t, g) = (target.handle(), gone.handle());
        parameters.write(0, &[reference(t, 0), reference(t, 0), BYTES / 8, 7]);
        parameters.write(64, &[reference(t, 0), reference(g, 0), BYTES / 8, 7]);
        parameters.write(
            128,
            &[reference(t, 0), reference(t, BYTES as u32 + 8), 1, 7],
        );
        parameters.write(192, &[reference(fence.handle(), 0), reference(t, 0), 1, 7]);
        // Counts: too many in x, in y, in z.
        parameters.write(
            256,
            &[
                65_536 | 1 << 32,
                1,
                1 | 65_536 << 32,
                1,
                1 | 1 << 32,
                65_536,
            ],
        );
        let (k, p) = (kernel.handle(), parameters.handle());
        let well = good(k, p);
        let with = |offset, bytes, references| {
            let packet = Dispatch::direct(k, [1, 1, 1]);
            Dispatch::with_parameters(packet, (p, offset), bytes, references)
        };
        let counted = |counts: LocalHandle, offset| {
            let packet = Dispatch::indirect(k, (counts, offset));
            Dispatch::with_parameters(packet, (p, 0), ADD_WORDS_BYTES, 3)
        };
        let grouped = |groups| {
            let packet = Dispatch::direct(k, groups);
            Dispatch::with_parameters(packet, (p, 0), ADD_WORDS_BYTES, 3)
        };
        let cases = [
            (good(closed.handle(), p), FaultCode::StaleHandle),
            (good(foreign.handle(), p), FaultCode::Handle),
            (good(t, p), FaultCode::Handle),
            (good(fence.handle(), p), FaultCode::Handle),
            (good(LocalHandle::from_raw(0), p), FaultCode::Handle),
            (good(k, k), FaultCode::Handle),
            (good(k, fence.handle()), FaultCode::Handle),
            (good(k, g), FaultCode::StaleHandle),
            (with(0, 0, 0), FaultCode::Parameters),
            (with(0, 24, 3), FaultCode::Parameters),
            (with(0, 40, 3), FaultCode::Parameters),
            (with(4, ADD_WORDS_BYTES, 3), FaultCode::Range),
            (with(BYTES - 24, ADD_WORDS_BYTES, 3), FaultCode::Range),
            (with(u64::MAX - 7, ADD_WORDS_BYTES, 3), FaultCode::Range),
            (with(64, ADD_WORDS_BYTES, 3), FaultCode::StaleHandle),
            (with(128, ADD_WORDS_BYTES, 3), FaultCode::Range),
            (with(192, ADD_WORDS_BYTES, 3), FaultCode::Handle),
            (with(0, ADD_WORDS_BYTES, 7), FaultCode::Handle),
            (grouped([65_536, 1, 1]), FaultCode::Groups),
            (grouped([1, 65_536, 1]), FaultCode::Groups),
            (grouped([1, 1, 65_536]), FaultCode::Groups),
            (counted(p, 256), FaultCode::Groups),
            (counted(p, 272), FaultCode::Groups),
            (counted(p, 288), FaultCode::Groups),
            (counted(p, 4), FaultCode::Range),
            (counted(p, BYTES - 8), FaultCode::Range),
            (counted(p, u64::MAX - 7), FaultCode::Range),
            (counted(g, 0), FaultCode::StaleHandle),
            (counted(fence.handle(), 0), FaultCode::Handle),
            (
                with_control(well, control(9, 2, 0, k.raw())),
                FaultCode::Length,
            ),
            (
                with_control(well, control(9, 1, 1, k.raw())),
                FaultCode::Length,
            ),
            // What kernels are not for.
            (Packet::signal(k, 1, 1), FaultCode::Handle),
            (Packet::wait(k, 1, 0), FaultCode::Handle),
            (Packet::fill(k, 0, 8, 1), FaultCode::Handle),
        ];
        for (at, (malformed, code)) in cases.into_iter().enumerate() {
            let value = at as u64 + 1;
            let mut ring = Ring::new(&device);
            ring.submit(&[
                Packet::signal(fence.handle(), value, 0),
                malformed,
                Packet::fill(t, 0, BYTES, 2),
            ]);
            assert_eq!(ring.fault(), (code, 1), "{malformed:?}");
            assert_eq!(fence.current_value(), value, "{malformed:?}");
            let mut words = [1; (BYTES / 8) as usize];
            target.read(0, &mut words);
            assert_eq!(words, [0; (BYTES / 8) as usize], "{malformed:?}");
            neighbour.goes_on();
        }
        let mut ring = Ring::new(&device);
        ring.submit(&[well, Packet::signal(fence.handle(), 1000, 0)]);
        fence.wait(1000, LONG).unwrap();
        let mut words = [0];
        target.read(63 * 8, &mut words);
        assert_eq!(words, [7], "the one that is well");
    });
}

/// HQ-05: on an adapter without a kernel a dispatch names none, and its queue is stopped.
///
/// Kills `model-a-dispatch-waits-for-a-kernel`, `shader-a-dispatch-waits-for-a-kernel`.
#[test]
fn hq_05_a_dispatch_where_there_is_no_kernel_stops_its_queue() {
    on_every_engine_and_process(|adapter| {
        let device = adapter.create_device();
        let mut neighbour = Neighbour::new(&device);
        let mut ring = Ring::new(&device);
        let handle = device.create_fence(0).unwrap().handle();
        ring.submit(&[Dispatch::direct(handle, [1, 1, 1])]);
        assert_eq!(ring.fault(), (FaultCode::Handle, 0));
        neighbour.goes_on();
    });
}

/// What cannot be recorded, registered or submitted is refused by name, and nothing of it is queued.
///
/// Kills `any-push-constants-are-a-kernels`.
#[test]
fn hq_04_what_cannot_be_dispatched_is_refused_before_it_is_queued() {
    on_every_engine_and_process(|adapter| {
        let (device, other) = (adapter.create_device(), adapter.create_device());
        refused_codes(&device);
        let kernel = device.create_kernel(add_words()).unwrap();
        assert_eq!(kernel.parameter_bytes(), ADD_WORDS_BYTES);
        let memory = device.create_allocation(BYTES).unwrap();
        let all = sums(&memory, &memory, 1);
        let mut list = CommandList::new();
        let mut refuse = |groups: Groups<'_>, parameters: &Parameters| {
            let refused = list.dispatch(&kernel, groups, parameters).unwrap_err();
            assert!(list.is_empty());
            refused
        };
        for groups in [
            [0, 1, 1],
            [1, 0, 1],
            [1, 1, 0],
            [65_536, 1, 1],
            [1, 1, u32::MAX],
        ] {
            let refused = refuse(groups.into(), &all);
            assert_eq!(refused, DispatchError::Groups(groups));
        }
        for offset in [4, BYTES - 8, BYTES, u64::MAX] {
            let refused = refuse(Groups::Indirect(&memory, offset), &all);
            assert_eq!(
                refused,
                DispatchError::Offset {
                    offset,
                    bytes: BYTES
                }
            );
        }
        for offset in [4, BYTES + 8, 1 << 32] {
            let at = Parameters::new()
                .address(&memory, offset)
                .word(0)
                .word(0)
                .word(0);
            let refused = refuse([1, 1, 1].into(), &at);
            assert_eq!(
                refused,
                DispatchError::Offset {
                    offset,
                    bytes: BYTES
                }
            );
        }
        for given in [0, 8, 24, 40] {
            let parameters = (0..given / 8).fold(Parameters::new(), Parameters::word);
            let refused = refuse([1, 1, 1].into(), &parameters);
            let takes = ADD_WORDS_BYTES;
            assert_eq!(refused, DispatchError::Parameters { given, takes });
        }
        of_another_device(&device, &other, &kernel);
    });
}

/// What is no kernel is not registered: nothing of it comes to a driver.
fn refused_codes(device: &Device) {
    let words = add_words().spirv().to_vec();
    assert_eq!(KernelCode::new(&[], 0).unwrap_err(), KernelError::NoSpirv);
    let swapped: Vec<_> = words.iter().map(|word| word.swap_bytes()).collect();
    assert_eq!(
        KernelCode::new(&swapped, 0).unwrap_err(),
        KernelError::NoSpirv
    );
    assert_eq!(
        KernelCode::new(&words[..5], 0).unwrap_err(),
        KernelError::NoMain
    );
    let entry = words.iter().position(|word| word & 0xffff == 15).unwrap();
    for cut in [1, 4, entry + 2] {
        let refused = KernelCode::new(&words[..cut], 0).unwrap_err();
        assert_eq!(refused, KernelError::Cut, "{cut} words");
    }
    // Its stage is another: OpEntryPoint Vertex.
    let mut vertex = words.clone();
    vertex[entry + 1] = 0;
    assert_eq!(
        KernelCode::new(&vertex, 0).unwrap_err(),
        KernelError::NoMain
    );
    // OpDecorate %1 Binding 0 behind all.
    let mut bound = words.clone();
    bound.extend([0x0004_0047, 1, 33, 0]);
    assert_eq!(
        KernelCode::new(&bound, 0).unwrap_err(),
        KernelError::Descriptors
    );
    // OpMemberDecorate %block 0 Offset: 8, and not 0, as if there were more before it.
    let first_members = words
        .windows(5)
        .enumerate()
        .filter_map(|(at, words)| matches!(words, [0x0005_0048, _, 0, 35, 0]).then_some(at));
    let bent = first_members.filter_map(|at| {
        let mut bent = words.clone();
        bent[at + 4] = 8;
        KernelCode::new(&bent, 0).err()
    });
    let bent: Vec<_> = bent.collect();
    assert_eq!(
        bent,
        [KernelError::PushConstants(16)],
        "of the push constants alone"
    );
    // OpTypeInt 64: the address is none.
    let long = words
        .windows(4)
        .position(|words| matches!(words, [0x0004_0015, _, 64, 0]));
    let mut longer = words.clone();
    longer[long.unwrap() + 2] = 128;
    assert_eq!(
        KernelCode::new(&longer, 0).unwrap_err(),
        KernelError::PushConstants(16)
    );
    for bytes in [4, 12, 264, u32::MAX] {
        let refused = KernelCode::new(&words, bytes).unwrap_err();
        assert_eq!(refused, KernelError::ParameterBytes(bytes));
    }
    let kernels: Vec<_> = (0..64)
        .map(|_| device.create_kernel(add_words()).unwrap())
        .collect();
    let refused = device.create_kernel(add_words()).unwrap_err();
    assert!(
        matches!(refused, CreateError::Os(OsError::Driver(_))),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("64 kernels"), "{refused}");
    drop(kernels);
    // Their places are free again.
    device.create_kernel(add_words()).unwrap();
}

/// A list that names what another device has opened is refused, and a kernel-mode queue takes no dispatch.
fn of_another_device(device: &Device, other: &Device, kernel: &Kernel) {
    let [own, foreign] = [device, other].map(|device| device.create_allocation(BYTES).unwrap());
    let mut queue = device.create_hw_queue().unwrap();
    for (counts, from) in [(&own, &foreign), (&foreign, &own)] {
        let mut list = CommandList::new();
        list.dispatch(kernel, Groups::Indirect(counts, 0), &sums(from, &own, 1))
            .unwrap();
        assert!(matches!(queue.submit(&list), Err(SubmitError::OtherDevice)));
    }
    let mut list = CommandList::new();
    list.dispatch(kernel, [1, 1, 1], &sums(&own, &own, 1))
        .unwrap();
    let mut elsewhere = other.create_hw_queue().unwrap();
    assert!(matches!(
        elsewhere.submit(&list),
        Err(SubmitError::OtherDevice)
    ));
    assert_eq!(queue.last_queued_value(), 0);
    assert_eq!(elsewhere.last_queued_value(), 0);
    let mut kernel_mode = device.create_kernel_queue().unwrap();
    let refused = kernel_mode.record(&list).unwrap_err();
    assert!(matches!(refused, KernelQueueError::Dispatch), "{refused:?}");
}

/// HQ-04: a kernel that declares a capability which its device has runs, with the feature for it turned on, or the
/// validation layers say so; one that declares another is refused by its name, and no driver gets it. The model runs Rust
/// in place of kernels.
///
/// Kills `a-capability-is-told-by-the-child`.
#[test]
fn hq_04_a_kernel_declares_what_its_device_has() {
    on_every_engine_and_process(|adapter| {
        let device = adapter.create_device();
        let memory = device.create_allocation(BYTES).unwrap();
        let (fence, mut queue) = (
            device.create_fence(0).unwrap(),
            device.create_hw_queue().unwrap(),
        );
        let has = adapter.info().map(KernelCapability::all_of);
        let mut ran = 0;
        for capability in KernelCapability::ALL {
            let needs_more = matches!(
                capability,
                // The memory model, and the extension by name: kernels of the shader library have both.
                KernelCapability::VulkanMemoryModel
                    | KernelCapability::VulkanMemoryModelDeviceScope
                    | KernelCapability::ShaderClockKHR
            );
            if needs_more {
                continue;
            }
            let code = add_words_declaring(capability.number()).unwrap();
            assert!(code.capabilities().contains(&capability));
            let created = device.create_kernel(code);
            if has.as_ref().is_some_and(|has| !has.contains(&capability)) {
                let refused = created.unwrap_err();
                assert_eq!(capability_of(&refused), Some(capability), "{refused:?}");
                let says = format!("declares the capability {capability} of SPIR-V");
                let says_why = format!("the device has no {}", capability.needs());
                let text = refused.to_string();
                assert!(text.contains(&says) && text.contains(&says_why), "{text}");
                continue;
            }
            let kernel = created.unwrap();
            ran += 1;
            memory.write(0, &[ran]);
            let mut list = CommandList::new();
            list.dispatch(&kernel, [1, 1, 1], &sums(&memory, &memory, 5))
                .unwrap();
            queue.submit(list.signal(&fence, ran)).unwrap();
            fence.wait(ran, LONG).unwrap();
            let mut sum = [0];
            memory.read(0, &mut sum);
            assert_eq!(sum, [ran + 5], "{capability}");
        }
        println!("{ran} of {} capabilities", KernelCapability::ALL.len() - 3);
    });
    // Geometry, ImageGatherExtended, UniformAndStorageBuffer16BitAccess, AtomicFloat32AddEXT.
    for number in [2, 25, 4434, 6033] {
        let refused = add_words_declaring(number).unwrap_err();
        assert_eq!(refused, KernelError::UnknownCapability(number));
        let says = format!("declares capability {number} of SPIR-V");
        assert!(refused.to_string().contains(&says), "{refused}");
    }
}

/// The one that a kernel was refused for.
fn capability_of(refused: &CreateError) -> Option<KernelCapability> {
    match refused {
        CreateError::Os(OsError::Driver(DdiError::Node(NodeError::Kernel(
            KernelError::Capability(capability),
        )))) => Some(*capability),
        _ => None,
    }
}
