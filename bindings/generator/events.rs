//! The kinds of events with their fields, read from the lists in the documentation of the `MMN_EVENT_` constants. The
//! header's table, the bindings' types and a test of the library come from these lists.
//!
//! A list has one line for each field that the kind sets: `- count (undelivered): messages that are not known to be
//! delivered.` In brackets is the name of the field in the bindings, where it differs, and "or none" if an empty text
//! means that there is none. A meaning that names a group of constants (`MMN_LEFT_...`) gives the field its type.

use std::error::Error;

use super::groups::Group;
use super::model::{Abi, Constant, Scalar, Type};

/// Names in the bindings that are not those of the constants.
const CLASSES: [(&str, &str); 11] = [
    ("JOINED", "PeerJoined"),
    ("RECONNECTING", "PeerReconnecting"),
    ("RETURNED", "PeerReturned"),
    ("LEFT", "PeerLeft"),
    // Its field has this name.
    ("RELAY", "RelayChanged"),
    // An option is an enum of this name.
    ("PORT_MAPPING", "PortMappingChanged"),
    ("TURN", "TurnChanged"),
    // A state is an enum of this name.
    ("MEMBER_STATE", "MemberStateChanged"),
    // .NET has a delegate of this name.
    ("ACTION", "RoomAction"),
    ("PROPERTY", "PropertyChanged"),
    ("STATE_MEMBER", "StateMemberChanged"),
];

/// Fields that every kind sets, or that come with another field.
const IMPLIED: [&str; 5] = ["struct_size", "kind", "room", "length", "peer_index"];

const PEER_INDEX: &str = "index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the room.";

/// A kind of event.
#[derive(Debug)]
pub(crate) struct Event {
    /// Name of the constant without `MMN_EVENT_`.
    pub(crate) name: String,
    pub(crate) value: i128,
    /// Name of the type in the bindings, in Pascal case.
    pub(crate) class: String,
    /// The meaning of the kind, in one paragraph.
    pub(crate) summary: String,
    pub(crate) fields: Vec<Field>,
}

/// A field of a kind.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// Name in `MmnEvent`.
    pub(crate) raw: String,
    /// Name in the bindings, in snake case.
    pub(crate) name: String,
    /// Whether an empty text means that there is none.
    pub(crate) is_optional: bool,
    /// A sentence without a subject: it begins in lower case, unless with a name.
    pub(crate) meaning: String,
    pub(crate) kind: Type,
    pub(crate) values: Values,
}

/// The meaning of a number.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    Any,
    Flag,
    /// A result code of the library.
    Codes,
    /// One of a group of constants.
    Constants(&'static Group),
}

impl Event {
    /// Its fields in the bindings: with the index of a peer.
    pub(crate) fn bound_fields(&self) -> Vec<Field> {
        let mut fields = self.fields.clone();
        if fields.iter().any(|field| field.raw == "peer") {
            fields.push(Field {
                raw: "peer_index".into(),
                name: "peer_index".into(),
                is_optional: false,
                meaning: PEER_INDEX.into(),
                kind: Type::Scalar(U32),
                values: Values::Any,
            });
        }
        fields
    }
}

const U32: Scalar = Scalar {
    signed: false,
    bits: 32,
};

/// Every kind, in the order of the source.
///
/// # Errors
/// A kind without a list, or a list with an unknown, a repeated or an implied field.
pub(crate) fn read(abi: &Abi) -> Result<Vec<Event>, Box<dyn Error>> {
    let kinds = abi
        .constants
        .iter()
        .filter(|constant| constant.name.starts_with("EVENT_"));
    let mut events = Vec::new();
    for constant in kinds {
        let event =
            event(abi, constant).map_err(|error| format!("MMN_{}: {error}", constant.name))?;
        events.push(event);
    }
    Ok(events)
}

fn event(abi: &Abi, constant: &Constant) -> Result<Event, Box<dyn Error>> {
    let name = constant.name.trim_start_matches("EVENT_");
    let class = CLASSES.iter().find(|(kind, _)| *kind == name);
    let summary = constant.docs.summary();
    let summary = summary
        .strip_prefix("MmnEvent.kind: ")
        .ok_or("its text does not begin with \"MmnEvent.kind: \"")?;
    let mut fields: Vec<Field> = Vec::new();
    for item in items(&constant.docs.0)? {
        let field = field(abi, &item).map_err(|error| format!("\"{item}\": {error}"))?;
        let is_repeated = |known: &Field| known.raw == field.raw || known.name == field.name;
        if fields.iter().any(is_repeated) {
            return Err(format!("\"{item}\": the name is there twice").into());
        }
        fields.push(field);
    }
    if fields.is_empty() {
        return Err("no list of its fields".into());
    }
    Ok(Event {
        name: name.to_owned(),
        value: constant.value,
        class: class.map_or_else(|| super::model::pascal(name), |(_, class)| (*class).into()),
        summary: summary.to_owned(),
        fields,
    })
}

/// The items of the list, each on one line: the second and last paragraph.
fn items(lines: &[String]) -> Result<Vec<String>, Box<dyn Error>> {
    let mut items: Vec<String> = Vec::new();
    let list = lines.iter().skip_while(|line| !line.is_empty()).skip(1);
    for line in list {
        if let Some(item) = line.strip_prefix("- ") {
            items.push(item.to_owned());
        } else if let (Some(item), false) = (items.last_mut(), line.is_empty()) {
            *item += " ";
            *item += line;
        } else {
            return Err(format!("its list of fields has the line \"{line}\"").into());
        }
    }
    Ok(items)
}

/// `count (undelivered): messages ...`, `peer (or none): ...`
fn field(abi: &Abi, item: &str) -> Result<Field, Box<dyn Error>> {
    let (head, meaning) = item.split_once(": ").ok_or("no colon")?;
    let (raw, bracket) = match head.split_once(" (") {
        Some((raw, bracket)) => (raw, bracket.strip_suffix(')').ok_or("an open bracket")?),
        None => (head, ""),
    };
    let (name, is_optional) = match bracket.strip_suffix("or none") {
        Some(name) => (name.trim_end(), true),
        None => (bracket, false),
    };
    let name = if name.is_empty() { raw } else { name };
    if !name
        .chars()
        .all(|letter| letter.is_ascii_lowercase() || letter == '_')
    {
        return Err(format!("{name} is no name").into());
    }
    let known = abi
        .structs
        .iter()
        .find(|found| found.name == "MmnEvent")
        .and_then(|found| found.fields.iter().find(|field| field.name == raw))
        .filter(|_| !IMPLIED.contains(&raw))
        .ok_or_else(|| format!("{raw} is no field of MmnEvent that a list may have"))?;
    if is_optional && known.kind != Type::Text {
        return Err(format!("{raw} is no text").into());
    }
    Ok(Field {
        raw: raw.to_owned(),
        name: name.to_owned(),
        is_optional,
        meaning: meaning.to_owned(),
        kind: known.kind.clone(),
        values: values(raw, meaning)?,
    })
}

fn values(raw: &str, meaning: &str) -> Result<Values, Box<dyn Error>> {
    let group = meaning
        .split_once("one of MMN_")
        .and_then(|(_, rest)| rest.split_once("..."));
    if let Some((prefix, _)) = group {
        return Group::with_prefix(prefix)
            .map(Values::Constants)
            .ok_or_else(|| format!("no group of constants begins with MMN_{prefix}").into());
    }
    Ok(match raw {
        "success" => Values::Flag,
        "code" if meaning.contains("MMN_") => Values::Codes,
        _ => Values::Any,
    })
}

impl Field {
    /// Its meaning in a binding where `none` stands for an empty text that means none.
    pub(crate) fn sentence(&self, none: &str) -> String {
        let meaning = match &self.values {
            Values::Constants(group) if self.meaning.starts_with("one of MMN_") => group.meaning,
            _ => &self.meaning,
        };
        let meaning = match (&self.values, self.is_optional) {
            (Values::Flag, _) => meaning.replacen("1 when", "whether", 1),
            (_, true) => meaning.replace("\"\"", none),
            _ => meaning.to_owned(),
        };
        sentence(&meaning)
    }
}

/// `text` with a capital at its beginning, unless that is a name.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if !text.starts_with("mmn_") => {
            first.to_uppercase().collect::<String>() + letters.as_str()
        }
        _ => text.to_owned(),
    }
}

/// A name of the ABI in a text.
pub(crate) enum Known<'a> {
    Event(&'a Event),
    /// A result code, without `MMN_`.
    Code(&'a str),
    /// A constant of a group, without the prefix.
    Member(&'static Group, &'a str),
    Group(&'static Group),
    /// Another constant, without `MMN_`.
    Other(&'a str),
    /// A function, without `mmn_`.
    Function(&'a str),
}

/// `text` with the names of the ABI as `named` gives them, and the names between backticks as the fields of `event` in
/// the bindings.
pub(crate) fn translated(
    abi: &Abi,
    event: &Event,
    text: &str,
    named: impl Fn(Known<'_>) -> Option<String>,
    cased: impl Fn(&str) -> String,
) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut result = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            let length = rest.chars().next().map_or(0, char::len_utf8);
            result += &rest[..length];
            rest = &rest[length..];
            continue;
        }
        rest = after;
        let is_quoted = result.ends_with('`');
        let field = event.fields.iter().find(|field| field.raw == word);
        let translation = match field {
            Some(field) if is_quoted => Some(cased(&field.name)),
            _ => known(abi, word).and_then(&named),
        };
        match translation {
            // `MMN_LEFT_...`
            Some(group) if word.ends_with('_') => {
                result += &group;
                rest = rest.strip_prefix("...").unwrap_or(rest);
                if rest.is_empty() {
                    result.push('.');
                }
            }
            Some(translation) => result += &translation,
            None => result += word,
        }
    }
    result
}

fn known<'a>(abi: &'a Abi, word: &'a str) -> Option<Known<'a>> {
    if let Some(function) = word.strip_prefix("mmn_") {
        return Some(Known::Function(function));
    }
    let name = word.strip_prefix("MMN_")?;
    if let Some(prefix) = name.strip_suffix('_') {
        return Group::with_prefix(prefix).map(Known::Group);
    }
    let event = |event: &&Event| name.strip_prefix("EVENT_") == Some(&event.name);
    if let Some(event) = abi.events.iter().find(event) {
        return Some(Known::Event(event));
    }
    let constant = abi.constants.iter().find(|found| found.name == name)?;
    if constant.is_code {
        return Some(Known::Code(&constant.name));
    }
    let Some(group) = Group::of(constant) else {
        return Some(Known::Other(&constant.name));
    };
    let member = &constant.name[group.prefix.len() + 1..];
    Some(Known::Member(group, member))
}
