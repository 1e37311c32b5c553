//! Values that the library lends to the host instead of copying them. The ones that calls inside a callback return stay
//! until the callback has returned; that of a call elsewhere stays until the thread's next such call.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};

use bytes::Bytes;

use crate::core::id::PeerId;

thread_local! {
    static LENT: RefCell<Lent> = const {
        RefCell::new(Lent {
            inside: Shelf::new(),
            outside: Shelf::new(),
        })
    };
}

/// The values that a thread has.
struct Lent {
    /// Of the running callback.
    inside: Shelf,
    /// Of the last call outside callbacks.
    outside: Shelf,
}

/// Each value once, however often it was lent.
struct Shelf {
    values: BTreeMap<(*const u8, usize), Bytes>,
    names: BTreeMap<PeerId, CString>,
}

/// Lends a value, and the name of its owner; without an owner the name is empty. `in_callback` is whether the thread is in
/// a callback. A thread in its last destructors gets nothing.
pub(crate) fn lend(
    value: Bytes,
    owner: Option<PeerId>,
    in_callback: bool,
) -> Option<(*const u8, *const c_char)> {
    let lent = LENT.try_with(|lent| {
        let mut lent = lent.borrow_mut();
        let shelf = match in_callback {
            true => &mut lent.inside,
            false => {
                lent.outside = Shelf::new();
                &mut lent.outside
            }
        };
        (shelf.value(value), shelf.name(owner))
    });
    lent.ok()
}

/// The thread's callback has returned.
pub(crate) fn take_back() {
    // A thread that is ending has dropped all of it.
    let _ = LENT.try_with(|lent| lent.borrow_mut().inside = Shelf::new());
}

impl Shelf {
    const fn new() -> Self {
        Self {
            values: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// C asks for a valid pointer even where it copies nothing.
    fn value(&mut self, value: Bytes) -> *const u8 {
        if value.is_empty() {
            return c"".as_ptr().cast();
        }
        let place = (value.as_ptr(), value.len());
        self.values.entry(place).or_insert(value).as_ptr()
    }

    fn name(&mut self, owner: Option<PeerId>) -> *const c_char {
        let Some(owner) = owner else {
            return c"".as_ptr();
        };
        // An id has no NUL.
        let text = CString::new(owner.as_str()).unwrap_or_default();
        self.names.entry(owner).or_insert(text).as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Option<PeerId> {
        Some(PeerId::new(name).expect("a valid id"))
    }

    /// The numbers of values and names that the thread has inside and outside a callback.
    fn shelved() -> [usize; 4] {
        LENT.with_borrow(|lent| {
            let count = |shelf: &Shelf| [shelf.values.len(), shelf.names.len()];
            let ([a, b], [c, d]) = (count(&lent.inside), count(&lent.outside));
            [a, b, c, d]
        })
    }

    #[test]
    fn what_a_callback_borrows_stays_until_it_returns() {
        let (first, second) = (Bytes::from(vec![1; 9]), Bytes::from(vec![2; 9]));
        let outside = lend(first.clone(), owner("a"), false);
        for _ in 0..3 {
            lend(first.clone(), owner("a"), true);
            lend(second.clone(), owner("b"), true);
        }
        assert_eq!(shelved(), [2, 2, 1, 1]);
        take_back();
        assert_eq!(shelved(), [0, 0, 1, 1]);
        assert!(outside.is_some_and(|(value, _)| value == first.as_ptr()));
    }

    #[test]
    fn elsewhere_a_value_stays_until_the_next_call() {
        lend(Bytes::from(vec![1; 9]), owner("a"), false);
        lend(Bytes::from(vec![2; 9]), None, false);
        assert_eq!(shelved(), [0, 0, 1, 0]);
        let empty = lend(Bytes::new(), None, false);
        assert!(empty.is_some_and(|(value, name)| !value.is_null() && !name.is_null()));
        assert_eq!(shelved(), [0; 4]);
    }
}
