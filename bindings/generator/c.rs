//! The parts of the C header beside cbindgen's declarations, and the list of exports.

use std::error::Error;
use std::fmt::Write;

use super::model::{Abi, Function, Scalar, Type, Variable};
use super::table::with_events;

/// cbindgen's output: the library with its include guard, and the declarations of the published one.
pub(crate) struct Header {
    pub(crate) library: String,
    pub(crate) classic: String,
}

const FUNCTIONS: &str = "
/**
 * Every function with the prefix mmn_, as X(result, name, parameters), for hosts that load the
 * library at run time:
 *
 *     #define MEMBER(result, name, parameters) result (*name) parameters;
 *     static struct { MMN_FUNCTIONS(MEMBER) } net;
 *     #define LOAD(result, name, parameters) *(void **)&net.name = dlsym(library, #name);
 *     MMN_FUNCTIONS(LOAD)
 */
#define MMN_FUNCTIONS(X)";

const CLASSIC: &str = "
#ifndef MMN_NO_CLASSIC

/*
 * The functions of the published library, which act on the default room (mmn_default_room). Their
 * names have no prefix: define MMN_NO_CLASSIC before this header to leave them out.
 */

";

const CLASSIC_FUNCTIONS: &str = "
/**
 * The functions of this section, as MMN_FUNCTIONS lists the others.
 */
#define MMN_CLASSIC_FUNCTIONS(X)";

/// The header.
///
/// # Errors
/// A header without the end of its include guard, or without the place of the table of events.
pub(crate) fn header(abi: &Abi, header: &Header) -> Result<String, Box<dyn Error>> {
    let library = with_events(&header.library, &abi.events)?;
    let end = library
        .rfind("#endif")
        .ok_or("the header has no include guard")?;
    let (library, guard) = library.split_at(end);
    let mut text = library.trim_end().to_owned();
    text.push('\n');
    table(&mut text, FUNCTIONS, &abi.functions);
    text += CLASSIC;
    text += header.classic.trim();
    text.push('\n');
    table(&mut text, CLASSIC_FUNCTIONS, &abi.classic);
    write!(text, "\n#endif  /* MMN_NO_CLASSIC */\n\n{guard}")?;
    Ok(for_c(&text))
}

fn table(text: &mut String, head: &str, functions: &[Function]) {
    *text += head;
    for function in functions {
        let _ = write!(text, " \\\n  X({})", entry(function));
    }
    text.push('\n');
}

/// `text` as a C programmer writes it: negative numbers in parentheses, and the host's duties without the heading that
/// Rust gives them.
fn for_c(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let negative = line
            .strip_prefix("#define ")
            .and_then(|rest| rest.split_once(" -"));
        match negative {
            Some((name, number)) => lines.push(format!("#define {name} (-{number})")),
            None if line == " * # Safety" => {}
            None => lines.push(line.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}

fn entry(function: &Function) -> String {
    let result = declaration(&function.result, "");
    let parameters = parameters(&function.parameters, declaration);
    format!("{}, {}, ({parameters})", result.trim_end(), function.name)
}

/// The parameters of a function, as `declaration` writes each from its type and name.
pub(crate) fn parameters(all: &[Variable], declaration: impl Fn(&Type, &str) -> String) -> String {
    match all {
        [] => "void".to_owned(),
        some => some
            .iter()
            .map(|parameter| declaration(&parameter.kind, &parameter.name))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

pub(crate) fn declaration(kind: &Type, name: &str) -> String {
    match kind {
        Type::Scalar(scalar) => format!("{} {name}", scalar.c_name()),
        Type::Text => format!("const char *{name}"),
        Type::TextBuffer => format!("char *{name}"),
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
    let mut names: Vec<_> = abi.all_functions().map(|f| f.name.as_str()).collect();
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
