//! The picture of a run: one self-contained page.

use crate::record::{Section, to_lines};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// One after the other, as one script.
const SCRIPTS: [&str; 3] = [
    include_str!("page/model.js"),
    include_str!("page/paint.js"),
    include_str!("page/page.js"),
];

/// The page of a trace.
pub fn page(sections: &[Section]) -> String {
    // Only inside of strings, so that no name can end the element.
    let lines = to_lines(sections).replace('<', "\\u003c");
    let mut text = PAGE.to_owned();
    for (mark, part) in [
        ("/*STYLE*/", STYLE),
        ("/*SCRIPT*/", &SCRIPTS.concat()),
        ("/*TRACE*/", &lines),
    ] {
        // The trace comes last: no part of it can be mistaken for a mark.
        text = text.replacen(mark, part, 1);
    }
    text
}
