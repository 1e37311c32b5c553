/*
 * A lobby on the console: members, round-trip times, the leader and a little chat. The samples in the other languages
 * (csharp-sample, examples/c, examples/python) take the same arguments and print the same lines.
 *
 *   g++ -std=c++17 -O2 -pthread -Iinclude -Ibindings/cpp examples/cpp/lobby.cpp -o lobby \
 *       -Ltarget/release -lmeta_mystia_network -Wl,-rpath,"$PWD/target/release"
 *   ./lobby --id alice --session tea
 *   ./lobby --id bob --session tea --connect ADDRESS_OF_ALICE
 */

#include <meta_mystia_network.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
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
constexpr std::uint16_t chat = mmn::first_user_type;

struct Options {
  std::string id, session, connect;
  double seconds = 1e9;
  bool interactive = stdin_is_terminal();
};

// What was typed, between the thread that reads and the one that obeys.
struct Input {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> lines;
  bool ended = false;
};

// One call per line: the library's thread and the main thread both print.
void say(const std::string& id, const std::string& text) {
  std::printf("[%s] %s\n", id.c_str(), text.c_str());
  std::fflush(stdout);
}

void fail(const std::string& id, const mmn::Error& error) {
  std::fprintf(stderr, "[%s] error: %s (%d)\n", id.c_str(), error.what(), static_cast<int>(error.code()));
}

// A refused call is worth a line, not the end of the program: the room goes on.
template <typename Call>
void attempt(const std::string& id, Call call) {
  try {
    call();
  } catch (const mmn::Error& error) {
    fail(id, error);
  }
}

std::string members(const mmn::Room& room, const std::string& id) {
  std::vector<std::string> names = room.peers();
  names.push_back(id);
  std::sort(names.begin(), names.end());
  std::string line = "members:";
  for (const std::string& name : names) {
    const int rtt = name == id ? 0 : room.rtt_ms(name);
    line += " " + name + "(" + (rtt < 0 ? "-" : std::to_string(rtt)) + " ms)";
  }
  const std::string leader = room.leader();
  return line + (leader.empty() ? "; no leader" : "; leader: " + leader);
}

void read_input(const std::shared_ptr<Input>& input) {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::lock_guard<std::mutex> lock(input->mutex);
    input->lines.push_back(line);
    input->changed.notify_one();
  }
  std::lock_guard<std::mutex> lock(input->mutex);
  input->ended = true;
  input->changed.notify_one();
}

// The next typed line, "/quit" at the end of the input, or nothing when the time has come.
std::optional<std::string> next_line(Input& input, Clock::time_point until) {
  std::unique_lock<std::mutex> lock(input.mutex);
  if (!input.changed.wait_until(lock, until, [&] { return input.ended || !input.lines.empty(); })) return std::nullopt;
  if (input.lines.empty()) return "/quit";
  std::string line = std::move(input.lines.front());
  input.lines.pop_front();
  return line;
}

void run(mmn::Room& room, const Options& options) {
  const std::string& id = options.id;
  say(id, "listening on " + room.local_address());
  room.on_leader([id](std::string_view leader) {
    say(id, leader.empty() ? "no leader" : "leader is " + std::string(leader));
  });
  room.on_peer([id](std::string_view peer, mmn::PeerStatus status) {
    say(id, "peer " + std::string(peer) + (status == mmn::PeerStatus::connected ? " connected" : " left"));
  });
  room.on_message([id](const mmn::Message& message) {
    if (message.type == chat) say(id, "from " + std::string(message.from) + ": " + std::string(message.text()));
  });
  room.on_connection([id, &room](const mmn::ConnectionResult& result) {
    say(id, "dialled " + std::string(result.address) + ": " +
                (result.success ? "ok" : "error " + std::to_string(result.code) + " " + room.describe(result.code)));
  });
  if (!options.connect.empty()) room.connect(options.connect);

  // Shared with a thread that may still be waiting for a line when the program ends.
  const auto input = std::make_shared<Input>();
  if (options.interactive) std::thread(read_input, input).detach();

  const Clock::time_point start = Clock::now();
  const auto after = [&](double seconds) {
    return start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  for (int beat = 1;; beat++) {
    const Clock::time_point next = after(std::min<double>(beat, options.seconds));
    while (const auto line = next_line(*input, next)) {
      if (*line == "/quit") return;
      if (line->rfind("/leader ", 0) == 0) {
        attempt(id, [&] { room.set_leader(line->substr(8)); });
      } else if (!line->empty()) {
        attempt(id, [&] { room.broadcast(*line, chat); });
      }
    }
    if (Clock::now() >= after(options.seconds)) return;
    attempt(id, [&] { room.broadcast("hello " + std::to_string(beat) + " from " + id, chat); });
    say(id, members(room, id));
  }
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
    else if (name == "--connect") options.connect = argv[i];
    else if (name == "--seconds") options.seconds = std::atof(argv[i]);
    else return false;
  }
  return !options.id.empty() && !options.session.empty();
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: lobby --id NAME --session S [--connect ADDR] [--seconds N] [--interactive]\n"
                 "Standard input, on a terminal or with --interactive: text is chat, /leader NAME, /quit.\n");
    return 2;
  }
  try {
    mmn::Room room(options.id, options.session);
    run(room, options);
    room.shutdown();
  } catch (const mmn::Error& error) {
    fail(options.id, error);
    return 1;
  }
  say(options.id, "closed");
  return 0;
}
