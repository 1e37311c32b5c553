//! The raw C# layer: functions, delegates, structs and constants. C# 7.0 at most, for Unity's compilers.

use std::error::Error;
use std::fmt::Write;

use super::events::{Event, Field, Known, Values, sentence, translated};
use super::groups::{Form, GROUPS, Group};
use super::model::{
    Abi, Callback, Constant, Docs, Function, Scalar, Struct, Type, Variable, camel, pascal,
};

const HEAD: &str = "// Generated from src/ffi by `make header`: do not edit. Marshalling.cs has the parts written by hand.
using System;
using System.Runtime.InteropServices;

namespace MetaMystia.Network
{
    /// <summary>
    /// The functions of the native library, exactly as its header declares them. Most programs use <see cref=\"Room\"/> instead.
    /// </summary>
    /// <remarks>
    /// Text goes in as NUL-terminated UTF-8 (<see cref=\"Utf8.ToNative\"/>) and comes out as a pointer that must be copied
    /// at once (<see cref=\"Utf8.FromNative\"/>). The runtime's own string marshalling is not used anywhere: it means the ANSI
    /// code page on some runtimes, which mangles names in other scripts, and it would free strings that the library owns.
    /// Flags are bytes, because the runtime's default for <c>bool</c> is four bytes wide.
    /// </remarks>
    public static class NativeMethods
    {
        /// <summary>The library's name without prefix and suffix; every runtime completes it for its platform.</summary>
        public const string Library = \"meta_mystia_network\";
";

const DELEGATES: &str = "    }

    // A delegate that the library receives must stay referenced by managed code (a static field is the simplest way)
    // for as long as it is registered: the garbage collector does not see the library's copy of the pointer.
";

/// `NativeMethods.cs`.
///
/// # Errors
/// A type that C# cannot express here.
pub(crate) fn native_methods(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = HEAD.to_owned();
    for constant in abi
        .constants
        .iter()
        .filter(|c| !c.is_code && Group::of(c).is_none())
    {
        text += "\n";
        summary(&mut text, "        ", &constant.docs);
        let (kind, name) = (scalar(constant.kind), pascal(&constant.name));
        writeln!(
            text,
            "        public const {kind} {name} = {};",
            constant.value
        )?;
    }
    for found in abi.all_functions() {
        function(&mut text, found)?;
    }
    text += DELEGATES;
    for callback in &abi.callbacks {
        delegate(&mut text, callback)?;
    }
    for found in &abi.structs {
        structure(&mut text, abi, found)?;
    }
    for group in &GROUPS {
        let members = group.members(abi);
        match group.form {
            Form::Enum | Form::Described => enumeration(&mut text, group, &members)?,
            Form::Numbers | Form::Constants => {
                constants(&mut text, group.class, group.meaning, &members)?;
            }
        }
    }
    descriptions(&mut text, abi)?;
    let codes = abi.constants.iter().filter(|constant| constant.is_code);
    let codes: Vec<_> = codes.map(|code| (code.name.as_str(), code)).collect();
    let what = "The library's codes. New ones are only ever appended, so expect numbers that are not listed here.";
    constants(&mut text, "ErrorCode", what, &codes)?;
    Ok(without_prefix(abi, text + "}\n"))
}

/// `text` with the names that the types of the ABI have in C#, where a namespace takes the place of their prefix. Two
/// would be too common there without a word of their own.
fn without_prefix(abi: &Abi, mut text: String) -> String {
    let structs = abi.structs.iter().map(|found| &found.name);
    let callbacks = abi.callbacks.iter().map(|found| &found.name);
    let mut names: Vec<_> = structs.chain(callbacks).collect();
    // A name that another begins with comes after it.
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        let Some(short) = name.strip_prefix("Mmn") else {
            continue;
        };
        let new = match short {
            "Event" | "Options" => format!("Network{short}"),
            other => other.to_owned(),
        };
        text = text.replace(name, &new);
    }
    text
}

fn enumeration(
    text: &mut String,
    group: &Group,
    members: &[(&str, &Constant)],
) -> Result<(), Box<dyn Error>> {
    let (_, first) = members.first().ok_or("a group without constants")?;
    let (kind, class) = (scalar(first.kind), group.class);
    writeln!(
        text,
        "\n    /// <summary>{} New numbers come from newer libraries.</summary>\n    \
         public enum {class} : {kind}\n    {{",
        group.meaning
    )?;
    if let Some(unknown) = group.unknown() {
        writeln!(
            text,
            "        /// <summary>{unknown}</summary>\n        Unknown = -1,"
        )?;
    }
    for (name, constant) in members {
        summary(text, "        ", &constant.docs);
        writeln!(text, "        {} = {},", pascal(name), constant.value)?;
    }
    *text += "    }\n";
    Ok(())
}

fn constants(
    text: &mut String,
    class: &str,
    what: &str,
    members: &[(&str, &Constant)],
) -> Result<(), Box<dyn Error>> {
    writeln!(
        text,
        "\n    /// <summary>{what}</summary>\n    public static class {class}\n    {{"
    )?;
    for (name, constant) in members {
        summary(text, "        ", &constant.docs);
        let (kind, name) = (scalar(constant.kind), pascal(name));
        writeln!(
            text,
            "        public const {kind} {name} = {};",
            constant.value
        )?;
    }
    *text += "    }\n";
    Ok(())
}

/// `reason.Describe()` of each enum with descriptions.
fn descriptions(text: &mut String, abi: &Abi) -> Result<(), Box<dyn Error>> {
    *text += "\n    /// <summary>Reasons and states in words.</summary>\n    public static class Descriptions\n    {";
    let groups = GROUPS.iter().filter(|group| group.form == Form::Described);
    for (place, group) in groups.enumerate() {
        let class = group.class;
        let gap = if place == 0 { "" } else { "\n" };
        writeln!(
            text,
            "{gap}\n        /// <summary>The number in words, such as \"gave up\".</summary>\n        \
             public static string Describe(this {class} number)\n        {{\n            switch (number)\n            {{"
        )?;
        for (name, _) in group.members(abi) {
            let (member, words) = (pascal(name), name.to_lowercase().replace('_', " "));
            writeln!(
                text,
                "                case {class}.{member}: return \"{words}\";"
            )?;
        }
        *text += "                default: return \"unknown\";\n            }\n        }";
    }
    *text += "\n    }\n";
    Ok(())
}

fn function(text: &mut String, found: &Function) -> Result<(), Box<dyn Error>> {
    *text += "\n";
    summary(text, "        ", &found.docs);
    let result = match &found.result {
        Type::Text | Type::Bytes => "IntPtr".to_owned(),
        Type::Scalar(kind) => scalar(*kind).to_owned(),
        other => return Err(format!("{}: a result of {other:?}", found.name).into()),
    };
    let parameters = parameters(&found.parameters, |kind| match kind {
        Type::Text | Type::Bytes => "byte[]".to_owned(),
        // Pinned, not copied: the library writes into the array.
        Type::TextBuffer => "[In, Out] byte[]".to_owned(),
        Type::Pointer { to, .. } if to == "u8" => "[In, Out] byte[]".to_owned(),
        Type::Pointer { to, mutable } => {
            let to =
                Scalar::parse(to).map_or_else(|| class(to).to_owned(), |to| scalar(to).to_owned());
            // Not copied back: Mono makes no delegate of another domain from a pointer in a struct.
            let direction = if *mutable { "" } else { "[In] " };
            format!("{direction}ref {to}")
        }
        other => in_memory(other),
    });
    writeln!(
        text,
        "        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]\n        \
         public static extern {result} {}({parameters});",
        found.name
    )?;
    Ok(())
}

fn delegate(text: &mut String, callback: &Callback) -> Result<(), Box<dyn Error>> {
    *text += "\n";
    summary(text, "    ", &callback.docs);
    let parameters = parameters(&callback.parameters, in_memory);
    writeln!(
        text,
        "    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]\n    \
         public delegate void {}({parameters});",
        callback.name
    )?;
    Ok(())
}

fn structure(text: &mut String, abi: &Abi, found: &Struct) -> Result<(), Box<dyn Error>> {
    *text += "\n";
    summary(text, "    ", &found.docs);
    writeln!(
        text,
        "    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.\n    \
         public partial struct {}\n    {{",
        class(&found.name)
    )?;
    for field in &found.fields {
        summary(text, "        ", &field.docs);
        let numbers = match &field.kind {
            Type::Scalar(kind) => Group::of_field(abi, &field.name, *kind),
            _ => None,
        };
        let kind = numbers.map_or_else(|| in_memory(&field.kind), |group| group.class.to_owned());
        let name = pascal(&spelled_out(&field.name));
        writeln!(text, "        public {kind} {name};")?;
    }
    *text += "    }\n";
    Ok(())
}

const EVENTS_HEAD: &str = "// Generated from src/ffi by `make header`: do not edit. Events.cs has the parts written by hand.
namespace MetaMystia.Network
{
";

/// `RoomEvents.cs`: a class for each kind of event, and the function that makes it from the library's struct.
///
/// # Errors
/// A field of a type that an event cannot have.
pub(crate) fn room_events(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = EVENTS_HEAD.to_owned();
    let mut cases = String::new();
    for event in &abi.events {
        let (kind, class) = (pascal(&event.name), &event.class);
        writeln!(
            text,
            "    /// <summary>{}</summary>\n    public sealed partial class {class} : RoomEvent\n    {{\n        \
             public override EventKind Kind\n        {{\n            get {{ return EventKind.{kind}; }}\n        }}",
            documented(abi, event, &sentence(&event.summary))
        )?;
        writeln!(
            cases,
            "                case EventKind.{kind}:\n                    return new {class}\n                    {{\n                        Room = room,"
        )?;
        for field in event.bound_fields() {
            let (kind, value) = copied(&field)?;
            let name = pascal(&spelled_out(&field.name));
            let raw = pascal(&spelled_out(&field.raw));
            let meaning = documented(abi, event, &field.sentence("null"));
            writeln!(
                text,
                "\n        /// <summary>{meaning}</summary>\n        public {kind} {name} {{ get; internal set; }}"
            )?;
            writeln!(
                cases,
                "                        {name} = {},",
                value.replace("{}", &format!("native.{raw}"))
            )?;
        }
        text += "    }\n\n";
        cases += "                    };\n";
    }
    write!(
        text,
        "    internal static class RoomEvents\n    {{\n        \
         // A copy of the library's event, as an object of its kind.\n        \
         internal static RoomEvent CopyOf(NetworkEvent native, Room room)\n        {{\n            \
         switch (native.Kind)\n            {{\n{cases}                \
         default:\n                    return new UnknownEvent(native.Kind) {{ Room = room }};\n            \
         }}\n        }}\n    }}\n}}\n"
    )?;
    Ok(text)
}

/// The type of a field of an event, and its value with `{}` for the field of the struct.
fn copied(field: &Field) -> Result<(String, String), Box<dyn Error>> {
    Ok(match (&field.kind, &field.values) {
        (Type::Text, _) if field.is_optional => (
            "string".into(),
            "Room.NullIfEmpty(Utf8.FromNative({}))".into(),
        ),
        (Type::Text, _) => ("string".into(), "Utf8.FromNative({})".into()),
        (Type::Bytes, _) => ("byte[]".into(), "native.Bytes()".into()),
        (Type::Scalar(_), Values::Flag) => ("bool".into(), "{} != 0".into()),
        // A cast, where the struct does not have the enum.
        (Type::Scalar(_), Values::Constants(group)) if group.field != field.raw => {
            (group.class.into(), format!("({}){{}}", group.class))
        }
        (Type::Scalar(_), Values::Constants(group)) => (group.class.into(), "{}".into()),
        (Type::Scalar(kind), _) => (scalar(*kind).into(), "{}".into()),
        _ => return Err(format!("{} is no field for an event", field.raw).into()),
    })
}

/// A text about an event, with the names of C#.
fn documented(abi: &Abi, event: &Event, text: &str) -> String {
    let cref = |name: String| format!("<see cref=\"{name}\"/>");
    let named = |known: Known<'_>| {
        Some(match known {
            Known::Event(event) => cref(event.class.clone()),
            Known::Code(code) => cref(format!("ErrorCode.{}", pascal(code))),
            Known::Member(group, member) => cref(format!("{}.{}", group.class, pascal(member))),
            Known::Group(group) => cref(group.class.to_owned()),
            Known::Other(name) => cref(format!("NativeMethods.{}", pascal(name))),
            Known::Function("close") => cref("Room.Dispose".into()),
            Known::Function("peer_index") => cref("Room.IndexOf".into()),
            Known::Function("peer_path") => cref("Room.PathOf".into()),
            Known::Function(function) => format!("<c>{}</c>", pascal(function)),
        })
    };
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let text = translated(abi, event, &text, named, |name| pascal(&spelled_out(name)));
    as_elements(&text)
}

fn parameters(all: &[Variable], kind: impl Fn(&Type) -> String) -> String {
    let all = all.iter().map(|parameter| {
        let name = camel(&spelled_out(&parameter.name));
        let escape = if name == "event" { "@" } else { "" };
        format!("{} {escape}{name}", kind(&parameter.kind))
    });
    all.collect::<Vec<_>>().join(", ")
}

/// Names in .NET style.
fn spelled_out(name: &str) -> String {
    match name {
        "msg_type" => "message_type".into(),
        "addr" => "address".into(),
        "drop_fn" => "drop_function".into(),
        name => name.into(),
    }
}

fn class(name: &str) -> &str {
    name.strip_suffix("FFI").unwrap_or(name)
}

fn in_memory(kind: &Type) -> String {
    match kind {
        Type::Scalar(kind) => scalar(*kind).to_owned(),
        Type::Text | Type::TextBuffer | Type::Bytes | Type::UserData | Type::Pointer { .. } => {
            "IntPtr".to_owned()
        }
        Type::Named(name) => class(name).to_owned(),
    }
}

fn scalar(kind: Scalar) -> &'static str {
    match (kind.signed, kind.bits) {
        (false, 8) => "byte",
        (true, 8) => "sbyte",
        (false, 16) => "ushort",
        (true, 16) => "short",
        (false, 32) => "uint",
        (true, 32) => "int",
        (false, _) => "ulong",
        (true, _) => "long",
    }
}

/// The first paragraph as a documentation comment; `code` in backticks becomes an element.
fn summary(text: &mut String, indent: &str, docs: &Docs) {
    let summary = docs
        .summary()
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let summary = as_elements(&summary);
    if !summary.is_empty() {
        let _ = writeln!(text, "{indent}/// <summary>{summary}</summary>");
    }
}

/// `code` in backticks as elements.
fn as_elements(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some((before, rest)) = text.split_once('`') {
        let Some((code, after)) = rest.split_once('`') else {
            break;
        };
        text = format!("{before}<c>{code}</c>{after}");
    }
    text
}
