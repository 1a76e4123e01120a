//! Plan: which faults a sweep has, by what a run without any counted.

use super::fault::{DESCRIPTORS, MAPPINGS, THREADS};
use super::{Chapter, Planned, Played};
use crate::vulkan::LossyCall;
use crate::vulkan::faults::{Fault, VulkanCall};

/// The faults of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub call: &'static str,
    /// How often it was used without a fault.
    pub uses: u64,
    /// Of these, how many fail.
    pub tried: u64,
    /// How many errors it may answer with.
    pub errors: u64,
    /// A run each.
    pub faults: Vec<Planned>,
}

/// The fault of a number.
type Number = fn(u64) -> Planned;

/// All of them, `most` uses of each call at most, the first ones and some up to nine tenths of them.
#[must_use]
pub fn parts(counted: &Played, most: u64) -> Vec<Part> {
    let mut parts: Vec<_> = VulkanCall::ALL
        .iter()
        .map(|&call| {
            let uses = counted.uses.get(call.name()).copied().unwrap_or(0);
            let answers = call.errors();
            let errors = answers.len() as u64;
            part(call.name(), uses, most, errors, |at| {
                let faults = answers
                    .iter()
                    .map(|&answer| Planned::Call(Fault { call, at, answer }));
                faults.collect()
            })
        })
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
            "vkCreateBuffer#2=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkCreateBuffer#2=VK_ERROR_OUT_OF_DEVICE_MEMORY",
            "descriptors:bridge#1",
            "descriptors#1",
            "mappings#1",
            "mappings#2",
            "threads#1",
        ];
        assert_eq!(names, expected);
    }
}
