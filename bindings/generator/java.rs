//! The raw layer of Java: an interface for JNA with the functions, structs and constants, and a record for each kind of event.
//! Java 17.

use std::error::Error;
use std::fmt::Write;

use super::c::parameters;
use super::events::{Event, Field, Known, Values, sentence, translated};
use super::model::{Abi, Constant, Function, Scalar, Struct, Type, Variable, camel};
use super::scripts::{self, HEAD};
use super::table::wrapped;

const NATIVE_BEGIN: &str = r#"
package com.metamystia.network;

import com.sun.jna.Callback;
import com.sun.jna.Library;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.LongByReference;
import java.util.Map;

/**
 * The functions of the native library, as its header declares them. An unsigned number has the signed type of its width.
 * Most programs use {@link Room} instead.
 */
public interface NativeMethods extends Library {
    Map<String, Object> OPTIONS = Map.of(Library.OPTION_STRING_ENCODING, "UTF-8");

"#;

/// `NativeMethods.java`.
///
/// # Errors
/// A function whose result JNA has no type for.
pub(crate) fn native_methods(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = format!("// {HEAD}{NATIVE_BEGIN}");
    text += &scripts::constants(abi, constant);
    text += "\n    /** The name of a result code, without MMN_. */\n    static String nameOf(int code) {\n        return switch (code) {\n";
    text += &scripts::codes(abi, |code| {
        format!("            case {} -> \"{}\";\n", code.value, code.name)
    });
    text += "            default -> \"UNKNOWN\";\n        };\n    }\n";
    for callback in &abi.callbacks {
        let parameters = variables(&callback.parameters, in_memory);
        writeln!(
            text,
            "\n    interface {} extends Callback {{\n        void invoke({parameters});\n    }}",
            callback.name
        )?;
    }
    for found in &abi.structs {
        structure(&mut text, found)?;
    }
    text.push('\n');
    for found in abi.all_functions() {
        function(&mut text, found)?;
    }
    text += "}\n";
    Ok(text)
}

fn constant(constant: &Constant) -> String {
    let (name, value) = (&constant.name, constant.value);
    match constant.kind.bits {
        // The bits of an unsigned number.
        64 => format!("    long {name} = {:#x}L;\n", value & i128::from(u64::MAX)),
        _ => format!("    int {name} = {value};\n"),
    }
}

fn structure(text: &mut String, found: &Struct) -> Result<(), Box<dyn Error>> {
    let names: Vec<_> = found
        .fields
        .iter()
        .map(|field| format!("\"{}\"", field.name))
        .collect();
    let name = &found.name;
    writeln!(
        text,
        "\n    @Structure.FieldOrder({{{}}})\n    class {name} extends Structure {{",
        names.join(", ")
    )?;
    for field in &found.fields {
        writeln!(
            text,
            "        public {} {};",
            in_memory(&field.kind),
            field.name
        )?;
    }
    writeln!(
        text,
        "\n        public {name}() {{}}\n\n        public {name}(Pointer memory) {{\n            super(memory);\n        }}\n    }}"
    )?;
    Ok(())
}

fn function(text: &mut String, found: &Function) -> Result<(), Box<dyn Error>> {
    let result = match &found.result {
        result @ (Type::Text | Type::Bytes | Type::Scalar(_)) => in_memory(result),
        other => return Err(format!("{}: a result of {other:?}", found.name).into()),
    };
    let parameters = variables(&found.parameters, argument);
    writeln!(text, "    {result} {}({parameters});", found.name)?;
    Ok(())
}

/// Java has no `void` for "no parameters".
fn variables(all: &[Variable], kind: impl Fn(&Type) -> String) -> String {
    match all {
        [] => String::new(),
        some => parameters(some, |of, name| format!("{} {name}", kind(of))),
    }
}

/// JNA copies an array to the library and back, and passes a struct by its address.
fn argument(kind: &Type) -> String {
    match kind {
        Type::Bytes | Type::TextBuffer => "byte[]".into(),
        Type::Pointer { to, .. } => match Scalar::parse(to) {
            Some(Scalar { bits: 8, .. }) => "byte[]".into(),
            Some(Scalar { bits: 64, .. }) => "LongByReference".into(),
            Some(_) => "IntByReference".into(),
            None => to.clone(),
        },
        other => in_memory(other),
    }
}

fn in_memory(kind: &Type) -> String {
    match kind {
        Type::Scalar(kind) => scalar(*kind).into(),
        Type::Text => "String".into(),
        Type::TextBuffer | Type::Bytes | Type::UserData | Type::Pointer { .. } => "Pointer".into(),
        Type::Named(callback) => callback.clone(),
    }
}

fn scalar(kind: Scalar) -> &'static str {
    match kind.bits {
        8 => "byte",
        16 => "short",
        32 => "int",
        _ => "long",
    }
}

const EVENTS_BEGIN: &str = "
package com.metamystia.network;

/** An event of a room, as {@link Room#poll} returns it: one of these records. */
public sealed interface Event {
    /** One of the constants EVENT_... of {@link NativeMethods}. */
    int kind();

    /** An event of a newer library, to be ignored. */
    record UnknownEvent(int kind) implements Event {}
";

/// `Event.java`.
///
/// # Errors
/// A field of a type that an event cannot have.
pub(crate) fn events(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = format!("// {HEAD}{EVENTS_BEGIN}");
    let mut cases = String::new();
    for event in &abi.events {
        let (class, kind) = (&event.class, event.value);
        let fields = event.bound_fields();
        let mut components = Vec::new();
        let mut values = Vec::new();
        let summary = documented(abi, event, &sentence(&event.summary));
        text += "\n    /**\n";
        comment(&mut text, &summary);
        text += "     *\n";
        for field in &fields {
            let (kind, value) = copied(field)?;
            let name = camel(&field.name);
            let meaning = documented(abi, event, &field.sentence("null"));
            comment(&mut text, &format!("@param {name} {meaning}"));
            components.push(format!("{kind} {name}"));
            values.push(value.replace("{}", &format!("event.{}", field.raw)));
        }
        writeln!(
            text,
            "     */\n    record {class}({}) implements Event {{\n        public int kind() {{\n            return {kind};\n        }}\n    }}",
            components.join(", ")
        )?;
        writeln!(
            cases,
            "            case {kind} -> new {class}({});",
            values.join(", ")
        )?;
    }
    writeln!(
        text,
        "\n    /** A copy of the library's event. */\n    static Event copyOf(NativeMethods.MmnEvent event) {{\n        \
         return switch (event.kind) {{\n{cases}            default -> new UnknownEvent(event.kind);\n        }};\n    }}\n}}"
    )?;
    Ok(text)
}

/// The type of a field of an event, and its value with `{}` for the field of the struct.
fn copied(field: &Field) -> Result<(&'static str, &'static str), Box<dyn Error>> {
    Ok(match (&field.kind, &field.values) {
        (Type::Text, _) if field.is_optional => ("String", "{}.isEmpty() ? null : {}"),
        (Type::Text, _) => ("String", "{}"),
        (Type::Bytes, _) => ("byte[]", "{}.getByteArray(0, event.length)"),
        (Type::Scalar(_), Values::Flag) => ("boolean", "{} != 0"),
        (Type::Scalar(kind), _) => match (kind.signed, kind.bits) {
            (false, 8) => ("int", "Byte.toUnsignedInt({})"),
            (false, 16) => ("int", "Short.toUnsignedInt({})"),
            _ => (scalar(*kind), "{}"),
        },
        _ => return Err(format!("{} is no field for an event", field.raw).into()),
    })
}

/// Lines of a comment.
fn comment(text: &mut String, docs: &str) {
    const WIDTH: usize = 125;
    let indent = "     * ";
    for line in wrapped(docs, WIDTH - indent.len()) {
        *text += indent;
        *text += &line;
        text.push('\n');
    }
}

/// A text about an event, with the names of Java.
fn documented(abi: &Abi, event: &Event, text: &str) -> String {
    let named = |known: Known<'_>| {
        Some(match known {
            Known::Event(event) => format!("{{@link {}}}", event.class),
            Known::Code(name) | Known::Other(name) => format!("NativeMethods.{name}"),
            Known::Member(group, member) => format!("NativeMethods.{}_{member}", group.prefix),
            Known::Group(group) => format!("NativeMethods.{}_...", group.prefix),
            Known::Function(function) => format!("mmn_{function}"),
        })
    };
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let text = translated(abi, event, &text, named, camel);
    let parts = text.split('`').enumerate();
    parts
        .map(|(place, part)| match place % 2 {
            1 => format!("{{@code {part}}}"),
            _ => part.to_owned(),
        })
        .collect()
}
