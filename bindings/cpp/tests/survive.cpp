/*
 * Tests that a C++ host survives the usual actions of hosts, through the RAII layer. Shows each promise with real rooms over
 * loopback and a second process of this program as the partner. Prints "ok NAME" per promise and exits with 0 only when all hold.
 *
 *   g++ -std=c++17 -O1 -g -pthread -Iinclude -Ibindings/cpp bindings/cpp/tests/survive.cpp -o survive -ldl
 *   MMN_LIBRARY=target/release/libmeta_mystia_network.so ./survive [--rounds N] [NAME...]
 *
 * NAME: reload, unregister, shutdown, restart, reentry, rooms, paths, hold, closed, destroyed, version, exceptions, fork, seeded,
 * etcd (default: all); and poll, which starts python3 with the program MMN_GUEST. --rounds: number of shutdowns in `shutdown` (20).
 */
#include <meta_mystia_network.hpp>

#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto event_time = 10s;       // limit for an event that must come
constexpr unsigned test_seconds = 55;  // limit of one test
constexpr int unregister_rounds = 200;
constexpr int restart_rounds = 50;
constexpr int warm_up_rounds = 50;     // until the allocator and the C library have allocated what they keep
constexpr long allowed_growth_kib = 1024;  // over 50 rooms: enough to find a leak of 20 KiB per room, and above the allocator's noise

std::string library_path;
const char* volatile running_test = "start";

[[noreturn]] void fail(const std::string& text) {
  std::cerr << "FAILED " << running_test << ": " << text << std::endl;
  // Not exit(): this may be the library's thread, inside a call that broke its promise.
  _exit(1);
}

void must(bool holds, const char* text, int line) {
  if (!holds) fail("line " + std::to_string(line) + ": " + text + " does not hold");
}
#define MUST(...) must((__VA_ARGS__), #__VA_ARGS__, __LINE__)

// The code of a refused call; 0 if it was not refused.
template <typename Call>
std::int32_t code_of(Call call) {
  try {
    call();
    return 0;
  } catch (const mmn::Error& error) {
    MUST(std::strlen(error.what()) > 0);
    return error.code();
  }
}

// Counts occurrences; another thread waits for them.
class Event {
 public:
  void happened() {
    std::lock_guard<std::mutex> lock(mutex_);
    count_++;
    changed_.notify_all();
  }
  void forget() {
    std::lock_guard<std::mutex> lock(mutex_);
    count_ = 0;
  }
  void wait(int count = 1) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_for(lock, event_time, [&] { return count_ >= count; })) fail("an event did not come in time");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

void on_alarm(int) {
  static const char text[] = "FAILED: a test took too long: ";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0 || write(STDERR_FILENO, running_test, std::strlen(running_test)) < 0 ||
      write(STDERR_FILENO, "\n", 1) < 0) {
    _exit(4);
  }
  _exit(3);
}

// This program in a second process, in a room of its own; ends with this object, and with its parent at the latest.
class Partner {
 public:
  explicit Partner(bool floods) {
    static int number = 0;
    session = "survive-cpp-" + std::to_string(getpid()) + "-" + std::to_string(++number);
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) fail("pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      for (int descriptor : {to[0], to[1], from[0], from[1]}) close(descriptor);
      execl("/proc/self/exe", "survive", "--partner", session.c_str(), floods ? "flood" : "quiet", static_cast<char*>(nullptr));
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    leash_ = to[1];
    char byte;
    while (read(from[0], &byte, 1) == 1 && byte != '\n') address += byte;
    close(from[0]);
    if (address.empty()) fail("the partner did not start");
  }
  ~Partner() {
    close(leash_);
    waitpid(pid_, nullptr, 0);
  }
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;

  std::string session, address;

  static int run(const std::string& session, bool floods) {
    mmn::Library library(library_path);
    mmn::Room room(library.api(), "partner", session);
    room.on_message([](const mmn::Message&) {});
    std::thread([] {
      char byte;
      while (read(STDIN_FILENO, &byte, 1) > 0) {
      }
      _exit(0);
    }).detach();
    std::cout << room.local_address() << std::endl;
    const std::string data(64, 'x');
    for (unsigned count = 0;; count++) {
      if (!floods) pause();
      // The queues must stay full; pauses leave the machine usable for the tested side.
      if (room.peers().empty() || code_of([&] { room.broadcast(data); }) != 0 || count % 32 == 0) std::this_thread::sleep_for(1ms);
    }
  }

 private:
  pid_t pid_;
  int leash_;
};

void wait_for_company(const mmn::Room& room) {
  const auto deadline = Clock::now() + event_time;
  while (room.peers().empty() || room.leader().empty()) {
    if (Clock::now() > deadline) fail("no partner or no leader in time");
    std::this_thread::sleep_for(1ms);
  }
}

void test_unregister() {
  mmn::Library library(library_path);
  Partner partner(true);
  mmn::Room room(library.api(), "main", partner.session);
  room.connect(partner.address);
  wait_for_company(room);

  Event arrived;
  std::atomic<int> turn{-1};
  const auto ran = [&](int which) {
    if (turn != which) fail("a handler ran after it was unregistered");
    arrived.happened();
  };
  const std::vector<std::function<void(int)>> kinds = {
      [&](int which) {
        if (which < 0) room.on_message(nullptr);
        else room.on_message([&, which](const mmn::Message&) { ran(which); });
      },
      [&](int which) {
        if (which < 0) room.on_leader(nullptr);
        else room.on_leader([&, which](std::string_view) { ran(which); });
      },
      [&](int which) {
        if (which < 0) room.on_peer(nullptr);
        else room.on_peer([&, which](std::string_view, mmn::PeerStatus) { ran(which); });
      },
      [&](int which) {
        if (which < 0) return room.on_connection(nullptr);
        room.on_connection([&, which](const mmn::ConnectionResult&) { ran(which); });
        // Messages arrive by themselves, and every new handler receives the present state; connection results need a call.
        room.connect(partner.address);
        room.connect(partner.address);
      },
  };
  for (const auto& set_handler : kinds) {
    for (int round = 0; round < unregister_rounds; round++) {
      arrived.forget();
      turn = round; // every round has its own handler, so that a call that is rounds too late is noticed, too
      set_handler(round);
      // Every fourth round at once, else as soon as events arrive.
      if (round % 4 != 3) arrived.wait();
      set_handler(-1);
      turn = -1;
    }
  }
  room.shutdown();
}

// With a raw handler: the layer clears its handlers when a room ends, which would hide a late call.
std::atomic<bool> room_is_open{false};
Event flowing;

void on_raw_event(void*, const MmnEvent* event) {
  if (!room_is_open) fail("a handler ran after the room was shut down");
  if (event->kind == MMN_EVENT_MESSAGE) flowing.happened();
}

void test_shutdown(int rounds) {
  mmn::Library library(library_path);
  const mmn::Api& api = library.api();
  Partner partner(true);
  for (int round = 0; round < rounds; round++) {
    flowing.forget();
    room_is_open = true;
    mmn::Room room(api, "main-" + std::to_string(round), partner.session);
    const MmnRoom number = room.number();
    MUST(api.mmn_set_event_handler(number, on_raw_event, nullptr, nullptr) == 0);
    MUST(api.mmn_take_messages(number) == 0);
    room.connect(partner.address);
    flowing.wait(20);
    for (int i = 0; i < 8; i++) room.broadcast("bye");
    room.connect(partner.address);
    // A third of them by call, a third after leave(), and a third by leaving the scope of a room.
    if (round % 3 == 1) room.leave();
    if (round % 3) {
      room.shutdown();
    } else {
      mmn::Room gone(std::move(room));
    }
    room_is_open = false;
    // Time for a late call to show itself.
    std::this_thread::sleep_for(2ms);
    MUST(api.mmn_is_open(number) == 0);
  }
}

struct Usage {
  long rss_kib = 0, threads = 0, descriptors = 0;

  static Usage now() {
    Usage usage;
    std::ifstream status("/proc/self/status");
    for (std::string key; status >> key;) {
      if (key == "VmRSS:") status >> usage.rss_kib;
      if (key == "Threads:") status >> usage.threads;
    }
    usage.descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
    return usage;
  }

  void must_not_have_grown_since(const Usage& before) {
    // The kernel counts a joined thread for a moment longer.
    for (int tries = 0; threads > before.threads && tries < 500; tries++) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      threads = now().threads;
    }
    std::cout << "   memory " << rss_kib - before.rss_kib << " KiB (allowed " << allowed_growth_kib << "), threads "
              << threads - before.threads << ", descriptors " << descriptors - before.descriptors << std::endl;
    if (rss_kib - before.rss_kib > allowed_growth_kib) fail("memory grew");
    if (threads > before.threads) fail("threads grew");
    if (descriptors > before.descriptors) fail("descriptors grew");
  }
};

void test_restart() {
  mmn::Library library(library_path);
  Usage before;
  for (int round = 0; round < warm_up_rounds + restart_rounds; round++) {
    if (round == warm_up_rounds) before = Usage::now();
    mmn::Room room(library.api(), "main", "survive-alone");
    room.on_message([](const mmn::Message&) {});
    room.on_leader([](std::string_view) {});
    MUST(!room.local_address().empty());
  }
  Usage::now().must_not_have_grown_since(before);
}

bool is_mapped() {
  const std::string file = std::filesystem::canonical(library_path);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(file) != std::string::npos) return true;
  }
  return false;
}

void test_reload() {
  Partner partner(false);
  const auto reload = [&](bool in_own_thread) {
    mmn::Library library(library_path);
    const auto one_room = [&] {
      mmn::Room room(library.api(), "main", partner.session);
      Event joined;
      room.on_peer([&](std::string_view, mmn::PeerStatus status) {
        if (status == mmn::PeerStatus::connected) joined.happened();
      });
      room.connect(partner.address);
      joined.wait();
      room.shutdown(); // before `joined` is destroyed
    };
    if (in_own_thread) std::thread(one_room).join();
    else one_room();
  };
  Usage before;
  for (int round = 0; round < warm_up_rounds + restart_rounds; round++) {
    if (round == warm_up_rounds) before = Usage::now();
    reload(true);
    if (is_mapped()) fail("dlclose left the library mapped");
  }
  Usage::now().must_not_have_grown_since(before);
  // A thread that received a string keeps the library mapped until it ends: the string must stay valid.
  for (int round = 0; round < 5; round++) reload(false);
}

void test_reentry() {
  mmn::Library library(library_path);
  Partner partner(true);
  mmn::Room room(library.api(), "main", partner.session);
  const mmn::Api& api = library.api();
  constexpr int kinds = 4;
  Event reentered[kinds];
  std::atomic<bool> begun[kinds] = {};
  std::function<void()> set_handlers;
  std::mutex others_mutex;
  std::vector<mmn::Room> others;  // opened inside handlers, where none can be closed

  // Every function, once in a handler of every kind.
  const auto call_everything = [&](int kind) {
    if (begun[kind].exchange(true)) return;
    const auto allowed = [](std::int32_t code, std::initializer_list<std::int32_t> codes) {
      return std::find(codes.begin(), codes.end(), code) != codes.end();
    };
    MUST(code_of([&] { room.shutdown(); }) == mmn::would_deadlock);
    MUST(api.mmn_last_error_code() == mmn::would_deadlock);
    MUST(room.is_open());
    {
      const std::lock_guard<std::mutex> lock(others_mutex);
      others.emplace_back(api, "other-" + std::to_string(kind), partner.session + "-other");
      MUST(others.back().is_open() && others.back().number() != room.number());
      MUST(code_of([&] { others.back().shutdown(); }) == mmn::would_deadlock);
      others.back().leave();
      MUST(!others.back().is_open());
    }
    room.connect(partner.address);
    room.disconnect("unknown");
    MUST(!room.local_address().empty());
    MUST(room.peer_id() == "main");
    MUST(room.session_id() == partner.session);
    MUST(api.mmn_peer_count(room.number()) >= 0);
    room.peers();
    room.rtt_ms("partner");
    MUST(room.status("unknown") == mmn::PeerStatus::unknown);
    room.set_leader("main");
    room.enable_auto_election(true);
    room.leader();
    room.is_leader();
    room.broadcast("x");
    // The partner fills this host's queue while the handler runs.
    MUST(allowed(code_of([&] { room.send("main", "x"); }), {0, mmn::send_queue_full}));
    MUST(allowed(code_of([&] { room.send_to_leader("x"); }), {0, mmn::peer_not_found, mmn::not_leader, mmn::send_queue_full}));
    MUST(allowed(code_of([&] { room.send_from_leader("x"); }), {0, mmn::not_leader}));
    mmn::set_log_stderr(MMN_LOG_OFF, api);
    MUST(api.mmn_abi_version() >= MMN_ABI_VERSION);
    MUST(std::strlen(api.mmn_library_version()) > 0);
    MUST(!room.describe(mmn::would_deadlock).empty());
    room.on_message(nullptr);
    room.on_leader(nullptr);
    room.on_peer(nullptr);
    room.on_connection(nullptr);
    set_handlers();
    reentered[kind].happened();
  };
  set_handlers = [&] {
    room.on_leader([&](std::string_view) { call_everything(1); });
    room.on_peer([&](std::string_view, mmn::PeerStatus) { call_everything(2); });
    room.on_connection([&](const mmn::ConnectionResult&) { call_everything(3); });
    room.on_message([&](const mmn::Message&) { call_everything(0); });
  };
  room.connect(partner.address);
  set_handlers();
  for (Event& event : reentered) event.wait();
  room.shutdown();
  MUST(others.size() == kinds);
}

mmn::Options on_loopback(const mmn::Api& api) {
  mmn::Options options(api);
  options.bind_address = "127.0.0.1";
  options.settings.dispatch_mode = MMN_DISPATCH_THREAD;
  return options;
}

// Two rooms of this process are members of one room, a third is alone in another.
void test_rooms() {
  mmn::Library library(library_path);
  const mmn::Api& api = library.api();
  const std::string session = "survive-cpp-" + std::to_string(getpid()) + "-rooms";
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> came;  // for each room
  std::map<std::string, std::vector<std::uint32_t>> kinds;
  Event joined, received, answered, ended;
  MmnRoom numbers[3] = {};
  const auto options_of = [&](const std::string& name, int index) {
    mmn::Options options = on_loopback(api);
    options.on_event = [&, name, index](const mmn::Event& event) {
      const std::lock_guard<std::mutex> lock(mutex);
      MUST(event.room > 0 && (numbers[index] == 0 || event.room == numbers[index]));
      numbers[index] = event.room;
      kinds[name].push_back(event.kind);
      if (event.kind == MMN_EVENT_JOINED) joined.happened();
      event.visit([&](const mmn::Message& message) {
        came[name].push_back(std::string(message.from) + " " + std::string(message.data) + " " + std::to_string(message.flags));
        received.happened();
      });
    };
    return options;
  };
  mmn::Room alice(api, "alice", session, options_of("alice", 0));
  mmn::Room bob(api, "bob", session, options_of("bob", 1));
  mmn::Room alone(api, "alice", session + "-other", options_of("alone", 2));
  MUST(alice.number() != bob.number() && bob.number() != alone.number() && alice.number() != alone.number());
  bob.on_connection([&](const mmn::ConnectionResult& result) {
    MUST(result.success && result.code == mmn::ok && result.peer == "alice" && result.reason == 0);
    answered.happened();
  });
  bob.connect(alice.local_address());
  joined.wait(2);
  answered.wait();
  MUST(alice.peers() == std::vector<std::string>{"bob"} && bob.peers() == std::vector<std::string>{"alice"});
  MUST(alone.peers().empty() && alone.peer_id() == "alice" && alone.session_id() == session + "-other");

  mmn::SendOptions urgent = mmn::SendOptions::reliable_ordered(3);
  urgent.priority = MMN_PRIORITY_HIGHEST;
  urgent.user_flags = 6;
  alice.send("bob", "to bob", mmn::first_user_type, urgent);
  bob.broadcast("to all");
  alone.send("alice", "to myself");
  MUST(code_of([&] { alone.send("bob", "x"); }) == mmn::peer_not_found);
  received.wait(3);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    MUST(came["bob"] == std::vector<std::string>{"alice to bob 6"});
    MUST(came["alice"] == std::vector<std::string>{"bob to all 0"});
    MUST(came["alone"] == std::vector<std::string>{"alice to myself 0"});
    MUST(numbers[0] == alice.number() && numbers[1] == bob.number() && numbers[2] == alone.number());
  }

  // A new handler of all events begins with the present state, and the others receive no repetition of it.
  std::vector<std::string> peers_again;
  Event present, by_peer;
  alice.on_peer([&](std::string_view peer, mmn::PeerStatus status) {
    MUST(peer == "bob" && status == mmn::PeerStatus::connected);
    by_peer.happened();
  });
  by_peer.wait();
  alice.on_event([&](const mmn::Event& event) {
    if (const auto joined = event.as<mmn::PeerJoined>()) {
      MUST(joined->peer == "bob" && joined->peer_index == 1 && event.room == alice.number());
      MUST(!event.as<mmn::PeerLeft>() && event.raw().peer_index == 1);
      present.happened();
    }
    if (const auto left = event.as<mmn::PeerLeft>()) {
      MUST(left->reason == MMN_LEFT_KICKED || left->reason == MMN_LEFT_LEFT);
      MUST(std::string(mmn::describe_left_reason(left->reason)) == (left->reason == MMN_LEFT_KICKED ? "kicked" : "left"));
      ended.happened();
    }
  });
  present.wait();
  alice.on_peer(nullptr);

  // The end of one room leaves the others open; a kick without a ban lets the member come back.
  alice.set_leader("alice");
  for (const auto deadline = Clock::now() + event_time; !alice.is_leader(); std::this_thread::sleep_for(1ms)) MUST(Clock::now() < deadline);
  alice.kick("bob", 5, "back soon");
  ended.wait();
  bob.shutdown();
  MUST(!bob.is_open() && alice.is_open() && alone.is_open());
  mmn::Room again(api, "bob", session, on_loopback(api));
  Event back;
  alice.on_event([&](const mmn::Event& event) {
    if (event.kind == MMN_EVENT_JOINED) back.happened();
  });
  again.connect(alice.local_address());
  back.wait();

  // A room that was assigned to ends first.
  const MmnRoom first = alone.number();
  alone = std::move(again);
  MUST(api.mmn_is_open(first) == 0 && alone.peer_id() == "bob");
  alice.shutdown();
  alone.shutdown();
  for (const auto& [name, of_room] : kinds) {
    MUST(std::count(of_room.begin(), of_room.end(), MMN_EVENT_JOINED) == (name == "alone" ? 0 : 1));
  }
}

// Codes, and a room that is to meet others at a relay.
void test_codes() {
  mmn::Library library(library_path);
  const mmn::Api& api = library.api();
  const std::string code = mmn::generate_room_code(api);
  MUST(code.size() == MMN_ROOM_CODE_BYTES - 1 && code[4] == '-' && code[9] == '-' && code != mmn::generate_room_code(api));
  std::string typed = " " + code + "\n";
  for (char& letter : typed) letter = letter == '-' ? ' ' : static_cast<char>(std::tolower(letter));
  MUST(mmn::normalize_room_code(typed, api) == code);
  MUST(mmn::normalize_room_code("Ｋ７ＱＭ—3xp9 trwf", api) == "K7QM-3XP9-TRWF");
  MUST(code_of([&] { mmn::normalize_room_code("K7QM-3XP9-TRWG", api); }) == mmn::invalid_argument);
  mmn::Options options(api);
  options.bind_address = "127.0.0.1";
  options.relays = "127.0.0.1:9\n[::1]:9 token=000g40r40m30e209185gr38e1w";
  options.settings.paths = MMN_PATHS_RELAYED;
  MUST(code_of([&] { mmn::Room(api, "ann", "tea", options); }) == mmn::invalid_argument);
  mmn::Room room(api, "ann", typed, options);
  MUST(room.session_id() == code);
  MUST(code_of([&] { room.connect("127.0.0.1:9"); }) == mmn::not_supported);
  room.shutdown();
  options.settings.port_mapping = MMN_PORT_MAPPING_ON;
  MUST(code_of([&] { mmn::Room(api, "ann", code, options); }) == mmn::invalid_argument);
  options.settings.port_mapping = MMN_PORT_MAPPING_OFF;
  options.turn = "turn:127.0.0.1:9 username=u";
  MUST(code_of([&] { mmn::Room(api, "ann", code, options); }) == mmn::invalid_argument);
  options.turn.clear();
  options.relays.clear();
  MUST(code_of([&] { mmn::Room(api, "ann", code, options); }) == mmn::invalid_argument);
}

// A browser lists a room by its card; its handler may fail.
void test_browse() {
  mmn::Library library(library_path);
  const mmn::Api& api = library.api();
  const std::string game = "survive-cpp-" + std::to_string(getpid());
  MUST(code_of([&] { mmn::Browser(api, "", [](const mmn::ListedRoom&) {}); }) == mmn::invalid_argument);
  std::vector<mmn::ListedRoom> seen;
  std::int32_t refused = 0;
  mmn::Browser browser(
      api, game,
      [&](const mmn::ListedRoom& room) {
        refused = api.mmn_browse_close(browser.number());
        seen.push_back(room);
        throw std::runtime_error("intended by the test");
      },
      MMN_DISPATCH_POLL);
  mmn::Options options = on_loopback(api);
  options.settings.entry = MMN_ENTRY_CREATE;
  mmn::Room room(api, "ann", game, options);
  mmn::Card card;
  card.game = game;
  card.name = "bell\a";
  MUST(code_of([&] { room.show_card(card); }) == mmn::invalid_argument);
  card.name = "Ann's room";
  card.data = std::string(401, 'x');
  MUST(code_of([&] { room.show_card(card); }) == mmn::invalid_argument);
  card.data = std::string("\0map", 4);
  card.is_open = true;
  card.max_players = 4;
  const auto until_reported = [&] {
    for (const auto end = std::chrono::steady_clock::now() + event_time; browser.poll() == 0; std::this_thread::sleep_for(1ms)) {
      MUST(std::chrono::steady_clock::now() < end);
    }
  };
  room.show_card(card);
  until_reported();
  MUST(seen.size() == 1 && seen[0].change == mmn::ListChange::found && seen[0].name == card.name && seen[0].data == card.data);
  MUST(seen[0].session_id == game && seen[0].players == 1 && seen[0].max_players == 4 && !seen[0].needs_secret);
  MUST(refused == mmn::would_deadlock);
  room.hide_card();
  until_reported();
  MUST(seen.back().change == mmn::ListChange::gone && seen.back().id == seen[0].id);
}

// The guests of a star reach each other through its host.
void test_paths() {
  mmn::Library library(library_path);
  const mmn::Api& api = library.api();
  const std::string session = "survive-cpp-" + std::to_string(getpid()) + "-paths";
  Event joined;
  const auto in_star = [&](std::uint32_t host_mode) {
    mmn::Options options = on_loopback(api);
    options.settings.topology = MMN_TOPOLOGY_STAR;
    options.settings.host_mode = host_mode;
    options.on_event = [&](const mmn::Event& event) {
      if (event.kind == MMN_EVENT_JOINED) joined.happened();
    };
    return options;
  };
  mmn::Room host(api, "host", session, in_star(MMN_HOST_MODE_HOST));
  mmn::Room ann(api, "ann", session, in_star(MMN_HOST_MODE_GUEST));
  mmn::Room bob(api, "bob", session, in_star(MMN_HOST_MODE_GUEST));
  for (mmn::Room* guest : {&ann, &bob}) guest->connect(host.local_address());
  joined.wait(6);
  MUST(ann.path("bob") == MMN_PATH_THROUGH_LEADER && bob.path("ann") == MMN_PATH_THROUGH_LEADER);
  MUST(ann.carrier("bob") == "host" && bob.carrier("ann") == "host");
  MUST(ann.stats("bob").path == MMN_PATH_THROUGH_LEADER && ann.stats("host").path == MMN_PATH_DIRECT);
  MUST(ann.path("host") == MMN_PATH_DIRECT && ann.carrier("host").empty());
  MUST(ann.path("nobody") == mmn::peer_not_found && ann.path("ann") == mmn::peer_not_found && ann.carrier("nobody").empty());
  MUST(code_of([&] { ann.path(""); }) == mmn::invalid_argument);
  MUST(ann.public_address().empty());
}

// In poll mode: more messages than a queue holds wait for their first handler, and none runs after the room.
void test_hold_in_a_queue(const mmn::Library& library, const std::string& session) {
  constexpr int count = 5000;
  mmn::Options options(library.api());
  options.bind_address = "127.0.0.1";
  mmn::Room alice(library.api(), "alice", session, options);
  options.settings.dispatch_mode = MMN_DISPATCH_THREAD;
  options.settings.send_queue_capacity = 2 * count;
  mmn::Room bob(library.api(), "bob", session, options);
  const auto until = [&](const auto& holds) {
    for (const auto deadline = Clock::now() + event_time; !holds(); std::this_thread::sleep_for(1ms)) {
      MUST(Clock::now() < deadline);
      alice.poll();
    }
  };
  int next = 0;
  bob.connect(alice.local_address());
  until([&] { return !bob.peers().empty(); });
  for (int sent = 0; sent < count; sent++) bob.send("alice", std::to_string(sent));
  // Time for those to arrive for which there is room.
  until([&, arrived = Clock::now() + 300ms] { return Clock::now() > arrived; });
  alice.on_message([&](const mmn::Message& message) { MUST(message.text() == std::to_string(next++)); });
  until([&] { return next == count; });
  bob.send("alice", std::to_string(count));
  until([&] { return alice.stats("bob").messages_received > count; });
  alice.shutdown();
  MUST(next == count || next == count + 1);
}

// Messages before the first handler wait for it, and the present state precedes them.
void test_hold() {
  mmn::Library library(library_path);
  const std::string session = "survive-cpp-" + std::to_string(getpid()) + "-hold";
  mmn::Room alice(library.api(), "alice", session, on_loopback(library.api()));
  mmn::Room bob(library.api(), "bob", session, on_loopback(library.api()));
  bob.connect(alice.local_address());
  wait_for_company(bob);
  for (int i = 0; i < 10; i++) bob.send("alice", std::to_string(i), static_cast<std::uint16_t>(mmn::first_user_type + i % 2));
  std::this_thread::sleep_for(300ms);  // time for them to arrive
  std::mutex mutex;
  std::string seen;
  Event came;
  alice.on_peer([&](std::string_view peer, mmn::PeerStatus) {
    const std::lock_guard<std::mutex> lock(mutex);
    seen += std::string(peer) + " ";
    came.happened();
  });
  alice.on_message([&](const mmn::Message& message) {
    const std::lock_guard<std::mutex> lock(mutex);
    seen += message.text();
    came.happened();
  });
  came.wait(11);
  // Before `seen` is destroyed.
  alice.shutdown();
  MUST(seen == "bob 0123456789");
  test_hold_in_a_queue(library, session + "-queue");
}

// Calls on a room that was shut down, or moved from, are refused, also after the library is gone.
void test_transfers() {
  mmn::Library library(library_path);
  const mmn::Api& api = library.api();
  const std::string session = "survive-cpp-" + std::to_string(getpid()) + "-transfers";
  const std::string map(1000000, 'm');
  std::string buffer(map.size(), ' '), parts;
  Event joined, ended, refused;
  std::unique_ptr<mmn::Room> alice;
  mmn::Options options = on_loopback(api);
  options.on_event = [&](const mmn::Event& event) {
    event.visit([&](const mmn::TransferOffered& offered) {
      MUST(offered.from == "bob" && offered.size == map.size());
      const std::string from(offered.from);
      if (offered.tag == "buffer") alice->accept_transfer(from, offered.transfer, &buffer[0], static_cast<std::int32_t>(buffer.size()));
      else if (offered.tag == "parts") alice->accept_transfer_in_parts(from, offered.transfer);
      else alice->cancel_transfer(from, offered.transfer);
    });
    event.visit([&](const mmn::TransferPart& part) {
      MUST(part.offset == parts.size());
      parts += part.data;
    });
  };
  alice = std::make_unique<mmn::Room>(api, "alice", session, options);
  mmn::Options senders = on_loopback(api);
  senders.on_event = [&](const mmn::Event& event) {
    if (event.kind == MMN_EVENT_JOINED) joined.happened();
    event.visit([&](const mmn::TransferResult& result) {
      MUST(result.success == (result.reason == MMN_TRANSFER_COMPLETE));
      if (result.success) ended.happened();
      else if (std::string(mmn::describe_transfer_outcome(result.reason)) == "refused") refused.happened();
    });
  };
  mmn::Room bob(api, "bob", session, senders);
  bob.connect(alice->local_address());
  joined.wait();
  const std::uint64_t first = bob.send_transfer("alice", map, "buffer");
  MUST(bob.send_transfer("alice", map, "parts") > first);
  bob.send_transfer("alice", map, "nothing");
  ended.wait(2);
  refused.wait();
  MUST(code_of([&] { bob.cancel_transfer("alice", first); }) == mmn::peer_not_found);
  bob.shutdown();
  alice->shutdown();
  MUST(buffer == map && parts == map);
}

void test_closed() {
  const auto must_refuse = [](mmn::Room& room) {
    const std::vector<std::function<void()>> calls = {
        [&] { room.send("main", "x"); },
        [&] { room.broadcast("x"); },
        [&] { room.connect("127.0.0.1:9"); },
        [&] { room.peers(); },
        [&] { room.leader(); },
        [&] { room.is_leader(); },
        [&] { room.rtt_ms("main"); },
        [&] { room.status("main"); },
        [&] { room.index("main"); },
        [&] { room.leader_term(); },
        [&] { room.auto_reconnect(); },
        [&] { room.max_datagram_size(); },
        [&] { room.stats("main"); },
        [&] { room.room_stats(); },
        [&] { room.time_ms(); },
        [&] { room.send_transfer("main", "x"); },
        [&] { room.accept_transfer("main", 2, nullptr, 0); },
        [&] { room.accept_transfer_in_parts("main", 2); },
        [&] { room.cancel_transfer("main", 2); },
        [&] { room.poll(); },
        [&] { room.describe(0); },
        [&] { room.number(); },
        [&] { room.api(); },
        [&] { room.kick("main"); },
        [&] { room.leave(); },
        [&] { room.gossip_windows(); },
        [&] { room.on_message([](const mmn::Message&) {}); },
        [&] { room.on_type(0x0100, nullptr); },
        [&] { room.on_leader(nullptr); },
        [&] { room.on_event(nullptr); },
        [&] { room.on_handler_error(nullptr); },
    };
    for (const auto& call : calls) MUST(code_of(call) == mmn::not_initialized);
    MUST(!room.is_open());
    room.shutdown();
  };
  auto library = std::make_unique<mmn::Library>(library_path);
  mmn::Options options = on_loopback(library->api());
  mmn::Room room(library->api(), "main", "survive-alone", options);
  mmn::Room moved(std::move(room));
  must_refuse(room);
  MUST(moved.is_open() && moved.peer_id() == "main");
  room = std::move(moved);
  must_refuse(moved);
  room.send("main", "still open");
  try {
    room.poll();
    fail("a room in thread mode was polled");
  } catch (const mmn::Error& error) {
    MUST(error.code() == mmn::invalid_argument && std::string(error.what()).find("dispatch_mode 1 (poll)") != std::string::npos);
  }
  room.leave();
  MUST(code_of([&] { room.is_leader(); }) == mmn::not_initialized);
  room.shutdown();
  must_refuse(room);
  library.reset();
  must_refuse(room);
  must_refuse(moved);
}

// A room that is destroyed inside a handler, its own and that of another room, calls no handler after that.
void test_destroyed() {
  mmn::Library library(library_path);
  mmn::Room other(library.api(), "other", "survive-alone", on_loopback(library.api()));
  auto own = std::make_unique<mmn::Room>(library.api(), "main", "survive-alone-too", on_loopback(library.api()));
  auto third = std::make_unique<mmn::Room>(library.api(), "third", "survive-alone-three", on_loopback(library.api()));
  const MmnRoom numbers[] = {own->number(), third->number()};
  Event gone;
  std::atomic<int> calls{0};
  own->on_message([&](const mmn::Message&) {
    calls++;
    own.reset();
    gone.happened();
  });
  third->on_message([](const mmn::Message&) { fail("a handler of a destroyed room ran"); });
  other.on_message([&](const mmn::Message&) {
    const MmnRoom number = third->number();
    third.reset();
    MUST(library.api().mmn_is_open(number) == 0);
    gone.happened();
  });
  own->send("main", "x");
  other.send("other", "x");
  gone.wait(2);
  other.shutdown();
  // They have begun to leave; their threads stay, and the library must stay loaded, until something closes them.
  for (const MmnRoom number : numbers) MUST(library.api().mmn_close(number) == MMN_OK);
  MUST(calls == 1);
}

void test_version() {
  const auto refusal = [](std::uint32_t version) -> std::string {
    try {
      mmn::detail::check_abi_version(version, "lib.so");
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  };
  MUST(refusal(MMN_ABI_VERSION).empty() && refusal(MMN_ABI_VERSION + 1).empty());
  const std::string older = refusal(MMN_ABI_VERSION - 1);
  MUST(older.find("version " + std::to_string(MMN_ABI_VERSION - 1)) != std::string::npos);
  MUST(older.find("version " + std::to_string(MMN_ABI_VERSION) + ":") != std::string::npos);
}

// A child may end with its parent's room object, and may make its own.
void test_fork() {
  mmn::Library library(library_path);
  std::mutex mutex;
  std::condition_variable changed;
  int came = 0;
  auto room = std::make_unique<mmn::Room>(library.api(), "main", "survive-cpp-fork");
  room->on_message([&](const mmn::Message&) {
    std::lock_guard<std::mutex> lock(mutex);
    came++;
    changed.notify_all();
  });
  for (int round = 0; round < 20; round++) {
    room->send("main", "before");
    const pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
      alarm(20);
      MUST(code_of([&] { room->send("main", "x"); }) == mmn::not_initialized);
      {
        mmn::Room own(library.api(), "child", "survive-cpp-fork-child");
        std::atomic<int> received{0};
        own.on_message([&](const mmn::Message&) { received++; });
        // The parent's object must not touch the child's room, neither at shutdown nor at destruction.
        if (round % 2) room->shutdown();
        room.reset();
        own.send("child", "x");
        for (int waited = 0; received == 0 && waited < 5000; waited++) std::this_thread::sleep_for(1ms);
        MUST(received == 1);
      }
      std::exit(0);
    }
    int status = -1;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    room->send("main", "after");
  }
  std::unique_lock<std::mutex> lock(mutex);
  MUST(changed.wait_for(lock, event_time, [&] { return came == 40; }));
}

void test_exceptions() {
  mmn::Library library(library_path);
  mmn::Room room(library.api(), "main", "survive-alone");
  Event surfaced;
  room.on_handler_error([&](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::runtime_error& known) {
      MUST(std::string(known.what()) == "from a handler");
      surfaced.happened();
    }
  });
  room.on_message([](const mmn::Message&) { throw std::runtime_error("from a handler"); });
  room.send("main", "to myself");
  room.send("main", "and again, for the first must not have hurt");
  surfaced.wait(2);
  MUST(code_of([&] { room.send("unknown", "x"); }) == mmn::peer_not_found);
  MUST(code_of([&] { room.connect(std::string("a\0b:1", 5)); }) == mmn::invalid_argument);
  room.shutdown();
}

// Poll mode and every safe function, with guest.py: rejected, admitted, removed.
void test_poll() {
  mmn::Library library(library_path);
  const char* guest_path = std::getenv("MMN_GUEST");
  MUST(guest_path != nullptr);
  std::atomic<int> logged{0};
  std::atomic<MmnRoom> logging{0};
  const auto log = [&](MmnRoom number, std::int32_t level, std::string_view) {
    MUST(level >= MMN_LOG_ERROR && level <= MMN_LOG_DEBUG);
    if (number) logging = number;
    logged++;
  };
  mmn::set_log(MMN_LOG_DEBUG, log, library.api());
  mmn::Options options(library.api());
  options.bind_address = "127.0.0.1";
  options.secret = "tea";
  options.settings.member_hold_ms = 5000;
  const std::string session = "survive-cpp-" + std::to_string(getpid()) + "-poll";
  mmn::Room room(library.api(), "main", session, options);

  struct Seen {
    std::uint32_t kind;
    std::string peer, data;
    std::int32_t reason, code;
    std::uint16_t type;
    std::uint8_t flags;
    bool success;
    std::uint32_t peer_index;
  };
  std::deque<Seen> came;
  const std::thread::id mine = std::this_thread::get_id();
  room.on_handler_error([](std::exception_ptr) { fail("a handler threw"); });
  room.on_event([&](const mmn::Event& event) {
    MUST(std::this_thread::get_id() == mine);
    Seen seen = {};
    seen.kind = event.kind;
    int others = 0;
    event.visit(
        [&](const mmn::JoinRequest& asked) {
          MUST(asked.peer == "guest" && !asked.address.empty());
          if (asked.payload == "let me in") room.reject_join(asked.request, 7, "später");
          else room.accept_join(asked.request);
        },
        [&](const mmn::PeerJoined& joined) { seen.peer = joined.peer; },
        [&](const mmn::LeadershipGained& gained) { seen.peer = gained.leader; },
        [&](const mmn::Message& message) {
          MUST(code_of([&] { room.poll(); }) == mmn::would_deadlock);
          MUST(message.channel == 0 && message.delivery == MMN_DELIVERY_RELIABLE_ORDERED);
          seen.peer = message.from;
          seen.data = message.data;
          seen.type = message.type;
          seen.flags = message.flags;
          seen.peer_index = message.peer_index;
        },
        [&](const mmn::SetLeaderResult& result) {
          seen.success = result.success;
          seen.code = result.code;
        },
        [&](const mmn::PeerLeft& left) {
          seen.peer = left.peer;
          seen.data = left.data;
          seen.reason = left.reason;
          seen.code = left.code;
        },
        [&](const auto&) { others++; });
    if (event.kind == MMN_EVENT_LEADER_CHANGED) MUST(others == 1);
    if (event.kind == MMN_EVENT_MESSAGE) MUST(others == 0);
    came.push_back(seen);
  });
  const auto until = [&](std::uint32_t kind) -> const Seen& {
    for (const auto deadline = Clock::now() + 3 * event_time;;) {
      for (const Seen& seen : came) {
        if (seen.kind == kind) return seen;
      }
      if (Clock::now() > deadline) fail("no event of kind " + std::to_string(kind) + " in time");
      room.poll(1);
      std::this_thread::sleep_for(2ms);
    }
  };
  MUST(until(MMN_EVENT_LEADERSHIP_GAINED).peer == "main");
  room.enable_join_requests(true);
  room.set_max_peers(3);
  room.set_join_payload("");
  room.set_auto_reconnect(true);
  room.set_centralized(true);
  room.set_centralized_auto_forward(true);
  MUST(room.auto_reconnect() && room.centralized() && room.centralized_auto_forward() && !room.discovering());
  room.set_compression_threshold(64);
  room.set_leader_eligible(true);
  mmn::GossipWindows windows = room.gossip_windows();
  MUST(windows.startup_grace_ms == 15000 && windows.sample_interval_ms == 1000);
  MUST(windows.alive_threshold_ms == 10000 && windows.election_duration_ms == 5000);
  windows.startup_grace_ms = 501;
  windows.sample_interval_ms = 502;
  windows.alive_threshold_ms = 503;
  windows.election_duration_ms = 504;
  room.set_gossip_windows(windows);
  const mmn::GossipWindows others = room.gossip_windows();
  MUST(others.startup_grace_ms == 501 && others.sample_interval_ms == 502);
  MUST(others.alive_threshold_ms == 503 && others.election_duration_ms == 504);
  windows.alive_threshold_ms = 0;
  MUST(code_of([&] { room.set_gossip_windows(windows); }) == mmn::invalid_argument);
  MUST(room.election_strategy() == MMN_STRATEGY_RAFT);
  MUST(code_of([&] { room.accept_join(12345); }) == mmn::peer_not_found);
  MUST(code_of([&] { room.stats("guest"); }) == mmn::peer_not_found);

  const std::string command = std::string("PYTHONIOENCODING=utf-8 exec python3 '") + guest_path + "' '" + session + "' '" + room.local_address() + "'";
  FILE* guest = popen(command.c_str(), "r");
  MUST(guest != nullptr);
  MUST(until(MMN_EVENT_JOINED).peer == "guest");
  const Seen message = until(MMN_EVENT_MESSAGE);
  MUST(room.index("guest") == 1 && room.peer_at(1) == "guest" && message.peer_index == 1);
  MUST(room.members() == room.peers() && room.members().size() == 1);
  MUST(!room.address("guest").empty() && room.fingerprint("guest").size() == 64);
  MUST(room.identity_fingerprint().size() == 64 && room.identity_fingerprint() != room.fingerprint("guest"));
  MUST(room.index("unknown") == 0 && room.peer_at(0).empty() && room.address("unknown").empty() && room.fingerprint("unknown").empty());
  MUST(mmn::generate_identity_key(library.api()).size() == MMN_IDENTITY_KEY_BYTES);
  MUST(mmn::generate_identity_key(library.api()) != mmn::generate_identity_key(library.api()));
  MUST(message.peer == "guest" && message.data == "hello" && message.type == 0x0123 && message.flags == 2);
  MUST(room.stats("guest").messages_received == 1);
  room.forward("main", "guest", std::string(1000, 'x'));
  room.set_leader("main");
  const Seen result = until(MMN_EVENT_SET_LEADER_RESULT);
  MUST(result.success && result.code == mmn::ok);
  room.kick("guest", 9, "tschüss", true);
  const Seen left = until(MMN_EVENT_LEFT);
  MUST(left.peer == "guest" && left.reason == MMN_LEFT_KICKED && left.code == 9 && left.data == "tschüss");
  room.unban("guest");
  MUST(code_of([&] { room.unban("guest"); }) == mmn::peer_not_found);
  MUST(code_of([&] { room.kick("guest"); }) == mmn::peer_not_found);
  room.disconnect("guest", 3, "tschüss");  // an unknown member is no error
  std::string printed;
  for (int byte; (byte = std::fgetc(guest)) != EOF;) printed += static_cast<char>(byte);
  MUST(pclose(guest) == 0);
  MUST(printed == "rejected 7 später\njoined\nended " + std::to_string(MMN_END_KICKED) + " 9 tschüss\n");
  const MmnRoom number = room.number();
  room.shutdown();
  MUST(logged > 0 && logging == number);
  mmn::set_log(MMN_LOG_OFF, nullptr, library.api());
}

// A seed alone: its options, queries about its cluster, and a handler for one type of messages.
void test_seeded() {
  mmn::Library library(library_path);
  const auto directory = std::filesystem::temp_directory_path() / ("survive-cpp-" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  mmn::Options options(library.api());
  options.bind_address = "127.0.0.1";
  options.state_directory = directory.string();
  options.quorum_roster = "main";
  options.settings.strategy = MMN_STRATEGY_SEEDED;
  MUST(code_of([&] { mmn::Seeded none(2, library.api()); }) == mmn::invalid_argument);
  mmn::Seeded seeded(MMN_SEEDED_PROFILE_LAN, library.api());
  MUST(seeded.settings.heartbeat_timeout_ms == 600 && seeded.settings.ttl_timeout_ms == 1500);
  seeded.settings.is_seed = 1;
  seeded.seeds = "localhost:9\n[::1]:9";
  options.seeded = seeded;
  const std::string session = "survive-cpp-" + std::to_string(getpid()) + "-seeded";
  MUST(code_of([&] { mmn::Room(library.api(), "other", session, options); }) == mmn::invalid_argument);
  mmn::Room room(library.api(), "main", session, options);
  MUST(room.election_strategy() == MMN_STRATEGY_SEEDED);
  std::string states;
  std::vector<std::string> messages, typed;
  room.on_event([&](const mmn::Event& event) {
    event.visit([&](const mmn::MemberStateChanged& change) {
      states += std::string(change.peer) + " " + mmn::describe_member_state(change.state) + " " + std::to_string(change.version) + "\n";
    });
  });
  room.on_message([&](const mmn::Message& message) { messages.emplace_back(message.text()); });
  room.on_type(0x0123, [&](const mmn::Message& message) { typed.emplace_back(message.text()); });
  const auto deadline = Clock::now() + event_time;
  const auto until = [&](const auto& holds) {
    while (!holds()) {
      if (Clock::now() > deadline) fail("not in time; states: " + states);
      room.poll();
      std::this_thread::sleep_for(2ms);
    }
  };
  until([&] { return room.is_leader(); });
  until([&] { return states == "main joining 1\nmain active 1\n"; });
  MUST(room.member_state("main") == MMN_MEMBER_ACTIVE && room.member_state("unknown") == MMN_MEMBER_INIT);
  MUST(room.cluster_version() == 1);
  MUST(code_of([&] { room.set_leader("main"); }) == mmn::not_supported);
  room.send("main", "one", 0x0123);
  room.send("main", "two", 0x0124);
  until([&] { return !messages.empty(); });
  MUST(typed == std::vector<std::string>{"one"} && messages == std::vector<std::string>{"two"});
  room.on_message(nullptr);
  room.send("main", "three", 0x0123);
  until([&] { return typed.size() == 2; });
  room.on_message([&](const mmn::Message& message) { messages.emplace_back(message.text()); });
  room.on_type(0x0123, nullptr);
  room.send("main", "four", 0x0123);
  until([&] { return messages.size() == 2; });
  MUST(typed.size() == 2 && typed[1] == "three" && messages[1] == "four");
  MUST(code_of([&] { room.on_type(0x00ff, nullptr); }) == mmn::invalid_argument);
  room.shutdown();
  std::filesystem::remove_all(directory);
}

// The options of the etcd strategy, with endpoints without a server, in builds that have it; and its calls in a room without
// it.
void test_etcd() {
  mmn::Library library(library_path);
  const std::string session = "survive-cpp-" + std::to_string(getpid()) + "-etcd";
  mmn::Options options(library.api());
  options.bind_address = "127.0.0.1";
  {
    mmn::Room room(library.api(), "main", session, options);
    MUST(room.fencing_token() == -1);
    MUST(code_of([&] { room.proclaim("here"); }) == mmn::not_supported);
    MUST(code_of([&] { room.acquire_lock("door", 100); }) == mmn::not_supported);
    MUST(code_of([&] { room.try_lock(""); }) == mmn::invalid_argument);
    MUST(code_of([&] { room.release_lock("door"); }) == mmn::not_supported);
  }
  options.settings.strategy = MMN_STRATEGY_ETCD;
  mmn::Etcd etcd("http://127.0.0.1:9\nhttp://[::1]:9", "rooms/lobby", library.api());
  MUST(etcd.settings.ttl_seconds == 10);
  etcd.address = "play.example.org:4433";
  options.etcd = etcd;
  try {
    mmn::Room room(library.api(), "main", session, options);
    MUST(room.election_strategy() == MMN_STRATEGY_ETCD);
    MUST(room.fencing_token() == 0 && !room.is_leader());
    const std::uint64_t first = room.try_lock("door");
    MUST(first > 0 && room.acquire_lock("window", 100) > first);
    room.release_lock("window");
    options.etcd->prefix = "rooms/";
  } catch (const mmn::Error& error) {
    MUST(error.code() == mmn::not_supported);
    return;
  }
  MUST(code_of([&] { mmn::Room(library.api(), "main", session, options); }) == mmn::invalid_argument);
}

} // namespace

int main(int argc, char** argv) {
  // One arena: with one per thread the C library's caches would hide a leak, or look like one.
  mallopt(M_ARENA_MAX, 1);
  const char* path = std::getenv("MMN_LIBRARY");
  if (!path) {
    std::cerr << "set MMN_LIBRARY to the library's path" << std::endl;
    return 2;
  }
  library_path = path;
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && arguments[0] == "--partner") {
    running_test = "partner";
    return Partner::run(arguments[1], arguments[2] == "flood");
  }
  int rounds = 20;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arguments.size(); i++) {
    if (arguments[i] == "--rounds" && i + 1 < arguments.size()) rounds = std::atoi(arguments[++i].c_str());
    else names.push_back(arguments[i]);
  }
  std::signal(SIGALRM, on_alarm);
  const auto run = [&](const char* name, const std::function<void()>& test) {
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) return;
    running_test = name;
    alarm(test_seconds);
    try {
      test();
    } catch (const std::exception& error) {
      fail(error.what());
    }
    std::cout << "ok " << name << std::endl;
  };
  run("reload", test_reload);
  run("unregister", test_unregister);
  run("shutdown", [&] { test_shutdown(rounds); });
  run("restart", test_restart);
  run("reentry", test_reentry);
  run("rooms", test_rooms);
  run("paths", test_paths);
  run("transfers", test_transfers);
  run("codes", test_codes);
  run("browse", test_browse);
  run("hold", test_hold);
  run("closed", test_closed);
  run("destroyed", test_destroyed);
  run("version", test_version);
  run("exceptions", test_exceptions);
  run("fork", test_fork);
  run("seeded", test_seeded);
  run("etcd", test_etcd);
  // It needs Python and the program MMN_GUEST.
  if (std::find(names.begin(), names.end(), "poll") != names.end()) run("poll", test_poll);
}
