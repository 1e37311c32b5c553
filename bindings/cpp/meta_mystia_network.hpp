// meta_mystia_network from C++17: one room per process, RAII, std::function handlers, exceptions for refused calls.
//
//   mmn::Room room("alice", "tea");                       // linked with -lmeta_mystia_network
//   room.on_message([](const mmn::Message& m) { ... });
//   room.connect("192.168.1.20:40123");
//   room.broadcast("hello");
//
// or, without linking, `mmn::Library library("./libmeta_mystia_network.so"); mmn::Room room(library.api(), "alice", "tea");`.
//
// Handlers run one at a time, in order, on a thread of the library. They may call every function of the room except
// shutdown(). What a handler throws is given to on_handler_error, or printed, and goes no further.
#ifndef META_MYSTIA_NETWORK_HPP
#define META_MYSTIA_NETWORK_HPP

#include <meta_mystia_network.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(_WIN32)
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <dlfcn.h>
#endif

// Every function of the ABI that this layer needs; X-macro, so that linking and loading cannot get out of step.
#define MMN_FUNCTIONS(X)              \
  X(InitializeNetwork)                \
  X(InitializeNetworkWithConfig)      \
  X(ShutdownNetwork)                  \
  X(IsNetworkInitialized)             \
  X(GetLastErrorCode)                 \
  X(GetLastErrorMessage)              \
  X(ConnectToPeer)                    \
  X(DisconnectPeer)                   \
  X(GetLocalAddr)                     \
  X(GetLocalPeerId)                   \
  X(GetSessionId)                     \
  X(GetPeerCount)                     \
  X(GetPeerList)                      \
  X(GetPeerRTT)                       \
  X(GetPeerStatus)                    \
  X(SetLeader)                        \
  X(EnableAutoLeaderElection)         \
  X(GetCurrentLeader)                 \
  X(IsLeader)                         \
  X(BroadcastMessage)                 \
  X(SendToPeer)                       \
  X(SendToLeader)                     \
  X(SendFromLeader)                   \
  X(RegisterReceiveCallback)          \
  X(RegisterLeaderChangedCallback)    \
  X(RegisterPeerStatusCallback)       \
  X(RegisterConnectionResultCallback) \
  X(EnableLogging)                    \
  X(GetAbiVersion)                    \
  X(GetLibraryVersion)                \
  X(DescribeError)

namespace mmn {

// Message types below this one belong to the library.
constexpr std::uint16_t first_user_type = 0x0100;

// The library's codes. New ones are only ever appended, so expect numbers that are not listed here.
enum Code : std::int32_t {
  ok = 0,
  not_initialized = -1,
  already_initialized = -2,
  invalid_argument = -3,
  connection_failed = -4,
  peer_not_found = -5,
  not_leader = -6,
  send_queue_full = -7,
  message_too_large = -8,
  serialization_error = -9,
  session_mismatch = -10,
  duplicate_peer_id = -11,
  version_mismatch = -12,
  max_connections_reached = -13,
  already_connected = -14,
  would_deadlock = -15,
  not_supported = -16,
  authentication_failed = -17,
  rejected = -18,
  timeout = -19,
  policy_mismatch = -20,
  superseded = -21,
  internal_error = -99,
};

enum class PeerStatus : std::int32_t { unknown = -1, connected = 0, disconnected = 1, reconnecting = 2, handshaking = 3 };

// A call was refused. what() is the library's own sentence: it names the argument, its value and what to do.
class Error : public std::runtime_error {
 public:
  Error(std::int32_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
  std::int32_t code() const noexcept { return code_; }

 private:
  std::int32_t code_;
};

// The views are valid during the handler only.
struct Message {
  std::string_view from;
  const std::uint8_t* data; // may be null when size is 0
  std::size_t size;
  std::uint16_t type;
  std::uint8_t flags;

  std::string_view text() const noexcept {
    return size == 0 ? std::string_view() : std::string_view(reinterpret_cast<const char*>(data), size);
  }
};

// What became of one connect(); code -14 already_connected comes with success.
struct ConnectionResult {
  std::string_view address; // as it was given to connect()
  bool success;
  std::int32_t code;
};

using Config = NetworkConfigFFI;

// What a room uses that is given no configuration.
inline Config default_config() noexcept {
  Config config = {};
  config.reconnect_max_ms = 30000;
  config.compression_threshold = 512;
  config.max_message_size = 262144;
  config.heartbeat_interval_ms = 500;
  config.election_timeout_min_ms = 1500;
  config.election_timeout_max_ms = 3000;
  config.reconnect_initial_ms = 1000;
  config.handshake_timeout_ms = 5000;
  config.write_timeout_ms = 5000;
  // 4096 and not the struct's classic 128 and 256: a loading screen must not stop the other players.
  config.send_queue_capacity = 4096;
  config.incoming_queue_capacity = 4096;
  config.max_connections = 64;
  config.keepalive_time_secs = 60;
  config.keepalive_interval_secs = 10;
  config.mdns_port = 15353;
  config.heartbeat_timeout_multiplier = 3;
  config.keepalive_retries = 3;
  config.centralized_auto_forward = 1;
  config.auto_election_enabled = 1;
  config.manual_override_recovery = 0;
  config.tcp_nodelay = 1;
  config.auto_reconnect_enabled = 1;
  config.reconnect_max_retries = 0;
  return config;
}

// The library's functions, either linked or loaded at run time.
struct Api {
#define MMN_MEMBER(name) decltype(&::name) name = nullptr;
  MMN_FUNCTIONS(MMN_MEMBER)
#undef MMN_MEMBER

  // Only a program that uses this needs to link the library.
  static const Api& linked() noexcept {
    static const Api api = [] {
      Api table;
#define MMN_LINK(name) table.name = &::name;
      MMN_FUNCTIONS(MMN_LINK)
#undef MMN_LINK
      return table;
    }();
    return api;
  }
};

// The library loaded at run time; must outlive every room that uses its functions.
class Library {
 public:
  explicit Library(const std::string& path) {
#if defined(_WIN32)
    handle_ = LoadLibraryA(path.c_str());
    if (!handle_) throw std::runtime_error("cannot load " + path + ": error " + std::to_string(GetLastError()));
#else
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) throw std::runtime_error(std::string("cannot load the library: ") + dlerror());
#endif
    try {
#define MMN_RESOLVE(name) api_.name = reinterpret_cast<decltype(api_.name)>(symbol(#name));
      MMN_FUNCTIONS(MMN_RESOLVE)
#undef MMN_RESOLVE
    } catch (...) {
      unload();
      throw;
    }
  }
  ~Library() { unload(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Api& api() const noexcept { return api_; }

 private:
#if defined(_WIN32)
  void* symbol(const char* name) {
    void* found = reinterpret_cast<void*>(GetProcAddress(handle_, name));
#else
  void* symbol(const char* name) {
    void* found = dlsym(handle_, name);
#endif
    if (!found) throw std::runtime_error(std::string("the library has no function ") + name);
    return found;
  }

#if defined(_WIN32)
  void unload() noexcept { FreeLibrary(handle_); }
  HMODULE handle_ = nullptr;
#else
  void unload() noexcept { dlclose(handle_); }
  void* handle_ = nullptr;
#endif
  Api api_;
};

namespace detail {

// A handler that the library's thread may be running while another thread replaces it: the runner keeps its copy alive,
// and the lock is never held while foreign code runs.
template <typename Signature>
class Slot {
 public:
  void set(std::function<Signature> handler) {
    std::shared_ptr<const std::function<Signature>> next;
    if (handler) next = std::make_shared<const std::function<Signature>>(std::move(handler));
    std::lock_guard<std::mutex> lock(mutex_);
    handler_.swap(next); // the old one is destroyed after the lock is released: its captures are foreign code
  }
  std::shared_ptr<const std::function<Signature>> get() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return handler_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const std::function<Signature>> handler_;
};

// The C callbacks carry no user data, and there is one room per process.
struct Handlers {
  Slot<void(const Message&)> message;
  Slot<void(std::string_view)> leader;
  Slot<void(std::string_view, PeerStatus)> peer;
  Slot<void(const ConnectionResult&)> connection;
  Slot<void(std::exception_ptr)> failed;

  // Never destroyed: a room that is still open when the program ends may call until the very end.
  static Handlers& get() {
    static Handlers* handlers = new Handlers;
    return *handlers;
  }
};

inline void surface() noexcept {
  try {
    const std::exception_ptr error = std::current_exception();
    if (const auto handler = Handlers::get().failed.get()) {
      (*handler)(error);
      return;
    }
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& known) {
      std::fprintf(stderr, "meta_mystia_network: an event handler failed: %s\n", known.what());
    } catch (...) {
      std::fprintf(stderr, "meta_mystia_network: an event handler failed\n");
    }
  } catch (...) {
    // Nothing may unwind into the library.
  }
}

template <typename SlotType, typename... Arguments>
void call(const SlotType& slot, Arguments&&... arguments) noexcept {
  try {
    if (const auto handler = slot.get()) (*handler)(std::forward<Arguments>(arguments)...);
  } catch (...) {
    surface();
  }
}

extern "C" {
inline void mmn_detail_on_message(const char* peer, const std::uint8_t* data, std::int32_t length, std::uint16_t type,
                                  std::uint8_t flags) {
  call(Handlers::get().message, Message{peer, data, static_cast<std::size_t>(length), type, flags});
}
inline void mmn_detail_on_leader(const char* leader) { call(Handlers::get().leader, std::string_view(leader)); }
inline void mmn_detail_on_peer(const char* peer, std::int32_t status) {
  call(Handlers::get().peer, std::string_view(peer), static_cast<PeerStatus>(status));
}
inline void mmn_detail_on_connection(const char* address, std::uint8_t success, std::int32_t code) {
  call(Handlers::get().connection, ConnectionResult{address, success != 0, code});
}
}

} // namespace detail

// The room that this process is in. Made: entered. Destroyed: left politely, which takes at most about 2 s.
// Every function may be called from any thread.
class Room {
 public:
  Room(const std::string& peer_id, const std::string& session_id) : Room(Api::linked(), peer_id, session_id) {}
  Room(const std::string& peer_id, const std::string& session_id, const Config& config)
      : Room(Api::linked(), peer_id, session_id, config) {}
  Room(const Api& api, const std::string& peer_id, const std::string& session_id) : api_(&api) {
    check(api.InitializeNetwork(text(peer_id), text(session_id)));
  }
  Room(const Api& api, const std::string& peer_id, const std::string& session_id, const Config& config) : api_(&api) {
    check(api.InitializeNetworkWithConfig(text(peer_id), text(session_id), &config));
  }
  Room(Room&& other) noexcept : api_(std::exchange(other.api_, nullptr)) {}
  Room& operator=(Room&& other) noexcept {
    if (this != &other) {
      leave();
      api_ = std::exchange(other.api_, nullptr);
    }
    return *this;
  }
  ~Room() { leave(); }

  // Leaves the room; afterwards no handler runs, and the object is as if moved from. Waits for a handler that is running, which
  // therefore must not wait for this thread. Throws would_deadlock inside a handler; the room stays open.
  void shutdown() {
    if (!api_) return;
    check(api_->ShutdownNetwork());
    api_ = nullptr;
    forget();
  }

  // Handlers. An empty function unregisters; when the call returns, the old one is not running (unless it makes the call
  // itself) and never runs again. A new handler is told the present first: the leader where one is known ("" is none),
  // and every connected peer. Set on_message within 5 s: until then messages are held, later they are discarded.
  void on_message(std::function<void(const Message&)> handler) {
    const bool wanted = static_cast<bool>(handler);
    // Without an unregistered moment in between, in which messages would be discarded.
    if (wanted) detail::Handlers::get().message.set(std::move(handler));
    check(api_->RegisterReceiveCallback(wanted ? detail::mmn_detail_on_message : nullptr));
    if (!wanted) detail::Handlers::get().message.set(nullptr);
  }
  void on_leader(std::function<void(std::string_view)> handler) {
    check(api_->RegisterLeaderChangedCallback(nullptr));
    const bool wanted = static_cast<bool>(handler);
    detail::Handlers::get().leader.set(std::move(handler));
    if (wanted) check(api_->RegisterLeaderChangedCallback(detail::mmn_detail_on_leader));
  }
  void on_peer(std::function<void(std::string_view, PeerStatus)> handler) {
    check(api_->RegisterPeerStatusCallback(nullptr));
    const bool wanted = static_cast<bool>(handler);
    detail::Handlers::get().peer.set(std::move(handler));
    if (wanted) check(api_->RegisterPeerStatusCallback(detail::mmn_detail_on_peer));
  }
  void on_connection(std::function<void(const ConnectionResult&)> handler) {
    const bool wanted = static_cast<bool>(handler);
    if (wanted) detail::Handlers::get().connection.set(std::move(handler));
    check(api_->RegisterConnectionResultCallback(wanted ? detail::mmn_detail_on_connection : nullptr));
    if (!wanted) detail::Handlers::get().connection.set(nullptr);
  }
  // What a handler threw; without this it is printed to standard error.
  void on_handler_error(std::function<void(std::exception_ptr)> handler) {
    detail::Handlers::get().failed.set(std::move(handler));
  }

  std::string peer_id() const { return string(api_->GetLocalPeerId()); }
  std::string session_id() const { return string(api_->GetSessionId()); }
  // An address that another member can give to connect().
  std::string local_address() const { return string(api_->GetLocalAddr()); }
  // The connected members, without this one, sorted.
  std::vector<std::string> peers() const {
    const std::string list = string(api_->GetPeerList());
    std::vector<std::string> names;
    for (std::size_t from = 0; from < list.size();) {
      const std::size_t end = std::min(list.find('\n', from), list.size());
      names.push_back(list.substr(from, end - from));
      from = end + 1;
    }
    return names;
  }
  // "" when there is none.
  std::string leader() const { return string(api_->GetCurrentLeader()); }
  bool is_leader() const noexcept { return api_->IsLeader() != 0; }
  // -1 for an unknown member and as long as it is not measured.
  std::int32_t rtt_ms(const std::string& peer) const { return api_->GetPeerRTT(text(peer)); }
  PeerStatus status(const std::string& peer) const { return static_cast<PeerStatus>(api_->GetPeerStatus(text(peer))); }

  // Dials "ip:port", "[v6]:port" or "name:port"; the outcome comes to on_connection.
  void connect(const std::string& address) { check(api_->ConnectToPeer(text(address))); }
  void disconnect(const std::string& peer) { check(api_->DisconnectPeer(text(peer))); }
  void set_leader(const std::string& peer) { check(api_->SetLeader(text(peer))); }
  void enable_auto_election(bool enabled) { check(api_->EnableAutoLeaderElection(enabled ? 1 : 0)); }

  // To all connected members, or, where one queue is full (send_queue_full), to none.
  void broadcast(std::string_view data, std::uint16_t type = first_user_type, std::uint8_t flags = 0) {
    check(api_->BroadcastMessage(bytes(data), length(data), type, flags));
  }
  void send(const std::string& peer, std::string_view data, std::uint16_t type = first_user_type, std::uint8_t flags = 0) {
    check(api_->SendToPeer(text(peer), bytes(data), length(data), type, flags));
  }
  // To the leader; a leader that calls it receives the message itself. not_leader when there is none.
  void send_to_leader(std::string_view data, std::uint16_t type = first_user_type, std::uint8_t flags = 0) {
    check(api_->SendToLeader(bytes(data), length(data), type, flags));
  }
  // To all members, as their leader; not_leader when this member is not the leader.
  void send_from_leader(std::string_view data, std::uint16_t type = first_user_type, std::uint8_t flags = 0) {
    check(api_->SendFromLeader(bytes(data), length(data), type, flags));
  }

  // To standard error.
  void enable_logging(bool enabled) { check(api_->EnableLogging(enabled ? 1 : 0)); }
  // The library's name for a code.
  std::string describe(std::int32_t code) const { return api_->DescribeError(code); }
  // The raw functions, for what this layer does not wrap.
  const Api& api() const noexcept { return *api_; }

 private:
  void leave() noexcept {
    if (!api_) return;
    if (api_->ShutdownNetwork() != ok) {
      // Destroyed inside a handler, where leaving is refused. The room stays until the process ends, but silent.
      api_->RegisterReceiveCallback(nullptr);
      api_->RegisterLeaderChangedCallback(nullptr);
      api_->RegisterPeerStatusCallback(nullptr);
      api_->RegisterConnectionResultCallback(nullptr);
    }
    api_ = nullptr;
    forget();
  }

  // The next room starts without the handlers of this one.
  static void forget() noexcept {
    detail::Handlers& handlers = detail::Handlers::get();
    handlers.message.set(nullptr);
    handlers.leader.set(nullptr);
    handlers.peer.set(nullptr);
    handlers.connection.set(nullptr);
    handlers.failed.set(nullptr);
  }

  void check(std::int32_t code) const {
    if (code < 0) throw Error(code, api_->GetLastErrorMessage());
  }
  std::string string(const char* value) const {
    if (!value) throw Error(api_->GetLastErrorCode(), api_->GetLastErrorMessage());
    return value;
  }
  static const char* text(const std::string& value) {
    if (value.find('\0') != std::string::npos) throw Error(invalid_argument, "the text contains a NUL, at which C would cut it off");
    return value.c_str();
  }
  static const std::uint8_t* bytes(std::string_view data) noexcept { return reinterpret_cast<const std::uint8_t*>(data.data()); }
  static std::int32_t length(std::string_view data) {
    if (data.size() > INT32_MAX) throw Error(message_too_large, "the message is longer than 2 GiB");
    return static_cast<std::int32_t>(data.size());
  }

  const Api* api_;
};

} // namespace mmn

#endif // META_MYSTIA_NETWORK_HPP
