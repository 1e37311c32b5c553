//! The C++ wrapper's codes, reasons and events. Its functions come from the header's table.

use std::error::Error;
use std::fmt::Write;

use super::events::{Event, Field, Known, Values, sentence, translated};
use super::model::{Abi, Type};
use super::table::wrapped;

/// `enum Code`, and the functions that describe reasons and the states of members.
pub(crate) fn codes(abi: &Abi) -> String {
    let mut text = String::from(
        "// The library's codes. New ones are only ever appended, so expect numbers that are not listed here.\n\
         enum Code : std::int32_t {\n",
    );
    for code in abi.constants.iter().filter(|constant| constant.is_code) {
        let name = code.name.to_lowercase();
        let _ = writeln!(text, "  {name} = {},", code.value);
    }
    text += "};\n";
    words(&mut text, abi, "LEADER_", "describe_leader_reason");
    words(&mut text, abi, "MEMBER_", "describe_member_state");
    words(&mut text, abi, "LEFT_", "describe_left_reason");
    words(&mut text, abi, "END_", "describe_end_reason");
    words(&mut text, abi, "RESET_", "describe_reset_reason");
    words(&mut text, abi, "TRANSFER_", "describe_transfer_outcome");
    text
}

/// A function that returns each constant of a prefix in words.
fn words(text: &mut String, abi: &Abi, prefix: &str, function: &str) {
    let _ = writeln!(
        text,
        "\n// One of MMN_{prefix}... in a word.\n\
         inline const char* {function}(std::int32_t number) noexcept {{\n  switch (number) {{"
    );
    for constant in &abi.constants {
        if let Some(name) = constant.name.strip_prefix(prefix) {
            let word = name.to_lowercase().replace('_', " ");
            let _ = writeln!(text, "    case MMN_{prefix}{name}: return \"{word}\";");
        }
    }
    *text += "    default: return \"unknown\";\n  }\n}\n";
}

/// A struct for each kind of event, and the visitor of a raw one.
///
/// # Errors
/// A field of a type that an event cannot have.
pub(crate) fn events(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text =
        String::from("\n// Events by kind. The views are valid during the handler only.\n");
    let mut cases = String::new();
    for event in &abi.events {
        let class = &event.class;
        text.push('\n');
        comment(
            &mut text,
            "",
            &documented(abi, event, &sentence(&event.summary)),
        );
        writeln!(
            text,
            "struct {class} {{\n  static constexpr std::uint32_t kind = MMN_EVENT_{};\n",
            event.name
        )?;
        let mut values = Vec::new();
        for field in event.bound_fields() {
            let (kind, value) = copied(&field)?;
            comment(
                &mut text,
                "  ",
                &documented(abi, event, &field.sentence("\"\"")),
            );
            writeln!(text, "  {kind} {};", field.name)?;
            let value = value.replace("{}", &format!("event.{}", field.raw));
            values.push(format!("{}({value})", field.name));
        }
        writeln!(text, "\n  explicit {class}(const MmnEvent& event)")?;
        text += &initializers(&values);
        if class == "Message" {
            text += "  std::string_view text() const noexcept { return data; }\n";
        }
        text += "};\n";
        writeln!(
            cases,
            "    case MMN_EVENT_{}: visitor({class}(event)); break;",
            event.name
        )?;
    }
    write!(
        text,
        "\nnamespace detail {{\n\n\
         template <typename Visitor>\n\
         void visit_event(const MmnEvent& event, Visitor&& visitor) {{\n  \
         switch (event.kind) {{\n{cases}    default: break;\n  }}\n}}\n\n}} // namespace detail\n"
    )?;
    Ok(text)
}

/// The list of a constructor, and its empty body.
fn initializers(values: &[String]) -> String {
    const WIDTH: usize = 125;
    let one = format!("      : {} {{}}\n", values.join(", "));
    if one.len() <= WIDTH {
        one
    } else {
        format!("      : {} {{}}\n", values.join(",\n        "))
    }
}

/// The type of a field of an event, and its value with `{}` for the field of the struct.
fn copied(field: &Field) -> Result<(String, &'static str), Box<dyn Error>> {
    Ok(match (&field.kind, &field.values) {
        (Type::Text, _) => ("std::string_view".into(), "{}"),
        (Type::Bytes, _) => (
            "std::string_view".into(),
            "reinterpret_cast<const char*>({}), static_cast<std::size_t>(event.length)",
        ),
        (Type::Scalar(_), Values::Flag) => ("bool".into(), "{} != 0"),
        (Type::Scalar(kind), _) => (format!("std::{}", kind.c_name()), "{}"),
        _ => return Err(format!("{} is no field for an event", field.raw).into()),
    })
}

/// A text about an event, with the names of the wrapper.
fn documented(abi: &Abi, event: &Event, text: &str) -> String {
    let named = |known: Known<'_>| {
        Some(match known {
            Known::Event(event) => event.class.clone(),
            Known::Function("close") => "shutdown()".into(),
            Known::Function("peer_index") => "index()".into(),
            Known::Function("peer_path") => "path()".into(),
            Known::Function(function) => format!("{function}()"),
            _ => return None,
        })
    };
    translated(abi, event, text, named, str::to_owned)
}

fn comment(text: &mut String, indent: &str, docs: &str) {
    const WIDTH: usize = 125;
    for line in wrapped(docs, WIDTH - indent.len() - "// ".len()) {
        let _ = writeln!(text, "{indent}// {line}");
    }
}
