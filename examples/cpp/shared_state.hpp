// State that a room shares and that survives its leader: a counter and a chat log. docs/state-by-hand.md explains it.
//
// The leader is the authority: members send it commands, it applies them and sends every member the numbered updates. Every
// member keeps a replica. A new leader asks for all replicas, continues from the freshest, and announces it.
// csharp-sample/SharedState.cs and examples/python/shared_state.py implement it in other languages with the same messages, so
// that the leadership may pass between them.
#ifndef SHARED_STATE_HPP
#define SHARED_STATE_HPP

#include <meta_mystia_network.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// A command of this member, until it is confirmed.
struct Command {
  std::string verb, text;
  std::int64_t number = 0;   // assigned when it is first sent: one more than this member's last
  std::int64_t version = 0;  // version of the state that contains it
  std::optional<std::chrono::steady_clock::time_point> sent_at;
};

// Pass it every event of the room, and call tick() once per frame, after poll().
class SharedState {
 public:
  SharedState(mmn::Room& room, std::string id) : room_(room), id_(std::move(id)) {}

  std::function<void(const std::string& author, const std::string& text)> on_chat;
  std::function<void(const Command&)> on_confirmed;

  // Queues a command ("add" and a number, or "say" and a line); false if it is not a command, or too many are pending.
  bool submit(const std::string& verb, const std::string& text) {
    if (pending_.size() >= max_pending || !is_command(verb, text)) return false;
    Command command;
    command.verb = verb;
    command.text = text;
    pending_.push_back(std::move(command));
    return true;
  }

  void on_event(const mmn::Event& event) {
    event.visit(
        [this](const mmn::LeaderChanged& change) {
          if (change.reason == MMN_LEADER_FOUND && change.leader != source_) source_.clear();
          leader_ = change.leader;
          leads_ = synced_ = false;
          asked_at_.reset();
          gather_until_.reset();
        },
        [this](const mmn::LeadershipGained&) {
          leads_ = wanted_ = true;
          synced_ = false;
          held_ = 0;
          gather_until_ = Clock::now() + gather_time;
          const std::vector<std::string> peers = room_.peers();
          awaited_ = std::set<std::string>(peers.begin(), peers.end());
          replicas_.clear();
          replicas_[id_] = {{state_.leadership, state_.version}, source_.empty(), std::nullopt};
        },
        [this](const mmn::PeerReconnecting& lost) {
          lost_.insert(std::string(lost.peer));
          awaited_.erase(std::string(lost.peer));
        },
        [this](const mmn::PeerJoined& joined) { lost_.erase(std::string(joined.peer)); },
        [this](const mmn::PeerReturned& returned) { lost_.erase(std::string(returned.peer)); },
        [this](const mmn::PeerLeft& left) {
          lost_.erase(std::string(left.peer));
          awaited_.erase(std::string(left.peer));
          if (left.peer == leader_) synced_ = false;
        },
        [this](const mmn::Message& received) {
          try {
            message(std::string(received.from), received.type, received.data);
          } catch (const std::invalid_argument&) {
            // From another program, or from a newer version of this one.
          }
        });
  }

  // Once per frame.
  void tick() {
    if (leads_) lead();
    else if (!leader_.empty()) follow();
    if (synced_) {
      settle();
      send_pending();
    }
  }

  std::string text() const {
    std::uint32_t digest = 0x811C9DC5; // FNV-1a: equal at every member, in every language
    for (const char part : encode()) digest = (digest ^ static_cast<unsigned char>(part)) * 0x01000193;
    char hex[9];
    std::snprintf(hex, sizeof hex, "%08x", static_cast<unsigned>(digest));
    return "state: " + std::to_string(state_.counter) + ", " + std::to_string(state_.chat.size()) + " lines, version " +
           std::to_string(state_.leadership) + "." + std::to_string(state_.version) + ", digest " + hex + ", " +
           std::to_string(pending_.size()) + " unconfirmed";
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Position = std::pair<std::int64_t, std::int64_t>; // leadership, version: the larger one is fresher

  static constexpr std::uint16_t command_type = mmn::first_user_type + 0x10;  // member to leader: number, verb, text
  static constexpr std::uint16_t update_type = mmn::first_user_type + 0x11;   // leader to all: version, author, number, verb, text
  static constexpr std::uint16_t snapshot_type = mmn::first_user_type + 0x12; // leader to all: the state
  static constexpr std::uint16_t replica_type = mmn::first_user_type + 0x13;  // member to leader: "here is my state; send me yours"
  static constexpr std::uint16_t have_type = mmn::first_user_type + 0x14;     // member to leader: leadership and version of its replica
  static constexpr std::uint16_t superseded_type = mmn::first_user_type + 0x15; // as replica_type, from a side of the room whose leader did not stay

  static constexpr std::size_t chat_lines = 50;
  static constexpr std::size_t authors = 256; // number of authors whose last number is kept; more than a room has members
  static constexpr std::size_t max_pending = 256;
  static constexpr std::size_t max_text_bytes = 400;
  static constexpr std::chrono::seconds gather_time{3}; // time for which a new leader waits for the replicas of connected members
  static constexpr std::chrono::milliseconds ask_time{500};
  static constexpr std::chrono::seconds resend_time{1};

  struct State {
    std::int64_t leadership = 0, version = 0, counter = 0;
    std::deque<std::pair<std::string, std::string>> chat;     // author, text
    std::deque<std::pair<std::string, std::int64_t>> numbers; // author, number of its last command; the author of the last command comes last
  };

  // A replica that a new leader may continue from.
  struct Replica {
    Position position;
    bool superseded = false; // it belongs to a side of the room whose leader did not stay
    std::optional<std::string> data; // none for the new leader's own
  };

  // ---------------------------------------------------------------- messages

  void message(const std::string& peer, std::uint16_t type, std::string_view data) {
    // send_from_leader stamps the first two: those of a replaced leader do not arrive here.
    if (peer == leader_ && !leads_) {
      if (type == snapshot_type) {
        adopt(data);
        source_ = peer;
        renumber();
      } else if (type == update_type && synced_) {
        const auto update = fields(data, 5);
        if (number(update[0]) != state_.version + 1) {
          synced_ = false; // an update is missing: ask again
          return;
        }
        apply(update[1], number(update[2]), update[3], update[4]);
      }
    } else if (leads_ && type == command_type && synced_) {
      const auto command = fields(data, 3);
      obey(peer, number(command[0]), command[1], command[2]);
    } else if (leads_ && (type == replica_type || type == superseded_type)) {
      wanted_ = true;
      awaited_.erase(peer);
      const auto head = fields(data.substr(0, data.find('\n')), 3);
      const Position position{number(head[0]), number(head[1])};
      if (gather_until_) replicas_[peer] = {position, type == superseded_type, std::string(data)};
    } else if (leads_ && type == have_type) {
      const auto have = fields(data, 2);
      if (number(have[0]) == state_.leadership) held_ = std::max(held_, number(have[1]));
    }
  }

  void obey(const std::string& author, std::int64_t number, const std::string& verb, const std::string& text) {
    // A command with an earlier number is a repetition; one with a later number comes again, behind the missing ones.
    if (number != last_of(author) + 1 || !is_command(verb, text)) return;
    const std::string update = std::to_string(state_.version + 1) + "\t" + author + "\t" + std::to_string(number) + "\t" + verb + "\t" + text;
    // Sent first, then applied: a command that cannot be sent has no effect, and its author sends it again.
    if (sent([&] { room_.send_from_leader(update, update_type); })) apply(author, number, verb, text);
  }

  // ---------------------------------------------------------------- once per frame

  void lead() {
    if (gather_until_) {
      if (!awaited_.empty() && Clock::now() < *gather_until_) return;
      const Replica best = freshest();
      std::int64_t counted = 0;
      for (const auto& [member, replica] : replicas_) counted = std::max(counted, replica.position.first);
      if (best.data) adopt(*best.data);
      state_.leadership = counted + 1;
      gather_until_.reset();
      replicas_.clear();
      source_ = id_;
      renumber();
    }
    if (wanted_ && sent([&] { room_.send_from_leader(encode(), snapshot_type); })) {
      wanted_ = false;
      synced_ = true;
    }
  }

  // A side that did not stay may have counted more leaderships than the one that did.
  Replica freshest() const {
    std::optional<std::int64_t> limit;
    for (const auto& [member, replica] : replicas_) {
      if (!replica.superseded) limit = std::max(limit.value_or(0), replica.position.first);
    }
    Replica best{{-1, 0}, false, std::nullopt};
    for (const auto& [member, replica] : replicas_) {
      if ((!limit || replica.position.first <= *limit) && replica.position > best.position) best = replica;
    }
    return best;
  }

  void follow() {
    const Position have{state_.leadership, state_.version};
    if (!synced_) {
      if (!asked_at_ || Clock::now() - *asked_at_ >= ask_time) {
        asked_at_ = Clock::now();
        sent([&] { room_.send_to_leader(encode(), source_.empty() ? superseded_type : replica_type); });
      }
    } else if (told_ != have) {
      const std::string text = std::to_string(have.first) + "\t" + std::to_string(have.second);
      if (sent([&] { room_.send_to_leader(text, have_type); })) told_ = have;
    }
  }

  void send_pending() {
    const std::int64_t applied = last_of(id_);
    std::int64_t last = applied;
    for (Command& command : pending_) {
      if (command.number == 0) command.number = last + 1;
      last = command.number;
      if (command.number > applied && (!command.sent_at || Clock::now() - *command.sent_at >= resend_time)) {
        const std::string text = std::to_string(command.number) + "\t" + command.verb + "\t" + command.text;
        if (!sent([&] { room_.send_to_leader(text, command_type); })) return;
        command.sent_at = Clock::now();
      }
    }
  }

  // Confirms commands that are safe: a follower's are in its replica, the leader's in that of another member.
  void settle() {
    const bool alone = lost_.empty() && room_.peers().empty();
    const std::int64_t last = last_of(id_);
    std::vector<Command> waiting;
    for (Command& command : pending_) {
      const bool applied = command.number > 0 && command.number <= last;
      if (applied && command.version == 0) command.version = state_.version;
      if (applied && (!leads_ || alone || command.version <= held_)) {
        if (on_confirmed) on_confirmed(command);
      } else {
        waiting.push_back(std::move(command));
      }
    }
    pending_ = std::move(waiting);
  }

  // ---------------------------------------------------------------- the state

  void apply(const std::string& author, std::int64_t command, const std::string& verb, const std::string& text) {
    if (verb == "add") {
      state_.counter += number(text);
    } else if (verb == "say") {
      state_.chat.emplace_back(author, text);
      if (state_.chat.size() > chat_lines) state_.chat.pop_front();
      if (on_chat) on_chat(author, text);
    }
    auto& numbers = state_.numbers;
    numbers.erase(std::remove_if(numbers.begin(), numbers.end(), [&](const auto& entry) { return entry.first == author; }),
                  numbers.end());
    numbers.emplace_back(author, command);
    if (numbers.size() > authors) numbers.pop_front();
    state_.version++;
  }

  void adopt(std::string_view data) {
    const auto lines = split(data, '\n');
    const auto head = fields(lines[0], 3);
    State next;
    next.leadership = number(head[0]);
    next.version = number(head[1]);
    next.counter = number(head[2]);
    for (std::size_t i = 1; i < lines.size(); i++) {
      const auto row = fields(lines[i], 3);
      if (row[0] == "n") next.numbers.emplace_back(row[1], number(row[2]));
      else if (row[0] == "c") next.chat.emplace_back(row[1], row[2]);
    }
    state_ = std::move(next);
    synced_ = !leads_;
  }

  // Runs after another state replaced this one: sends the commands that it does not contain again, without a gap.
  void renumber() {
    settle();
    const std::int64_t applied = last_of(id_);
    std::int64_t last = applied;
    for (Command& command : pending_) {
      if (command.number <= applied) continue;
      // At once: the update with this command may be the next message.
      command.number = ++last;
      command.version = 0;
      command.sent_at.reset();
    }
  }

  std::string encode() const {
    std::string text = std::to_string(state_.leadership) + "\t" + std::to_string(state_.version) + "\t" + std::to_string(state_.counter);
    for (const auto& [author, last] : state_.numbers) text += "\nn\t" + author + "\t" + std::to_string(last);
    for (const auto& [author, line] : state_.chat) text += "\nc\t" + author + "\t" + line;
    return text;
  }

  // ---------------------------------------------------------------- helpers

  // Commands that the leader accepts; the other members accept the leader's updates.
  static bool is_command(const std::string& verb, const std::string& text) {
    if (verb == "add") {
      const std::size_t sign = text.rfind('-', 0) == 0 ? 1 : 0;
      const std::size_t digits = text.size() - sign;
      return digits >= 1 && digits <= 9 && text.find_first_not_of("0123456789", sign) == std::string::npos;
    }
    const bool has_controls = std::any_of(text.begin(), text.end(), [](unsigned char byte) { return byte < ' '; });
    return verb == "say" && !text.empty() && text.size() <= max_text_bytes && !has_controls;
  }

  std::int64_t last_of(const std::string& author) const {
    for (const auto& [name, last] : state_.numbers) {
      if (name == author) return last;
    }
    return 0;
  }

  // False if the library refused: no leader, a full queue. Every such send is tried again.
  template <typename Call>
  static bool sent(Call call) {
    try {
      call();
      return true;
    } catch (const mmn::Error&) {
      return false;
    }
  }

  static std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t from = 0;;) {
      const std::size_t end = std::min(text.find(separator, from), text.size());
      parts.emplace_back(text.substr(from, end - from));
      if (end == text.size()) return parts;
      from = end + 1;
    }
  }

  static std::vector<std::string> fields(std::string_view text, std::size_t count) {
    auto parts = split(text, '\t');
    if (parts.size() != count) throw std::invalid_argument("another number of fields");
    return parts;
  }

  static std::int64_t number(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) throw std::invalid_argument("not a number");
    return value;
  }

  mmn::Room& room_;
  const std::string id_;
  State state_; // the replica
  std::string source_; // the leader whose state it is; "" before the first one, and once another side's leader has stayed

  // This member's state.
  std::string leader_; // "" when there is none
  bool leads_ = false;
  bool synced_ = false; // the replica is the present leader's state; at the leader: it has been announced
  std::optional<Clock::time_point> asked_at_;
  Position told_{0, 0}; // in the last "have"
  std::vector<Command> pending_;
  std::set<std::string> lost_; // members that may come back

  // State of the leader.
  std::optional<Clock::time_point> gather_until_;
  std::set<std::string> awaited_; // members whose replica is still to come
  std::map<std::string, Replica> replicas_; // of all members, also this one's
  bool wanted_ = false;             // a member asked for the state
  std::int64_t held_ = 0;           // the newest version that another member also has
};

#endif // SHARED_STATE_HPP
