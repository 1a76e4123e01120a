//! Rows: boxes side by side in time, none over another, and a way to draw them that looks at no more of them than there are
//! columns of pixels.
//!
//! What is two columns wide or more is a box; what is narrower is merged with all that ends in the same column.

use super::view::{View, ns};
use std::ops::Range;

/// What one box of a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The place, in whatever the row is of.
    pub(super) item: usize,
}

/// Pieces by number: each ends no earlier than the one before it, and begins no earlier than that one ends.
pub(super) trait Row {
    /// The first piece that ends after a time.
    fn first_after(&self, time: u64) -> usize;

    /// A piece; none behind the last one.
    fn piece(&self, number: usize) -> Option<Piece>;

    /// Whether a piece stands for something that is there: others keep the numbers of rows in step.
    fn is_there(&self, piece: &Piece) -> bool;

    /// Of pieces whose numbers are in a range: how many are there that are dark, and how many in all.
    fn share(&self, range: Range<usize>) -> Option<Share>;
}

/// Of merged pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) dark: usize,
    pub(super) all: usize,
}

impl Share {
    /// In so many steps from light to dark; a single one of the rarer kind is a step at least.
    pub(super) fn steps(self, steps: usize) -> usize {
        if self.dark == 0 || self.all == 0 {
            0
        } else if self.dark >= self.all {
            steps
        } else {
            ((self.dark * steps + self.all / 2) / self.all).clamp(1, steps - 1)
        }
    }
}

/// Something to draw in a row, from one column to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Seen {
    /// One piece.
    Box(Piece),
    /// Several, or one that is narrow.
    Merged(Share),
}

/// Pixels left of the first column to be seen from which on boxes may begin: their edge there is covered.
const BEFORE: f32 = 8.0;

/// Calls `see` with what is to be drawn of a row, and the columns that it takes, from left to right. The first and last box may
/// reach out of the picture's range.
pub(super) fn walk(row: &impl Row, view: &View, mut see: impl FnMut(Seen, f32, f32)) {
    let (first, last) = view.range();
    let mut x = view.gutter() - BEFORE;
    let mut number = row.first_after(first);
    while let Some(piece) = row.piece(number) {
        let (begin, end) = (view.column_of(piece.begin), view.column_of(piece.end));
        if piece.begin > last || x >= view.right() {
            break;
        }
        if row.is_there(&piece) && end - begin >= 2.0 {
            let left = begin.max(x);
            if left < end {
                see(Seen::Box(piece), left, end);
            }
            x = x.max(end);
            number += 1;
            continue;
        }
        // All that ends in the column in which this one does.
        let column = view.x_of(ns(piece.end)).floor().max(x);
        // It may begin in a column before that one.
        let left = if row.is_there(&piece) {
            view.x_of(ns(piece.begin)).floor().clamp(x, column)
        } else {
            column
        };
        let next = row.first_after(before(view.time_of(column + 1.0)));
        let next = next.max(number + 1);
        if let Some(share) = row.share(number..next).filter(|_| column < view.right()) {
            see(Seen::Merged(share), left, column + 1.0);
        }
        x = column + 1.0;
        number = next;
    }
}

/// The last nanosecond before a time.
#[allow(clippy::cast_sign_loss, reason = "bounded below by 0")]
fn before(time: f64) -> u64 {
    (time.ceil() - 1.0).max(0.0) as u64
}

/// Intervals that do not overlap, and of each whether it is dark.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals {
    pieces: Vec<Piece>,
    /// How many of those before each are dark.
    dark: Vec<u32>,
}

impl Intervals {
    /// One that begins no earlier than the last one. Where it begins before that one ends, it is cut.
    pub(super) fn push(&mut self, piece: Piece, is_dark: bool) {
        let begin = self
            .pieces
            .last()
            .map_or(piece.begin, |last| last.end.max(piece.begin));
        let dark = self.dark.last().copied().unwrap_or(0);
        self.dark.push(dark + u32::from(is_dark));
        self.pieces.push(Piece {
            begin,
            end: piece.end.max(begin),
            ..piece
        });
    }

    /// When the last one ends.
    pub(super) fn end(&self) -> Option<u64> {
        self.pieces.last().map(|piece| piece.end)
    }

    fn dark_before(&self, number: usize) -> usize {
        match number {
            0 => 0,
            _ => self.dark[number - 1] as usize,
        }
    }
}

impl Row for Intervals {
    fn first_after(&self, time: u64) -> usize {
        self.pieces.partition_point(|piece| piece.end <= time)
    }

    fn piece(&self, number: usize) -> Option<Piece> {
        self.pieces.get(number).copied()
    }

    fn is_there(&self, _: &Piece) -> bool {
        true
    }

    fn share(&self, range: Range<usize>) -> Option<Share> {
        let end = range.end.min(self.pieces.len());
        (range.start < end).then(|| Share {
            dark: self.dark_before(end) - self.dark_before(range.start),
            all: end - range.start,
        })
    }
}

/// Intervals that may overlap, each in the first row that is free; and how many are in none, since there are so many rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    pub(super) placed: Vec<Intervals>,
    /// When there are some that are in no row.
    pub(super) beyond: Intervals,
    /// When those begin that are in no row, sorted.
    begins: Vec<u64>,
    /// And end.
    ends: Vec<u64>,
}

impl Rows {
    /// Of intervals, by where they begin.
    pub(super) fn new(pieces: impl Iterator<Item = (Piece, bool)>, most: usize) -> Self {
        let mut rows = Self::default();
        for (piece, is_dark) in pieces {
            // One without length takes its moment.
            let is_free = |row: &Intervals| row.end().is_none_or(|end| end <= piece.begin);
            let free = rows.placed.iter().position(is_free);
            let row = match free {
                Some(row) => row,
                None if rows.placed.len() < most => {
                    rows.placed.push(Intervals::default());
                    rows.placed.len() - 1
                }
                None => {
                    // What begins before another ends is cut, and adds nothing where it ends before it.
                    if rows.beyond.end().is_none_or(|end| end < piece.end) {
                        rows.beyond.push(piece, is_dark);
                    }
                    rows.begins.push(piece.begin);
                    rows.ends.push(piece.end);
                    continue;
                }
            };
            rows.placed[row].push(piece, is_dark);
        }
        rows.ends.sort_unstable();
        rows
    }

    /// In which row an interval is that ends at a time.
    pub(super) fn row_of(&self, item: usize, end: u64) -> Option<usize> {
        self.placed.iter().position(|row| {
            let first = row.first_after(end.saturating_sub(1));
            let same = row.pieces[first..]
                .iter()
                .take_while(|piece| piece.end <= end);
            let mut same = same.map(|piece| piece.item);
            same.any(|other| other == item)
        })
    }

    /// Whether some are in no row.
    pub(super) fn has_beyond(&self) -> bool {
        !self.begins.is_empty()
    }

    /// How many of a range of time are in no row.
    pub(super) fn count_beyond(&self, (from, to): (u64, u64)) -> usize {
        let begun = self.begins.partition_point(|begin| *begin <= to);
        let ended = self.ends.partition_point(|end| *end < from);
        begun.saturating_sub(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::Scale;
    use super::*;

    fn piece(begin: u64, end: u64, item: usize) -> Piece {
        Piece { begin, end, item }
    }

    /// A column is 1,000 nanoseconds.
    fn view() -> View {
        View::new((0, 1), (1200, 100), Scale::One).over(0.0, 1e6)
    }

    fn seen(row: &impl Row) -> Vec<(Seen, f32, f32)> {
        let mut all = Vec::new();
        walk(row, &view(), |seen, left, right| {
            all.push((seen, left, right));
        });
        all
    }

    #[test]
    fn what_stands_side_by_side_covers_each_column_once() {
        for length in [90, 400, 700, 1000, 1100, 1300, 1600, 1900, 2500, 3700] {
            let mut row = Intervals::default();
            let mut begin = 3300;
            for item in 0..200 {
                // Some are a little longer.
                let end = begin + length + 40 * (item % 7);
                row.push(piece(begin, end, item as usize), item % 2 == 0);
                begin = end;
            }
            let all = seen(&row);
            let mut x = view().x_of(3300.0).round();
            for (_, left, right) in &all {
                assert!(
                    (left - x).abs() < 1e-3,
                    "of {length}: a gap at {x}, then {left}"
                );
                assert!(left < right);
                x = *right;
            }
            let end = view().x_of(ns(begin));
            assert!((x - end).abs() <= 1.0, "of {length}: {x} and {end}");
            assert!(all.len() < 1000);
        }
    }

    #[test]
    fn what_is_wide_is_a_box_and_the_rest_is_merged_and_counted() {
        let mut row = Intervals::default();
        row.push(piece(10_000, 20_000, 0), true);
        for item in 1..6 {
            let begin = 30_000 + 100 * item;
            row.push(piece(begin, begin + 50, item as usize), item < 3);
        }
        let expected = [
            (Seen::Box(piece(10_000, 20_000, 0)), 210.0, 220.0),
            (Seen::Merged(Share { dark: 2, all: 5 }), 230.0, 231.0),
        ];
        assert_eq!(seen(&row), expected);
        assert_eq!(Share { dark: 2, all: 5 }.steps(4), 2);
        assert_eq!(Share { dark: 1, all: 500 }.steps(4), 1);
        assert_eq!(
            Share {
                dark: 499,
                all: 500
            }
            .steps(4),
            3
        );
        assert_eq!(Share { dark: 0, all: 5 }.steps(4), 0);
        assert_eq!(Share { dark: 5, all: 5 }.steps(4), 4);
    }

    #[test]
    fn what_overlaps_stands_in_rows_of_its_own_as_long_as_there_are_some() {
        let waits = (0..5).map(|item| (piece(100, 200 + 10 * item, item as usize), false));
        let rows = Rows::new(waits.chain([(piece(210, 300, 9), true)]), 3);
        assert_eq!(rows.placed.len(), 3);
        assert_eq!(rows.row_of(0, 200), Some(0));
        assert_eq!(rows.row_of(9, 300), Some(0));
        assert_eq!(rows.row_of(4, 240), None);
        assert_eq!(rows.count_beyond((150, 160)), 2);
        assert_eq!(rows.count_beyond((235, 260)), 1);
        assert_eq!(rows.count_beyond((250, 260)), 0);
        assert!(rows.has_beyond());
    }
}
