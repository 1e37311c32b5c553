/*
 * delivery.c in C++.
 *
 *   g++ -std=c++17 -O2 -pthread -Iinclude -Ibindings/cpp tests/hosts/delivery/delivery.cpp -o delivery -ldl
 *   MMN_LIBRARY=... ./delivery ID SESSION [ADDRESS OF THE FIRST]
 */
#include <meta_mystia_network.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include <poll.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::uint16_t numbered = mmn::first_user_type, enough = numbered + 1, too_long = numbered + 2;
constexpr int all_peers = 3, deliveries = 4, reliable = 100, loose = 20, keys = 2, least_datagram = 1100;
constexpr std::uint32_t lag_ms = 10, jitter_ms = 100, loss_permille = 20;
constexpr std::uint8_t channels[deliveries] = {1, 128, 200, 255};
constexpr auto loose_every = 20ms;
constexpr auto timeout = 60s;

std::string own_id;

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "FAILED %s: %s\n", own_id.c_str(), text.c_str());
  std::fflush(nullptr);
  _exit(1);
}

struct Peer {
  std::set<int> seen[deliveries];
  std::map<int, int> newest;  // of each key of the sequenced messages
  bool answered = false;      // knows that this member has received enough
  bool satisfied = false;     // has received enough from this member

  bool enough() const {
    return seen[0].size() == reliable && seen[1].size() == reliable && seen[2].size() >= loose && seen[3].size() >= loose;
  }
};

mmn::SendOptions delivery_of(int delivery, int number) {
  switch (delivery) {
    case MMN_DELIVERY_RELIABLE_ORDERED: return mmn::SendOptions::reliable_ordered(channels[delivery]);
    case MMN_DELIVERY_RELIABLE_UNORDERED: return mmn::SendOptions::reliable_unordered(channels[delivery]);
    case MMN_DELIVERY_UNRELIABLE: return mmn::SendOptions::unreliable(channels[delivery]);
    default: return mmn::SendOptions::sequenced(static_cast<std::uint64_t>(number % keys), channels[delivery]);
  }
}

std::string text_of(int delivery, int number) { return std::to_string(delivery) + " " + std::to_string(number); }

void must_be_refused(std::int32_t code, const std::string& what, const std::function<void()>& call) {
  try {
    call();
  } catch (const mmn::Error& error) {
    if (error.code() == code) return;
    fail(what + " was refused with " + std::to_string(error.code()) + ": " + error.what());
  }
  fail(what + " was not refused");
}

class Member {
 public:
  explicit Member(mmn::Room& room) : room_(room) {
    room_.on_event([this](const mmn::Event& event) { on_event(event); });
    // An exception of a handler must end the program, too.
    room_.on_handler_error([](std::exception_ptr) { fail("a handler threw"); });
  }

  // One round; false at the end.
  bool round() {
    room_.poll();
    const auto now = Clock::now();
    if (!started_ && peers_.size() == all_peers) {
      // From here on packets are lost and reordered.
      room_.simulate_network(lag_ms, jitter_ms, loss_permille);
      send_reliable();
      refusals();
      started_ = true;
      next_ = now;
    }
    if (started_ && now >= next_ && !all_satisfied()) {
      send(MMN_DELIVERY_UNRELIABLE, number_);
      send(MMN_DELIVERY_SEQUENCED, number_);
      number_++;
      next_ = now + loose_every;
    }
    for (auto& [id, peer] : peers_) answer(id, peer);
    const std::string lacking = lack();
    if (lacking.empty() && !done_) {
      done_ = true;
      std::puts("OK");
      std::fflush(stdout);
    }
    if (!lacking.empty() && now > start_ + timeout) fail("not within " + std::to_string(timeout.count()) + " s: " + lacking);
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    char byte;
    return ::poll(&input, 1, 5) <= 0 || read(STDIN_FILENO, &byte, 1) > 0;
  }

  bool done() const { return done_; }

 private:
  void on_event(const mmn::Event& event) {
    event.visit(
        [this](const mmn::PeerJoined& joined) {
          const std::string id(joined.peer);
          if (!peers_.emplace(id, Peer()).second || peers_.size() > all_peers) fail(id + " is one member too many");
        },
        [this](const mmn::PeerLeft& left) {
          if (!done_) fail(std::string(left.peer) + " left too early");
        },
        [this](const mmn::Message& message) { on_message(message); });
  }

  void on_message(const mmn::Message& message) {
    const std::string id(message.from);
    const auto peer = peers_.find(id);
    if (peer == peers_.end()) fail("a message of " + id + ", which has not joined");
    if (message.type == numbered) {
      on_numbered(id, peer->second, message);
    } else if (message.type == enough) {
      // A send without options.
      if (message.delivery != MMN_DELIVERY_RELIABLE_ORDERED || message.channel != 0) {
        fail("a send without options of " + id + " has delivery " + std::to_string(message.delivery) + " and channel " +
             std::to_string(message.channel));
      }
      peer->second.satisfied = true;
    } else {
      fail("a message of type " + std::to_string(message.type) + " from " + id);
    }
  }

  static void on_numbered(const std::string& id, Peer& peer, const mmn::Message& message) {
    const std::string what = std::string(message.data) + " from " + id;
    std::istringstream words{std::string(message.data)};
    int delivery = -1, number = -1;
    if (!(words >> delivery >> number) || delivery < 0 || delivery >= deliveries || number < 0) fail(what + " is no message");
    if (message.delivery != delivery) fail(what + " has delivery " + std::to_string(message.delivery));
    if (message.channel != channels[delivery]) fail(what + " came on channel " + std::to_string(message.channel));
    const std::size_t before = peer.seen[delivery].size();
    if (!peer.seen[delivery].insert(number).second) fail(what + " came twice");
    if (delivery == MMN_DELIVERY_RELIABLE_ORDERED && static_cast<std::size_t>(number) != before) {
      fail(what + " came after " + std::to_string(before) + " others");
    }
    if (delivery == MMN_DELIVERY_SEQUENCED) {
      int& newest = peer.newest.emplace(number % keys, -1).first->second;
      if (number <= newest) fail(what + " came after " + std::to_string(newest));
      newest = number;
    }
  }

  void send(int delivery, int number) {
    if (number % 2 == 0) {
      room_.broadcast(text_of(delivery, number), numbered, delivery_of(delivery, number));
      return;
    }
    for (const auto& entry : peers_) room_.send(entry.first, text_of(delivery, number), numbered, delivery_of(delivery, number));
  }

  void send_reliable() {
    for (int number = 0; number < reliable - 1; number++) {
      send(MMN_DELIVERY_RELIABLE_ORDERED, number);
      send(MMN_DELIVERY_RELIABLE_UNORDERED, number);
    }
    for (const int delivery : {MMN_DELIVERY_RELIABLE_ORDERED, MMN_DELIVERY_RELIABLE_UNORDERED}) {
      const std::int32_t took = room_.broadcast_partial(text_of(delivery, reliable - 1), numbered, delivery_of(delivery, 0));
      if (took != all_peers) fail("a broadcast in part went to " + std::to_string(took) + " members");
    }
  }

  void refusals() {
    const mmn::SendOptions unreliable = delivery_of(MMN_DELIVERY_UNRELIABLE, 0);
    too_long_is_refused([&] { return room_.max_datagram_size(); },
                        [&](const std::string& data) { room_.broadcast(data, too_long, unreliable); });
    for (const auto& entry : peers_) {
      const std::string& id = entry.first;
      too_long_is_refused([&] { return room_.max_datagram_size(id); },
                          [&](const std::string& data) { room_.send(id, data, too_long, unreliable); });
    }
    mmn::SendOptions unknown = unreliable;
    unknown.delivery = 7;
    must_be_refused(MMN_INVALID_ARGUMENT, "a broadcast with delivery 7", [&] { room_.broadcast("?", too_long, unknown); });
    must_be_refused(MMN_INVALID_ARGUMENT, "a send with delivery 7",
                    [&] { room_.send(peers_.begin()->first, "?", too_long, unknown); });
  }

  static void too_long_is_refused(const std::function<std::int32_t()>& longest, const std::function<void(const std::string&)>& send) {
    for (;;) {
      const std::int32_t size = longest();
      if (size < least_datagram) fail("the longest datagram has " + std::to_string(size) + " bytes");
      try {
        send(std::string(static_cast<std::size_t>(size) + 1, 'x'));
      } catch (const mmn::Error& error) {
        if (error.code() == MMN_MESSAGE_TOO_LARGE) return;
        fail("a datagram that is too long was refused with " + std::to_string(error.code()) + ": " + error.what());
      }
      // Path MTU discovery may have raised the link's limit meanwhile.
      if (longest() <= size) fail("a datagram that is too long was not refused");
    }
  }

  void answer(const std::string& id, Peer& peer) {
    if (peer.answered || !peer.enough()) return;
    room_.send(id, "", enough);
    peer.answered = true;
  }

  bool all_satisfied() const {
    return std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) { return entry.second.satisfied; });
  }

  // The first thing that is missing; "" when everything has arrived.
  std::string lack() const {
    if (peers_.size() < all_peers) return "members are missing";
    for (const auto& [id, peer] : peers_) {
      if (peer.enough() && peer.satisfied) continue;
      const auto count = [&seen = peer.seen](int delivery) { return std::to_string(seen[delivery].size()); };
      return "from " + id + " came " + count(0) + " ordered, " + count(1) + " unordered, " + count(2) + " unreliable, " + count(3) +
             " sequenced; it has " + (peer.satisfied ? "enough" : "not enough");
    }
    return "";
  }

  mmn::Room& room_;
  std::map<std::string, Peer> peers_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
  int number_ = 0;
  bool started_ = false, done_ = false;
};

} // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: delivery ID SESSION [ADDRESS]\n");
    return 2;
  }
  own_id = argv[1];
  try {
    const char* path = std::getenv("MMN_LIBRARY");
    mmn::Library library(path ? path : "libmeta_mystia_network.so");
    mmn::Options options(library.api());
    options.settings.discovery_mode = MMN_DISCOVERY_OFF;
    // A busy machine must not look like a lost link.
    options.settings.heartbeat_timeout_multiplier = 20;
    mmn::Room room(library.api(), own_id, argv[2], options);
    Member member(room);
    std::printf("address %s\n", room.local_address().c_str());
    std::fflush(stdout);
    if (argc > 3) room.connect(argv[3]);
    while (member.round()) {
    }
    room.shutdown();
    return member.done() ? 0 : 1;
  } catch (const std::exception& error) {
    fail(error.what());
  }
}
