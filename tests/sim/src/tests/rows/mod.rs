//! Tests of public Raft and membership libraries, with whole rooms. Each test's name begins with the id of its row in
//! `docs/scenarios.md`.

mod check_quorum;
mod elections;
mod etcd;
mod fuzzy;
mod membership;
mod partitions;
mod table;
mod transfers;
