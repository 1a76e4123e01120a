//! Arguments: what stands in the structures of calls, right and wild.

use super::call::Pointer;
use super::things::Pick;
use arbitrary::{Arbitrary, Result, Unstructured};

/// A number of 32 bits: a small one, a flag, or any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number(pub(super) u32);

impl<'a> Arbitrary<'a> for Number {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(match u.int_in_range(0..=7)? {
            0..=4 => u.int_in_range(0..=9)?,
            5 | 6 => 1 << u.int_in_range(0..=31)?,
            _ => u.arbitrary()?,
        }))
    }
}

/// What is 0 mostly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zero(pub(super) u32);

impl<'a> Arbitrary<'a> for Zero {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let is_wild = u.ratio(1, 16)?;
        Ok(Self(if is_wild { Number::arbitrary(u)?.0 } else { 0 }))
    }
}

/// Whether it is done, which is seldom: all would be gone soon.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seldom(pub(super) bool);

impl<'a> Arbitrary<'a> for Seldom {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(u.ratio(1, 8)?))
    }
}

/// Bits of flags, one or two of them mostly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags(pub(super) u32);

impl<'a> Arbitrary<'a> for Flags {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(match u.int_in_range(0..=15)? {
            0..=8 => 0,
            9..=12 => 1 << u.int_in_range(0..=7)?,
            13 | 14 => 1 << u.int_in_range(0..=31)? | 1 << u.int_in_range(0..=7)?,
            _ => u.arbitrary()?,
        }))
    }
}

/// A value of a fence, or another number of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value(pub(super) u64);

impl<'a> Arbitrary<'a> for Value {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(match u.int_in_range(0..=7)? {
            0..=4 => u.int_in_range(0..=9)?,
            5 => u64::MAX - u.int_in_range(0..=2)?,
            6 => 1 << u.int_in_range(0..=63)?,
            _ => u.arbitrary()?,
        }))
    }
}

/// An array: how many things a call is told of, and where. There are [`ROOM`] of them whatever it is told.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) struct Array {
    count: Count,
    pub(super) pointer: Pointer,
}

/// Things that an array has.
pub(super) const ROOM: u32 = 512;

#[derive(Clone, Copy, Debug)]
struct Count(u32);

impl<'a> Arbitrary<'a> for Count {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(match u.int_in_range(0..=31)? {
            0 => 0,
            1 => u.int_in_range(30..=34)?,
            2 => u.int_in_range(62..=66)?,
            3 => u.arbitrary()?,
            few => few % 3 + 1,
        }))
    }
}

impl Array {
    pub(super) fn count(self) -> u32 {
        self.count.0
    }

    /// Whether a call that takes 1 to `most` of them looks at any.
    pub(super) fn is_well(self, most: u32) -> bool {
        (1..=most).contains(&self.count()) && self.pointer == Pointer::Good
    }
}

/// Fences with a value for each.
#[derive(Clone, Debug, Arbitrary)]
pub(super) struct Fences {
    pub(super) handles: Array,
    /// The count is that of the handles.
    pub(super) values: Pointer,
    pub(super) named: [Pick; 3],
    pub(super) value: [Value; 3],
}

/// What is given for `hAsyncEvent`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    None,
    /// One of the case's.
    Own(u8),
    Blocking,
    Pipe,
    /// No descriptor, or one of no thing that is there.
    Wild(u64),
}

impl<'a> Arbitrary<'a> for Event {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=15)? {
            0..=7 => Self::None,
            8..=12 => Self::Own(u.arbitrary()?),
            13 => Self::Blocking,
            14 => Self::Pipe,
            _ => Self::Wild(wild_descriptor(u)?),
        })
    }
}

/// What is given for `hNtHandle`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shared {
    /// One that a call has given.
    Given(u8),
    Event,
    Pipe,
    Wild(u64),
}

impl<'a> Arbitrary<'a> for Shared {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=15)? {
            0 => Self::Event,
            1 => Self::Pipe,
            2 => Self::Wild(wild_descriptor(u)?),
            _ => Self::Given(u.arbitrary()?),
        })
    }
}

/// Never the number of a descriptor that this program has, whose meaning would be its own fault.
fn wild_descriptor(u: &mut Unstructured<'_>) -> Result<u64> {
    let any: u64 = u.arbitrary()?;
    Ok(if u.arbitrary()? {
        any | 1 << 30
    } else {
        any | 1 << 32
    })
}
