//! The C++ wrapper's codes and reasons. Its functions come from the header's table.

use std::fmt::Write;

use super::model::Abi;

/// `enum Code`, and the leader's reasons in words.
pub(crate) fn codes(abi: &Abi) -> String {
    let mut text = String::from(
        "// The library's codes. New ones are only ever appended, so expect numbers that are not listed here.\n\
         enum Code : std::int32_t {\n",
    );
    for code in abi.constants.iter().filter(|constant| constant.is_code) {
        let name = code.name.to_lowercase();
        let _ = writeln!(text, "  {name} = {},", code.value);
    }
    text += "};\n\n// One of MMN_LEADER_... in a word.\n\
             inline const char* describe_leader_reason(std::int32_t reason) noexcept {\n  switch (reason) {\n";
    for constant in &abi.constants {
        if let Some(reason) = constant.name.strip_prefix("LEADER_") {
            let word = reason.to_lowercase().replace('_', " ");
            let _ = writeln!(text, "    case MMN_LEADER_{reason}: return \"{word}\";");
        }
    }
    text += "    default: return \"unknown\";\n  }\n}\n";
    text
}
