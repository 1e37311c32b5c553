// A member that greets each other one: `hello_cpp ID [ADDRESS]`. It prints its address and its messages, and leaves at the end of
// its input.
#include <meta_mystia_network.hpp>

#include <iostream>
#include <string>

int main(int argc, char** argv) try {
  mmn::Room room(argc > 1 ? argv[1] : "dave", "packages");
  room.on_message([](const mmn::Message& message) { std::cout << message.from << ": " << message.text() << std::endl; });
  room.on_peer([&room](std::string_view peer, mmn::PeerStatus status) {
    if (status == mmn::PeerStatus::connected) room.send(std::string(peer), "hello from C++");
  });
  std::cout << room.local_address() << std::endl;
  if (argc > 2) room.connect(argv[2]);
  while (std::cin.get() != std::char_traits<char>::eof()) {
  }
} catch (const mmn::Error& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
