//! Shared pages: what one process sends another for a fence to be opened there.
//!
//! Two files of memory, the page of CurrentValue and that of the openers' slots. All of it is looked at
//! when it comes: nobody is trusted to send what he says.
//!
//! A process that has the fence open can store what it likes to every word of both pages. So it can, of
//! this fence and no other: store any CurrentValue, and wait for any value; have the others look without
//! end; have their engines raise for nothing, or not raise; take their slots away, which they notice when
//! they look; say that a device was lost that could signal it; and so have waiters of theirs wake for nothing or sleep until something else has them look.
//! It cannot make a thread of theirs wait for it, nor make one stay under a lock. A MonitoredValue or an
//! owner that makes no sense costs a look; no word of the pages is an address, and the one that is an index
//! is cut to what there is.

use super::cross_doorbells::CrossDoorbell;
use super::opener_page::OpenerPage;
use super::process_identity::pid_namespace;
use crate::abi::{HandleAccess, OpenerSlot, SharedFenceHeader};
#[cfg(not(loom))]
use crate::abi::{PAGE_BYTES, WordGroup};
use crate::shared::{Block, PassError, Region, RegionError};
#[cfg(not(loom))]
use crate::shared::{receive_descriptors, send_descriptors};
use crate::sync::Arc;
#[cfg(not(loom))]
use std::os::fd::AsFd;

/// Before the descriptors in a message: what they are, and by which version.
#[cfg(not(loom))]
const TEXT: &[u8; 16] = b"native-fence 4\r\n";
/// Descriptors of a message.
#[cfg(not(loom))]
const DESCRIPTORS: usize = 2;

/// Why a fence cannot be passed to another process, or what came is none.
#[derive(Debug, thiserror::Error)]
pub enum PassFenceError {
    /// The pages could not be made or are not what they should be.
    #[error(transparent)]
    Memory(#[from] RegionError),
    /// The socket, or another message on it.
    #[error(transparent)]
    Message(#[from] PassError),
    /// Its values do not lie in files of memory.
    #[error(
        "the fence's values lie in memory of a device, which is not passed to other processes: make it \
         in system memory (FenceMemory::System)"
    )]
    DeviceMemory,
    /// It is of type INTRA_GPU: for the engines of one adapter, and another process has another one.
    #[error("a fence of type INTRA_GPU is not passed to other processes: make it of type DEFAULT")]
    IntraGpu,
    /// A cross-adapter fence: of the adapters of one process.
    #[error("a cross-adapter fence is not passed to other processes: make one that is shared only")]
    CrossAdapter,
    /// What came does not describe a fence of this version.
    #[error("what was received is no shared fence: {0}")]
    NoFence(&'static str),
    /// All slots of the fence are taken.
    #[error(
        "{most} processes have the fence open, and it takes no more: one of them must close it",
        most = OpenerSlot::SLOTS
    )]
    TooManyOpeners,
    /// The system refused a thread, a descriptor, or to say who this process is.
    #[error("the fence cannot be shared between processes: {0}")]
    System(#[from] std::io::Error),
}

/// Which fence: the files of its pages.
pub(super) type FenceFiles = ((u64, u64), (u64, u64));

/// See the file's head.
#[derive(Debug)]
pub(super) struct SharedPages {
    /// The page of CurrentValue.
    pub(super) current: Arc<Region>,
    /// The page of slots.
    pub(super) monitored: Arc<Region>,
    /// What openers may do.
    pub(super) access: HandleAccess,
    /// NoSignalMaxValueOnTdr.
    pub(super) keeps_value_on_tdr: bool,
    /// What its signals ring, where other adapters of this process have it: it is not passed to other processes.
    pub(super) doorbell: Option<Arc<CrossDoorbell>>,
    files: FenceFiles,
    /// Whose processes can open it.
    pid_namespace: u64,
}

fn files_of(current: &Region, monitored: &Region) -> Result<FenceFiles, PassFenceError> {
    match (current.file()?, monitored.file()?) {
        (Some(current), Some(monitored)) if current == monitored => {
            Err(PassFenceError::NoFence("one file was sent for both pages"))
        }
        (Some(current), Some(monitored)) => Ok((current, monitored)),
        _ => Err(PassFenceError::DeviceMemory),
    }
}

impl SharedPages {
    /// Of the pages of a fence that was made here: describes them.
    pub(super) fn of(
        current: &Arc<Region>,
        monitored: &Arc<Region>,
        (access, keeps_value_on_tdr): (HandleAccess, bool),
        doorbell: Option<Arc<CrossDoorbell>>,
    ) -> Result<Arc<Self>, PassFenceError> {
        let files = files_of(current, monitored)?;
        let pages = Arc::new(Self {
            current: Arc::clone(current),
            monitored: Arc::clone(monitored),
            access,
            keeps_value_on_tdr,
            doorbell,
            files,
            pid_namespace: pid_namespace()?,
        });
        pages.page()?.describe(pages.header());
        Ok(pages)
    }

    fn header(&self) -> SharedFenceHeader {
        let ((_, current), (_, monitored)) = self.files;
        let files = (current, monitored);
        SharedFenceHeader {
            keeps_value_on_tdr: u64::from(self.keeps_value_on_tdr),
            ..SharedFenceHeader::new(self.access.0, files, self.pid_namespace)
        }
    }

    /// A mapping of the slots.
    pub(super) fn page(&self) -> Result<OpenerPage, RegionError> {
        Ok(OpenerPage::new(Block::whole(&self.monitored.map()?)))
    }

    /// Which fence it is: nobody can make other pages that are the same.
    pub(super) fn files(&self) -> FenceFiles {
        self.files
    }
}

/// Over a socket.
#[cfg(not(loom))]
impl SharedPages {
    /// Sends them over a socket.
    pub(super) fn send(&self, socket: impl AsFd) -> Result<(), PassFenceError> {
        let pages = [&self.current, &self.monitored].map(|page| page.descriptor());
        let [Some(current), Some(monitored)] = pages else {
            return Err(PassFenceError::DeviceMemory);
        };
        Ok(send_descriptors(socket, TEXT, &[current, monitored])?)
    }

    /// What another process sent, looked at.
    pub(super) fn receive(socket: impl AsFd, keeps: bool) -> Result<Arc<Self>, PassFenceError> {
        let received = receive_descriptors(socket, TEXT, DESCRIPTORS, keeps)?;
        let mut received = received.into_iter();
        let mut region = |group: WordGroup| {
            let descriptor = received.next();
            let descriptor =
                descriptor.ok_or(PassFenceError::NoFence("descriptors are missing"))?;
            match Region::received(group.name(), descriptor, PAGE_BYTES) {
                Err(RegionError::Received { reason, .. }) => Err(PassFenceError::NoFence(reason)),
                region => Ok(region?),
            }
        };
        let current = region(WordGroup::CurrentValues)?;
        let monitored = region(WordGroup::MonitoredValues)?;
        let mut pages = Self {
            files: files_of(&current, &monitored)?,
            current,
            monitored,
            access: HandleAccess::FULL,
            keeps_value_on_tdr: false,
            doorbell: None,
            pid_namespace: pid_namespace()?,
        };
        let described = pages.page()?.description();
        let no_fence = |why| Err(PassFenceError::NoFence(why));
        pages.access = match described.access {
            0 => HandleAccess::FULL,
            2 => HandleAccess::NO_SIGNAL,
            4 => HandleAccess::NO_WAIT,
            _ => return no_fence("its access is none that a fence can have"),
        };
        if described.magic != SharedFenceHeader::MAGIC {
            return no_fence("the page does not say that it is one");
        }
        if described.version != SharedFenceHeader::VERSION {
            return no_fence("it is of another version: both processes need the same");
        }
        if described.pid_namespace != pages.pid_namespace {
            return no_fence("it is of another PID namespace, whose processes have other ids here");
        }
        pages.keeps_value_on_tdr = match described.keeps_value_on_tdr {
            0 => false,
            1 => true,
            _ => return no_fence("what becomes of it on a loss is neither of the two"),
        };
        if described != pages.header() {
            return no_fence("its pages are not of one fence");
        }
        Ok(Arc::new(pages))
    }
}
