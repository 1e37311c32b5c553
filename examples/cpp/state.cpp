/*
 * A counter, a chat and a map that a room's members share, and that no leader takes with it. docs/state.md explains it.
 *
 *   g++ -std=c++17 -O2 -pthread -Iinclude -Ibindings/cpp examples/cpp/state.cpp -o state \
 *       -Ltarget/release -lmeta_mystia_network
 *   ./state alice tea
 *
 * Lines of the standard input: a number adds to the counter, /map NAME, /claim ITEM, /quit; all others are chat.
 */
#include <meta_mystia_network.hpp>

#include <algorithm>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
  if (argc < 3) return std::cerr << "usage: state NAME ROOM\n", 2;
  constexpr std::uint16_t add = mmn::first_user_type, say = add + 1;
  int counter = 0;
  std::string chat;  // one line after another

  mmn::Options options;
  options.settings.dispatch_mode = MMN_DISPATCH_THREAD;
  options.settings.discovery_mode = MMN_DISCOVERY_CONNECT;
  mmn::StateHandlers& on = options.state.emplace().handlers;
  on.on_property = [](const mmn::PropertyChanged& p) {
    if (p.owner.empty()) std::cout << p.key << " is " << p.value << std::endl;
  };
  on.on_action = [&](const mmn::Action& a) {
    if (a.type == add) std::cout << "counter " << (counter += std::stoi(std::string(a.text()))) << std::endl;
    if (a.type != say) return;
    const std::string line = std::string(a.author) + ": " + std::string(a.text());
    chat += line + "\n";
    std::cout << "chat " << line << std::endl;
  };
  on.on_save = [&] { return std::to_string(counter) + "\n" + chat; };
  on.on_load = [&](std::string_view bytes) {
    const std::string saved(bytes.empty() ? "0\n" : bytes);
    counter = std::stoi(saved);
    chat = saved.substr(saved.find('\n') + 1);
    std::cout << "loaded " << counter << ", " << std::count(chat.begin(), chat.end(), '\n') << " lines" << std::endl;
  };
  try {
    mmn::Room room(argv[1], argv[2], options);
    const mmn::RoomState state = room.state();
    room.on_leader([](std::string_view leader) { std::cout << "leader " << (leader.empty() ? "none" : leader) << std::endl; });
    for (std::string line; std::getline(std::cin, line) && line != "/quit";) {
      const bool is_number = !line.empty() && line.size() < 7 && line.find_first_not_of("0123456789") == std::string::npos;
      if (line.rfind("/map ", 0) == 0) state.set("map", line.substr(5));
      else if (line.rfind("/claim ", 0) == 0)
        state.claim(line.substr(7), [](bool won) { std::cout << (won ? "claim won" : "claim lost") << std::endl; });
      else state.submit(is_number ? add : say, line);
    }
  } catch (const mmn::Error& error) {
    return std::cerr << error.what() << " (" << error.code() << ")\n", 1;
  }
}
