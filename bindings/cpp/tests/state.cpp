/*
 * Tests the room's state of the C++ header, with real rooms of this process over loopback. Prints "ok NAME" per promise and exits
 * with 0 only when all hold.
 *
 *   g++ -std=c++17 -O1 -g -pthread -Iinclude -Ibindings/cpp bindings/cpp/tests/state.cpp -o state -ldl
 *   MMN_LIBRARY=target/release/libmeta_mystia_network.so ./state actions|snapshots|properties|claims|merges|refusals...
 */
#include <meta_mystia_network.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <unistd.h>

namespace {

constexpr auto longest_wait = std::chrono::seconds(30);
constexpr std::uint16_t add = mmn::first_user_type, say = add + 1;
constexpr int actions_at_a_time = 200;  // fewer than the open requests that a member may have
constexpr std::uint32_t short_tail = 256;

[[noreturn]] void fail(const std::string& text) {
  std::cerr << "FAILED: " << text << std::endl;
  _exit(1);
}
#define MUST(...) \
  if (!(__VA_ARGS__)) fail("line " + std::to_string(__LINE__) + ": " #__VA_ARGS__ " does not hold")

template <typename Call>
std::int32_t code_of(Call call) {
  try {
    call();
    return 0;
  } catch (const mmn::Error& error) {
    return error.code();
  }
}

const mmn::Api& api() {
  static const mmn::Library library(std::getenv("MMN_LIBRARY") ? std::getenv("MMN_LIBRARY") : "libmeta_mystia_network.so");
  return library.api();
}

// A host with a sum of all actions. In poll mode, on the one thread of this program.
class Host {
 public:
  Host(const std::string& name, const std::string& session, Host* first, std::uint32_t tail = 0)
      : room(api(), name, session + std::to_string(getpid()), options(first, tail)), state(room.state()) {
    all().push_back(this);
    room.on_handler_error([this](std::exception_ptr) { failures++; });
    state.on_action([this](const mmn::Action& a) {
      received.emplace_back(a.author, a.index, a.time_ms);
      own += a.mine();
      if (a.type == add) total += a.read<int>();
      else text = a.text();
    });
    state.on_save([this] { return std::to_string(total); });
    state.on_load([this](std::string_view bytes) {
      snapshots += !bytes.empty();
      total = bytes.empty() ? 0 : std::stoi(std::string(bytes));
    });
    state.on_property([this](const mmn::PropertyChanged& p) { changes += std::string(p.key) + (p.exists ? "+" : "-"); });
    if (first) room.connect(first->room.local_address());
  }
  ~Host() { all().erase(std::remove(all().begin(), all().end(), this), all().end()); }
  Host(const Host&) = delete;

  static void poll_all() {
    for (Host* host : all()) {
      if (host->room.is_open()) host->room.poll();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  static std::vector<Host*>& all() {
    static std::vector<Host*> hosts;
    return hosts;
  }

  int total = 0, snapshots = 0, failures = 0, own = 0;
  std::string text, changes;
  std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>> received;
  mmn::Room room;
  mmn::RoomState state;

 private:
  // Two logs that merge would be another test: the first one creates the room.
  static mmn::Options options(Host* first, std::uint32_t tail) {
    mmn::Options options(api());
    options.settings.discovery_mode = MMN_DISCOVERY_OFF;
    options.settings.entry = first ? MMN_ENTRY_JOIN : MMN_ENTRY_CREATE;
    options.state.emplace(api());
    if (tail) options.state->settings.tail_entries = tail;
    return options;
  }
};

template <typename Holds>
void wait(const char* text, Holds holds) {
  for (const auto end = std::chrono::steady_clock::now() + longest_wait; !holds(); Host::poll_all()) {
    if (std::chrono::steady_clock::now() > end) fail(std::string("not in time: ") + text);
  }
}
#define WAIT(...) wait(#__VA_ARGS__, [&] { return (__VA_ARGS__); })

// Each action comes once, in one order, with one result.
void actions() {
  Host ann("ann", "actions", nullptr), bob("bob", "actions", &ann);
  int results = 0;
  const auto counted = [&](const mmn::ActionResult& result) { results += result.code == mmn::ok && result.index > 0; };
  for (int i = 0; i < actions_at_a_time; i++) {
    MUST(ann.state.submit(add, i, counted) > 0);
    bob.state.submit(add, 1, counted);
  }
  WAIT(results == 2 * actions_at_a_time && ann.received.size() == bob.received.size());
  MUST(ann.received == bob.received && ann.received.size() == 2 * actions_at_a_time);
  MUST(ann.total == bob.total && ann.total == actions_at_a_time * (actions_at_a_time - 1) / 2 + actions_at_a_time);
  MUST(ann.own == actions_at_a_time && bob.own == actions_at_a_time);
  ann.state.submit(say, "text");
  WAIT(bob.text == "text" && ann.text == "text");
  ann.state.submit(say, std::vector<std::uint8_t>{'b', 0});
  WAIT(bob.text == std::string("b\0", 2));
  // read() of another length is a failure of the handler.
  bob.state.submit(add, std::string("five!"));
  WAIT(ann.failures == 1 && bob.failures == 1);
  // A request inside a handler.
  bool inner = false;
  const auto ends = [&](const mmn::ActionResult&) { inner = true; };
  ann.state.submit(add, 0, [&](const mmn::ActionResult&) { ann.state.submit(add, 0, ends); });
  WAIT(inner);
}

void snapshots() {
  Host ann("ann", "snapshots", nullptr, short_tail);
  for (int round = 1; round <= 4; round++) {
    for (int i = 0; i < actions_at_a_time; i++) ann.state.submit(add, 1);
    WAIT(ann.total == round * actions_at_a_time);
  }
  Host bob("bob", "snapshots", &ann, short_tail);
  WAIT(bob.total == ann.total && bob.snapshots > 0);
}

void properties() {
  Host ann("ann", "properties", nullptr), bob("bob", "properties", &ann);
  WAIT(ann.state.info().members == 2 && bob.state.info().members == 2);
  ann.state.set("map", "forest");
  WAIT(bob.state.property("map") && bob.state.property("map")->value == "forest" && bob.changes == "map+");
  const mmn::Property seen = *bob.state.property("map");
  MUST(seen.owner.empty() && seen.flags == 0 && !bob.state.property("none"));
  MUST(bob.state.keys() == std::vector<std::string>{"map"});

  // With versions, all or none.
  mmn::PropertyChange created, changed;
  created.key = "new";
  created.value = "1";
  created.expected_version = 0;
  changed.key = "map";
  changed.value = "caves";
  changed.expected_version = seen.version + 1;
  std::int32_t code = 1;
  bob.state.set_properties({created, changed}, [&](const mmn::ActionResult& result) { code = result.code; });
  WAIT(code == mmn::conflict);
  changed.expected_version = seen.version;
  bob.state.set_properties({created, changed}, [&](const mmn::ActionResult& result) { code = result.code; });
  WAIT(code == mmn::ok && ann.state.property("new") && ann.state.property("map")->value == "caves");
  ann.state.remove("new");
  WAIT(!bob.state.property("new") && bob.state.keys().size() == 1);

  bob.state.set_mine("ready", "1");
  WAIT(ann.state.property_of("bob", "ready") && ann.state.keys("bob").size() == 1);
  MUST(ann.state.property("@bob/ready")->flags == (MMN_PROPERTY_OWNER_ONLY | MMN_PROPERTY_DIES_WITH_OWNER));
  ann.state.set("@bob/ready", "0", [&](const mmn::ActionResult& result) { code = result.code; });
  WAIT(code == mmn::rejected);
  bob.room.shutdown();
  WAIT(!ann.state.property_of("bob", "ready"));
}

void claims() {
  Host ann("ann", "claims", nullptr), bob("bob", "claims", &ann);
  WAIT(ann.state.info().members == 2 && bob.state.info().members == 2);
  for (int i = 0; i < 20; i++) {
    const std::string key = "ball " + std::to_string(i);
    int won = 0, lost = 0;
    for (Host* host : {&bob, &ann}) host->state.claim(key, [&](bool mine) { (mine ? won : lost)++; });
    WAIT(won + lost == 2);
    MUST(won == 1);
  }
  WAIT(ann.state.property("ball 0") && bob.state.property("ball 0"));
  const bool is_ann = ann.state.property("ball 0")->owner == "ann";
  Host &owner = is_ann ? ann : bob, &other = is_ann ? bob : ann;
  int answer = -1;
  const auto noted = [&](bool yes) { answer = yes; };
  other.state.claim("ball 0", noted);
  MUST(answer == 0);
  owner.state.claim("ball 0", noted);
  MUST(answer == 1);
  other.state.release("ball 0", noted);
  MUST(answer == 0);
  owner.state.release("ball 0", noted);
  WAIT(answer == 1 && other.state.property("ball 0")->owner.empty());
  answer = -1;
  other.state.claim("ball 0", noted);
  WAIT(answer == 1 && !owner.state.property("ball 0")->owner.empty());
  answer = -1;
  owner.state.claim("ball 0", noted, true);
  WAIT(answer == 1);
}

// Two rooms of one session meet: one side's actions are undone, and its host submits its own again.
void merges() {
  Host ann("ann", "merges", nullptr), bob("bob", "merges", nullptr);
  int undone = 0;
  for (Host* host : {&ann, &bob}) {
    host->state.on_rolled_back([host, &undone](const mmn::Action& a) {
      undone += a.mine() && a.time_ms == 0;
      host->state.submit(a.type, a.read<int>());
    });
    for (int value : {1, 10, 100}) host->state.submit(add, value);
  }
  WAIT(ann.total == 111 && bob.total == 111);
  ann.room.connect(bob.room.local_address());
  WAIT(ann.total == 222 && bob.total == 222);
  MUST(undone == 3 && ann.snapshots + bob.snapshots <= 1);
}

void refusals() {
  mmn::Options plain(api());
  plain.settings.discovery_mode = MMN_DISCOVERY_OFF;
  mmn::Room without(api(), "ann", "plain" + std::to_string(getpid()), plain);
  MUST(code_of([&] { without.state(); }) == mmn::not_supported);

  Host ann("ann", "refusals", nullptr);
  MUST(code_of([&] { ann.state.submit(1, "x"); }) == mmn::invalid_argument);
  MUST(code_of([&] { ann.state.submit(add, std::string(16385, 'x')); }) == mmn::message_too_large);
  for (const char* key : {"", "a\nb", "\xc2\x80"}) {
    MUST(code_of([&] { ann.state.property(key); }) == mmn::invalid_argument);
    MUST(code_of([&] { ann.state.set(key, ""); }) == mmn::invalid_argument);
  }
  MUST(code_of([&] { ann.state.property(std::string(65, 'k')); }) == mmn::invalid_argument);
  MUST(code_of([&] { ann.state.property(std::string(64, 'k')); }) == 0);
  ann.room.shutdown();
  MUST(code_of([&] { ann.state.submit(add, 1); }) == mmn::not_initialized);
  MUST(code_of([&] { ann.state.property("map"); }) == mmn::not_initialized);
}

}  // namespace

int main(int argc, char** argv) {
  const std::pair<const char*, void (*)()> tests[] = {
      {"actions", actions}, {"snapshots", snapshots}, {"properties", properties},
      {"claims", claims},   {"merges", merges},       {"refusals", refusals}};
  for (const auto& [name, test] : tests) {
    bool chosen = argc == 1;
    for (int i = 1; i < argc; i++) chosen = chosen || std::string(argv[i]) == name;
    if (!chosen) continue;
    test();
    std::cout << "ok " << name << std::endl;
  }
}
