//! Formats a caller's value for a sentence: quoted and cut, so that no sentence grows with it.

use std::fmt;

use crate::core::id::PeerId;

/// Limit of a value, or of a list of names, that a sentence quotes, in bytes.
const MAX_QUOTED_BYTES: usize = 64;

/// Shows a value in quotation marks: at most [`MAX_QUOTED_BYTES`] bytes of it, cut between characters,
/// control characters escaped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.0.floor_char_boundary_at(MAX_QUOTED_BYTES);
        write!(f, "\"{}\"", cut.escape_debug())?;
        if cut.len() < self.0.len() {
            write!(f, "... ({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}

/// Formats a list of peers: at most [`MAX_QUOTED_BYTES`] bytes of names (the first name always), then the number of the
/// others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerNames<'a>(pub(crate) &'a [PeerId]);

impl fmt::Display for PeerNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut used = 0;
        for (index, id) in self.0.iter().enumerate() {
            used += id.as_str().len() + if index == 0 { 0 } else { 2 };
            if index > 0 {
                if used > MAX_QUOTED_BYTES {
                    return write!(f, " and {} more", self.0.len() - index);
                }
                f.write_str(", ")?;
            }
            write!(f, "{}", Quoted(id.as_str()))?;
        }
        Ok(())
    }
}

trait Cut {
    /// The longest prefix of at most `max` bytes that ends between two characters.
    fn floor_char_boundary_at(&self, max: usize) -> &str;
}

impl Cut for str {
    fn floor_char_boundary_at(&self, max: usize) -> &str {
        let mut end = max.min(self.len());
        while !self.is_char_boundary(end) {
            end -= 1;
        }
        &self[..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_value_is_cut_between_characters() {
        assert_eq!(Quoted("a\tb").to_string(), "\"a\\tb\"");
        assert_eq!(
            Quoted(&"x".repeat(64)).to_string(),
            format!("\"{}\"", "x".repeat(64))
        );
        let long = "é".repeat(100);
        assert_eq!(
            Quoted(&long).to_string(),
            format!("\"{}\"... (200 bytes)", "é".repeat(32))
        );
        let odd = format!("x{long}");
        assert_eq!(
            Quoted(&odd).to_string(),
            format!("\"x{}\"... (201 bytes)", "é".repeat(31))
        );
    }
}
