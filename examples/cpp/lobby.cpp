/*
 * A lobby on the console: members, round-trip times, the players' positions, and a counter, a chat and a map that survive any
 * leader (docs/host-migration.md). The samples in the other languages (csharp-sample, examples/python, examples/c) accept the same
 * arguments, print the same lines and share the state. The library is used in poll mode, as a game with frames does.
 *
 *   g++ -std=c++17 -O2 -pthread -Iinclude -Ibindings/cpp examples/cpp/lobby.cpp -o lobby \
 *       -Ltarget/release -lmeta_mystia_network -Wl,-rpath,"$PWD/target/release"
 *   ./lobby --id alice --session tea
 *   ./lobby --id bob --session tea --connect ADDRESS_OF_ALICE
 *
 * Players at home meet at a relay (docs/internet.md). The first one passes no session, and the lobby prints a new code:
 *
 *   ./lobby --id alice --relays relay.example.org
 *   ./lobby --id bob --relays relay.example.org --session CODE_OF_ALICE
 */

#include <meta_mystia_network.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#if defined(_WIN32)
#include <io.h>
static bool stdin_is_terminal() { return _isatty(_fileno(stdin)) != 0; }
#else
#include <unistd.h>
static bool stdin_is_terminal() { return isatty(STDIN_FILENO) != 0; }
#endif

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint16_t hello = mmn::first_user_type;
constexpr std::uint16_t position = mmn::first_user_type + 1;
constexpr std::uint16_t add = mmn::first_user_type, speak = mmn::first_user_type + 1;  // types of actions
constexpr std::size_t chat_lines = 50;
constexpr std::chrono::milliseconds frame_time{16};
constexpr double step_seconds = 0.1;
constexpr int row_length = 100;
constexpr std::uint64_t player_key = 1;  // each member's own: it moves one thing, its player
constexpr std::uint8_t position_channel = 1;

using Positions = std::map<std::string, std::string>;

struct Options {
  std::string id, session, relays, connect;
  double seconds = 1e9;
  bool interactive = stdin_is_terminal();
  std::uint32_t strategy = MMN_STRATEGY_RAFT;
  std::uint32_t alive_ms = 0;
  // With MMN_STRATEGY_SEEDED; a member with a port is a seed.
  std::string voters, seeds, state;
  std::uint16_t port = 0;
};

// The typed lines, between the thread that reads and the one that carries them out.
struct Input {
  std::mutex mutex;
  std::deque<std::string> lines;
  bool ended = false;
};

void say(const std::string& id, const std::string& text) {
  std::printf("[%s] %s\n", id.c_str(), text.c_str());
  std::fflush(stdout);
}

void fail(const std::string& id, const mmn::Error& error) {
  std::fprintf(stderr, "[%s] error: %s (%d)\n", id.c_str(), error.what(), static_cast<int>(error.code()));
}

// Prints a refused call: the program and its room continue.
template <typename Call>
void attempt(const std::string& id, Call call) {
  try {
    call();
  } catch (const mmn::Error& error) {
    fail(id, error);
  }
}

// Each member ignores illegal actions, in whatever program their author runs.
bool is_legal(std::uint16_t type, std::string_view text) {
  if (type == speak) return !text.empty() && text.find('\n') == std::string_view::npos;
  const std::string_view digits = text.substr(text.rfind('-', 0) == 0 ? 1 : 0);
  const bool is_number = digits.find_first_not_of("0123456789") == std::string_view::npos;
  return type == add && !digits.empty() && digits.size() <= 9 && is_number;
}

std::string command(const mmn::Action& action) {
  return (action.type == add ? "add " : "say ") + std::string(action.text());
}

// The state that all members share. It changes in act() and load() alone: each member does the same in the same order.
struct Game {
  long long counter = 0;
  std::deque<std::string> chat;

  void act(const mmn::Action& action, const std::string& id) {
    if (!is_legal(action.type, action.text())) return;
    if (action.type == add) {
      counter += std::strtoll(std::string(action.text()).c_str(), nullptr, 10);
    } else {
      chat.push_back(std::string(action.author) + ": " + std::string(action.text()));
      if (chat.size() > chat_lines) chat.pop_front();
      say(id, "chat " + chat.back());
    }
    if (action.mine()) say(id, "confirmed " + command(action));
  }

  std::string save() const {
    std::string lines = std::to_string(counter) + "\n";
    for (const std::string& line : chat) lines += line + "\n";
    return lines;
  }

  void load(std::string_view snapshot, const std::string& id) {
    std::istringstream lines{std::string(snapshot)};
    std::string line;
    std::getline(lines, line);
    counter = std::strtoll(line.c_str(), nullptr, 10);
    for (chat.clear(); std::getline(lines, line);) chat.push_back(line);
    say(id, "loaded " + std::to_string(counter) + ", " + std::to_string(chat.size()) + " lines");
  }

  std::string text(const mmn::RoomState& state) const {
    std::uint32_t digest = 0x811C9DC5;  // FNV-1a: equal at every member, in every language
    for (const char byte : save()) digest = (digest ^ static_cast<unsigned char>(byte)) * 0x01000193;
    char hex[9];
    std::snprintf(hex, sizeof hex, "%08x", static_cast<unsigned>(digest));
    const MmnStateInfo info = state.info();
    const std::optional<mmn::Property> map = state.property("map");
    return "state: " + std::to_string(counter) + ", " + std::to_string(chat.size()) + " lines, map " + (map ? map->value : "-") +
           ", index " + std::to_string(info.index) + ", digest " + hex + ", " + std::to_string(info.pending) + " unconfirmed";
  }
};

std::string path_to(const mmn::Room& room, const std::string& name) {
  const std::int32_t path = room.path(name);
  const std::string carrier = room.carrier(name);
  if (path == MMN_PATH_THROUGH_RELAY) return "over a relay";
  if (path == MMN_PATH_THROUGH_TURN) return "through a TURN server";
  if (carrier.empty()) return "direct";
  return "through " + carrier + (path == MMN_PATH_THROUGH_LEADER ? " (leader)" : "");
}

std::string members(const mmn::Room& room, const std::string& id, const Positions& positions) {
  std::vector<std::string> names = room.peers();
  names.push_back(id);
  std::sort(names.begin(), names.end());
  std::string line = "members:";
  for (const std::string& name : names) {
    const int rtt = name == id ? 0 : room.rtt_ms(name);
    line += " " + name + "(" + (rtt < 0 ? "-" : std::to_string(rtt)) + " ms" + (name == id ? ")" : ", " + path_to(room, name) + ")");
    const auto known = positions.find(name);
    if (known != positions.end()) line += " at " + known->second;
  }
  const std::string leader = room.leader();
  return line + (leader.empty() ? "; no leader" : "; leader: " + leader);
}

// Moves along a row, and on in the next one. A lost position is not sent again: the next one replaces it.
void walk(mmn::Room& room, const std::string& id, Positions& positions, int step) {
  const std::string place = std::to_string(step % row_length) + "," + std::to_string(step / row_length);
  positions[id] = place;
  attempt(id, [&] { room.broadcast(place, position, mmn::SendOptions::sequenced(player_key, position_channel)); });
}

void read_input(const std::shared_ptr<Input>& input) {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::lock_guard<std::mutex> lock(input->mutex);
    input->lines.push_back(line);
  }
  std::lock_guard<std::mutex> lock(input->mutex);
  input->ended = true;
}

// The next typed line, "/quit" at the end of the input, or nothing.
std::optional<std::string> next_line(Input& input) {
  std::lock_guard<std::mutex> lock(input.mutex);
  if (input.lines.empty()) return input.ended ? std::optional<std::string>("/quit") : std::nullopt;
  std::string line = std::move(input.lines.front());
  input.lines.pop_front();
  return line;
}

void happened(const mmn::Room& room, const std::string& id, Positions& positions, const mmn::Event& event) {
  const auto peer = [&](std::string_view name, const char* what) { say(id, "peer " + std::string(name) + what); };
  event.visit(
      [&](const mmn::LeaderChanged& change) {
        const std::string leader = change.leader.empty() ? "no leader" : "leader is " + std::string(change.leader);
        say(id, leader + " (" + mmn::describe_leader_reason(change.reason) + ")");
      },
      [&](const mmn::MemberStateChanged& change) {
        say(id, "member " + std::string(change.peer) + " is " + mmn::describe_member_state(change.state) + ", version " +
                    std::to_string(change.version));
      },
      [&](const mmn::PeerJoined& joined) { peer(joined.peer, " connected"); },
      [&](const mmn::PeerReconnecting& lost) { peer(lost.peer, " is lost and dialled again"); },
      [&](const mmn::PeerReturned& returned) { peer(returned.peer, " is back"); },
      [&](const mmn::PeerLeft& left) { peer(left.peer, " left"); },
      [&](const mmn::Message& message) {
        if (message.type == hello) say(id, "from " + std::string(message.from) + ": " + std::string(message.data));
        if (message.type == position) positions[std::string(message.from)] = std::string(message.data);
      },
      [&](const mmn::PropertyChanged& property) { say(id, std::string(property.key) + " is " + std::string(property.value)); },
      [&](const mmn::StateOpened& opened) {
        const std::string how = opened.leader.empty() ? "waits for a leader" : opened.exclusive ? "goes on under " : "forks under ";
        say(id, "the state " + how + std::string(opened.leader));
      },
      [&](const mmn::ActionResult& result) {
        if (result.code != mmn::ok) say(id, "not confirmed: error " + std::to_string(result.code) + " " + room.describe(result.code));
      },
      [&](const mmn::RelayChanged& relay) {
        say(id, "relay " + std::string(relay.relay) + ": " + (relay.success ? "entered" : std::string(relay.data)));
      },
      [&](const mmn::ConnectionResult& result) {
        say(id, "dialled " + std::string(result.address) + ": " +
                    (result.success ? "ok" : "error " + std::to_string(result.code) + " " + room.describe(result.code)));
      });
}

void submit(const mmn::RoomState& state, const std::string& id, std::uint16_t type, std::string_view text) {
  if (is_legal(type, text)) attempt(id, [&] { state.submit(type, text); });
  else std::fprintf(stderr, "[%s] error: not taken: %s\n", id.c_str(), std::string(text).c_str());
}

void obey(mmn::Room& room, const std::string& id, const std::string& line) {
  if (line.rfind("/leader ", 0) == 0) attempt(id, [&] { room.set_leader(line.substr(8)); });
  else if (line.rfind("/transfer ", 0) == 0) attempt(id, [&] { room.transfer_leadership(line.substr(10)); });
  else if (line == "/yield") attempt(id, [&] { room.yield_leadership(); });
  else if (line.rfind("/map ", 0) == 0) attempt(id, [&] { room.state().set("map", line.substr(5)); });
  else if (line.rfind("/add ", 0) == 0) submit(room.state(), id, add, line.substr(5));
  else if (!line.empty()) submit(room.state(), id, speak, line);
}

// Gossip, in one local network: all members start at about the same time, and receive the others' messages at once.
void set_windows(MmnOptions& settings, std::uint32_t alive_ms) {
  settings.startup_grace_ms = settings.alive_threshold_ms = alive_ms;
  settings.sample_interval_ms = std::max(alive_ms / 5, 1u);
  settings.election_duration_ms = std::max(alive_ms / 2, 1u);
}

void run(mmn::Room& room, const Options& options) {
  const std::string& id = options.id;
  say(id, "listening on " + room.local_address());
  if (!options.relays.empty()) say(id, "the room's code is " + room.session_id());
  Game game;
  mmn::RoomState state = room.state();
  state.on_action([&](const mmn::Action& action) { game.act(action, id); });
  state.on_save([&] { return game.save(); });
  state.on_load([&](std::string_view snapshot) { game.load(snapshot, id); });
  state.on_rolled_back([&](const mmn::Action& action) {
    say(id, "rolled back " + std::string(action.author) + ": " + command(action));
    // A line may come twice; a number must not.
    if (action.mine() && action.type == speak) submit(state, id, speak, action.text());
  });
  Positions positions;
  room.on_event([&](const mmn::Event& event) { happened(room, id, positions, event); });
  if (!options.connect.empty()) room.connect(options.connect);

  // Shared with a thread that may still be waiting for a line when the program ends.
  const auto input = std::make_shared<Input>();
  if (options.interactive) std::thread(read_input, input).detach();

  const Clock::time_point start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  for (int beat = 1, step = 1; seconds() < options.seconds; std::this_thread::sleep_for(frame_time)) {
    // A frame of a game: it handles events here, on this thread and at this moment.
    room.poll();
    while (const auto line = next_line(*input)) {
      if (*line == "/quit") return;
      obey(room, id, *line);
    }
    if (seconds() >= step * step_seconds) walk(room, id, positions, step++);
    if (seconds() >= beat) {
      attempt(id, [&] { room.broadcast("hello " + std::to_string(beat) + " from " + id, hello); });
      say(id, members(room, id, positions));
      say(id, game.text(state));
      beat++;
    }
  }
}

// One entry per line, as the library expects.
std::string lines(std::string list) {
  std::replace(list.begin(), list.end(), ',', '\n');
  return list;
}

// A group that never splits, with the times of one local network.
void join_cluster(mmn::Options& settings, const Options& options) {
  mmn::Seeded seeded(MMN_SEEDED_PROFILE_LAN);
  seeded.settings.is_seed = options.port > 0;
  seeded.seeds = options.seeds;
  settings.seeded = seeded;
  settings.settings.bind_port = options.port;
  settings.quorum_roster = options.voters;
  settings.state_directory = options.state;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i++) {
    const std::string_view name = argv[i];
    if (name == "--interactive") {
      options.interactive = true;
      continue;
    }
    if (++i == argc) return false;
    if (name == "--id") options.id = argv[i];
    else if (name == "--session") options.session = argv[i];
    else if (name == "--relays") options.relays = lines(argv[i]);
    else if (name == "--connect") options.connect = argv[i];
    else if (name == "--seconds") options.seconds = std::atof(argv[i]);
    else if (name == "--alive-ms") options.alive_ms = static_cast<std::uint32_t>(std::atoi(argv[i]));
    else if (name == "--voters") options.voters = lines(argv[i]);
    else if (name == "--seeds") options.seeds = lines(argv[i]);
    else if (name == "--port") options.port = static_cast<std::uint16_t>(std::atoi(argv[i]));
    else if (name == "--state") options.state = argv[i];
    else if (name == "--strategy" && argv[i] == std::string_view("seeded")) options.strategy = MMN_STRATEGY_SEEDED;
    else if (name == "--strategy" && argv[i] == std::string_view("gossip")) options.strategy = MMN_STRATEGY_GOSSIP;
    else if (name == "--strategy" && argv[i] == std::string_view("raft")) options.strategy = MMN_STRATEGY_RAFT;
    else return false;
  }
  return !options.id.empty() && !(options.session.empty() && options.relays.empty());
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: lobby --id NAME --session S [--connect ADDR] [--seconds N] [--interactive]\n"
                 "             [--relays RELAY,...], and then --session CODE, or none for a new code\n"
                 "             [--strategy raft|gossip|seeded] [--alive-ms N]\n"
                 "             [--voters ID,... --seeds ADDR,... --port N --state DIRECTORY]\n"
                 "Standard input, on a terminal or with --interactive: text is chat, /add N, /map NAME, /leader NAME,\n"
                 "/transfer NAME, /yield, /quit.\n");
    return 2;
  }
  try {
    mmn::Options settings;
    settings.state.emplace();
    if (options.alive_ms > 0) set_windows(settings.settings, options.alive_ms);
    settings.settings.strategy = options.strategy;
    if (options.strategy == MMN_STRATEGY_SEEDED) join_cluster(settings, options);
    settings.relays = options.relays;
    mmn::Room room(options.id, options.session.empty() ? mmn::generate_room_code() : options.session, settings);
    run(room, options);
    room.shutdown();
  } catch (const mmn::Error& error) {
    fail(options.id, error);
    return 1;
  }
  say(options.id, "closed");
  return 0;
}
