//! Kernels: what the additions of a round's program are dispatched by.

use crate::gpu::{ModelDispatch, ModelKernel, Violation};
use crate::soak::program::{Adder, Command};
use crate::soak::round::Round;
use crate::sync::Arc;
use crate::vulkan::shaders;
use crate::{Device, Kernel, KernelCode};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Bytes of their parameters: from where, to where, how many words, and what is added.
const PARAMETER_BYTES: u32 = 32;

/// By device: one for each kind of which it has additions.
pub(super) type Kernels = HashMap<(usize, Adder), Kernel>;

/// Registers those that the program dispatches.
pub(super) fn registered(round: &Round, devices: &[Device]) -> Result<Kernels, String> {
    let mut kernels = Kernels::new();
    for (at, queue) in round.program.queues.iter().enumerate() {
        let device = round.device_of(at);
        for command in &queue.commands {
            let Command::Add { by, .. } = *command else {
                continue;
            };
            if let Entry::Vacant(place) = kernels.entry((device, by)) {
                let kernel = devices[device].create_kernel(code(by)?);
                place.insert(kernel.map_err(|error| format!("no kernel: {error}"))?);
            }
        }
    }
    Ok(kernels)
}

fn code(adder: Adder) -> Result<KernelCode, String> {
    let shader = match adder {
        Adder::Plain => &shaders::ADD_WORDS,
        Adder::Merged => &shaders::ADD_WORDS_TOGETHER,
        Adder::SchedulesItself => &shaders::ADD_WORDS_SELF_SCHEDULING,
    };
    let code = KernelCode::new(shader.words, PARAMETER_BYTES);
    let code = code.map_err(|error| format!("no kernel: {error}"))?;
    Ok(code.with_model(Arc::new(AddWords(adder))))
}

/// What these shaders do, in Rust.
#[derive(Debug)]
struct AddWords(Adder);

impl ModelKernel for AddWords {
    fn run(&self, dispatch: &ModelDispatch<'_>) -> Result<(), Violation> {
        let [from, to, words, number] = *dispatch.parameters else {
            unreachable!("an engine gives a kernel as many as it was registered with")
        };
        let groups = dispatch.groups.iter().copied().map(u64::from);
        let most = groups.product::<u64>() * self.0.words_of_a_group();
        for at in 0..words.min(most) {
            let sum = dispatch.load(from + at * 8)?.wrapping_add(number);
            dispatch.store(to + at * 8, sum)?;
        }
        Ok(())
    }
}
