/* The declarations of ABI version 5, which had the classic functions, without their comments. Licence: MIT OR Apache-2.0. */
#ifndef META_MYSTIA_NETWORK_H
#define META_MYSTIA_NETWORK_H
#include <stdint.h>
#define MMN_ABI_VERSION 5
#define MMN_OK 0
#define MMN_NOT_INITIALIZED -1
#define MMN_ALREADY_INITIALIZED -2
#define MMN_INVALID_ARGUMENT -3
#define MMN_CONNECTION_FAILED -4
#define MMN_PEER_NOT_FOUND -5
#define MMN_NOT_LEADER -6
#define MMN_SEND_QUEUE_FULL -7
#define MMN_MESSAGE_TOO_LARGE -8
#define MMN_SERIALIZATION_ERROR -9
#define MMN_SESSION_MISMATCH -10
#define MMN_DUPLICATE_PEER_ID -11
#define MMN_VERSION_MISMATCH -12
#define MMN_MAX_CONNECTIONS_REACHED -13
#define MMN_ALREADY_CONNECTED -14
#define MMN_WOULD_DEADLOCK -15
#define MMN_NOT_SUPPORTED -16
#define MMN_AUTHENTICATION_FAILED -17
#define MMN_REJECTED -18
#define MMN_TIMEOUT -19
#define MMN_POLICY_MISMATCH -20
#define MMN_SUPERSEDED -21
#define MMN_INTERNAL_ERROR -99
#define MMN_MAX_PEER_ID_BYTES 64
#define MMN_MAX_SESSION_ID_BYTES 128
#define MMN_MIN_MESSAGE_TYPE 256
#define MMN_PEER_CONNECTED 0
#define MMN_PEER_DISCONNECTED 1
#define MMN_PEER_RECONNECTING 2
#define MMN_PEER_HANDSHAKING 3
#define MMN_RECONNECT_RETRYING 0
#define MMN_RECONNECT_RETURNED 1
#define MMN_RECONNECT_GAVE_UP 2
#define MMN_RECOVERY_HOLD 0
#define MMN_RECOVERY_AUTO_ELECT 1
#define MMN_STRATEGY_RAFT 0
#define MMN_STRATEGY_GOSSIP 1
typedef struct NetworkConfigFFI {
  uint32_t reconnect_max_ms;
  uint32_t compression_threshold;
  uint32_t max_message_size;
  uint16_t heartbeat_interval_ms;
  uint16_t election_timeout_min_ms;
  uint16_t election_timeout_max_ms;
  uint16_t reconnect_initial_ms;
  uint16_t handshake_timeout_ms;
  uint16_t write_timeout_ms;
  uint16_t send_queue_capacity;
  uint16_t incoming_queue_capacity;
  uint16_t max_connections;
  uint16_t keepalive_time_secs;
  uint16_t keepalive_interval_secs;
  uint16_t mdns_port;
  uint8_t heartbeat_timeout_multiplier;
  uint8_t keepalive_retries;
  uint8_t centralized_auto_forward;
  uint8_t auto_election_enabled;
  uint8_t manual_override_recovery;
  uint8_t tcp_nodelay;
  uint8_t auto_reconnect_enabled;
  uint8_t reconnect_max_retries;
} NetworkConfigFFI;
typedef void (*ReceiveCallback)(const char *peer,
                                const uint8_t *data,
                                int32_t length,
                                uint16_t msg_type,
                                uint8_t flags);
typedef void (*LeaderChangedCallback)(const char *leader);
typedef void (*PeerStatusCallback)(const char *peer, int32_t status);
typedef void (*ConnectionResultCallback)(const char *addr, uint8_t success, int32_t code);
typedef void (*ReconnectCallback)(const char *peer, uint8_t status);
#ifdef __cplusplus
extern "C" {
#endif
int32_t RegisterReceiveCallback(ReceiveCallback callback);
int32_t RegisterLeaderChangedCallback(LeaderChangedCallback callback);
int32_t RegisterPeerStatusCallback(PeerStatusCallback callback);
int32_t RegisterConnectionResultCallback(ConnectionResultCallback callback);
int32_t RegisterReconnectCallback(ReconnectCallback callback);
int32_t InitializeNetwork(const char *peer_id,
                          const char *session_id);
int32_t InitializeNetworkWithConfig(const char *peer_id,
                                    const char *session_id,
                                    const struct NetworkConfigFFI *config);
int32_t ShutdownNetwork(void);
uint8_t IsNetworkInitialized(void);
uint8_t IsMdnsActive(void);
int32_t GetLastErrorCode(void);
const char *GetLastErrorMessage(void);
int32_t ConnectToPeer(const char *addr);
int32_t DisconnectPeer(const char *peer_id);
const char *GetLocalAddr(void);
const char *GetLocalPeerId(void);
const char *GetSessionId(void);
int32_t GetPeerCount(void);
const char *GetPeerList(void);
int32_t GetPeerRTT(const char *peer_id);
int32_t GetPeerStatus(const char *peer_id);
int32_t SetAutoReconnect(uint8_t enabled);
uint8_t IsAutoReconnectEnabled(void);
int32_t SetLeader(const char *peer_id);
int32_t EnableAutoLeaderElection(uint8_t enabled);
const char *GetCurrentLeader(void);
uint8_t IsLeader(void);
int32_t SetStartupGracePeriod(uint32_t milliseconds);
uint32_t GetStartupGracePeriod(void);
int32_t SetMembershipSampleInterval(uint32_t milliseconds);
uint32_t GetMembershipSampleInterval(void);
int32_t SetLeaderAliveThreshold(uint32_t milliseconds);
uint32_t GetLeaderAliveThreshold(void);
int32_t SetLeaderElectionDuration(uint32_t milliseconds);
uint32_t GetLeaderElectionDuration(void);
uint32_t GetMsgExpirationTimeout(void);
uint32_t GetLeadershipDeclarationInterval(void);
int32_t BroadcastMessage(const uint8_t *data,
                         int32_t length,
                         uint16_t msg_type,
                         uint8_t flags);
int32_t SendToPeer(const char *peer_id,
                   const uint8_t *data,
                   int32_t length,
                   uint16_t msg_type,
                   uint8_t flags);
int32_t SendToLeader(const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags);
int32_t SendFromLeader(const uint8_t *data,
                       int32_t length,
                       uint16_t msg_type,
                       uint8_t flags);
int32_t ForwardMessage(const char *from,
                       const char *to,
                       const uint8_t *data,
                       int32_t length,
                       uint16_t msg_type,
                       uint8_t flags);
int32_t SetCentralizedMode(uint8_t enabled);
uint8_t IsCentralizedMode(void);
int32_t SetCentralizedAutoForward(uint8_t enabled);
uint8_t IsCentralizedAutoForward(void);
int32_t SetCompressionThreshold(uint32_t bytes);
int32_t EnableLogging(uint8_t enabled);
#ifdef __cplusplus
}
#endif
#define MMN_FUNCTIONS(X) \
  X(int32_t, RegisterReceiveCallback, (ReceiveCallback callback)) \
  X(int32_t, RegisterLeaderChangedCallback, (LeaderChangedCallback callback)) \
  X(int32_t, RegisterPeerStatusCallback, (PeerStatusCallback callback)) \
  X(int32_t, RegisterConnectionResultCallback, (ConnectionResultCallback callback)) \
  X(int32_t, RegisterReconnectCallback, (ReconnectCallback callback)) \
  X(int32_t, InitializeNetwork, (const char *peer_id, const char *session_id)) \
  X(int32_t, InitializeNetworkWithConfig, (const char *peer_id, const char *session_id, const struct NetworkConfigFFI *config)) \
  X(int32_t, ShutdownNetwork, (void)) \
  X(uint8_t, IsNetworkInitialized, (void)) \
  X(uint8_t, IsMdnsActive, (void)) \
  X(int32_t, GetLastErrorCode, (void)) \
  X(const char *, GetLastErrorMessage, (void)) \
  X(int32_t, ConnectToPeer, (const char *addr)) \
  X(int32_t, DisconnectPeer, (const char *peer_id)) \
  X(const char *, GetLocalAddr, (void)) \
  X(const char *, GetLocalPeerId, (void)) \
  X(const char *, GetSessionId, (void)) \
  X(int32_t, GetPeerCount, (void)) \
  X(const char *, GetPeerList, (void)) \
  X(int32_t, GetPeerRTT, (const char *peer_id)) \
  X(int32_t, GetPeerStatus, (const char *peer_id)) \
  X(int32_t, SetAutoReconnect, (uint8_t enabled)) \
  X(uint8_t, IsAutoReconnectEnabled, (void)) \
  X(int32_t, SetLeader, (const char *peer_id)) \
  X(int32_t, EnableAutoLeaderElection, (uint8_t enabled)) \
  X(const char *, GetCurrentLeader, (void)) \
  X(uint8_t, IsLeader, (void)) \
  X(int32_t, SetStartupGracePeriod, (uint32_t milliseconds)) \
  X(uint32_t, GetStartupGracePeriod, (void)) \
  X(int32_t, SetMembershipSampleInterval, (uint32_t milliseconds)) \
  X(uint32_t, GetMembershipSampleInterval, (void)) \
  X(int32_t, SetLeaderAliveThreshold, (uint32_t milliseconds)) \
  X(uint32_t, GetLeaderAliveThreshold, (void)) \
  X(int32_t, SetLeaderElectionDuration, (uint32_t milliseconds)) \
  X(uint32_t, GetLeaderElectionDuration, (void)) \
  X(uint32_t, GetMsgExpirationTimeout, (void)) \
  X(uint32_t, GetLeadershipDeclarationInterval, (void)) \
  X(int32_t, BroadcastMessage, (const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, SendToPeer, (const char *peer_id, const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, SendToLeader, (const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, SendFromLeader, (const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, ForwardMessage, (const char *from, const char *to, const uint8_t *data, int32_t length, uint16_t msg_type, uint8_t flags)) \
  X(int32_t, SetCentralizedMode, (uint8_t enabled)) \
  X(uint8_t, IsCentralizedMode, (void)) \
  X(int32_t, SetCentralizedAutoForward, (uint8_t enabled)) \
  X(uint8_t, IsCentralizedAutoForward, (void)) \
  X(int32_t, SetCompressionThreshold, (uint32_t bytes)) \
  X(int32_t, EnableLogging, (uint8_t enabled))
#endif
