// The names that parts of programs in the documents use.
#include <meta_mystia_network.hpp>

#include <iostream>
#include <string>

constexpr std::uint16_t add = 0x0100;
extern std::string me;
extern int counter;
struct Ball {};
extern Ball ball;
void attach(Ball&);
std::string encode(int);
template <class Bytes>
int decode(const Bytes&);
