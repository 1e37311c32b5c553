/* The examples of the reference in C, by function: scripts/reference.py shows the body of the function under each "//:" line.
 * tests/hosts/snippets.py compiles this file, and scripts/documents.py checks that no function is missing. */
#include <meta_mystia_network.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POSITION 0x0101
#define BUY 0x0102

void on_event(void *game, const MmnEvent *event);
void on_log(void *file, MmnRoom room, int32_t level, const char *line);
void release(void *game);
void keep(const char *name, const void *data, size_t length);
extern MmnRoom room;
extern void *game;
extern volatile int running;
extern uint8_t place[12], saved[4096];

//: mmn_abi_version mmn_library_version
void versions(void)
{
    if (mmn_abi_version() < MMN_ABI_VERSION) {
        fprintf(stderr, "library %s is older than this program\n", mmn_library_version());
        exit(1);
    }
}

//: mmn_open mmn_default_options mmn_last_error_code mmn_last_error_message
void opening(void)
{
    MmnOptions options = {.struct_size = sizeof options};
    mmn_default_options(&options);
    options.on_event = on_event;
    options.dispatch_mode = MMN_DISPATCH_POLL;       /* events come inside mmn_poll */
    options.discovery_mode = MMN_DISCOVERY_CONNECT;  /* connect to members in the local network */
    if (mmn_open("alice", "our secret tea party", &options, &room) != MMN_OK)
        fprintf(stderr, "%d: %s\n", mmn_last_error_code(), mmn_last_error_message());
}

//: mmn_poll
void polling(void)
{
    while (running) {
        mmn_poll(room, 100);  /* once per frame: on_event runs in here */
        /* ... update and draw the game ... */
    }
}

//: mmn_leave mmn_close mmn_is_open
void leaving(void)
{
    mmn_leave(room);  /* begins, also inside a callback */
    if (!mmn_is_open(room)) puts("leaving");
    mmn_close(room);  /* waits for the end: outside of callbacks */
}

//: mmn_set_event_handler mmn_take_messages
void handlers(void)
{
    /* The room was opened with options.hold_messages = 1: no message comes before mmn_take_messages. */
    mmn_set_event_handler(room, on_event, game, release);
    mmn_take_messages(room);
}

//: mmn_default_room mmn_is_announced
void default_room(void)
{
    MmnRoom classic = mmn_default_room();  /* 0 if no default room is open */
    if (classic && !mmn_is_announced(classic)) puts("others in the local network do not discover this host");
}

static void listed(void *user_data, const MmnListedRoom *found)
{
    (void)user_data;
    if (found->change == MMN_BROWSE_GONE) printf("%s is gone\n", found->name);
    else printf("%s: %" PRIu32 " players at %s\n", found->name, found->players, found->address);
}

//: mmn_show_card
void showing(void)
{
    MmnCard card = {.struct_size = sizeof card, .flags = MMN_CARD_OPEN, .game = "tea party", .name = "Alice's room"};
    mmn_show_card(room, &card);  /* at every member: the leader's is shown */
    mmn_show_card(room, NULL);
}

//: mmn_browse_open mmn_browse_poll mmn_browse_close
void browsing(void)
{
    MmnBrowser browser;
    MmnBrowseOptions options = {.struct_size = sizeof options, .game = "tea party", .on_room = listed};
    options.dispatch_mode = MMN_DISPATCH_POLL;
    if (mmn_browse_open(&options, &browser) != MMN_OK) return;
    mmn_browse_poll(browser, 100);  /* once per frame */
    mmn_browse_close(browser);
}

//: mmn_describe_error
void describing(int32_t code)
{
    printf("%" PRId32 ": %s\n", code, mmn_describe_error(code));
}

//: mmn_connect mmn_local_address mmn_local_addresses mmn_public_address
void dialling(const char *typed)
{
    printf("others dial %s\n", mmn_local_address(room));
    printf("all addresses, one per line:\n%s\n", mmn_local_addresses(room));
    const char *outside = mmn_public_address(room);
    if (outside) printf("members on the internet see %s\n", outside);
    if (mmn_connect(room, typed) != MMN_OK) fprintf(stderr, "%s\n", mmn_last_error_message());
    /* MMN_EVENT_CONNECTION_RESULT reports the outcome. */
}

//: mmn_set_turn
void renewing(const char *credentials)  /* of the game's server, before the present ones expire */
{
    char servers[256];
    snprintf(servers, sizeof servers, "turns:turn.example.org:443 %s", credentials);
    if (mmn_set_turn(room, servers) != MMN_OK) fprintf(stderr, "%s\n", mmn_last_error_message());
    /* MMN_EVENT_TURN reports the outcome. */
}

//: mmn_disconnect
void disconnecting(void)
{
    mmn_disconnect(room, "bob", 7, (const uint8_t *)"bye", 3);  /* bob receives 7 and "bye" */
}

//: mmn_local_id mmn_session_id mmn_peer_count mmn_peers mmn_members
void members(void)
{
    printf("%s in %s\n", mmn_local_id(room), mmn_session_id(room));
    printf("%" PRId32 " peers:\n%s\n", mmn_peer_count(room), mmn_peers(room));
    printf("with the reconnecting ones:\n%s\n", mmn_members(room));
}

//: mmn_peer_status mmn_peer_address mmn_peer_path mmn_peer_carrier mmn_peer_rtt_ms
void about_a_peer(void)
{
    if (mmn_peer_status(room, "bob") != MMN_PEER_CONNECTED) return;
    const char *address = mmn_peer_address(room, "bob");  /* NULL if bob hides it */
    if (address) printf("bob is at %s\n", address);
    printf("round trip %" PRId32 " ms\n", mmn_peer_rtt_ms(room, "bob"));
    if (mmn_peer_path(room, "bob") == MMN_PATH_THROUGH_MEMBER)
        printf("through %s\n", mmn_peer_carrier(room, "bob"));
}

//: mmn_peer_index mmn_peer_id
void indices(void)
{
    uint32_t index = mmn_peer_index(room, "bob");  /* the number of bob in this room, here; 0 is none */
    if (index) printf("%" PRIu32 " is %s\n", index, mmn_peer_id(room, index));
}

//: mmn_generate_identity_key mmn_local_fingerprint mmn_peer_fingerprint
void identity(void)
{
    uint8_t key[MMN_IDENTITY_KEY_BYTES];
    mmn_generate_identity_key(key, sizeof key);
    keep("identity.key", key, sizeof key);  /* options.identity_key at every start */
    printf("this member: %s\n", mmn_local_fingerprint(room));
    const char *bob = mmn_peer_fingerprint(room, "bob");
    if (bob) printf("bob: %s\n", bob);
}

//: mmn_generate_room_code mmn_normalize_room_code
void room_codes(const char *typed)
{
    char code[MMN_ROOM_CODE_BYTES];
    mmn_generate_room_code(code, sizeof code);
    printf("read it out: %s\n", code);
    if (mmn_normalize_room_code(typed, code, sizeof code) != MMN_OK)
        printf("%s\n", mmn_last_error_message());  /* the wrong character, or a typo */
}

//: mmn_set_auto_reconnect mmn_auto_reconnect
void reconnecting(void)
{
    mmn_set_auto_reconnect(room, 0);  /* a lost peer has left at once */
    printf("dials lost peers: %d\n", mmn_auto_reconnect(room));
}

//: mmn_kick mmn_unban
void moderation(void)
{
    const char *reason = "griefing";
    mmn_kick(room, "mallory", MMN_KICK_BAN, 0, (const uint8_t *)reason, (int32_t)strlen(reason));
    mmn_unban(room, "mallory");  /* lets the id and the key in again */
}

//: mmn_set_max_peers
void limit(void)
{
    mmn_set_max_peers(room, 4);  /* the leader alone; no member is removed */
}

//: mmn_set_join_payload
void payload(void)
{
    mmn_set_join_payload(room, (const uint8_t *)"ticket 4711", 11);  /* before mmn_connect */
}

//: mmn_set_join_requests mmn_accept_join mmn_reject_join
void join_requests(const MmnEvent *event)
{
    mmn_set_join_requests(room, 1);  /* at every member that may come to lead */
    /* then, in the event handler: */
    if (event->kind == MMN_EVENT_JOIN_REQUEST) {
        if (event->length == 11 && memcmp(event->data, "ticket 4711", 11) == 0)
            mmn_accept_join(event->room, event->request);
        else
            mmn_reject_join(event->room, event->request, 1, (const uint8_t *)"no ticket", 9);
    }
}

//: mmn_leader mmn_is_leader mmn_leader_term mmn_leader_epoch mmn_strategy
void leader(void)
{
    const char *id = mmn_leader(room);
    printf("leader: %s\n", id && *id ? id : "none yet");
    if (mmn_is_leader(room)) puts("this member leads");
    printf("term %" PRId64 ", epoch %" PRId64 "\n", mmn_leader_term(room), mmn_leader_epoch(room));
    if (mmn_strategy(room) == MMN_STRATEGY_RAFT) puts("by votes");
}

//: mmn_set_leader mmn_set_auto_election
void choosing(void)
{
    mmn_set_leader(room, "bob");     /* MMN_EVENT_SET_LEADER_RESULT reports the outcome */
    mmn_set_auto_election(room, 1);  /* the members elect another one when bob is lost */
}

//: mmn_set_eligible mmn_set_priority
void electable(void)
{
    mmn_set_eligible(room, 0);   /* a spectator: neither leads nor votes */
    mmn_set_priority(room, 10);  /* preferred when the leader is lost; displaces no living one */
}

//: mmn_transfer_leadership mmn_yield_leadership
void transfer(void)
{
    if (mmn_transfer_leadership(room, "bob") != MMN_OK)  /* to bob */
        mmn_yield_leadership(room);                      /* to any member that can */
}

//: mmn_set_gossip_windows mmn_gossip_windows
void gossip(void)
{
    MmnGossipWindows windows = {.struct_size = sizeof windows};
    mmn_gossip_windows(room, &windows);
    windows.alive_threshold_ms = 4000;
    windows.election_duration_ms = 4000;
    mmn_set_gossip_windows(room, &windows);
}

//: mmn_default_seeded_options mmn_member_state mmn_cluster_version
void seeded(MmnOptions *options)
{
    static MmnSeededOptions settings = {.struct_size = sizeof settings};
    mmn_default_seeded_options(MMN_SEEDED_PROFILE_LAN, &settings);
    settings.seeds = "10.0.0.1:7000\n10.0.0.2:7000\n10.0.0.3:7000";
    options->strategy = MMN_STRATEGY_SEEDED;
    options->quorum_roster = "s1\ns2\ns3";
    options->quorum_policy = MMN_QUORUM_STATIC;
    options->seeded = &settings;
    /* later: */
    if (mmn_member_state(room, "s2") == MMN_MEMBER_UNREACHABLE)
        printf("s2 is away since version %" PRId64 "\n", mmn_cluster_version(room));
}

//: mmn_default_etcd_options mmn_fencing_token mmn_proclaim
void etcd(MmnOptions *options)
{
    static MmnEtcdOptions settings = {.struct_size = sizeof settings};
    mmn_default_etcd_options(&settings);
    settings.endpoints = "http://10.0.0.1:2379\nhttp://10.0.0.2:2379";
    options->strategy = MMN_STRATEGY_ETCD;  /* in the library of `make server` */
    options->etcd = &settings;
    /* later, on the leader: */
    printf("write with token %" PRId64 "\n", mmn_fencing_token(room));
    mmn_proclaim(room, "10.0.0.7:7777");
}

//: mmn_acquire_lock mmn_try_lock mmn_release_lock
void locks(void)
{
    uint64_t request;
    mmn_acquire_lock(room, "shard 3", 5000, &request);  /* waits up to 5 s for the lock */
    mmn_try_lock(room, "shard 4", &request);            /* does not wait */
    /* MMN_EVENT_LOCK_RESULT with this request reports the outcome; then: */
    mmn_release_lock(room, "shard 4");
}

//: mmn_send mmn_broadcast mmn_max_datagram_size
void sending(void)
{
    mmn_send(room, "bob", (const uint8_t *)"hello", 5, 0x0100, NULL);  /* reliable and ordered */
    MmnSendOptions newest = {.struct_size = sizeof newest, .delivery = MMN_DELIVERY_SEQUENCED, .key = 17};
    if ((int32_t)sizeof place <= mmn_max_datagram_size(room, NULL))
        mmn_broadcast(room, place, sizeof place, POSITION, &newest);  /* may be lost; none after a newer one */
}

//: mmn_send_to_leader mmn_broadcast_as_leader
void through_the_leader(void)
{
    if (mmn_is_leader(room))
        mmn_broadcast_as_leader(room, (const uint8_t *)"round 2", 7, 0x0100, NULL);
    else
        mmn_send_to_leader(room, (const uint8_t *)"ready", 5, 0x0100, NULL);
}

//: mmn_set_centralized mmn_centralized mmn_set_auto_forward mmn_auto_forward mmn_forward
void centralized(const MmnEvent *event)
{
    mmn_set_centralized(room, 1);   /* at every member: broadcasts go through the leader */
    mmn_set_auto_forward(room, 0);  /* and wait there for the leader's host */
    /* then, in the leader's event handler: */
    if (event->kind == MMN_EVENT_MESSAGE && mmn_centralized(room) && !mmn_auto_forward(room))
        mmn_forward(room, event->peer, NULL, event->data, event->length, event->msg_type, NULL);
}

//: mmn_set_compression_threshold
void compression(void)
{
    mmn_set_compression_threshold(room, 4096);  /* leaves shorter payloads as they are */
}

//: mmn_default_state_options
void with_a_state(MmnOptions *options)
{
    static MmnStateOptions state = {.struct_size = sizeof state};
    mmn_default_state_options(&state);
    options->state = &state;  /* before mmn_open; the same at all members */
}

//: mmn_submit
void actions(void)
{
    uint64_t request;
    if (mmn_submit(room, (const uint8_t *)"sword", 5, BUY, &request) != MMN_OK)
        fprintf(stderr, "%s\n", mmn_last_error_message());
    /* Every host receives MMN_EVENT_ACTION; this one also MMN_EVENT_ACTION_RESULT with the request. */
}

//: mmn_set_properties mmn_property mmn_property_keys
void properties(void)
{
    MmnPropertyInfo info = {.struct_size = sizeof info};
    const uint8_t *map = mmn_property(room, "map", &info);
    if (map) printf("map: %.*s\n", (int)info.length, (const char *)map);
    MmnPropertyChange change = {
        .struct_size = sizeof change,
        .key = "map",
        .value = (const uint8_t *)"forest",
        .length = 6,
        .expected_version = map ? info.version : 0,  /* only if no other member was faster */
    };
    mmn_set_properties(room, &change, 1, NULL);
    printf("all keys, one per line:\n%s\n", mmn_property_keys(room, NULL));
}

//: mmn_provide_snapshot
void snapshots(const MmnEvent *event)
{
    if (event->kind == MMN_EVENT_SNAPSHOT_WANTED)  /* the state that the actions have made */
        mmn_provide_snapshot(event->room, event->request, saved, sizeof saved);
}

//: mmn_state_info
void figures(void)
{
    MmnStateInfo info = {.struct_size = sizeof info};
    if (mmn_state_info(room, &info) == MMN_OK)
        printf("%" PRIu32 " members, %" PRIu32 " open requests\n", info.members, info.pending);
}

//: mmn_send_transfer mmn_accept_transfer mmn_accept_transfer_in_parts mmn_cancel_transfer
static uint8_t island[1 << 20];             /* stays until the result */
static uint64_t island_from_bob;            /* what arrives there; one at a time */

void send_map(void)
{
    uint64_t transfer;                      /* saved[] is copied */
    if (mmn_send_transfer(room, "bob", (const uint8_t *)saved, sizeof saved, (const uint8_t *)"map", 3, &transfer) != MMN_OK)
        printf("%s\n", mmn_last_error_message());
}

void take_map(const MmnEvent *event)
{
    if (event->kind == MMN_EVENT_TRANSFER_OFFERED) {
        if (event->count <= sizeof island && !island_from_bob && !strcmp(event->peer, "bob")) {
            island_from_bob = event->request;
            mmn_accept_transfer(event->room, event->peer, event->request, island, sizeof island);
        } else if (event->count <= 16 << 20)
            mmn_accept_transfer_in_parts(event->room, event->peer, event->request);
        else
            mmn_cancel_transfer(event->room, event->peer, event->request);
    } else if (event->kind == MMN_EVENT_TRANSFER_PART) {
        printf("%" PRId32 " bytes at %" PRIu64 "\n", event->length, event->index);
    } else if (event->kind == MMN_EVENT_TRANSFER_RESULT) {
        /* Two members may use one number. */
        if (strcmp(event->peer, "bob") || event->request != island_from_bob) return;
        island_from_bob = 0;
        printf(event->success ? "the map is here\n" : "no map: %" PRId32 "\n", event->reason);
    }
}

//: mmn_room_time_ms
void countdown(int64_t starts_at)           /* from a message of the leader: its room time + 3000 */
{
    int64_t left = starts_at - mmn_room_time_ms(room);
    if (left > 0) printf("the round begins in %" PRId64 " ms\n", left);   /* the same everywhere */
}

//: mmn_peer_stats mmn_room_stats
void statistics(void)
{
    MmnPeerStats bob = {.struct_size = sizeof bob};
    if (mmn_peer_stats(room, "bob", &bob) == MMN_OK)
        printf("%.1f ms, %.2f %% lost\n", bob.rtt_us / 1e3, bob.loss_ppm / 1e4);
    MmnRoomStats all = {.struct_size = sizeof all};
    if (mmn_room_stats(room, &all) == MMN_OK)
        printf("%" PRIu64 " broadcasts missed\n", all.missed_broadcasts);
}

//: mmn_simulate_network mmn_simulate_preset
void bad_network(void)
{
    mmn_simulate_network(room, 100, 30, 20);  /* 100 ms, up to 30 ms more, 2 % lost; for tests */
    mmn_simulate_preset(room, "mobile");
}

//: mmn_set_log_stderr mmn_set_log
void logging(void)
{
    mmn_set_log_stderr(MMN_LOG_INFO);                   /* to standard error */
    mmn_set_log(MMN_LOG_WARN, on_log, stderr, NULL);    /* and to a function, on any thread */
}

//: InitializeNetwork InitializeNetworkWithConfig IsNetworkInitialized ShutdownNetwork RegisterReceiveCallback RegisterLeaderChangedCallback RegisterPeerStatusCallback RegisterConnectionResultCallback RegisterReconnectCallback
void classic(ReceiveCallback received, LeaderChangedCallback led, PeerStatusCallback status,
             ConnectionResultCallback result, ReconnectCallback lost, const NetworkConfigFFI *config)
{
    if (InitializeNetwork("alice", "tea") != MMN_OK)  /* or with all settings: */
        InitializeNetworkWithConfig("alice", "tea", config);
    RegisterReceiveCallback(received);
    RegisterLeaderChangedCallback(led);
    RegisterPeerStatusCallback(status);
    RegisterConnectionResultCallback(result);
    RegisterReconnectCallback(lost);
    if (IsNetworkInitialized()) ShutdownNetwork();
}

//: ConnectToPeer DisconnectPeer GetLocalAddr GetLocalPeerId GetSessionId GetPeerCount GetPeerList GetPeerStatus GetPeerRTT SetAutoReconnect IsAutoReconnectEnabled IsMdnsActive
void classic_peers(void)
{
    printf("%s in %s at %s\n", GetLocalPeerId(), GetSessionId(), GetLocalAddr());
    if (!IsMdnsActive()) ConnectToPeer("192.168.1.20:40123");
    printf("%" PRId32 " peers:\n%s\n", GetPeerCount(), GetPeerList());
    if (GetPeerStatus("bob") == MMN_PEER_CONNECTED) printf("%" PRId32 " ms\n", GetPeerRTT("bob"));
    if (IsAutoReconnectEnabled()) SetAutoReconnect(0);
    DisconnectPeer("bob");
}

//: SendToPeer BroadcastMessage SendToLeader SendFromLeader ForwardMessage SetCentralizedMode IsCentralizedMode SetCentralizedAutoForward IsCentralizedAutoForward SetCompressionThreshold
void classic_sends(void)
{
    const uint8_t *hello = (const uint8_t *)"hello";
    SendToPeer("bob", hello, 5, 0x0100, 0);
    BroadcastMessage(hello, 5, 0x0100, 0);
    SendToLeader(hello, 5, 0x0100, 0);
    SendFromLeader(hello, 5, 0x0100, 0);
    if (!IsCentralizedMode()) SetCentralizedMode(1);
    if (IsCentralizedAutoForward()) SetCentralizedAutoForward(0);
    ForwardMessage("bob", NULL, hello, 5, 0x0100, 0);
    SetCompressionThreshold(4096);
}

//: SetLeader GetCurrentLeader IsLeader EnableAutoLeaderElection EnableLogging GetLastErrorCode GetLastErrorMessage
void classic_leader(void)
{
    EnableLogging(1);
    EnableAutoLeaderElection(1);
    if (SetLeader("bob") != MMN_OK) printf("%" PRId32 ": %s\n", GetLastErrorCode(), GetLastErrorMessage());
    const char *id = GetCurrentLeader();
    printf("leader: %s%s\n", id && *id ? id : "none yet", IsLeader() ? ", this member" : "");
}

//: SetStartupGracePeriod GetStartupGracePeriod SetMembershipSampleInterval GetMembershipSampleInterval SetLeaderAliveThreshold GetLeaderAliveThreshold SetLeaderElectionDuration GetLeaderElectionDuration GetMsgExpirationTimeout GetLeadershipDeclarationInterval
void classic_gossip(void)
{
    SetStartupGracePeriod(GetStartupGracePeriod() / 2);
    SetMembershipSampleInterval(GetMembershipSampleInterval() / 2);
    SetLeaderAliveThreshold(GetLeaderAliveThreshold() / 2);
    SetLeaderElectionDuration(GetLeaderElectionDuration() / 2);
    printf("%" PRIu32 " and %" PRIu32 " ms follow from them\n", GetMsgExpirationTimeout(), GetLeadershipDeclarationInterval());
}
