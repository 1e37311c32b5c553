//! The tables of the Python binding: constants, the structs' fields, callbacks and functions.

use std::error::Error;
use std::fmt::Write;

use super::model::{Abi, Constant, Scalar, Type, Variable};

/// The enums: prefix of the constants' names (result codes have none), class, and meaning.
const ENUMS: [(&str, &str, &str); 13] = [
    ("", "Code", "Result of a call or a dial."),
    ("PEER_", "PeerStatus", "State of the link to a member."),
    ("LOG_", "LogLevel", "Verbosity of the log."),
    (
        "DISCOVERY_",
        "DiscoveryMode",
        "Discovery of members in the local network.",
    ),
    ("STRATEGY_", "Strategy", "Election strategy of a room."),
    ("DELIVERY_", "Delivery", "Delivery of a message."),
    ("EVENT_", "EventKind", "Kind of an Event."),
    (
        "MEMBER_",
        "MemberState",
        "State of a member: the reason of EVENT_MEMBER_STATE.",
    ),
    ("LEADER_", "LeaderReason", "Reason of EVENT_LEADER_CHANGED."),
    ("LEFT_", "LeftReason", "Reason of EVENT_LEFT."),
    ("DROPPED_", "DroppedReason", "Reason of EVENT_DATA_DROPPED."),
    ("END_", "EndReason", "Reason of EVENT_ROOM_ENDED."),
    ("PATH_", "LinkPath", "Path to a member: PeerStats.path."),
];

/// The text between the marks. Below it, classes written by hand extend the structs.
///
/// # Errors
/// A type without a name in ctypes.
pub(crate) fn tables(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let mut group = "";
    for constant in &abi.constants {
        if let Some((prefix, class, meaning)) = enum_of(constant) {
            if group != class {
                group = class;
                enumeration(&mut text, abi, (prefix, class, meaning))?;
            }
            continue;
        }
        let this = constant.name.split('_').next().unwrap_or_default();
        if this != group {
            text += "\n";
            group = this;
        }
        writeln!(text, "{} = {}", constant.name, constant.value)?;
    }
    text += "\n\nclass _BYTES(ctypes.c_char_p):\n    \"\"\"The bytes before a length.\"\"\"\n\n\n_TEXT = ctypes.c_char_p\n";
    // The classes come first, because structs point to each other. Their declarations are for type checkers.
    for found in &abi.structs {
        writeln!(text, "\n\nclass {}(ctypes.Structure):", class(&found.name))?;
        for field in &found.fields {
            writeln!(text, "    {}: {}", field.name, for_checkers(&field.kind))?;
        }
    }
    text += "\n\n";
    for callback in &abi.callbacks {
        let kinds: Vec<_> = callback
            .parameters
            .iter()
            .map(|parameter| in_memory(&parameter.kind))
            .collect::<Result<_, _>>()?;
        let kinds = kinds.join(", ");
        writeln!(text, "{} = ctypes.CFUNCTYPE(None, {kinds})", callback.name)?;
    }
    text += "\n";
    for found in &abi.structs {
        writeln!(text, "{}._fields_ = [", class(&found.name))?;
        for field in &found.fields {
            let kind = in_memory(&field.kind)?;
            writeln!(text, "    (\"{}\", {kind}),", field.name)?;
        }
        text += "]\n";
    }
    text +=
        "\n# Name: (result, arguments).\nFUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {\n";
    for function in &abi.functions {
        let kinds = arguments(&function.parameters)?;
        let result = match &function.result {
            Type::Text => "_TEXT".to_owned(),
            other => in_memory(other)?,
        };
        writeln!(text, "    \"{}\": ({result}, {kinds}),", function.name)?;
    }
    text += "}\n";
    Ok(text)
}

/// The entry of [`ENUMS`] to which a constant belongs.
fn enum_of(constant: &Constant) -> Option<(&'static str, &'static str, &'static str)> {
    ENUMS.into_iter().find(|(prefix, ..)| {
        prefix.is_empty() == constant.is_code && constant.name.starts_with(*prefix)
    })
}

/// A class with the constants of one entry of [`ENUMS`] as members, and their long names.
fn enumeration(
    text: &mut String,
    abi: &Abi,
    (prefix, class, meaning): (&str, &str, &str),
) -> Result<(), Box<dyn Error>> {
    writeln!(
        text,
        "\n\nclass {class}(_Number):\n    \"\"\"{meaning}\"\"\"\n"
    )?;
    let belongs =
        |constant: &&Constant| enum_of(constant).is_some_and(|(_, found, _)| found == class);
    for constant in abi.constants.iter().filter(belongs) {
        writeln!(
            text,
            "    {} = {}",
            &constant.name[prefix.len()..],
            constant.value
        )?;
    }
    text.push_str("\n\n");
    for constant in abi.constants.iter().filter(belongs) {
        writeln!(
            text,
            "{0} = {class}.{1}",
            constant.name,
            &constant.name[prefix.len()..]
        )?;
    }
    Ok(())
}

fn arguments(parameters: &[Variable]) -> Result<String, Box<dyn Error>> {
    let kinds: Vec<_> = parameters
        .iter()
        .map(|parameter| match &parameter.kind {
            Type::Text => Ok("_TEXT".to_owned()),
            Type::Bytes => Ok("_BYTES".to_owned()),
            other => in_memory(other),
        })
        .collect::<Result<_, _>>()?;
    Ok(match kinds.as_slice() {
        [] => "()".to_owned(),
        [one] => format!("({one},)"),
        more => format!("({})", more.join(", ")),
    })
}

/// The name of a struct's class. The name without the underscore belongs to the class written by hand.
fn class(name: &str) -> String {
    format!("_{}", name.strip_suffix("FFI").unwrap_or(name))
}

/// The name of a callback's type or of a struct's class.
fn named(name: &str) -> String {
    if name.ends_with("Callback") {
        name.to_owned()
    } else {
        class(name)
    }
}

/// Type of a field's value in ctypes.
fn for_checkers(kind: &Type) -> String {
    match kind {
        Type::Scalar(_) => "int".to_owned(),
        Type::Text => "bytes | None".to_owned(),
        Type::Bytes | Type::UserData => "int | None".to_owned(),
        Type::Pointer { .. } => "Any".to_owned(),
        // A function pointer's type is a variable.
        Type::Named(name) if name.ends_with("Callback") => "Any".to_owned(),
        Type::Named(name) => named(name),
    }
}

fn scalar(kind: Scalar) -> String {
    let sign = if kind.signed { "" } else { "u" };
    format!("ctypes.c_{sign}int{}", kind.bits)
}

/// Type of a field, or of an argument without conversion.
fn in_memory(kind: &Type) -> Result<String, Box<dyn Error>> {
    Ok(match kind {
        Type::Scalar(kind) => scalar(*kind),
        Type::Text => "ctypes.c_char_p".to_owned(),
        Type::Bytes | Type::UserData => "ctypes.c_void_p".to_owned(),
        Type::Pointer { to, .. } => {
            let to = Scalar::parse(to).map_or_else(|| class(to), scalar);
            format!("ctypes.POINTER({to})")
        }
        Type::Named(name) => named(name),
    })
}
