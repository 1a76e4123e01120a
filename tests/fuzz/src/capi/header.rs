//! Header: what `native_fence.h` says that a call may return, by its own words.

use native_fence::abi::wddm::NtStatus;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const HEADER: &str = include_str!("../../../../src/capi/native_fence.h");

type Named = BTreeMap<&'static str, Vec<NtStatus>>;

/// The errors that stand in a function's description.
///
/// # Panics
/// If the header has no such function.
pub(super) fn errors_of(function: &str) -> &'static [NtStatus] {
    static NAMED: OnceLock<Named> = OnceLock::new();
    let named = NAMED.get_or_init(read);
    let errors = named.get(function);
    errors.unwrap_or_else(|| panic!("the header has no {function}"))
}

/// The words of a text that begin so.
fn words<'a>(text: &'a str, beginning: &str) -> Vec<&'a str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(beginning)).collect()
}

fn statuses(text: &str) -> Vec<NtStatus> {
    let named = words(text, "STATUS_");
    let all = NtStatus::ALL.iter();
    all.filter(|(name, _)| named.contains(name))
        .map(|(_, number)| NtStatus(number.cast_signed()))
        .collect()
}

/// All functions, in the order of the header: some have the errors of others before them.
fn read() -> Named {
    let mut named = Named::new();
    let mut last = "";
    for (at, _) in HEADER.match_indices("\nNTSTATUS Nf") {
        let function = words(&HEADER[at..at + 100], "Nf")[0];
        let begin = HEADER[..at].rfind("/*").expect("each has a description");
        let (about, errors) = HEADER[begin..at]
            .split_once("# Errors")
            .expect("each has errors");
        let errors = errors.split("# Safety").next().unwrap_or_default();
        let mut own = statuses(errors);
        if errors.contains("As th") {
            let others = words(about, "Nf");
            let others = if others.is_empty() {
                vec![last]
            } else {
                others
            };
            own.extend(others.iter().flat_map(|other| named[other].clone()));
        }
        named.insert(function, own);
        last = function;
    }
    named
}
