//! Doomed: a process that is killed at a store of its own to the pages of a shared fence.
//!
//! It is the test's own program, as a `child` is. All memory that it maps for sharing it gets for reading
//! alone: the system asks a filter (seccomp) about each such mapping, and that has a handler make another one.
//! Each store then faults; the handler counts it, and lets the instruction do it alone. At the one that is
//! asked for the process kills itself with SIGKILL instead: all stores before it are made, and none after it
//! by this thread. Another thread's may be made while this one's instruction is let through, uncounted, and
//! until the system has stopped it. What others have of it then is what a process that is killed there leaves.
#![allow(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "registers and numbers of the system are what they are used as"
)]

use super::child::spawn;
use super::engines::model;
use super::passing::shared;
use super::until::until;
use libc::{c_int, c_void, siginfo_t, ucontext_t};
use native_fence::abi::OpenerSlot;
use native_fence::shared::Block;
use native_fence::{Fence, SharedHandle};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const ACT: &str = "NFENCE_TEST_ACT";
const STORE: &str = "NFENCE_TEST_STORE";
const VALUE: &str = "NFENCE_TEST_VALUE";

/// In the midst of what it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Opening the fence.
    Open,
    /// Coming to wait for a value, which others have it wait for no more.
    Wait,
    /// Signalling a value from the CPU, and telling those that wait for it.
    Signal,
    /// Signalling a value and storing the one before it again.
    Rewind,
    /// Closing the fence and leaving its slot.
    Leave,
    /// Making a fence, sending it for the first time, and signalling the next value.
    Send,
}

const ACTS: [Act; 6] = [
    Act::Open,
    Act::Wait,
    Act::Signal,
    Act::Rewind,
    Act::Leave,
    Act::Send,
];

/// Starts the ignored test `test` of this program, and has it killed at its `store`th store of an act, from 1
/// on; returns when it has ended. Whether it was killed, and not through before; and what it sent.
pub(crate) fn die_at(
    test: &str,
    (act, value): (Act, u64),
    store: u64,
    fence: Option<&Fence>,
) -> (bool, Option<SharedHandle>) {
    let environment = [
        (ACT, format!("{act:?}")),
        (VALUE, value.to_string()),
        (STORE, store.to_string()),
    ];
    let (mut process, socket) = spawn(test, &environment);
    let mut sent = None;
    if let Some(fence) = fence {
        fence.share().unwrap().send(&socket).unwrap();
    } else {
        // Killed before it sent anything, it closes the socket.
        sent = SharedHandle::receive(&socket).ok();
    }
    let mut status = None;
    until("it ends", || {
        status = process.try_wait().unwrap();
        status.is_some()
    });
    let status = status.unwrap();
    let is_killed = status.signal() == Some(libc::SIGKILL);
    assert!(is_killed || status.success(), "{status}");
    (is_killed, sent)
}

/// What it does: the body of the ignored test.
pub(crate) fn obey(socket: &UnixStream) {
    let said = |name| std::env::var(name).unwrap();
    let (act, value) = (said(ACT), said(VALUE).parse().unwrap());
    let act = ACTS
        .into_iter()
        .find(|of| format!("{of:?}") == act)
        .unwrap();
    let store: u64 = said(STORE).parse().unwrap();
    let device = model().0.create_device();
    if act == Act::Send {
        watch();
        let fence = shared(&device, value);
        let handle = fence.share().unwrap();
        killed_at(store, || {
            handle.send(socket).unwrap();
            fence.signal(value + 1).unwrap();
        });
        return;
    }
    let handle = SharedHandle::receive(socket).unwrap();
    watch();
    if act == Act::Open {
        killed_at(store, || device.open_fence(&handle).map(drop).unwrap());
        return;
    }
    let fence = device.open_fence(&handle).unwrap();
    match act {
        Act::Wait => drop(killed_at(store, || fence.arm(value))),
        Act::Signal => killed_at(store, || fence.signal(value).unwrap()),
        Act::Rewind => killed_at(store, || {
            fence.signal(value).unwrap();
            fence.rewind(value - 1).unwrap();
        }),
        Act::Leave => {
            let (region, at) = fence.object().fence().monitored_value_place();
            let slot = Block::whole(&region.map().unwrap()).part(at, OpenerSlot::BYTES);
            killed_at(store, || {
                drop(fence);
                drop(device);
                until("it has left", || {
                    slot.word(OpenerSlot::OWNER).observe() == 0
                });
            });
        }
        Act::Open | Act::Send => unreachable!("done above"),
    }
}

/// Stores that are made yet, the one at which it is killed among them.
static LEFT: AtomicU64 = AtomicU64::new(u64::MAX);
const RANGES: usize = 64;
/// Mappings that are for reading alone, by their first byte and size; the latest last.
static STARTS: [AtomicUsize; RANGES] = [const { AtomicUsize::new(0) }; RANGES];
static SIZES: [AtomicUsize; RANGES] = [const { AtomicUsize::new(0) }; RANGES];
static MAPPED: AtomicUsize = AtomicUsize::new(0);
/// The trap flag: the processor stops after the next instruction.
const TRAP: i64 = 0x100;

thread_local! {
    /// The mapping that this thread stores to now, and whose.
    static OPENED: Cell<usize> = const { Cell::new(0) };
}

/// Has the process killed at the `store`th store of what `act` does.
fn killed_at<T>(store: u64, act: impl FnOnce() -> T) -> T {
    LEFT.store(store, Ordering::Release);
    let result = act();
    LEFT.store(u64::MAX, Ordering::Release);
    result
}

fn protect(range: usize, protection: c_int) {
    let start = STARTS[range].load(Ordering::Acquire);
    let size = SIZES[range].load(Ordering::Acquire);
    // SAFETY: a mapping that `map_for_reading` made; changes who may use it and nothing in it.
    let changed = unsafe { libc::mprotect(without_provenance_mut(start), size, protection) };
    if changed != 0 {
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
}

/// The registers of the code that a handler came upon.
fn registers_of<'a>(context: *mut c_void) -> &'a mut [i64; 23] {
    // SAFETY: the system calls a handler of SA_SIGINFO with such a context, which is the handler's alone while
    // it runs.
    unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs }
}

/// A mapping is asked for: makes it for reading alone.
extern "C" fn map_for_reading(_signal: c_int, _info: *mut siginfo_t, context: *mut c_void) {
    let registers = registers_of(context);
    let argument = |register: c_int| registers[register as usize];
    let size = argument(libc::REG_RSI) as usize;
    // SAFETY: what the program asked for, with fewer rights.
    let start = unsafe {
        libc::mmap(
            without_provenance_mut(argument(libc::REG_RDI) as usize),
            size,
            argument(libc::REG_RDX) as c_int & !libc::PROT_WRITE,
            argument(libc::REG_R10) as c_int,
            argument(libc::REG_R8) as c_int,
            argument(libc::REG_R9),
        )
    };
    if start != libc::MAP_FAILED {
        let range = MAPPED.load(Ordering::Acquire);
        STARTS[range].store(start.addr(), Ordering::Release);
        SIZES[range].store(size, Ordering::Release);
        MAPPED.store(range + 1, Ordering::Release);
    }
    registers[libc::REG_RAX as usize] = start.addr() as i64;
}

/// Something is stored to such a mapping.
extern "C" fn store(_signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system calls a handler of SA_SIGINFO with such an information.
    let info = unsafe { &*info };
    // SAFETY: it says at which address, of a fault of memory.
    let address = unsafe { info.si_addr() }.addr();
    let is_in = |range: &usize| {
        let start = STARTS[*range].load(Ordering::Acquire);
        (start..start + SIZES[*range].load(Ordering::Acquire)).contains(&address)
    };
    let Some(range) = (0..MAPPED.load(Ordering::Acquire)).rev().find(is_in) else {
        // SAFETY: ends the process; nothing else is to be done about such a fault.
        unsafe { libc::abort() };
    };
    if LEFT.fetch_sub(1, Ordering::AcqRel) == 1 {
        // SAFETY: says which process this is.
        let own = unsafe { libc::getpid() };
        // SAFETY: ends it.
        unsafe { libc::kill(own, libc::SIGKILL) };
    }
    OPENED.set(range);
    protect(range, libc::PROT_READ | libc::PROT_WRITE);
    registers_of(context)[libc::REG_EFL as usize] |= TRAP;
}

/// It was stored.
extern "C" fn stored(_signal: c_int, _info: *mut siginfo_t, context: *mut c_void) {
    protect(OPENED.get(), libc::PROT_READ);
    registers_of(context)[libc::REG_EFL as usize] &= !TRAP;
}

type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

fn handle(signal: c_int, handler: Handler) {
    // SAFETY: all zeroes are an action without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler calls nothing that a handler may not.
    let set = unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
    assert_eq!(set, 0);
}

/// From now on this thread, and those that it starts, get what they map for sharing for reading alone.
fn watch() {
    handle(libc::SIGSYS, map_for_reading);
    handle(libc::SIGSEGV, store);
    handle(libc::SIGTRAP, stored);
    let step = |code: u32, k: u32, no: u8| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: no,
        k,
    };
    // Where a system call's number and its arguments lie in what the filter sees.
    let argument = |number: u32| 16 + 8 * number;
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let (is, has) = (
        libc::BPF_JMP | libc::BPF_JEQ,
        libc::BPF_JMP | libc::BPF_JSET,
    );
    let mut filter = [
        step(load, 0, 0),
        step(is, libc::SYS_mmap as u32, 5),
        step(load, argument(2), 0),
        step(has, libc::PROT_WRITE.cast_unsigned(), 3),
        step(load, argument(3), 0),
        step(has, libc::MAP_SHARED.cast_unsigned(), 1),
        step(libc::BPF_RET, libc::SECCOMP_RET_TRAP, 0),
        step(libc::BPF_RET, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: takes rights away from this process and gives none.
    let set = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(set, 0);
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the filter is read in the call; it ends in a return on each path.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}
