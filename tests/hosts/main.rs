//! Programs in C, C++, C#, Python, Lua, JavaScript and Java that load the built library, as hosts do.
//!
//! They need `target/release/libmeta_mystia_network.so` (`make build`) and the tools that `scripts/install-tools.sh` installs.
//! Run as root, each test has its own network, and several run at a time.

mod bad_input;
mod behind_nats;
mod bench;
mod browse;
mod chaos;
mod classic;
mod coop;
mod delivery;
mod demo;
mod discovery;
mod first_pages;
mod fork;
mod game_engines;
mod garbage;
mod gossip;
mod migration;
mod names;
mod old_host;
mod over_a_relay;
mod over_turn;
mod overlay;
mod packages_c;
mod packages_csharp;
mod packages_python;
mod picture;
mod players;
mod port_mapping;
mod promises;
mod readme;
mod rooms;
mod sample;
mod scripts;
mod seeded;
mod snippets;
mod state;
mod stories;
mod survive;
mod tools;
mod transfers;
mod transports;
mod typed;
