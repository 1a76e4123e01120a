//! Plan: which faults a sweep has, by what a run without any counted.

use super::fault::{CALLED_AGAIN, DESCRIPTORS, MAPPINGS, THREADS};
use super::{Chapter, Planned, Played};
use crate::vulkan::LossyCall;
use crate::vulkan::faults::{Answer, Fault, VulkanCall};

/// The faults of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub call: &'static str,
    /// How often it was used without a fault.
    pub uses: u64,
    /// Of these, how many fail.
    pub tried: u64,
    /// How many errors it may answer with, counted again for those that last and those of what was done.
    pub errors: u64,
    /// A run each.
    pub faults: Vec<Planned>,
}

/// The fault of a number.
type Number = fn(u64) -> Planned;
/// The fault of a call, with the number of its use and an error.
type OfCall = fn(VulkanCall, u64, Answer) -> Fault;

/// All of them, `most` uses of each call at most, the first ones and some up to nine tenths of them.
#[must_use]
pub fn parts(counted: &Played, most: u64) -> Vec<Part> {
    let mut parts: Vec<_> = VulkanCall::ALL
        .iter()
        .map(|&call| of_call(call, counted, most))
        .collect();
    for call in LossyCall::ALL {
        let uses = counted.losses.get(call.name()).copied().unwrap_or(0);
        let lost = part(call.name(), uses, most, 1, |at| {
            vec![Planned::Loss(call, at)]
        });
        match parts.iter_mut().find(|part| part.call == call.name()) {
            Some(part) => {
                part.errors += 1;
                part.faults.extend(lost.faults);
            }
            None => parts.push(lost),
        }
    }
    for chapter in Chapter::ALL {
        let row = chapter.descriptors();
        let uses = counted.descriptors_in.get(row).copied().unwrap_or(0);
        let faults = |at| vec![Planned::DescriptorIn(chapter, at)];
        parts.push(part(row, uses, most, 1, faults));
    }
    let of_system: [(&'static str, u64, Number); 3] = [
        (DESCRIPTORS, counted.descriptors, Planned::Descriptor),
        (MAPPINGS, counted.mappings, Planned::Mapping),
        (THREADS, counted.threads, Planned::Thread),
    ];
    let of_system =
        of_system.map(|(row, uses, fault)| part(row, uses, most, 1, |at| vec![fault(at)]));
    parts.extend(of_system);
    parts
}

/// A call's faults: each use with each error, once. Where it is called again, errors that last too, and where the driver may
/// have done what it was called for, errors that come after that: from half as many uses, since these runs are long.
fn of_call(call: VulkanCall, counted: &Played, most: u64) -> Part {
    let uses = counted.uses.get(call.name()).copied().unwrap_or(0);
    let of = |most, answers: &[Answer], fault: OfCall| {
        part(call.name(), uses, most, answers.len() as u64, |at| {
            let faults = answers.iter().map(|&answer| fault(call, at, answer));
            faults.map(Planned::Call).collect()
        })
    };
    let mut all = of(most, call.errors(), Fault::once);
    let lasting = if CALLED_AGAIN.contains(&call) {
        call.errors()
    } else {
        &[]
    };
    let half = most.div_ceil(2);
    for more in [
        of(half, lasting, Fault::from_then_on),
        of(half, call.errors_afterwards(), Fault::afterwards),
    ] {
        all.errors += more.errors;
        all.faults.extend(more.faults);
    }
    all
}

/// Calls that whoever opens an instance or a device makes: where one run has a use of them, each has.
const AT_OPENING: [VulkanCall; 6] = [
    VulkanCall::EnumerateInstanceVersion,
    VulkanCall::EnumerateInstanceLayerProperties,
    VulkanCall::CreateInstance,
    VulkanCall::EnumeratePhysicalDevices,
    VulkanCall::EnumerateDeviceExtensionProperties,
    VulkanCall::CreateDevice,
];

/// Whether a run that has the fault comes to it for sure, by what a run without one counted: to the first uses, up to a
/// quarter of them. Where somebody looks again and again, the next run may have half as many; and of less than four, which
/// may be there by chance, only what is made at the opening is certain.
#[must_use]
pub fn is_certain(planned: Planned, counted: &Played) -> bool {
    let uses = match planned {
        Planned::Nothing => None,
        Planned::Call(fault) => counted.uses.get(fault.call.name()),
        Planned::Loss(call, _) => counted.losses.get(call.name()),
        Planned::Descriptor(_) => Some(&counted.descriptors),
        Planned::DescriptorIn(chapter, _) => counted.descriptors_in.get(chapter.descriptors()),
        Planned::Mapping(_) => Some(&counted.mappings),
        Planned::Thread(_) => Some(&counted.threads),
    };
    let at_opening = AT_OPENING.iter().any(|call| call.name() == planned.call());
    let least = u64::from(at_opening);
    uses.is_some_and(|uses| planned.at() <= (uses / 4).max(least.min(*uses)))
}

/// A use of each call: what can be made to fail, with which errors.
#[must_use]
pub fn all_parts() -> Vec<Part> {
    let once = |name: &str| (name.to_owned(), 1);
    let counted = Played {
        uses: VulkanCall::ALL
            .iter()
            .map(|call| once(call.name()))
            .collect(),
        losses: LossyCall::ALL
            .iter()
            .map(|call| once(call.name()))
            .collect(),
        descriptors: 1,
        descriptors_in: Chapter::ALL
            .iter()
            .map(|chapter| once(chapter.descriptors()))
            .collect(),
        mappings: 1,
        threads: 1,
        ..Played::default()
    };
    parts(&counted, 1)
}

/// Those of faults that are asked for.
#[must_use]
pub fn parts_of(faults: &[Planned]) -> Vec<Part> {
    let mut parts = all_parts();
    for part in &mut parts {
        part.faults = faults
            .iter()
            .copied()
            .filter(|fault| fault.call() == part.call)
            .collect();
    }
    parts.retain(|part| !part.faults.is_empty());
    for part in &mut parts {
        part.tried = part.faults.len() as u64;
        part.uses = part.tried;
    }
    parts
}

fn part(
    call: &'static str,
    uses: u64,
    most: u64,
    errors: u64,
    faults: impl Fn(u64) -> Vec<Planned>,
) -> Part {
    let tried = chosen(uses, most);
    Part {
        call,
        uses,
        tried: tried.len() as u64,
        errors,
        faults: tried.into_iter().flat_map(faults).collect(),
    }
}

/// Uses that fail: all where they are no more than `most`; else the first ones, as many as half of it, and the others
/// evenly up to nine tenths of them. Where there are many their number differs a little from run to run, and the last one
/// may not come again; of less than ten it does.
fn chosen(uses: u64, most: u64) -> Vec<u64> {
    if uses <= most {
        return (1..=uses).collect();
    }
    let first = most.div_ceil(2);
    let spread = most - first;
    let last = (uses - uses / 10).max(most);
    let mut chosen: Vec<_> = (1..=first).collect();
    chosen.extend((1..=spread).map(|at| first + (last - first) * at / spread));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last use of many, which the next run may not come to, is not among them.
    ///
    /// Kills `the-last-use-fails`.
    #[test]
    fn the_first_uses_and_late_ones_are_among_those_that_fail() {
        assert_eq!(chosen(3, 5), [1, 2, 3]);
        assert_eq!(chosen(0, 5), [0; 0]);
        assert_eq!(chosen(100, 4), [1, 2, 46, 90]);
        assert_eq!(chosen(100, 1), [1]);
        let ends = [
            (7, 6, 7),
            (10, 9, 9),
            (13, 12, 12),
            (23, 22, 22),
            (1000, 9, 900),
        ];
        for (uses, most, last) in ends {
            let chosen = chosen(uses, most);
            assert_eq!(chosen.len() as u64, most);
            assert!(chosen.is_sorted_by(|a, b| a < b), "{chosen:?}");
            assert_eq!((chosen[0], chosen.last()), (1, Some(&last)));
        }
    }

    /// The first quarter of the uses comes again; of so few that they may be there by chance only those of an opening do.
    ///
    /// Kills `no-use-is-certain`, `a-use-by-chance-is-certain`, `an-opening-is-not-certain`, `what-was-not-used-is-certain`.
    #[test]
    fn the_first_quarter_of_the_uses_comes_again() {
        let uses = [
            ("vkCreateBuffer", 9),
            ("vkGetSemaphoreCounterValue", 3),
            ("vkCreateInstance", 2),
            ("vkEnumerateInstanceLayerProperties", 0),
        ];
        let counted = Played {
            uses: uses.map(|(call, uses)| (call.to_owned(), uses)).into(),
            losses: [("vkCreateDevice".to_owned(), 1)].into(),
            threads: 4,
            mappings: 3,
            ..Played::default()
        };
        let is_certain = |name: &str| {
            let planned = name.parse::<Planned>();
            planned.is_ok_and(|planned| is_certain(planned, &counted))
        };
        for name in [
            "vkCreateBuffer#2=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkCreateInstance#1=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkCreateDevice#1=lost",
            "threads#1",
        ] {
            assert!(is_certain(name), "{name}");
        }
        for name in [
            "vkCreateBuffer#3=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkGetSemaphoreCounterValue#1=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkCreateInstance#2=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkEnumerateInstanceLayerProperties#1=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkCreateDevice#2=lost",
            "threads#2",
            "mappings#1",
            "nothing",
        ] {
            assert!(!is_certain(name), "{name}");
        }
    }

    /// Kills `no-fault-lasts`.
    #[test]
    fn what_is_called_again_fails_for_good_too() {
        let counted = Played {
            uses: [("vkQueueSubmit".to_owned(), 4)].into(),
            ..Played::default()
        };
        let parts = parts(&counted, 4);
        let of_call = parts.iter().find(|part| part.call == "vkQueueSubmit");
        let names = of_call.into_iter().flat_map(|part| &part.faults);
        let names: Vec<_> = names.map(ToString::to_string).collect();
        for name in [
            "vkQueueSubmit#4=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkQueueSubmit#1+=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkQueueSubmit#1+=VK_ERROR_OUT_OF_DEVICE_MEMORY",
            "vkQueueSubmit#4+=VK_ERROR_UNKNOWN",
            "vkQueueSubmit#1:done=VK_ERROR_UNKNOWN",
        ] {
            assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("#2+")), "{names:?}");
    }

    #[test]
    fn each_use_fails_with_each_error() {
        let counted = Played {
            uses: [("vkCreateBuffer".to_owned(), 2)].into(),
            losses: [("vkCreateDevice".to_owned(), 1)].into(),
            descriptors: 1,
            descriptors_in: [("descriptors:bridge".to_owned(), 1)].into(),
            mappings: 2,
            threads: 1,
            ..Played::default()
        };
        let parts = parts(&counted, 10);
        let names = parts.iter().flat_map(|part| &part.faults);
        let names: Vec<_> = names.map(ToString::to_string).collect();
        let expected = [
            "vkCreateDevice#1=lost",
            "vkCreateBuffer#1=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkCreateBuffer#1=VK_ERROR_OUT_OF_DEVICE_MEMORY",
            "vkCreateBuffer#1=VK_ERROR_UNKNOWN",
            "vkCreateBuffer#2=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkCreateBuffer#2=VK_ERROR_OUT_OF_DEVICE_MEMORY",
            "vkCreateBuffer#2=VK_ERROR_UNKNOWN",
            "descriptors:bridge#1",
            "descriptors#1",
            "mappings#1",
            "mappings#2",
            "threads#1",
        ];
        assert_eq!(names, expected);
    }
}
