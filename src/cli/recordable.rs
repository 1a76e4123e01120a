//! Recordable: a workload by native fences, on one adapter or on two, that is ready to be recorded.

use super::{devices, driver_settings};
use crate::vulkan::{self, AdapterInfo};
use crate::workload::{Bench, Mechanism, NotOffered, Runner, Scenario, groups};
use crate::{Adapter, report};
use anyhow::{anyhow, ensure};
use serde_json::Value;

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) scenario: Scenario,
    /// The form with this in its name.
    pub(super) form: Option<String>,
    pub(super) mechanism: Mechanism,
    /// The device with this in its name or driver.
    pub(super) device: Option<String>,
    /// The same of the other adapter, where there are two.
    pub(super) second: Option<String>,
}

/// See the file's head.
pub(super) struct Recordable {
    pub(super) runner: Box<dyn Runner>,
    /// All that it is done on.
    pub(super) adapters: Vec<Adapter>,
    pub(super) form: Option<String>,
    about: Vec<(String, String)>,
}

impl Recordable {
    /// Whose first batch is done: what is done first is compiled, mapped and touched.
    pub(super) fn open(wanted: &Wanted) -> anyhow::Result<Self> {
        let (scenario, mechanism) = (wanted.scenario, wanted.mechanism);
        ensure!(
            mechanism.is_native(),
            "{mechanism} has no native fences, which is what a trace shows: name a mechanism that begins with native"
        );
        let (instance, devices) = devices::connect()?;
        let device = vulkan::choose(&devices, wanted.device.as_deref())?.clone();
        let mut bench = Bench::new(instance, device.clone(), mechanism.is_local());
        if let Some(second) = &wanted.second {
            bench = bench.beside(vulkan::choose(&devices, Some(second))?.clone());
        }
        let Offered {
            mut runner,
            form,
            adapters,
        } = wanted.offered(&bench)?;
        ensure!(
            wanted.second.is_none() || adapters.len() > 1,
            "{scenario} is done on one adapter: leave out --second"
        );
        runner.prepare()?;
        runner.batch()?;
        let infos: Vec<_> = adapters.iter().filter_map(Adapter::info).collect();
        let about = about(wanted, &infos, form.as_deref(), runner.work());
        Ok(Self {
            runner,
            adapters,
            form,
            about,
        })
    }

    /// One batch.
    pub(super) fn batch(&mut self) -> anyhow::Result<()> {
        self.runner.prepare()?;
        self.runner.batch().map(drop)
    }

    /// What a trace of it says of itself.
    pub(super) fn about(&self) -> Vec<(String, String)> {
        self.about.clone()
    }
}

/// Who does what was asked for.
struct Offered {
    runner: Box<dyn Runner>,
    form: Option<String>,
    adapters: Vec<Adapter>,
}

impl Wanted {
    /// The first form that was asked for and that the device offers, and who does it.
    fn offered(&self, bench: &Bench) -> anyhow::Result<Offered> {
        let mut refused = None;
        for group in groups(self.scenario) {
            let entries = group.entries.iter();
            for entry in entries.filter(|entry| entry.mechanism == self.mechanism) {
                let form = entry.form.or(group.form);
                if form.is_some_and(|form| !self.is_asked(form)) {
                    continue;
                }
                if let Some(why) = entry.obstacle(&bench.adapter) {
                    return Err(anyhow!(
                        "{} does no {} on {}: {why}",
                        self.mechanism,
                        self.scenario,
                        bench.adapter.name
                    ));
                }
                let bench = bench.clone().remembering();
                let runner = match entry.runner(&bench) {
                    Ok(runner) => runner,
                    Err(error) if error.is::<NotOffered>() => {
                        refused = Some(error);
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                // Some are told apart by what they say of themselves.
                let params = runner.params();
                let variant = params.get("variant").and_then(Value::as_str);
                let form = form.or(variant);
                if form.map_or(self.form.is_none(), |form| self.is_asked(form)) {
                    return Ok(Offered {
                        form: form.map(str::to_owned),
                        runner,
                        adapters: bench.opened(),
                    });
                }
            }
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        let form = self.form.as_deref().unwrap_or_default();
        Err(anyhow!(
            "no form of {} by {} has {form:?} in its name: leave out --form for the first",
            self.scenario,
            self.mechanism
        ))
    }

    fn is_asked(&self, form: &str) -> bool {
        let wanted = self.form.as_deref().map(str::to_lowercase);
        wanted.is_none_or(|wanted| form.to_lowercase().contains(&wanted))
    }
}

fn about(
    wanted: &Wanted,
    devices: &[&AdapterInfo],
    form: Option<&str>,
    work: &str,
) -> Vec<(String, String)> {
    let machine = report::Machine::this();
    let of_each = |said: fn(&AdapterInfo) -> String| {
        let each: Vec<_> = devices.iter().map(|device| said(device)).collect();
        match &each[..] {
            [one, other] if one == other => format!("{one}, twice"),
            each => each.join(" and "),
        }
    };
    let settings = driver_settings::in_force();
    let settings: Vec<_> = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    [
        ("program", format!("nfence {}", env!("CARGO_PKG_VERSION"))),
        ("workload", wanted.scenario.to_string()),
        ("form", form.unwrap_or_default().to_owned()),
        ("mechanism", wanted.mechanism.to_string()),
        ("batch", work.to_owned()),
        ("device", of_each(|device| device.name.clone())),
        (
            "driver",
            of_each(|device| format!("{} {}", device.driver_name, device.driver_info)),
        ),
        ("driver settings", settings.join(", ")),
        ("processor", machine.cpu),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
