//! The raw layer of LuaJIT: the declarations for its `ffi`, and the tables of constants, codes and events.

use std::error::Error;
use std::fmt::Write;

use super::c::{declaration, parameters};
use super::model::{Abi, Constant};
use super::scripts::{self, HEAD};

/// `meta_mystia_network_raw.lua`.
///
/// # Errors
/// A field of an event that Lua has no form for.
pub(crate) fn raw(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = format!("-- {HEAD}\nlocal ffi = require(\"ffi\")\n\nffi.cdef[[\n");
    for callback in &abi.callbacks {
        let parameters = parameters(&callback.parameters, declaration);
        writeln!(text, "typedef void (*{})({parameters});", callback.name)?;
    }
    for found in &abi.structs {
        writeln!(text, "typedef struct {} {{", found.name)?;
        for field in &found.fields {
            writeln!(text, "  {};", declaration(&field.kind, &field.name))?;
        }
        writeln!(text, "}} {};", found.name)?;
    }
    for function in abi.all_functions() {
        let result = declaration(&function.result, &function.name);
        let parameters = parameters(&function.parameters, declaration);
        writeln!(text, "{result}({parameters});")?;
    }
    text += "]]\n\nlocal raw = {\n";
    text += &scripts::constants(abi, |constant| {
        format!("  {} = {},\n", constant.name, value(constant))
    });
    text += "}\n\n-- The names of the result codes.\nraw.CODES = {\n";
    text += &scripts::codes(abi, |code| {
        format!("  [{}] = \"{}\",\n", code.value, code.name)
    });
    text += "}\n\n-- By kind: the event's name, and its fields: name here, name in MmnEvent, form.\nraw.EVENTS = {\n";
    text += &scripts::events(
        abi,
        |name, raw, form| format!("{{ \"{name}\", \"{raw}\", \"{form}\" }}"),
        |event, fields| {
            format!(
                "  [{}] = {{ \"{}\", {{ {fields} }} }},\n",
                event.value, event.class
            )
        },
    )?;
    text += "}\n\nreturn raw\n";
    Ok(text)
}

/// A number of Lua, which is a double, or a 64-bit one of `ffi`.
fn value(constant: &Constant) -> String {
    match constant.kind.bits {
        64 if constant.kind.signed => format!("{}LL", constant.value),
        64 => format!("{}ULL", constant.value),
        _ => constant.value.to_string(),
    }
}
