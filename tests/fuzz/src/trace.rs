//! Trace: whatever bytes a file holds, they are read as a trace or refused, without a panic; and what was read is written
//! and read back as it is, is written as Chrome's trace events that are JSON, and has arrows between what there is.

use arbitrary::{Arbitrary, Result, Unstructured};
use native_fence::trace::{MAGIC, Trace};

/// A trace that was recorded: two queues and dispatches between their fences.
const GOOD: &[u8] = include_bytes!("../seeds/work.nftrace");

/// A file that is well, and what becomes of it; or one of anything behind the right beginning.
#[derive(Debug)]
pub struct File {
    any: Option<Vec<u8>>,
    bends: Vec<Bend>,
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
        Ok(Self { any, bends })
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
        true
    }
}
