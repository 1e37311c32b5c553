/*
 * A host of ABI version 100: compiled against the header beside it, which never changes (README.md), and run with the library
 * of today. It opens two rooms of its own size of options, links them, and uses what such hosts use: events, sends with
 * options, statistics, a kick, closing. Prints "ok" only when all came true.
 *
 *   gcc -std=gnu11 -Wall -Wextra -Werror tests/abi/old_host_100/old_host_100.c -o old_host_100 -ldl
 *   MMN_LIBRARY=target/release/libmeta_mystia_network.so ./old_host_100
 */
#include "meta_mystia_network.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TYPE = 0x0100, USER_FLAGS = 6, KEY = 7, CHANNEL = 3, EVENT_SECONDS = 20, KICK_CODE = 9, CANARY = 0xa5 };

static struct {
#define MEMBER(result, name, parameters) result (*name) parameters;
    MMN_FUNCTIONS(MEMBER)
} net;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "FAILED: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; last error: %s\n", net.mmn_last_error_message ? net.mmn_last_error_message() : "");
    _exit(1);
}

#define MUST(condition) \
    do { \
        if (!(condition)) fail("line %d: %s does not hold", __LINE__, #condition); \
    } while (0)

static void load(void)
{
    const char *path = getenv("MMN_LIBRARY");
    void *library = dlopen(path ? path : "libmeta_mystia_network.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) fail("%s", dlerror());
#define LOAD(result, name, parameters) \
    *(void **)&net.name = dlsym(library, #name); \
    if (!net.name) fail("the library has no function " #name);
    MMN_FUNCTIONS(LOAD)
    MUST(net.mmn_abi_version() >= MMN_ABI_VERSION && *net.mmn_library_version());
}

/* A struct with memory behind it, which a newer library must leave as it is. */
#define OWN(type)             \
    struct {                  \
        type its;             \
        uint8_t behind[256];  \
    }
#define PREPARE(own) (memset(&(own), CANARY, sizeof(own)), (own).its.struct_size = sizeof(own).its)
#define CHECK(own)                                                                          \
    do {                                                                                    \
        MUST((own).its.struct_size == sizeof(own).its);                                     \
        for (size_t i = 0; i < sizeof(own).behind; i++) MUST((own).behind[i] == CANARY);    \
    } while (0)

/* ------------------------------------------------------------------ two rooms, in poll mode */

static struct member {
    const char *id;
    MmnRoom room;
    int joined, led, reliable, sequenced, left_kicked, room_ended, dropped;
} ann = {.id = "ann"}, ben = {.id = "ben"};

static void on_event(void *user_data, const MmnEvent *event)
{
    struct member *member = user_data;
    /* A newer library may fill in more, never less. */
    MUST(event->struct_size >= sizeof *event);
    MUST(event->room == member->room && event->peer && event->other && event->data);
    switch (event->kind) {
    case MMN_EVENT_JOINED:
        MUST(event->peer_index == net.mmn_peer_index(event->room, event->peer));
        member->joined++;
        break;
    case MMN_EVENT_LEADER_CHANGED: member->led = strcmp(event->peer, "ann") == 0; break;
    case MMN_EVENT_MESSAGE:
        MUST(event->msg_type == TYPE && event->length == 6 && memcmp(event->data, "hello", 6) == 0);
        if (event->delivery == MMN_DELIVERY_RELIABLE_ORDERED) {
            MUST(event->flags == 0 && event->channel == 0);
            member->reliable++;
        } else {
            MUST(event->delivery == MMN_DELIVERY_SEQUENCED && event->flags == USER_FLAGS && event->channel == CHANNEL);
            member->sequenced++;
        }
        break;
    case MMN_EVENT_LEFT: member->left_kicked += event->reason == MMN_LEFT_KICKED && event->code == KICK_CODE; break;
    case MMN_EVENT_ROOM_ENDED: member->room_ended += event->reason == MMN_END_KICKED && event->code == KICK_CODE; break;
    default: break; /* unknown kinds are to be ignored */
    }
}

static void on_drop(void *user_data) { ((struct member *)user_data)->dropped++; }

static void wait_until(const int *happened, const char *what)
{
    time_t until = time(NULL) + EVENT_SECONDS;
    while (!*happened) {
        MUST(net.mmn_poll(ann.room, 64) >= 0 && net.mmn_poll(ben.room, 64) >= 0);
        if (time(NULL) > until) fail("%s: not within %d s", what, EVENT_SECONDS);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void open_room(struct member *member, const char *session)
{
    OWN(MmnOptions) own;
    PREPARE(own);
    MUST(net.mmn_default_options(&own.its) == MMN_OK);
    CHECK(own);
    own.its.dispatch_mode = MMN_DISPATCH_POLL;
    own.its.on_event = on_event;
    own.its.user_data = member;
    own.its.drop_fn = on_drop;
    MUST(net.mmn_open(member->id, session, &own.its, &member->room) == MMN_OK);
    MUST(member->room > 0 && member->room < (MmnRoom)1 << 53 && net.mmn_is_open(member->room) == 1);
    MUST(strcmp(net.mmn_local_id(member->room), member->id) == 0 && strcmp(net.mmn_session_id(member->room), session) == 0);
    own.its.max_connections = 0;
    MmnRoom none = 0;
    MUST(net.mmn_open(member->id, session, &own.its, &none) == MMN_INVALID_ARGUMENT && none == 0);
    MUST(net.mmn_last_error_code() == MMN_INVALID_ARGUMENT && strstr(net.mmn_last_error_message(), "max_connections"));
}

/* ------------------------------------------------------------------ */

static const uint8_t HELLO[] = "hello";

static void send_both(void)
{
    OWN(MmnSendOptions) own;
    memset(&own, 0, sizeof own);
    own.its.struct_size = sizeof own.its;
    own.its.delivery = MMN_DELIVERY_SEQUENCED;
    own.its.channel = CHANNEL;
    own.its.priority = MMN_PRIORITY_HIGH;
    own.its.ttl_ms = 60000;
    own.its.user_flags = USER_FLAGS;
    own.its.key = KEY;
    MUST(net.mmn_max_datagram_size(ben.room, "ann") > 100);
    MUST(net.mmn_send(ben.room, "ann", HELLO, sizeof HELLO, TYPE, NULL) == MMN_OK);
    /* A datagram may be lost. */
    time_t until = time(NULL) + EVENT_SECONDS;
    while (!ann.sequenced && time(NULL) <= until) {
        MUST(net.mmn_broadcast(ben.room, HELLO, sizeof HELLO, TYPE, &own.its) >= 0);
        MUST(net.mmn_poll(ann.room, 64) >= 0);
    }
    wait_until(&ann.reliable, "a message");
    MUST(ann.sequenced && !ben.reliable && !ben.sequenced);
}

static void check_statistics(void)
{
    OWN(MmnPeerStats) peer;
    PREPARE(peer);
    MUST(net.mmn_peer_stats(ann.room, "ben", &peer.its) == MMN_OK);
    CHECK(peer);
    MUST(peer.its.messages_received >= 1 && peer.its.path == MMN_PATH_DIRECT);
    OWN(MmnRoomStats) room;
    PREPARE(room);
    MUST(net.mmn_room_stats(ann.room, &room.its) == MMN_OK);
    CHECK(room);
    MUST(room.its.unlinked_peers == 0 && room.its.missed_broadcasts == 0);
    OWN(MmnGossipWindows) windows;
    PREPARE(windows);
    MUST(net.mmn_gossip_windows(ann.room, &windows.its) == MMN_OK);
    CHECK(windows);
    MUST(windows.its.startup_grace_ms == 15000 && windows.its.election_duration_ms == 5000);
}

static void check_other_options(void)
{
    OWN(MmnSeededOptions) seeded;
    PREPARE(seeded);
    MUST(net.mmn_default_seeded_options(MMN_SEEDED_PROFILE_LAN, &seeded.its) == MMN_OK);
    CHECK(seeded);
    MUST(seeded.its.heartbeat_interval_ms == 200 && seeded.its.is_seed == 0);
    OWN(MmnEtcdOptions) etcd;
    PREPARE(etcd);
    MUST(net.mmn_default_etcd_options(&etcd.its) == MMN_OK);
    CHECK(etcd);
}

static void on_log(void *user_data, uint64_t room, int32_t level, const char *message)
{
    (void)user_data;
    MUST(room >> 53 == 0 && level >= MMN_LOG_ERROR && level <= MMN_LOG_TRACE && *message);
}

int main(void)
{
    load();
    check_other_options();
    MUST(net.mmn_set_log(MMN_LOG_INFO, on_log, NULL, NULL) == MMN_OK);
    char session[64];
    snprintf(session, sizeof session, "an old host %d", (int)getpid());
    open_room(&ann, session);
    open_room(&ben, session);
    MUST(ann.room != ben.room && net.mmn_default_room() == 0);
    MUST(net.mmn_connect(ben.room, net.mmn_local_address(ann.room)) == MMN_OK);
    wait_until(&ann.joined, "a member");
    wait_until(&ben.joined, "the other member");
    MUST(net.mmn_peer_count(ann.room) == 1 && strcmp(net.mmn_peers(ann.room), "ben") == 0);
    MUST(net.mmn_peer_status(ann.room, "ben") == MMN_PEER_CONNECTED && strlen(net.mmn_peer_fingerprint(ann.room, "ben")) == 64);
    MUST(net.mmn_set_leader(ben.room, "ann") == MMN_OK);
    wait_until(&ann.led, "the leader");
    wait_until(&ben.led, "the leader at the other member");
    MUST(net.mmn_is_leader(ann.room) && !net.mmn_is_leader(ben.room) && strcmp(net.mmn_leader(ben.room), "ann") == 0);
    send_both();
    check_statistics();
    MUST(net.mmn_kick(ben.room, "ann", 0, KICK_CODE, NULL, 0) == MMN_NOT_LEADER);
    MUST(net.mmn_kick(ann.room, "ben", MMN_KICK_BAN, KICK_CODE, NULL, 0) == MMN_OK);
    wait_until(&ann.left_kicked, "the end of the session");
    wait_until(&ben.room_ended, "the end of the room of the other member");
    MUST(net.mmn_unban(ann.room, "ben") == MMN_OK);
    MUST(net.mmn_leave(ben.room) == MMN_OK && net.mmn_is_open(ben.room) == 0 && ben.dropped == 0);
    MUST(net.mmn_close(ann.room) == MMN_OK && net.mmn_close(ben.room) == MMN_OK);
    MUST(ann.dropped == 1 && ben.dropped == 1);
    MUST(net.mmn_peer_count(ann.room) == -1 && net.mmn_last_error_code() == MMN_NOT_INITIALIZED);
    MUST(net.mmn_set_log(MMN_LOG_OFF, NULL, NULL, NULL) == MMN_OK);
    puts("ok");
    return 0;
}
