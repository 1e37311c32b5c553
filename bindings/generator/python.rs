//! The tables of the Python binding: constants, the structs' fields, callbacks and functions.

use std::error::Error;
use std::fmt::Write;

use super::events::{Event, Field, Known, Values, sentence, translated};
use super::groups::{Form, GROUPS, Group};
use super::model::{Abi, Constant, Scalar, Type, Variable};
use super::table::wrapped;

/// The text between the marks. Below it, classes written by hand extend the structs.
///
/// # Errors
/// A type without a name in ctypes.
pub(crate) fn tables(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let mut group = "";
    for constant in &abi.constants {
        if let Some(found) = enum_of(constant) {
            if group != found.class {
                group = found.class;
                enumeration(&mut text, abi, found)?;
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
    for function in abi.all_functions() {
        let kinds = arguments(&function.parameters)?;
        let result = match &function.result {
            Type::Text => "_TEXT".to_owned(),
            other => in_memory(other)?,
        };
        writeln!(text, "    \"{}\": ({result}, {kinds}),", function.name)?;
    }
    text += "}\n";
    events(&mut text, abi)?;
    exports(&mut text, abi);
    Ok(text)
}

/// The result codes are an enum, too.
const CODES: Group = Group {
    prefix: "",
    class: "Code",
    form: Form::Enum,
    field: "",
    meaning: "Result of a call or a dial.",
};

/// The enum to which a constant belongs.
fn enum_of(constant: &Constant) -> Option<&'static Group> {
    if constant.is_code {
        return Some(&CODES);
    }
    Group::of(constant).filter(|group| group.form != Form::Constants)
}

/// A class with the constants of one group as members, and their long names.
fn enumeration(text: &mut String, abi: &Abi, group: &Group) -> Result<(), Box<dyn Error>> {
    let (class, meaning) = (group.class, group.meaning);
    let members: Vec<_> = match group.prefix {
        "" => {
            let codes = abi.constants.iter().filter(|constant| constant.is_code);
            codes.map(|code| (code.name.as_str(), code)).collect()
        }
        _ => group.members(abi),
    };
    writeln!(
        text,
        "\n\nclass {class}(_Number):\n    \"\"\"{meaning}\"\"\"\n"
    )?;
    if let Some(unknown) = group.unknown() {
        writeln!(text, "    UNKNOWN = -1\n    \"\"\"{unknown}\"\"\"")?;
    }
    for (name, constant) in &members {
        writeln!(text, "    {name} = {}", constant.value)?;
    }
    text.push_str("\n\n");
    for (name, constant) in &members {
        writeln!(text, "{} = {class}.{name}", constant.name)?;
    }
    Ok(())
}

/// A dataclass for each kind of event, and the table of functions that make them from the library's struct.
fn events(text: &mut String, abi: &Abi) -> Result<(), Box<dyn Error>> {
    let mut makers = String::new();
    for event in &abi.events {
        let class = &event.class;
        writeln!(
            text,
            "\n\n@dataclasses.dataclass(frozen=True)\nclass {class}(Event):"
        )?;
        docstring(text, &documented(abi, event, &sentence(&event.summary)));
        writeln!(text, "\n    kind = EventKind.{}", event.name)?;
        let mut values = Vec::new();
        for field in event.bound_fields() {
            let (kind, value) = copied(&field)?;
            let default = if field.raw == "peer_index" {
                " = 0"
            } else {
                ""
            };
            writeln!(text, "    {}: {kind}{default}", name(&field.name))?;
            docstring(text, &documented(abi, event, &field.sentence("None")));
            values.push(value.replace("{}", &format!("e.{}", field.raw)));
        }
        writeln!(
            makers,
            "    {}: lambda e: {class}({}),",
            event.value,
            values.join(", ")
        )?;
    }
    write!(
        text,
        "\n\n# Kind: what makes the event from the library's struct.\n\
         _MAKERS: dict[int, Callable[[Any], Event]] = {{\n{makers}}}\n"
    )?;
    Ok(())
}

/// The type of a field of an event, and its value with `{}` for the field of the struct.
fn copied(field: &Field) -> Result<(String, String), Box<dyn Error>> {
    let (kind, value) = match (&field.kind, &field.values) {
        (Type::Text, _) if field.is_optional => ("str | None", "_text_of({}) or None"),
        (Type::Text, _) => ("str", "_text_of({})"),
        (Type::Bytes, _) => ("bytes", "ctypes.string_at({}, e.length)"),
        (Type::Scalar(_), Values::Flag) => ("bool", "{} != 0"),
        (Type::Scalar(_), Values::Codes) => ("Code", "Code({})"),
        (Type::Scalar(_), Values::Constants(group)) => {
            return Ok((group.class.into(), format!("{}({{}})", group.class)));
        }
        (Type::Scalar(_), Values::Any) => ("int", "{}"),
        _ => return Err(format!("{} is no field for an event", field.raw).into()),
    };
    Ok((kind.into(), value.into()))
}

/// A name that Python has not taken.
fn name(name: &str) -> &str {
    match name {
        "from" => "sender",
        other => other,
    }
}

/// A text about an event, with the names of the package.
fn documented(abi: &Abi, event: &Event, text: &str) -> String {
    let named = |known: Known<'_>| {
        Some(match known {
            Known::Event(event) => event.class.clone(),
            Known::Code(code) => format!("Code.{code}"),
            Known::Member(group, member) if group.form == Form::Constants => {
                format!("{}_{member}", group.prefix)
            }
            Known::Member(group, member) => format!("{}.{member}", group.class),
            Known::Group(group) => group.class.to_owned(),
            Known::Other(name) => name.to_owned(),
            Known::Function("peer_index") => "index()".into(),
            Known::Function("peer_path") => "path()".into(),
            Known::Function(function) => format!("{function}()"),
        })
    };
    translated(abi, event, text, named, |field| name(field).to_owned())
}

/// A docstring, indented for a class.
fn docstring(text: &mut String, docs: &str) {
    const WIDTH: usize = 125;
    let lines = wrapped(&format!("\"\"\"{docs}\"\"\""), WIDTH - 4);
    for line in lines {
        *text += "    ";
        *text += &line;
        text.push('\n');
    }
}

/// The names of the enums and the events.
fn exports(text: &mut String, abi: &Abi) {
    let enums = GROUPS.iter().filter(|group| group.form != Form::Constants);
    let enums = enums.map(|group| group.class);
    let events = abi.events.iter().map(|event| event.class.as_str());
    let mut names: Vec<_> = enums.chain(events).chain([CODES.class]).collect();
    names.sort_unstable();
    *text += "\n__all__ += [\n";
    for name in names {
        let _ = writeln!(text, "    \"{name}\",");
    }
    *text += "]\n";
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
        Type::TextBuffer | Type::Pointer { .. } => "Any".to_owned(),
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
        Type::TextBuffer => "ctypes.POINTER(ctypes.c_char)".to_owned(),
        Type::Pointer { to, .. } => {
            let to = Scalar::parse(to).map_or_else(|| class(to), scalar);
            format!("ctypes.POINTER({to})")
        }
        Type::Named(name) => named(name),
    })
}
