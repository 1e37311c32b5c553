//! What the library itself and its tests are given: the codes of `error.rs`, and a call of every function.

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

/// `every_call()`: each function with arguments that are right in themselves, but for those that open a room.
///
/// # Errors
/// A parameter of a type for which there is no such argument.
pub(crate) fn calls(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = String::from(
        "/// Calls every function but those that open a room and those in `skip`, each with arguments that are right in\n\
         /// themselves.\n\
         fn every_call(skip: &[&str], mut answered: impl FnMut(&'static str, Answer)) {\n",
    );
    for function in &abi.functions {
        let name = &function.name;
        if name.starts_with("InitializeNetwork") {
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
            Type::Scalar(scalar) if scalar.bits == 8 => "Flag",
            _ => "Number",
        };
        writeln!(
            text,
            "    if !skip.contains(&\"{name}\") {{\n        \
             // SAFETY: strings have a NUL, data has its length, and structs are as long as they say.\n        \
             #[allow(unused_unsafe)]\n        \
             let answer = unsafe {{ {name}({arguments}) }};\n        \
             answered(\"{name}\", Answer::from_{}(answer));\n    }}",
            answer.to_lowercase()
        )?;
    }
    Ok(text + "}\n")
}

/// An argument that no function refuses by itself.
fn argument(parameter: &Variable) -> Option<String> {
    Some(match (&parameter.kind, parameter.name.as_str()) {
        (Type::Text, "addr") => "c\"localhost:1\".as_ptr()".into(),
        (Type::Text, _) => "c\"peer\".as_ptr()".into(),
        (Type::Bytes, _) => "[1_u8, 2, 3].as_ptr()".into(),
        (Type::Scalar(_), "length") => "3".into(),
        (Type::Scalar(_), "msg_type") => "0x0100".into(),
        (Type::Scalar(_), _) => "1".into(),
        (Type::UserData, _) => "null_mut()".into(),
        (Type::Named(callback), _) if callback.ends_with("Callback") => "None".into(),
        (Type::Pointer { to, .. }, _) if Scalar::parse(to).is_some() => {
            format!("&mut {to}::default()")
        }
        (Type::Pointer { to, .. }, _) => {
            format!("&mut {to} {{ struct_size: size_of::<{to}>() as u32, ..{to}::default() }}")
        }
        (Type::Named(_), _) => return None,
    })
}
