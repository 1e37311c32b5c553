//! Packets of browsers and rooms. Anybody may send anything: what is read here is checked.

use std::net::SocketAddrV4;

use room_transport::identity::{Identity, PublicKey, Signature, has_signed};
use serde::{Deserialize, Serialize};

use super::card::{Game, MAX_DATA_BYTES, checked_name};
use crate::core::id::{Fingerprint, SessionId};

/// Beginning of every packet: the protocol and its version.
const MAGIC: [u8; 5] = *b"mmnc\x01";
const QUESTION: u8 = 1;
const ANSWER: u8 = 2;
/// Beginning of what a signature covers.
const SIGNED_TEXT: &[u8] = b"mmn card 1\0";
const HEADER_BYTES: usize = MAGIC.len() + 1;
const QUESTION_BYTES: usize = HEADER_BYTES + 16;
const SIGNATURE_BYTES: usize = size_of::<Signature>();
/// Longest packet; every allowed card is shorter.
pub(crate) const MAX_PACKET_BYTES: usize = 1100;
/// Most successors in an answer.
pub(crate) const MAX_SUCCESSORS: usize = 16;

/// Random number of a browser, by which it knows answers to its questions.
pub(crate) type Nonce = [u8; 8];
/// Beginning of the fingerprint of a member that may show the card after this one.
pub(crate) type Successor = [u8; 8];

/// The successor with that key.
pub(crate) fn successor(key: &Fingerprint) -> Successor {
    key.0.first_chunk().copied().unwrap_or_default()
}

/// A browser's question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) game: Game,
    pub(crate) nonce: Nonce,
}

impl Question {
    pub(crate) fn write(self) -> [u8; QUESTION_BYTES] {
        let mut packet = [0; QUESTION_BYTES];
        packet[..MAGIC.len()].copy_from_slice(&MAGIC);
        packet[MAGIC.len()] = QUESTION;
        packet[HEADER_BYTES..][..8].copy_from_slice(&self.game.0);
        packet[HEADER_BYTES + 8..].copy_from_slice(&self.nonce);
        packet
    }

    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let (game, nonce) = body_of(packet, QUESTION)?.split_first_chunk()?;
        Some(Self {
            game: Game(*game),
            nonce: nonce.try_into().ok()?,
        })
    }
}

/// The card as a browser receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// UDP port of the room, at the address from which the answer comes.
    pub(crate) port: u16,
    pub(crate) players: u32,
    pub(crate) max_players: u32,
    pub(crate) needs_secret: bool,
    pub(crate) session: Option<SessionId>,
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
}

/// A room's answer to one browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) question: Question,
    /// The browser's address.
    pub(crate) to: SocketAddrV4,
    /// The key of the member that shows the card.
    pub(crate) key: PublicKey,
    /// Rises with each change.
    pub(crate) number: u64,
    /// Epoch and term of the member's leadership.
    pub(crate) rank: (u64, u64),
    /// Other members that may show the card after this one. An end without any is that of the room's card.
    pub(crate) successors: Vec<Successor>,
    /// The card; `None` if the member no longer shows it.
    pub(crate) shown: Option<Shown>,
}

#[derive(Serialize, Deserialize)]
struct Body<'a> {
    game: [u8; 8],
    nonce: Nonce,
    to: ([u8; 4], u16),
    key: PublicKey,
    number: u64,
    rank: (u64, u64),
    // Bytes, not a sequence: a forged length then allocates nothing.
    successors: &'a [u8],
    #[serde(borrow)]
    shown: Option<ShownBody<'a>>,
}

#[derive(Serialize, Deserialize)]
struct ShownBody<'a> {
    port: u16,
    players: u32,
    max_players: u32,
    needs_secret: bool,
    session: Option<&'a str>,
    name: &'a str,
    data: &'a [u8],
}

impl Answer {
    /// The signed packet; `None` if the key cannot sign.
    pub(crate) fn write(&self, identity: &Identity) -> Option<Vec<u8>> {
        let body = Body {
            game: self.question.game.0,
            nonce: self.question.nonce,
            to: (self.to.ip().octets(), self.to.port()),
            key: self.key,
            number: self.number,
            rank: self.rank,
            successors: self.successors.as_flattened(),
            shown: self.shown.as_ref().map(|shown| ShownBody {
                port: shown.port,
                players: shown.players,
                max_players: shown.max_players,
                needs_secret: shown.needs_secret,
                session: shown.session.as_ref().map(SessionId::as_str),
                name: &shown.name,
                data: &shown.data,
            }),
        };
        let mut packet = MAGIC.to_vec();
        packet.push(ANSWER);
        let mut packet = postcard::to_extend(&body, packet).ok()?;
        let signature = identity.sign(&signed(&packet)).ok()?;
        packet.extend(signature);
        Some(packet)
    }
}

/// An answer whose signature is not checked yet: that costs more than to read it.
#[derive(Debug)]
pub(crate) struct Unverified<'a> {
    answer: Answer,
    unsigned: &'a [u8],
    signature: &'a Signature,
}

impl<'a> Unverified<'a> {
    /// Reads an answer; `None` if it is none, or if something in it is not allowed.
    pub(crate) fn read(packet: &'a [u8]) -> Option<Self> {
        if packet.len() > MAX_PACKET_BYTES {
            return None;
        }
        let (unsigned, signature) = packet.split_last_chunk::<SIGNATURE_BYTES>()?;
        let (body, rest) =
            postcard::take_from_bytes::<Body<'_>>(body_of(unsigned, ANSWER)?).ok()?;
        let (successors, odd) = body.successors.as_chunks();
        if !rest.is_empty() || !odd.is_empty() || successors.len() > MAX_SUCCESSORS {
            return None;
        }
        let shown = match body.shown {
            Some(shown) => Some(shown.checked()?),
            None => None,
        };
        let (ip, port) = body.to;
        let answer = Answer {
            question: Question {
                game: Game(body.game),
                nonce: body.nonce,
            },
            to: SocketAddrV4::new(ip.into(), port),
            key: body.key,
            number: body.number,
            rank: body.rank,
            successors: successors.to_vec(),
            shown,
        };
        Some(Self {
            answer,
            unsigned,
            signature,
        })
    }

    /// The answer as its sender claims it.
    pub(crate) fn claimed(&self) -> &Answer {
        &self.answer
    }

    /// The answer, if the holder of its key has signed it.
    pub(crate) fn verified(self) -> Option<Answer> {
        let is_signed = has_signed(&self.answer.key, &signed(self.unsigned), self.signature);
        is_signed.then_some(self.answer)
    }
}

impl ShownBody<'_> {
    fn checked(self) -> Option<Shown> {
        checked_name("name", self.name).ok()?;
        if self.port == 0 || self.players == 0 || self.data.len() > MAX_DATA_BYTES {
            return None;
        }
        let session = match self.session {
            Some(session) => Some(SessionId::new(session).ok()?),
            None => None,
        };
        Some(Shown {
            port: self.port,
            players: self.players,
            max_players: self.max_players,
            needs_secret: self.needs_secret,
            session,
            name: self.name.to_owned(),
            data: self.data.to_vec(),
        })
    }
}

fn body_of(packet: &[u8], kind: u8) -> Option<&[u8]> {
    packet.strip_prefix(&MAGIC)?.strip_prefix(&[kind])
}

fn signed(packet: &[u8]) -> Vec<u8> {
    [SIGNED_TEXT, packet].concat()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn question() -> Question {
        Question {
            game: Game::new("a game").expect("a name"),
            nonce: *b"12345678",
        }
    }

    pub(crate) fn shown() -> Shown {
        Shown {
            port: 4433,
            players: 3,
            max_players: 8,
            needs_secret: false,
            session: Some(SessionId::new("tea").expect("an id")),
            name: "Ann's tea room".into(),
            data: vec![1, 2, 3],
        }
    }

    pub(crate) fn answer(identity: &Identity) -> Answer {
        Answer {
            question: question(),
            to: "127.0.0.1:5000".parse().expect("an address"),
            key: identity.public_key(),
            number: 7,
            rank: (0, 2),
            successors: vec![*b"next one", *b"next two"],
            shown: Some(shown()),
        }
    }

    fn identity() -> Identity {
        Identity::generate().expect("a key")
    }

    fn is_read(answer: &Answer, identity: &Identity) -> bool {
        let packet = answer.write(identity).expect("signed");
        Unverified::read(&packet).is_some()
    }

    #[test]
    fn packets_are_read_as_they_were_written() {
        let packet = question().write();
        assert_eq!(Question::read(&packet), Some(question()));
        let identity = identity();
        let answer = answer(&identity);
        let packet = answer.write(&identity).expect("signed");
        let read = Unverified::read(&packet).expect("an answer");
        assert_eq!(read.claimed(), &answer);
        assert_eq!(read.verified(), Some(answer));
        assert_eq!(Question::read(&packet), None);
    }

    #[test]
    fn the_longest_allowed_answer_is_a_packet() {
        let identity = identity();
        let longest = Answer {
            number: u64::MAX,
            rank: (u64::MAX, u64::MAX),
            successors: vec![[9; 8]; MAX_SUCCESSORS],
            shown: Some(Shown {
                port: u16::MAX,
                players: u32::MAX,
                max_players: u32::MAX,
                session: Some(SessionId::new(&"s".repeat(128)).expect("an id")),
                name: "n".repeat(64),
                data: vec![0xff; MAX_DATA_BYTES],
                ..shown()
            }),
            ..answer(&identity)
        };
        assert!(is_read(&longest, &identity));
    }

    #[test]
    fn packets_against_the_rules_are_not_read() {
        let identity = identity();
        let good = answer(&identity);
        assert!(is_read(&good, &identity));
        let bad: [fn(&mut Shown); 8] = [
            |shown| shown.port = 0,
            |shown| shown.players = 0,
            |shown| shown.name = String::new(),
            |shown| shown.name = "n".repeat(65),
            |shown| shown.name = "bell\u{7}".into(),
            |shown| shown.name = "\u{202e}live".into(),
            |shown| shown.name = "two\nlines".into(),
            |shown| shown.data = vec![0; MAX_DATA_BYTES + 1],
        ];
        for spoil in bad {
            let mut shown = shown();
            spoil(&mut shown);
            let shown = Some(shown);
            let bad = Answer {
                shown,
                ..good.clone()
            };
            assert!(!is_read(&bad, &identity), "{bad:?}");
        }
        let successors = vec![[0; 8]; MAX_SUCCESSORS + 1];
        assert!(!is_read(&Answer { successors, ..good }, &identity));
    }

    #[test]
    fn cut_changed_and_long_packets_are_not_believed() {
        let identity = identity();
        let good = answer(&identity).write(&identity).expect("signed");
        for len in 0..good.len() {
            let cut = Unverified::read(&good[..len]);
            assert!(cut.and_then(Unverified::verified).is_none(), "{len} bytes");
        }
        for place in 0..good.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut changed = good.clone();
                changed[place] ^= change;
                let read = Unverified::read(&changed);
                assert!(
                    read.and_then(Unverified::verified).is_none(),
                    "byte {place}"
                );
            }
        }
        let mut long = good.clone();
        long.resize(MAX_PACKET_BYTES + 1, 0);
        assert!(Unverified::read(&long).is_none());
        long.resize(65_000, 0xff);
        assert!(Unverified::read(&long).is_none());
    }

    #[test]
    fn a_text_that_is_not_utf8_and_a_forged_length_are_not_read() {
        let identity = identity();
        let good = answer(&identity).write(&identity).expect("signed");
        let find = |text: &[u8]| {
            let found = good.windows(text.len()).position(|part| part == text);
            found.expect("it is in there")
        };
        let mut bad = good.clone();
        bad[find(b"Ann's")] = 0xff;
        assert!(Unverified::read(&bad).is_none());
        // The length of the successors stands before them.
        let successors = find(b"next one") - 1;
        assert_eq!(good[successors], 16);
        let forged: [&[u8]; 3] = [&[0xff, 0xff, 0xff, 0xff, 0x0f], &[15], &[0x80]];
        for length in forged {
            let mut bad = good.clone();
            bad.splice(successors..=successors, length.iter().copied());
            assert!(Unverified::read(&bad).is_none(), "{length:?}");
        }
    }

    #[test]
    fn a_signature_of_another_key_does_not_count() {
        let (ann, eve) = (identity(), identity());
        let forged = answer(&ann).write(&eve).expect("signed");
        let read = Unverified::read(&forged).expect("its form is right");
        assert_eq!(read.verified(), None);
    }
}
