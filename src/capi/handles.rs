//! Handles: what a program's 32-bit handles name. One table for the whole process, as a
//! D3DKMT_HANDLE means the same to every part of a program.
//!
//! A handle is a slot and a generation, like those that packets carry, so that one which was closed
//! names nothing and not what came after it. What was made on something stands under it and goes
//! with it. The lock is held for looking up and changing the table alone: what is taken out is ended
//! by the caller, without it.

use super::object::{Kind, Object};
use super::refusal::Refusal;
use crate::abi::LocalHandle;
use crate::abi::wddm::{KmtHandle, NtStatus};
use crate::os::HandleNumbers;
use crate::sync::{Arc, Mutex, lock};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
struct Entry {
    object: Object,
    parent: Option<KmtHandle>,
    children: BTreeSet<KmtHandle>,
}

#[derive(Debug)]
struct Table {
    numbers: HandleNumbers,
    entries: BTreeMap<KmtHandle, Entry>,
}

static TABLE: Mutex<Table> = Mutex::new(Table {
    numbers: HandleNumbers::new(),
    entries: BTreeMap::new(),
});

fn invalid(kind: &str) -> Refusal {
    let why = format!("the handle names no {kind}: it was closed, or was never one");
    Refusal::new(NtStatus::INVALID_HANDLE, why)
}

/// Drops what no handle was left for.
fn no_handle_left(refused: Object) -> Refusal {
    drop(refused);
    let why = "the process has no handle left: destroy something first";
    Refusal::new(NtStatus::INSUFFICIENT_RESOURCES, why)
}

impl Table {
    fn entry(&mut self, handle: KmtHandle) -> Option<&mut Entry> {
        self.entries.get_mut(&handle)
    }

    fn find<T: Kind>(&mut self, handle: KmtHandle) -> Option<Arc<T>> {
        T::of(&self.entry(handle)?.object)
    }

    /// # Errors
    /// No handle is left: the object, to be dropped without the lock. Of an adapter that stops a driver and
    /// joins its threads.
    fn add(&mut self, parent: Option<KmtHandle>, object: Object) -> Result<KmtHandle, Object> {
        let Some(handle) = self.numbers.allocate() else {
            return Err(object);
        };
        let entry = Entry {
            object,
            parent,
            children: BTreeSet::new(),
        };
        self.entries.insert(handle.raw(), entry);
        if let Some(parent) = parent.and_then(|parent| self.entry(parent)) {
            parent.children.insert(handle.raw());
        }
        Ok(handle.raw())
    }

    /// Takes out what stands under it, then the thing itself.
    fn take(&mut self, handle: KmtHandle, taken: &mut Vec<Object>) {
        let Some(entry) = self.entries.remove(&handle) else {
            return;
        };
        for child in entry.children {
            self.take(child, taken);
        }
        taken.push(entry.object);
        self.numbers.free(LocalHandle::from_raw(handle).slot());
        if let Some(parent) = entry.parent.and_then(|parent| self.entry(parent)) {
            parent.children.remove(&handle);
        }
    }
}

/// What the handle names.
///
/// # Errors
/// It names nothing of that kind.
pub(super) fn find<T: Kind>(handle: KmtHandle) -> Result<Arc<T>, Refusal> {
    lock(&TABLE).find(handle).ok_or_else(|| invalid(T::NAME))
}

/// How many handles of this interface the process has open.
#[must_use]
pub fn open_handles() -> usize {
    lock(&TABLE).entries.len()
}

/// A handle for something that was made on nothing.
///
/// # Errors
/// No handle is left.
pub(super) fn insert_root(object: Object) -> Result<KmtHandle, Refusal> {
    let added = lock(&TABLE).add(None, object);
    added.map_err(no_handle_left)
}

/// A handle for something that was made on `parent`.
///
/// # Errors
/// No handle is left, or `parent` was destroyed meanwhile.
pub(super) fn insert<P: Kind>(parent: KmtHandle, object: Object) -> Result<KmtHandle, Refusal> {
    let mut table = lock(&TABLE);
    // Under the lock that destroying takes: nothing comes to stand under what is gone.
    if table.find::<P>(parent).is_none() {
        return Err(invalid(P::NAME));
    }
    let added = table.add(Some(parent), object);
    drop(table);
    added.map_err(no_handle_left)
}

/// The one thing of its kind that was made on `parent`.
///
/// # Errors
/// `parent` names nothing of its kind; none or several were made on it.
pub(super) fn only_child<P: Kind, T: Kind>(parent: KmtHandle) -> Result<Arc<T>, Refusal> {
    let mut table = lock(&TABLE);
    let entry = table
        .entry(parent)
        .filter(|entry| P::of(&entry.object).is_some());
    let Some(entry) = entry else {
        return Err(invalid(P::NAME));
    };
    let children: Vec<_> = entry.children.iter().copied().collect();
    let mut found = children
        .into_iter()
        .filter_map(|child| table.find::<T>(child));
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Refusal::parameter(format!(
            "the {} has no {}: make one on it first",
            P::NAME,
            T::NAME
        ))),
        (Some(_), Some(_)) => Err(Refusal::parameter(format!(
            "the {} has more than one {}: name the queue",
            P::NAME,
            T::NAME
        ))),
    }
}

/// Destroys what the handle names, and what stands under it first.
///
/// # Errors
/// It names nothing of that kind, or `may` refuses.
pub(super) fn destroy<T: Kind>(
    handle: KmtHandle,
    may: impl FnOnce(&T) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let mut taken = Vec::new();
    {
        let mut table = lock(&TABLE);
        let object = table.find::<T>(handle).ok_or_else(|| invalid(T::NAME))?;
        may(&object)?;
        table.take(handle, &mut taken);
    }
    taken.into_iter().for_each(Object::end);
    Ok(())
}
