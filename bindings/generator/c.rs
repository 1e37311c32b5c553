//! The parts of the C header beside cbindgen's declarations, and the list of exports.

use std::error::Error;
use std::fmt::Write;

use super::model::{Abi, Function, Scalar, Type};

const FUNCTIONS: &str = "
/**
 * Every function of this header, as X(result, name, parameters), for hosts that load the library at
 * run time:
 *
 *     #define MEMBER(result, name, parameters) result (*name) parameters;
 *     static struct { MMN_FUNCTIONS(MEMBER) } net;
 *     #define LOAD(result, name, parameters) *(void **)&net.name = dlsym(library, #name);
 *     MMN_FUNCTIONS(LOAD)
 */
#define MMN_FUNCTIONS(X)";

/// cbindgen's header with the table of functions before its last line.
///
/// # Errors
/// A header without the end of its include guard.
pub(crate) fn header(abi: &Abi, cbindgen: &str) -> Result<String, Box<dyn Error>> {
    let end = cbindgen
        .rfind("#endif")
        .ok_or("the header has no include guard")?;
    let (declarations, guard) = cbindgen.split_at(end);
    let mut table = FUNCTIONS.to_owned();
    for function in &abi.functions {
        write!(table, " \\\n  X({})", entry(function))?;
    }
    let declarations = declarations.trim_end();
    Ok(format!("{declarations}\n{table}\n\n{guard}"))
}

fn entry(function: &Function) -> String {
    let parameters: Vec<_> = function
        .parameters
        .iter()
        .map(|parameter| declaration(&parameter.kind, &parameter.name))
        .collect();
    let parameters = match parameters.as_slice() {
        [] => "void".to_owned(),
        some => some.join(", "),
    };
    let result = declaration(&function.result, "");
    format!("{}, {}, ({parameters})", result.trim_end(), function.name)
}

fn declaration(kind: &Type, name: &str) -> String {
    match kind {
        Type::Scalar(scalar) => format!("{} {name}", scalar.c_name()),
        Type::Text => format!("const char *{name}"),
        Type::Bytes => format!("const uint8_t *{name}"),
        Type::UserData => format!("void *{name}"),
        Type::Pointer { to, mutable } => {
            let constant = if *mutable { "" } else { "const " };
            let to =
                Scalar::parse(to).map_or_else(|| format!("struct {to}"), |scalar| scalar.c_name());
            format!("{constant}{to} *{name}")
        }
        Type::Named(callback) => format!("{callback} {name}"),
    }
}

/// The ABI tables for tests in C, beside the header.
pub(crate) fn test_tables(abi: &Abi) -> String {
    let codes = abi.constants.iter().filter(|constant| constant.is_code);
    // The internal error stands apart, and no test expects it.
    let codes = codes.filter(|code| code.name != "INTERNAL_ERROR");
    let last_code = codes.map(|code| code.value).min().unwrap_or_default();
    let kinds = abi
        .constants
        .iter()
        .filter(|constant| constant.name.starts_with("EVENT_"));
    let last_kind = kinds.map(|kind| kind.value).max().unwrap_or_default();
    format!(
        "/* Generated from src/ffi by `make header`: do not edit. */\n\
         enum {{ LAST_CODE = {last_code}, LAST_EVENT_KIND = {last_kind} }};\n"
    )
}

/// The list of exports, sorted.
pub(crate) fn exports(abi: &Abi) -> String {
    let mut names: Vec<_> = abi.functions.iter().map(|f| f.name.as_str()).collect();
    names.sort_unstable();
    let mut list = String::from(
        "# Every function that the library exports. Generated from src/ffi; nothing is ever removed from it.\n",
    );
    for name in names {
        list += name;
        list.push('\n');
    }
    list
}

/// Fails if a name is missing from the list: a host that was compiled with it would not load.
///
/// # Errors
/// A name of the committed list that the source does not export any more.
pub(crate) fn check_exports(committed: &str, list: &str) -> Result<(), Box<dyn Error>> {
    let vanished = committed
        .lines()
        .filter(|line| !line.starts_with('#'))
        .find(|name| !list.lines().any(|line| line == *name));
    match vanished {
        Some(name) => {
            Err(format!("{name} is not exported any more; nothing is ever removed").into())
        }
        None => Ok(()),
    }
}
