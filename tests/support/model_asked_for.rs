//! Whether a test runs on the model engine too. It needs no Vulkan, so a second run of the suite on another driver
//! leaves it out: `NFENCE_WITHOUT_MODEL=1`.

/// Whether it does, and says so.
pub(crate) fn model_is_asked_for() -> bool {
    let is_left_out = std::env::var_os("NFENCE_WITHOUT_MODEL").is_some_and(|value| value == "1");
    let says = if is_left_out {
        "left out on the model: NFENCE_WITHOUT_MODEL is set"
    } else {
        "on the model"
    };
    println!("{says}");
    !is_left_out
}
