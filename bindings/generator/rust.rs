//! Generated parts of the library and its tests: the codes of `error.rs`, and a call of every function.

use std::error::Error;
use std::fmt::Write;

use super::model::{Abi, Scalar, Type, Variable, pascal};

/// An invocation of `codes!` (`src/error.rs`) with every result code and its sentence.
pub(crate) fn codes(abi: &Abi) -> String {
    let mut text = String::from("codes! {\n");
    for code in abi.constants.iter().filter(|constant| constant.is_code) {
        let (sentence, name) = (code.docs.summary(), pascal(&code.name));
        let _ = writeln!(text, "    /// {sentence}\n    {name} = {};", code.value);
    }
    text + "}\n"
}

/// `every_call()`: calls each function with valid arguments, except the functions that open a room.
///
/// # Errors
/// A parameter of a type without such an argument.
pub(crate) fn calls(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = String::from(
        "/// Calls every function except the ones in `skip` and the ones that open a room, each with valid arguments.\n\
         fn every_call(skip: &[&str], mut answered: impl FnMut(&'static str, Answer)) {\n",
    );
    for function in abi.all_functions() {
        let name = &function.name;
        if name.starts_with("InitializeNetwork") || name == "mmn_open" {
            continue;
        }
        let arguments: Vec<_> = function
            .parameters
            .iter()
            .map(|parameter| argument(parameter).ok_or(format!("{name}: {}", parameter.name)))
            .collect::<Result<_, _>>()?;
        let arguments = arguments.join(", ");
        let answer = match &function.result {
            Type::Text => "Text",
            Type::Bytes => "Bytes",
            Type::Scalar(scalar) if scalar.bits == 8 => "Flag",
            Type::Scalar(scalar) if scalar.bits == 64 && !scalar.signed => "Room",
            _ => "Number",
        };
        writeln!(
            text,
            "    if !skip.contains(&\"{name}\") {{\n        \
             // SAFETY: strings have a NUL, data has its length, and structs are as long as their struct_size.\n        \
             #[allow(unused_unsafe)]\n        \
             let answer = unsafe {{ {name}({arguments}) }};\n        \
             answered(\"{name}\", Answer::from_{}(answer));\n    }}",
            answer.to_lowercase()
        )?;
    }
    Ok(text + "}\n")
}

/// `EVENT_FIELDS`: each kind of event with the fields that its documentation lists.
pub(crate) fn event_fields(abi: &Abi) -> String {
    let mut text = String::from("const EVENT_FIELDS: &[(u32, &[&str])] = &[\n");
    for event in &abi.events {
        let fields: Vec<_> = event.fields.iter().map(|field| &field.raw).collect();
        let _ = writeln!(text, "    ({}, &{fields:?}),", event.value);
    }
    text + "];\n"
}

/// A valid argument.
fn argument(parameter: &Variable) -> Option<String> {
    Some(match (&parameter.kind, parameter.name.as_str()) {
        (Type::Text, "addr") => "c\"localhost:1\".as_ptr()".into(),
        (Type::Text, _) => "c\"peer\".as_ptr()".into(),
        (Type::Bytes, _) => "[1_u8, 2, 3].as_ptr()".into(),
        (Type::Scalar(_), "length") => "3".into(),
        (Type::Scalar(_), "msg_type") => "0x0100".into(),
        (Type::Scalar(_), "room") => "mmn_default_room()".into(),
        (Type::Scalar(_), _) => "1".into(),
        (Type::TextBuffer, _) => "[c_char::default(); 64].as_mut_ptr()".into(),
        (Type::UserData, _) => "null_mut()".into(),
        (Type::Named(callback), _) if callback.ends_with("Callback") => "None".into(),
        (Type::Pointer { to, .. }, "buffer") => format!("[{to}::default(); 64].as_mut_ptr()"),
        (Type::Pointer { to, .. }, _) if Scalar::parse(to).is_some() => {
            format!("&mut {to}::default()")
        }
        (Type::Pointer { to, .. }, "changes") => {
            format!("&{to} {{ key: c\"key\".as_ptr(), ..{to}::default() }}")
        }
        (Type::Pointer { to, .. }, "card") => {
            format!(
                "&{to} {{ game: c\"game\".as_ptr(), name: c\"name\".as_ptr(), ..{to}::default() }}"
            )
        }
        (Type::Pointer { to, mutable }, _) => {
            let reference = if *mutable { "&mut " } else { "&" };
            format!(
                "{reference}{to} {{ struct_size: size_of::<{to}>() as u32, ..{to}::default() }}"
            )
        }
        (Type::Named(_), _) => return None,
    })
}

/// An invocation of `calls!` (`src/ffi/sequences.rs`): every function in the order of the exports, and for each
/// argument the method of the host that makes it.
///
/// # Errors
/// A parameter of a type without such a method.
pub(crate) fn sequences(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut functions: Vec<_> = abi.all_functions().collect();
    functions.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = String::from("calls! { |host|\n");
    for function in functions {
        let mut arguments = Vec::new();
        let first = function.parameters.first();
        let has_room = first.is_some_and(|first| first.name == "room");
        for (place, parameter) in function.parameters.iter().enumerate() {
            let place = place.saturating_sub(has_room.into());
            let argument = by_chance(&function.name, place, parameter)
                .ok_or_else(|| format!("{}: {}", function.name, parameter.name))?;
            arguments.push(argument);
        }
        writeln!(text, "    {}({});", function.name, arguments.join(", "))?;
    }
    Ok(text + "}\n")
}

fn by_chance(function: &str, place: usize, parameter: &Variable) -> Option<String> {
    let method = |name: &str| Some(format!("host.{name}()"));
    match (&parameter.kind, parameter.name.as_str()) {
        // The log would bury the message of a failure.
        _ if function == "EnableLogging" || function == "mmn_set_log_stderr" => Some("0".into()),
        (Type::Scalar(_), "room") => method("room"),
        (Type::Pointer { .. }, "room") => method("room_to_open"),
        (Type::Scalar(_), "browser") => method("browser"),
        (Type::Pointer { .. }, "browser") => method("browser_to_open"),
        (Type::Text, "addr") => method("address"),
        (Type::Text, _)
            if place == 0 && (function.starts_with("Initialize") || function == "mmn_open") =>
        {
            method("name_of_a_room")
        }
        (Type::Text, _) => method(if place == 0 { "text" } else { "other" }),
        // The host has one payload at a time.
        (Type::Bytes, "tag") => Some("null()".into()),
        (Type::Scalar(_), "tag_length") => Some("host.chance.flip().into()".into()),
        (Type::Bytes, _) => method("data"),
        (Type::Scalar(_), "length") => method("length"),
        (Type::Pointer { .. }, "changes") => method("changes"),
        (Type::Scalar(_), "count") => method("count"),
        (Type::Scalar(_), "msg_type") => method("message_type"),
        (Type::Scalar(_), "level") => method("level"),
        (Type::Scalar(kind), _) => match kind.bits {
            8 => method("chance.byte"),
            64 => method("chance.u64"),
            _ if kind.signed => method("number"),
            _ => Some("host.number() as u32".into()),
        },
        (Type::TextBuffer, _) => method("u8_to_fill().cast"),
        (Type::UserData, _) => Some("held()".into()),
        (Type::Named(name), _) => match name.strip_suffix("Callback")? {
            "MmnDrop" => Some("Some(dropped)".into()),
            "MmnEvent" => method("handler"),
            "MmnLog" => method("logger"),
            kind => Some(format!("host.chance.flip().then_some(on_{})", snake(kind))),
        },
        (Type::Pointer { to, mutable: true }, _) => match Scalar::parse(to) {
            Some(_) => method(&format!("{to}_to_fill")),
            None => method("struct_to_fill"),
        },
        (Type::Pointer { to, .. }, _) => Some(format!("&host.{}()", snake(to))),
    }
}

/// `NetworkConfigFFI` as `network_config_ffi`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut before = 'A';
    for letter in name.chars() {
        if letter.is_uppercase() && before.is_lowercase() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
        before = letter;
    }
    snake
}
