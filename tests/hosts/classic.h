/* The 38 classic functions as hosts of the published library declare them. This is a second copy on purpose, not taken from the
 * generated header: the programs that use it find accidental changes there. */
#ifndef CLASSIC_H
#define CLASSIC_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#define CLASSIC_FILE "meta_mystia_network.dll"
#define CLASSIC_OPEN(path) (void *)LoadLibraryA(path)
#define CLASSIC_SYMBOL(library, name) (void *)GetProcAddress((HMODULE)(library), name)
#else
#include <dlfcn.h>
#define CLASSIC_FILE "libmeta_mystia_network.so"
#define CLASSIC_OPEN(path) dlopen(path, RTLD_NOW | RTLD_LOCAL)
#define CLASSIC_SYMBOL(library, name) dlsym(library, name)
#endif

typedef void (*receive_fn)(const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags);
typedef void (*leader_fn)(const char *leader);
typedef void (*status_fn)(const char *peer, int32_t status);
typedef void (*result_fn)(const char *address, uint8_t success, int32_t code);
typedef void (*reconnect_fn)(const char *peer, uint8_t status);

struct network_config {
    uint32_t reconnect_max_ms, compression_threshold, max_message_size;
    uint16_t heartbeat_interval_ms, election_timeout_min_ms, election_timeout_max_ms, reconnect_initial_ms;
    uint16_t handshake_timeout_ms, write_timeout_ms, send_queue_capacity, incoming_queue_capacity;
    uint16_t max_connections, keepalive_time_secs, keepalive_interval_secs, mdns_port;
    uint8_t heartbeat_timeout_multiplier, keepalive_retries, centralized_auto_forward, auto_election_enabled;
    uint8_t manual_override_recovery, tcp_nodelay, auto_reconnect_enabled, reconnect_max_retries;
};
_Static_assert(sizeof(struct network_config) == 44, "the layout is fixed for ever");

/* The defaults without multicast discovery: only the test's own members join its room. */
#define QUIET_CONFIG \
    {30000, 512, 262144, 500, 1500, 3000, 1000, 5000, 5000, 4096, 4096, 64, 60, 10, 0, 3, 3, 1, 1, 0, 1, 1, 0}

#define CLASSIC_FUNCTIONS(X)                                                                                          \
    X(int32_t, InitializeNetwork, (const char *peer, const char *session))                                            \
    X(int32_t, InitializeNetworkWithConfig, (const char *peer, const char *session, const struct network_config *))   \
    X(int32_t, ShutdownNetwork, (void))                                                                               \
    X(uint8_t, IsNetworkInitialized, (void))                                                                          \
    X(uint8_t, IsMdnsActive, (void))                                                                                  \
    X(int32_t, GetLastErrorCode, (void))                                                                              \
    X(const char *, GetLastErrorMessage, (void))                                                                      \
    X(int32_t, ConnectToPeer, (const char *address))                                                                  \
    X(int32_t, DisconnectPeer, (const char *peer))                                                                    \
    X(const char *, GetLocalAddr, (void))                                                                             \
    X(const char *, GetLocalPeerId, (void))                                                                           \
    X(const char *, GetSessionId, (void))                                                                             \
    X(int32_t, GetPeerCount, (void))                                                                                  \
    X(const char *, GetPeerList, (void))                                                                              \
    X(int32_t, GetPeerRTT, (const char *peer))                                                                        \
    X(int32_t, GetPeerStatus, (const char *peer))                                                                     \
    X(int32_t, SetLeader, (const char *peer))                                                                         \
    X(int32_t, EnableAutoLeaderElection, (uint8_t enabled))                                                           \
    X(const char *, GetCurrentLeader, (void))                                                                         \
    X(uint8_t, IsLeader, (void))                                                                                      \
    X(int32_t, SetCentralizedMode, (uint8_t enabled))                                                                 \
    X(uint8_t, IsCentralizedMode, (void))                                                                             \
    X(int32_t, SetCentralizedAutoForward, (uint8_t enabled))                                                          \
    X(uint8_t, IsCentralizedAutoForward, (void))                                                                      \
    X(int32_t, SetCompressionThreshold, (uint32_t bytes))                                                             \
    X(int32_t, BroadcastMessage, (const uint8_t *data, int32_t length, uint16_t type, uint8_t flags))                 \
    X(int32_t, SendToPeer, (const char *peer, const uint8_t *data, int32_t length, uint16_t type, uint8_t flags))     \
    X(int32_t, SendToLeader, (const uint8_t *data, int32_t length, uint16_t type, uint8_t flags))                     \
    X(int32_t, SendFromLeader, (const uint8_t *data, int32_t length, uint16_t type, uint8_t flags))                   \
    X(int32_t, ForwardMessage, (const char *from, const char *to, const uint8_t *data, int32_t length, uint16_t type, \
                                uint8_t flags))                                                                       \
    X(int32_t, RegisterReceiveCallback, (receive_fn))                                                                 \
    X(int32_t, RegisterLeaderChangedCallback, (leader_fn))                                                            \
    X(int32_t, RegisterPeerStatusCallback, (status_fn))                                                               \
    X(int32_t, RegisterConnectionResultCallback, (result_fn))                                                         \
    X(int32_t, RegisterReconnectCallback, (reconnect_fn))                                                             \
    X(int32_t, SetAutoReconnect, (uint8_t enabled))                                                                   \
    X(uint8_t, IsAutoReconnectEnabled, (void))                                                                        \
    X(int32_t, EnableLogging, (uint8_t enabled))

static struct {
#define CLASSIC_MEMBER(type, name, parameters) type (*name) parameters;
    CLASSIC_FUNCTIONS(CLASSIC_MEMBER)
#undef CLASSIC_MEMBER
} net;

/* Loads the library that MMN_LIBRARY names, with all classic functions; ends the program if one is missing. */
static void *load_classic(void)
{
    const char *path = getenv("MMN_LIBRARY");
    void *library = CLASSIC_OPEN(path ? path : CLASSIC_FILE);
    if (!library) {
#ifdef _WIN32
        fprintf(stderr, "cannot load the library (set MMN_LIBRARY to its path): error %lu\n", GetLastError());
#else
        fprintf(stderr, "cannot load the library (set MMN_LIBRARY to its path): %s\n", dlerror());
#endif
        exit(2);
    }
#define CLASSIC_RESOLVE(type, name, parameters)                        \
    *(void **)&net.name = CLASSIC_SYMBOL(library, #name);              \
    if (!net.name) {                                                   \
        fprintf(stderr, "the library has no function " #name "\n");    \
        exit(2);                                                       \
    }
    CLASSIC_FUNCTIONS(CLASSIC_RESOLVE)
#undef CLASSIC_RESOLVE
    return library;
}

#endif
