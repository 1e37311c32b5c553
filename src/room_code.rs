//! Room codes: the session ids of rooms whose members meet at a relay, short enough to read out and to type.
//!
//! A code has 55 random bits in 11 characters of [`base32`], and a check character. Both ends of a link prove that they know
//! the whole code. A relay, and discovery in the local network, get its [locator](RoomCode::locator) alone.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use ring::pbkdf2;
use ring::rand::{SecureRandom, SystemRandom};
use room_transport::base32;
use room_transport::rendezvous::{LOCATOR_BITS, Locator};
use thiserror::Error;

use crate::target::{is_invisible, to_half_width};

/// Length of a code as it is shown, in bytes and characters.
pub const ROOM_CODE_LENGTH: usize = 14;
/// Number of characters of a code, without the dashes.
const CHARACTERS: usize = 12;
/// Number of characters between two dashes.
const GROUP: usize = 4;
/// Salt of the derivation of a locator.
const LOCATOR_SALT: &[u8] = b"mmn locator";
/// Rounds of PBKDF2 for a locator: what each guess at the rest of a code costs a process that knows its locator.
const LOCATOR_ROUNDS: NonZeroU32 = NonZeroU32::new(600_000).unwrap();

/// A room code, in the form in which it is shown: `K7QM-3XP9-TRWF`. This text is the room's session id, and so a password.
#[derive(Clone, PartialEq, Eq)]
pub struct RoomCode(Arc<str>);

/// Reason why a text is no room code. It does not show the text, which may be a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RoomCodeError {
    /// A character that no code has.
    #[error(
        "the character '{}' at position {position} is in no room code; codes have digits and the letters A to Z without I, L, O and U",
        character.escape_debug()
    )]
    Character {
        /// The character.
        character: char,
        /// Its place in the text, from 1 on.
        position: usize,
    },
    /// The one letter that is in no code and is not read as a digit.
    #[error("the letter U at position {position} is in no room code; perhaps it is a V")]
    LetterU {
        /// Its place in the text, from 1 on.
        position: usize,
    },
    /// The text is too short or too long.
    #[error("it has {characters} letters and digits; a room code has {CHARACTERS}")]
    Length {
        /// Number of its characters without blanks and dashes.
        characters: usize,
    },
    /// The check character does not match the others.
    #[error("its characters do not match each other (a typo?); compare it with the room's code")]
    Check,
    /// The system gave no randomness for a new code.
    #[error("the system's random generator failed")]
    NoRandomness,
}

impl RoomCode {
    /// A new code.
    ///
    /// # Errors
    /// [`RoomCodeError::NoRandomness`].
    pub fn generate() -> Result<Self, RoomCodeError> {
        let mut values = [0; CHARACTERS];
        let (random, check) = values.split_at_mut(CHARACTERS - 1);
        SystemRandom::new()
            .fill(random)
            .map_err(|_| RoomCodeError::NoRandomness)?;
        random.iter_mut().for_each(|value| *value %= 32);
        check[0] = check_value(random);
        Ok(Self::shown(&values))
    }

    /// Reads a code as people type and paste it: in either case, with O for 0 and I or L for 1, with full-width characters,
    /// and with any blanks and dashes or none.
    ///
    /// # Errors
    /// [`RoomCodeError`] for the first fault.
    pub fn parse(text: &str) -> Result<Self, RoomCodeError> {
        let mut values = [0; CHARACTERS];
        let mut characters = 0;
        for (index, character) in text.chars().enumerate() {
            if separates(character) {
                continue;
            }
            let position = index + 1;
            let value = match base32::value(to_half_width(character)) {
                Some(value) => value,
                None if matches!(to_half_width(character), 'U' | 'u') => {
                    return Err(RoomCodeError::LetterU { position });
                }
                None => {
                    return Err(RoomCodeError::Character {
                        character,
                        position,
                    });
                }
            };
            if let Some(place) = values.get_mut(characters) {
                *place = value;
            }
            characters += 1;
        }
        if characters != CHARACTERS {
            return Err(RoomCodeError::Length { characters });
        }
        let [random @ .., check] = &values;
        match check_value(random) == *check {
            true => Ok(Self::shown(&values)),
            false => Err(RoomCodeError::Check),
        }
    }

    fn shown(values: &[u8; CHARACTERS]) -> Self {
        let mut text = String::with_capacity(ROOM_CODE_LENGTH);
        for (index, value) in values.iter().enumerate() {
            if index > 0 && index % GROUP == 0 {
                text.push('-');
            }
            text.push(base32::character(*value));
        }
        Self(text.into())
    }

    /// The code as it is shown, [`ROOM_CODE_LENGTH`] bytes of ASCII.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The room's number at a relay. Takes half a second on slow machines: call it on a thread that may wait.
    pub fn locator(&self) -> Locator {
        let mut derived = [0; 4];
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            LOCATOR_ROUNDS,
            LOCATOR_SALT,
            self.0.as_bytes(),
            &mut derived,
        );
        Locator(u32::from_be_bytes(derived) >> (u32::BITS - LOCATOR_BITS))
    }
}

impl fmt::Debug for RoomCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoomCode(..)")
    }
}

/// Whether the character only separates the characters of a code: blanks, invisible characters, and whatever keyboards, input methods
/// and word processors make of a dash.
fn separates(character: char) -> bool {
    let is_dash = matches!(
        character,
        '-' | '_' | '~' | '\u{B7}' | '\u{2010}'
            ..='\u{2015}'
                | '\u{2043}'
                | '\u{207B}'
                | '\u{2212}'
                | '\u{2500}'
                | '\u{2501}'
                | '\u{2E3A}'
                | '\u{2E3B}'
                | '\u{301C}'
                | '\u{30FC}'
                | '\u{FE31}'
                | '\u{FE32}'
                | '\u{FE58}'
                | '\u{FE63}'
                | '\u{FF0D}'
                | '\u{FF5E}'
                | '\u{FF70}'
    );
    is_dash || character.is_whitespace() || is_invisible(character)
}

/// The check character of 11 others: a code as a polynomial over GF(32) has the root 4. The powers of 4 are all different and
/// none is 0, so every wrong character and every exchange of two changes the sum.
fn check_value(random: &[u8]) -> u8 {
    let sum = |sum, value: &u8| times_4(sum) ^ value;
    times_4(random.iter().fold(0, sum))
}

/// The product with 4 in GF(32), whose polynomial is x^5 + x^3 + x^2 + x + 1.
fn times_4(value: u8) -> u8 {
    const POLYNOMIAL: u8 = 0b10_1111;
    let times_2 = |value: u8| match value & 0b1_0000 {
        0 => value << 1,
        _ => (value << 1) ^ POLYNOMIAL,
    };
    times_2(times_2(value))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::core::id::SessionId;

    const CODE: &str = "K7QM-3XP9-TRWF";

    fn parsed(text: &str) -> Result<String, RoomCodeError> {
        RoomCode::parse(text).map(|code| code.as_str().to_owned())
    }

    fn generated() -> RoomCode {
        RoomCode::generate().expect("randomness")
    }

    #[test]
    fn a_new_code_has_three_groups_and_is_a_session_id() {
        let codes: BTreeSet<_> = (0..1000).map(|_| generated().0).collect();
        assert_eq!(codes.len(), 1000);
        for code in codes {
            assert_eq!(code.len(), ROOM_CODE_LENGTH);
            let groups: Vec<_> = code.split('-').map(str::len).collect();
            assert_eq!(groups, [4, 4, 4]);
            assert_eq!(parsed(&code), Ok(code.to_string()));
            assert!(SessionId::new(&code).is_ok());
        }
    }

    #[test]
    fn new_codes_have_every_character_in_every_random_place() {
        let mut seen = [[false; 32]; CHARACTERS];
        for _ in 0..2000 {
            for (place, character) in generated().0.replace('-', "").chars().enumerate() {
                seen[place][usize::from(base32::value(character).expect("base32"))] = true;
            }
        }
        assert!(seen.as_flattened().iter().all(|seen| *seen));
    }

    #[test]
    fn a_code_is_read_however_people_write_it() {
        for text in [
            "K7QM-3XP9-TRWF",
            "k7qm3xp9trwf",
            "  k7qm 3xp9\ttrwf\r\n",
            "K7QM\u{2013}3XP9\u{2014}TRWF",
            "K7QM\u{2212}3XP9\u{30FC}TRWF",
            "K-7-Q-M-3-X-P-9-T-R-W-F",
            "\u{200B}K7QM\u{2011}3XP9_TRWF\u{FEFF}",
            "Ｋ７ＱＭ－３ＸＰ９－ｔｒｗｆ",
            "K7QM\u{2500}3XP9\u{3000}TRWF",
        ] {
            assert_eq!(parsed(text), Ok(CODE.to_owned()), "{text:?}");
        }
        let zeros = "0".repeat(12);
        for text in ["oooooooooooo", "OOOO-OOOO-OOOO", &zeros] {
            assert_eq!(parsed(text), Ok("0000-0000-0000".to_owned()));
        }
        let check = base32::character(check_value(&[1; CHARACTERS - 1]));
        let ones = Ok(format!("1111-1111-111{check}"));
        for digit in ["1", "i", "I", "l", "L", "ｌ"] {
            assert_eq!(parsed(&format!("{}{check}", digit.repeat(11))), ones);
        }
    }

    #[test]
    fn an_error_names_the_character_or_the_length() {
        let error = |text| RoomCode::parse(text).expect_err("no code").to_string();
        assert_eq!(
            error("K7QM-3XU9-TRWF"),
            "the letter U at position 8 is in no room code; perhaps it is a V"
        );
        assert_eq!(
            error("k7qm-3x\u{fc}9-trwf"),
            "the character '\u{fc}' at position 8 is in no room code; codes have digits and the letters A to Z without I, L, O and U"
        );
        assert_eq!(
            error("K7QM-3XP9-TRW\0"),
            "the character '\\0' at position 14 is in no room code; codes have digits and the letters A to Z without I, L, O and U"
        );
        let length = |count| format!("it has {count} letters and digits; a room code has 12");
        assert_eq!(error(""), length(0));
        assert_eq!(error("K7QM-3XP9-TRW"), length(11));
        assert_eq!(error("K7QM-3XP9-TRWF0"), length(13));
        assert_eq!(
            error("K7QM-3XP9-TRWG"),
            "its characters do not match each other (a typo?); compare it with the room's code"
        );
    }

    /// Of a linear check every code has the same faults, so the code of zeros stands for all. The others show that the check
    /// is linear.
    #[test]
    fn every_wrong_character_and_every_exchange_of_two_is_found() {
        let mut codes = vec![[0; CHARACTERS]];
        codes.extend((0..50).map(|_| {
            let mut values = generated().0.replace('-', "").into_bytes().into_iter();
            std::array::from_fn(|_| {
                let character = values.next().map(char::from);
                character.and_then(base32::value).expect("12 characters")
            })
        }));
        let is_code = |values: &[u8; CHARACTERS]| {
            let [random @ .., check] = values;
            check_value(random) == *check
        };
        for code in codes {
            assert!(is_code(&code));
            for place in 0..CHARACTERS {
                for difference in 1..32 {
                    let mut wrong = code;
                    wrong[place] ^= difference;
                    assert!(!is_code(&wrong), "{code:?}, {place}, {difference}");
                }
            }
        }
        // Every pair of characters in every two places, the others at random.
        for first in 0..CHARACTERS {
            for second in first + 1..CHARACTERS {
                for (a, b) in (0..32).flat_map(|a| (0..32).map(move |b| (a, b))) {
                    if a == b {
                        continue;
                    }
                    // The check character adjusts one of the other places.
                    let free = (0..CHARACTERS).find(|it| *it != first && *it != second);
                    let free = free.expect("12 places");
                    let mut code = [7; CHARACTERS];
                    (code[first], code[second]) = (a, b);
                    let fits = (0..32).find(|value| {
                        code[free] = *value;
                        is_code(&code)
                    });
                    assert!(fits.is_some());
                    code.swap(first, second);
                    assert!(!is_code(&code), "{first}, {second}, {a}, {b}");
                }
            }
        }
    }

    #[test]
    fn a_locator_is_25_bits_of_the_derived_key() {
        // Python: hashlib.pbkdf2_hmac("sha256", b"K7QM-3XP9-TRWF", b"mmn locator", 600000), the first 25 bits.
        let code = RoomCode::parse("k7qm 3xp9 trwf").expect("a code");
        assert_eq!(code.locator(), Locator(17_117_848));
    }

    #[test]
    fn a_code_is_not_shown_by_accident() {
        let code = RoomCode::parse(CODE).expect("a code");
        assert_eq!(format!("{code:?}"), "RoomCode(..)");
    }
}
