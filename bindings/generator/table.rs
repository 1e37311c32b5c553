//! The table of events in the C header: kind, field, meaning.

use std::error::Error;
use std::fmt::Write;

use super::events::Event;

const WIDTH: usize = 100;

const HEAD: &str = r#"/*
 * Events: the fields of MmnEvent that each kind sets, and their meaning.
 *
 * Every kind also sets struct_size, kind and room; length comes with data, and peer_index with peer.
 * All other fields are 0 or "". In brackets: the field's name in the bindings for C++, C# and Python,
 * where it differs.
 *
"#;

/// `header` with the table before the struct, and without the lists in the comments of the kinds.
///
/// # Errors
/// A header without the struct, or without a kind's list.
pub(crate) fn with_events(header: &str, events: &[Event]) -> Result<String, Box<dyn Error>> {
    let mut header = header.to_owned();
    for event in events {
        remove_list(&mut header, event)?;
    }
    let of_struct = header
        .find("\ntypedef struct MmnEvent {")
        .and_then(|place| header[..place].rfind("\n/**"))
        .ok_or("the header has no documented struct MmnEvent")?;
    header.insert_str(of_struct + 1, &(table(events) + "\n"));
    Ok(header)
}

/// Removes the list before the constant, with the empty line above it.
fn remove_list(header: &mut String, event: &Event) -> Result<(), Box<dyn Error>> {
    let constant = format!("\n */\n#define MMN_EVENT_{} ", event.name);
    let list = header.find(&constant).and_then(|end| {
        let begin = header[..end].rfind("/**")?;
        let list = begin + header[begin..end].find("\n *\n * - ")?;
        Some(list..end)
    });
    let list = list.ok_or_else(|| format!("the header has no list of MMN_EVENT_{}", event.name))?;
    header.replace_range(list, "");
    Ok(())
}

fn table(events: &[Event]) -> String {
    let rows: Vec<_> = events
        .iter()
        .flat_map(|event| {
            event.fields.iter().enumerate().map(|(place, field)| {
                let kind = match place {
                    0 => format!("MMN_EVENT_{}", event.name),
                    _ => String::new(),
                };
                let name = match field.name == field.raw {
                    true => field.raw.clone(),
                    false => format!("{} ({})", field.raw, field.name),
                };
                (kind, name, field.meaning.as_str())
            })
        })
        .collect();
    let kinds = rows.iter().map(|(kind, ..)| kind.len()).max().unwrap_or(0);
    let names = rows
        .iter()
        .map(|(_, name, _)| name.len())
        .max()
        .unwrap_or(0);
    let meanings = WIDTH - " * ".len() - kinds - names - 2 * "  ".len();
    let mut text = HEAD.to_owned();
    let mut row = |kind: &str, name: &str, meaning: &str| {
        let line = format!("{kind:kinds$}  {name:names$}  {meaning}");
        let _ = writeln!(text, " * {}", line.trim_end());
    };
    row("kind", "field", "meaning");
    row(
        &"-".repeat(kinds),
        &"-".repeat(names),
        &"-".repeat(meanings),
    );
    for (kind, name, meaning) in &rows {
        let mut lines = wrapped(meaning, meanings).into_iter();
        row(kind, name, &lines.next().unwrap_or_default());
        for line in lines {
            row("", "", &line);
        }
    }
    text + " */\n"
}

/// The words of `text`, on lines of at most `width` letters.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| !line.is_empty());
        match line {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(word.to_owned()),
            None => lines = vec![word.to_owned()],
        }
    }
    lines
}
