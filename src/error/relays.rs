//! Why a member is not in a relay, for the player.

use super::Code;

/// The meaning of `code` in the report of a relay, and a remedy. Empty for a member that is in the relay.
pub fn relay_sentence(code: i32) -> &'static str {
    match Code::from_value(code) {
        Some(Code::Ok) => "",
        Some(Code::ConnectionFailed) => {
            "the relay cannot be reached, or the link to it was lost; the library tries again"
        }
        Some(Code::VersionMismatch) => {
            "the relay speaks another version of the protocol; update the relay or this program"
        }
        Some(Code::MaxConnectionsReached) => {
            "the relay has no free place for this room or this network; try later, or use another relay"
        }
        Some(Code::AuthenticationFailed) => {
            "the relay asks for another token, or has another key than the given one; compare both with the relay's"
        }
        Some(Code::Timeout) => {
            "the relay does not answer: it may be off, or this network may block UDP; try another network, such as a phone's hotspot"
        }
        Some(Code::RateLimited) => {
            "too many attempts from this network failed at the relay; the library tries again within a minute"
        }
        Some(Code::NameNotResolved) => {
            "the relay's name does not resolve; check the name and the network connection"
        }
        _ => "the relay refused this member; the library tries again",
    }
}
