// meta_mystia_network from C++17: one room per process, RAII, std::function handlers, exceptions for refused calls.
//
//   mmn::Room room("alice", "tea");                       // linked with -lmeta_mystia_network
//   room.on_message([](const mmn::Message& m) { ... });
//   room.connect("192.168.1.20:40123");
//   room.broadcast("hello");
//
// or, without linking, `mmn::Library library("./libmeta_mystia_network.so"); mmn::Room room(library.api(), "alice", "tea");`.
//
// Handlers run one at a time, in order, on a thread of the library, or, in poll mode (a room made with mmn::Options), inside
// poll(), on the thread that calls it. They may call every function of the room except shutdown() and poll(). An exception from
// a handler goes to on_handler_error, or is printed without one; it never reaches the library.
#ifndef META_MYSTIA_NETWORK_HPP
#define META_MYSTIA_NETWORK_HPP

#include <meta_mystia_network.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(_WIN32)
// Without the macros min and max, and without the old winsock.h, which excludes the winsock2.h of a program that includes it
// later. A program's own definitions stay, and keep their effect for its later includes.
#ifndef NOMINMAX
#define NOMINMAX
#define MMN_UNDEFINE_NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#define MMN_UNDEFINE_WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#ifdef MMN_UNDEFINE_NOMINMAX
#undef NOMINMAX
#undef MMN_UNDEFINE_NOMINMAX
#endif
#ifdef MMN_UNDEFINE_WIN32_LEAN_AND_MEAN
#undef WIN32_LEAN_AND_MEAN
#undef MMN_UNDEFINE_WIN32_LEAN_AND_MEAN
#endif
#else
#include <dlfcn.h>
#include <pthread.h>
#endif

namespace mmn {

// Message types below this one belong to the library.
constexpr std::uint16_t first_user_type = 0x0100;

// -- Generated from src/ffi by `make header`: do not edit.
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
  rate_limited = -22,
  name_not_resolved = -23,
  looking_for_room = -24,
  internal_error = -99,
};

// One of MMN_LEADER_... in a word.
inline const char* describe_leader_reason(std::int32_t number) noexcept {
  switch (number) {
    case MMN_LEADER_UNKNOWN: return "unknown";
    case MMN_LEADER_ELECTED: return "elected";
    case MMN_LEADER_ASSIGNED: return "assigned";
    case MMN_LEADER_TRANSFERRED: return "transferred";
    case MMN_LEADER_FOUND: return "found";
    case MMN_LEADER_LOST: return "lost";
    case MMN_LEADER_LEFT: return "left";
    case MMN_LEADER_RESIGNED: return "resigned";
    default: return "unknown";
  }
}

// One of MMN_MEMBER_... in a word.
inline const char* describe_member_state(std::int32_t number) noexcept {
  switch (number) {
    case MMN_MEMBER_INIT: return "init";
    case MMN_MEMBER_JOINING: return "joining";
    case MMN_MEMBER_ACTIVE: return "active";
    case MMN_MEMBER_UNREACHABLE: return "unreachable";
    case MMN_MEMBER_LEAVING: return "leaving";
    case MMN_MEMBER_REMOVED: return "removed";
    default: return "unknown";
  }
}
// -- End of what is generated.

enum class PeerStatus : std::int32_t { unknown = -1, connected = 0, disconnected = 1, reconnecting = 2, handshaking = 3 };

// A call was refused. what() comes from the library: it names the argument, its value and what to do.
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

// The result of one connect(); code -14 already_connected comes with success.
struct ConnectionResult {
  std::string_view address; // as passed to connect()
  bool success;
  std::int32_t code;
};

// An event of the room. kind is one of MMN_EVENT_..., and determines which other fields are set (see the header).
// The views are valid during the handler only.
struct Event {
  std::uint32_t kind;
  std::string_view peer;   // the member that the event concerns; empty if there is none
  std::string_view other;  // an address, for a change of the leader, the previous leader; or a lock
  std::string_view data;   // the message; the payload of a join request; the data of a kick or a rejection
  std::int32_t reason;     // one of MMN_LEFT_..., MMN_LEADER_..., MMN_END_..., MMN_MEMBER_..., or the number passed to reject_join()
  std::int32_t code;       // a Code, or the number passed to kick()
  bool success;
  std::uint16_t type;
  std::uint8_t flags;
  // MMN_EVENT_LEFT: number of reliable messages for the member that are not known to be delivered; MMN_EVENT_RETURNED: number
  // of messages that it will not get
  std::uint64_t undelivered;
  std::uint64_t missed;       // MMN_EVENT_RETURNED: number of the member's reliable messages that this host will not get
  std::uint64_t request;      // MMN_EVENT_JOIN_REQUEST, _JOIN_WITHDRAWN: for accept_join() and reject_join(); MMN_EVENT_LOCK_RESULT: the lock call
  std::uint64_t term, epoch;
  std::uint8_t channel;   // MMN_EVENT_MESSAGE: as the sender named it
  std::uint8_t delivery;  // MMN_EVENT_MESSAGE: one of MMN_DELIVERY_...
  std::uint32_t peer_index;  // index() of `peer`; 0 for this member and for one that is not in the room
  std::uint16_t found_by;    // MMN_EVENT_DISCOVERY_REFUSED: one of MMN_FOUND_...
  // MMN_EVENT_DATA_DROPPED: number of messages. MMN_EVENT_HOST_SILENT, MMN_EVENT_NO_ROOM_FOUND: milliseconds.
  std::uint64_t count() const noexcept { return undelivered; }
  // MMN_EVENT_LOCK_RESULT with success, and MMN_EVENT_LOCK_LOST: the fencing token of the lock, which `other` names.
  std::uint64_t token() const noexcept { return undelivered; }
};

// Delivery of a message: `Delivery::sequenced(unit)`. The default is the classic send.
struct Delivery {
  std::uint8_t mode = MMN_DELIVERY_RELIABLE_ORDERED;
  std::uint8_t channel = 0;
  std::uint8_t priority = 1;  // 0 to 3; higher priorities go first
  std::uint32_t ttl_ms = 0;   // unreliable and sequenced only; 0 is unlimited
  std::uint64_t key = 0;      // sequenced only

  static Delivery reliable_ordered(std::uint8_t channel = 0) { return of(MMN_DELIVERY_RELIABLE_ORDERED, channel, 0); }
  static Delivery reliable_unordered(std::uint8_t channel = 0) { return of(MMN_DELIVERY_RELIABLE_UNORDERED, channel, 0); }
  static Delivery unreliable(std::uint8_t channel = 0) { return of(MMN_DELIVERY_UNRELIABLE, channel, 0); }
  static Delivery sequenced(std::uint64_t key, std::uint8_t channel = 0) { return of(MMN_DELIVERY_SEQUENCED, channel, key); }

  SendOptions options(std::uint8_t flags) const noexcept {
    SendOptions options = {};
    options.struct_size = sizeof options;
    options.delivery = mode;
    options.channel = channel;
    options.priority = priority;
    options.flags = flags;
    options.ttl_ms = ttl_ms;
    options.key = key;
    return options;
  }

 private:
  static Delivery of(std::uint8_t mode, std::uint8_t channel, std::uint64_t key) {
    Delivery delivery;
    delivery.mode = mode;
    delivery.channel = channel;
    delivery.key = key;
    return delivery;
  }
};

using Config = NetworkConfigFFI;
using Stats = PeerStats;

// The library's functions, either linked or loaded at run time.
struct Api {
#define MMN_MEMBER(result, name, parameters) decltype(&::name) name = nullptr;
  MMN_FUNCTIONS(MMN_MEMBER)
#undef MMN_MEMBER

  // Only a program that uses this needs to link the library.
  static const Api& linked() noexcept {
    static const Api api = [] {
      Api table;
#define MMN_LINK(result, name, parameters) table.name = &::name;
      MMN_FUNCTIONS(MMN_LINK)
#undef MMN_LINK
      return table;
    }();
    return api;
  }
};

// The defaults of a room without a configuration.
inline Config default_config(const Api& api = Api::linked()) noexcept {
  NetworkOptions options = {};
  options.struct_size = sizeof options;
  api.GetDefaultNetworkOptions(&options);
  return options.config;
}

// A new private key for Options::identity_key. A host that keeps it is the same member at every start.
inline std::string generate_identity_key(const Api& api = Api::linked()) {
  std::string key(MMN_IDENTITY_KEY_BYTES, '\0');
  const std::int32_t length = api.GenerateIdentityKey(reinterpret_cast<std::uint8_t*>(&key[0]), MMN_IDENTITY_KEY_BYTES);
  if (length < 0) throw Error(length, api.GetLastErrorMessage());
  return key;
}

// The times of MMN_STRATEGY_GOSSIP, in milliseconds above 0. They belong to the process: they apply from the next window of the
// room on, and to later rooms. The same for all members.
struct GossipWindows {
  // The windows in force.
  explicit GossipWindows(const Api& api = Api::linked())
      : startup_grace_period(api.GetStartupGracePeriod()),
        membership_sample_interval(api.GetMembershipSampleInterval()),
        leader_alive_threshold(api.GetLeaderAliveThreshold()),
        leader_election_duration(api.GetLeaderElectionDuration()) {}
  void set(const Api& api = Api::linked()) const {
    for (const std::int32_t code :
         {api.SetStartupGracePeriod(startup_grace_period), api.SetMembershipSampleInterval(membership_sample_interval),
          api.SetLeaderAliveThreshold(leader_alive_threshold), api.SetLeaderElectionDuration(leader_election_duration)})
      if (code < 0) throw Error(code, api.GetLastErrorMessage());
  }
  std::uint32_t startup_grace_period;        // longest wait at the start for the number of members to settle
  std::uint32_t membership_sample_interval;  // interval between samples of that number
  std::uint32_t leader_alive_threshold;      // time for which a member waits for a declaration of the leader before it proposes itself
  std::uint32_t leader_election_duration;    // time for which it then collects the proposals of others
};

// The settings of MMN_STRATEGY_SEEDED, with the intervals of a profile.
struct Seeded {
  explicit Seeded(std::uint32_t profile = MMN_SEEDED_PROFILE_WAN, const Api& api = Api::linked()) {
    settings.struct_size = sizeof settings;
    const std::int32_t code = api.GetDefaultSeededOptions(profile, &settings);
    if (code < 0) throw Error(code, api.GetLastErrorMessage());
  }
  SeededOptions settings = {};  // the room fills in its pointer
  std::string seeds;            // the addresses of the seeds, one per line
};

// The settings of MMN_STRATEGY_ETCD: the library's defaults, the endpoints of the servers, one per line, and the prefix of the
// keys. "" leaves a field at its default.
struct Etcd {
  explicit Etcd(std::string servers, std::string prefix_of_keys, const Api& api = Api::linked())
      : endpoints(std::move(servers)), prefix(std::move(prefix_of_keys)) {
    settings.struct_size = sizeof settings;
    const std::int32_t code = api.GetDefaultEtcdOptions(&settings);
    if (code < 0) throw Error(code, api.GetLastErrorMessage());
  }
  EtcdOptions settings = {};  // the room fills in its pointers
  std::string endpoints;
  std::string prefix;
  std::string address;  // address at which clients reach this member while it leads
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string user;
  std::string password;
};

// Settings to enter a room: the library's defaults, but in poll mode. Strings are beside `settings`; the room fills in its
// pointers and lengths.
struct Options {
  explicit Options(const Api& api = Api::linked()) {
    settings.struct_size = sizeof settings;
    api.GetDefaultNetworkOptions(&settings);
    settings.dispatch_mode = MMN_DISPATCH_POLL;
  }
  NetworkOptions settings = {};
  std::string bind_address;  // the one address of this machine to use; "" is every address
  std::string secret;        // the room secret, which members must know besides the session id; "" is none
  std::string state_directory;  // directory of the state that must survive the process; "" is none
  std::string quorum_roster;    // the voters of a static quorum, one id per line; else ""
  std::string trace_path;       // a file for a trace of the elections; "" is none
  std::string identity_key;  // an Ed25519 private key in PKCS#8, which keeps this member's identity; "" makes a new one
  std::optional<Seeded> seeded;  // with MMN_STRATEGY_SEEDED
  std::optional<Etcd> etcd;      // with MMN_STRATEGY_ETCD
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
#define MMN_RESOLVE(result, name, parameters) api_.name = reinterpret_cast<decltype(api_.name)>(symbol(#name));
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

// A handler that another thread may replace while the library's thread runs it: the running thread keeps a copy alive, and
// holds no lock while foreign code runs.
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
  Slot<void(const Message&)> message;  // all routes below in one
  Slot<void(std::string_view)> leader;
  Slot<void(bool)> leadership;
  Slot<void(std::string_view, PeerStatus)> peer;
  Slot<void(const ConnectionResult&)> connection;
  Slot<void(const Event&)> event;
  Slot<void(std::exception_ptr)> failed;
  Slot<void(std::int32_t, std::string_view)> log; // of the process, not of a room

  // Routes of messages: by type, and for all other types.
  using Receiver = std::function<void(const Message&)>;
  using Routes = std::map<std::uint16_t, Receiver>;
  std::mutex routes_mutex;
  std::shared_ptr<const Receiver> general;
  std::shared_ptr<const Routes> typed;

  // Never destroyed: a room that is still open when the program ends may call until the very end. A forked child has handlers
  // of its own: another thread of its parent may have held the locks of these.
  static Handlers& get() {
#if !defined(_WIN32)
    static const int watched = pthread_atfork(nullptr, nullptr, [] { present().store(nullptr); });
    (void)watched;
#endif
    Handlers* handlers = present().load();
    if (!handlers) {
      Handlers* made = new Handlers;
      if (present().compare_exchange_strong(handlers, made)) {
        handlers = made;
      } else {
        delete made;
      }
    }
    return *handlers;
  }

 private:
  static std::atomic<Handlers*>& present() {
    static std::atomic<Handlers*> handlers{nullptr};
    return handlers;
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
    // No exception may unwind into the library.
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
inline void mmn_detail_on_leadership(std::uint8_t is_leader) { call(Handlers::get().leadership, is_leader != 0); }
inline void mmn_detail_on_peer(const char* peer, std::int32_t status) {
  call(Handlers::get().peer, std::string_view(peer), static_cast<PeerStatus>(status));
}
inline void mmn_detail_on_connection(const char* address, std::uint8_t success, std::int32_t code) {
  call(Handlers::get().connection, ConnectionResult{address, success != 0, code});
}
inline void mmn_detail_on_event(void*, const NetworkEvent* event) {
  const std::string_view data(reinterpret_cast<const char*>(event->data), static_cast<std::size_t>(event->length));
  call(Handlers::get().event,
       Event{event->kind, event->peer, event->other, data, event->reason, event->code, event->success != 0,
             event->msg_type, event->flags, event->count, event->missed, event->request, event->term, event->epoch,
             event->channel, event->delivery, event->peer_index, event->found_by});
}
inline void mmn_detail_on_log(void*, std::int32_t level, const char* message) {
  call(Handlers::get().log, level, std::string_view(message));
}
}

} // namespace detail

// Passes the library's log up to `level` (MMN_LOG_...) to a handler; an empty one removes it. It runs on any thread, on several
// at a time, and may call only queries.
inline void set_log(std::int32_t level, std::function<void(std::int32_t, std::string_view)> handler,
                    const Api& api = Api::linked()) {
  const bool wanted = static_cast<bool>(handler);
  if (wanted) detail::Handlers::get().log.set(std::move(handler));
  const std::int32_t code = api.RegisterLogCallback(level, wanted ? detail::mmn_detail_on_log : nullptr, nullptr, nullptr);
  if (code < 0) throw Error(code, api.GetLastErrorMessage());
  if (!wanted) detail::Handlers::get().log.set(nullptr);
}

// The room that this process is in. The constructor enters it; the destructor leaves it, which takes at most about 2 s. A
// forked child has no room: there this object does nothing, and its calls are refused until the child makes a room of its own.
// Every function may be called from any thread.
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
  // In poll mode, unless options.settings.dispatch_mode sets another.
  Room(const std::string& peer_id, const std::string& session_id, const Options& options)
      : Room(Api::linked(), peer_id, session_id, options) {}
  Room(const Api& api, const std::string& peer_id, const std::string& session_id, const Options& options) : api_(&api) {
    NetworkOptions settings = options.settings;
    settings.bind_address = options.bind_address.empty() ? nullptr : text(options.bind_address);
    settings.secret = options.secret.empty() ? nullptr : bytes(options.secret);
    settings.secret_length = static_cast<std::uint32_t>(length(options.secret));
    settings.identity_key = options.identity_key.empty() ? nullptr : bytes(options.identity_key);
    settings.identity_key_length = static_cast<std::uint32_t>(length(options.identity_key));
    settings.state_directory = options.state_directory.empty() ? nullptr : text(options.state_directory);
    settings.quorum_roster = options.quorum_roster.empty() ? nullptr : text(options.quorum_roster);
    settings.trace_path = options.trace_path.empty() ? nullptr : text(options.trace_path);
    SeededOptions seeded = {};
    if (options.seeded) {
      seeded = options.seeded->settings;
      seeded.seeds = text(options.seeded->seeds);
      settings.seeded = &seeded;
    }
    EtcdOptions etcd = {};
    if (options.etcd) {
      const auto given = [](const std::string& value) { return value.empty() ? nullptr : text(value); };
      etcd = options.etcd->settings;
      etcd.endpoints = text(options.etcd->endpoints);
      etcd.prefix = text(options.etcd->prefix);
      etcd.address = given(options.etcd->address);
      etcd.ca_file = given(options.etcd->ca_file);
      etcd.cert_file = given(options.etcd->cert_file);
      etcd.key_file = given(options.etcd->key_file);
      etcd.user = given(options.etcd->user);
      etcd.password = given(options.etcd->password);
      settings.etcd = &etcd;
    }
    check(api.InitializeNetworkWithOptions(text(peer_id), text(session_id), &settings));
  }
  Room(Room&& other) noexcept : api_(std::exchange(other.api_, nullptr)), handlers_(other.handlers_) {}
  Room& operator=(Room&& other) noexcept {
    if (this != &other) {
      leave();
      api_ = std::exchange(other.api_, nullptr);
      handlers_ = other.handlers_;
    }
    return *this;
  }
  ~Room() { leave(); }

  // Leaves the room. Afterwards no handler runs, and the object is as if moved from. Waits for a running handler, which
  // therefore must not wait for this thread. Throws would_deadlock inside a handler; the room stays open.
  void shutdown() {
    if (!api_) return;
    if (forked()) {
      api_ = nullptr;
      return;
    }
    check(api_->ShutdownNetwork());
    api_ = nullptr;
    forget();
  }

  // Handlers. An empty function unregisters; when the call returns, the old one is not running (unless it makes the call
  // itself) and never runs again. A new handler first receives the present state: the leader, if one is known ("" is none), and
  // every connected peer. Set on_message within 5 s: until then messages wait, later the library discards them.
  //
  // on_message receives every message whose type has no handler of its own.
  void on_message(std::function<void(const Message&)> handler) {
    std::shared_ptr<const Receiver> general;
    if (handler) general = std::make_shared<const Receiver>(std::move(handler));
    route([&](detail::Handlers& handlers) { handlers.general.swap(general); });
  }
  // Receives the messages of one type, 0x0100 or higher, which on_message then does not receive.
  void on_type(std::uint16_t type, std::function<void(const Message&)> handler) {
    if (type < first_user_type) throw Error(invalid_argument, "the type is below 0x0100, and no host sends it");
    std::shared_ptr<const Routes> typed;
    route([&](detail::Handlers& handlers) {
      Routes routes = handlers.typed ? *handlers.typed : Routes();
      routes.erase(type);
      if (handler) routes.emplace(type, std::move(handler));
      typed = routes.empty() ? nullptr : std::make_shared<const Routes>(std::move(routes));
      handlers.typed.swap(typed);
    });
  }
  void on_leader(std::function<void(std::string_view)> handler) {
    check(api_->RegisterLeaderChangedCallback(nullptr));
    const bool wanted = static_cast<bool>(handler);
    detail::Handlers::get().leader.set(std::move(handler));
    if (wanted) check(api_->RegisterLeaderChangedCallback(detail::mmn_detail_on_leader));
  }
  // Whether this member leads: true and false alternately, each after its on_leader. The first value is true, if it leads
  // already.
  void on_leadership(std::function<void(bool)> handler) {
    check(api_->RegisterLeadershipCallback(nullptr));
    const bool wanted = static_cast<bool>(handler);
    detail::Handlers::get().leadership.set(std::move(handler));
    if (wanted) check(api_->RegisterLeadershipCallback(detail::mmn_detail_on_leadership));
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
  // All events, messages included, in one order; a program that uses it needs no other handler.
  void on_event(std::function<void(const Event&)> handler) {
    const bool wanted = static_cast<bool>(handler);
    if (wanted) detail::Handlers::get().event.set(std::move(handler));
    check(api_->RegisterEventHandler(wanted ? detail::mmn_detail_on_event : nullptr, nullptr, nullptr));
    if (!wanted) detail::Handlers::get().event.set(nullptr);
  }
  // In poll mode, runs the handlers of up to `max` queued events, on this thread, and returns their number. Never waits.
  std::int32_t poll(std::int32_t max = INT32_MAX) {
    const std::int32_t ran = api_->PollEvents(max);
    check(ran);
    return ran;
  }
  // Receives exceptions of handlers; without it they are printed to standard error.
  void on_handler_error(std::function<void(std::exception_ptr)> handler) {
    detail::Handlers::get().failed.set(std::move(handler));
  }

  std::string peer_id() const { return string(api_->GetLocalPeerId()); }
  std::string session_id() const { return string(api_->GetSessionId()); }
  // An address that another member can pass to connect().
  std::string local_address() const { return string(api_->GetLocalAddr()); }
  // All such addresses, the likeliest first, each followed by a blank and the name of its interface.
  std::vector<std::string> local_addresses() const { return lines(string(api_->GetLocalAddresses())); }
  // The connected members, without this one, sorted.
  std::vector<std::string> peers() const {
    return lines(string(api_->GetPeerList()));
  }
  // The connected and the reconnecting members, without this one, sorted.
  std::vector<std::string> members() const { return lines(string(api_->GetMembers())); }
  // The index of a member: a number from 1, from its MMN_EVENT_JOINED to its MMN_EVENT_LEFT, which no earlier member had. 0 for
  // others.
  std::uint32_t index(const std::string& peer) const { return api_->GetPeerIndex(text(peer)); }
  // The member with this index; "" for none.
  std::string peer_at(std::uint32_t index) const { return string_or_empty(api_->GetPeerIdByIndex(index)); }
  // The address at which a member accepts links, for connect(); "" for one that is not in the room.
  std::string address(const std::string& peer) const { return string_or_empty(api_->GetPeerAddress(text(peer))); }
  // The SHA-256 of a key, in 64 hexadecimal digits: of a member's ("" for one that is not in the room), and of this one's.
  std::string fingerprint(const std::string& peer) const { return string_or_empty(api_->GetPeerFingerprint(text(peer))); }
  std::string identity_fingerprint() const { return string(api_->GetIdentityFingerprint()); }
  // The leader; "" when there is none.
  std::string leader() const { return string(api_->GetCurrentLeader()); }
  bool is_leader() const noexcept { return api_->IsLeader() != 0; }
  // The round-trip time; -1 for an unknown member, and until it is measured.
  std::int32_t rtt_ms(const std::string& peer) const { return api_->GetPeerRTT(text(peer)); }
  PeerStatus status(const std::string& peer) const { return static_cast<PeerStatus>(api_->GetPeerStatus(text(peer))); }

  // Dials "ip:port", "[v6]:port" or "name:port"; on_connection receives the outcome.
  void connect(const std::string& address) { check(api_->ConnectToPeer(text(address))); }
  void disconnect(const std::string& peer) { check(api_->DisconnectPeer(text(peer))); }
  // Ends the link with a member, with a reason for its host. Data: at most 3072 bytes.
  void disconnect(const std::string& peer, std::int32_t code, std::string_view data = {}) {
    check(api_->DisconnectPeerEx(text(peer), code, bytes(data), length(data)));
  }
  void set_leader(const std::string& peer) { check(api_->SetLeader(text(peer))); }
  void enable_auto_election(bool enabled) { check(api_->EnableAutoLeaderElection(enabled ? 1 : 0)); }

  // Whether this member may lead. One that may not is an observer: it has no vote and counts for no majority.
  void set_leader_eligible(bool eligible) { check(api_->SetLeaderEligible(eligible ? 1 : 0)); }
  // Transfers the leadership to a member, or to the one that elections prefer; this one leads until that one is elected. Leader
  // only: not_leader. With gossip a leader that yields stops leading at once, and does not lead again for a while; with etcd it
  // goes to the end of the line.
  void transfer_leadership(const std::string& peer) { check(api_->TransferLeadership(text(peer))); }
  void yield_leadership() { check(api_->YieldLeadership()); }
  // Priority of this member in elections: the highest goes first, of equal ones the largest id. 0 is the default.
  void set_election_priority(std::int32_t priority) { check(api_->SetElectionPriority(priority)); }
  // Term of the newest claim to lead, and the number of set_leader() calls that it builds on: compare the epoch first.
  std::int64_t leader_term() const noexcept { return api_->GetLeaderTerm(); }
  std::int64_t leader_epoch() const noexcept { return api_->GetLeaderEpoch(); }
  // The election strategy: one of MMN_STRATEGY_...
  std::int32_t election_strategy() const noexcept { return api_->GetElectionStrategy(); }
  // With MMN_STRATEGY_SEEDED: the state of a member, this one included, one of MMN_MEMBER_...; and the version of the cluster.
  // Else -1.
  std::int32_t member_state(const std::string& peer) const { return api_->GetMemberState(text(peer)); }
  std::int64_t cluster_version() const noexcept { return api_->GetClusterVersion(); }
  // With MMN_STRATEGY_ETCD: the token of this member's leadership, 0 while it does not lead. Else -1.
  std::int64_t fencing_token() const noexcept { return api_->GetFencingToken(); }
  // Sets the text that clients of etcd read of this member while it leads.
  void proclaim(const std::string& value) { check(api_->Proclaim(text(value))); }
  // Locks of etcd. MMN_EVENT_LOCK_RESULT with the returned number reports the outcome. A timeout of 0 is none.
  std::uint64_t acquire_lock(const std::string& name, std::uint32_t timeout_ms = 0) {
    std::uint64_t request = 0;
    check(api_->AcquireLock(text(name), timeout_ms, &request));
    return request;
  }
  std::uint64_t try_lock(const std::string& name) {
    std::uint64_t request = 0;
    check(api_->TryLock(text(name), &request));
    return request;
  }
  void release_lock(const std::string& name) { check(api_->ReleaseLock(text(name))); }
  // Whether the library dials lost members again, or treats every loss as a leave.
  void set_auto_reconnect(bool enabled) { check(api_->SetAutoReconnect(enabled ? 1 : 0)); }
  bool auto_reconnect() const noexcept { return api_->IsAutoReconnectEnabled() != 0; }

  // Removes a member. Leader only: not_leader. Data: at most 3072 bytes.
  void kick(const std::string& peer, std::int32_t code = 0, std::string_view data = {}) {
    check(api_->KickPeer(text(peer), code, bytes(data), length(data)));
  }
  // Removes a member, which may come back unless it is banned.
  void kick_ex(const std::string& peer, bool ban, std::int32_t code = 0, std::string_view data = {}) {
    check(api_->KickPeerEx(text(peer), ban ? MMN_KICK_BAN : 0, code, bytes(data), length(data)));
  }
  // Lifts the ban of an id and of its keys. Leader only; peer_not_found when it is not banned.
  void unban(const std::string& peer) { check(api_->UnbanPeer(text(peer))); }
  // Limits the other members of each member; 0 is no limit. Leader only.
  void set_max_peers(std::uint32_t max_peers) { check(api_->SetMaxPeers(max_peers)); }
  // The payload that the leader's host receives when this member asks to join; at most 16384 bytes.
  void set_join_payload(std::string_view data) { check(api_->SetJoinPayload(bytes(data), length(data))); }
  // Whether this host decides about admission while this member leads: MMN_EVENT_JOIN_REQUEST for every newcomer.
  void enable_join_requests(bool enabled) { check(api_->EnableJoinRequests(enabled ? 1 : 0)); }
  void accept_join(std::uint64_t request) { check(api_->AcceptJoin(request)); }
  void reject_join(std::uint64_t request, std::int32_t code = 0, std::string_view data = {}) {
    check(api_->RejectJoin(request, code, bytes(data), length(data)));
  }

  // Whether broadcasts of this member go through the leader; and whether it relays those of others while it leads.
  void set_centralized(bool enabled) { check(api_->SetCentralizedMode(enabled ? 1 : 0)); }
  bool centralized() const noexcept { return api_->IsCentralizedMode() != 0; }
  void set_centralized_auto_forward(bool enabled) { check(api_->SetCentralizedAutoForward(enabled ? 1 : 0)); }
  bool centralized_auto_forward() const noexcept { return api_->IsCentralizedAutoForward() != 0; }
  // The payload length in bytes above which the library compresses, if that makes it shorter; UINT32_MAX is never.
  void set_compression_threshold(std::uint32_t size) { check(api_->SetCompressionThreshold(size)); }
  // Simulates a bad network, for tests of a game: every packet that this member sends waits lag_ms and up to jitter_ms more (at
  // most 10000 each), and loss_permille packets in a thousand are lost. Three zeros end it.
  void simulate_network(std::uint32_t lag_ms, std::uint32_t jitter_ms, std::uint32_t loss_permille) {
    check(api_->SetNetworkSimulation(lag_ms, jitter_ms, loss_permille));
  }
  // Whether this member is announced in the local network.
  bool discovering() const noexcept { return api_->IsMdnsActive() != 0; }
  // Statistics of the link and the queue to a member.
  Stats stats(const std::string& peer) const {
    Stats figures = {};
    figures.struct_size = sizeof figures;
    check(api_->GetPeerStats(text(peer), &figures));
    return figures;
  }
  // Statistics of the room at this member: members without a link to it, and the broadcasts that they missed.
  RoomStats room_stats() const {
    RoomStats figures = {};
    figures.struct_size = sizeof figures;
    check(api_->GetRoomStats(&figures));
    return figures;
  }
  // Forwards on behalf of `from` to `to`, or to all others if that is empty. Leader only.
  void forward(const std::string& from, const std::string& to, std::string_view data, std::uint16_t type = first_user_type,
               std::uint8_t flags = 0) {
    check(api_->ForwardMessage(text(from), to.empty() ? nullptr : text(to), bytes(data), length(data), type, flags));
  }

  // Sends to all connected members, or, if one queue is full (send_queue_full), to none.
  void broadcast(std::string_view data, std::uint16_t type = first_user_type, std::uint8_t flags = 0) {
    check(api_->BroadcastMessage(bytes(data), length(data), type, flags));
  }
  void send(const std::string& peer, std::string_view data, std::uint16_t type = first_user_type, std::uint8_t flags = 0) {
    check(api_->SendToPeer(text(peer), bytes(data), length(data), type, flags));
  }
  // Sends to all connected members with a delivery, or, if one queue is full (send_queue_full), to none.
  void broadcast(std::string_view data, const Delivery& delivery, std::uint16_t type = first_user_type, std::uint8_t flags = 0) {
    const SendOptions options = delivery.options(0);
    check(api_->BroadcastEx(bytes(data), length(data), type, flags, &options));
  }
  // Sends to the connected members whose queue has room; returns their number. MMN_EVENT_SLOW_PEER names each of the others.
  std::int32_t broadcast_partial(std::string_view data, const Delivery& delivery = {}, std::uint16_t type = first_user_type,
                                 std::uint8_t flags = 0) {
    const SendOptions options = delivery.options(MMN_SEND_PARTIAL);
    const std::int32_t took = api_->BroadcastEx(bytes(data), length(data), type, flags, &options);
    check(took);
    return took;
  }
  void send(const std::string& peer, std::string_view data, const Delivery& delivery, std::uint16_t type = first_user_type,
            std::uint8_t flags = 0) {
    const SendOptions options = delivery.options(0);
    check(api_->SendToPeerEx(text(peer), bytes(data), length(data), type, flags, &options));
  }
  // The longest unreliable message for a member, or for a broadcast, in bytes; -1 when the member is not connected, or none is.
  std::int32_t max_datagram_size(const std::string& peer) const { return api_->GetMaxDatagramSize(text(peer)); }
  std::int32_t max_datagram_size() const { return api_->GetMaxDatagramSize(nullptr); }
  // Sends to the leader; a leader that calls it receives the message itself. not_leader when there is none.
  void send_to_leader(std::string_view data, std::uint16_t type = first_user_type, std::uint8_t flags = 0) {
    check(api_->SendToLeader(bytes(data), length(data), type, flags));
  }
  // Sends to all members, as their leader; not_leader when this member is not the leader.
  void send_from_leader(std::string_view data, std::uint16_t type = first_user_type, std::uint8_t flags = 0) {
    check(api_->SendFromLeader(bytes(data), length(data), type, flags));
  }

  // Turns the log on standard error on or off.
  void enable_logging(bool enabled) { check(api_->EnableLogging(enabled ? 1 : 0)); }
  // The library's name for a code.
  std::string describe(std::int32_t code) const { return api_->DescribeError(code); }
  // The raw functions, for calls without a wrapper here.
  const Api& api() const noexcept { return *api_; }

 private:
  using Receiver = detail::Handlers::Receiver;
  using Routes = detail::Handlers::Routes;

  // Changes the routes of messages. The caller destroys a replaced handler after the lock is released: its captures are foreign
  // code.
  template <typename Change>
  void route(Change change) {
    detail::Handlers& handlers = detail::Handlers::get();
    std::unique_lock<std::mutex> lock(handlers.routes_mutex);
    change(handlers);
    const auto general = handlers.general;
    const auto typed = handlers.typed;
    Receiver receiver;
    if (typed) {
      receiver = [general, typed](const Message& message) {
        const auto found = typed->find(message.type);
        if (found != typed->end()) {
          found->second(message);
        } else if (general) {
          (*general)(message);
        }
      };
    } else if (general) {
      receiver = *general;
    }
    const bool wanted = static_cast<bool>(receiver);
    // Without a moment between two registrations, in which messages would be discarded.
    if (wanted) handlers.message.set(std::move(receiver));
    lock.unlock();
    check(api_->RegisterReceiveCallback(wanted ? detail::mmn_detail_on_message : nullptr));
    if (!wanted) handlers.message.set(nullptr);
  }

  // Whether this process is a child that was forked since: the room belongs to its parent.
  bool forked() const noexcept { return handlers_ != &detail::Handlers::get(); }

  void leave() noexcept {
    if (!api_) return;
    if (forked()) {
      api_ = nullptr;
      return;
    }
    if (api_->ShutdownNetwork() != ok) {
      // Destroyed inside a handler, where leaving is refused. The room stays until the process ends, but calls no handler.
      api_->RegisterReceiveCallback(nullptr);
      api_->RegisterLeaderChangedCallback(nullptr);
      api_->RegisterLeadershipCallback(nullptr);
      api_->RegisterPeerStatusCallback(nullptr);
      api_->RegisterConnectionResultCallback(nullptr);
      api_->RegisterEventHandler(nullptr, nullptr, nullptr);
    }
    api_ = nullptr;
    forget();
  }

  // The next room starts without the handlers of this one.
  static void forget() noexcept {
    detail::Handlers& handlers = detail::Handlers::get();
    std::shared_ptr<const Receiver> general;
    std::shared_ptr<const Routes> typed;
    {
      std::lock_guard<std::mutex> lock(handlers.routes_mutex);
      handlers.general.swap(general);
      handlers.typed.swap(typed);
    }
    handlers.message.set(nullptr);
    handlers.leader.set(nullptr);
    handlers.leadership.set(nullptr);
    handlers.peer.set(nullptr);
    handlers.connection.set(nullptr);
    handlers.event.set(nullptr);
    handlers.failed.set(nullptr);
  }

  void check(std::int32_t code) const {
    if (code < 0) throw Error(code, api_->GetLastErrorMessage());
  }
  std::string string(const char* value) const {
    if (!value) throw Error(api_->GetLastErrorCode(), api_->GetLastErrorMessage());
    return value;
  }
  static std::string string_or_empty(const char* value) { return value ? value : ""; }
  static std::vector<std::string> lines(const std::string& list) {
    std::vector<std::string> names;
    for (std::size_t from = 0; from < list.size();) {
      const std::size_t end = (std::min)(list.find('\n', from), list.size());
      names.push_back(list.substr(from, end - from));
      from = end + 1;
    }
    return names;
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
  const detail::Handlers* handlers_ = &detail::Handlers::get();
};

} // namespace mmn

#endif // META_MYSTIA_NETWORK_HPP
