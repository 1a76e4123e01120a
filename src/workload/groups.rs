//! Groups: which runners stand beside each other in each scenario.

use super::group::Made;
use super::native::{CpuWaitForm, HandoffEngines, StormForm, WorkKernel};
use super::timeline::HandoffForm;
use super::work::{WorkForm, passes_in};
use super::{
    Bench, Entry, FanForm, Group, Mechanism, ResetForm, ScaleForm, Scenario, bare, idle, monitored,
    native, timeline,
};
use crate::sync::Arc;
use crate::{AdapterOptions, CrossAdapter};

/// All groups of a scenario.
#[must_use]
pub fn groups(scenario: Scenario) -> Vec<Group> {
    let one = |entries| vec![group(scenario, None, entries)];
    match scenario {
        Scenario::Handoff => one(handoff()),
        Scenario::HandoffCross => one(handoff_cross()),
        Scenario::CrossAdapter => one(cross_adapter()),
        Scenario::Storm => [StormForm::Filled, StormForm::Live]
            .map(|form| group(scenario, Some(form.name()), storm(form)))
            .into(),
        Scenario::CpuWait => one(cpu_wait()),
        Scenario::CpuSignal => one(cpu_signal()),
        Scenario::FanOut => one(fan(FanForm::Out)),
        Scenario::FanIn => one(fan(FanForm::In)),
        Scenario::Copy => one(copy()),
        Scenario::Work => WorkForm::ALL
            .map(|form| group(scenario, Some(form.name), work(form)))
            .into(),
        // All forms in one, though they are shown by themselves: they are compared with each other.
        Scenario::Scale => one(ScaleForm::ALL.into_iter().flat_map(scale).collect()),
        Scenario::Reset => ResetForm::ALL
            .map(|form| group(scenario, Some(form.name()), reset(form)))
            .into(),
        // By itself each: what is counted is the whole process.
        Scenario::Idle => idle()
            .into_iter()
            .map(|entry| group(scenario, None, vec![entry]))
            .collect(),
    }
}

fn group(scenario: Scenario, form: Option<&'static str>, entries: Vec<Entry>) -> Group {
    Group {
        scenario,
        form,
        entries,
    }
}

fn handoff() -> Vec<Entry> {
    let make = |bench: &Bench, mechanism| -> Made {
        let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
        Ok(Box::new(native::Handoff::new(
            adapter,
            HandoffEngines::One,
        )?))
    };
    natives(
        make,
        [
            timeline(|bench, _| {
                let form = HandoffForm::SubmitPerLink;
                Ok(Box::new(timeline::Handoff::new(&bench.device(2)?, form)?))
            }),
            timeline(|bench, _| {
                let form = HandoffForm::OneSubmit;
                Ok(Box::new(timeline::Handoff::new(&bench.device(2)?, form)?))
            }),
            monitored(|bench, _| Ok(Box::new(monitored::Handoff::new([bench.queue()?])?))),
            bare(|bench, _| Ok(Box::new(bare::Handoff::new(&bench.device(1)?)?))),
        ],
    )
}

fn handoff_cross() -> Vec<Entry> {
    let make = |bench: &Bench, mechanism| -> Made {
        let engines = HandoffEngines::Two;
        let adapter = bench.native(mechanism, engines.count(), AdapterOptions::default())?;
        Ok(Box::new(native::Handoff::new(adapter, engines)?))
    };
    natives(
        make,
        [
            timeline(|bench, _| {
                let queues = bench.two_queues()?;
                if Arc::ptr_eq(queues[0].device(), queues[1].device()) {
                    let form = HandoffForm::OneSubmit;
                    return Ok(Box::new(timeline::Handoff::on(queues.into(), form)?));
                }
                Ok(Box::new(timeline::Relay::new(queues)?))
            }),
            monitored(|bench, _| Ok(Box::new(monitored::Handoff::new(bench.two_queues()?)?))),
            bare(|bench, _| Ok(Box::new(bare::HandoffCross::new(bench.two_queues()?)?))),
        ],
    )
}

fn cross_adapter() -> Vec<Entry> {
    let make = |mode| {
        move |bench: &Bench, mechanism| -> Made {
            let adapters = bench.two_adapters(mechanism, mode)?;
            Ok(Box::new(native::Handoff::across(adapters, mode)?))
        }
    };
    vec![
        native(make(CrossAdapter::Doorbell)),
        native(make(CrossAdapter::Propagated)),
        timeline(|bench, _| Ok(Box::new(timeline::Relay::new(bench.queues_of_two()?)?))),
        monitored(|bench, _| Ok(Box::new(monitored::Handoff::new(bench.queues_of_two()?)?))),
        bare(|bench, _| Ok(Box::new(bare::HandoffCross::new(bench.queues_of_two()?)?))),
    ]
}

fn storm(form: StormForm) -> Vec<Entry> {
    let make = move |bench: &Bench, mechanism| -> Made {
        let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
        Ok(Box::new(native::Storm::new(adapter, form)?))
    };
    natives(
        make,
        [
            timeline(move |bench, _| Ok(Box::new(timeline::Storm::new(&bench.device(1)?, form)?))),
            monitored(move |bench, _| Ok(Box::new(monitored::Storm::new(bench.queue()?, form)?))),
            bare(move |bench, _| Ok(Box::new(bare::Storm::new(&bench.device(1)?, form)?))),
        ],
    )
}

fn cpu_wait() -> Vec<Entry> {
    let make = |form: CpuWaitForm| {
        move |bench: &Bench, mechanism| -> Made {
            let adapter = bench.native(mechanism, 1, form.options())?;
            Ok(Box::new(native::CpuWait::new(adapter, form)?))
        }
    };
    vec![
        native(make(CpuWaitForm::Looks)),
        native(make(CpuWaitForm::Sleeps)),
        polled(make(CpuWaitForm::Watches)),
        local(make(CpuWaitForm::Looks)),
        local(make(CpuWaitForm::Sleeps)),
        local_polled(make(CpuWaitForm::Watches)),
        timeline(|bench, _| Ok(Box::new(timeline::CpuWait::new(&bench.device(1)?)?))),
        monitored(|bench, _| Ok(Box::new(monitored::CpuWait::new(bench.queue()?)?))),
        bare(|bench, _| Ok(Box::new(bare::CpuWait::new(&bench.device(1)?)?))),
        bare(|bench, _| Ok(Box::new(bare::RoundTrip::new(&bench.device(1)?)?))),
    ]
}

fn cpu_signal() -> Vec<Entry> {
    let make = |form: CpuWaitForm| {
        move |bench: &Bench, mechanism| -> Made {
            let adapter = bench.native(mechanism, 1, form.options())?;
            Ok(Box::new(native::CpuSignal::new(adapter, form)?))
        }
    };
    vec![
        native(make(CpuWaitForm::Looks)),
        native(make(CpuWaitForm::Sleeps)),
        polled(make(CpuWaitForm::Watches)),
        local(make(CpuWaitForm::Looks)),
        local(make(CpuWaitForm::Sleeps)),
        local_polled(make(CpuWaitForm::Watches)),
        timeline(|bench, _| Ok(Box::new(timeline::CpuSignal::new(&bench.device(1)?)?))),
        monitored(|bench, _| Ok(Box::new(monitored::CpuSignal::new(bench.queue()?)?))),
        bare(|bench, _| Ok(Box::new(bare::RoundTrip::new(&bench.device(1)?)?))),
    ]
}

fn fan(form: FanForm) -> Vec<Entry> {
    let make = move |bench: &Bench, mechanism| -> Made {
        let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
        Ok(Box::new(native::Fan::new(adapter, form)?))
    };
    natives(
        make,
        [
            timeline(move |bench, _| Ok(Box::new(timeline::Fan::new(&bench.device(1)?, form)?))),
            monitored(move |bench, _| Ok(Box::new(monitored::Fan::new(bench.queue()?, form)?))),
        ],
    )
}

fn copy() -> Vec<Entry> {
    let make = |bench: &Bench, mechanism| -> Made {
        let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
        Ok(Box::new(native::Copy::new(adapter)?))
    };
    vec![
        native(make),
        polled(make),
        timeline(|bench, _| Ok(Box::new(timeline::copy(bench.queue()?)?))),
        bare(|bench, _| Ok(Box::new(bare::shader_copy(bench.queue()?)?))),
        bare(|_, _| Ok(Box::new(bare::Copy::default()))),
    ]
}

fn work(form: WorkForm) -> Vec<Entry> {
    let make = move |kernel: WorkKernel| {
        move |bench: &Bench, mechanism| -> Made {
            let passes = passes_in(bench, form.micros)?;
            let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
            Ok(Box::new(native::Work::new(adapter, form, kernel, passes)?))
        }
    };
    let submits = move |submits: HandoffForm| {
        timeline(move |bench, _| {
            let passes = passes_in(bench, form.micros)?;
            let device = bench.device(timeline::Work::MOST_QUEUES)?;
            let made = timeline::Work::new(&device, form, submits, passes)?;
            Ok(Box::new(made))
        })
    };
    let mut entries: Vec<_> = WorkKernel::ALL.map(|kernel| native(make(kernel))).into();
    entries.extend([
        polled(make(WorkKernel::Merged)),
        submits(HandoffForm::SubmitPerLink),
        submits(HandoffForm::OneSubmit),
        bare(move |bench, _| {
            let passes = passes_in(bench, form.micros)?;
            Ok(Box::new(bare::Work::new(bench.queue()?, form, passes)?))
        }),
    ]);
    entries
}

fn scale(form: ScaleForm) -> Vec<Entry> {
    let make = move |bench: &Bench, mechanism| -> Made {
        let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
        Ok(Box::new(native::Scale::new(adapter, form)?))
    };
    let mut entries = natives(make, []);
    if form == ScaleForm::Waiters {
        let absent = [
            (Mechanism::TimelineSemaphore, timeline::Scale::NO_WAITERS),
            (Mechanism::MonitoredFence, monitored::Scale::NO_WAITERS),
        ];
        entries.extend(absent.map(|(mechanism, reason)| Entry::absent(mechanism, reason)));
    } else {
        entries.push(timeline(move |bench, _| {
            Ok(Box::new(timeline::Scale::new(&bench.device(1)?, form)?))
        }));
        entries.push(monitored(move |bench, _| {
            Ok(Box::new(monitored::Scale::new(bench.queue()?, form)?))
        }));
    }
    let of_form = |entry: Entry| entry.of_form(form.name());
    entries.into_iter().map(of_form).collect()
}

fn idle() -> Vec<Entry> {
    let make = |bench: &Bench, mechanism| -> Made {
        let adapter = bench.native(mechanism, native::Idle::ENGINES, AdapterOptions::default())?;
        Ok(idle::settled(native::Idle::new(adapter)?))
    };
    natives(
        make,
        [
            timeline(|bench, _| Ok(idle::settled(timeline::Idle::new(&bench.device(1)?)?))),
            monitored(|bench, _| Ok(idle::settled(monitored::Idle::new(bench.queue()?)?))),
        ],
    )
}

fn reset(form: ResetForm) -> Vec<Entry> {
    let make = move |bench: &Bench, mechanism| -> Made {
        Ok(Box::new(native::Reset::new(bench, mechanism, form)?))
    };
    // How a CPU waiter learns of values is nothing to a recovery: none that is polled.
    vec![
        native(make),
        local(make),
        timeline(move |bench, _| Ok(Box::new(timeline::Reset::new(bench, form)?))),
        Entry::absent(Mechanism::MonitoredFence, monitored::NO_RESET),
        bare(move |bench, _| Ok(Box::new(bare::Reset::new(bench, form)?))),
    ]
}

/// The four kinds of native fences by one runner, and the others beside them.
fn natives(
    make: impl Fn(&Bench, Mechanism) -> Made + Copy + 'static,
    others: impl IntoIterator<Item = Entry>,
) -> Vec<Entry> {
    let mut entries = vec![native(make), polled(make), local(make), local_polled(make)];
    entries.extend(others);
    entries
}

fn native(make: impl Fn(&Bench, Mechanism) -> Made + 'static) -> Entry {
    Entry::new(Mechanism::NativeSystemEvent, make)
}

fn polled(make: impl Fn(&Bench, Mechanism) -> Made + 'static) -> Entry {
    Entry::new(Mechanism::NativeSystemPolled, make)
}

fn local(make: impl Fn(&Bench, Mechanism) -> Made + 'static) -> Entry {
    Entry::new(Mechanism::NativeLocalEvent, make)
}

fn local_polled(make: impl Fn(&Bench, Mechanism) -> Made + 'static) -> Entry {
    Entry::new(Mechanism::NativeLocalPolled, make)
}

fn timeline(make: impl Fn(&Bench, Mechanism) -> Made + 'static) -> Entry {
    Entry::new(Mechanism::TimelineSemaphore, make)
}

fn monitored(make: impl Fn(&Bench, Mechanism) -> Made + 'static) -> Entry {
    Entry::new(Mechanism::MonitoredFence, make)
}

fn bare(make: impl Fn(&Bench, Mechanism) -> Made + 'static) -> Entry {
    Entry::new(Mechanism::BareControl, make)
}
