//! Play: the story with one fault, in this process, and what came of it.

use super::peer::StartPeer;
use super::step::{Other, step};
use super::story::{Teller, tell};
use super::strike::struck_on;
use super::{Holdings, Planned, limit};
use crate::gpu::Injection;
use crate::supply::{MAPPINGS, THREADS};
use crate::vulkan::faults::{VulkanCall, faults};
use crate::vulkan::{Instance, InstanceOptions, LossyCall, choose};
use crate::{Adapter, AdapterOptions, TdrLevel, TdrPolicy};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Threads that were told to end do so within this: a thread's entry in the system goes after it was joined, and a driver's
/// with its instance. A spare engine that is being made when its adapter goes is made to its end, which is longest where
/// it is a process.
const SETTLES: Duration = Duration::from_secs(20);

/// What is made wrong, to see a sweep find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// It never ends.
    Hang,
    /// It says nothing of any error.
    Silent,
    /// It keeps a descriptor.
    Leak,
    /// It panics.
    Panic,
    /// The other adapter does not go on.
    Others,
}

/// Something that could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// What.
    pub step: String,
    /// What was said.
    pub error: String,
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Played {
    /// The call came to the use at which it was to fail.
    pub struck: bool,
    /// On which thread, where it was a call or a mapping, or a thread, which is named after it.
    pub struck_on: Option<String>,
    /// Errors, the first one first.
    pub told: Vec<Told>,
    /// The first of them, where it was of a step that was tried again on the same adapter: the story goes on from there, and
    /// there is no other error.
    pub tried_again: Option<Told>,
    /// What the adapter says of itself beside errors: records of recoveries, memory that it passed over.
    pub announced: Vec<String>,
    /// Those of them that an adapter said on which there was an error too.
    pub announced_with_errors: Vec<String>,
    /// Waiters that did not end, or that nobody told.
    pub hung: Vec<String>,
    /// What the other adapter said, where it did not go on.
    pub others: Option<Told>,
    /// What the process had more in the end than when it began; and an adapter after a call that was refused than before.
    pub left: Vec<String>,
    /// An adapter was reset as a whole, since its engine was lost while it paged: the story came to what that is about.
    pub resets_adapter: bool,
    /// How often each call was used.
    pub uses: BTreeMap<String, u64>,
    /// How often each call that can lose a device was, on the first engine's.
    pub losses: BTreeMap<String, u64>,
    /// How many descriptors there were at a time.
    pub descriptors: u64,
    /// The same of each chapter, beside those that were open when it began.
    pub descriptors_in: BTreeMap<String, u64>,
    /// How many mappings of shared memory were made, and files for them.
    pub mappings: u64,
    /// How many threads were started.
    pub threads: u64,
    /// The device.
    pub device: String,
}

/// Plays it. A process does so once. The story's second process is started by `start_peer`, and serves ([`serve_peer`]).
///
/// [`serve_peer`]: super::serve_peer
///
/// # Errors
/// What could not be done before any fault: without a device there is nothing to play on.
///
/// # Panics
/// The process has played before; or [`Hook::Panic`] has it.
pub fn play(
    planned: Planned,
    device: Option<&str>,
    hook: Option<Hook>,
    start_peer: &StartPeer,
) -> Result<Played, Box<dyn std::error::Error>> {
    // Nobody watches it, who would start threads at a time of his own.
    let options = AdapterOptions {
        device: device.map(str::to_owned),
        tdr: TdrPolicy {
            level: TdrLevel::Off,
            ..TdrPolicy::default()
        },
        ..AdapterOptions::default()
    };
    let instance = Instance::new(InstanceOptions::default())?;
    let adapters = instance.adapters();
    let info = choose(&adapters, device)?;
    let other = Adapter::open_on(&instance, info, &options)?;
    drop(instance);
    let mut other = Other::of(other.create_device()).map_err(|told| told.error)?;

    let injection = Injection::new(super::story::NODES.get())?;
    let _gaps = limit::fill_gaps()?;
    let before = Holdings::now();
    let base = limit::highest_descriptor();
    let mut limit = None;
    match planned {
        // The story has the limit of a chapter.
        Planned::Nothing | Planned::DescriptorIn(..) => {}
        Planned::Call(fault) => faults().plan(fault),
        Planned::Loss(call, at) => injection.device_loss(0).plan(call, at),
        Planned::Descriptor(number) => limit = Some(limit::Limit::before(number)?),
        Planned::Mapping(number) => MAPPINGS.refuse(number),
        Planned::Thread(number) => THREADS.refuse(number),
    }
    let asked = || (MAPPINGS.asked(), THREADS.asked());
    let asked_before = asked();
    let loss = injection.device_loss(0);
    let mut teller = Teller {
        other: &mut other,
        start_peer,
        others: None,
        highest_descriptor: base,
        played: Played {
            device: info.name.clone(),
            ..Played::default()
        },
        planned,
        chapter: None,
        limited: None,
        own_loss: None,
    };
    if hook == Some(Hook::Others) {
        teller.others = step("the other adapter", Err::<(), _>("the hook")).err();
    }
    let told = tell(&mut teller, info, &injection).err();
    let first = teller.played.tried_again.clone().into_iter().chain(told);
    teller.played.told.splice(0..0, first);
    drop(injection);
    teller.beat();
    let Teller {
        mut played,
        others,
        highest_descriptor,
        limited,
        ..
    } = teller;
    drop(limited);
    let (mappings, threads) = asked();
    played.mappings = mappings - asked_before.0;
    played.threads = threads - asked_before.1;
    drop(limit);
    match hook {
        None | Some(Hook::Others) => {}
        Some(Hook::Hang) => loop {
            std::thread::park();
        },
        Some(Hook::Panic) => panic!("the hook"),
        Some(Hook::Silent) => {
            played.told.clear();
            played.announced.clear();
            played.announced_with_errors.clear();
        }
        Some(Hook::Leak) => std::mem::forget(crate::EventHandle::new()?),
    }
    played.others = others;
    // Who hangs keeps what it has, however long that is looked for.
    let settles = if played.hung.is_empty() {
        SETTLES
    } else {
        Duration::ZERO
    };
    let left = until_nothing(settles, || Holdings::now().more_than(&before));
    played.left.extend(left);
    let uses = VulkanCall::ALL.iter();
    played.uses = uses
        .map(|call| (call.name().to_owned(), faults().uses(*call)))
        .collect();
    let losses = LossyCall::ALL.into_iter();
    played.losses = losses
        .map(|call| (call.name().to_owned(), loss.calls(call)))
        .collect();
    played.descriptors = highest_descriptor - base;
    played.struck_on = struck_on().map(str::to_owned);
    played.struck = match planned {
        Planned::Nothing => false,
        Planned::Call(_) | Planned::Mapping(_) | Planned::Thread(_) => played.struck_on.is_some(),
        Planned::Loss(..) => loss.is_lost(),
        // Somebody was told, or all that were left were seen to be taken: then the next was refused.
        Planned::Descriptor(number) => !played.told.is_empty() || played.descriptors + 1 >= number,
        Planned::DescriptorIn(chapter, number) => {
            let most = played.descriptors_in.get(chapter.descriptors());
            !played.told.is_empty() || most.is_some_and(|most| *most + 1 >= number)
        }
    };
    Ok(played)
}

/// What is left behind, once what ends by itself has ended, or this time is over.
pub(super) fn until_nothing(time: Duration, left: impl Fn() -> Vec<String>) -> Vec<String> {
    let end = Instant::now() + time;
    loop {
        let left = left();
        if left.is_empty() || Instant::now() >= end {
            return left;
        }
        // Nobody is told when a thread's entry has gone, or the last slice that may refer to an object.
        std::thread::sleep(Duration::from_millis(2));
    }
}
