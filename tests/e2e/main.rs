//! Real rooms over loopback: several members in one process, each with its own threads and sockets.

mod centralized;
mod delivery;
mod entering;
mod harness;
mod hosts;
mod indices;
mod leadership;
mod lost;
mod membership;
mod merging;
mod messages;
mod moderation;
mod options;
mod quorum;
mod seeded;
mod state;
mod through_leader;
mod traces;
mod traffic;
