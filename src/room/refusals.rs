//! Filter for refusals by members that this node discovered: decides which of them the host receives.
//!
//! Anyone in the network can announce members and refuse their dials. So each refusal is reported once a
//! minute, and only a few in all. Refusals by ends that have proved that they know the room count separately:
//! strangers cannot hide them.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Code;
use crate::net::dial::Refused;

/// Time for which an address with the same code is not reported again.
const WINDOW: Duration = Duration::from_secs(60);
/// Refusals by members reported in that time, at most; strangers have the same limit of their own.
const MAX_REPORTED: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reported {
    at: Instant,
    address: String,
    code: Code,
}

/// The refusals reported lately.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    of_members: VecDeque<Reported>,
    of_strangers: VecDeque<Reported>,
}

impl Refusals {
    /// Whether to report this refusal to the host. A peer that the host itself disconnected or banned is not reported.
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
