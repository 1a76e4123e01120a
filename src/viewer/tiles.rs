//! Tiles: squares of 16 by 16 pixels, each with the primitives that touch it, in the order in which they are drawn.
//!
//! The kernel's invocations of a tile go through its list. A list is bounded: an implementation may end a loop that is too
//! long without a word, and then something would be missing in the picture.

use super::primitive::{Kind, Primitive, Rectangle};

/// Pixels of a tile, across and down. The kernel's `TILE`.
pub const TILE: u32 = 16;
/// Primitives that a tile may have.
pub const MOST_OF_TILE: u32 = 4096;
/// Entries that the lists of a picture may have together.
const MOST: usize = 1 << 24;

/// A picture that is not drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TilesError {
    /// More is drawn at one place than the kernel goes through.
    #[error(
        "{count} shapes lie one over the other near pixel ({x}, {y}), and no more than {MOST_OF_TILE} are drawn: look at \
         a shorter time"
    )]
    TooManyOfTile {
        /// Where.
        x: u32,
        /// Where, from above.
        y: u32,
        /// How many.
        count: u32,
    },
    /// More is drawn than there is room for.
    #[error("the picture has more shapes than are drawn: look at a shorter time")]
    TooMany,
}

/// See the file's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tiles {
    /// Where the list of each tile begins, row by row, and where the last one ends.
    pub starts: Vec<u32>,
    /// Places of primitives.
    pub lists: Vec<u32>,
}

impl Tiles {
    /// Those of a picture of so many pixels.
    ///
    /// # Errors
    /// [`TilesError`].
    pub fn of(primitives: &[Primitive], (width, height): (u32, u32)) -> Result<Self, TilesError> {
        let grid = Grid {
            across: width.div_ceil(TILE),
            down: height.div_ceil(TILE),
        };
        // First how long each list is, then what is in it.
        let mut starts = vec![0_u32; (grid.across * grid.down) as usize + 1];
        let mut all = 0_usize;
        for primitive in primitives {
            grid.touched(primitive, |tile| {
                starts[tile + 1] += 1;
                all += 1;
            });
            if all > MOST {
                return Err(TilesError::TooMany);
            }
        }
        let counts = starts[1..].iter().enumerate();
        if let Some((tile, count)) = counts.max_by_key(|(_, count)| **count)
            && *count > MOST_OF_TILE
        {
            return Err(TilesError::TooManyOfTile {
                x: tile as u32 % grid.across * TILE,
                y: tile as u32 / grid.across * TILE,
                count: *count,
            });
        }
        for tile in 1..starts.len() {
            starts[tile] += starts[tile - 1];
        }
        let mut next = starts.clone();
        let mut lists = vec![0; all];
        for (index, primitive) in primitives.iter().enumerate() {
            grid.touched(primitive, |tile| {
                lists[next[tile] as usize] = index as u32;
                next[tile] += 1;
            });
        }
        Ok(Self { starts, lists })
    }

    /// The list of a tile.
    #[must_use]
    pub fn list(&self, tile: usize) -> &[u32] {
        &self.lists[self.starts[tile] as usize..self.starts[tile + 1] as usize]
    }
}

struct Grid {
    across: u32,
    down: u32,
}

impl Grid {
    /// Calls `touch` with each tile that a primitive may cover something of, each once.
    fn touched(&self, primitive: &Primitive, mut touch: impl FnMut(usize)) {
        let bounds = primitive.bounds();
        let Some((top, bottom)) = tiles_between(bounds.top, bounds.bottom, self.down) else {
            return;
        };
        let is_line = primitive.kind == Kind::Line as u32;
        for row in top..bottom {
            let (left, right) = if is_line {
                line_in(primitive, row, bounds)
            } else {
                (bounds.left, bounds.right)
            };
            let Some((left, right)) = tiles_between(left, right, self.across) else {
                continue;
            };
            for column in left..right {
                touch((row * self.across + column) as usize);
            }
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a number of pixels")]
fn edge(tile: u32) -> f32 {
    (tile * TILE) as f32
}

/// Tiles of so many that lie between two places; none where there is nothing between them.
#[allow(clippy::cast_sign_loss, reason = "bounded below by 0")]
fn tiles_between(from: f32, to: f32, count: u32) -> Option<(u32, u32)> {
    let end = edge(count);
    // Not a number is nowhere.
    if !(from < to && to > 0.0 && from < end) {
        return None;
    }
    let first = from.max(0.0) as u32 / TILE;
    let last = (to.min(end).ceil() as u32).div_ceil(TILE);
    (first < last).then_some((first, last))
}

/// From where to where a line may cover something in a row of tiles.
fn line_in(line: &Primitive, row: u32, bounds: Rectangle) -> (f32, f32) {
    let more = 0.5 * line.c[0] + 1.0;
    let (top, bottom) = (edge(row) - more, edge(row + 1) + more);
    let [[ax, ay], [bx, by]] = [line.a, line.b];
    let slope = (bx - ax) / (by - ay);
    if !slope.is_finite() {
        return (bounds.left, bounds.right);
    }
    let x_at = |y: f32| ax + (y.clamp(ay.min(by), ay.max(by)) - ay) * slope;
    let (one, other) = (x_at(top), x_at(bottom));
    (one.min(other) - more, one.max(other) + more)
}

#[cfg(test)]
mod tests {
    use super::super::primitive::Colour;
    use super::*;

    const SIZE: (u32, u32) = (64, 48);
    const BLACK: Colour = Colour::rgb(0);

    fn of(primitives: &[Primitive]) -> Vec<Vec<u32>> {
        let tiles = Tiles::of(primitives, SIZE).unwrap();
        (0..12).map(|tile| tiles.list(tile).to_vec()).collect()
    }

    fn touched(primitive: Primitive) -> Vec<usize> {
        let lists = of(&[primitive]);
        (0..12).filter(|tile| !lists[*tile].is_empty()).collect()
    }

    fn fill(left: f32, top: f32, right: f32, bottom: f32) -> Primitive {
        let at = Rectangle {
            left,
            top,
            right,
            bottom,
        };
        Primitive::fill(at, BLACK)
    }

    #[test]
    fn a_primitive_is_in_the_tiles_that_it_touches() {
        assert_eq!(touched(fill(0.0, 0.0, 16.0, 16.0)), [0]);
        assert_eq!(touched(fill(0.0, 0.0, 16.1, 16.0)), [0, 1]);
        assert_eq!(touched(fill(15.9, 15.9, 16.1, 16.1)), [0, 1, 4, 5]);
        assert_eq!(touched(fill(-9.0, -9.0, 99.0, 99.0)).len(), 12);
        assert_eq!(touched(fill(-9.0, -9.0, 0.0, 99.0)), [0; 0]);
        assert_eq!(touched(fill(64.0, 0.0, 99.0, 99.0)), [0; 0]);
        assert_eq!(touched(fill(20.0, 20.0, 20.0, 40.0)), [0; 0]);
        assert_eq!(touched(fill(f32::NAN, 0.0, 20.0, 40.0)), [0; 0]);
    }

    #[test]
    fn a_line_is_in_the_tiles_along_it_alone() {
        let diagonal = Primitive::line([4.0, 4.0], [44.0, 44.0], 1.0, BLACK);
        let tiles = touched(diagonal);
        assert!([0, 5, 10].iter().all(|tile| tiles.contains(tile)));
        assert!(![2, 3, 7, 8].iter().any(|tile| tiles.contains(tile)));
        let level = Primitive::line([4.0, 8.0], [60.0, 8.0], 1.0, BLACK);
        assert_eq!(touched(level), [0, 1, 2, 3]);
        let point = Primitive::line([8.0, 8.0], [8.0, 8.0], 1.0, BLACK);
        assert_eq!(touched(point), [0]);
    }

    #[test]
    fn what_is_drawn_later_comes_later() {
        let lists = of(&[
            fill(0.0, 0.0, 64.0, 48.0),
            fill(20.0, 0.0, 30.0, 10.0),
            fill(0.0, 0.0, 64.0, 10.0),
        ]);
        assert_eq!(lists[1], [0, 1, 2]);
        assert_eq!(lists[0], [0, 2]);
        assert_eq!(lists[5], [0]);
    }

    #[test]
    fn a_list_that_is_too_long_is_refused() {
        let many = vec![fill(33.0, 17.0, 34.0, 18.0); MOST_OF_TILE as usize];
        assert_eq!(
            Tiles::of(&many, SIZE).unwrap().list(6).len(),
            MOST_OF_TILE as usize
        );
        let more = vec![fill(33.0, 17.0, 34.0, 18.0); MOST_OF_TILE as usize + 1];
        assert_eq!(
            Tiles::of(&more, SIZE),
            Err(TilesError::TooManyOfTile {
                x: 32,
                y: 16,
                count: MOST_OF_TILE + 1
            })
        );
    }
}
