//! Last error: the sentence on a thread's last call that failed.

use std::cell::RefCell;

thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps a sentence for this thread. One that is ending keeps none.
pub(super) fn keep(text: &str) {
    let _ending = TEXT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        kept.clear();
        kept.push_str(text);
    });
}

/// The sentence that this thread kept last; empty if none.
pub(super) fn kept() -> String {
    TEXT.try_with(|kept| kept.borrow().clone())
        .unwrap_or_default()
}
