//! App: the window and its events.

use super::keys::{Pressed, pressed, turned};
use super::screen::{Outcome, Screen};
use super::{Command, Source, Steering};
use crate::beside::{AskError, CrossingError, ImportAllocationError};
use crate::viewer::{CanvasError, Lanes, MOST_PIXELS, Scale, View};
use crate::vulkan::{BringUpError, ChoiceError, OutOfMemory, PresentError};
use crate::{CreateError, OpenError, SignalError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use winit::application::ApplicationHandler;
use winit::dpi::PhysicalSize;
use winit::error::{EventLoopError, OsError};
use winit::event::{ElementState, MouseButton, StartCause, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop};
use winit::keyboard::ModifiersState;
use winit::window::{Window, WindowId};

/// How often what happens is looked at.
const FRAME: Duration = Duration::from_millis(33);
/// How much of what happens is shown at first, in nanoseconds.
const FOLLOWED: f64 = 200e6;

/// How it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowOptions {
    /// What stands above it.
    pub title: String,
    /// Pixels across and down.
    pub size: (u32, u32),
    /// Pixels of a unit; as the screen has it where `None`.
    pub scale: Option<Scale>,
    /// The adapter that draws and shows, by a part of its name or driver.
    pub device: Option<String>,
    /// From when to when, in nanoseconds; all there is, or the latest, where `None`.
    pub range: Option<(f64, f64)>,
}

/// Why nothing is shown.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// There is no desktop.
    #[error(
        "no window can be opened ({0}): set DISPLAY, or use --screenshot; libX11, libXcursor, libXi and libxkbcommon-x11 \
         must be installed"
    )]
    NoDisplay(#[from] EventLoopError),
    /// The desktop gives no window.
    #[error("the desktop gives no window: {0}")]
    NoWindow(#[from] OsError),
    /// The device gives no queue.
    #[error("the device gives out no queue")]
    NoQueue,
    /// Vulkan does not show anything there.
    #[error("Vulkan shows nothing in this window: {0}")]
    BringUp(#[from] BringUpError),
    /// No such device.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The device has no native fences.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Nothing is drawn.
    #[error(transparent)]
    Canvas(#[from] CanvasError),
    /// A fence cannot be.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A fence cannot be signalled.
    #[error(transparent)]
    Signal(#[from] SignalError),
    /// Pixels cannot be shared with the window's device.
    #[error(transparent)]
    Import(#[from] ImportAllocationError),
    /// A frame is not carried over.
    #[error("a frame was not carried from the hardware queue to the window, or back: {0}")]
    Ask(#[from] AskError),
    /// A frame was not drawn.
    #[error("a frame was not drawn: {0}")]
    Crossing(#[from] CrossingError),
    /// A frame was not drawn in time.
    #[error("a frame was not drawn in time: the engine hangs, or the machine is too busy")]
    NotDrawn,
    /// A frame is not shown.
    #[error("a frame was not shown: {0}")]
    Present(#[from] PresentError),
    /// Memory ran out.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// Shows a source until the window is closed. On the program's first thread, once.
///
/// # Errors
/// [`WindowError`].
pub fn show(source: &mut dyn Source, options: &WindowOptions) -> Result<(), WindowError> {
    let event_loop = EventLoop::new()?;
    let follows = source.goes_on();
    let mut span = (0, 0);
    source.look(&mut |scene, _| span = scene.span());
    let view = View::new(span, options.size, options.scale.unwrap_or(Scale::One));
    let view = match options.range {
        Some((from, to)) => view.over(from, to),
        None if follows => view.over(0.0, FOLLOWED),
        None => view,
    };
    let mut app = App {
        source,
        options,
        steering: Steering::new(view, follows),
        held: ModifiersState::empty(),
        shown: None,
        next: Instant::now(),
        is_dirty: true,
        failed: None,
    };
    event_loop.run_app(&mut app)?;
    app.failed.map_or(Ok(()), Err)
}

/// Pixels of a unit on a screen with this factor.
fn scale_of(factor: f64) -> Scale {
    if factor >= 1.5 {
        Scale::Two
    } else {
        Scale::One
    }
}

struct Shown {
    screen: Screen,
    window: Arc<Window>,
}

struct App<'a> {
    source: &'a mut dyn Source,
    options: &'a WindowOptions,
    steering: Steering,
    held: ModifiersState,
    shown: Option<Shown>,
    /// When what happens is looked at next.
    next: Instant,
    /// What is shown is not what is to be shown.
    is_dirty: bool,
    failed: Option<WindowError>,
}

impl App<'_> {
    fn open(&mut self, event_loop: &ActiveEventLoop) -> Result<(), WindowError> {
        let (width, height) = self.options.size;
        let attributes = Window::default_attributes()
            .with_title(&self.options.title)
            .with_max_inner_size(PhysicalSize::new(MOST_PIXELS, MOST_PIXELS))
            .with_inner_size(PhysicalSize::new(width, height));
        let window = Arc::new(event_loop.create_window(attributes)?);
        let size = window.inner_size();
        let screen = Screen::new(
            Arc::clone(&window) as _,
            (size.width, size.height),
            self.options.device.as_deref(),
        )?;
        if self.options.scale.is_none() {
            self.steer(Command::Rescale(scale_of(window.scale_factor())));
        }
        let (width, height) = screen.size();
        self.steer(Command::Resize(width, height));
        self.shown = Some(Shown { screen, window });
        Ok(())
    }

    fn steer(&mut self, command: Command) {
        let mut span = (0, 0);
        if command == Command::Fit {
            self.source.look(&mut |scene, _| span = scene.span());
        }
        let state = |steering: &Steering| (steering.is_paused(), steering.follows());
        let before = state(&self.steering);
        self.is_dirty |= self.steering.steer(command, span);
        if state(&self.steering) != before {
            self.tell();
        }
    }

    /// How it stands, above the window.
    fn tell(&self) {
        let Some(shown) = &self.shown else { return };
        let title = &self.options.title;
        let state = match (self.source.goes_on(), self.steering.is_paused()) {
            (true, true) => " (paused)",
            (true, false) if self.steering.follows() => " (following)",
            (true | false, _) => "",
        };
        shown.window.set_title(&format!("{title}{state}"));
    }

    fn resize(&mut self, size: PhysicalSize<u32>) -> Result<(), WindowError> {
        let Some(shown) = self.shown.as_mut().filter(|_| self.failed.is_none()) else {
            return Ok(());
        };
        let size = (size.width.min(MOST_PIXELS), size.height.min(MOST_PIXELS));
        if size.0 > 0 && size.1 > 0 {
            shown.screen.resize(size)?;
            let (width, height) = shown.screen.size();
            self.steer(Command::Resize(width, height));
            self.is_dirty = true;
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<(), WindowError> {
        let Some(shown) = self.shown.as_mut().filter(|_| self.failed.is_none()) else {
            return Ok(());
        };
        let mut picture = None;
        let steering = &mut self.steering;
        self.source.look(&mut |scene, length| {
            let room = Lanes::room(&steering.view());
            steering.advance(length, scene.lanes().height, room);
            picture = Some(scene.picture(&steering.view()));
        });
        let Some(picture) = picture else {
            return Ok(());
        };
        self.is_dirty = false;
        let outcome = shown.screen.show(picture)?;
        let size = shown.window.inner_size();
        match outcome {
            Outcome::Well => {}
            Outcome::Busy => self.is_dirty = true,
            // Images of this size are all that there is to be had.
            Outcome::Poorly if (size.width, size.height) == shown.screen.size() => {}
            Outcome::Poorly | Outcome::Stale => self.resize(size)?,
        }
        Ok(())
    }

    fn is_moving(&self) -> bool {
        self.source.goes_on() && !self.steering.is_paused()
    }

    /// Ends where something went wrong.
    fn must(&mut self, event_loop: &ActiveEventLoop, done: Result<(), WindowError>) {
        if let Err(error) = done {
            self.failed.get_or_insert(error);
            event_loop.exit();
        }
    }
}

impl ApplicationHandler for App<'_> {
    fn resumed(&mut self, event_loop: &ActiveEventLoop) {
        if self.shown.is_none() {
            let opened = self.open(event_loop);
            self.must(event_loop, opened);
            self.tell();
        }
    }

    fn new_events(&mut self, _event_loop: &ActiveEventLoop, _cause: StartCause) {
        // By the clock, however many events come between.
        let now = Instant::now();
        if self.is_moving() && now >= self.next {
            self.is_dirty |= self.source.advance();
            self.next = now + FRAME;
        }
    }

    fn exiting(&mut self, _event_loop: &ActiveEventLoop) {
        // The screen keeps the window, which goes before the connection to the desktop does.
        self.shown = None;
    }

    fn window_event(
        &mut self,
        event_loop: &ActiveEventLoop,
        _window: WindowId,
        event: WindowEvent,
    ) {
        match event {
            WindowEvent::CloseRequested => event_loop.exit(),
            WindowEvent::Resized(size) => {
                let resized = self.resize(size);
                self.must(event_loop, resized);
            }
            WindowEvent::ScaleFactorChanged { scale_factor, .. }
                if self.options.scale.is_none() =>
            {
                self.steer(Command::Rescale(scale_of(scale_factor)));
            }
            WindowEvent::CursorMoved { position, .. } => {
                #[allow(clippy::cast_possible_truncation, reason = "pixels of a window")]
                let point = [position.x as f32, position.y as f32];
                self.steer(Command::Point(Some(point)));
            }
            WindowEvent::CursorLeft { .. } => self.steer(Command::Point(None)),
            WindowEvent::MouseInput {
                state,
                button: MouseButton::Left,
                ..
            } => self.steer(match state {
                ElementState::Pressed => Command::Take,
                ElementState::Released => Command::LetGo,
            }),
            WindowEvent::MouseWheel { delta, .. } => self.steer(turned(delta, self.held)),
            WindowEvent::ModifiersChanged(held) => self.held = held.state(),
            // A key that was held when the window came to have the keys is not pressed for it.
            WindowEvent::KeyboardInput {
                event,
                is_synthetic: false,
                ..
            } if event.state.is_pressed() => match pressed(&event.logical_key) {
                Some(Pressed::Command(command)) => self.steer(command),
                Some(Pressed::Close) => event_loop.exit(),
                None => {}
            },
            WindowEvent::RedrawRequested => {
                let drawn = self.draw();
                self.must(event_loop, drawn);
            }
            _ => {}
        }
    }

    fn about_to_wait(&mut self, event_loop: &ActiveEventLoop) {
        if self.is_dirty
            && let Some(shown) = &self.shown
        {
            shown.window.request_redraw();
        }
        event_loop.set_control_flow(if self.is_moving() {
            ControlFlow::WaitUntil(self.next)
        } else {
            ControlFlow::Wait
        });
    }
}
