//! Waiter list: who waits for what on one fence, and the MonitoredValue that follows from it.
//!
//! Pure: time, threads and the driver are elsewhere. Adding and releasing take O(log n) each.

use crate::abi::NO_CPU_WAITER;
use std::collections::BTreeMap;

/// Waiters in the order of their values. `W` is whatever is to be woken.
#[derive(Debug)]
pub(super) struct WaiterList<W> {
    waiters: BTreeMap<WaiterKey, W>,
    next: u64,
    /// The first number after the last rewind of CurrentValue.
    rewound: Option<u64>,
}

/// A waiter's place in its list: its value, then its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaiterKey(u64, u64);

impl WaiterKey {
    /// The value that is waited for.
    pub(super) fn value(self) -> u64 {
        self.0
    }
}

impl<W> Default for WaiterList<W> {
    fn default() -> Self {
        Self {
            waiters: BTreeMap::new(),
            next: 0,
            rewound: None,
        }
    }
}

impl<W> WaiterList<W> {
    /// Adds a waiter for `value`, which is not 0: a wait for 0 is satisfied at once (NF-04).
    pub(super) fn add(&mut self, value: u64, waiter: W) -> WaiterKey {
        debug_assert!(value != 0, "a wait for 0 never waits");
        let key = WaiterKey(value, self.next);
        self.next += 1;
        self.waiters.insert(key, waiter);
        key
    }

    /// Whether a waiter is in the list.
    pub(super) fn contains(&self, key: WaiterKey) -> bool {
        self.waiters.contains_key(&key)
    }

    /// The number of the waiter that comes next.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Takes a waiter out that gave up; `None` if it was released before.
    pub(super) fn remove(&mut self, key: WaiterKey) -> Option<W> {
        self.waiters.remove(&key)
    }

    /// Takes out all waiters whose value `reached` satisfies, least value first.
    pub(super) fn release(&mut self, reached: u64) -> Vec<W> {
        let mut released = Vec::new();
        while let Some(entry) = self.waiters.first_entry() {
            if entry.key().0 > reached {
                break;
            }
            released.push(entry.remove());
        }
        released
    }

    /// CurrentValue is stored backwards: what was raised before says nothing to waiters that are
    /// added from now on.
    pub(super) fn rewind(&mut self) {
        self.rewound = Some(self.next);
    }

    /// Whether it ever was.
    pub(super) fn was_rewound(&self) -> bool {
        self.rewound.is_some()
    }

    /// Takes out all waiters that a record of `value` satisfies, least value first: those that were
    /// added after a rewind are left to CurrentValue, since the record may be older (NF-26).
    pub(super) fn release_recorded(&mut self, value: u64) -> Vec<W> {
        self.release_older(value, self.rewound.unwrap_or(u64::MAX))
    }

    /// Takes out all waiters that `value` satisfies and that came before the one with number `before`, least
    /// value first.
    pub(super) fn release_older(&mut self, value: u64, before: u64) -> Vec<W> {
        if before >= self.next {
            return self.release(value);
        }
        let older: Vec<_> = self
            .waiters
            .range(..=WaiterKey(value, u64::MAX))
            .map(|(key, _)| *key)
            .filter(|WaiterKey(_, number)| *number < before)
            .collect();
        older
            .iter()
            .filter_map(|key| self.waiters.remove(key))
            .collect()
    }

    /// Takes out all waiters of a kind, least value first.
    pub(super) fn take_if(&mut self, is_meant: impl Fn(&W) -> bool) -> Vec<W> {
        let meant: Vec<_> = self
            .waiters
            .iter()
            .filter(|(_, waiter)| is_meant(waiter))
            .map(|(key, _)| *key)
            .collect();
        meant
            .iter()
            .filter_map(|key| self.waiters.remove(key))
            .collect()
    }

    /// Each with its value, least first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &W)> {
        self.waiters.iter().map(|(key, waiter)| (key.0, waiter))
    }

    /// Takes out every waiter.
    pub(super) fn drain(&mut self) -> Vec<W> {
        std::mem::take(&mut self.waiters).into_values().collect()
    }

    /// The MonitoredValue: the least value waited for, minus 1; `UINT64_MAX` without a waiter.
    pub(super) fn monitored_value(&self) -> u64 {
        self.waiters
            .first_key_value()
            .map_or(NO_CPU_WAITER, |(key, _)| key.0 - 1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What happens to a list; places are modulo how many waiters there are.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        Added(u64),
        Removed(usize),
        Reached(u64),
        Recorded(u64),
        Told(u64, usize),
        Rewound,
    }

    fn event() -> impl Strategy<Value = Event> {
        let value = prop_oneof![1..6_u64, Just(u64::MAX)];
        prop_oneof![
            8 => value.clone().prop_map(Event::Added),
            2 => any::<usize>().prop_map(Event::Removed),
            3 => value.clone().prop_map(Event::Reached),
            3 => value.clone().prop_map(Event::Recorded),
            2 => (value, any::<usize>()).prop_map(|(value, before)| Event::Told(value, before)),
            1 => Just(Event::Rewound),
        ]
    }

    proptest! {
        /// NF-04, NF-26: a list is what a row of waiters is, each with its value and number, which is looked through from one
        /// end to the other: whom a value releases, in which order, and the MonitoredValue that is left.
        ///
        /// Kills `waiter-list-monitored-value-is-the-least`, `waiter-list-releases-only-below`,
        /// `a-record-releases-who-came-after-a-rewind`.
        #[test]
        fn nf_04_a_list_is_as_a_row_of_waiters(events in prop::collection::vec(event(), 0..40)) {
            let mut list = WaiterList::default();
            let mut row: Vec<(u64, u64)> = Vec::new();
            let (mut next, mut rewound) = (0, u64::MAX);
            let release = |row: &mut Vec<(u64, u64)>, is: &dyn Fn(u64, u64) -> bool| {
                let mut released: Vec<_> = row.iter().copied().filter(|w| is(w.0, w.1)).collect();
                row.retain(|w| !is(w.0, w.1));
                released.sort_unstable();
                released
            };
            for event in events {
                let (released, expected) = match event {
                    Event::Added(value) => {
                        let key = list.add(value, (value, next));
                        prop_assert!(list.contains(key) && key.value() == value);
                        row.push((value, next));
                        next += 1;
                        (vec![], vec![])
                    }
                    Event::Removed(at) => {
                        let (value, number) = row.get(at % row.len().max(1)).copied().unwrap_or((1, next));
                        let removed = list.remove(WaiterKey(value, number));
                        prop_assert!(!list.contains(WaiterKey(value, number)));
                        let expected = release(&mut row, &|_, own| own == number);
                        (removed.into_iter().collect(), expected)
                    }
                    Event::Reached(value) => {
                        (list.release(value), release(&mut row, &|own, _| own <= value))
                    }
                    Event::Recorded(value) => {
                        let is = |own, number| own <= value && number < rewound;
                        (list.release_recorded(value), release(&mut row, &is))
                    }
                    Event::Told(value, before) => {
                        let before = before as u64 % (next + 2);
                        let is = |own, number| own <= value && number < before;
                        (list.release_older(value, before), release(&mut row, &is))
                    }
                    Event::Rewound => {
                        list.rewind();
                        rewound = next;
                        (vec![], vec![])
                    }
                };
                prop_assert_eq!(released, expected);
                prop_assert_eq!((list.len(), list.next_number()), (row.len(), next));
                let least = row.iter().map(|waiter| waiter.0).min();
                prop_assert_eq!(list.monitored_value(), least.map_or(u64::MAX, |least| least - 1));
            }
        }
    }

    #[test]
    fn the_monitored_value_is_the_least_value_minus_one() {
        let mut list = WaiterList::default();
        assert_eq!(list.monitored_value(), u64::MAX);
        let forty_two = list.add(42, 'a');
        assert_eq!(list.monitored_value(), 41);
        list.add(7, 'b');
        assert_eq!(list.monitored_value(), 6, "a later, smaller wait lowers it");
        assert_eq!(list.release(7), ['b']);
        assert_eq!(list.monitored_value(), 41);
        assert_eq!(list.remove(forty_two), Some('a'));
        assert_eq!(list.monitored_value(), u64::MAX);
    }

    #[test]
    fn a_release_takes_all_that_are_satisfied_and_no_other() {
        let mut list = WaiterList::default();
        for value in [5, 3, 9, 5] {
            list.add(value, value);
        }
        assert_eq!(list.release(5), [3, 5, 5]);
        assert!(list.release(8).is_empty());
        list.add(8, 8);
        assert_eq!(list.take_if(|value| *value < 9), [8]);
        assert_eq!(list.drain(), [9]);
    }

    #[test]
    fn a_record_says_nothing_to_waiters_added_after_a_rewind() {
        let mut list = WaiterList::default();
        list.rewind();
        list.add(5, "after the first");
        assert_eq!(list.release_recorded(5), [""; 0]);
        list.rewind();
        list.rewind();
        list.add(5, "after");
        list.add(u64::MAX, "after, the greatest");
        assert_eq!(list.release_recorded(4), [""; 0]);
        assert_eq!(list.release_recorded(u64::MAX), ["after the first"]);
        assert_eq!(list.release(5), ["after"], "CurrentValue does");
    }
}
