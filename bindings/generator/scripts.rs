//! Parts that the raw layers for Lua, Node and Java have in common.

use std::error::Error;

use super::events::{Event, Field, Values};
use super::model::{Abi, Constant, Struct, Type};

/// A sentence for the head of each file.
pub(crate) const HEAD: &str = "Generated from src/ffi by `make header`: do not edit. include/meta_mystia_network.h has the meanings.";

/// The form in which a binding copies a field of an event.
///
/// # Errors
/// A type that no event has.
fn form(field: &Field) -> Result<&'static str, Box<dyn Error>> {
    Ok(match (&field.kind, &field.values) {
        (Type::Text, _) if field.is_optional => "text or none",
        (Type::Text, _) => "text",
        (Type::Bytes, _) => "bytes",
        (Type::Scalar(_), Values::Flag) => "flag",
        (Type::Scalar(_), _) => "number",
        _ => return Err(format!("{} is no field for an event", field.raw).into()),
    })
}

/// One entry for each kind of event, as `entry` writes it from the event and its fields, which `field` writes from the name in
/// the binding, the name in the struct and the form.
///
/// # Errors
/// A type that no event has.
pub(crate) fn events(
    abi: &Abi,
    field: impl Fn(&str, &str, &str) -> String,
    entry: impl Fn(&Event, &str) -> String,
) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    for event in &abi.events {
        let fields: Vec<_> = event
            .bound_fields()
            .iter()
            .map(|found| Ok(field(&found.name, &found.raw, form(found)?)))
            .collect::<Result<_, Box<dyn Error>>>()?;
        text += &entry(event, &fields.join(", "));
    }
    Ok(text)
}

/// One entry for each result code.
pub(crate) fn codes(abi: &Abi, entry: impl Fn(&Constant) -> String) -> String {
    let codes = abi.constants.iter().filter(|constant| constant.is_code);
    codes.map(entry).collect()
}

/// One entry for each constant, result codes included.
pub(crate) fn constants(abi: &Abi, entry: impl Fn(&Constant) -> String) -> String {
    abi.constants.iter().map(entry).collect()
}

/// The structs, each after the ones that it contains or points to.
///
/// # Errors
/// Structs that refer to each other.
pub(crate) fn structs_in_order(abi: &Abi) -> Result<Vec<&Struct>, Box<dyn Error>> {
    let mut ordered: Vec<&Struct> = Vec::new();
    let mut waiting: Vec<&Struct> = abi.structs.iter().collect();
    while !waiting.is_empty() {
        let needs = |found: &Struct| waiting.iter().any(|other| refers(found, &other.name));
        let (next, rest): (Vec<_>, Vec<_>) = waiting.iter().copied().partition(|it| !needs(it));
        if next.is_empty() {
            return Err(format!("structs refer to each other: {rest:?}").into());
        }
        ordered.extend(next);
        waiting = rest;
    }
    Ok(ordered)
}

fn refers(found: &Struct, name: &str) -> bool {
    found.fields.iter().any(|field| match &field.kind {
        Type::Pointer { to, .. } | Type::Named(to) => to == name,
        _ => false,
    })
}
