//! The tables of the Python binding: constants, the structs' fields, callbacks and functions.

use std::error::Error;
use std::fmt::Write;

use super::model::{Abi, Scalar, Type, Variable};

/// The text between the marks. Below it, classes written by hand extend the structs.
///
/// # Errors
/// A type without a name in ctypes.
pub(crate) fn tables(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let mut group = "";
    for constant in &abi.constants {
        let this = constant.name.split('_').next().unwrap_or_default();
        if this != group && !constant.is_code {
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
    for found in &abi.structs {
        writeln!(text, "{}._fields_ = [", class(&found.name))?;
        for field in &found.fields {
            let kind = in_memory(&field.kind)?;
            writeln!(text, "    (\"{}\", {kind}),", field.name)?;
        }
        text += "]\n";
    }
    text += "\n";
    for callback in &abi.callbacks {
        let kinds: Vec<_> = callback
            .parameters
            .iter()
            .map(|parameter| in_memory(&parameter.kind))
            .collect::<Result<_, _>>()?;
        let kinds = kinds.join(", ");
        writeln!(text, "{} = ctypes.CFUNCTYPE(None, {kinds})", callback.name)?;
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
