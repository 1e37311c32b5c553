//! The ABI as data, read from the Rust files that export it.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;

use super::events::{self, Event};
use syn::{Attribute, BareFnArg, Expr, FnArg, Item, Lit, Meta, Pat, ReturnType};

/// All declarations of the header, in its order.
#[derive(Debug, Default)]
pub(crate) struct Abi {
    pub(crate) constants: Vec<Constant>,
    pub(crate) structs: Vec<Struct>,
    pub(crate) callbacks: Vec<Callback>,
    pub(crate) functions: Vec<Function>,
    /// Functions of the published library.
    pub(crate) classic: Vec<Function>,
    pub(crate) events: Vec<Event>,
}

/// A `pub const MMN_...`.
#[derive(Debug)]
pub(crate) struct Constant {
    /// Name without `MMN_`.
    pub(crate) name: String,
    pub(crate) kind: Scalar,
    pub(crate) value: i128,
    pub(crate) docs: Docs,
    /// Whether it is a result code: codes have a file of their own.
    pub(crate) is_code: bool,
}

/// A `#[repr(C)]` struct.
#[derive(Debug)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) fields: Vec<Variable>,
    pub(crate) docs: Docs,
}

/// A function pointer type.
#[derive(Debug)]
pub(crate) struct Callback {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Variable>,
    pub(crate) docs: Docs,
}

/// An exported function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Variable>,
    pub(crate) result: Type,
    pub(crate) docs: Docs,
}

/// A field or a parameter.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) docs: Docs,
}

/// The types that cross the boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    Scalar(Scalar),
    /// `*mut c_char`: memory for a text, whose size in bytes is the next parameter.
    TextBuffer,
    /// `*const c_char`.
    Text,
    /// `*const u8`.
    Bytes,
    /// `*mut c_void`.
    UserData,
    /// A pointer to a struct or to one number.
    Pointer {
        to: String,
        mutable: bool,
    },
    /// A struct within a struct, or a callback.
    Named(String),
}

/// Integers of fixed width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) signed: bool,
    pub(crate) bits: u32,
}

impl Scalar {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let signed = name.starts_with('i');
        let bits = name.strip_prefix(['i', 'u'])?.parse().ok()?;
        matches!(bits, 8 | 16 | 32 | 64).then_some(Self { signed, bits })
    }

    /// The type in `<stdint.h>`.
    pub(crate) fn c_name(self) -> String {
        let sign = if self.signed { "" } else { "u" };
        format!("{sign}int{}_t", self.bits)
    }
}

/// A documentation comment, line by line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Docs(pub(crate) Vec<String>);

impl Docs {
    /// Its first paragraph, on one line.
    pub(crate) fn summary(&self) -> String {
        let lines = self.0.iter().take_while(|line| !line.is_empty());
        lines.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// A part of the source that the generator cannot express in another language.
#[derive(Debug)]
struct Unsupported(String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the ABI's source has {}", self.0)
    }
}

impl Error for Unsupported {}

fn unsupported(what: impl Into<String>) -> Box<dyn Error> {
    Box::new(Unsupported(what.into()))
}

impl Abi {
    /// Every function.
    pub(crate) fn all_functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().chain(&self.classic)
    }

    /// Reads the exported items of `files`, and of the ones with the names of the published library, `classic`.
    ///
    /// # Errors
    /// A file that cannot be read or parsed, or an exported item of a form that the bindings do not know.
    pub(crate) fn read(
        folder: &Path,
        files: &[&str],
        classic: &[&str],
    ) -> Result<Self, Box<dyn Error>> {
        let mut abi = Self::default();
        for name in files.iter().chain(classic) {
            let path = folder.join(name).with_extension("rs");
            let source = fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let file =
                syn::parse_file(&source).map_err(|error| format!("{}: {error}", path.display()))?;
            for item in &file.items {
                abi.add(item, *name == "codes")
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        abi.events = events::read(&abi)?;
        Ok(abi)
    }

    fn add(&mut self, item: &Item, is_code: bool) -> Result<(), Box<dyn Error>> {
        match item {
            Item::Const(constant) => {
                let name = constant.ident.to_string();
                let Some(name) = name.strip_prefix("MMN_") else {
                    return Ok(());
                };
                let Type::Scalar(kind) = type_of(&constant.ty)? else {
                    return Err(unsupported(format!("{name}, which is no integer")));
                };
                self.constants.push(Constant {
                    name: name.to_owned(),
                    kind,
                    value: value_of(name, &constant.expr)?,
                    docs: docs_of(&constant.attrs),
                    is_code,
                });
            }
            Item::Struct(found) if found.attrs.iter().any(is_repr_c) => {
                let mut fields = Vec::new();
                for field in &found.fields {
                    let Some(name) = &field.ident else {
                        return Err(unsupported(format!("{}, a tuple", found.ident)));
                    };
                    fields.push(Variable {
                        name: name.to_string(),
                        kind: type_of(&field.ty)?,
                        docs: docs_of(&field.attrs),
                    });
                }
                self.structs.push(Struct {
                    name: found.ident.to_string(),
                    fields,
                    docs: docs_of(&found.attrs),
                });
            }
            Item::Type(alias) if alias.ident.to_string().ends_with("Callback") => {
                let name = alias.ident.to_string();
                let function = optional_function(&alias.ty)
                    .ok_or_else(|| unsupported(format!("{name}, which is no Option<fn>")))?;
                self.callbacks.push(Callback {
                    parameters: function
                        .inputs
                        .iter()
                        .map(callback_parameter)
                        .collect::<Result<_, _>>()?,
                    name,
                    docs: docs_of(&alias.attrs),
                });
            }
            Item::Fn(function) if function.sig.abi.is_some() => {
                let parameters = function.sig.inputs.iter().map(parameter);
                let name = function.sig.ident.to_string();
                let list = match name.starts_with("mmn_") {
                    true => &mut self.functions,
                    false => &mut self.classic,
                };
                list.push(Function {
                    name,
                    parameters: parameters.collect::<Result<_, _>>()?,
                    result: match &function.sig.output {
                        ReturnType::Type(_, result) => type_of(result)?,
                        ReturnType::Default => {
                            return Err(unsupported(format!("{}: no result", function.sig.ident)));
                        }
                    },
                    docs: docs_of(&function.attrs),
                });
            }
            _ => {}
        }
        Ok(())
    }
}

fn is_repr_c(attribute: &Attribute) -> bool {
    matches!(&attribute.meta, Meta::List(list)
        if list.path.is_ident("repr") && list.tokens.to_string() == "C")
}

fn docs_of(attributes: &[Attribute]) -> Docs {
    let lines = attributes.iter().filter_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            Expr::Lit(literal) if pair.path.is_ident("doc") => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        }
    });
    Docs(lines.collect())
}

fn value_of(name: &str, expression: &Expr) -> Result<i128, Box<dyn Error>> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => Ok(number.base10_parse()?),
            _ => Err(unsupported(format!("{name}, which is no integer literal"))),
        },
        Expr::Path(path)
            if path
                .path
                .segments
                .iter()
                .map(|part| &part.ident)
                .eq(["u64", "MAX"]) =>
        {
            Ok(u64::MAX.into())
        }
        Expr::Unary(negative) if matches!(negative.op, syn::UnOp::Neg(_)) => {
            Ok(-value_of(name, &negative.expr)?)
        }
        _ => Err(unsupported(format!("{name}, which is no integer literal"))),
    }
}

fn last_word(path: &syn::TypePath) -> Option<String> {
    Some(path.path.segments.last()?.ident.to_string())
}

fn type_of(kind: &syn::Type) -> Result<Type, Box<dyn Error>> {
    match kind {
        syn::Type::Path(path) => {
            let name = last_word(path).ok_or_else(|| unsupported("a type without a name"))?;
            let name = number_type(name);
            Ok(Scalar::parse(&name).map_or_else(|| Type::Named(name), Type::Scalar))
        }
        syn::Type::Ptr(pointer) => {
            let syn::Type::Path(path) = &*pointer.elem else {
                return Err(unsupported("a pointer to a pointer"));
            };
            let to = last_word(path).ok_or_else(|| unsupported("a type without a name"))?;
            let to = number_type(to);
            let mutable = pointer.mutability.is_some();
            Ok(match (to.as_str(), mutable) {
                ("c_char", false) => Type::Text,
                ("c_char", true) => Type::TextBuffer,
                ("u8", false) => Type::Bytes,
                ("c_void", true) => Type::UserData,
                _ => Type::Pointer { to, mutable },
            })
        }
        _ => Err(unsupported("a type that is neither named nor a pointer")),
    }
}

/// A type that is a number under another name, as that number.
fn number_type(name: String) -> String {
    match name.as_str() {
        "MmnRoom" | "MmnBrowser" => "u64".to_owned(),
        _ => name,
    }
}

fn optional_function(kind: &syn::Type) -> Option<&syn::TypeBareFn> {
    let syn::Type::Path(path) = kind else {
        return None;
    };
    let option = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(arguments) = &option.arguments else {
        return None;
    };
    match arguments.args.first()? {
        syn::GenericArgument::Type(syn::Type::BareFn(function)) => Some(function),
        _ => None,
    }
}

fn callback_parameter(argument: &BareFnArg) -> Result<Variable, Box<dyn Error>> {
    let (name, _) = argument
        .name
        .as_ref()
        .ok_or_else(|| unsupported("a callback whose parameter has no name"))?;
    Ok(Variable {
        name: name.to_string(),
        kind: type_of(&argument.ty)?,
        docs: Docs::default(),
    })
}

fn parameter(argument: &FnArg) -> Result<Variable, Box<dyn Error>> {
    let FnArg::Typed(argument) = argument else {
        return Err(unsupported("a method"));
    };
    let Pat::Ident(name) = &*argument.pat else {
        return Err(unsupported("a parameter without a name"));
    };
    Ok(Variable {
        name: name.ident.to_string(),
        kind: type_of(&argument.ty)?,
        docs: Docs::default(),
    })
}

/// `set_leader_result` or `SET_LEADER_RESULT` as `SetLeaderResult`.
pub(crate) fn pascal(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_uppercase() + &rest.to_lowercase()
        })
        .collect()
}

/// `peer_index` as `peerIndex`.
pub(crate) fn camel(name: &str) -> String {
    let pascal = pascal(name);
    let (first, rest) = pascal.split_at(1);
    first.to_lowercase() + rest
}
