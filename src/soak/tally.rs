//! Tally: what a soak has done, all of it checked.

use super::outcome::{Due, Expected};
use super::play::Counted;
use super::program::Command;
use super::round::{Burst, Round};
use super::stage::Stage;
use super::visit::Visit;
use crate::Adapter;
use crate::abi::wddm::VidSchCaps;
use crate::os::Record;
use crate::sync::Ordering;
use serde::Serialize;

/// Counts of rounds that went well, on the engines that are soaked; what the model executes as oracle is apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Rounds.
    pub rounds: u64,
    /// Adapters that were opened for them.
    pub adapters: u64,
    /// Those whose interrupts name queues and not fences, among them.
    pub optimized_adapters: u64,
    /// Those whose values and logs are mapped a second time, for the GPU's command processor.
    pub twice_mapped_adapters: u64,
    /// Processes.
    pub devices: u64,
    /// Contexts.
    pub contexts: u64,
    /// Hardware queues.
    pub queues: u64,
    /// Those of kernel mode, beside these.
    pub kernel_queues: u64,
    /// Native fences, but progress fences.
    pub fences: u64,
    /// Those that two adapters have open, among them.
    pub cross_adapter_fences: u64,
    /// Monitored fences, beside these.
    pub monitored_fences: u64,
    /// Packets that engines executed.
    pub packets: u64,
    /// SIGNAL packets among them: signals of the GPU.
    pub signals: u64,
    /// Signals of progress fences, beside these.
    pub progress_signals: u64,
    /// WAIT packets.
    pub gpu_waits: u64,
    /// Waits of kernel-mode queues, which the operating system held them at or let them pass.
    pub kernel_waits: u64,
    /// Signals that it made for them.
    pub kernel_signals: u64,
    /// FILL, COPY and TIMESTAMP packets, whose words were compared.
    pub transfers: u64,
    /// DISPATCH packets, whose kernels' words were.
    pub dispatches: u64,
    /// Signals of the CPU.
    pub cpu_signals: u64,
    /// Waits of the CPU.
    pub cpu_waits: u64,
    /// Waits of the CPU that timed out, as they should.
    pub timed_out: u64,
    /// Those that were dropped, or whose handle was closed while they stood; of visits, beside the waits that are counted.
    pub cancelled_waits: u64,
    /// Fences and pairs of queues that came and went while all others worked.
    pub visits: u64,
    /// Those whose queue went with work behind a wait, among them.
    pub visits_with_work: u64,
    /// Rewinds of their fences by the CPU.
    pub rewinds: u64,
    /// Log entries that were read, and compared; all others were counted.
    pub log_entries: u64,
    /// Contexts suspended, priorities changed, times that tracing was switched.
    pub disturbances: u64,
    /// Native-fence-signaled interrupts.
    pub interrupts: u64,
    /// Fences that they named.
    pub notifications: u64,
    /// Doorbells that a driver with too few of them took away.
    pub doorbells_taken: u64,
    /// Slices of the engines.
    pub slices: u64,
    /// Engines that hung or were lost on purpose.
    pub faults: u64,
    /// Engines that were reset for it.
    pub recoveries: u64,
    /// Those whose place another took; others let go of what hung them.
    pub replaced: u64,
    /// Processes that had a fence open which the guilty could signal.
    pub heirs: u64,
    /// Rounds of which nothing could be foretold, since the guilty had done all before its engine was found lost.
    pub unforetold: u64,
    /// Signals that the model executed as oracle.
    pub model_signals: u64,
}

impl Tally {
    /// A round went well.
    pub(super) fn add_round(
        &mut self,
        round: &Round,
        expected: &Expected,
        (bursts, has_fault): (&[Burst], bool),
        counted: &Counted,
    ) {
        let of_bursts: u64 = bursts.iter().map(Burst::total).sum();
        let ends: u64 = bursts.iter().map(|burst| burst.lists).sum();
        let (of_engines, of_the_os) = counts(round, expected);
        let queues = round.program.queues.iter();
        let of_kernel_mode = queues.filter(|queue| queue.mode.is_kernel()).count();
        let queues = round.places.len() - of_kernel_mode + bursts.len() + usize::from(has_fault);
        self.rounds += 1;
        self.devices += (round.devices.len() + usize::from(has_fault)) as u64;
        self.contexts += round.contexts.len() as u64;
        self.queues += queues as u64;
        self.kernel_queues += of_kernel_mode as u64;
        let monitored = round.fences.iter().filter(|fence| fence.is_monitored);
        let monitored = monitored.count();
        self.fences += (round.fences.len() - monitored + bursts.len()) as u64;
        self.monitored_fences += monitored as u64;
        let crosses = (0..round.fences.len()).filter(|fence| round.crosses(*fence).is_some());
        self.cross_adapter_fences += crosses.count() as u64;
        self.packets += expected.program.packets() + of_bursts + ends;
        self.packets -= of_the_os.waits + of_the_os.signals;
        self.signals += of_engines.signals + of_bursts;
        self.progress_signals += of_engines.progress_signals + ends;
        self.gpu_waits += of_engines.waits;
        self.kernel_waits += of_the_os.waits;
        self.kernel_signals += of_the_os.signals;
        self.transfers += expected.program.transfers(&round.program);
        self.dispatches += expected.program.dispatches(&round.program);
        self.cpu_signals += round.program.cpu.len() as u64;
        let of = |counter: &crate::sync::AtomicU64| counter.load(Ordering::Relaxed);
        self.cpu_waits += of(&counted.cpu_waits);
        let ends_so =
            |is: fn(&Due) -> bool| expected.waits.iter().filter(|due| is(due)).count() as u64;
        self.timed_out += ends_so(|due| *due == Due::TimesOut);
        self.cancelled_waits += ends_so(|due| matches!(due, Due::Dropped(_) | Due::Closed));
        self.add_visits(&round.visits);
        self.log_entries += of(&counted.entries_read);
        self.disturbances += of(&counted.disturbed);
        self.faults += u64::from(has_fault);
        let heir = round.fault.and_then(|fault| fault.heir);
        self.add_heirs(u64::from(heir.is_some() && has_fault));
    }

    /// Each has a queue with a wait, and a copy behind it.
    fn add_heirs(&mut self, heirs: u64) {
        self.heirs += heirs;
        self.queues += heirs;
        self.fences += heirs;
        self.packets += 3 * heirs;
        self.gpu_waits += heirs;
        self.transfers += heirs;
        self.progress_signals += heirs;
    }

    fn add_visits(&mut self, visits: &[Visit]) {
        self.visits += visits.len() as u64;
        self.queues += 2 * visits.len() as u64;
        self.fences += visits.len() as u64;
        for visit in visits {
            let [signals, packets] = visit.signals_and_packets();
            let laps = visit.laps.len() as u64;
            self.signals += signals;
            self.packets += packets;
            self.progress_signals += 2 * laps;
            self.gpu_waits += laps;
            self.transfers += 2 * laps;
            self.cancelled_waits += laps;
            self.rewinds += visit.rewinds();
            self.visits_with_work += u64::from(visit.leaves_work());
            self.devices += u64::from(visit.is_apart);
            self.contexts += u64::from(visit.is_apart);
        }
    }

    /// The model executed a round, whose bursts were these.
    pub(super) fn add_oracle(&mut self, round: &Round, expected: &Expected, bursts: &[Burst]) {
        self.model_signals += counts(round, expected).0.signals;
        self.model_signals += bursts.iter().map(Burst::total).sum::<u64>();
        let of_visits = round
            .visits
            .iter()
            .map(|visit| visit.signals_and_packets()[0]);
        self.model_signals += of_visits.sum::<u64>();
    }

    /// Adapters are closed, and were counted for until now.
    pub(super) fn add_stage(&mut self, stage: &Stage) {
        stage
            .adapters()
            .for_each(|adapter| self.add_adapter(adapter));
    }

    fn add_adapter(&mut self, adapter: &Adapter) {
        let (interrupts, counters) = (adapter.os().interrupts(), adapter.node_counters());
        self.adapters += 1;
        let caps = adapter.os().vidsch_caps();
        let is_optimized = caps.has(VidSchCaps::OPTIMIZED_NATIVE_FENCE_SIGNALED_INTERRUPT);
        self.optimized_adapters += u64::from(is_optimized);
        let caps = adapter.os().native_fence_caps();
        let is_mapped_twice = caps.is_ok_and(|caps| caps.published.map_to_gpu_system_process != 0);
        self.twice_mapped_adapters += u64::from(is_mapped_twice);
        self.interrupts += interrupts.native_fence_signaled();
        self.notifications += interrupts.fences_named();
        self.doorbells_taken += interrupts.doorbells_taken();
        self.slices += counters.slices;
        let records = adapter.os().records();
        let resets = records.iter();
        let resets = resets.filter(|note| note.code == Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
        self.recoveries += resets.count() as u64;
        self.replaced += counters.resets;
    }
}

/// Commands of one kind of queues.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    waits: u64,
    signals: u64,
    progress_signals: u64,
}

/// Of the program: what its engines executed, then what the operating system did for queues of kernel mode.
fn counts(round: &Round, expected: &Expected) -> (Counts, Counts) {
    let (mut of_engines, mut of_the_os) = Default::default();
    let ends = expected.program.queues.iter();
    for (at, (end, queue)) in ends.zip(&round.program.queues).enumerate() {
        for command in &queue.commands[..end.read as usize] {
            let counts: &mut Counts = if round.is_of_the_os(at, command) {
                &mut of_the_os
            } else {
                &mut of_engines
            };
            match command {
                Command::Wait(..) => counts.waits += 1,
                Command::Signal(..) => counts.signals += 1,
                Command::Progress(_) => counts.progress_signals += 1,
                _ => {}
            }
        }
    }
    (of_engines, of_the_os)
}
