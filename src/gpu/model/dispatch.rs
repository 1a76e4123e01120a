//! Dispatches: packets that run kernels of the process.
//!
//! As `shaders/engine/dispatch.glsl`, which says what a round is and what is released when. The model has no block:
//! what a round has released is there for whoever runs the slice's rounds.

use super::dispatch_table::{Bringer, DispatchTable, Job};
use super::epilogue::{Between, HandedOver};
use super::kernel_signal::finish_signals;
use super::lane::{Globals, Lane, NO_QUEUE, Shared};
use super::resolve::handle_fault;
use super::violation::Checked;
use crate::abi::{
    Dispatch, EngineControl, EngineReport, FaultCode, HandleAccess, LocalHandle, MAX_JOBS,
    MAX_KERNELS, Opcode, PACKET_BYTES, Packet, QueueDescriptor, QueueState, QueueStatus,
    SliceReason,
};
use crate::sync::plain::{MutexGuard, lock};

/// Executions for which a table is held back, beside those of two looks at every queue, while other queues go on.
pub(super) const DISPATCH_PATIENCE: u64 = 8;
/// Times that a lane of the shader tries to add a job to those of a kernel.
const TOGETHER_TRIES: u64 = MAX_JOBS;
/// Loop passes that it can take to get one ready.
pub(super) const DISPATCH_PASSES: u64 = Dispatch::MOST_PARAMETER_BYTES / 8 + 1 + 2 * TOGETHER_TRIES;
/// And those of a round besides.
pub(super) const ROUND_PASSES: u64 = MAX_JOBS + 2 * MAX_KERNELS + 3;

/// The dispatch at the head, as far as the packet says.
struct Wanted {
    packet: u64,
    kernel: u32,
    finds_job: bool,
    schedules_itself: bool,
    groups: [u32; 3],
    bytes: u64,
}

impl Globals<'_> {
    fn is_last_round(&self) -> bool {
        self.round == self.layout.rounds
    }

    /// Whether a round that ends for this reason releases its table.
    fn releases(&self, s: &Shared, end: SliceReason) -> bool {
        self.dispatches && end == SliceReason::Dispatch && !lock(&s.table).jobs.is_empty()
    }
}

/// Where the newer copy of the state of a job's queue lies.
pub(super) fn newer_state(g: &Globals<'_>, job: &Job) -> Checked<u64> {
    let even = g.observe(job.state_va + QueueState::SEQUENCE)?;
    let odd = g.observe(job.state_va + QueueState::BYTES + QueueState::SEQUENCE)?;
    Ok(job.state_va + if odd > even { QueueState::BYTES } else { 0 })
}

/// As the kernel of a job is about to run: of an engine that does not come back the OS knows by it whose it was.
pub(super) fn name_job(g: &Globals<'_>, job: &Job) -> Checked<()> {
    let number = g.peek(job.descriptor_va + QueueDescriptor::HW_QUEUE)?;
    g.put(g.report_va + EngineReport::STALLED_PACKET, job.packet)?;
    g.publish(g.report_va + EngineReport::STALLED_QUEUE, number + 1)
}

/// Before the first meeting: what the round before released is done. The newer of the two copies of a queue's state
/// says so from here on.
pub(super) fn begin_round(g: &Globals<'_>, s: &Shared) -> Checked<()> {
    let released = std::mem::take(&mut *lock(&s.released));
    // One that an epilogue has made, and that has not run, is given up.
    let has_run = lock(&s.between).give_up(released.len() as u64);
    for job in released.into_iter().filter(|_| has_run) {
        let newer = newer_state(g, &job)?;
        finish_signals(g, s, &job, newer)?;
        g.publish(newer + QueueState::TRANSFERRED, Dispatch::RELEASED)?;
    }
    let mut table = lock(&s.table);
    let turn = table.turn(false);
    let mut favours = None;
    for ordinal in 0..g.queue_count {
        let descriptor = g.peek(g.run_list_va + u64::from(ordinal) * 8)?;
        if Some(descriptor) == turn {
            favours = Some((descriptor, ordinal));
        }
    }
    *table = table.favouring(favours);
    Ok(())
}

/// By lane 0, after it: all of them are known to be done, so none is under way.
pub(super) fn forget_names(g: &Globals<'_>) -> Checked<()> {
    g.publish(g.report_va + EngineReport::STALLED_QUEUE, 0)
}

/// By lane 0, last: what runs before the next round. `interrupts`: the slice ends for what was `raised`. How many
/// dispatches that are, and whether their kernel schedules itself.
pub(super) fn end_round(
    g: &Globals<'_>,
    s: &Shared,
    end: SliceReason,
    (raised, interrupts): (bool, bool),
    known: HandedOver,
) -> Checked<(u64, bool)> {
    let goes = g.releases(s, end);
    let mut table = lock(&s.table);
    let can_schedule_itself = goes && !g.stalls && table.can_schedule_itself();
    let scheduling = can_schedule_itself && !interrupts && g.layout.depth > 1;
    let jobs = if goes {
        std::mem::take(&mut table.jobs)
    } else {
        Vec::new()
    };
    let turn = table.turn(goes);
    table.kept_back = if goes {
        false
    } else {
        table.kept_back || !table.jobs.is_empty()
    };
    table.raised = goes && raised;
    *table = table.favouring(turn.map(|descriptor| (descriptor, 0)));
    drop(table);
    let count = jobs.len() as u64;
    let mut between = Between::of_engine(goes);
    if let Some(first) = jobs.first() {
        name_job(g, first)?;
        if scheduling {
            let process = g.peek(first.descriptor_va + QueueDescriptor::HANDLE_DIRECTORY_VA)?;
            between = Between::of_kernel(process, known);
        }
    }
    *lock(&s.between) = between;
    *lock(&s.released) = jobs;
    Ok((count, can_schedule_itself))
}

impl Lane<'_> {
    /// Checks the dispatch at the head, and reads its counts.
    fn check_dispatch(&mut self) -> Checked<Result<Wanted, FaultCode>> {
        let packet = self.q.ring_va + (self.q.read & (self.q.ring_capacity - 1)) * PACKET_BYTES;
        let handle = LocalHandle::from_raw((self.p.control >> 32) as u32);
        let entry = self.look_up(handle)?;
        if let Some(fault) = handle_fault(handle.generation(), entry.meta, HandleAccess::KERNEL) {
            return Ok(Err(fault));
        }
        let shape = self.peek(packet + Packet::DESTINATION_OFFSET)?;
        let bytes = shape >> 32;
        let kernel = Dispatch::kernel(entry.detail);
        if bytes != u64::from(kernel.parameter_bytes) || bytes > Dispatch::MOST_PARAMETER_BYTES {
            return Ok(Err(FaultCode::Parameters));
        }
        let (mut xy, mut z) = (self.p.value, shape & 0xffff_ffff);
        let handles = self.peek(packet + Packet::SOURCE_HANDLE)?;
        if let Some(bounds) = &self.bounds {
            bounds.meet_allocations(self.g.memory)?;
        }
        if handles >> 32 != 0 {
            let counts = match self.resolve_allocation(handles >> 32)? {
                Ok(counts) => counts,
                Err(fault) => return Ok(Err(fault)),
            };
            let offset = self.peek(packet + Packet::COUNTS_OFFSET)?;
            if !counts.holds(offset, Dispatch::COUNTS_BYTES) {
                return Ok(Err(FaultCode::Range));
            }
            xy = self.peek(counts.at(offset))?;
            z = self.peek(counts.at(offset + 8))? & 0xffff_ffff;
        }
        let groups = [xy as u32, (xy >> 32) as u32, z as u32];
        if groups.iter().any(|groups| *groups > Dispatch::MOST_GROUPS) {
            return Ok(Err(FaultCode::Groups));
        }
        self.is_here = kernel.version <= self.g.version;
        Ok(Ok(Wanted {
            packet,
            kernel: kernel.slot,
            finds_job: kernel.finds_job,
            schedules_itself: kernel.schedules_itself,
            groups,
            bytes,
        }))
    }

    /// The parameters, with addresses for references.
    fn parameters(
        &mut self,
        packet: u64,
        handle: u64,
        bytes: u64,
    ) -> Checked<Result<Vec<u64>, FaultCode>> {
        let from = match self.resolve_allocation(handle)? {
            Ok(from) => from,
            Err(fault) => return Ok(Err(fault)),
        };
        let offset = self.peek(packet + Packet::SOURCE_OFFSET)?;
        let references = self.peek(packet + Packet::BYTES_TO_TRANSFER)?;
        if !from.holds(offset, bytes) {
            return Ok(Err(FaultCode::Range));
        }
        let mut parameters = Vec::new();
        let mut found = None;
        for word in 0..bytes / 8 {
            let mut value = self.peek(from.at(offset + word * 8))?;
            if references >> word & 1 != 0 {
                match self.resolve_allocation(value & 0xffff_ffff)? {
                    Err(fault) => found = Some(fault),
                    Ok(named) if !named.has(value >> 32) => found = Some(FaultCode::Range),
                    Ok(named) => value = named.at(value >> 32),
                }
            }
            parameters.push(value);
            if self.g.passes.end_loop() {
                // Another slice begins anew.
                break;
            }
        }
        self.is_here &= parameters.len() as u64 == bytes / 8;
        Ok(found.map_or(Ok(parameters), Err))
    }

    fn table(&self) -> MutexGuard<'_, DispatchTable> {
        lock(if self.g.epilogue {
            &self.s.own_table
        } else {
            &self.s.table
        })
    }

    fn bringer(&self) -> Bringer {
        Bringer {
            ordinal: self.q.ordinal,
            descriptor_va: self.q.descriptor_va,
            process: self.q.handle_directory_va,
        }
    }

    /// Gives the dispatch at the head a place in the table: false if it has to wait for another round or slice. What
    /// is wrong with it is in `handle_fault`.
    pub(super) fn prepare_dispatch(&mut self) -> Checked<bool> {
        let wanted = match self.check_dispatch()? {
            Ok(wanted) => wanted,
            Err(fault) => {
                self.p.handle_fault = Some(fault);
                return Ok(false);
            }
        };
        let groups: u64 = wanted
            .groups
            .iter()
            .map(|groups| u64::from(*groups))
            .product();
        let alone = !wanted.finds_job || groups > u64::from(Dispatch::MOST_GROUPS);
        let schedules_itself = wanted.schedules_itself && !alone && groups != 0;
        let only = schedules_itself.then_some(wanted.kernel);
        let bringer = self.bringer();
        if !self.is_here || !self.table().admits(bringer, alone, only) {
            return Ok(false);
        }
        let handle = self.peek(wanted.packet + Packet::SOURCE_HANDLE)? & 0xffff_ffff;
        let parameters = match wanted.bytes {
            0 => Ok(Vec::new()),
            bytes => self.parameters(wanted.packet, handle, bytes)?,
        };
        let parameters = match parameters {
            Ok(parameters) => parameters,
            Err(fault) => {
                self.p.handle_fault = Some(fault);
                return Ok(false);
            }
        };
        let ticks = self.ticks.now(self.g);
        if self.g.verbose {
            // Of a table that is kept back it is released with another one, and later.
            self.q.observed = ticks;
        }
        let job = Job {
            kernel: wanted.kernel,
            schedules_itself,
            groups: wanted.groups,
            parameters,
            state_va: self.q.state_va,
            descriptor_va: self.q.descriptor_va,
            packet: self.q.read,
            ticks,
            signals: Vec::new(),
        };
        Ok(self.is_here && self.table().add(bringer, job, alone))
    }

    /// Whether the queue in registers stands at a dispatch that is to be made, as far as the packet is looked at here.
    pub(super) fn is_at_dispatch(&self) -> bool {
        self.q.ordinal != NO_QUEUE
            && !self.q.stands
            && self.p.fetched
            && Opcode::from_bits(self.p.control & 0xff) == Some(Opcode::Dispatch)
            && self.q.transferred != Dispatch::RELEASED
            && self.q.status == QueueStatus::Ready
            && self.p.handle_fault.is_none()
            && u64::from(self.p.control as u32 >> 8) == Packet::LENGTH_UNITS
    }

    /// At the end of an execution, of a queue in registers that stands at a dispatch. Where the engine has no kernel,
    /// no handle is one's.
    pub(super) fn stand_at_dispatch(&mut self) -> Checked<()> {
        let stands = self.is_at_dispatch();
        let favours = lock(&self.s.table).favours();
        let is_turn = favours.is_none_or(|ordinal| ordinal == self.q.ordinal);
        if stands && self.g.dispatches && self.iterations == 0 && !is_turn {
            // In the next execution, once the one whose turn it is has come; or in the next round, if there is none.
            lock(&self.s.table).note_refused(self.bringer());
            return Ok(());
        }
        if !stands {
            return Ok(());
        }
        if self.g.peek(self.g.control_va + EngineControl::DISPATCHES)? == 0 {
            self.p.handle_fault = Some(FaultCode::Handle);
            return Ok(());
        }
        let goes = self.g.dispatches && !self.g.is_last_round() && self.prepare_dispatch()?;
        // Of one that is refused the next step tells.
        self.q.stands = self.p.handle_fault.is_none();
        if self.q.stands && !goes {
            lock(&self.s.table).waits = true;
        }
        Ok(())
    }
}
