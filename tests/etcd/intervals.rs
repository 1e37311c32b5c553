//! Whether two processes ever led at the same time, judged by each one's samples on one clock.

use std::fmt;

/// Bytes of a sample in a file.
pub(crate) const SAMPLE_BYTES: usize = 24;

/// Between these two moments a process's call returned that it leads with this token; 0 if it had just lost it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) before: u64,
    pub(crate) token: u64,
    pub(crate) after: u64,
}

impl Sample {
    pub(crate) fn bytes(&self) -> [u8; SAMPLE_BYTES] {
        let mut bytes = [0; SAMPLE_BYTES];
        for (place, value) in [self.before, self.token, self.after]
            .into_iter()
            .enumerate()
        {
            bytes[place * 8..][..8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Self {
        let value = |place: usize| {
            let bytes = bytes[place * 8..][..8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        Self {
            before: value(0),
            token: value(1),
            after: value(2),
        }
    }
}

/// A process that acted as leader after a later one had.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    pub(crate) earlier: Sample,
    pub(crate) later: Sample,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { earlier, later } = self;
        write!(
            f,
            "{earlier:?} began after {later:?}, whose token is larger, had ended"
        )
    }
}

/// Searches the samples of all processes for a call that began after another one had returned a larger token, and that returned a
/// smaller one.
pub(crate) fn overlap(samples: &[Sample]) -> Option<Overlap> {
    let mut begun: Vec<_> = samples.iter().filter(|one| one.token > 0).collect();
    let mut returned = begun.clone();
    begun.sort_by_key(|one| one.before);
    returned.sort_by_key(|one| one.after);
    let mut returned = returned.into_iter().peekable();
    let mut largest: Option<&Sample> = None;
    for one in begun {
        while let Some(before) = returned.next_if(|other| other.after < one.before) {
            if largest.is_none_or(|largest| largest.token < before.token) {
                largest = Some(before);
            }
        }
        if let Some(later) = largest.filter(|later| later.token > one.token) {
            return Some(Overlap {
                earlier: *one,
                later: *later,
            });
        }
    }
    None
}

#[test]
fn an_overlap_is_found_and_a_leadership_change_is_none() {
    let sample = |before, token, after| Sample {
        before,
        token,
        after,
    };
    let transfer = [sample(10, 1, 11), sample(20, 1, 21), sample(22, 2, 23)];
    assert_eq!(overlap(&transfer), None);
    // A process that was stopped in the middle of its call may have answered earlier.
    let stopped = [sample(10, 1, 90), sample(22, 2, 23)];
    assert_eq!(overlap(&stopped), None);
    let mut planted: Vec<_> = (0..1000)
        .map(|at| sample(at * 10, 1, at * 10 + 1))
        .collect();
    planted.extend((500..600).map(|at| sample(at * 10 + 3, 2, at * 10 + 4)));
    let found = overlap(&planted).expect("it is planted");
    assert_eq!((found.earlier.token, found.later.token), (1, 2));
    assert!(found.earlier.before > found.later.after);
    let read: Vec<_> = planted
        .iter()
        .map(|one| Sample::read(&one.bytes()))
        .collect();
    assert_eq!(read, planted);
}
