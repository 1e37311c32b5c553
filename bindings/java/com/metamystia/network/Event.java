// Generated from src/ffi by `make header`: do not edit. include/meta_mystia_network.h has the meanings.
package com.metamystia.network;

/** An event of a room, as {@link Room#poll} returns it: one of these records. */
public sealed interface Event {
    /** One of the constants EVENT_... of {@link NativeMethods}. */
    int kind();

    /** An event of a newer library, to be ignored. */
    record UnknownEvent(int kind) implements Event {}

    /**
     * {@code peer} is connected. This event precedes the peer's first message.
     *
     * @param peer The new peer.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record PeerJoined(String peer, int peerIndex) implements Event {
        public int kind() {
            return 1;
        }
    }

    /**
     * The link to {@code peer} is lost and the library is dialling it again. It keeps the messages already accepted for the
     * peer, and reliable messages that are sent meanwhile, as long as the send queue has room.
     *
     * @param peer The lost peer.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record PeerReconnecting(String peer, int peerIndex) implements Event {
        public int kind() {
            return 2;
        }
    }

    /**
     * The link to {@code peer} is back. Messages that were queued for it arrive, once and in order. {@code undelivered} and
     * {@code missed} count each lost message once. This event precedes everything that the peer sends on the new link.
     *
     * @param peer The peer that is back.
     * @param undelivered Reliable messages of this host that the peer will not get. They were broadcast while it was away
     * and did not fit into its queue.
     * @param missed Reliable messages of the peer that this host will not get.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record PeerReturned(String peer, long undelivered, long missed, int peerIndex) implements Event {
        public int kind() {
            return 3;
        }
    }

    /**
     * {@code peer} is gone. This event follows the peer's last message.
     *
     * @param peer The member that is gone.
     * @param reason The reason for which a member is gone.
     * @param code Number from the host that removed or disconnected the peer, else 0.
     * @param data Bytes from the host that removed or disconnected the peer.
     * @param undelivered Reliable messages for the peer that are not known to be delivered, and that no {@link PeerReturned}
     * has counted.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record PeerLeft(String peer, int reason, int code, byte[] data, long undelivered, int peerIndex) implements Event {
        public int kind() {
            return 4;
        }
    }

    /**
     * {@code from} sent {@code data}.
     *
     * @param from The sender.
     * @param data The message.
     * @param type The sender's message type, 0x0100 or higher.
     * @param flags The sender's flags.
     * @param channel The channel that the sender named; 0 for the classic sends.
     * @param delivery The delivery of a message.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record Message(String from, byte[] data, int type, int flags, int channel, int delivery, int peerIndex) implements Event {
        public int kind() {
            return 5;
        }
    }

    /**
     * This node's mmn_set_leader for {@code peer} has ended.
     *
     * @param peer The member that mmn_set_leader named.
     * @param success Whether the peer leads.
     * @param code NativeMethods.OK, NativeMethods.TIMEOUT, NativeMethods.SUPERSEDED, NativeMethods.REJECTED (with
     * NativeMethods.QUORUM_STATIC: the leader refused the transfer) or another error.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record SetLeaderResult(String peer, boolean success, int code, int peerIndex) implements Event {
        public int kind() {
            return 6;
        }
    }

    /**
     * This node is no longer in the room. {@link PeerLeft} follows for every member, with NativeMethods.LEFT_ROOM_ENDED (for
     * a fixed host with the reason of its own departure). The host must still call mmn_close.
     *
     * @param reason The reason for which the room is over for this member.
     * @param code Number from the leader's host, else 0.
     * @param data Bytes from the leader's host.
     */
    record RoomEnded(int reason, int code, byte[] data) implements Event {
        public int kind() {
            return 7;
        }
    }

    /**
     * {@code leader} leads, or no member does.
     *
     * @param leader The member that leads; null means that no member does.
     * @param previous The previous leader as this handler last received it; null for none.
     * @param term The leader's term.
     * @param epoch The number of mmn_set_leader calls that the change builds on.
     * @param reason The reason for a change of the leader.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record LeaderChanged(String leader, String previous, long term, long epoch, int reason, int peerIndex) implements Event {
        public int kind() {
            return 8;
        }
    }

    /**
     * This node now leads. The fields are those of the preceding {@link LeaderChanged}.
     *
     * @param leader This node.
     * @param previous The previous leader; null for none.
     * @param term The leader's term.
     * @param epoch The number of mmn_set_leader calls that the change builds on.
     * @param reason The reason for a change of the leader.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record LeadershipGained(String leader, String previous, long term, long epoch, int reason, int peerIndex) implements Event {
        public int kind() {
            return 9;
        }
    }

    /**
     * This node no longer leads. The fields are those of the preceding {@link LeaderChanged}.
     *
     * @param leader The member that leads now; null means that no member does.
     * @param previous The previous leader; null for none.
     * @param term The leader's term.
     * @param epoch The number of mmn_set_leader calls that the change builds on.
     * @param reason The reason for a change of the leader.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record LeadershipLost(String leader, String previous, long term, long epoch, int reason, int peerIndex) implements Event {
        public int kind() {
            return 10;
        }
    }

    /**
     * {@code peer} asks to join. The host answers with mmn_accept_join or mmn_reject_join.
     *
     * @param peer The newcomer.
     * @param address The newcomer's address; null if it is unknown, as over a relay.
     * @param payload The newcomer's join payload.
     * @param request The number that the answer names.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record JoinRequest(String peer, String address, byte[] payload, long request, int peerIndex) implements Event {
        public int kind() {
            return 11;
        }
    }

    /**
     * Discovery found a member in the local network.
     *
     * @param address The member's address, for mmn_connect.
     */
    record Discovered(String address) implements Event {
        public int kind() {
            return 12;
        }
    }

    /**
     * A call of mmn_connect has ended.
     *
     * @param address The address as passed to mmn_connect.
     * @param success Whether the peer is connected.
     * @param code NativeMethods.OK or the reason. NativeMethods.ALREADY_CONNECTED comes with success.
     * @param peer The member that answered; null if it is unknown.
     * @param reason Number from the leader's host, if that rejected this node, or banned it with a reason that the member
     * that answered remembers; else 0.
     * @param data Bytes from that host. Otherwise, of a failed dial, a sentence for the player, with a remedy. With
     * NativeMethods.POLICY_MISMATCH it names the rule and both values; with NativeMethods.MAX_CONNECTIONS_REACHED the limit;
     * with NativeMethods.RATE_LIMITED the number of seconds for which no attempt counts; with
     * NativeMethods.NAME_NOT_RESOLVED the resolver's answer; with NativeMethods.TIMEOUT how far the dial came or which side
     * did not decide; with NativeMethods.REJECTED the rule that refused it.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record ConnectionResult(String address, boolean success, int code, String peer, int reason, byte[] data, int peerIndex) implements Event {
        public int kind() {
            return 13;
        }
    }

    /**
     * A call of mmn_broadcast with NativeMethods.SEND_PARTIAL has left {@code peer} out, because the queue to it is full.
     * One event stands for all such broadcasts until the host receives it, and for those of the second after that.
     *
     * @param peer The peer whose queue is full.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record SlowPeer(String peer, int peerIndex) implements Event {
        public int kind() {
            return 14;
        }
    }

    /**
     * This node has dropped messages with NativeMethods.DELIVERY_UNRELIABLE or NativeMethods.DELIVERY_SEQUENCED, because a
     * queue was full, their ttl_ms was over, or the link is lost. One event a second comes for each peer and direction, and
     * one with the rest before {@link PeerLeft}. Messages that the network loses, or that a newer message replaces, are not
     * counted.
     *
     * @param peer The peer at the other end.
     * @param direction The direction of messages that this member has dropped.
     * @param count Messages dropped since the last such event.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record DataDropped(String peer, int direction, long count, int peerIndex) implements Event {
        public int kind() {
            return 15;
        }
    }

    /**
     * With NativeMethods.STRATEGY_SEEDED, the state of the member {@code peer} has changed. Up to 256 of these events wait
     * for a host that takes no events; beyond that it receives the newest state of each member.
     *
     * @param peer The member, which may be this node.
     * @param state Its new state, one of NativeMethods.MEMBER_....
     * @param version The version of the cluster.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record MemberStateChanged(String peer, int state, long version, int peerIndex) implements Event {
        public int kind() {
            return 16;
        }
    }

    /**
     * A call of mmn_acquire_lock or mmn_try_lock has ended.
     *
     * @param request The number of the call.
     * @param lock The name of the lock.
     * @param success Whether this node holds the lock.
     * @param code NativeMethods.OK, NativeMethods.REJECTED (mmn_try_lock: another member holds it), NativeMethods.TIMEOUT,
     * or NativeMethods.SUPERSEDED (mmn_release_lock or mmn_close came first).
     * @param token The fencing token, while this node holds the lock; else 0.
     */
    record LockResult(long request, String lock, boolean success, int code, long token) implements Event {
        public int kind() {
            return 17;
        }
    }

    /**
     * This node no longer holds a lock, since its lease has ended. Up to 256 of these events wait for a host that takes no
     * events; beyond that it receives the newest loss of each lock.
     *
     * @param lock The name of the lock.
     * @param token Its fencing token.
     */
    record LockLost(String lock, long token) implements Event {
        public int kind() {
            return 18;
        }
    }

    /**
     * The members {@code peer} and {@code other} have no link, since {@code other} is connected to max_connections members.
     * Either may be this node; then the other one is no member here. Neither receives the other's broadcasts. The hosts of
     * both and of the leader receive this event once, for as long as the link is missing.
     *
     * @param peer One of the two members.
     * @param other The member that is connected to max_connections members.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record UnlinkedPeer(String peer, String other, int peerIndex) implements Event {
        public int kind() {
            return 22;
        }
    }

    /**
     * The ban of {@code peer} is void at this node. The leader has led for a few seconds, has no such ban and does not know
     * the member that set it: two rooms became one, for example. The leader's host may ban again.
     *
     * @param peer The banned id.
     * @param leader The leader.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record BanDropped(String peer, String leader, int peerIndex) implements Event {
        public int kind() {
            return 23;
        }
    }

    /**
     * A member that the library found and dialled by itself refused this node, or this node refused that member. The library
     * goes on by itself; the event is for the player. The library reports it once a minute for each address and code. Two
     * limits of 16 events a minute apply: one to NativeMethods.SESSION_MISMATCH, NativeMethods.AUTHENTICATION_FAILED and
     * NativeMethods.VERSION_MISMATCH, which any process can cause, and one to the other codes.
     *
     * @param peer The member that answered; null if it is unknown.
     * @param address The member's address; for one at a relay that of the relay, as in MmnOptions.relays.
     * @param foundBy The way in which the library found a member.
     * @param code NativeMethods.DUPLICATE_PEER_ID, NativeMethods.REJECTED, NativeMethods.POLICY_MISMATCH,
     * NativeMethods.MAX_CONNECTIONS_REACHED, NativeMethods.SESSION_MISMATCH, NativeMethods.AUTHENTICATION_FAILED or
     * NativeMethods.VERSION_MISMATCH.
     * @param reason As in {@link ConnectionResult}.
     * @param data As in {@link ConnectionResult}.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record DiscoveryRefused(String peer, String address, int foundBy, int code, int reason, byte[] data, int peerIndex) implements Event {
        public int kind() {
            return 21;
        }
    }

    /**
     * An {@link JoinRequest} has ended without an answer of this host: the newcomer is gone, the time is up, or another
     * member decides now. A host may close its dialog.
     *
     * @param peer The newcomer.
     * @param request The number of the request.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record JoinWithdrawn(String peer, long request, int peerIndex) implements Event {
        public int kind() {
            return 24;
        }
    }

    /**
     * The host of {@code peer} takes no events: it has not called mmn_poll, or is still in a callback. {@link HostBack},
     * {@link PeerReconnecting} or {@link PeerLeft} ends it.
     *
     * @param peer The peer.
     * @param silentMs Time without an event taken, in milliseconds: 5000 or more.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record HostSilent(String peer, long silentMs, int peerIndex) implements Event {
        public int kind() {
            return 19;
        }
    }

    /**
     * The host of {@code peer} takes events again.
     *
     * @param peer The peer.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record HostBack(String peer, int peerIndex) implements Event {
        public int kind() {
            return 20;
        }
    }

    /**
     * With NativeMethods.ENTRY_JOIN, this node has found no room yet. It goes on looking, and reports this once.
     *
     * @param waitedMs Time without a room, in milliseconds.
     */
    record NoRoomFound(long waitedMs) implements Event {
        public int kind() {
            return 25;
        }
    }

    /**
     * The messages to and from {@code peer} take another path from now on. The change loses and reorders no reliable
     * message. mmn_peer_path returns the path of a peer that has just joined or returned. Up to 256 of these events wait for
     * a host that takes no events; beyond that it receives the newest of each peer.
     *
     * @param peer The peer at the other end.
     * @param carrier The member that carries the packets from now on; null if none does, as on a direct path and over a
     * relay.
     * @param path The path from now on, one of NativeMethods.PATH_....
     * @param previous The path before, one of NativeMethods.PATH_....
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record PathChanged(String peer, String carrier, int path, int previous, int peerIndex) implements Event {
        public int kind() {
            return 26;
        }
    }

    /**
     * This member has entered a relay of MmnOptions.relays, or is not in it. While it is not, the library goes on trying,
     * and links that need no relay stay. It reports a failure once, until the reason changes or it succeeds. It also reports
     * that a relay sees this member at another address. Up to 64 of these events wait for a host that takes no events;
     * beyond that it receives the newest of each relay.
     *
     * @param relay The relay's address as given in MmnOptions.relays.
     * @param success Whether this member is in the relay.
     * @param code NativeMethods.OK, NativeMethods.CONNECTION_FAILED (the relay is unreachable, or the link to it is lost),
     * NativeMethods.TIMEOUT (no answer: the relay is off, or the network blocks UDP), NativeMethods.NAME_NOT_RESOLVED,
     * NativeMethods.AUTHENTICATION_FAILED (another token, or another key than the given one),
     * NativeMethods.MAX_CONNECTIONS_REACHED (the relay is full), NativeMethods.RATE_LIMITED or
     * NativeMethods.VERSION_MISMATCH.
     * @param data UTF-8. With success, the address at which the relay sees this member, as mmn_public_address returns it;
     * else a sentence for the player, with a remedy.
     */
    record RelayChanged(String relay, boolean success, int code, byte[] data) implements Event {
        public int kind() {
            return 27;
        }
    }

    /**
     * The room has confirmed an action of mmn_submit. The hosts of all members receive the same actions in the same order.
     *
     * @param author The member that submitted it, which may have left since.
     * @param data The action.
     * @param type The author's message type, 0x0100 or higher.
     * @param index Index of its entry. Within a history, entries have rising indexes.
     * @param timeMs Time of its entry, in milliseconds since the room's first one.
     * @param request The number from mmn_submit, if this node is the author; else 0.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record RoomAction(String author, byte[] data, int type, long index, long timeMs, long request, int peerIndex) implements Event {
        public int kind() {
            return 28;
        }
    }

    /**
     * A call of mmn_submit or mmn_set_properties has ended. This event follows those of the call's entry.
     *
     * @param request The number of the call.
     * @param index Index of its entry; 0 if it has none, or this member no longer has it.
     * @param code NativeMethods.OK; for a property set also NativeMethods.CONFLICT, NativeMethods.STATE_FULL or
     * NativeMethods.REJECTED, and then nothing has changed; NativeMethods.OUTCOME_UNKNOWN if this member was away for so
     * long that it cannot know.
     */
    record ActionResult(long request, long index, int code) implements Event {
        public int kind() {
            return 29;
        }
    }

    /**
     * A property has changed, by mmn_set_properties, because its owner has left, or because this member has taken over other
     * members' state. mmn_property already shows it so.
     *
     * @param key The name of the property.
     * @param value Its value.
     * @param owner Its owner; null if it has none.
     * @param version Its version, for expected_version of MmnPropertyChange.
     * @param exists Whether the property exists; else it has no value, owner or version.
     * @param author The member that set it; null if no mmn_set_properties did, or the state jumped.
     * @param index Index of the entry that changed it, or that the state jumped to.
     * @param timeMs Time of that entry, in milliseconds since the room's first one.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record PropertyChanged(String key, byte[] value, String owner, long version, boolean exists, String author, long index, long timeMs, int peerIndex) implements Event {
        public int kind() {
            return 30;
        }
    }

    /**
     * The host begins anew with the actions: it replaces its state by the snapshot, and receives the actions above {@code
     * index}. Properties and members do not begin anew; events with their differences follow.
     *
     * @param snapshot A state that another member's host has provided; empty for the initial state.
     * @param index Index of the last entry in that state.
     * @param reason The reason for which a host begins anew with the room's state.
     * @param code NativeMethods.OK, or NativeMethods.TIMEOUT if actions up to {@code index} are missing, because no host
     * provided a snapshot.
     * @param undone Actions undone: the number of {@link RolledBack} before this event.
     */
    record StateReset(byte[] snapshot, long index, int reason, int code, long undone) implements Event {
        public int kind() {
            return 31;
        }
    }

    /**
     * The room has taken over another history, which lacks an action that this host has received. One event comes for each
     * such action, the lowest index first, before anything else of that history.
     *
     * @param author The member that submitted it.
     * @param data The action.
     * @param type The author's message type.
     * @param index The index that it had.
     * @param request The number from mmn_submit, if this node is the author; else 0. The library does not submit it again.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record RolledBack(String author, byte[] data, int type, long index, long request, int peerIndex) implements Event {
        public int kind() {
            return 32;
        }
    }

    /**
     * Another member's host needs a snapshot of this host's state, exactly as the events before this one have made it. Copy
     * the state inside this event, and pass it to mmn_provide_snapshot then or later.
     *
     * @param request The number for mmn_provide_snapshot.
     * @param index Index of the last entry of which this host has received an event.
     */
    record SnapshotWanted(long request, long index) implements Event {
        public int kind() {
            return 33;
        }
    }

    /**
     * {@code leader} orders the requests to the room's state from now on, or no member does. Requests wait until then.
     *
     * @param leader The member that orders; null if the leader is lost.
     * @param exclusive Whether a majority of the members that count answered the leader, or it is the room's first; else the
     * room has forked.
     * @param history The history that goes on, or begins.
     * @param members Members that count for a majority.
     * @param index Index of the last entry of which this host has received an event.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record StateOpened(String leader, boolean exclusive, long history, long members, long index, int peerIndex) implements Event {
        public int kind() {
            return 34;
        }
    }

    /**
     * A member has come into the room's state or gone from it: all hosts receive this at the same place among the actions.
     * Only a member that is here may own a property.
     *
     * @param peer The member, which may be this node.
     * @param here Whether it has come; else it has gone.
     * @param index Index of the entry, or of the one that the state jumped to.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record StateMemberChanged(String peer, boolean here, long index, int peerIndex) implements Event {
        public int kind() {
            return 35;
        }
    }

    /**
     * {@code from} offers a transfer (mmn_send_transfer). The host answers within 60 s with mmn_accept_transfer,
     * mmn_accept_transfer_in_parts or mmn_cancel_transfer; it may do so in this event.
     *
     * @param from The sender.
     * @param transfer The number of the transfer.
     * @param size Its length in bytes.
     * @param tag The sender's bytes about it.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record TransferOffered(String from, long transfer, long size, byte[] tag, int peerIndex) implements Event {
        public int kind() {
            return 39;
        }
    }

    /**
     * A transfer goes on. Both hosts receive this at most ten times a second for each transfer, and none while an earlier
     * one waits for the host.
     *
     * @param peer The peer at the other end.
     * @param transfer The number of the transfer.
     * @param size Its length in bytes.
     * @param done Bytes that have arrived at the receiver.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record TransferProgress(String peer, long transfer, long size, long done, int peerIndex) implements Event {
        public int kind() {
            return 40;
        }
    }

    /**
     * A transfer is over. Each end receives this exactly once, before {@link PeerLeft} of {@code peer}.
     *
     * @param peer The peer at the other end.
     * @param transfer The number of the transfer.
     * @param size Its length in bytes.
     * @param done Bytes that have arrived at the receiver, as far as this end knows.
     * @param success Whether all of it has arrived.
     * @param reason The outcome of a transfer.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record TransferResult(String peer, long transfer, long size, long done, boolean success, int reason, int peerIndex) implements Event {
        public int kind() {
            return 41;
        }
    }

    /**
     * The next bytes of a transfer that this host takes with mmn_accept_transfer_in_parts.
     *
     * @param from The sender.
     * @param transfer The number of the transfer.
     * @param offset Position of the first byte, from 0.
     * @param data The bytes, at most 16384.
     * @param peerIndex Index of the peer, as mmn_peer_index returns it; 0 for this node and for a peer that is not in the
     * room.
     */
    record TransferPart(String from, long transfer, long offset, byte[] data, int peerIndex) implements Event {
        public int kind() {
            return 42;
        }
    }

    /**
     * The state of the port that MmnOptions.port_mapping asks the router for. The library goes on asking after a failure,
     * and reports it once, until the reason changes. Up to 64 of these events wait for a host that takes no events; beyond
     * that it receives the newest.
     *
     * @param success Whether the router claims to forward a port to this member, and what the others see does not speak
     * against it. Perhaps no member has seen anything yet.
     * @param code NativeMethods.OK, NativeMethods.TIMEOUT (the router does not answer), NativeMethods.REJECTED (it refuses),
     * NativeMethods.SERIALIZATION_ERROR (its answer makes no sense), NativeMethods.CONNECTION_FAILED (the port leads from
     * nowhere: the router has no address of the internet, most members see this one at another address, or several could not
     * come through) or NativeMethods.NOT_SUPPORTED (the room uses no IPv4 network whose router can be found).
     * @param data UTF-8. With success, the address, as mmn_public_address returns it; else a sentence for the player, with a
     * remedy.
     */
    record PortMappingChanged(boolean success, int code, byte[] data) implements Event {
        public int kind() {
            return 43;
        }
    }

    /**
     * A TURN server of MmnOptions.turn or mmn_set_turn has given this member a port, or gives none, or the port is lost.
     * While this member has none, the library goes on trying, each server in turn; links that do not go through the port
     * stay. It reports a failure once, until the reason changes or it succeeds. Up to 64 of these events wait for a host
     * that takes no events; beyond that it receives the newest of each server.
     *
     * @param server The server's URL as given, without the credentials.
     * @param success Whether this member has the port.
     * @param code NativeMethods.OK, NativeMethods.CONNECTION_FAILED (the server is unreachable, the connection to it is
     * lost, it has forgotten the port, or the list of mmn_set_turn lacks it), NativeMethods.TIMEOUT (no answer),
     * NativeMethods.NAME_NOT_RESOLVED, NativeMethods.AUTHENTICATION_FAILED (it refuses the user name or the password,
     * perhaps as expired: pass others to mmn_set_turn; or its certificate is not trusted),
     * NativeMethods.MAX_CONNECTIONS_REACHED (this user, or the server, has no free port), NativeMethods.REJECTED (it refuses
     * for another reason) or NativeMethods.SERIALIZATION_ERROR (what answers there is no TURN server).
     * @param data UTF-8. With success, the address at which the server receives for this member; else a sentence, with the
     * server's own code and words where it gave some.
     */
    record TurnChanged(String server, boolean success, int code, byte[] data) implements Event {
        public int kind() {
            return 44;
        }
    }

    /** A copy of the library's event. */
    static Event copyOf(NativeMethods.MmnEvent event) {
        return switch (event.kind) {
            case 1 -> new PeerJoined(event.peer, event.peer_index);
            case 2 -> new PeerReconnecting(event.peer, event.peer_index);
            case 3 -> new PeerReturned(event.peer, event.count, event.missed, event.peer_index);
            case 4 -> new PeerLeft(event.peer, event.reason, event.code, event.data.getByteArray(0, event.length), event.count, event.peer_index);
            case 5 -> new Message(event.peer, event.data.getByteArray(0, event.length), Short.toUnsignedInt(event.msg_type), Byte.toUnsignedInt(event.flags), Byte.toUnsignedInt(event.channel), Byte.toUnsignedInt(event.delivery), event.peer_index);
            case 6 -> new SetLeaderResult(event.peer, event.success != 0, event.code, event.peer_index);
            case 7 -> new RoomEnded(event.reason, event.code, event.data.getByteArray(0, event.length));
            case 8 -> new LeaderChanged(event.peer.isEmpty() ? null : event.peer, event.other.isEmpty() ? null : event.other, event.term, event.epoch, event.reason, event.peer_index);
            case 9 -> new LeadershipGained(event.peer.isEmpty() ? null : event.peer, event.other.isEmpty() ? null : event.other, event.term, event.epoch, event.reason, event.peer_index);
            case 10 -> new LeadershipLost(event.peer.isEmpty() ? null : event.peer, event.other.isEmpty() ? null : event.other, event.term, event.epoch, event.reason, event.peer_index);
            case 11 -> new JoinRequest(event.peer, event.other.isEmpty() ? null : event.other, event.data.getByteArray(0, event.length), event.request, event.peer_index);
            case 12 -> new Discovered(event.other);
            case 13 -> new ConnectionResult(event.other, event.success != 0, event.code, event.peer.isEmpty() ? null : event.peer, event.reason, event.data.getByteArray(0, event.length), event.peer_index);
            case 14 -> new SlowPeer(event.peer, event.peer_index);
            case 15 -> new DataDropped(event.peer, event.reason, event.count, event.peer_index);
            case 16 -> new MemberStateChanged(event.peer, event.reason, event.term, event.peer_index);
            case 17 -> new LockResult(event.request, event.other, event.success != 0, event.code, event.count);
            case 18 -> new LockLost(event.other, event.count);
            case 22 -> new UnlinkedPeer(event.peer, event.other, event.peer_index);
            case 23 -> new BanDropped(event.peer, event.other, event.peer_index);
            case 21 -> new DiscoveryRefused(event.peer.isEmpty() ? null : event.peer, event.other, Short.toUnsignedInt(event.found_by), event.code, event.reason, event.data.getByteArray(0, event.length), event.peer_index);
            case 24 -> new JoinWithdrawn(event.peer, event.request, event.peer_index);
            case 19 -> new HostSilent(event.peer, event.count, event.peer_index);
            case 20 -> new HostBack(event.peer, event.peer_index);
            case 25 -> new NoRoomFound(event.count);
            case 26 -> new PathChanged(event.peer, event.other.isEmpty() ? null : event.other, event.reason, event.code, event.peer_index);
            case 27 -> new RelayChanged(event.other, event.success != 0, event.code, event.data.getByteArray(0, event.length));
            case 28 -> new RoomAction(event.peer, event.data.getByteArray(0, event.length), Short.toUnsignedInt(event.msg_type), event.index, event.time_ms, event.request, event.peer_index);
            case 29 -> new ActionResult(event.request, event.index, event.code);
            case 30 -> new PropertyChanged(event.other, event.data.getByteArray(0, event.length), event.owner.isEmpty() ? null : event.owner, event.count, event.success != 0, event.peer.isEmpty() ? null : event.peer, event.index, event.time_ms, event.peer_index);
            case 31 -> new StateReset(event.data.getByteArray(0, event.length), event.index, event.reason, event.code, event.count);
            case 32 -> new RolledBack(event.peer, event.data.getByteArray(0, event.length), Short.toUnsignedInt(event.msg_type), event.index, event.request, event.peer_index);
            case 33 -> new SnapshotWanted(event.request, event.index);
            case 34 -> new StateOpened(event.peer.isEmpty() ? null : event.peer, event.success != 0, event.epoch, event.count, event.index, event.peer_index);
            case 35 -> new StateMemberChanged(event.peer, event.success != 0, event.index, event.peer_index);
            case 39 -> new TransferOffered(event.peer, event.request, event.count, event.data.getByteArray(0, event.length), event.peer_index);
            case 40 -> new TransferProgress(event.peer, event.request, event.count, event.index, event.peer_index);
            case 41 -> new TransferResult(event.peer, event.request, event.count, event.index, event.success != 0, event.reason, event.peer_index);
            case 42 -> new TransferPart(event.peer, event.request, event.index, event.data.getByteArray(0, event.length), event.peer_index);
            case 43 -> new PortMappingChanged(event.success != 0, event.code, event.data.getByteArray(0, event.length));
            case 44 -> new TurnChanged(event.other, event.success != 0, event.code, event.data.getByteArray(0, event.length));
            default -> new UnknownEvent(event.kind);
        };
    }
}
