//! Trace: whatever bytes a file holds, they are read as a trace or refused, without a panic; and what was read is written
//! and read back as it is, is written as Chrome's trace events that are JSON, has arrows between what there is, is brought
//! together with others, and is looked at, wherever one looks.

use arbitrary::{Arbitrary, Result, Unstructured};
use native_fence::trace::{MAGIC, Together, Trace};
use native_fence::viewer::{Scale, Scene, View};

/// A trace that was recorded: two queues and dispatches between their fences.
const GOOD: &[u8] = include_bytes!("../seeds/work.nftrace");

/// A file that is well, and what becomes of it; or one of anything behind the right beginning.
#[derive(Debug)]
pub struct File {
    any: Option<Vec<u8>>,
    bends: Vec<Bend>,
    look: Look,
}

/// Where one looks: after all is shown, closer or farther by a quarter of a power of two at a point, then moved, in shares
/// of the picture.
#[derive(Clone, Copy, Debug, Arbitrary)]
struct Look {
    closer: i8,
    at: u8,
    moved: [i8; 2],
    is_large: bool,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Bend {
    Byte {
        at: u16,
        byte: u8,
    },
    Insert {
        at: u16,
        byte: u8,
    },
    Remove {
        at: u16,
    },
    Cut {
        at: u16,
    },
    /// A number of variable length as great as there is.
    Great {
        at: u16,
    },
}

impl<'a> Arbitrary<'a> for File {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let is_any = u.ratio(1, 4)?;
        // Most files shall be near to one that is well.
        let most = if u.ratio(3, 4)? { 3 } else { 32 };
        let bends = (0..u.int_in_range(0..=most)?).map(|_| u.arbitrary());
        let bends = bends.collect::<Result<_>>()?;
        let any = is_any.then(|| u.arbitrary()).transpose()?;
        // The last: inputs that were found before it was there stay what they were.
        let look = u.arbitrary()?;
        Ok(Self { any, bends, look })
    }
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = match &self.any {
            Some(any) => [&MAGIC, any.as_slice()].concat(),
            None => GOOD.to_vec(),
        };
        for bend in &self.bends {
            if bytes.is_empty() {
                break;
            }
            let length = bytes.len();
            let place = |at: u16| usize::from(at) % length;
            match *bend {
                Bend::Byte { at, byte } => bytes[place(at)] = byte,
                Bend::Insert { at, byte } => bytes.insert(place(at), byte),
                Bend::Remove { at } => drop(bytes.remove(place(at))),
                Bend::Cut { at } => bytes.truncate(place(at)),
                Bend::Great { at } => {
                    let at = place(at);
                    let great = [[0xff; 9].as_slice(), &[0x01]].concat();
                    drop(bytes.splice(at..=at, great));
                }
            }
        }
        bytes
    }

    /// Plays the file; whether it was read.
    ///
    /// # Panics
    /// If it was read as what cannot be written, or not as it was.
    #[must_use]
    pub fn play(&self) -> bool {
        let Ok(trace) = Trace::read(self.bytes().as_slice()) else {
            return false;
        };
        let mut again = Vec::new();
        trace
            .write(&mut again)
            .expect("a trace is written to memory");
        let back = Trace::read(again.as_slice()).expect("what was written is read back");
        // Not by `==`: a clock's rate may be no number.
        assert_eq!(format!("{back:?}"), format!("{trace:?}"));
        let mut chrome = Vec::new();
        trace
            .write_chrome(&mut chrome)
            .expect("so are trace events");
        let json: serde_json::Value = serde_json::from_slice(&chrome).expect("they are JSON");
        assert!(json["traceEvents"].is_array());
        for release in trace.releases() {
            assert!(release.wait < trace.events.len(), "an arrow to nothing");
        }
        self.look.at(&trace);
        if trace.adapters.is_empty() {
            self.look.at(&together(trace));
        }
        true
    }
}

/// The trace of two adapters of which each did this, as it is after it was asked for twice.
fn together(trace: Trace) -> Trace {
    let names = ["one".to_owned(), "two".to_owned()];
    let mut together = Together::new(names.to_vec());
    let first = together.join(vec![trace.clone(), trace.clone()]);
    let events = trace.events.len();
    let second = together.join(vec![trace.clone(), trace]);
    assert_eq!(
        format!("{first:?}"),
        format!("{second:?}"),
        "others by then"
    );
    assert_eq!(second.events.len(), 2 * events);
    let mut pairs = second.events.windows(2);
    assert!(pairs.all(|pair| pair[0].at <= pair[1].at), "not in order");
    for release in second.releases() {
        assert!(release.wait < second.events.len(), "an arrow to nothing");
    }
    let mut chrome = Vec::new();
    second
        .write_chrome(&mut chrome)
        .expect("trace events are written to memory");
    let json: serde_json::Value = serde_json::from_slice(&chrome).expect("they are JSON");
    assert!(json["traceEvents"].is_array());
    second
}

impl Look {
    /// Looks at all of it and at a part, and what lies under some points of each.
    fn at(self, trace: &Trace) {
        const SIZE: [u16; 2] = [320, 240];
        let scene = Scene::new(trace);
        let scale = if self.is_large {
            Scale::Two
        } else {
            Scale::One
        };
        let whole = View::new(scene.span(), SIZE.map(u32::from).into(), scale);
        let [width, height] = SIZE.map(f32::from);
        let share = |share: i8| f32::from(share) / 64.0;
        let point = f32::from(self.at) / 256.0 * width;
        let part = whole
            .zoom((f64::from(self.closer) / 4.0).exp2(), point)
            .pan(share(self.moved[0]) * width, share(self.moved[1]) * height);
        for view in [whole, part] {
            for at in 1..8_u8 {
                let share = f32::from(at) / 8.0;
                for (x, y) in [(share, share), (share, 1.0 - share)] {
                    let place = [x * width, y * height];
                    let _ = scene.details(&view, place);
                    let cursor = Some(place);
                    if at == 4 {
                        let _ = scene.picture(&View { cursor, ..view });
                    }
                }
            }
        }
    }
}
