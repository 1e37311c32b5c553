//! Why no port of a router leads to this node: the code, and a sentence for the player.

use super::Code;
use crate::core::event::MappingFault;

/// Code of a fault.
pub fn mapping_code(fault: MappingFault) -> Code {
    match fault {
        MappingFault::NoRouter => Code::NotSupported,
        MappingFault::NoAnswer => Code::Timeout,
        MappingFault::Refused => Code::Rejected,
        MappingFault::Malformed => Code::SerializationError,
        MappingFault::NotPublic | MappingFault::Elsewhere | MappingFault::Unreached => {
            Code::ConnectionFailed
        }
    }
}

/// A sentence for the player, with a remedy.
pub fn mapping_sentence(fault: MappingFault) -> &'static str {
    match fault {
        MappingFault::NoRouter => {
            "the room uses no IPv4 network whose router can be found, so there is no port to open"
        }
        MappingFault::NoAnswer => {
            "the router does not answer requests to open a port; turn on NAT-PMP or PCP in its settings (some have it under UPnP), or open a port there by hand"
        }
        MappingFault::Refused => {
            "the router refuses to open a port; allow NAT-PMP or PCP for this machine in its settings (some have it under UPnP), or open a port there by hand"
        }
        MappingFault::Malformed => {
            "the router's answer to a request to open a port makes no sense; update the router, or open a port there by hand"
        }
        MappingFault::NotPublic => {
            "the router has no address of the internet: it is behind another router, perhaps of the provider, so a port of it helps nobody; a relay does"
        }
        MappingFault::Elsewhere => {
            "the router claims to have opened a port, but most players see this one at another address: another router is in front of it, or its answer is wrong"
        }
        MappingFault::Unreached => {
            "the router claims to have opened a port, but several players could not come through it; restart the router, or open the port there by hand"
        }
    }
}
