//! Descriptors: file descriptors in a message over a Unix socket (`SCM_RIGHTS`).
//!
//! The message has a few bytes of its own, by which the receiver knows what the descriptors are; what
//! comes is counted and the receiver judges it. A descriptor that is not wanted is closed with the
//! message.

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Descriptors of a message at most.
const MOST_DESCRIPTORS: usize = 32;

/// Why no message came, or none that was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PassError {
    /// The system's word.
    #[error("descriptors do not pass the socket: {0}")]
    System(std::io::ErrorKind),
    /// The program has no room for the descriptors that came: the system closed them.
    #[error(
        "the program has no file descriptor left for those of the message: raise its limit (ulimit -n); \
         a message that was not left on its socket must be sent again"
    )]
    NoDescriptors,
    /// Too many descriptors are in messages that nobody has received.
    #[error(
        "this user has as many descriptors in unreceived messages, in all programs together, as a program \
         may have open: close handles that were kept as descriptors, or raise the limit (ulimit -n)"
    )]
    InFlight,
    /// The other end has closed.
    #[error("the other end of the socket has closed")]
    Closed,
    /// The message is another one.
    #[error(
        "the message on the socket is not one with {expected} descriptors and what was expected"
    )]
    Other {
        /// Descriptors that were expected.
        expected: usize,
    },
}

fn system(error: Errno) -> PassError {
    match error {
        Errno::TOOMANYREFS => PassError::InFlight,
        Errno::MFILE | Errno::NFILE => PassError::NoDescriptors,
        error => PassError::System(error.kind()),
    }
}

/// Sends the descriptors with `text`, whole or not at all.
///
/// # Errors
/// [`PassError`]; a socket that does not block and has no room is one.
///
/// # Panics
/// With more than 32 of them, or no text: a bug of ours.
pub fn send_descriptors(
    socket: impl AsFd,
    text: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), PassError> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(
        !text.is_empty() && control.push(SendAncillaryMessage::ScmRights(descriptors)),
        "{} descriptors in one message",
        descriptors.len()
    );
    loop {
        let text = [IoSlice::new(text)];
        // Who has gone is told by an error and not by a signal that ends the program.
        match sendmsg(socket.as_fd(), &text, &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(system(error)),
        }
    }
}

/// Receives the next message: `expected` descriptors with `text`. With `keeps` the message stays where
/// it is, for the next who asks, and is not waited for.
///
/// # Errors
/// [`PassError`]; what came is closed.
///
/// # Panics
/// With more than 32 of them: a bug of ours.
pub fn receive_descriptors(
    socket: impl AsFd,
    text: &[u8],
    expected: usize,
    keeps: bool,
) -> Result<Vec<OwnedFd>, PassError> {
    assert!(expected <= MOST_DESCRIPTORS, "{expected} descriptors");
    let mut flags = RecvFlags::CMSG_CLOEXEC;
    flags.set(RecvFlags::PEEK | RecvFlags::DONTWAIT, keeps);
    let mut read = vec![0; text.len()];
    let message = receive(socket, &mut read, flags)?;
    if !message.is_whole && message.descriptors.len() < expected {
        // There is space for more than that: it was not the space that was short.
        return Err(PassError::NoDescriptors);
    }
    let is_it = message.is_whole && message.bytes == text.len() && read == text;
    if is_it && message.descriptors.len() == expected {
        Ok(message.descriptors)
    } else {
        Err(PassError::Other { expected })
    }
}

/// Receives the next message into all of `bytes`, and the descriptor that comes with it; none where the
/// program has no room for it.
///
/// # Errors
/// [`PassError`]; what came is closed. A message of another size is one, and one with more descriptors.
pub fn receive_message(socket: impl AsFd, bytes: &mut [u8]) -> Result<Option<OwnedFd>, PassError> {
    let mut message = receive(socket, bytes, RecvFlags::CMSG_CLOEXEC)?;
    let descriptor = message.descriptors.pop();
    let is_of_size = message.bytes == bytes.len() && !message.is_cut;
    if is_of_size && message.descriptors.is_empty() {
        Ok(descriptor)
    } else {
        let expected = usize::from(descriptor.is_some());
        Err(PassError::Other { expected })
    }
}

/// A message as it came.
struct Message {
    bytes: usize,
    descriptors: Vec<OwnedFd>,
    /// All of its descriptors came.
    is_whole: bool,
    /// It had more bytes.
    is_cut: bool,
}

fn receive(socket: impl AsFd, read: &mut [u8], flags: RecvFlags) -> Result<Message, PassError> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = loop {
        match recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(read)],
            &mut control,
            flags,
        ) {
            Ok(message) => break message,
            // The other end has closed with a message of ours unread. It is said once, and before what
            // that end had sent: that comes now, and then its end.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(error) => return Err(system(error)),
        }
    };
    let mut descriptors = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            descriptors.extend(rights);
        }
    }
    if message.bytes == 0 {
        return Err(PassError::Closed);
    }
    Ok(Message {
        bytes: message.bytes,
        descriptors,
        is_whole: !message.flags.contains(ReturnFlags::CTRUNC),
        is_cut: message.flags.contains(ReturnFlags::TRUNC),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root has no such limit, so no test run by root can meet it.
    ///
    /// Kills `in-flight-is-any-error`.
    #[test]
    fn a_want_of_descriptors_is_told_from_other_errors() {
        assert_eq!(system(Errno::TOOMANYREFS), PassError::InFlight);
        for error in [Errno::MFILE, Errno::NFILE] {
            assert_eq!(system(error), PassError::NoDescriptors);
        }
        let other = PassError::System(std::io::ErrorKind::BrokenPipe);
        assert_eq!(system(Errno::PIPE), other);
    }
}
