//! The committed header and the bindings' generated parts match the source; C and C++ compilers accept the header.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const GENERATED: &str = include_str!(concat!(
    env!("OUT_DIR"),
    "/abi/include/meta_mystia_network.h"
));

/// Checks the classic layout, the callbacks' signatures and the table of functions. Plain C11 that is C++17 as well.
const PROGRAM: &str = r#"
#include "meta_mystia_network.h"
#include "meta_mystia_network.h" /* the guard holds */
#include <stddef.h>

#ifdef __cplusplus
#define CHECK(what) static_assert(what, #what)
#else
#define CHECK(what) _Static_assert(what, #what)
#endif
#define AT(field, offset) CHECK(offsetof(NetworkConfigFFI, field) == offset)

CHECK(sizeof(NetworkConfigFFI) == 44);
AT(reconnect_max_ms, 0);
AT(compression_threshold, 4);
AT(max_message_size, 8);
AT(heartbeat_interval_ms, 12);
AT(election_timeout_min_ms, 14);
AT(election_timeout_max_ms, 16);
AT(reconnect_initial_ms, 18);
AT(handshake_timeout_ms, 20);
AT(write_timeout_ms, 22);
AT(send_queue_capacity, 24);
AT(incoming_queue_capacity, 26);
AT(max_connections, 28);
AT(keepalive_time_secs, 30);
AT(keepalive_interval_secs, 32);
AT(mdns_port, 34);
AT(heartbeat_timeout_multiplier, 36);
AT(keepalive_retries, 37);
AT(centralized_auto_forward, 38);
AT(auto_election_enabled, 39);
AT(manual_override_recovery, 40);
AT(tcp_nodelay, 41);
AT(auto_reconnect_enabled, 42);
AT(reconnect_max_retries, 43);

/* The rest is compared with the headers of older hosts: tests/hosts/old_host.rs. */

static void on_receive(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags) {
    (void)peer; (void)data; (void)length; (void)type; (void)flags;
}
static void on_leader(const char *leader) { (void)leader; }
static void on_status(const char *peer, int32_t status) { (void)peer; (void)status; }
static void on_result(const char *addr, uint8_t success, int32_t code) {
    (void)addr; (void)success; (void)code;
}
static void on_reconnect(const char *peer, uint8_t status) { (void)peer; (void)status; }
static void on_event(void *user_data, const MmnEvent *event) { (void)user_data; (void)event; }
static void on_log(void *user_data, MmnRoom room, int32_t level, const char *message) {
    (void)user_data; (void)room; (void)level; (void)message;
}
static void on_drop(void *user_data) { (void)user_data; }

int main(void) {
    ReceiveCallback receive = on_receive;
    LeaderChangedCallback leader = on_leader;
    PeerStatusCallback status = on_status;
    ConnectionResultCallback result = on_result;
    ReconnectCallback reconnect = on_reconnect;
    MmnEventCallback event = on_event;
    MmnLogCallback log = on_log;
    MmnDropCallback drop = on_drop;

#define MEMBER(result, name, parameters) result (*name) parameters;
    struct { MMN_FUNCTIONS(MEMBER) MMN_CLASSIC_FUNCTIONS(MEMBER) } table = {
#define ENTRY(result, name, parameters) name,
        MMN_FUNCTIONS(ENTRY)
        MMN_CLASSIC_FUNCTIONS(ENTRY)
    };
    (void)table;
    return RegisterReceiveCallback(receive) + RegisterReceiveCallback(NULL)
        + RegisterLeaderChangedCallback(leader) + RegisterLeaderChangedCallback(NULL)
        + RegisterPeerStatusCallback(status) + RegisterPeerStatusCallback(NULL)
        + RegisterConnectionResultCallback(result) + RegisterConnectionResultCallback(NULL)
        + RegisterReconnectCallback(reconnect) + RegisterReconnectCallback(NULL)
        + mmn_set_event_handler(0, event, NULL, drop) + mmn_set_event_handler(0, NULL, NULL, NULL)
        + mmn_set_log(MMN_LOG_INFO, log, NULL, drop) + mmn_set_log(MMN_LOG_OFF, NULL, NULL, NULL);
}
"#;

#[test]
fn committed_files_match_the_source() {
    let generated = Path::new(concat!(env!("OUT_DIR"), "/abi"));
    let files = files(generated);
    assert!(files.len() >= 5, "{files:?}");
    for path in files {
        let text = fs::read_to_string(generated.join(&path)).expect("a generated file");
        let committed = fs::read_to_string(Path::new(ROOT).join(&path)).unwrap_or_default();
        // Some files are generated only between the marks.
        let is_part = text.contains(" -- Generated from src/ffi");
        let first_difference = text
            .lines()
            .find(|line| !committed.lines().any(|committed| committed == *line));
        assert!(
            committed == text || (is_part && committed.contains(&text)),
            "{} is not what the source gives (first new line: {first_difference:?}). Update it:\n\n    \
             make header\n",
            path.display()
        );
    }
}

/// Every file below `folder`, as a path from there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).expect("below it").to_owned());
            }
        }
    }
    found
}

/// A program with names of its own that the classic functions have, too.
const WITHOUT_CLASSIC: &str = r#"
#define MMN_NO_CLASSIC
#include "meta_mystia_network.h"
#include <stddef.h>

enum SetLeader { GetPeerCount, IsLeader };
struct NetworkConfigFFI { int InitializeNetwork; };

int main(void) {
    struct NetworkConfigFFI config = { 0 };
    return config.InitializeNetwork + (int)mmn_open("a", "b", NULL, NULL) + GetPeerCount + IsLeader;
}
"#;

#[test]
fn c11_takes_the_header() {
    compile("gcc", &["-std=c11"], "c", PROGRAM);
    compile("gcc", &["-std=c11"], "c", WITHOUT_CLASSIC);
}

#[test]
fn cpp17_takes_the_header() {
    compile("g++", &["-std=c++17"], "cpp", PROGRAM);
    compile("g++", &["-std=c++17"], "cpp", WITHOUT_CLASSIC);
}

/// Compiles `text` against the generated header, without linking.
fn compile(compiler: &str, options: &[&str], suffix: &str, text: &str) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("header-{suffix}"));
    fs::create_dir_all(&directory).expect("a directory for the test");
    fs::write(directory.join("meta_mystia_network.h"), GENERATED).expect("the header");
    let program = directory.join(format!("check.{suffix}"));
    fs::write(&program, text).expect("the program");
    let output = Command::new(compiler)
        .args(options)
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"])
        .arg(&program)
        .output()
        .unwrap_or_else(|error| panic!("{compiler} is needed (apt install {compiler}): {error}"));
    assert!(
        output.status.success(),
        "{compiler} {options:?}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
