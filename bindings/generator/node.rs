//! The raw layer of Node: types and prototypes for koffi, and the tables of constants, codes and events.

use std::error::Error;
use std::fmt::Write;

use super::c::parameters;
use super::model::{Abi, Constant, Function, Scalar, Type, camel};
use super::scripts::{self, HEAD};

const BEGIN: &str = "
'use strict';
const koffi = require('koffi');

// What a callback receives as a pointer to a struct, koffi.decode() reads.
";

/// `meta_mystia_network_raw.cjs`.
///
/// # Errors
/// A field of an event that JavaScript has no form for.
pub(crate) fn raw(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = format!("// {HEAD}{BEGIN}");
    for callback in &abi.callbacks {
        let parameters = parameters(&callback.parameters, |kind, name| match kind {
            Type::Pointer { .. } => format!("const void *{name}"),
            other => format!("{}{name}", spaced(in_memory(other))),
        });
        writeln!(text, "koffi.proto('void {}({parameters})');", callback.name)?;
    }
    text += "\n// The types of the fields of each struct.\nconst fields = {\n";
    for found in scripts::structs_in_order(abi)? {
        writeln!(text, "  {}: {{", found.name)?;
        for field in &found.fields {
            writeln!(text, "    {}: '{}',", field.name, in_memory(&field.kind))?;
        }
        text += "  },\n";
    }
    text += "};\nconst structs = Object.fromEntries(Object.entries(fields).map(([name, types]) => [name, koffi.struct(name, types)]));\n";
    text += "\nconst prototypes = {\n";
    for function in abi.all_functions() {
        writeln!(text, "  {}: '{}',", function.name, prototype(function))?;
    }
    text += "};\n\nconst constants = Object.freeze({\n";
    text += &scripts::constants(abi, |constant| {
        format!("  {}: {},\n", constant.name, value(constant))
    });
    text += "});\n\n// The names of the result codes.\nconst codes = {\n";
    text += &scripts::codes(abi, |code| {
        format!("  '{}': '{}',\n", code.value, code.name)
    });
    text += "};\n\n// By kind: the event's name, and its fields: name here, name in MmnEvent, form.\nconst events = {\n";
    text += &scripts::events(
        abi,
        |name, raw, form| format!("['{}', '{raw}', '{form}']", camel(name)),
        |event, fields| format!("  {}: ['{}', [{fields}]],\n", event.value, event.class),
    )?;
    text += "};\n\nmodule.exports = { fields, structs, prototypes, constants, codes, events };\n";
    Ok(text)
}

/// A number of JavaScript, which is a double, or a `BigInt` where that would round.
fn value(constant: &Constant) -> String {
    const LARGEST: i128 = (1 << 53) - 1;
    let suffix = if constant.value > LARGEST { "n" } else { "" };
    format!("{}{suffix}", constant.value)
}

fn prototype(function: &Function) -> String {
    let result = spaced(in_memory(&function.result));
    let parameters = parameters(&function.parameters, |kind, name| {
        format!("{}{}{name}", direction(kind), spaced(in_memory(kind)))
    });
    format!("{result}{}({parameters})", function.name)
}

/// Whether koffi copies what a pointer leads to back into the argument. Memory for bytes is the argument's own.
fn direction(kind: &Type) -> &'static str {
    match kind {
        Type::Pointer { to, mutable: true } => match Scalar::parse(to) {
            Some(scalar) if scalar.bits == 8 => "",
            Some(_) => "_Out_ ",
            None => "_Inout_ ",
        },
        _ => "",
    }
}

fn in_memory(kind: &Type) -> String {
    match kind {
        Type::Scalar(scalar) => scalar.c_name(),
        Type::Text => "const char *".into(),
        Type::TextBuffer => "uint8_t *".into(),
        Type::Bytes => "const uint8_t *".into(),
        Type::UserData => "void *".into(),
        Type::Pointer { to, mutable } => {
            let constant = if *mutable { "" } else { "const " };
            let to = Scalar::parse(to).map_or_else(|| to.clone(), Scalar::c_name);
            format!("{constant}{to} *")
        }
        Type::Named(callback) => format!("{callback} *"),
    }
}

/// With a space before the name that follows, except after an asterisk.
fn spaced(kind: String) -> String {
    if kind.ends_with('*') {
        kind
    } else {
        kind + " "
    }
}
