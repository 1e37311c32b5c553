//! Base32 in the alphabet of Douglas Crockford, for what people read out and type: no I, L, O and U among its characters.

/// The characters, in the order of their values.
pub const CHARACTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The character with the low 5 bits of `value`.
pub fn character(value: u8) -> char {
    char::from(CHARACTERS[usize::from(value % 32)])
}

/// The value of a character, in either case. People read O for 0, and I or L for 1.
pub fn value(character: char) -> Option<u8> {
    let character = match character.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        character => character,
    };
    let of_it = |it: &u8| char::from(*it) == character;
    let value = CHARACTERS.iter().position(of_it)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_its_value_in_either_case() {
        for expected in 0..32 {
            let character = character(expected);
            assert_eq!(value(character), Some(expected));
            assert_eq!(value(character.to_ascii_lowercase()), Some(expected));
        }
        assert_eq!("oOiIlL".chars().map(value).collect::<Vec<_>>(), {
            [0, 0, 1, 1, 1, 1].map(Some)
        });
        for none in ['u', 'U', '-', ' ', 'é', 'Ｋ', '\0'] {
            assert_eq!(value(none), None, "{none:?}");
        }
    }
}
