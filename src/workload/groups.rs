//! Groups: which runners stand beside each other in each scenario.

use super::group::Make;
use super::native::{CpuWaitForm, HandoffEngines, StormForm};
use super::timeline::HandoffForm;
use super::{Entry, FanForm, Group, Mechanism, Scenario, bare, idle, monitored, native, timeline};
use crate::AdapterOptions;
use crate::sync::Arc;

/// All groups of a scenario.
#[must_use]
pub fn groups(scenario: Scenario) -> Vec<Group> {
    let one = |entries| vec![group(scenario, None, entries)];
    match scenario {
        Scenario::Handoff => one(handoff()),
        Scenario::HandoffCross => one(handoff_cross()),
        Scenario::Storm => vec![
            group(scenario, Some(StormForm::Filled.name()), storm_filled()),
            group(scenario, Some(StormForm::Live.name()), storm_live()),
        ],
        Scenario::CpuWait => one(cpu_wait()),
        Scenario::CpuSignal => one(cpu_signal()),
        Scenario::FanOut => one(fan_out()),
        Scenario::FanIn => one(fan_in()),
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
    let make: Make = |bench, mechanism| {
        let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
        Ok(Box::new(native::Handoff::new(
            adapter,
            HandoffEngines::One,
        )?))
    };
    vec![
        native(make),
        polled(make),
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
    ]
}

fn handoff_cross() -> Vec<Entry> {
    let make: Make = |bench, mechanism| {
        let engines = HandoffEngines::Two;
        let adapter = bench.native(mechanism, engines.count(), AdapterOptions::default())?;
        Ok(Box::new(native::Handoff::new(adapter, engines)?))
    };
    vec![
        native(make),
        polled(make),
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
    ]
}

fn storm_filled() -> Vec<Entry> {
    let make: Make = |bench, mechanism| {
        let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
        Ok(Box::new(native::Storm::new(adapter, StormForm::Filled)?))
    };
    vec![
        native(make),
        polled(make),
        timeline(|bench, _| {
            let form = StormForm::Filled;
            Ok(Box::new(timeline::Storm::new(&bench.device(1)?, form)?))
        }),
        monitored(|bench, _| {
            let form = StormForm::Filled;
            Ok(Box::new(monitored::Storm::new(bench.queue()?, form)?))
        }),
        bare(|bench, _| {
            let form = StormForm::Filled;
            Ok(Box::new(bare::Storm::new(&bench.device(1)?, form)?))
        }),
    ]
}

fn storm_live() -> Vec<Entry> {
    let make: Make = |bench, mechanism| {
        let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
        Ok(Box::new(native::Storm::new(adapter, StormForm::Live)?))
    };
    vec![
        native(make),
        polled(make),
        timeline(|bench, _| {
            let form = StormForm::Live;
            Ok(Box::new(timeline::Storm::new(&bench.device(1)?, form)?))
        }),
        monitored(|bench, _| {
            let form = StormForm::Live;
            Ok(Box::new(monitored::Storm::new(bench.queue()?, form)?))
        }),
        bare(|bench, _| {
            let form = StormForm::Live;
            Ok(Box::new(bare::Storm::new(&bench.device(1)?, form)?))
        }),
    ]
}

fn cpu_wait() -> Vec<Entry> {
    vec![
        native(|bench, mechanism| {
            let form = CpuWaitForm::Looks;
            let adapter = bench.native(mechanism, 1, form.options())?;
            Ok(Box::new(native::CpuWait::new(adapter, form)?))
        }),
        native(|bench, mechanism| {
            let form = CpuWaitForm::Sleeps;
            let adapter = bench.native(mechanism, 1, form.options())?;
            Ok(Box::new(native::CpuWait::new(adapter, form)?))
        }),
        polled(|bench, mechanism| {
            let form = CpuWaitForm::Watches;
            let adapter = bench.native(mechanism, 1, form.options())?;
            Ok(Box::new(native::CpuWait::new(adapter, form)?))
        }),
        timeline(|bench, _| Ok(Box::new(timeline::CpuWait::new(&bench.device(1)?)?))),
        monitored(|bench, _| Ok(Box::new(monitored::CpuWait::new(bench.queue()?)?))),
        bare(|bench, _| Ok(Box::new(bare::CpuWait::new(&bench.device(1)?)?))),
        bare(|bench, _| Ok(Box::new(bare::RoundTrip::new(&bench.device(1)?)?))),
    ]
}

fn cpu_signal() -> Vec<Entry> {
    vec![
        native(|bench, mechanism| {
            let form = CpuWaitForm::Looks;
            let adapter = bench.native(mechanism, 1, form.options())?;
            Ok(Box::new(native::CpuSignal::new(adapter, form)?))
        }),
        native(|bench, mechanism| {
            let form = CpuWaitForm::Sleeps;
            let adapter = bench.native(mechanism, 1, form.options())?;
            Ok(Box::new(native::CpuSignal::new(adapter, form)?))
        }),
        polled(|bench, mechanism| {
            let form = CpuWaitForm::Watches;
            let adapter = bench.native(mechanism, 1, form.options())?;
            Ok(Box::new(native::CpuSignal::new(adapter, form)?))
        }),
        timeline(|bench, _| Ok(Box::new(timeline::CpuSignal::new(&bench.device(1)?)?))),
        monitored(|bench, _| Ok(Box::new(monitored::CpuSignal::new(bench.queue()?)?))),
        bare(|bench, _| Ok(Box::new(bare::RoundTrip::new(&bench.device(1)?)?))),
    ]
}

fn fan_out() -> Vec<Entry> {
    let make: Make = |bench, mechanism| {
        let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
        Ok(Box::new(native::Fan::new(adapter, FanForm::Out)?))
    };
    vec![
        native(make),
        polled(make),
        timeline(|bench, _| {
            Ok(Box::new(timeline::Fan::new(
                &bench.device(1)?,
                FanForm::Out,
            )?))
        }),
        monitored(|bench, _| Ok(Box::new(monitored::Fan::new(bench.queue()?, FanForm::Out)?))),
    ]
}

fn fan_in() -> Vec<Entry> {
    let make: Make = |bench, mechanism| {
        let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
        Ok(Box::new(native::Fan::new(adapter, FanForm::In)?))
    };
    vec![
        native(make),
        polled(make),
        timeline(|bench, _| {
            Ok(Box::new(timeline::Fan::new(
                &bench.device(1)?,
                FanForm::In,
            )?))
        }),
        monitored(|bench, _| Ok(Box::new(monitored::Fan::new(bench.queue()?, FanForm::In)?))),
    ]
}

fn idle() -> Vec<Entry> {
    let make: Make = |bench, mechanism| {
        let adapter = bench.native(mechanism, native::Idle::ENGINES, AdapterOptions::default())?;
        Ok(idle::settled(native::Idle::new(adapter)?))
    };
    vec![
        native(make),
        polled(make),
        timeline(|bench, _| Ok(idle::settled(timeline::Idle::new(&bench.device(1)?)?))),
        monitored(|bench, _| Ok(idle::settled(monitored::Idle::new(bench.queue()?)?))),
    ]
}

fn native(make: Make) -> Entry {
    let mechanism = Mechanism::NativeSystemEvent;
    Entry { mechanism, make }
}

fn polled(make: Make) -> Entry {
    let mechanism = Mechanism::NativeSystemPolled;
    Entry { mechanism, make }
}

fn timeline(make: Make) -> Entry {
    let mechanism = Mechanism::TimelineSemaphore;
    Entry { mechanism, make }
}

fn monitored(make: Make) -> Entry {
    let mechanism = Mechanism::MonitoredFence;
    Entry { mechanism, make }
}

fn bare(make: Make) -> Entry {
    let mechanism = Mechanism::BareControl;
    Entry { mechanism, make }
}
