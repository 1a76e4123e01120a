//! Long walks over calls, each of which takes a life: all of them, or with `NFENCE_WALK=1/3` the first and of the others
//! each third, from the second on. CI takes other ones with each commit.

/// Whether a step, counted from 1, is taken.
pub(crate) fn is_taken(step: u64) -> bool {
    let Ok(asked) = std::env::var("NFENCE_WALK") else {
        return true;
    };
    let (part, parts) = asked
        .split_once('/')
        .and_then(|(part, parts)| Some((part.parse::<u64>().ok()?, parts.parse::<u64>().ok()?)))
        .filter(|(part, parts)| part < parts)
        .unwrap_or_else(|| panic!("NFENCE_WALK={asked}: it must be like 1/3, from 0/3 on"));
    step == 1 || step % parts == part
}
