//! Steering: what the user does, as changes of what is looked at.

use crate::viewer::{Scale, View};

/// What the user wants, by mouse or key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// The window has so many pixels.
    Resize(u32, u32),
    /// A unit has so many pixels.
    Rescale(Scale),
    /// The cursor is there, or nowhere.
    Point(Option<[f32; 2]>),
    /// The button is pressed where the cursor is.
    Take,
    /// It is let go.
    LetGo,
    /// So many steps closer, at the cursor; below zero farther.
    Zoom(f64),
    /// So many tenths of the picture later; below zero earlier.
    Later(f64),
    /// So many units down the lanes.
    Down(f32),
    /// All that there is.
    Fit,
    /// The end moves along with what happens, or does not any more.
    Follow,
    /// Nothing moves, or does again.
    Pause,
}

/// How much closer a step is.
const STEP: f64 = 1.25;

/// See the file's head.
#[derive(Clone, Debug, PartialEq)]
pub struct Steering {
    view: View,
    follows: bool,
    is_paused: bool,
    /// Where the cursor was when the picture was last moved by it.
    taken: Option<[f32; 2]>,
}

impl Steering {
    /// From a view on; `follows` what happens.
    #[must_use]
    pub fn new(view: View, follows: bool) -> Self {
        Self {
            view,
            follows,
            is_paused: false,
            taken: None,
        }
    }

    /// What is looked at.
    #[must_use]
    pub fn view(&self) -> View {
        self.view
    }

    /// Whether the end moves along with what happens.
    #[must_use]
    pub fn follows(&self) -> bool {
        self.follows && !self.is_paused
    }

    /// Whether nothing moves.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Does what the user wants. `span` is from when to when something happened. Whether the picture is another one.
    pub fn steer(&mut self, command: Command, span: (u64, u64)) -> bool {
        let before = self.clone();
        match command {
            Command::Resize(width, height) => {
                let View { from, to, .. } = self.view;
                self.view = View {
                    cursor: None,
                    scroll: self.view.scroll,
                    ..View::new(span, (width, height), self.view.scale).over(from, to)
                };
            }
            Command::Rescale(scale) => self.view.scale = scale,
            Command::Point(point) => self.point(point),
            Command::Take => self.taken = self.view.cursor,
            Command::LetGo => self.taken = None,
            Command::Zoom(steps) => {
                // What follows keeps its end.
                let end = self.view.right();
                let x = self.view.cursor.map_or(end, |[x, _]| x);
                let x = if self.follows() { end } else { x };
                self.view = self.view.zoom(STEP.powf(steps), x);
            }
            Command::Later(tenths) => {
                self.follows = false;
                #[allow(clippy::cast_possible_truncation, reason = "some tenths of a window")]
                let pixels = (-tenths * f64::from(self.view.right()) / 10.0) as f32;
                self.view = self.view.pan(pixels, 0.0);
            }
            Command::Down(units) => self.view.scroll += units,
            Command::Fit => {
                self.follows = false;
                self.view = self.view.fit(span);
            }
            Command::Follow => self.follows = !self.follows,
            Command::Pause => self.is_paused = !self.is_paused,
        }
        *self != before
    }

    fn point(&mut self, point: Option<[f32; 2]>) {
        if let (Some([x, y]), Some([from_x, from_y])) = (point, self.taken) {
            // Whoever moves to the side looks at what was.
            self.follows &= (x - from_x).abs() < 0.5;
            self.view = self.view.pan(x - from_x, y - from_y);
            self.taken = point;
        }
        self.view.cursor = point;
    }

    /// Time goes on until `length`, and there are lanes of so many units of which so many are seen.
    pub fn advance(&mut self, length: u64, lanes: f32, room: f32) {
        if self.follows() {
            self.view = self.view.follow(length);
        }
        self.view = self.view.bound_scroll(lanes, room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: (u64, u64) = (0, 1_000_000);

    fn steering(follows: bool) -> Steering {
        let view = View::new(SPAN, (1200, 700), Scale::One).over(0.0, 1_000_000.0);
        Steering::new(view, follows)
    }

    /// Mutant: `a-drag-goes-the-other-way`.
    #[test]
    fn what_is_taken_stays_under_the_cursor() {
        let mut steering = steering(true);
        let _ = steering.steer(Command::Point(Some([500.0, 300.0])), SPAN);
        let held = steering.view().time_of(500.0);
        let _ = steering.steer(Command::Take, SPAN);
        assert!(steering.follows());
        assert!(steering.steer(Command::Point(Some([620.0, 280.0])), SPAN));
        assert!((steering.view().time_of(620.0) - held).abs() < 1.0);
        assert!((steering.view().scroll - 20.0).abs() < 1e-3);
        assert!(!steering.follows(), "who looks at what was does not follow");
        let _ = steering.steer(Command::LetGo, SPAN);
        let view = steering.view();
        let _ = steering.steer(Command::Point(Some([100.0, 100.0])), SPAN);
        assert!(
            (steering.view().from - view.from).abs() < 1e-6,
            "it was let go"
        );
    }

    /// Mutant: `a-zoom-forgets-the-cursor`.
    #[test]
    fn zooming_is_at_the_cursor_or_at_the_end_that_is_followed() {
        let mut still = steering(false);
        let _ = still.steer(Command::Point(Some([450.0, 300.0])), SPAN);
        let pointed = still.view().time_of(450.0);
        assert!(still.steer(Command::Zoom(3.0), SPAN));
        assert!((still.view().time_of(450.0) - pointed).abs() < 1.0);
        let mut following = steering(true);
        let _ = following.steer(Command::Point(Some([450.0, 300.0])), SPAN);
        let _ = following.steer(Command::Zoom(3.0), SPAN);
        assert!((following.view().to - 1_000_000.0).abs() < 1.0);
    }

    /// Mutant: `a-pause-goes-on`.
    #[test]
    fn a_pause_holds_the_picture_and_following_goes_on_after_it() {
        let mut steering = steering(true);
        steering.advance(2_000_000, 0.0, 100.0);
        assert!(steering.view().to > 2_000_000.0);
        let _ = steering.steer(Command::Pause, SPAN);
        let held = steering.view();
        steering.advance(3_000_000, 0.0, 100.0);
        assert_eq!(steering.view(), held);
        let _ = steering.steer(Command::Pause, SPAN);
        steering.advance(3_000_000, 0.0, 100.0);
        assert!(steering.view().to > 3_000_000.0);
    }

    #[test]
    fn a_window_of_another_size_shows_the_same_time() {
        let mut steering = steering(false);
        let _ = steering.steer(Command::Resize(800, 400), SPAN);
        let view = steering.view();
        assert_eq!((view.width, view.height), (800, 400));
        assert!((view.from - 0.0).abs() < 1e-6 && (view.to - 1e6).abs() < 1e-6);
    }

    #[test]
    fn what_changes_nothing_says_so() {
        let mut steering = steering(false);
        assert!(!steering.steer(Command::LetGo, SPAN));
        assert!(steering.steer(Command::Fit, SPAN), "with room around it");
        assert!(!steering.steer(Command::Fit, SPAN));
    }
}
