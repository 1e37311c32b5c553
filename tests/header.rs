//! The committed header is the one that the source gives, and C and C++ compilers take it as it is meant.

use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const GENERATED: &str = include_str!(concat!(env!("OUT_DIR"), "/meta_mystia_network.h"));

/// Checks sizes, offsets, numbers and signatures. Plain C11 that is C++17 as well.
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

#define OPTION_AT(field, offset) CHECK(offsetof(NetworkOptions, field) == offset)
#define POINTER sizeof(void *)
CHECK(sizeof(NetworkOptions) == 104 + 5 * POINTER);
OPTION_AT(struct_size, 0);
OPTION_AT(config, 4);
OPTION_AT(bind_address, 48);
OPTION_AT(secret, 48 + POINTER);
OPTION_AT(identity_key, 48 + 2 * POINTER);
OPTION_AT(secret_length, 48 + 3 * POINTER);
OPTION_AT(identity_key_length, 52 + 3 * POINTER);
OPTION_AT(member_hold_ms, 56 + 3 * POINTER);
OPTION_AT(queue_bytes, 60 + 3 * POINTER);
OPTION_AT(strategy, 64 + 3 * POINTER);
OPTION_AT(priority, 68 + 3 * POINTER);
OPTION_AT(bind_port, 72 + 3 * POINTER);
OPTION_AT(discovery_mode, 74 + 3 * POINTER);
OPTION_AT(dispatch_mode, 75 + 3 * POINTER);
OPTION_AT(merge_policy, 76 + 3 * POINTER);
OPTION_AT(set_leader_authority, 77 + 3 * POINTER);
OPTION_AT(host_mode, 78 + 3 * POINTER);
OPTION_AT(eligible, 79 + 3 * POINTER);
/* Since version 3 of the ABI. */
OPTION_AT(state_directory, 80 + 3 * POINTER);
OPTION_AT(trace_path, 80 + 4 * POINTER);
OPTION_AT(quorum_policy, 80 + 5 * POINTER);
OPTION_AT(quorum_voters, 84 + 5 * POINTER);
/* Since version 4 of the ABI. */
OPTION_AT(strategy_flags, 88 + 5 * POINTER);
OPTION_AT(reserved, 92 + 5 * POINTER);
/* Since version 5 of the ABI. */
OPTION_AT(max_peers, 96 + 5 * POINTER);
OPTION_AT(reserved2, 100 + 5 * POINTER);
CHECK(sizeof(PeerStats) == 80);
CHECK(offsetof(PeerStats, rtt_us) == 4 && offsetof(PeerStats, bytes_sent) == 16);
CHECK(offsetof(PeerStats, queue_messages) == 48 && offsetof(PeerStats, queue_bytes) == 56);
CHECK(offsetof(PeerStats, path_mtu) == 72 && offsetof(PeerStats, reconnects) == 76);
/* No padding anywhere: 64-bit numbers first, then pointers, then what is smaller. */
#define EVENT(field, offset) CHECK(offsetof(NetworkEvent, field) == offset)
EVENT(struct_size, 0);
EVENT(kind, 4);
EVENT(term, 8);
EVENT(epoch, 16);
EVENT(request, 24);
EVENT(count, 32);
EVENT(peer, 40);
EVENT(other, 40 + sizeof(void *));
EVENT(data, 40 + 2 * sizeof(void *));
EVENT(length, 40 + 3 * sizeof(void *));
EVENT(reason, 44 + 3 * sizeof(void *));
EVENT(code, 48 + 3 * sizeof(void *));
EVENT(msg_type, 52 + 3 * sizeof(void *));
EVENT(flags, 54 + 3 * sizeof(void *));
EVENT(success, 55 + 3 * sizeof(void *));
CHECK(sizeof(void *) != 8 || sizeof(NetworkEvent) == 80);

CHECK(MMN_EVENT_JOINED == 1 && MMN_EVENT_RECONNECTING == 2 && MMN_EVENT_RETURNED == 3);
CHECK(MMN_EVENT_LEFT == 4 && MMN_EVENT_MESSAGE == 5 && MMN_EVENT_SET_LEADER_RESULT == 6);
CHECK(MMN_EVENT_ROOM_ENDED == 7 && MMN_EVENT_LEADER_CHANGED == 8);
CHECK(MMN_EVENT_LEADERSHIP_GAINED == 9 && MMN_EVENT_LEADERSHIP_LOST == 10);
CHECK(MMN_EVENT_JOIN_REQUEST == 11 && MMN_EVENT_DISCOVERED == 12);
CHECK(MMN_EVENT_CONNECTION_RESULT == 13);
CHECK(MMN_LEFT_LEFT == 0 && MMN_LEFT_LOST == 1 && MMN_LEFT_DISCONNECTED == 2);
CHECK(MMN_LEFT_REPLACED == 3 && MMN_LEFT_KICKED == 4 && MMN_LEFT_VIOLATION == 5);
CHECK(MMN_LEFT_GAVE_UP == 6 && MMN_END_KICKED == 0 && MMN_END_HOST_LEFT == 1);
CHECK(MMN_END_HOST_LOST == 2 && MMN_END_DISCONNECTED == 3);
CHECK(MMN_RECONNECT_RETRYING == 0 && MMN_RECONNECT_RETURNED == 1 && MMN_RECONNECT_GAVE_UP == 2);
CHECK(MMN_LEADER_UNKNOWN == 0 && MMN_LEADER_ELECTED == 1 && MMN_LEADER_ASSIGNED == 2);
CHECK(MMN_LEADER_TRANSFERRED == 3 && MMN_LEADER_FOUND == 4 && MMN_LEADER_LOST == 5);
CHECK(MMN_LEADER_LEFT == 6 && MMN_LEADER_RESIGNED == 7);
CHECK(MMN_LOG_OFF == 0 && MMN_LOG_ERROR == 1 && MMN_LOG_WARN == 2);
CHECK(MMN_LOG_INFO == 3 && MMN_LOG_DEBUG == 4 && MMN_LOG_TRACE == 5);

CHECK(MMN_OK == 0);
CHECK(MMN_NOT_INITIALIZED == -1);
CHECK(MMN_ALREADY_INITIALIZED == -2);
CHECK(MMN_INVALID_ARGUMENT == -3);
CHECK(MMN_CONNECTION_FAILED == -4);
CHECK(MMN_PEER_NOT_FOUND == -5);
CHECK(MMN_NOT_LEADER == -6);
CHECK(MMN_SEND_QUEUE_FULL == -7);
CHECK(MMN_MESSAGE_TOO_LARGE == -8);
CHECK(MMN_SERIALIZATION_ERROR == -9);
CHECK(MMN_SESSION_MISMATCH == -10);
CHECK(MMN_DUPLICATE_PEER_ID == -11);
CHECK(MMN_VERSION_MISMATCH == -12);
CHECK(MMN_MAX_CONNECTIONS_REACHED == -13);
CHECK(MMN_ALREADY_CONNECTED == -14);
CHECK(MMN_WOULD_DEADLOCK == -15);
CHECK(MMN_NOT_SUPPORTED == -16);
CHECK(MMN_AUTHENTICATION_FAILED == -17);
CHECK(MMN_REJECTED == -18);
CHECK(MMN_TIMEOUT == -19);
CHECK(MMN_POLICY_MISMATCH == -20);
CHECK(MMN_SUPERSEDED == -21);
CHECK(MMN_INTERNAL_ERROR == -99);

CHECK(MMN_ABI_VERSION == 5);
CHECK(MMN_MIN_MESSAGE_TYPE == 0x0100);
CHECK(MMN_MAX_PEER_ID_BYTES == 64 && MMN_MAX_SESSION_ID_BYTES == 128);
CHECK(MMN_PEER_CONNECTED == 0 && MMN_PEER_DISCONNECTED == 1);
CHECK(MMN_PEER_RECONNECTING == 2 && MMN_PEER_HANDSHAKING == 3);
CHECK(MMN_RECOVERY_HOLD == 0 && MMN_RECOVERY_AUTO_ELECT == 1);
CHECK(MMN_DISCOVERY_OFF == 0 && MMN_DISCOVERY_REPORT == 1 && MMN_DISCOVERY_CONNECT == 2);
CHECK(MMN_DISPATCH_THREAD == 0 && MMN_DISPATCH_POLL == 1);
CHECK(MMN_MERGE_LARGEST_SIDE == 0 && MMN_MERGE_HIGHEST_TERM == 1);
CHECK(MMN_AUTHORITY_ANYONE == 0 && MMN_AUTHORITY_LEADER_ONLY == 1);
CHECK(MMN_HOST_MODE_OFF == 0 && MMN_HOST_MODE_HOST == 1 && MMN_HOST_MODE_GUEST == 2);
CHECK(MMN_QUORUM_DYNAMIC == 0 && MMN_QUORUM_STATIC == 1 && MMN_MAX_QUORUM_VOTERS == 1024);
CHECK(MMN_STRATEGY_RAFT == 0 && MMN_STRATEGY_GOSSIP == 1 && MMN_GOSSIP_STRICT_LOWEST == 1);
CHECK(MMN_MAX_SECRET_BYTES == 1024);

static void on_receive(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags) {
    (void)peer; (void)data; (void)length; (void)type; (void)flags;
}
static void on_leader(const char *leader) { (void)leader; }
static void on_leadership(uint8_t is_leader) { (void)is_leader; }
static void on_status(const char *peer, int32_t status) { (void)peer; (void)status; }
static void on_result(const char *addr, uint8_t success, int32_t code) {
    (void)addr; (void)success; (void)code;
}
static void on_reconnect(const char *peer, uint8_t status) { (void)peer; (void)status; }
static void on_event(void *user_data, const NetworkEvent *event) { (void)user_data; (void)event; }
static void on_log(void *user_data, int32_t level, const char *message) {
    (void)user_data; (void)level; (void)message;
}
static void on_drop(void *user_data) { (void)user_data; }

int main(void) {
    ReceiveCallback receive = on_receive;
    LeaderChangedCallback leader = on_leader;
    LeadershipCallback leadership = on_leadership;
    PeerStatusCallback status = on_status;
    ConnectionResultCallback result = on_result;
    ReconnectCallback reconnect = on_reconnect;
    EventCallback event = on_event;
    LogCallback log = on_log;
    DropCallback drop = on_drop;

    uint32_t (*abi_version)(void) = GetAbiVersion;
    const char *(*library_version)(void) = GetLibraryVersion;
    const char *(*describe)(int32_t) = DescribeError;
    int32_t (*initialize)(const char *, const char *) = InitializeNetwork;
    int32_t (*initialize_with)(const char *, const char *, const NetworkConfigFFI *) =
        InitializeNetworkWithConfig;
    int32_t (*default_options)(NetworkOptions *) = GetDefaultNetworkOptions;
    int32_t (*initialize_with_options)(const char *, const char *, const NetworkOptions *) =
        InitializeNetworkWithOptions;
    int32_t (*send_to_peer)(const char *, const uint8_t *, int32_t, uint16_t, uint8_t) = SendToPeer;
    int32_t (*sends[])(const uint8_t *, int32_t, uint16_t, uint8_t) = {
        BroadcastMessage, SendToLeader, SendFromLeader};
    int32_t (*of_string[])(const char *) = {
        ConnectToPeer, DisconnectPeer, GetPeerRTT, GetPeerStatus, SetLeader, TransferLeadership};
    int32_t (*numbers[])(void) = {ShutdownNetwork, GetLastErrorCode, GetPeerCount, YieldLeadership,
                                GetElectionStrategy};
    int64_t (*counts[])(void) = {GetLeaderTerm, GetLeaderEpoch};
    const char *(*strings[])(void) = {GetLastErrorMessage, GetLocalAddr, GetLocalPeerId,
                                      GetSessionId, GetPeerList, GetCurrentLeader};
    int32_t (*of_number[])(int32_t) = {PollEvents, SetLogLevel, SetElectionPriority};
    uint8_t (*flags[])(void) = {IsNetworkInitialized, IsMdnsActive, IsLeader, IsCentralizedMode,
                                IsCentralizedAutoForward, IsAutoReconnectEnabled};
    int32_t (*switches[])(uint8_t) = {EnableAutoLeaderElection, EnableLogging, SetCentralizedMode,
                                      SetCentralizedAutoForward, SetAutoReconnect,
                                      SetLeaderEligible, EnableJoinRequests};
    int32_t (*forward)(const char *, const char *, const uint8_t *, int32_t, uint16_t, uint8_t) =
        ForwardMessage;
    int32_t (*of_count[])(uint32_t) = {SetCompressionThreshold, SetMaxPeers, SetStartupGracePeriod,
                                       SetMembershipSampleInterval, SetLeaderAliveThreshold,
                                       SetLeaderElectionDuration};
    uint32_t (*windows[])(void) = {GetStartupGracePeriod, GetMembershipSampleInterval,
                                   GetLeaderAliveThreshold, GetLeaderElectionDuration,
                                   GetMsgExpirationTimeout, GetLeadershipDeclarationInterval};
    int32_t (*stats)(const char *, PeerStats *) = GetPeerStats;
    int32_t (*kick)(const char *, int32_t, const uint8_t *, int32_t) = KickPeer;
    int32_t (*payload)(const uint8_t *, int32_t) = SetJoinPayload;
    int32_t (*accept)(uint64_t) = AcceptJoin;
    int32_t (*reject)(uint64_t, int32_t, const uint8_t *, int32_t) = RejectJoin;

    (void)abi_version; (void)library_version; (void)describe; (void)initialize; (void)initialize_with;
    (void)default_options; (void)initialize_with_options; (void)send_to_peer; (void)sends;
    (void)of_string; (void)numbers; (void)strings; (void)flags; (void)switches; (void)of_number;
    (void)counts; (void)windows; (void)forward; (void)of_count; (void)stats; (void)kick; (void)payload; (void)accept; (void)reject;
    return RegisterReceiveCallback(receive) + RegisterReceiveCallback(NULL)
        + RegisterLeaderChangedCallback(leader) + RegisterLeaderChangedCallback(NULL)
        + RegisterLeadershipCallback(leadership) + RegisterLeadershipCallback(NULL)
        + RegisterPeerStatusCallback(status) + RegisterPeerStatusCallback(NULL)
        + RegisterConnectionResultCallback(result) + RegisterConnectionResultCallback(NULL)
        + RegisterReconnectCallback(reconnect) + RegisterReconnectCallback(NULL)
        + RegisterEventHandler(event, NULL, drop) + RegisterEventHandler(NULL, NULL, NULL)
        + RegisterLogCallback(MMN_LOG_INFO, log, NULL, drop)
        + RegisterLogCallback(MMN_LOG_OFF, NULL, NULL, NULL);
}
"#;

#[test]
fn the_committed_header_is_the_generated_one() {
    let path = Path::new(ROOT).join("include/meta_mystia_network.h");
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let difference = GENERATED
        .lines()
        .zip(committed.lines().chain(std::iter::repeat("(end)")))
        .enumerate()
        .find(|(_, (generated, committed))| generated != committed);
    assert!(
        committed == GENERATED,
        "{} is not what the source gives (first difference: {difference:?}). Update it:\n\n    \
         MMN_UPDATE_HEADER=1 cargo build\n",
        path.display()
    );
}

#[test]
fn c11_takes_the_header() {
    compile("gcc", &["-std=c11"], "c");
}

#[test]
fn cpp17_takes_the_header() {
    compile("g++", &["-std=c++17"], "cpp");
}

/// Compiles [`PROGRAM`] against the generated header, without linking.
fn compile(compiler: &str, options: &[&str], suffix: &str) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("header-{suffix}"));
    fs::create_dir_all(&directory).expect("a directory for the test");
    fs::write(directory.join("meta_mystia_network.h"), GENERATED).expect("the header");
    let program = directory.join(format!("check.{suffix}"));
    fs::write(&program, PROGRAM).expect("the program");
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
