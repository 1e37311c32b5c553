// Generated from src/ffi by `make header`: do not edit. Events.cs has the parts written by hand.
namespace MetaMystia.Network
{
    /// <summary><c>Peer</c> is connected. This event precedes the peer's first message.</summary>
    public sealed partial class PeerJoined : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.Joined; }
        }

        /// <summary>The new peer.</summary>
        public string Peer { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>The link to <c>Peer</c> is lost and the library is dialling it again. It keeps the messages already accepted for the peer, and reliable messages that are sent meanwhile, as long as the send queue has room.</summary>
    public sealed partial class PeerReconnecting : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.Reconnecting; }
        }

        /// <summary>The lost peer.</summary>
        public string Peer { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>The link to <c>Peer</c> is back. Messages that were queued for it arrive, once and in order. <c>Undelivered</c> and <c>Missed</c> count each lost message once. This event precedes everything that the peer sends on the new link.</summary>
    public sealed partial class PeerReturned : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.Returned; }
        }

        /// <summary>The peer that is back.</summary>
        public string Peer { get; internal set; }

        /// <summary>Reliable messages of this host that the peer will not get. They were broadcast while it was away and did not fit into its queue.</summary>
        public ulong Undelivered { get; internal set; }

        /// <summary>Reliable messages of the peer that this host will not get.</summary>
        public ulong Missed { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary><c>Peer</c> is gone. This event follows the peer's last message.</summary>
    public sealed partial class PeerLeft : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.Left; }
        }

        /// <summary>The member that is gone.</summary>
        public string Peer { get; internal set; }

        /// <summary>The reason for which a member is gone.</summary>
        public LeftReason Reason { get; internal set; }

        /// <summary>Number from the host that removed or disconnected the peer, else 0.</summary>
        public int Code { get; internal set; }

        /// <summary>Bytes from the host that removed or disconnected the peer.</summary>
        public byte[] Data { get; internal set; }

        /// <summary>Reliable messages for the peer that are not known to be delivered, and that no <see cref="PeerReturned"/> has counted.</summary>
        public ulong Undelivered { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary><c>From</c> sent <c>Data</c>.</summary>
    public sealed partial class Message : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.Message; }
        }

        /// <summary>The sender.</summary>
        public string From { get; internal set; }

        /// <summary>The message.</summary>
        public byte[] Data { get; internal set; }

        /// <summary>The sender's message type, 0x0100 or higher.</summary>
        public ushort Type { get; internal set; }

        /// <summary>The sender's flags.</summary>
        public byte Flags { get; internal set; }

        /// <summary>The channel that the sender named; 0 for the classic sends.</summary>
        public byte Channel { get; internal set; }

        /// <summary>The delivery of a message.</summary>
        public DeliveryMode Delivery { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>This node's <c>SetLeader</c> for <c>Peer</c> has ended.</summary>
    public sealed partial class SetLeaderResult : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.SetLeaderResult; }
        }

        /// <summary>The member that <c>SetLeader</c> named.</summary>
        public string Peer { get; internal set; }

        /// <summary>Whether the peer leads.</summary>
        public bool Success { get; internal set; }

        /// <summary><see cref="ErrorCode.Ok"/>, <see cref="ErrorCode.Timeout"/>, <see cref="ErrorCode.Superseded"/>, <see cref="ErrorCode.Rejected"/> (with <see cref="QuorumPolicy.Static"/>: the leader refused the transfer) or another error.</summary>
        public int Code { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>This node is no longer in the room. <see cref="PeerLeft"/> follows for every member, with <see cref="LeftReason.RoomEnded"/> (for a fixed host with the reason of its own departure). The host must still call <see cref="Room.Dispose"/>.</summary>
    public sealed partial class RoomEnded : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.RoomEnded; }
        }

        /// <summary>The reason for which the room is over for this member.</summary>
        public EndReason Reason { get; internal set; }

        /// <summary>Number from the leader's host, else 0.</summary>
        public int Code { get; internal set; }

        /// <summary>Bytes from the leader's host.</summary>
        public byte[] Data { get; internal set; }
    }

    /// <summary><c>Leader</c> leads, or no member does.</summary>
    public sealed partial class LeaderChanged : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.LeaderChanged; }
        }

        /// <summary>The member that leads; null means that no member does.</summary>
        public string Leader { get; internal set; }

        /// <summary>The previous leader as this handler last received it; null for none.</summary>
        public string Previous { get; internal set; }

        /// <summary>The leader's term.</summary>
        public ulong Term { get; internal set; }

        /// <summary>The number of <c>SetLeader</c> calls that the change builds on.</summary>
        public ulong Epoch { get; internal set; }

        /// <summary>The reason for a change of the leader.</summary>
        public LeaderReason Reason { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>This node now leads. The fields are those of the preceding <see cref="LeaderChanged"/>.</summary>
    public sealed partial class LeadershipGained : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.LeadershipGained; }
        }

        /// <summary>This node.</summary>
        public string Leader { get; internal set; }

        /// <summary>The previous leader; null for none.</summary>
        public string Previous { get; internal set; }

        /// <summary>The leader's term.</summary>
        public ulong Term { get; internal set; }

        /// <summary>The number of <c>SetLeader</c> calls that the change builds on.</summary>
        public ulong Epoch { get; internal set; }

        /// <summary>The reason for a change of the leader.</summary>
        public LeaderReason Reason { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>This node no longer leads. The fields are those of the preceding <see cref="LeaderChanged"/>.</summary>
    public sealed partial class LeadershipLost : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.LeadershipLost; }
        }

        /// <summary>The member that leads now; null means that no member does.</summary>
        public string Leader { get; internal set; }

        /// <summary>The previous leader; null for none.</summary>
        public string Previous { get; internal set; }

        /// <summary>The leader's term.</summary>
        public ulong Term { get; internal set; }

        /// <summary>The number of <c>SetLeader</c> calls that the change builds on.</summary>
        public ulong Epoch { get; internal set; }

        /// <summary>The reason for a change of the leader.</summary>
        public LeaderReason Reason { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary><c>Peer</c> asks to join. The host answers with <c>AcceptJoin</c> or <c>RejectJoin</c>.</summary>
    public sealed partial class JoinRequest : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.JoinRequest; }
        }

        /// <summary>The newcomer.</summary>
        public string Peer { get; internal set; }

        /// <summary>The newcomer's address; null if it is unknown, as over a relay.</summary>
        public string Address { get; internal set; }

        /// <summary>The newcomer's join payload.</summary>
        public byte[] Payload { get; internal set; }

        /// <summary>The number that the answer names.</summary>
        public ulong Request { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>Discovery found a member in the local network.</summary>
    public sealed partial class Discovered : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.Discovered; }
        }

        /// <summary>The member's address, for <c>Connect</c>.</summary>
        public string Address { get; internal set; }
    }

    /// <summary>A call of <c>Connect</c> has ended.</summary>
    public sealed partial class ConnectionResult : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.ConnectionResult; }
        }

        /// <summary>The address as passed to <c>Connect</c>.</summary>
        public string Address { get; internal set; }

        /// <summary>Whether the peer is connected.</summary>
        public bool Success { get; internal set; }

        /// <summary><see cref="ErrorCode.Ok"/> or the reason. <see cref="ErrorCode.AlreadyConnected"/> comes with success.</summary>
        public int Code { get; internal set; }

        /// <summary>The member that answered; null if it is unknown.</summary>
        public string Peer { get; internal set; }

        /// <summary>Number from the leader's host, if that rejected this node, or banned it with a reason that the member that answered remembers; else 0.</summary>
        public int Reason { get; internal set; }

        /// <summary>Bytes from that host. Otherwise, of a failed dial, a sentence for the player, with a remedy. With <see cref="ErrorCode.PolicyMismatch"/> it names the rule and both values; with <see cref="ErrorCode.MaxConnectionsReached"/> the limit; with <see cref="ErrorCode.RateLimited"/> the number of seconds for which no attempt counts; with <see cref="ErrorCode.NameNotResolved"/> the resolver's answer; with <see cref="ErrorCode.Timeout"/> how far the dial came or which side did not decide; with <see cref="ErrorCode.Rejected"/> the rule that refused it.</summary>
        public byte[] Data { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>A call of <c>Broadcast</c> with <see cref="NativeMethods.SendPartial"/> has left <c>Peer</c> out, because the queue to it is full. One event stands for all such broadcasts until the host receives it, and for those of the second after that.</summary>
    public sealed partial class SlowPeer : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.SlowPeer; }
        }

        /// <summary>The peer whose queue is full.</summary>
        public string Peer { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>This node has dropped messages with <see cref="DeliveryMode.Unreliable"/> or <see cref="DeliveryMode.Sequenced"/>, because a queue was full, their ttl_ms was over, or the link is lost. One event a second comes for each peer and direction, and one with the rest before <see cref="PeerLeft"/>. Messages that the network loses, or that a newer message replaces, are not counted.</summary>
    public sealed partial class DataDropped : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.DataDropped; }
        }

        /// <summary>The peer at the other end.</summary>
        public string Peer { get; internal set; }

        /// <summary>The direction of messages that this member has dropped.</summary>
        public DroppedDirection Direction { get; internal set; }

        /// <summary>Messages dropped since the last such event.</summary>
        public ulong Count { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>With <see cref="ElectionStrategy.Seeded"/>, the state of the member <c>Peer</c> has changed. Up to 256 of these events wait for a host that takes no events; beyond that it receives the newest state of each member.</summary>
    public sealed partial class MemberStateChanged : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.MemberState; }
        }

        /// <summary>The member, which may be this node.</summary>
        public string Peer { get; internal set; }

        /// <summary>Its new state, one of <see cref="MemberState"/>.</summary>
        public MemberState State { get; internal set; }

        /// <summary>The version of the cluster.</summary>
        public ulong Version { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>A call of <c>AcquireLock</c> or <c>TryLock</c> has ended.</summary>
    public sealed partial class LockResult : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.LockResult; }
        }

        /// <summary>The number of the call.</summary>
        public ulong Request { get; internal set; }

        /// <summary>The name of the lock.</summary>
        public string Lock { get; internal set; }

        /// <summary>Whether this node holds the lock.</summary>
        public bool Success { get; internal set; }

        /// <summary><see cref="ErrorCode.Ok"/>, <see cref="ErrorCode.Rejected"/> (<c>TryLock</c>: another member holds it), <see cref="ErrorCode.Timeout"/>, or <see cref="ErrorCode.Superseded"/> (<c>ReleaseLock</c> or <see cref="Room.Dispose"/> came first).</summary>
        public int Code { get; internal set; }

        /// <summary>The fencing token, while this node holds the lock; else 0.</summary>
        public ulong Token { get; internal set; }
    }

    /// <summary>This node no longer holds a lock, since its lease has ended. Up to 256 of these events wait for a host that takes no events; beyond that it receives the newest loss of each lock.</summary>
    public sealed partial class LockLost : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.LockLost; }
        }

        /// <summary>The name of the lock.</summary>
        public string Lock { get; internal set; }

        /// <summary>Its fencing token.</summary>
        public ulong Token { get; internal set; }
    }

    /// <summary>The members <c>Peer</c> and <c>Other</c> have no link, since <c>Other</c> is connected to max_connections members. Either may be this node; then the other one is no member here. Neither receives the other's broadcasts. The hosts of both and of the leader receive this event once, for as long as the link is missing.</summary>
    public sealed partial class UnlinkedPeer : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.UnlinkedPeer; }
        }

        /// <summary>One of the two members.</summary>
        public string Peer { get; internal set; }

        /// <summary>The member that is connected to max_connections members.</summary>
        public string Other { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>The ban of <c>Peer</c> is void at this node. The leader has led for a few seconds, has no such ban and does not know the member that set it: two rooms became one, for example. The leader's host may ban again.</summary>
    public sealed partial class BanDropped : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.BanDropped; }
        }

        /// <summary>The banned id.</summary>
        public string Peer { get; internal set; }

        /// <summary>The leader.</summary>
        public string Leader { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>A member that the library found and dialled by itself refused this node, or this node refused that member. The library goes on by itself; the event is for the player. The library reports it once a minute for each address and code. Two limits of 16 events a minute apply: one to <see cref="ErrorCode.SessionMismatch"/>, <see cref="ErrorCode.AuthenticationFailed"/> and <see cref="ErrorCode.VersionMismatch"/>, which any process can cause, and one to the other codes.</summary>
    public sealed partial class DiscoveryRefused : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.DiscoveryRefused; }
        }

        /// <summary>The member that answered; null if it is unknown.</summary>
        public string Peer { get; internal set; }

        /// <summary>The member's address; for one at a relay that of the relay, as in MmnOptions.relays.</summary>
        public string Address { get; internal set; }

        /// <summary>The way in which the library found a member.</summary>
        public FoundBy FoundBy { get; internal set; }

        /// <summary><see cref="ErrorCode.DuplicatePeerId"/>, <see cref="ErrorCode.Rejected"/>, <see cref="ErrorCode.PolicyMismatch"/>, <see cref="ErrorCode.MaxConnectionsReached"/>, <see cref="ErrorCode.SessionMismatch"/>, <see cref="ErrorCode.AuthenticationFailed"/> or <see cref="ErrorCode.VersionMismatch"/>.</summary>
        public int Code { get; internal set; }

        /// <summary>As in <see cref="ConnectionResult"/>.</summary>
        public int Reason { get; internal set; }

        /// <summary>As in <see cref="ConnectionResult"/>.</summary>
        public byte[] Data { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>An <see cref="JoinRequest"/> has ended without an answer of this host: the newcomer is gone, the time is up, or another member decides now. A host may close its dialog.</summary>
    public sealed partial class JoinWithdrawn : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.JoinWithdrawn; }
        }

        /// <summary>The newcomer.</summary>
        public string Peer { get; internal set; }

        /// <summary>The number of the request.</summary>
        public ulong Request { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>The host of <c>Peer</c> takes no events: it has not called <c>Poll</c>, or is still in a callback. <see cref="HostBack"/>, <see cref="PeerReconnecting"/> or <see cref="PeerLeft"/> ends it.</summary>
    public sealed partial class HostSilent : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.HostSilent; }
        }

        /// <summary>The peer.</summary>
        public string Peer { get; internal set; }

        /// <summary>Time without an event taken, in milliseconds: 5000 or more.</summary>
        public ulong SilentMs { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>The host of <c>Peer</c> takes events again.</summary>
    public sealed partial class HostBack : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.HostBack; }
        }

        /// <summary>The peer.</summary>
        public string Peer { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>With <see cref="RoomEntry.Join"/>, this node has found no room yet. It goes on looking, and reports this once.</summary>
    public sealed partial class NoRoomFound : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.NoRoomFound; }
        }

        /// <summary>Time without a room, in milliseconds.</summary>
        public ulong WaitedMs { get; internal set; }
    }

    /// <summary>The messages to and from <c>Peer</c> take another path from now on. The change loses and reorders no reliable message. <see cref="Room.PathOf"/> returns the path of a peer that has just joined or returned. Up to 256 of these events wait for a host that takes no events; beyond that it receives the newest of each peer.</summary>
    public sealed partial class PathChanged : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.PathChanged; }
        }

        /// <summary>The peer at the other end.</summary>
        public string Peer { get; internal set; }

        /// <summary>The member that carries the packets from now on; null if none does, as on a direct path and over a relay.</summary>
        public string Carrier { get; internal set; }

        /// <summary>The path from now on, one of <see cref="LinkPath"/>.</summary>
        public LinkPath Path { get; internal set; }

        /// <summary>The path before, one of <see cref="LinkPath"/>.</summary>
        public LinkPath Previous { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>This member has entered a relay of MmnOptions.relays, or is not in it. While it is not, the library goes on trying, and links that need no relay stay. It reports a failure once, until the reason changes or it succeeds. It also reports that a relay sees this member at another address. Up to 64 of these events wait for a host that takes no events; beyond that it receives the newest of each relay.</summary>
    public sealed partial class RelayChanged : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.Relay; }
        }

        /// <summary>The relay's address as given in MmnOptions.relays.</summary>
        public string Relay { get; internal set; }

        /// <summary>Whether this member is in the relay.</summary>
        public bool Success { get; internal set; }

        /// <summary><see cref="ErrorCode.Ok"/>, <see cref="ErrorCode.ConnectionFailed"/> (the relay is unreachable, or the link to it is lost), <see cref="ErrorCode.Timeout"/> (no answer: the relay is off, or the network blocks UDP), <see cref="ErrorCode.NameNotResolved"/>, <see cref="ErrorCode.AuthenticationFailed"/> (another token, or another key than the given one), <see cref="ErrorCode.MaxConnectionsReached"/> (the relay is full), <see cref="ErrorCode.RateLimited"/> or <see cref="ErrorCode.VersionMismatch"/>.</summary>
        public int Code { get; internal set; }

        /// <summary>UTF-8. With success, the address at which the relay sees this member, as <c>PublicAddress</c> returns it; else a sentence for the player, with a remedy.</summary>
        public byte[] Data { get; internal set; }
    }

    /// <summary>The room has confirmed an action of <c>Submit</c>. The hosts of all members receive the same actions in the same order.</summary>
    public sealed partial class RoomAction : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.Action; }
        }

        /// <summary>The member that submitted it, which may have left since.</summary>
        public string Author { get; internal set; }

        /// <summary>The action.</summary>
        public byte[] Data { get; internal set; }

        /// <summary>The author's message type, 0x0100 or higher.</summary>
        public ushort Type { get; internal set; }

        /// <summary>Index of its entry. Within a history, entries have rising indexes.</summary>
        public ulong Index { get; internal set; }

        /// <summary>Time of its entry, in milliseconds since the room's first one.</summary>
        public ulong TimeMs { get; internal set; }

        /// <summary>The number from <c>Submit</c>, if this node is the author; else 0.</summary>
        public ulong Request { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>A call of <c>Submit</c> or <c>SetProperties</c> has ended. This event follows those of the call's entry.</summary>
    public sealed partial class ActionResult : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.ActionResult; }
        }

        /// <summary>The number of the call.</summary>
        public ulong Request { get; internal set; }

        /// <summary>Index of its entry; 0 if it has none, or this member no longer has it.</summary>
        public ulong Index { get; internal set; }

        /// <summary><see cref="ErrorCode.Ok"/>; for a property set also <see cref="ErrorCode.Conflict"/>, <see cref="ErrorCode.StateFull"/> or <see cref="ErrorCode.Rejected"/>, and then nothing has changed; <see cref="ErrorCode.OutcomeUnknown"/> if this member was away for so long that it cannot know.</summary>
        public int Code { get; internal set; }
    }

    /// <summary>A property has changed, by <c>SetProperties</c>, because its owner has left, or because this member has taken over other members' state. <c>Property</c> already shows it so.</summary>
    public sealed partial class PropertyChanged : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.Property; }
        }

        /// <summary>The name of the property.</summary>
        public string Key { get; internal set; }

        /// <summary>Its value.</summary>
        public byte[] Value { get; internal set; }

        /// <summary>Its owner; null if it has none.</summary>
        public string Owner { get; internal set; }

        /// <summary>Its version, for expected_version of MmnPropertyChange.</summary>
        public ulong Version { get; internal set; }

        /// <summary>Whether the property exists; else it has no value, owner or version.</summary>
        public bool Exists { get; internal set; }

        /// <summary>The member that set it; null if no <c>SetProperties</c> did, or the state jumped.</summary>
        public string Author { get; internal set; }

        /// <summary>Index of the entry that changed it, or that the state jumped to.</summary>
        public ulong Index { get; internal set; }

        /// <summary>Time of that entry, in milliseconds since the room's first one.</summary>
        public ulong TimeMs { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>The host begins anew with the actions: it replaces its state by the snapshot, and receives the actions above <c>Index</c>. Properties and members do not begin anew; events with their differences follow.</summary>
    public sealed partial class StateReset : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.StateReset; }
        }

        /// <summary>A state that another member's host has provided; empty for the initial state.</summary>
        public byte[] Snapshot { get; internal set; }

        /// <summary>Index of the last entry in that state.</summary>
        public ulong Index { get; internal set; }

        /// <summary>The reason for which a host begins anew with the room's state.</summary>
        public ResetReason Reason { get; internal set; }

        /// <summary><see cref="ErrorCode.Ok"/>, or <see cref="ErrorCode.Timeout"/> if actions up to <c>Index</c> are missing, because no host provided a snapshot.</summary>
        public int Code { get; internal set; }

        /// <summary>Actions undone: the number of <see cref="RolledBack"/> before this event.</summary>
        public ulong Undone { get; internal set; }
    }

    /// <summary>The room has taken over another history, which lacks an action that this host has received. One event comes for each such action, the lowest index first, before anything else of that history.</summary>
    public sealed partial class RolledBack : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.RolledBack; }
        }

        /// <summary>The member that submitted it.</summary>
        public string Author { get; internal set; }

        /// <summary>The action.</summary>
        public byte[] Data { get; internal set; }

        /// <summary>The author's message type.</summary>
        public ushort Type { get; internal set; }

        /// <summary>The index that it had.</summary>
        public ulong Index { get; internal set; }

        /// <summary>The number from <c>Submit</c>, if this node is the author; else 0. The library does not submit it again.</summary>
        public ulong Request { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>Another member's host needs a snapshot of this host's state, exactly as the events before this one have made it. Copy the state inside this event, and pass it to <c>ProvideSnapshot</c> then or later.</summary>
    public sealed partial class SnapshotWanted : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.SnapshotWanted; }
        }

        /// <summary>The number for <c>ProvideSnapshot</c>.</summary>
        public ulong Request { get; internal set; }

        /// <summary>Index of the last entry of which this host has received an event.</summary>
        public ulong Index { get; internal set; }
    }

    /// <summary><c>Leader</c> orders the requests to the room's state from now on, or no member does. Requests wait until then.</summary>
    public sealed partial class StateOpened : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.StateOpened; }
        }

        /// <summary>The member that orders; null if the leader is lost.</summary>
        public string Leader { get; internal set; }

        /// <summary>Whether a majority of the members that count answered the leader, or it is the room's first; else the room has forked.</summary>
        public bool Exclusive { get; internal set; }

        /// <summary>The history that goes on, or begins.</summary>
        public ulong History { get; internal set; }

        /// <summary>Members that count for a majority.</summary>
        public ulong Members { get; internal set; }

        /// <summary>Index of the last entry of which this host has received an event.</summary>
        public ulong Index { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>A member has come into the room's state or gone from it: all hosts receive this at the same place among the actions. Only a member that is here may own a property.</summary>
    public sealed partial class StateMemberChanged : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.StateMember; }
        }

        /// <summary>The member, which may be this node.</summary>
        public string Peer { get; internal set; }

        /// <summary>Whether it has come; else it has gone.</summary>
        public bool Here { get; internal set; }

        /// <summary>Index of the entry, or of the one that the state jumped to.</summary>
        public ulong Index { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary><c>From</c> offers a transfer (<c>SendTransfer</c>). The host answers within 60 s with <c>AcceptTransfer</c>, <c>AcceptTransferInParts</c> or <c>CancelTransfer</c>; it may do so in this event.</summary>
    public sealed partial class TransferOffered : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.TransferOffered; }
        }

        /// <summary>The sender.</summary>
        public string From { get; internal set; }

        /// <summary>The number of the transfer.</summary>
        public ulong Transfer { get; internal set; }

        /// <summary>Its length in bytes.</summary>
        public ulong Size { get; internal set; }

        /// <summary>The sender's bytes about it.</summary>
        public byte[] Tag { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>A transfer goes on. Both hosts receive this at most ten times a second for each transfer, and none while an earlier one waits for the host.</summary>
    public sealed partial class TransferProgress : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.TransferProgress; }
        }

        /// <summary>The peer at the other end.</summary>
        public string Peer { get; internal set; }

        /// <summary>The number of the transfer.</summary>
        public ulong Transfer { get; internal set; }

        /// <summary>Its length in bytes.</summary>
        public ulong Size { get; internal set; }

        /// <summary>Bytes that have arrived at the receiver.</summary>
        public ulong Done { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>A transfer is over. Each end receives this exactly once, before <see cref="PeerLeft"/> of <c>Peer</c>.</summary>
    public sealed partial class TransferResult : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.TransferResult; }
        }

        /// <summary>The peer at the other end.</summary>
        public string Peer { get; internal set; }

        /// <summary>The number of the transfer.</summary>
        public ulong Transfer { get; internal set; }

        /// <summary>Its length in bytes.</summary>
        public ulong Size { get; internal set; }

        /// <summary>Bytes that have arrived at the receiver, as far as this end knows.</summary>
        public ulong Done { get; internal set; }

        /// <summary>Whether all of it has arrived.</summary>
        public bool Success { get; internal set; }

        /// <summary>The outcome of a transfer.</summary>
        public TransferOutcome Reason { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>The next bytes of a transfer that this host takes with <c>AcceptTransferInParts</c>.</summary>
    public sealed partial class TransferPart : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.TransferPart; }
        }

        /// <summary>The sender.</summary>
        public string From { get; internal set; }

        /// <summary>The number of the transfer.</summary>
        public ulong Transfer { get; internal set; }

        /// <summary>Position of the first byte, from 0.</summary>
        public ulong Offset { get; internal set; }

        /// <summary>The bytes, at most 16384.</summary>
        public byte[] Data { get; internal set; }

        /// <summary>Index of the peer, as <see cref="Room.IndexOf"/> returns it; 0 for this node and for a peer that is not in the room.</summary>
        public uint PeerIndex { get; internal set; }
    }

    /// <summary>The state of the port that MmnOptions.port_mapping asks the router for. The library goes on asking after a failure, and reports it once, until the reason changes. Up to 64 of these events wait for a host that takes no events; beyond that it receives the newest.</summary>
    public sealed partial class PortMappingChanged : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.PortMapping; }
        }

        /// <summary>Whether the router claims to forward a port to this member, and what the others see does not speak against it. Perhaps no member has seen anything yet.</summary>
        public bool Success { get; internal set; }

        /// <summary><see cref="ErrorCode.Ok"/>, <see cref="ErrorCode.Timeout"/> (the router does not answer), <see cref="ErrorCode.Rejected"/> (it refuses), <see cref="ErrorCode.SerializationError"/> (its answer makes no sense), <see cref="ErrorCode.ConnectionFailed"/> (the port leads from nowhere: the router has no address of the internet, most members see this one at another address, or several could not come through) or <see cref="ErrorCode.NotSupported"/> (the room uses no IPv4 network whose router can be found).</summary>
        public int Code { get; internal set; }

        /// <summary>UTF-8. With success, the address, as <c>PublicAddress</c> returns it; else a sentence for the player, with a remedy.</summary>
        public byte[] Data { get; internal set; }
    }

    /// <summary>A TURN server of MmnOptions.turn or <c>SetTurn</c> has given this member a port, or gives none, or the port is lost. While this member has none, the library goes on trying, each server in turn; links that do not go through the port stay. It reports a failure once, until the reason changes or it succeeds. Up to 64 of these events wait for a host that takes no events; beyond that it receives the newest of each server.</summary>
    public sealed partial class TurnChanged : RoomEvent
    {
        public override EventKind Kind
        {
            get { return EventKind.Turn; }
        }

        /// <summary>The server's URL as given, without the credentials.</summary>
        public string Server { get; internal set; }

        /// <summary>Whether this member has the port.</summary>
        public bool Success { get; internal set; }

        /// <summary><see cref="ErrorCode.Ok"/>, <see cref="ErrorCode.ConnectionFailed"/> (the server is unreachable, the connection to it is lost, it has forgotten the port, or the list of <c>SetTurn</c> lacks it), <see cref="ErrorCode.Timeout"/> (no answer), <see cref="ErrorCode.NameNotResolved"/>, <see cref="ErrorCode.AuthenticationFailed"/> (it refuses the user name or the password, perhaps as expired: pass others to <c>SetTurn</c>; or its certificate is not trusted), <see cref="ErrorCode.MaxConnectionsReached"/> (this user, or the server, has no free port), <see cref="ErrorCode.Rejected"/> (it refuses for another reason) or <see cref="ErrorCode.SerializationError"/> (what answers there is no TURN server).</summary>
        public int Code { get; internal set; }

        /// <summary>UTF-8. With success, the address at which the server receives for this member; else a sentence, with the server's own code and words where it gave some.</summary>
        public byte[] Data { get; internal set; }
    }

    internal static class RoomEvents
    {
        // A copy of the library's event, as an object of its kind.
        internal static RoomEvent CopyOf(NetworkEvent native, Room room)
        {
            switch (native.Kind)
            {
                case EventKind.Joined:
                    return new PeerJoined
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.Reconnecting:
                    return new PeerReconnecting
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.Returned:
                    return new PeerReturned
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Undelivered = native.Count,
                        Missed = native.Missed,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.Left:
                    return new PeerLeft
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Reason = (LeftReason)native.Reason,
                        Code = native.Code,
                        Data = native.Bytes(),
                        Undelivered = native.Count,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.Message:
                    return new Message
                    {
                        Room = room,
                        From = Utf8.FromNative(native.Peer),
                        Data = native.Bytes(),
                        Type = native.MessageType,
                        Flags = native.Flags,
                        Channel = native.Channel,
                        Delivery = native.Delivery,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.SetLeaderResult:
                    return new SetLeaderResult
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Success = native.Success != 0,
                        Code = native.Code,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.RoomEnded:
                    return new RoomEnded
                    {
                        Room = room,
                        Reason = (EndReason)native.Reason,
                        Code = native.Code,
                        Data = native.Bytes(),
                    };
                case EventKind.LeaderChanged:
                    return new LeaderChanged
                    {
                        Room = room,
                        Leader = Room.NullIfEmpty(Utf8.FromNative(native.Peer)),
                        Previous = Room.NullIfEmpty(Utf8.FromNative(native.Other)),
                        Term = native.Term,
                        Epoch = native.Epoch,
                        Reason = (LeaderReason)native.Reason,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.LeadershipGained:
                    return new LeadershipGained
                    {
                        Room = room,
                        Leader = Room.NullIfEmpty(Utf8.FromNative(native.Peer)),
                        Previous = Room.NullIfEmpty(Utf8.FromNative(native.Other)),
                        Term = native.Term,
                        Epoch = native.Epoch,
                        Reason = (LeaderReason)native.Reason,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.LeadershipLost:
                    return new LeadershipLost
                    {
                        Room = room,
                        Leader = Room.NullIfEmpty(Utf8.FromNative(native.Peer)),
                        Previous = Room.NullIfEmpty(Utf8.FromNative(native.Other)),
                        Term = native.Term,
                        Epoch = native.Epoch,
                        Reason = (LeaderReason)native.Reason,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.JoinRequest:
                    return new JoinRequest
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Address = Room.NullIfEmpty(Utf8.FromNative(native.Other)),
                        Payload = native.Bytes(),
                        Request = native.Request,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.Discovered:
                    return new Discovered
                    {
                        Room = room,
                        Address = Utf8.FromNative(native.Other),
                    };
                case EventKind.ConnectionResult:
                    return new ConnectionResult
                    {
                        Room = room,
                        Address = Utf8.FromNative(native.Other),
                        Success = native.Success != 0,
                        Code = native.Code,
                        Peer = Room.NullIfEmpty(Utf8.FromNative(native.Peer)),
                        Reason = native.Reason,
                        Data = native.Bytes(),
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.SlowPeer:
                    return new SlowPeer
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.DataDropped:
                    return new DataDropped
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Direction = (DroppedDirection)native.Reason,
                        Count = native.Count,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.MemberState:
                    return new MemberStateChanged
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        State = (MemberState)native.Reason,
                        Version = native.Term,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.LockResult:
                    return new LockResult
                    {
                        Room = room,
                        Request = native.Request,
                        Lock = Utf8.FromNative(native.Other),
                        Success = native.Success != 0,
                        Code = native.Code,
                        Token = native.Count,
                    };
                case EventKind.LockLost:
                    return new LockLost
                    {
                        Room = room,
                        Lock = Utf8.FromNative(native.Other),
                        Token = native.Count,
                    };
                case EventKind.UnlinkedPeer:
                    return new UnlinkedPeer
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Other = Utf8.FromNative(native.Other),
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.BanDropped:
                    return new BanDropped
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Leader = Utf8.FromNative(native.Other),
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.DiscoveryRefused:
                    return new DiscoveryRefused
                    {
                        Room = room,
                        Peer = Room.NullIfEmpty(Utf8.FromNative(native.Peer)),
                        Address = Utf8.FromNative(native.Other),
                        FoundBy = (FoundBy)native.FoundBy,
                        Code = native.Code,
                        Reason = native.Reason,
                        Data = native.Bytes(),
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.JoinWithdrawn:
                    return new JoinWithdrawn
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Request = native.Request,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.HostSilent:
                    return new HostSilent
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        SilentMs = native.Count,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.HostBack:
                    return new HostBack
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.NoRoomFound:
                    return new NoRoomFound
                    {
                        Room = room,
                        WaitedMs = native.Count,
                    };
                case EventKind.PathChanged:
                    return new PathChanged
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Carrier = Room.NullIfEmpty(Utf8.FromNative(native.Other)),
                        Path = (LinkPath)native.Reason,
                        Previous = (LinkPath)native.Code,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.Relay:
                    return new RelayChanged
                    {
                        Room = room,
                        Relay = Utf8.FromNative(native.Other),
                        Success = native.Success != 0,
                        Code = native.Code,
                        Data = native.Bytes(),
                    };
                case EventKind.Action:
                    return new RoomAction
                    {
                        Room = room,
                        Author = Utf8.FromNative(native.Peer),
                        Data = native.Bytes(),
                        Type = native.MessageType,
                        Index = native.Index,
                        TimeMs = native.TimeMs,
                        Request = native.Request,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.ActionResult:
                    return new ActionResult
                    {
                        Room = room,
                        Request = native.Request,
                        Index = native.Index,
                        Code = native.Code,
                    };
                case EventKind.Property:
                    return new PropertyChanged
                    {
                        Room = room,
                        Key = Utf8.FromNative(native.Other),
                        Value = native.Bytes(),
                        Owner = Room.NullIfEmpty(Utf8.FromNative(native.Owner)),
                        Version = native.Count,
                        Exists = native.Success != 0,
                        Author = Room.NullIfEmpty(Utf8.FromNative(native.Peer)),
                        Index = native.Index,
                        TimeMs = native.TimeMs,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.StateReset:
                    return new StateReset
                    {
                        Room = room,
                        Snapshot = native.Bytes(),
                        Index = native.Index,
                        Reason = (ResetReason)native.Reason,
                        Code = native.Code,
                        Undone = native.Count,
                    };
                case EventKind.RolledBack:
                    return new RolledBack
                    {
                        Room = room,
                        Author = Utf8.FromNative(native.Peer),
                        Data = native.Bytes(),
                        Type = native.MessageType,
                        Index = native.Index,
                        Request = native.Request,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.SnapshotWanted:
                    return new SnapshotWanted
                    {
                        Room = room,
                        Request = native.Request,
                        Index = native.Index,
                    };
                case EventKind.StateOpened:
                    return new StateOpened
                    {
                        Room = room,
                        Leader = Room.NullIfEmpty(Utf8.FromNative(native.Peer)),
                        Exclusive = native.Success != 0,
                        History = native.Epoch,
                        Members = native.Count,
                        Index = native.Index,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.StateMember:
                    return new StateMemberChanged
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Here = native.Success != 0,
                        Index = native.Index,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.TransferOffered:
                    return new TransferOffered
                    {
                        Room = room,
                        From = Utf8.FromNative(native.Peer),
                        Transfer = native.Request,
                        Size = native.Count,
                        Tag = native.Bytes(),
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.TransferProgress:
                    return new TransferProgress
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Transfer = native.Request,
                        Size = native.Count,
                        Done = native.Index,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.TransferResult:
                    return new TransferResult
                    {
                        Room = room,
                        Peer = Utf8.FromNative(native.Peer),
                        Transfer = native.Request,
                        Size = native.Count,
                        Done = native.Index,
                        Success = native.Success != 0,
                        Reason = (TransferOutcome)native.Reason,
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.TransferPart:
                    return new TransferPart
                    {
                        Room = room,
                        From = Utf8.FromNative(native.Peer),
                        Transfer = native.Request,
                        Offset = native.Index,
                        Data = native.Bytes(),
                        PeerIndex = native.PeerIndex,
                    };
                case EventKind.PortMapping:
                    return new PortMappingChanged
                    {
                        Room = room,
                        Success = native.Success != 0,
                        Code = native.Code,
                        Data = native.Bytes(),
                    };
                case EventKind.Turn:
                    return new TurnChanged
                    {
                        Room = room,
                        Server = Utf8.FromNative(native.Other),
                        Success = native.Success != 0,
                        Code = native.Code,
                        Data = native.Bytes(),
                    };
                default:
                    return new UnknownEvent(native.Kind) { Room = room };
            }
        }
    }
}
