//! View: what is looked at. A range of time, how far the lanes are scrolled, the picture's size and scale, the cursor.
//!
//! Time stands along x: the range lies over what is right of the lanes' names, [`View::gutter`] pixels wide. A time `t` is
//! at `x = gutter + (t − from) · (width − gutter) / (to − from)`, and what begins then, in the column of pixels that is
//! nearest to it, `round(x)`.

/// How large everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A unit is a pixel.
    One,
    /// A unit is two.
    Two,
}

impl Scale {
    /// Pixels of a unit.
    #[must_use]
    pub fn factor(self) -> f32 {
        match self {
            Self::One => 1.0,
            Self::Two => 2.0,
        }
    }
}

/// Units that the names of lanes take.
pub const GUTTER: f32 = 200.0;
/// A range of time is no shorter, in nanoseconds: a clock's tick is one.
const SHORTEST: f64 = 16.0;
/// Room that is left at both ends when all is shown, as a share of it.
const MARGIN: f64 = 0.02;
/// Pixels that a picture may have to a side.
pub const MOST_PIXELS: u32 = 8192;

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// What the left edge shows, in nanoseconds since the trace began.
    pub from: f64,
    /// What the right edge shows, later.
    pub to: f64,
    /// Units by which the lanes are moved up.
    pub scroll: f32,
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// How large.
    pub scale: Scale,
    /// Where the cursor is, in pixels.
    pub cursor: Option<[f32; 2]>,
}

impl View {
    /// From one time to another, with a little room around it.
    #[must_use]
    pub fn new(span: (u64, u64), (width, height): (u32, u32), scale: Scale) -> Self {
        Self {
            from: 0.0,
            to: SHORTEST,
            scroll: 0.0,
            width: width.clamp(1, MOST_PIXELS),
            height: height.clamp(1, MOST_PIXELS),
            scale,
            cursor: None,
        }
        .fit(span)
    }

    /// From one time to another, with a little room around it.
    #[must_use]
    pub fn fit(self, (from, to): (u64, u64)) -> Self {
        let room = MARGIN * ns(to.saturating_sub(from)).max(SHORTEST);
        self.over(ns(from) - room, ns(to) + room)
    }

    /// From one time to another. A range that is too short becomes as long as one may be, around its middle.
    #[must_use]
    pub fn over(self, from: f64, to: f64) -> Self {
        let middle = f64::midpoint(from, to);
        let half = (0.5 * (to - from)).max(0.5 * SHORTEST);
        Self {
            from: middle - half,
            to: middle + half,
            ..self
        }
    }

    /// What lay at a point lies so many pixels further to the right, and further down.
    #[must_use]
    pub fn pan(self, right: f32, down: f32) -> Self {
        let by = f64::from(right) / self.pixels_per_ns();
        Self {
            from: self.from - by,
            to: self.to - by,
            scroll: self.scroll - down / self.scale.factor(),
            ..self
        }
    }

    /// Closer by a factor, and farther by one below 1; the time at `x` stays where it is.
    #[must_use]
    pub fn zoom(self, factor: f64, x: f32) -> Self {
        if !(factor.is_finite() && factor > 0.0) {
            return self;
        }
        let stays = self.time_of(x);
        let length = ((self.to - self.from) / factor).max(SHORTEST);
        let before = (stays - self.from) / (self.to - self.from) * length;
        Self {
            from: stays - before,
            to: stays - before + length,
            ..self
        }
    }

    /// As long a range, that ends with what has been recorded until now.
    #[must_use]
    pub fn follow(self, length: u64) -> Self {
        let range = self.to - self.from;
        let to = ns(length) + MARGIN * range;
        Self {
            from: to - range,
            to,
            ..self
        }
    }

    /// The same, with lanes of so many units in so many that are to be seen: no farther up or down than there is something.
    #[must_use]
    pub fn bound_scroll(self, lanes: f32, room: f32) -> Self {
        let most = (lanes - room).max(0.0);
        Self {
            scroll: self.scroll.clamp(0.0, most),
            ..self
        }
    }

    /// Pixels that the names of lanes take; in a narrow picture not all of it.
    #[must_use]
    pub fn gutter(&self) -> f32 {
        (GUTTER * self.scale.factor()).min((self.right() * 0.5).floor())
    }

    /// The right edge.
    #[must_use]
    pub fn right(&self) -> f32 {
        pixels(self.width)
    }

    /// The lower edge.
    #[must_use]
    pub fn bottom(&self) -> f32 {
        pixels(self.height)
    }

    /// How many pixels a nanosecond is.
    #[must_use]
    pub fn pixels_per_ns(&self) -> f64 {
        f64::from(self.right() - self.gutter()).max(1.0) / (self.to - self.from)
    }

    /// Where a time is, as the file's head says; what is far outside, a little outside.
    #[must_use]
    pub fn x_of(&self, time: f64) -> f32 {
        let x = f64::from(self.gutter()) + (time - self.from) * self.pixels_per_ns();
        let outside = f64::from(self.right()) + 100.0;
        #[allow(clippy::cast_possible_truncation, reason = "it is within bounds")]
        let x = x.clamp(-100.0, outside) as f32;
        x
    }

    /// The column in which something begins or ends that does so at a time: the nearest edge between two.
    #[must_use]
    pub fn column_of(&self, time: u64) -> f32 {
        self.x_of(ns(time)).round()
    }

    /// Which time is at `x`.
    #[must_use]
    pub fn time_of(&self, x: f32) -> f64 {
        self.from + f64::from(x - self.gutter()) / self.pixels_per_ns()
    }

    /// The first and last nanosecond of a trace that are to be seen.
    #[must_use]
    #[allow(clippy::cast_sign_loss, reason = "bounded below by 0")]
    pub fn range(&self) -> (u64, u64) {
        (
            self.from.max(0.0).floor() as u64,
            self.to.max(0.0).ceil() as u64,
        )
    }
}

/// A time as a number that may be off a range.
#[must_use]
#[allow(
    clippy::cast_precision_loss,
    reason = "of a trace, which lasts no 104 days"
)]
pub(super) fn ns(time: u64) -> f64 {
    time as f64
}

#[allow(clippy::cast_precision_loss, reason = "at most MOST_PIXELS")]
fn pixels(number: u32) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        View::new((0, 1_000_000), (1200, 700), Scale::One).over(0.0, 1_000_000.0)
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-3
    }

    #[test]
    fn times_lie_right_of_the_names() {
        let view = view();
        assert!((view.x_of(0.0) - 200.0).abs() < 1e-3);
        assert!((view.x_of(1_000_000.0) - 1200.0).abs() < 1e-3);
        assert!((view.x_of(500_400.0) - 700.4).abs() < 1e-3);
        assert!((view.column_of(500_400) - 700.0).abs() < 1e-6);
        assert!((view.column_of(500_600) - 701.0).abs() < 1e-6);
        assert!(near(view.time_of(700.0), 500_000.0));
        let twice = View {
            scale: Scale::Two,
            ..view
        };
        assert!((twice.x_of(0.0) - 400.0).abs() < 1e-3);
    }

    #[test]
    fn all_is_seen_with_room_around_it() {
        let all = View::new((0, 1_000_000), (1200, 700), Scale::One);
        assert!(all.from < 0.0 && all.to > 1_000_000.0);
        assert_eq!(all.range(), (0, 1_020_000));
        let none = View::new((0, 0), (1200, 700), Scale::One);
        assert!(none.to - none.from >= SHORTEST);
    }

    #[test]
    fn zooming_keeps_what_is_under_the_cursor() {
        let view = view();
        for factor in [2.0, 0.5, 1000.0] {
            let closer = view.zoom(factor, 450.0);
            assert!(near(closer.time_of(450.0), view.time_of(450.0)));
            assert!(near(
                closer.to - closer.from,
                (view.to - view.from) / factor
            ));
        }
        let closest = view.zoom(1e12, 450.0);
        assert!(near(closest.to - closest.from, SHORTEST));
        assert!(near(closest.time_of(450.0), view.time_of(450.0)));
        assert_eq!(view.zoom(f64::NAN, 450.0), view);
        assert_eq!(view.zoom(0.0, 450.0), view);
    }

    #[test]
    fn panning_takes_what_is_under_the_cursor_along() {
        let view = view();
        let panned = view.pan(100.0, -30.0);
        assert!(near(panned.time_of(550.0), view.time_of(450.0)));
        assert!((panned.scroll - 30.0).abs() < 1e-3);
        let twice = View {
            scale: Scale::Two,
            ..view
        };
        assert!((twice.pan(0.0, -30.0).scroll - 15.0).abs() < 1e-3);
        assert!(panned.bound_scroll(100.0, 500.0).scroll.abs() < 1e-3);
        assert!((panned.bound_scroll(510.0, 500.0).scroll - 10.0).abs() < 1e-3);
    }

    #[test]
    fn following_ends_with_what_came_last() {
        let followed = view().follow(5_000_000);
        assert!(near(followed.to - followed.from, 1_000_000.0));
        assert!(followed.to > 5_000_000.0 && followed.from < 5_000_000.0);
        assert!(followed.x_of(5_000_000.0) < 1200.0);
    }
}
