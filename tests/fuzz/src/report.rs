//! Report: whatever bytes a file of figures holds, they are read as a report or refused, without a panic; and what was read
//! can be shown: as text, as a page, and beside another, with no character that a terminal obeys and no element of a page
//! that comes from the file.

use arbitrary::{Arbitrary, Result, Unstructured};
use native_fence::report::{Difference, Report, Style, difference_text, page, tables};
use serde_json::Value;

/// A report of many scenarios, each with few batches.
const GOOD: &str = include_str!("../seeds/report.json");
/// An element of a page that no page of ours has.
const ELEMENT: &str = "<x-fuzz>";

/// A file that is well, and what becomes of it; or one of anything.
#[derive(Debug)]
pub struct File {
    any: Option<Vec<u8>>,
    bends: Vec<Bend>,
    /// Bytes of the text that are others, after that.
    bytes: Vec<(u32, u8)>,
    cut: Option<u32>,
}

/// Of the values that stand in others, one by its number.
#[derive(Clone, Debug, Arbitrary)]
enum Bend {
    Leaf {
        at: u16,
        leaf: Leaf,
    },
    /// What another one is.
    Like {
        at: u16,
        other: u16,
    },
    /// A part is left out.
    Remove {
        at: u16,
    },
    /// A part of a list stands there once more.
    Repeat {
        at: u16,
    },
    /// A part has another name, or there is one more of that name.
    Name {
        at: u16,
        name: Leaf,
    },
}

#[derive(Clone, Debug, Arbitrary)]
enum Leaf {
    Null,
    Bool(bool),
    Small(i8),
    Whole(u64),
    Real(f64),
    Extreme(u8),
    Text(String),
    Element,
    Escape,
    List,
}

impl<'a> Arbitrary<'a> for File {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let is_any = u.ratio(1, 8)?;
        // Most files shall be near to one that is well.
        let most = if u.ratio(3, 4)? { 4 } else { 32 };
        let bends = (0..u.int_in_range(0..=most)?).map(|_| u.arbitrary());
        let bends = bends.collect::<Result<_>>()?;
        let bytes = if u.ratio(1, 8)? {
            let bytes = (0..u.int_in_range(1..=4)?).map(|_| u.arbitrary());
            bytes.collect::<Result<_>>()?
        } else {
            Vec::new()
        };
        let cut = u.ratio(1, 16)?.then(|| u.arbitrary()).transpose()?;
        let any = is_any.then(|| u.arbitrary()).transpose()?;
        Ok(Self {
            any,
            bends,
            bytes,
            cut,
        })
    }
}

impl Leaf {
    fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Small(value) => (*value).into(),
            Self::Whole(value) => (*value).into(),
            // None where it is no number.
            Self::Real(value) => (*value).into(),
            Self::Extreme(at) => {
                let all = [
                    0.0,
                    -0.0,
                    1e-3,
                    9e-4,
                    1e15,
                    1.1e15,
                    f64::MIN_POSITIVE,
                    f64::MAX,
                ];
                all[usize::from(*at) % all.len()].into()
            }
            Self::Text(text) => text.as_str().into(),
            Self::Element => ELEMENT.into(),
            Self::Escape => "\u{1b}[31m\u{9b}\u{7f}\r\n".into(),
            Self::List => Value::Array(Vec::new()),
        }
    }
}

/// How many values there are, with all that stand in it.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(count).sum(),
        Value::Object(values) => values.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0_usize,
    }
}

/// The value of a number, counted from the whole, which is 0.
fn find(value: &mut Value, number: usize) -> Option<&mut Value> {
    if number == 0 {
        return Some(value);
    }
    let mut number = number - 1;
    let parts: Vec<&mut Value> = match value {
        Value::Array(values) => values.iter_mut().collect(),
        Value::Object(values) => values.values_mut().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    for part in parts {
        let there = count(part);
        if number < there {
            return find(part, number);
        }
        number -= there;
    }
    None
}

impl Bend {
    fn apply(&self, whole: &mut Value) {
        let all = count(whole);
        // Not the whole, but where there is nothing else.
        let place = |at: u16| (1 + usize::from(at)) % all;
        match self {
            Self::Leaf { at, leaf } => {
                if let Some(value) = find(whole, place(*at)) {
                    *value = leaf.value();
                }
            }
            Self::Like { at, other } => {
                let other = find(whole, place(*other)).cloned();
                // Of what it is a part itself it would grow without end.
                let small = other.filter(|other| count(other) < 64);
                if let (Some(value), Some(other)) = (find(whole, place(*at)), small) {
                    *value = other;
                }
            }
            Self::Remove { at } => match find(whole, place(*at)) {
                Some(Value::Array(values)) => drop(values.pop()),
                Some(Value::Object(values)) => {
                    let first = values.keys().next().cloned();
                    first.map(|name| values.remove(&name));
                }
                Some(value) => *value = Value::Null,
                None => {}
            },
            Self::Repeat { at } => {
                if let Some(Value::Array(values)) = find(whole, place(*at))
                    && let Some(last) = values.last().cloned()
                {
                    values.push(last);
                }
            }
            Self::Name { at, name } => {
                if let (Some(Value::Object(values)), Value::String(name)) =
                    (find(whole, place(*at)), name.value())
                {
                    let first = values.keys().next().cloned();
                    let first = first.and_then(|first| values.remove(&first));
                    values.insert(name, first.unwrap_or_default());
                }
            }
        }
    }
}

impl File {
    fn json(&self) -> Vec<u8> {
        let mut bytes = match &self.any {
            Some(any) => any.clone(),
            None if self.bends.is_empty() => GOOD.as_bytes().to_vec(),
            None => {
                let mut whole = serde_json::from_str(GOOD).expect("a seed of JSON");
                for bend in &self.bends {
                    bend.apply(&mut whole);
                }
                serde_json::to_vec(&whole).expect("it is written to memory")
            }
        };
        for (at, byte) in &self.bytes {
            let length = bytes.len().max(1);
            if let Some(there) = bytes.get_mut(*at as usize % length) {
                *there = *byte;
            }
        }
        if let Some(cut) = self.cut {
            bytes.truncate(cut as usize % (bytes.len() + 1));
        }
        bytes
    }

    /// Plays the file; whether it was read.
    ///
    /// # Panics
    /// If what was read cannot be shown, or shows more than words.
    #[must_use]
    pub fn play(&self) -> bool {
        let report = match Report::read(&self.json()) {
            Ok(report) => report,
            Err(error) => {
                is_for_a_terminal(&error.to_string());
                return false;
            }
        };
        let good = Report::read(GOOD.as_bytes()).expect("the seed is a report");
        let plain = Style::default();
        is_for_a_terminal(&tables(&report, plain));
        let _ = tables(&report, Style { colour: true });
        for (a, b) in [(&report, &good), (&good, &report), (&report, &report)] {
            let difference = Difference::of(("a", a), ("b", b), 0.05);
            for all in [false, true] {
                is_for_a_terminal(&difference_text(&difference, all, plain));
            }
            serde_json::to_vec(&difference).expect("it is written to memory");
        }
        let page = page(&report);
        assert!(!page.contains(ELEMENT), "an element of the file's");
        let again = serde_json::to_vec(&report).expect("it is written to memory");
        Report::read(&again).expect("what was read is written and read again");
        true
    }
}

fn is_for_a_terminal(text: &str) {
    let is_obeyed = |one: &char| one.is_control() && *one != '\n';
    let found = text.chars().find(is_obeyed);
    assert_eq!(found, None, "a terminal would obey it");
}
