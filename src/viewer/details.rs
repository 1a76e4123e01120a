//! Details: what lies under a point of a picture, in words.

use super::index::{Marks, done, waited_for};
use super::lanes::LaneKind;
use super::rows::Row;
use super::scene::{Scene, dispatch_labels};
use super::stack::{Item, StackRow};
use super::time_text::exact;
use super::view::{View, ns};
use crate::report::time;
use crate::trace::{Dispatch, Operation, WaitEnd, WaiterKind, What};

/// Pixels at scale 1 by which a mark may be missed.
const NEAR: f32 = 4.0;

impl Scene<'_> {
    /// Lines of text on what is at a point, in pixels; none where there is nothing.
    #[must_use]
    pub fn details(&self, view: &View, [x, y]: [f32; 2]) -> Vec<String> {
        let Some(lane) = self.lanes.at(view, y).filter(|_| x >= view.gutter()) else {
            return Vec::new();
        };
        let time = view.time_of(x);
        if time < 0.0 || time > ns(self.trace.length) {
            return Vec::new();
        }
        #[allow(clippy::cast_sign_loss, reason = "it is not negative")]
        let time = time as u64;
        let row = lane.row_at(view, y);
        let column = view.time_of(x.floor() + 1.0) - view.time_of(x.floor());
        match lane.kind {
            LaneKind::Queue(queue) => {
                let marks = &self.index.queues[queue].marks;
                self.near_mark(view, marks, x)
                    .or_else(|| row.map(|row| self.of_queue(queue, row, time, column)))
                    .unwrap_or_default()
            }
            LaneKind::Engine(node) => {
                let Some(engine) = self.index.engines.get(&node) else {
                    return Vec::new();
                };
                let slice = || {
                    let piece = engine.slices.piece(engine.slices.first_after(time))?;
                    (piece.begin <= time).then(|| self.of_event(piece.item))
                };
                let near = self.near_mark(view, &engine.marks, x);
                near.or_else(slice).unwrap_or_default()
            }
            LaneKind::Cpu => {
                let of_row = || {
                    let row = self.index.cpu.rows.placed.get(row?)?;
                    // What takes no column of its own is still in one.
                    let at = time.saturating_sub(whole(column));
                    let piece = row.piece(row.first_after(at))?;
                    (piece.begin <= time).then(|| self.of_event(piece.item))
                };
                let near = || self.near_mark(view, &self.index.cpu.marks, x);
                of_row().or_else(near).unwrap_or_default()
            }
            LaneKind::Fence(fence) => self.of_fence(fence, time),
        }
    }

    fn near_mark(&self, view: &View, marks: &Marks, x: f32) -> Option<Vec<String>> {
        let near = NEAR * view.scale.factor();
        let from = whole(view.time_of(x - near).max(0.0));
        let to = whole(view.time_of(x + near).max(0.0).ceil());
        let range = marks.before(from)..marks.before(to);
        let mark = marks.marks.get(range.start).filter(|_| !range.is_empty())?;
        let mut said = self.of_event(mark.event);
        if range.len() > 1 {
            said.push(format!("and {} more here", range.len() - 1));
        }
        Some(said)
    }

    fn of_queue(&self, queue: usize, row: usize, time: u64, column: f64) -> Vec<String> {
        let stack = &self.index.queues[queue].stack;
        let view = StackRow { stack, row };
        // What takes no column of its own is still in one.
        let first = view.first_after(time.saturating_sub(whole(column)));
        let last = view.first_after(time.saturating_add(1));
        let Some(piece) = view
            .piece(first)
            .filter(|piece| piece.begin <= time && view.is_there(piece))
        else {
            return Vec::new();
        };
        let Item { event, .. } = stack.items[piece.item];
        let mut said = self.of_event(event);
        let more = view.share(first..last).map_or(0, |share| share.all);
        if more > 1 {
            said.push(format!("and {} more here: zoom in", more - 1));
        }
        said
    }

    fn of_fence(&self, fence: usize, time: u64) -> Vec<String> {
        let values = &self.index.fences[fence];
        let mut said = vec![
            format!("{} at {}", self.trace.fence_name(fence as u32), exact(time)),
            values.current.at(time).map_or_else(
                || String::from("CurrentValue: not known yet"),
                |value| format!("CurrentValue {value}"),
            ),
        ];
        said.push(match values.monitored.at(time) {
            None => String::from("MonitoredValue: not known yet"),
            Some(value) => match waited_for(value) {
                None => String::from("MonitoredValue: the CPU waits for none"),
                Some(value) => format!("MonitoredValue {value}"),
            },
        });
        said
    }

    /// What there is to be said of an event.
    fn of_event(&self, event: usize) -> Vec<String> {
        let Some(seen) = self.trace.events.get(event) else {
            return Vec::new();
        };
        match &seen.what {
            What::Command(command) => {
                let [name, ..] = self.labels(command.operation, command.fence, command.value);
                let mut said = vec![name, self.queue_name(command.queue)];
                said.push(command.queued.map_or_else(
                    || String::from("queued before the recording"),
                    |queued| format!("queued {}", exact(queued)),
                ));
                if let Some(observed) = command.observed {
                    said.push(format!("observed {}", exact(observed)));
                }
                said.push(match (command.end, command.is_lost) {
                    (Some(end), _) => format!("done {}", exact(end)),
                    (None, true) => String::from("done; its entry was lost, so no one knows when"),
                    (None, false) => String::from("not done yet"),
                });
                let took = command.queued.or(command.observed).zip(command.end);
                if let Some((from, to)) = took {
                    said.push(format!("took {}", time(ns(to.saturating_sub(from)))));
                }
                if let (Operation::Wait, Some((from, to))) =
                    (command.operation, command.observed.zip(command.end))
                {
                    let blocked = to.saturating_sub(from);
                    said.push(format!("blocked its queue for {}", time(ns(blocked))));
                }
                said.extend(self.partners(event));
                said
            }
            What::Dispatch(dispatch) => self.dispatch_details(dispatch),
            What::Slice(slice) => vec![
                format!(
                    "slice {} of {}",
                    slice.number,
                    self.trace.node_name(slice.node_ordinal)
                ),
                format!("submitted {}", exact(slice.submitted)),
                format!("began {}", exact(slice.begin)),
                format!("ended {}: {}", exact(slice.end), slice.reason_name()),
                format!("seen {}", exact(slice.seen)),
                format!(
                    "ran for {}",
                    time(ns(slice.end.saturating_sub(slice.begin)))
                ),
            ],
            What::Interrupt {
                node_ordinal,
                kind,
                fences,
                done,
            } => {
                let mut said = vec![format!("interrupt: {}", kind.name())];
                said.extend(node_ordinal.map(|node| format!("of {}", self.trace.node_name(node))));
                if *fences > 0 {
                    said.push(format!("named {fences} fences"));
                }
                said.push(format!("at {}", exact(seen.at)));
                said.push(format!("deferred call done {}", exact(*done)));
                said
            }
            What::CpuSignal { fence, value, done } => {
                let [name, ..] = self.labels(Operation::Signal, *fence, *value);
                let mut said = vec![
                    name,
                    String::from("by the CPU"),
                    format!("begun {}", exact(seen.at)),
                    format!("done {}", exact(*done)),
                ];
                said.extend(self.partners(event));
                said
            }
            What::CpuWait(wait) => {
                let [name, ..] = self.labels(Operation::Wait, wait.fence, wait.value);
                let (whose, woke) = match wait.waiter {
                    WaiterKind::Thread => ("by a thread", "ran again"),
                    WaiterKind::Future => ("by a future", "told"),
                    WaiterKind::Event => ("by an event handle", "signalled"),
                    WaiterKind::Armed => ("by nobody who is told: it was armed", "ended"),
                };
                let mut said = vec![name, whose.to_owned()];
                said.push(format!("began {}", exact(wait.began)));
                said.push(format!("{woke} {}", exact(wait.woke)));
                let took = time(ns(wait.woke.saturating_sub(wait.began)));
                said.push(format!("took {took}"));
                said.extend(match wait.end {
                    WaitEnd::Released => None,
                    WaitEnd::AtOnce => Some(String::from("the value was there at once")),
                    WaitEnd::Seen => Some(String::from("seen while the thread looked")),
                    WaitEnd::GivenUp => Some(String::from("the value was not reached")),
                });
                said.extend(self.partners(event));
                said
            }
            What::Preemption { node_ordinal } => vec![
                format!("preemption of {}", self.trace.node_name(*node_ordinal)),
                format!("asked for {}", exact(seen.at)),
            ],
            What::Recovery { node_ordinal, step } => vec![
                format!(
                    "recovery of {}: {step}",
                    self.trace.node_name(*node_ordinal)
                ),
                format!("begun {}", exact(seen.at)),
            ],
            What::Lost(lost) => vec![
                format!("{} events lost", lost.count),
                format!("seen {}", exact(seen.at)),
            ],
            What::MonitoredValue { .. } => Vec::new(),
        }
    }

    fn dispatch_details(&self, dispatch: &Dispatch) -> Vec<String> {
        let [name, ..] = dispatch_labels(dispatch);
        let mut said = vec![name, self.queue_name(dispatch.queue)];
        said.push(dispatch.queued.map_or_else(
            || String::from("queued where nobody told of it"),
            |queued| format!("queued {}", exact(queued)),
        ));
        let (began, ended) = if dispatch.is_logged {
            ("released", "found done")
        } else {
            ("began no earlier than", "ended no later than")
        };
        said.extend(dispatch.began.map(|at| format!("{began} {}", exact(at))));
        said.push(match (dispatch.end, dispatch.is_lost) {
            (Some(at), _) => format!("{ended} {}", exact(at)),
            (None, true) => String::from("done; what would tell when was lost"),
            (None, false) => String::from("not done yet"),
        });
        if let Some((from, to)) = dispatch.began.zip(dispatch.end) {
            let ran = if dispatch.is_logged {
                "ran for"
            } else {
                "ran for at most"
            };
            said.push(format!("{ran} {}", time(ns(to.saturating_sub(from)))));
        }
        said
    }

    /// Who released a wait, or what a signal released.
    fn partners(&self, event: usize) -> Vec<String> {
        let Some(done) = done(self.trace, event) else {
            return Vec::new();
        };
        let near = self.index.arrows_between((done, done));
        let by = near.iter().filter(|arrow| arrow.to == event);
        let by = by.map(|arrow| format!("released by {}", self.who(arrow.from)));
        let released: Vec<_> = near.iter().filter(|arrow| arrow.from == event).collect();
        let what = match &released[..] {
            [] => None,
            [one] => Some(format!("released {}", self.who(one.to))),
            many => Some(format!("released {} waits", many.len())),
        };
        by.chain(what).collect()
    }

    fn queue_name(&self, queue: u32) -> String {
        let queue = &self.trace.queues[queue as usize];
        let kind = if queue.is_kernel_mode {
            "kernel-mode queue"
        } else {
            "queue"
        };
        let node = self.trace.node_name(queue.node_ordinal);
        format!(
            "{kind} {} of {node}, process {}",
            queue.number, queue.process
        )
    }

    /// A wait or a signal, and whose it is.
    fn who(&self, event: usize) -> String {
        let (operation, fence, value, whose) = match &self.trace.events[event].what {
            What::Command(command) => {
                let queue = self.trace.queues[command.queue as usize];
                let whose = format!("queue {}", self.trace.queue_number(&queue));
                (command.operation, command.fence, command.value, whose)
            }
            What::CpuSignal { fence, value, .. } => {
                (Operation::Signal, *fence, *value, String::from("the CPU"))
            }
            What::CpuWait(wait) => {
                let whose = format!("the CPU ({})", wait.waiter.name());
                (Operation::Wait, wait.fence, wait.value, whose)
            }
            _ => return String::new(),
        };
        let [name, ..] = self.labels(operation, fence, value);
        format!("{name} of {whose}")
    }
}

fn whole(time: f64) -> u64 {
    #[allow(clippy::cast_sign_loss, reason = "bounded below by 0")]
    let whole = time.max(0.0) as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::super::primitive::Rectangle;
    use super::super::sample::{self, US};
    use super::super::view::Scale;
    use super::*;
    use crate::trace::{Command, GpuClock, Trace};

    /// What is told of a row of a lane at a time.
    fn told(scale: Scale, kind: LaneKind, row: usize, time: u64) -> Vec<String> {
        let trace = sample::trace();
        let scene = Scene::new(&trace);
        let view = View::new((0, 100 * US), (2200, 1600), scale);
        let place = scene.lanes.lane(kind).unwrap().row(&view, row);
        let Rectangle { top, bottom, .. } = place;
        let x = view.x_of(ns(time));
        scene.details(&view, [x, f32::midpoint(top, bottom)])
    }

    #[test]
    fn a_command_is_told_with_its_times_and_who_released_it() {
        for scale in [Scale::One, Scale::Two] {
            assert_eq!(
                told(scale, LaneKind::Queue(1), 0, 30 * US),
                [
                    "wait fence 4 ≥ 5",
                    "queue 2 of node 1, process 7",
                    "queued 11 µs",
                    "observed 20 µs",
                    "done 51 µs",
                    "took 40.0 µs",
                    "blocked its queue for 31.0 µs",
                    "released by signal fence 4 = 5 of queue 9",
                ]
            );
            let behind = told(scale, LaneKind::Queue(1), 3, 30 * US);
            assert_eq!(behind[0], "signal fence 4 = 8");
            let signal = told(scale, LaneKind::Queue(0), 0, 30 * US);
            assert_eq!(signal.last().unwrap(), "released 2 waits");
            assert_eq!(told(scale, LaneKind::Queue(0), 0, 9 * US), [""; 0]);
            assert_eq!(told(scale, LaneKind::Queue(0), 0, 51 * US), [""; 0]);
        }
    }

    #[test]
    fn a_dispatch_is_told_with_what_is_known_of_its_times() {
        let trace = sample::trace();
        let at = |time: u64| Some(time * US);
        let dispatch = Dispatch {
            queue: 0,
            kernel: 0x0010_0003,
            groups: Some([16, 2, 1]),
            queued: at(60),
            began: at(62),
            end: at(65),
            is_logged: true,
            is_lost: false,
        };
        let scene = Scene::new(&trace);
        let said = scene.dispatch_details(&dispatch);
        assert_eq!(
            said,
            [
                "dispatch kernel 0x100003, 16 × 2 × 1",
                "queue 9 of node 1, process 7",
                "queued 60 µs",
                "released 62 µs",
                "found done 65 µs",
                "ran for 3.00 µs",
            ]
        );
        let open = Dispatch {
            groups: None,
            queued: None,
            end: None,
            is_logged: false,
            ..dispatch
        };
        let said = scene.dispatch_details(&open);
        assert_eq!(
            said[2..],
            [
                "queued where nobody told of it",
                "began no earlier than 62 µs",
                "not done yet"
            ]
        );
        assert_eq!(said[0], "dispatch kernel 0x100003");
    }

    #[test]
    fn threads_slices_and_fences_are_told() {
        let thread = told(Scale::One, LaneKind::Cpu, 0, 40 * US);
        assert_eq!(thread[..2], ["wait fence 4 ≥ 5", "by a thread"]);
        let slice = told(Scale::One, LaneKind::Engine(1), 0, 40 * US);
        assert!(
            slice.contains(&String::from("ended 55 µs: idle")),
            "{slice:?}"
        );
        let fence = told(Scale::One, LaneKind::Fence(1), 0, 50 * US + 500);
        assert_eq!(
            fence[1..],
            ["CurrentValue 5", "MonitoredValue: not known yet"]
        );
        assert!(told(Scale::One, LaneKind::Fence(1), 0, 101 * US).is_empty());
    }

    /// Mutant: `every-waiter-is-a-thread-for-people`.
    #[test]
    fn whoever_waits_is_told_and_how_it_ended() {
        let mut trace = sample::trace();
        let (name, at) = (String::from("wait fence 4 ≥ 5"), 30 * US);
        let mut events = trace.events.iter();
        let place = events.position(|event| matches!(event.what, What::CpuWait(_)));
        let place = place.unwrap();
        for (waiter, whose) in [
            (WaiterKind::Future, "by a future"),
            (WaiterKind::Event, "by an event handle"),
            (WaiterKind::Armed, "by nobody who is told: it was armed"),
        ] {
            if let What::CpuWait(wait) = &mut trace.events[place].what {
                (wait.waiter, wait.end) = (waiter, WaitEnd::GivenUp);
            }
            let said = Scene::new(&trace).of_event(place);
            assert_eq!(said[..2], [name.clone(), String::from(whose)]);
            assert_eq!(said[2], format!("began {}", exact(at)));
            assert_eq!(said.last().unwrap(), "the value was not reached");
        }
    }

    /// Mutant: `a-queue-does-not-say-its-adapter`.
    #[test]
    fn of_several_adapters_each_is_named() {
        let mut one = sample::trace();
        one.clocks = vec![GpuClock::default(); 2];
        let trace = Trace::together(vec![("a".into(), one.clone()), ("b".into(), one)]);
        let scene = Scene::new(&trace);
        let is_wait = |command: &Command| command.queue == 3 && command.observed.is_some();
        let (wait, _) = trace.commands().find(|(_, c)| is_wait(c)).unwrap();
        let said = scene.of_event(wait);
        assert_eq!(said[0], "wait fence 4 of adapter 1 ≥ 5");
        assert_eq!(said[1], "queue 2 of node 1 of adapter 1, process 7");
        let by = "released by signal fence 4 of adapter 1 = 5 of queue 9 of adapter 1";
        assert_eq!(said.last().unwrap(), by);
    }

    #[test]
    fn what_is_narrower_than_a_pixel_is_told_with_how_much_there_is() {
        let trace = sample::trace();
        let scene = Scene::new(&trace);
        let view = View::new((0, 100_000 * US), (1200, 800), Scale::One);
        let place = scene.lanes.lane(LaneKind::Queue(1)).unwrap().row(&view, 0);
        let x = view.x_of(50_000.0).floor() + 0.9;
        let said = scene.details(&view, [x, place.top + 2.0]);
        let last = said.last().map(String::as_str);
        assert_eq!(last, Some("and 10 more here: zoom in"), "{said:?}");
    }
}
