//! Recordable: a workload by native fences on one adapter, that is ready to be recorded.

use super::{devices, driver_settings};
use crate::vulkan::{self, AdapterInfo};
use crate::workload::{Bench, Entry, Group, Mechanism, Runner, Scenario, groups};
use crate::{Adapter, report};
use anyhow::{anyhow, ensure};

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) scenario: Scenario,
    /// The form with this in its name.
    pub(super) form: Option<String>,
    pub(super) mechanism: Mechanism,
    /// The device with this in its name or driver.
    pub(super) device: Option<String>,
}

/// See the file's head.
pub(super) struct Recordable {
    pub(super) runner: Box<dyn Runner>,
    pub(super) adapter: Adapter,
    pub(super) form: Option<&'static str>,
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
        let (instance, adapters) = devices::connect()?;
        let device = vulkan::choose(&adapters, wanted.device.as_deref())?.clone();
        let (group, entry) = wanted.entry(&device)?;
        let bench = Bench::new(instance, device.clone(), mechanism.is_local()).remembering();
        let mut runner = entry.runner(&bench)?;
        runner.prepare()?;
        runner.batch()?;
        let opened = bench.opened();
        let [adapter] = &opened[..] else {
            return Err(anyhow!(
                "{scenario} is done on {} adapters, and a recording is of one: name another workload",
                opened.len()
            ));
        };
        let form = entry.form.or(group.form);
        let about = about(wanted, &device, form, runner.work());
        Ok(Self {
            adapter: adapter.clone(),
            runner,
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

impl Wanted {
    /// The form that was asked for, and who does it.
    fn entry(&self, device: &AdapterInfo) -> anyhow::Result<(Group, Entry)> {
        let is_asked = |form: Option<&str>| {
            let wanted = self.form.as_deref().map(str::to_lowercase);
            wanted.is_none_or(|wanted| form.is_some_and(|f| f.to_lowercase().contains(&wanted)))
        };
        for group in groups(self.scenario) {
            let entries = group.entries.iter();
            let mut entries = entries.filter(|entry| entry.mechanism == self.mechanism);
            let found = entries.find(|entry| is_asked(entry.form.or(group.form)));
            if let Some(entry) = found.cloned() {
                if let Some(why) = entry.obstacle(device) {
                    return Err(anyhow!(
                        "{} does no {} on {}: {why}",
                        self.mechanism,
                        self.scenario,
                        device.name
                    ));
                }
                return Ok((group, entry));
            }
        }
        let form = self.form.as_deref().unwrap_or_default();
        Err(anyhow!(
            "no form of {} by {} has {form:?} in its name: leave out --form for the first",
            self.scenario,
            self.mechanism
        ))
    }
}

fn about(
    wanted: &Wanted,
    device: &AdapterInfo,
    form: Option<&str>,
    work: &str,
) -> Vec<(String, String)> {
    let machine = report::Machine::this();
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
        ("device", device.name.clone()),
        (
            "driver",
            format!("{} {}", device.driver_name, device.driver_info),
        ),
        ("driver settings", settings.join(", ")),
        ("processor", machine.cpu),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
