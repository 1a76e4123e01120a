//! Choice: which adapter to take when the user names none, or half a name.
//!
//! A real GPU says more than a program on the CPU, and lavapipe runs native fences where
//! SwiftShader cannot. Adapters of one rank keep the loader's order, which is the user's.

use thiserror::Error;

use super::adapter_info::{AdapterInfo, AdapterKind, Driver};

/// Why no adapter was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChoiceError {
    /// There is none at all.
    #[error("there is no Vulkan device: install your GPU's driver, or mesa-vulkan-drivers")]
    NoDevice,
    /// None has the part of a name in its name.
    #[error("no Vulkan device has {asked:?} in its name or driver; there is: {}", there.join("; "))]
    UnknownName {
        /// What was asked for.
        asked: String,
        /// The names there are, best first.
        there: Vec<String>,
    },
}

/// The adapters, the best first; equals keep their order.
#[must_use]
pub fn in_order_of_preference(adapters: &[AdapterInfo]) -> Vec<&AdapterInfo> {
    let mut sorted: Vec<_> = adapters.iter().collect();
    sorted.sort_by_key(|adapter| rank(adapter));
    sorted
}

/// The best adapter, or the best of those with `part_of_name` in their name, their driver's name or
/// its version (two lavapipes differ in nothing else), in any case of letters.
///
/// # Errors
/// There is none, or none of that name; then the error lists what there is.
pub fn choose<'a>(
    adapters: &'a [AdapterInfo],
    part_of_name: Option<&str>,
) -> Result<&'a AdapterInfo, ChoiceError> {
    let sorted = in_order_of_preference(adapters);
    if sorted.is_empty() {
        return Err(ChoiceError::NoDevice);
    }
    let asked = part_of_name.unwrap_or_default();
    sorted
        .iter()
        .find(|adapter| is_named(adapter, asked))
        .copied()
        .ok_or_else(|| ChoiceError::UnknownName {
            asked: asked.to_owned(),
            there: sorted.iter().map(|adapter| full_name(adapter)).collect(),
        })
}

fn full_name(adapter: &AdapterInfo) -> String {
    format!(
        "{} ({} {})",
        adapter.name, adapter.driver_name, adapter.driver_info
    )
}

fn is_named(adapter: &AdapterInfo, part: &str) -> bool {
    let AdapterInfo {
        name,
        driver_name,
        driver_info,
        ..
    } = adapter;
    let part = part.to_lowercase();
    [name, driver_name, driver_info]
        .iter()
        .any(|name| name.to_lowercase().contains(&part))
}

/// A device that cannot be opened comes last, whatever it is.
fn rank(adapter: &AdapterInfo) -> (bool, u8) {
    let kind = match (adapter.kind, adapter.driver) {
        (AdapterKind::Discrete, _) => 0,
        (AdapterKind::Integrated, _) => 1,
        (AdapterKind::Virtual, _) => 2,
        (_, Driver::SwiftShader) => 5,
        (AdapterKind::Cpu, Driver::Lavapipe | Driver::Other) => 3,
        (AdapterKind::Other, Driver::Lavapipe | Driver::Other) => 4,
    };
    (!adapter.has_vulkan_1_2(), kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vulkan::Features;

    fn adapter(name: &str, kind: AdapterKind, driver: Driver) -> AdapterInfo {
        AdapterInfo {
            name: name.to_owned(),
            vendor_id: 0,
            device_id: 0,
            kind,
            driver,
            driver_name: String::from("driver"),
            driver_info: format!("{name} 1.0"),
            api_version: (1, 3, 0),
            uuid: [0; 16],
            driver_uuid: [0; 16],
            features: Features::default(),
            heaps: Vec::new(),
            memory_types: Vec::new(),
        }
    }

    fn machine() -> Vec<AdapterInfo> {
        vec![
            adapter("SwiftShader Device", AdapterKind::Cpu, Driver::SwiftShader),
            adapter("llvmpipe", AdapterKind::Cpu, Driver::Lavapipe),
            adapter("vGPU", AdapterKind::Virtual, Driver::Other),
            adapter("iGPU one", AdapterKind::Integrated, Driver::Other),
            adapter("iGPU two", AdapterKind::Integrated, Driver::Other),
            adapter("Big Card", AdapterKind::Discrete, Driver::Other),
        ]
    }

    #[test]
    fn real_gpus_come_before_lavapipe_before_swiftshader_and_equals_keep_their_order() {
        let machine = machine();
        let names: Vec<_> = in_order_of_preference(&machine)
            .iter()
            .map(|a| a.name.as_str())
            .collect();
        let expected = [
            "Big Card",
            "iGPU one",
            "iGPU two",
            "vGPU",
            "llvmpipe",
            "SwiftShader Device",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_device_that_cannot_be_opened_comes_last() {
        let mut machine = machine();
        machine[5].api_version = (1, 1, 0);
        assert_eq!(choose(&machine, None).unwrap().name, "iGPU one");
        assert_eq!(in_order_of_preference(&machine)[5].name, "Big Card");
    }

    #[test]
    fn part_of_a_name_is_enough_in_any_case() {
        assert_eq!(
            choose(&machine(), Some("SWIFT")).unwrap().name,
            "SwiftShader Device"
        );
        assert_eq!(choose(&machine(), Some("igpu")).unwrap().name, "iGPU one");
        assert_eq!(
            choose(&machine(), Some("igpu two 1.0")).unwrap().name,
            "iGPU two"
        );
    }

    #[test]
    fn an_unknown_name_lists_what_there_is() {
        let error = choose(&machine(), Some("voodoo")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("\"voodoo\""), "{text}");
        assert!(
            text.contains("there is: Big Card (driver Big Card 1.0); iGPU one ("),
            "{text}"
        );
    }

    #[test]
    fn no_device_says_what_to_install() {
        assert_eq!(choose(&[], None), Err(ChoiceError::NoDevice));
        assert_eq!(choose(&[], Some("x")), Err(ChoiceError::NoDevice));
    }
}
