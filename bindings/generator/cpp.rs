//! The C++ wrapper's codes and reasons. Its functions come from the header's table.

use std::fmt::Write;

use super::model::Abi;

/// `enum Code`, and the functions that describe reasons and the states of members.
pub(crate) fn codes(abi: &Abi) -> String {
    let mut text = String::from(
        "// The library's codes. New ones are only ever appended, so expect numbers that are not listed here.\n\
         enum Code : std::int32_t {\n",
    );
    for code in abi.constants.iter().filter(|constant| constant.is_code) {
        let name = code.name.to_lowercase();
        let _ = writeln!(text, "  {name} = {},", code.value);
    }
    text += "};\n";
    words(&mut text, abi, "LEADER_", "describe_leader_reason");
    words(&mut text, abi, "MEMBER_", "describe_member_state");
    words(&mut text, abi, "LEFT_", "describe_left_reason");
    words(&mut text, abi, "END_", "describe_end_reason");
    text
}

/// A function that returns each constant of a prefix in words.
fn words(text: &mut String, abi: &Abi, prefix: &str, function: &str) {
    let _ = writeln!(
        text,
        "\n// One of MMN_{prefix}... in a word.\n\
         inline const char* {function}(std::int32_t number) noexcept {{\n  switch (number) {{"
    );
    for constant in &abi.constants {
        if let Some(name) = constant.name.strip_prefix(prefix) {
            let word = name.to_lowercase().replace('_', " ");
            let _ = writeln!(text, "    case MMN_{prefix}{name}: return \"{word}\";");
        }
    }
    *text += "    default: return \"unknown\";\n  }\n}\n";
}
