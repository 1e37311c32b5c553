//! Refusals of members that this node found by itself: which of them the host receives.
//!
//! Anybody in the network can announce members and refuse their dials. So a refusal is reported once a minute, and few of
//! them in all; those of ends that have shown that they know the room count apart, and no stranger hides them.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Code;
use crate::net::dial::Refused;

/// How long an address with a code is not reported again.
const WINDOW: Duration = Duration::from_secs(60);
/// Refusals of members that are reported in that time, at most, and as many of strangers.
const MAX_REPORTED: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reported {
    at: Instant,
    address: String,
    code: Code,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    of_members: VecDeque<Reported>,
    of_strangers: VecDeque<Reported>,
}

impl Refusals {
    /// Whether the host receives this refusal. What it disconnected or banned itself is no news to it.
    pub(super) fn is_news(&mut self, now: Instant, address: &str, refused: &Refused) -> bool {
        let reported = match refused.code {
            Code::Rejected if refused.is_own => return false,
            Code::DuplicatePeerId
            | Code::Rejected
            | Code::PolicyMismatch
            | Code::MaxConnectionsReached => &mut self.of_members,
            Code::SessionMismatch | Code::AuthenticationFailed | Code::VersionMismatch => {
                &mut self.of_strangers
            }
            _ => return false,
        };
        reported.retain(|one| now.saturating_duration_since(one.at) < WINDOW);
        let code = refused.code;
        let is_known = |one: &Reported| one.address == address && one.code == code;
        if reported.iter().any(is_known) || reported.len() >= MAX_REPORTED {
            return false;
        }
        let address = address.to_owned();
        reported.push_back(Reported {
            at: now,
            address,
            code,
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: Code) -> Refused {
        code.into()
    }

    #[test]
    fn an_address_is_reported_once_a_minute_for_each_code() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let taken = refused(Code::DuplicatePeerId);
        assert!(refusals.is_news(now, "a", &taken));
        assert!(!refusals.is_news(now + WINDOW / 2, "a", &taken));
        assert!(refusals.is_news(now + WINDOW / 2, "a", &refused(Code::PolicyMismatch)));
        assert!(refusals.is_news(now + WINDOW / 2, "b", &taken));
        assert!(refusals.is_news(now + WINDOW, "a", &taken));
    }

    #[test]
    fn strangers_have_sixteen_reports_a_minute_and_hide_none_of_a_member() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let wrong = refused(Code::SessionMismatch);
        let of_strangers = (0..100).filter(|n| refusals.is_news(now, &format!("{n}"), &wrong));
        assert_eq!(of_strangers.count(), MAX_REPORTED);
        assert!(refusals.is_news(now, "member", &refused(Code::Rejected)));
        assert_eq!(refusals.of_strangers.len(), MAX_REPORTED);
        assert!(refusals.is_news(now + WINDOW, "100", &wrong));
        assert_eq!(refusals.of_strangers.len(), 1);
    }

    #[test]
    fn failures_and_own_bans_are_no_refusals() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        for code in [
            Code::Timeout,
            Code::ConnectionFailed,
            Code::RateLimited,
            Code::AlreadyConnected,
            Code::InvalidArgument,
        ] {
            assert!(!refusals.is_news(now, "a", &refused(code)), "{code}");
        }
        let own = Refused {
            is_own: true,
            ..refused(Code::Rejected)
        };
        assert!(!refusals.is_news(now, "a", &own));
    }
}
