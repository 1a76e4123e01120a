//! Chrome: a trace as the JSON of Chrome's trace events, which Perfetto's user interface opens.
//!
//! Why not Perfetto's protobuf: flow arrows, counters, and times that no thread of this process took are all that is
//! needed, the JSON has them to the nanosecond, and any program reads it.
//!
//! Each engine is a process, of several adapters with the adapter's name, with a track of its slices and one a queue: a wait
//! is a box from when it was observed to its end, a signal a box of one nanosecond before its end (an arrow needs one to
//! start from), a dispatch a box from when it was released to when it was done. From queued to done a command
//! stands on a track of its own as well (async events, since they overlap as the ring's places do). The CPU is a process:
//! what it signals, who waits there, interrupts and their deferred calls, in lanes where they overlap. Fences are counters.

use super::chrome_line::{Arg, Args, Line, LocalId, Out, us};
use super::lanes::Lanes;
use super::{
    AdapterName, Command, CpuWait, Dispatch, Event, LostFrom, Operation, QueueName, Releaser,
    Slice, Trace, What,
};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

const CPU: u32 = 1;
const FENCES: u32 = 2;
/// Of node 0.
const FIRST_ENGINE: u32 = 10;
/// Tracks of the CPU.
const INTERRUPTS: u32 = 1;
const CPU_SIGNALS: u32 = 100;
const DEFERRED_CALLS: u32 = 200;
const CPU_WAITS: u32 = 300;
/// Tracks of an engine; queues come after it.
const SLICES: u32 = 1;
const FIRST_QUEUE: u32 = 2;

fn engine(node_ordinal: u32) -> u32 {
    FIRST_ENGINE.saturating_add(node_ordinal)
}

fn queue_track(index: u32, queue: &QueueName) -> (u32, u32) {
    (engine(queue.node_ordinal), FIRST_QUEUE + index)
}

impl Trace {
    /// Writes it as JSON of Chrome's trace events.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_chrome(&self, to: impl Write) -> io::Result<()> {
        let mut out = Out { to, is_first: true };
        out.to
            .write_all(b"{\"displayTimeUnit\":\"ns\",\"otherData\":")?;
        let about = Args(
            self.about
                .iter()
                .map(|(name, value)| (name.as_str(), Arg::Text(value)))
                .collect(),
        );
        serde_json::to_writer(&mut out.to, &about)?;
        out.to.write_all(b",\"traceEvents\":[")?;
        self.write_tracks(&mut out)?;
        let mut writer = Boxes {
            trace: self,
            deferred: Lanes::default(),
            waits: Lanes::default(),
            signals: Lanes::default(),
            ends: self.ends(),
            anchors: vec![None; self.events.len()],
            monitored: HashMap::new(),
        };
        for (index, event) in self.events.iter().enumerate() {
            writer.event(&mut out, index, event)?;
        }
        writer.lanes(&mut out)?;
        let anchors = writer.anchors;
        self.write_arrows(&mut out, &anchors)?;
        self.write_current_values(&mut out)?;
        out.to.write_all(b"\n]}\n")?;
        out.to.flush()
    }

    fn ends(&self) -> HashMap<(u32, u64), (u64, u64)> {
        let mut ends: HashMap<_, (u64, u64)> = HashMap::new();
        for (_, command) in self.commands() {
            if let (Operation::Signal, Some(end)) = (command.operation, command.end) {
                ends.entry((command.queue, end)).or_default().0 += 1;
            }
        }
        ends
    }

    fn write_tracks<W: Write>(&self, out: &mut Out<W>) -> io::Result<()> {
        out.process(CPU, "CPU", 0)?;
        out.track((CPU, INTERRUPTS), "interrupts")?;
        // Those that there is something of: in a damaged file an ordinal may be any number.
        let of_queues = self.queues.iter().map(|queue| queue.node_ordinal);
        let of_slices = self.events.iter().filter_map(|event| match &event.what {
            What::Slice(slice) => Some(slice.node_ordinal),
            What::Preemption { node_ordinal } | What::Recovery { node_ordinal, .. } => {
                Some(*node_ordinal)
            }
            _ => None,
        });
        let nodes: BTreeSet<u32> = of_queues.chain(of_slices).collect();
        for node in &nodes {
            let name = match self.adapter_of_node(*node) {
                Some((adapter, ordinal)) => {
                    let AdapterName { name, .. } = &self.adapters[adapter];
                    format!("adapter {adapter} ({name}): engine of node {ordinal}")
                }
                None => format!("engine of node {node}"),
            };
            out.process(engine(*node), &name, u64::from(*node) + 1)?;
            out.track((engine(*node), SLICES), "slices")?;
        }
        for (index, queue) in self.queues.iter().enumerate() {
            let kind = if queue.is_kernel_mode {
                "kernel-mode "
            } else {
                ""
            };
            let name = format!("{kind}queue {} of process {}", queue.number, queue.process);
            out.track(queue_track(index as u32, queue), &name)?;
        }
        out.process(FENCES, "fences", u64::from(u32::MAX))
    }

    /// From each signal to the waits that it let go.
    fn write_arrows<W: Write>(
        &self,
        out: &mut Out<W>,
        anchors: &[Option<Anchor>],
    ) -> io::Result<()> {
        for (id, release) in self.releases().iter().enumerate() {
            let (Releaser::Command(signal) | Releaser::CpuSignal(signal)) = release.signal;
            let (Some((from, left)), Some((to, arrived))) =
                (anchors[signal], anchors[release.wait])
            else {
                continue;
            };
            let arrow = |ph, track, at, bp| Line {
                id: Some(id as u64),
                bp,
                ..Line::new(ph, track, "releases").of("release").at(at)
            };
            out.line(&arrow("s", from, left, None))?;
            // Clocks may be off; an arrow that ends before it begins is none.
            out.line(&arrow("f", to, arrived.max(left), Some("e")))?;
        }
        Ok(())
    }

    /// CurrentValues, by what was stored.
    fn write_current_values<W: Write>(&self, out: &mut Out<W>) -> io::Result<()> {
        let mut stored: Vec<(u64, u32, u64)> = Vec::new();
        for event in &self.events {
            match &event.what {
                What::Command(Command {
                    operation: Operation::Signal,
                    fence,
                    value,
                    end: Some(end),
                    ..
                }) => stored.push((*end, *fence, *value)),
                What::CpuSignal { fence, value, done } => stored.push((*done, *fence, *value)),
                _ => {}
            }
        }
        stored.sort_unstable();
        for (at, fence, value) in stored {
            let name = format!("{} CurrentValue", self.fence_name(fence));
            out.line(
                &Line::new("C", (FENCES, 0), &name)
                    .at(at)
                    .with("value", value),
            )?;
        }
        Ok(())
    }
}

/// A track, and a time within a box there that is the innermost at that time.
type Anchor = ((u32, u32), u64);

/// What is written of each event by itself.
struct Boxes<'a> {
    trace: &'a Trace,
    deferred: Lanes,
    waits: Lanes,
    signals: Lanes,
    /// Signals of each queue at each time at which one ended, a clock may show one time for several; and how many of them
    /// were written.
    ends: HashMap<(u32, u64), (u64, u64)>,
    /// Where arrows from and to each event are tied.
    anchors: Vec<Option<Anchor>>,
    /// MonitoredValues as last written.
    monitored: HashMap<u32, u64>,
}

impl Boxes<'_> {
    fn event<W: Write>(&mut self, out: &mut Out<W>, index: usize, event: &Event) -> io::Result<()> {
        match &event.what {
            What::Command(command) => self.command(out, index, command),
            What::Dispatch(dispatch) => self.dispatch(out, index, dispatch),
            What::Slice(slice) => Self::slice(out, slice),
            What::Interrupt {
                node_ordinal,
                kind,
                fences,
                done,
            } => {
                let track = (CPU, INTERRUPTS);
                let line = Line::instant(track, kind.name(), event.at).of("interrupt");
                let node = u64::from(node_ordinal.unwrap_or(u32::MAX));
                out.line(&line.with("node", node).with("fences", u64::from(*fences)))?;
                let span = (event.at, *done);
                let lane = (CPU, DEFERRED_CALLS + self.deferred.lane(span));
                out.line(&Line::over(lane, kind.name(), span).of("deferred call"))
            }
            What::CpuSignal { fence, value, done } => {
                let name = self.name("signal", *fence, *value);
                let span = (event.at, *done);
                let track = (CPU, CPU_SIGNALS + self.signals.lane(span));
                self.anchors[index] = Some((track, event.at));
                let line = Line::over(track, &name, span).of("signal");
                out.line(&line.with("value", *value))
            }
            What::MonitoredValue { fence, value } => {
                self.monitored_value(out, event.at, *fence, *value)
            }
            What::CpuWait(wait) => self.cpu_wait(out, index, wait),
            What::Preemption { node_ordinal } => {
                let track = (engine(*node_ordinal), SLICES);
                out.line(&Line::instant(track, "preemption", event.at).of("operating system"))
            }
            What::Recovery { node_ordinal, step } => {
                let track = (engine(*node_ordinal), SLICES);
                out.line(&Line::instant(track, step, event.at).of("operating system"))
            }
            What::Lost(lost) => {
                let track = match lost.from {
                    LostFrom::WaitLog(queue)
                    | LostFrom::SignalLog(queue)
                    | LostFrom::VerboseLog(queue) => {
                        queue_track(queue, &self.trace.queues[queue as usize])
                    }
                    LostFrom::Slices(node) => (engine(node), SLICES),
                    LostFrom::Notes | LostFrom::Trace => (CPU, INTERRUPTS),
                };
                let name = format!("{} events lost", lost.count);
                let line = Line::instant(track, &name, event.at).of("lost");
                out.line(&line.with("count", lost.count))
            }
        }
    }

    fn name(&self, verb: &str, fence: u32, value: u64) -> String {
        let sign = if verb == "wait" { "≥" } else { "=" };
        format!("{verb} {} {sign} {value}", self.trace.fence_name(fence))
    }

    fn command<W: Write>(
        &mut self,
        out: &mut Out<W>,
        index: usize,
        command: &Command,
    ) -> io::Result<()> {
        let queue = &self.trace.queues[command.queue as usize];
        let track = queue_track(command.queue, queue);
        let name = self.name(command.operation.name(), command.fence, command.value);
        if let Some(end) = command.end {
            let begin = match command.operation {
                Operation::Wait => command.observed.unwrap_or(end),
                Operation::Signal => self.begin_of_signal(command.queue, end),
            };
            let anchor = match command.operation {
                // Before the boxes of signals that ended at that time as well.
                Operation::Wait => {
                    let signals = self.ends.get(&(command.queue, end));
                    let inner = signals.map_or(0, |(signals, _)| *signals);
                    end.saturating_sub(1 + inner).max(begin)
                }
                Operation::Signal => begin,
            };
            self.anchors[index] = Some((track, anchor));
            let line = Line::over(track, &name, (begin, end)).of(command.operation.name());
            let line = line.with("value", command.value);
            out.line(&match command.queued {
                Some(queued) => line.with("queued_us", Arg::Time(us(queued))),
                None => line,
            })?;
        }
        let times = (command.queued, command.end, command.is_lost);
        self.pending(out, (command.queue, index), &name, times)
    }

    fn dispatch<W: Write>(
        &self,
        out: &mut Out<W>,
        index: usize,
        dispatch: &Dispatch,
    ) -> io::Result<()> {
        let track = queue_track(dispatch.queue, &self.trace.queues[dispatch.queue as usize]);
        let name = format!("dispatch of kernel {:#x}", dispatch.kernel);
        if let (Some(began), Some(end)) = (dispatch.began, dispatch.end) {
            let line = Line::over(track, &name, (began, end)).of("dispatch");
            let groups = dispatch.groups.map(|[x, y, z]| format!("{x} x {y} x {z}"));
            let line = match &groups {
                Some(groups) => line.with("groups", groups.as_str()),
                None => line,
            };
            let line = match dispatch.queued {
                Some(queued) => line.with("queued_us", Arg::Time(us(queued))),
                None => line,
            };
            let times = if dispatch.is_logged {
                "logged by the engine"
            } else {
                "between what its queue's waits and signals show"
            };
            out.line(&line.with("times", times))?;
        }
        let times = (dispatch.queued, dispatch.end, dispatch.is_lost);
        self.pending(out, (dispatch.queue, index), &name, times)
    }

    /// What stands in a queue until it is done; one that is not, to the trace's end.
    fn pending<W: Write>(
        &self,
        out: &mut Out<W>,
        (queue, index): (u32, usize),
        name: &str,
        (queued, end, is_lost): (Option<u64>, Option<u64>, bool),
    ) -> io::Result<()> {
        let Some(queued) = queued else {
            return Ok(());
        };
        let named = &self.trace.queues[queue as usize];
        // Of one whose end was lost only the beginning is known.
        let open = if is_lost { queued } else { self.trace.length };
        let end = end.unwrap_or(open).max(queued);
        // One name for all of a queue: the user interface makes a track of each name.
        let pending = format!("queue {}: queued", named.number);
        for (ph, at) in [("b", queued), ("e", end)] {
            let id = LocalId {
                local: index.to_string(),
            };
            let line = Line {
                id2: Some(id),
                ..Line::new(ph, queue_track(queue, named), &pending)
                    .of("queued")
                    .at(at)
            };
            out.line(&line.with("command", name))?;
        }
        Ok(())
    }

    /// A nanosecond before its end, and a further one for each other that ended there: each box has a time of its own.
    fn begin_of_signal(&mut self, queue: u32, end: u64) -> u64 {
        let (_, written) = self.ends.entry((queue, end)).or_default();
        *written += 1;
        end.saturating_sub(*written)
    }

    fn slice<W: Write>(out: &mut Out<W>, slice: &Slice) -> io::Result<()> {
        let name = format!("slice {}", slice.number);
        let track = (engine(slice.node_ordinal), SLICES);
        let line = Line::over(track, &name, (slice.begin, slice.end)).of("slice");
        let line = line
            .with("ended", slice.reason_name())
            .with("submitted_us", Arg::Time(us(slice.submitted)))
            .with("seen_us", Arg::Time(us(slice.seen)));
        out.line(&line)
    }

    fn cpu_wait<W: Write>(
        &mut self,
        out: &mut Out<W>,
        index: usize,
        wait: &CpuWait,
    ) -> io::Result<()> {
        let span = (wait.began, wait.woke);
        let track = (CPU, CPU_WAITS + self.waits.lane(span));
        self.anchors[index] = Some((track, wait.woke.saturating_sub(1)));
        let name = self.name("wait", wait.fence, wait.value);
        let line = Line::over(track, &name, span)
            .of("wait")
            .with("value", wait.value);
        let line = line.with("waiter", wait.waiter.name());
        out.line(&line.with("ended", wait.end.name()))
    }

    /// Where nobody waits the value is the greatest there is, which would flatten the curve: 0 stands for it.
    fn monitored_value<W: Write>(
        &mut self,
        out: &mut Out<W>,
        at: u64,
        fence: u32,
        value: u64,
    ) -> io::Result<()> {
        let value = if value == u64::MAX { 0 } else { value };
        if self.monitored.insert(fence, value) == Some(value) {
            return Ok(());
        }
        let fence = self.trace.fence_name(fence);
        let name = format!("{fence} MonitoredValue (0: nobody waits)");
        out.line(
            &Line::new("C", (FENCES, 0), &name)
                .at(at)
                .with("value", value),
        )
    }

    /// Names of the lanes that were needed.
    fn lanes<W: Write>(&self, out: &mut Out<W>) -> io::Result<()> {
        for lane in 0..self.deferred.count() {
            out.track((CPU, DEFERRED_CALLS + lane), "deferred calls")?;
        }
        for lane in 0..self.signals.count() {
            out.track((CPU, CPU_SIGNALS + lane), "signals of the CPU")?;
        }
        for lane in 0..self.waits.count() {
            out.track((CPU, CPU_WAITS + lane), "waits of the CPU")?;
        }
        Ok(())
    }
}
