//! An X server without a screen, and what a user of it sees and does.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    AtomEnum, ConfigureWindowAux, ConnectionExt as _, ImageFormat, InputFocus, MapState, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

const KEY_PRESS: u8 = 2;
const KEY_RELEASE: u8 = 3;
const MOTION: u8 = 6;

/// It ends with the value.
pub(crate) struct XServer {
    process: Child,
    pub(crate) display: String,
    connection: RustConnection,
    root: Window,
}

impl XServer {
    /// With a screen of so many pixels, the cursor in its middle; `None` where there is no Xvfb.
    pub(crate) fn start((width, height): (u16, u16)) -> Option<Self> {
        let mut process = Command::new("Xvfb")
            .args(["-screen", "0", &format!("{width}x{height}x24")])
            .args(["-displayfd", "1", "-nolisten", "tcp", "-noreset"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        // It says its number when it listens.
        let mut number = String::new();
        let output = process.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut number).unwrap();
        assert!(!number.trim().is_empty(), "Xvfb ended before it listened");
        let display = format!(":{}", number.trim());
        let (connection, screen) = x11rb::connect(Some(&display)).unwrap();
        let root = connection.setup().roots[screen].root;
        Some(Self {
            process,
            display,
            connection,
            root,
        })
    }

    /// The window that is shown, if one is.
    pub(crate) fn window(&self) -> Option<Window> {
        let tree = self.connection.query_tree(self.root).unwrap();
        let children = tree.reply().unwrap().children;
        children.into_iter().find(|window| {
            let attributes = self.connection.get_window_attributes(*window).unwrap();
            // One that is gone by now has none.
            attributes
                .reply()
                .is_ok_and(|attributes| attributes.map_state == MapState::VIEWABLE)
        })
    }

    /// What stands above a window.
    pub(crate) fn title(&self, window: Window) -> String {
        let name = self.connection.intern_atom(false, b"_NET_WM_NAME").unwrap();
        let name = name.reply().unwrap().atom;
        let title = self
            .connection
            .get_property(false, window, name, AtomEnum::ANY, 0, 1024)
            .unwrap();
        String::from_utf8(title.reply().unwrap().value).unwrap()
    }

    /// The pixels of the screen from its upper left corner, red, green and blue.
    pub(crate) fn pixels(&self, (width, height): (u16, u16)) -> Vec<[u8; 3]> {
        let image = self.connection.get_image(
            ImageFormat::Z_PIXMAP,
            self.root,
            0,
            0,
            width,
            height,
            u32::MAX,
        );
        let data = image.unwrap().reply().unwrap().data;
        let (pixels, _) = data.as_chunks::<4>();
        pixels
            .iter()
            .map(|[blue, green, red, _]| [*red, *green, *blue])
            .collect()
    }

    pub(crate) fn resize(&self, window: Window, (width, height): (u16, u16)) {
        let size = ConfigureWindowAux::new()
            .width(u32::from(width))
            .height(u32::from(height));
        let done = self.connection.configure_window(window, &size).unwrap();
        done.check().unwrap();
    }

    pub(crate) fn point(&self, x: i16, y: i16) {
        self.fake(MOTION, 0, (x, y));
    }

    /// Presses and lets go a key by its symbol, in a window: there is nobody else who would say whose keys are.
    pub(crate) fn press(&self, window: Window, symbol: u32) {
        let now = x11rb::CURRENT_TIME;
        let focus = self
            .connection
            .set_input_focus(InputFocus::PARENT, window, now);
        focus.unwrap().check().unwrap();
        let setup = self.connection.setup();
        let (least, most) = (setup.min_keycode, setup.max_keycode);
        let keys = self
            .connection
            .get_keyboard_mapping(least, most - least + 1);
        let keys = keys.unwrap().reply().unwrap();
        let each = usize::from(keys.keysyms_per_keycode);
        let found = keys.keysyms.chunks(each).position(|key| key[0] == symbol);
        let code = least + found.expect("the keyboard has the key") as u8;
        self.fake(KEY_PRESS, code, (0, 0));
        self.fake(KEY_RELEASE, code, (0, 0));
    }

    fn fake(&self, event: u8, detail: u8, (x, y): (i16, i16)) {
        let faked = self
            .connection
            .xtest_fake_input(event, detail, 0, self.root, x, y, 0);
        faked.unwrap().check().unwrap();
    }
}

impl Drop for XServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
