//! The token of a relay: 16 random bytes, which hosts write as 26 characters of [`base32`].

use quinn::Connection;
use ring::hmac;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::base32;
use crate::rendezvous::TokenProof;

/// Number of bytes of a token.
pub const TOKEN_BYTES: usize = 16;
/// Number of characters of a token: 128 bits, and 2 bits that are 0.
pub const TOKEN_CHARACTERS: usize = 26;

/// Label of the keying material (RFC 8446, section 7.5) that a token is proved with.
const LABEL: &[u8] = b"mmn relay token";
/// Bytes of that keying material.
const MATERIAL_BYTES: usize = 32;

/// A token with which a member proves to a relay that it knows it. So the token itself does not travel, and a process between
/// the two cannot use what does.
#[derive(Debug, Clone)]
pub struct TokenKey(hmac::Key);

impl TokenKey {
    /// The key of a token.
    pub fn new(token: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, token))
    }

    /// The proof for one connection; `None` if its TLS exports no keys.
    pub fn prove(&self, connection: &Connection) -> Option<TokenProof> {
        let material = material_of(connection)?;
        let tag = hmac::sign(&self.0, material.as_slice());
        TokenProof::try_from(tag.as_ref()).ok()
    }

    /// Whether the other end of a connection has proved that it knows the token. Takes the same time for each wrong proof.
    pub fn is_proved(&self, connection: &Connection, proof: &TokenProof) -> bool {
        let material = material_of(connection);
        material.is_some_and(|material| hmac::verify(&self.0, material.as_slice(), proof).is_ok())
    }
}

fn material_of(connection: &Connection) -> Option<Zeroizing<[u8; MATERIAL_BYTES]>> {
    let mut material = Zeroizing::new([0; MATERIAL_BYTES]);
    let exported = connection.export_keying_material(material.as_mut_slice(), LABEL, b"");
    exported.is_ok().then_some(material)
}

/// Reason why a text is no token. It does not show the text, which is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TokenError {
    /// The text is too short or too long.
    #[error("it has {0} characters; a token has {TOKEN_CHARACTERS}")]
    Length(usize),
    /// A character that base32 does not have, at this place from 1 on.
    #[error("its character {0} is not one of 0 to 9 and A to Z without U")]
    Character(usize),
    /// The last 2 bits are not 0, so the text stands for no whole number of bytes.
    #[error("its last character is none that a token ends with; compare it with the relay's")]
    End,
}

/// Reads a token.
///
/// # Errors
/// [`TokenError`] for the first fault.
pub fn parse_token(text: &str) -> Result<[u8; TOKEN_BYTES], TokenError> {
    let mut token = [0; TOKEN_BYTES];
    let (mut bits, mut count, mut at) = (0_u32, 0, 0);
    for (index, character) in text.chars().enumerate().take(TOKEN_CHARACTERS) {
        let value = base32::value(character).ok_or(TokenError::Character(index + 1))?;
        bits = (bits << 5) | u32::from(value);
        count += 5;
        if count >= 8 {
            count -= 8;
            token[at] = (bits >> count) as u8;
            at += 1;
            bits &= (1 << count) - 1;
        }
    }
    match text.chars().count() {
        TOKEN_CHARACTERS if bits == 0 => Ok(token),
        TOKEN_CHARACTERS => Err(TokenError::End),
        length => Err(TokenError::Length(length)),
    }
}

/// The text of a token.
pub fn token_text(token: &[u8; TOKEN_BYTES]) -> String {
    let number = u128::from_be_bytes(*token);
    let character = |index: usize| {
        // The characters from the left; the last one has 3 bits of the number.
        let from_right = 5 * (TOKEN_CHARACTERS - 1 - index);
        let bits = match from_right.checked_sub(2) {
            Some(shift) => number >> shift,
            None => number << 2,
        };
        base32::character((bits & 31) as u8)
    };
    (0..TOKEN_CHARACTERS).map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_token_has_26_characters() {
        assert_eq!(token_text(&[0; 16]), "0".repeat(26));
        assert_eq!(token_text(&[255; 16]), format!("{}W", "Z".repeat(25)));
        let mut one = [0; 16];
        one[15] = 1;
        assert_eq!(token_text(&one), format!("{}4", "0".repeat(25)));
        // Python: base64.b32encode(bytes(range(16))), in the other alphabet.
        let range: [u8; 16] = std::array::from_fn(|at| at as u8);
        assert_eq!(token_text(&range), "000G40R40M30E209185GR38E1W");
        assert_eq!(parse_token("ooog40r40m30e209i85gr38eLw"), Ok(range));
    }

    #[test]
    fn an_error_names_the_fault_and_not_the_token() {
        assert_eq!(parse_token(""), Err(TokenError::Length(0)));
        assert_eq!(parse_token(&"0".repeat(25)), Err(TokenError::Length(25)));
        assert_eq!(parse_token(&"0".repeat(27)), Err(TokenError::Length(27)));
        assert_eq!(parse_token("0000-"), Err(TokenError::Character(5)));
        assert_eq!(parse_token("é"), Err(TokenError::Character(1)));
        let end = format!("{}1", "0".repeat(25));
        assert_eq!(parse_token(&end), Err(TokenError::End));
    }

    proptest! {
        #[test]
        fn a_token_is_read_as_it_was_written(token: [u8; 16]) {
            prop_assert_eq!(parse_token(&token_text(&token)), Ok(token));
        }
    }
}
