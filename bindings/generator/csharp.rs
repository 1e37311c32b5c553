//! The raw C# layer: functions, delegates, structs and constants. C# 7.0 at most, for Unity's compilers.

use std::error::Error;
use std::fmt::Write;

use super::model::{
    Abi, Callback, Constant, Docs, Function, Scalar, Struct, Type, Variable, pascal,
};

/// The C# form of the constants of one prefix.
enum Form {
    /// A static class: new numbers come from newer libraries.
    Constants,
    /// A static class with `Describe`.
    Described,
    /// An enum: numbers that only this side chooses.
    Enum,
}

/// Prefix, class and form. A constant of no prefix is one of `NativeMethods`.
const GROUPS: [(&str, &str, Form, &str); 20] = [
    (
        "EVENT",
        "EventKind",
        Form::Constants,
        "The kind of a <see cref=\"NetworkEvent\"/>.",
    ),
    (
        "LEFT",
        "LeftReason",
        Form::Described,
        "Why a member is gone: the reason of <see cref=\"EventKind.Left\"/>.",
    ),
    (
        "LEADER",
        "LeaderReason",
        Form::Described,
        "Why the leader changed: the reason of <see cref=\"EventKind.LeaderChanged\"/>.",
    ),
    (
        "END",
        "EndReason",
        Form::Described,
        "Why the room is over for this member: the reason of <see cref=\"EventKind.RoomEnded\"/>.",
    ),
    (
        "ENTRY",
        "RoomEntry",
        Form::Constants,
        "Entry of a member into its room: <c>RoomOptions.Settings.Entry</c>.",
    ),
    (
        "LOG",
        "LogLevel",
        Form::Constants,
        "The verbosity of the log.",
    ),
    (
        "RECONNECT",
        "ReconnectStatus",
        Form::Constants,
        "The progress that a <see cref=\"ReconnectCallback\"/> reports.",
    ),
    (
        "RECOVERY",
        "ManualOverrideRecovery",
        Form::Constants,
        "Behaviour when a leader that was set by hand is lost.",
    ),
    (
        "DISPATCH",
        "DispatchMode",
        Form::Constants,
        "The thread that runs the callbacks.",
    ),
    (
        "MERGE",
        "MergePolicy",
        Form::Constants,
        "The leader that stays when two parts of a room merge.",
    ),
    (
        "AUTHORITY",
        "SetLeaderAuthority",
        Form::Constants,
        "Members that may call <c>SetLeader</c>.",
    ),
    (
        "GOSSIP",
        "GossipFlags",
        Form::Constants,
        "Flags of <see cref=\"ElectionStrategy.Gossip\"/>.",
    ),
    (
        "SEEDED",
        "SeededFlags",
        Form::Constants,
        "Flags of <see cref=\"ElectionStrategy.Seeded\"/>: a sum of these.",
    ),
    (
        "SEEDED_PROFILE",
        "SeededProfile",
        Form::Constants,
        "Intervals of <see cref=\"SeededOptions\"/>.",
    ),
    (
        "MEMBER",
        "MemberState",
        Form::Described,
        "The state of a member of the cluster: the reason of <see cref=\"EventKind.MemberState\"/>.",
    ),
    (
        "PEER",
        "PeerStatus",
        Form::Enum,
        "The state of the link to one member.",
    ),
    (
        "DISCOVERY",
        "DiscoveryMode",
        Form::Enum,
        "Discovery of members in the local network.",
    ),
    (
        "STRATEGY",
        "ElectionStrategy",
        Form::Enum,
        "The election strategy of a room.",
    ),
    (
        "QUORUM",
        "QuorumPolicy",
        Form::Enum,
        "The members whose majority elects a leader.",
    ),
    (
        "HOST_MODE",
        "HostMode",
        Form::Enum,
        "Whether one fixed member leads.",
    ),
];

const HEAD: &str = "// Generated from src/ffi by `make header`: do not edit. Marshalling.cs has the parts written by hand.
using System;
using System.Runtime.InteropServices;

namespace MetaMystia.Network
{
    /// <summary>
    /// The functions of the native library, exactly as its header declares them. Most programs use <see cref=\"Room\"/> instead.
    /// </summary>
    /// <remarks>
    /// Text goes in as NUL-terminated UTF-8 (<see cref=\"Utf8.ToNative\"/>) and comes out as a pointer that must be copied
    /// at once (<see cref=\"Utf8.FromNative\"/>). The runtime's own string marshalling is not used anywhere: it means the ANSI
    /// code page on some runtimes, which mangles names in other scripts, and it would free strings that the library owns.
    /// Flags are bytes, because the runtime's default for <c>bool</c> is four bytes wide.
    /// </remarks>
    public static class NativeMethods
    {
        /// <summary>The library's name without prefix and suffix; every runtime completes it for its platform.</summary>
        public const string Library = \"meta_mystia_network\";
";

const DELEGATES: &str = "    }

    // A delegate that the library receives must stay referenced by managed code (a static field is the simplest way)
    // for as long as it is registered: the garbage collector does not see the library's copy of the pointer.
";

/// `NativeMethods.cs`.
///
/// # Errors
/// A type that C# cannot express here.
pub(crate) fn native_methods(abi: &Abi) -> Result<String, Box<dyn Error>> {
    let mut text = HEAD.to_owned();
    for constant in abi
        .constants
        .iter()
        .filter(|c| !c.is_code && group_of(c).is_none())
    {
        text += "\n";
        summary(&mut text, "        ", &constant.docs);
        let (kind, name) = (scalar(constant.kind), pascal(&constant.name));
        writeln!(
            text,
            "        public const {kind} {name} = {};",
            constant.value
        )?;
    }
    for found in &abi.functions {
        function(&mut text, found)?;
    }
    text += DELEGATES;
    for callback in &abi.callbacks {
        delegate(&mut text, callback)?;
    }
    for found in &abi.structs {
        structure(&mut text, found)?;
    }
    for (prefix, class, form, what) in &GROUPS {
        let members = abi.constants.iter().filter(|constant| !constant.is_code);
        let members = members.filter(|constant| group_of(constant) == Some(prefix));
        let members: Vec<_> = members
            .map(|constant| {
                (
                    constant.name.trim_start_matches(&format!("{prefix}_")),
                    constant,
                )
            })
            .collect();
        group(&mut text, class, form, what, &members)?;
    }
    let codes = abi.constants.iter().filter(|constant| constant.is_code);
    let codes: Vec<_> = codes.map(|code| (code.name.as_str(), code)).collect();
    let what = "The library's codes. New ones are only ever appended, so expect numbers that are not listed here.";
    group(&mut text, "ErrorCode", &Form::Constants, what, &codes)?;
    Ok(text + "}\n")
}

/// The longest prefix that the constant's name has.
fn group_of(constant: &Constant) -> Option<&'static str> {
    let matching = GROUPS.iter().map(|(prefix, ..)| *prefix).filter(|prefix| {
        let rest = constant.name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with('_'))
    });
    matching.max_by_key(|prefix| prefix.len())
}

fn group(
    text: &mut String,
    class: &str,
    form: &Form,
    what: &str,
    members: &[(&str, &Constant)],
) -> Result<(), Box<dyn Error>> {
    let Some((_, first)) = members.first() else {
        return Ok(());
    };
    writeln!(text, "\n    /// <summary>{what}</summary>")?;
    if matches!(form, Form::Enum) {
        // GetPeerStatus returns -1 for an unknown peer.
        let (kind, unknown) = (scalar(first.kind), class == "PeerStatus");
        writeln!(text, "    public enum {class} : {kind}\n    {{")?;
        if unknown {
            writeln!(
                text,
                "        /// <summary>There is no such peer.</summary>\n        Unknown = -1,"
            )?;
        }
        for (name, constant) in members {
            summary(text, "        ", &constant.docs);
            writeln!(text, "        {} = {},", pascal(name), constant.value)?;
        }
    } else {
        writeln!(text, "    public static class {class}\n    {{")?;
        for (name, constant) in members {
            summary(text, "        ", &constant.docs);
            let kind = scalar(constant.kind);
            writeln!(
                text,
                "        public const {kind} {} = {};",
                pascal(name),
                constant.value
            )?;
        }
        if matches!(form, Form::Described) {
            let kind = scalar(first.kind);
            writeln!(
                text,
                "\n        /// <summary>The reason in a word.</summary>\n        \
                 public static string Describe({kind} reason)\n        {{\n            switch (reason)\n            {{"
            )?;
            for (name, _) in members {
                let word = name.to_lowercase().replace('_', " ");
                writeln!(
                    text,
                    "                case {}: return \"{word}\";",
                    pascal(name)
                )?;
            }
            *text += "                default: return \"unknown\";\n            }\n        }\n";
        }
    }
    *text += "    }\n";
    Ok(())
}

fn function(text: &mut String, found: &Function) -> Result<(), Box<dyn Error>> {
    *text += "\n";
    summary(text, "        ", &found.docs);
    let result = match &found.result {
        Type::Text => "IntPtr".to_owned(),
        Type::Scalar(kind) => scalar(*kind).to_owned(),
        other => return Err(format!("{}: a result of {other:?}", found.name).into()),
    };
    let parameters = parameters(&found.parameters, |kind| match kind {
        Type::Text | Type::Bytes => "byte[]".to_owned(),
        // Pinned, not copied: the library writes into the array.
        Type::Pointer { to, .. } if to == "u8" => "[In, Out] byte[]".to_owned(),
        Type::Pointer { to, mutable } => {
            let to =
                Scalar::parse(to).map_or_else(|| class(to).to_owned(), |to| scalar(to).to_owned());
            // Not copied back: Mono makes no delegate of another domain from a pointer in a struct.
            let direction = if *mutable { "" } else { "[In] " };
            format!("{direction}ref {to}")
        }
        other => in_memory(other),
    });
    writeln!(
        text,
        "        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]\n        \
         public static extern {result} {}({parameters});",
        found.name
    )?;
    Ok(())
}

fn delegate(text: &mut String, callback: &Callback) -> Result<(), Box<dyn Error>> {
    *text += "\n";
    summary(text, "    ", &callback.docs);
    let parameters = parameters(&callback.parameters, in_memory);
    writeln!(
        text,
        "    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]\n    \
         public delegate void {}({parameters});",
        callback.name
    )?;
    Ok(())
}

fn structure(text: &mut String, found: &Struct) -> Result<(), Box<dyn Error>> {
    *text += "\n";
    summary(text, "    ", &found.docs);
    writeln!(
        text,
        "    [StructLayout(LayoutKind.Sequential)] // Aligned as C aligns it; a test compares every offset with the header.\n    \
         public partial struct {}\n    {{",
        class(&found.name)
    )?;
    for field in &found.fields {
        summary(text, "        ", &field.docs);
        let (kind, name) = (in_memory(&field.kind), pascal(&spelled_out(&field.name)));
        writeln!(text, "        public {kind} {name};")?;
    }
    *text += "    }\n";
    Ok(())
}

fn parameters(all: &[Variable], kind: impl Fn(&Type) -> String) -> String {
    let all = all.iter().map(|parameter| {
        let pascal = pascal(&spelled_out(&parameter.name));
        let (first, rest) = pascal.split_at(1);
        let name = first.to_lowercase() + rest;
        let escape = if name == "event" { "@" } else { "" };
        format!("{} {escape}{name}", kind(&parameter.kind))
    });
    all.collect::<Vec<_>>().join(", ")
}

/// Names in .NET style.
fn spelled_out(name: &str) -> String {
    match name {
        "msg_type" => "message_type".into(),
        "addr" => "address".into(),
        "drop_fn" => "drop_function".into(),
        name => name.into(),
    }
}

fn class(name: &str) -> &str {
    name.strip_suffix("FFI").unwrap_or(name)
}

fn in_memory(kind: &Type) -> String {
    match kind {
        Type::Scalar(kind) => scalar(*kind).to_owned(),
        Type::Text | Type::Bytes | Type::UserData | Type::Pointer { .. } => "IntPtr".to_owned(),
        Type::Named(name) => class(name).to_owned(),
    }
}

fn scalar(kind: Scalar) -> &'static str {
    match (kind.signed, kind.bits) {
        (false, 8) => "byte",
        (true, 8) => "sbyte",
        (false, 16) => "ushort",
        (true, 16) => "short",
        (false, 32) => "uint",
        (true, 32) => "int",
        (false, _) => "ulong",
        (true, _) => "long",
    }
}

/// The first paragraph as a documentation comment; `code` in backticks becomes an element.
fn summary(text: &mut String, indent: &str, docs: &Docs) {
    let mut summary = docs
        .summary()
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    while let Some((before, rest)) = summary.split_once('`') {
        let Some((code, after)) = rest.split_once('`') else {
            break;
        };
        summary = format!("{before}<c>{code}</c>{after}");
    }
    if !summary.is_empty() {
        let _ = writeln!(text, "{indent}/// <summary>{summary}</summary>");
    }
}
