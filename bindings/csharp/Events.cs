using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;

namespace MetaMystia.Network
{
    /// <summary>
    /// An event of a room: a copy, yours to keep. Each kind is a class of its own: <c>if (e is PeerLeft left) ...</c>, or
    /// <c>switch (e) { case PeerLeft left: ... }</c> (which Mono's mcs does not compile).
    /// </summary>
    public abstract class RoomEvent
    {
        internal RoomEvent()
        {
        }

        public Room Room { get; internal set; }

        public abstract EventKind Kind { get; }
    }

    /// <summary>An event of a kind that a later version of the library has added. Ignore it.</summary>
    public sealed class UnknownEvent : RoomEvent
    {
        private readonly EventKind kind;

        internal UnknownEvent(EventKind kind)
        {
            this.kind = kind;
        }

        public override EventKind Kind
        {
            get { return kind; }
        }
    }

    // Events: the library calls one static function for all events of all rooms, which finds its room by the user data.
    public sealed partial class Room
    {
        // Kinds of subscriptions, each with its own first events.
        private const int Leaders = 1, Leaderships = 2, Statuses = 4, Happenings = 8, Changes = 16;

        private Action<Message> messageReceived;
        private Dictionary<ushort, Action<Message>> typed = new Dictionary<ushort, Action<Message>>(); // replaced, never changed
        private Dictionary<ushort, DataHandler> views = new Dictionary<ushort, DataHandler>(); // replaced, never changed
        private Action<string> leaderChanged;
        private Action<bool> leadershipChanged;
        private Action<string, PeerStatus> peerStatusChanged;
        private Action<ConnectionResult> connectionResult;
        private Action<PathChanged> pathChanged;
        private Action<RelayChanged> relayChanged;
        private Action<PortMappingChanged> portMappingChanged;
        private Action<TurnChanged> turnChanged;
        private Action<RoomEvent> happened, changed;

        // For the other classes of the binding: unlike a first subscription above, they have no first events.
        internal event Action<string> Departed; // a member has left
        internal event Action Ended;            // the room was left

        private int wanted;     // kinds with a subscriber so far
        private int begun;      // 1 once the library has called the handler
        private bool takesMessages; // a handler of messages has subscribed; before the first one they wait in the library

        // Used by the handler alone, which runs once at a time.
        private int served;     // kinds that have received the present state
        private readonly View view = new View();

        /// <summary>
        /// All events, messages included, in one order. The first subscription receives the present state: the leader, if
        /// one is known, and every member. A program that uses it needs no event below.
        /// </summary>
        public event Action<RoomEvent> Happened
        {
            add
            {
                Combine(ref happened, value);
                WantMessages(Happenings);
            }
            remove { Subtract(ref happened, value); }
        }

        /// <summary>
        /// <see cref="Happened"/> without messages, for a program that receives messages by <see cref="DataReceived"/>. Subscribe to one of
        /// the two: the first subscription receives the present state.
        /// </summary>
        public event Action<RoomEvent> Changed
        {
            add
            {
                Combine(ref changed, value);
                Want(Changes);
            }
            remove { Subtract(ref changed, value); }
        }

        /// <summary>
        /// A message from another member (or from this one, if it sent to itself) whose type has no handler of its own: a copy, yours to
        /// keep. <see cref="DataReceived"/> makes none.
        /// </summary>
        public event Action<Message> MessageReceived
        {
            add
            {
                Combine(ref messageReceived, value);
                WantMessages(0);
            }
            remove { Subtract(ref messageReceived, value); }
        }

        /// <summary>
        /// The handler of the messages of one type, which <see cref="MessageReceived"/> then does not report; null removes it.
        /// </summary>
        public void OnType(ushort type, Action<Message> handler)
        {
            SetHandler(ref typed, type, handler);
        }

        /// <summary>
        /// <see cref="OnType"/> without a copy: the handler of the messages of one type, which neither <see cref="MessageReceived"/> nor
        /// OnType then reports; null removes it. It costs no managed memory.
        /// </summary>
        public void OnView(ushort type, DataHandler handler)
        {
            SetHandler(ref views, type, handler);
        }

        private void SetHandler<T>(ref Dictionary<ushort, T> field, ushort type, T handler) where T : class
        {
            if (type < FirstUserType)
            {
                throw new ArgumentOutOfRangeException("type", type, "Types below 0x0100 belong to the library.");
            }
            Dictionary<ushort, T> seen, next;
            do
            {
                seen = Volatile.Read(ref field);
                next = new Dictionary<ushort, T>(seen);
                next.Remove(type);
                if (handler != null)
                {
                    next.Add(type, handler);
                }
            }
            while (Interlocked.CompareExchange(ref field, next, seen) != seen);
            WantMessages(0);
        }

        /// <summary>
        /// Every message, of any type, without a copy, regardless of <see cref="MessageReceived"/> and <see cref="OnType"/>. It costs no
        /// managed memory.
        /// </summary>
        public event DataHandler DataReceived
        {
            add
            {
                Combine(ref dataReceived, value);
                WantMessages(0);
            }
            remove { Subtract(ref dataReceived, value); }
        }

        /// <summary>The leader's id; null when the room has none.</summary>
        public event Action<string> LeaderChanged
        {
            add
            {
                Combine(ref leaderChanged, value);
                Want(Leaders);
            }
            remove { Subtract(ref leaderChanged, value); }
        }

        /// <summary>
        /// This member now leads (true), or no longer leads (false): alternately, each after its <see cref="LeaderChanged"/>. The
        /// first subscription receives true if this member leads already.
        /// </summary>
        public event Action<bool> LeadershipChanged
        {
            add
            {
                Combine(ref leadershipChanged, value);
                Want(Leaderships);
            }
            remove { Subtract(ref leadershipChanged, value); }
        }

        /// <summary>A member's link came up (<see cref="PeerStatus.Connected"/>) or was lost (<see cref="PeerStatus.Disconnected"/>).</summary>
        public event Action<string, PeerStatus> PeerStatusChanged
        {
            add
            {
                Combine(ref peerStatusChanged, value);
                Want(Statuses);
            }
            remove { Subtract(ref peerStatusChanged, value); }
        }

        /// <summary>One event per successful call of <see cref="Connect"/> and <see cref="ConnectAsync"/>.</summary>
        public event Action<ConnectionResult> ConnectionResult
        {
            add
            {
                Combine(ref connectionResult, value);
                Want(0);
            }
            remove { Subtract(ref connectionResult, value); }
        }

        /// <summary>
        /// The messages to and from a member take another path. <see cref="PathOf"/> returns the path of a member that has just joined
        /// or returned.
        /// </summary>
        public event Action<PathChanged> PathChanged
        {
            add
            {
                Combine(ref pathChanged, value);
                Want(0);
            }
            remove { Subtract(ref pathChanged, value); }
        }

        /// <summary>
        /// This member has entered a relay, could not enter it, or is not in it any more. The first report comes soon after the room
        /// opens, so subscribe in the action that <see cref="Join(string, string, RoomOptions, Action{Room})"/> takes, or poll after it.
        /// </summary>
        public event Action<RelayChanged> RelayChanged
        {
            add
            {
                Combine(ref relayChanged, value);
                Want(0);
            }
            remove { Subtract(ref relayChanged, value); }
        }

        /// <summary>
        /// The router forwards a port to this member, or does not (Settings.PortMapping of <see cref="RoomOptions"/>). Subscribe as for
        /// <see cref="RelayChanged"/>.
        /// </summary>
        public event Action<PortMappingChanged> PortMappingChanged
        {
            add
            {
                Combine(ref portMappingChanged, value);
                Want(0);
            }
            remove { Subtract(ref portMappingChanged, value); }
        }

        /// <summary>
        /// A TURN server has given this member a port, or gives none (<see cref="RoomOptions.Turn"/>). Subscribe as for
        /// <see cref="RelayChanged"/>.
        /// </summary>
        public event Action<TurnChanged> TurnChanged
        {
            add
            {
                Combine(ref turnChanged, value);
                Want(0);
            }
            remove { Subtract(ref turnChanged, value); }
        }

        // The handler presents the state to new kinds before its next event. If it has run before, the library may have no next event:
        // registered anew, it receives the present state.
        private void Want(int kinds)
        {
            int seen;
            do
            {
                seen = Volatile.Read(ref wanted);
            }
            while (Interlocked.CompareExchange(ref wanted, seen | kinds, seen) != seen);
            bool isNew = (seen & kinds) != kinds && Volatile.Read(ref begun) != 0;
            // A room that is disposed of refuses the subscription.
            if (!isNew && Volatile.Read(ref disposed) == 0)
            {
                return;
            }
            GCHandle self = GCHandle.Alloc(this);
            int code = NativeMethods.mmn_set_event_handler(handle, EventThunk, GCHandle.ToIntPtr(self), DropThunk);
            if (code < 0)
            {
                NetworkException refused = LastError(code);
                self.Free();
                throw refused;
            }
        }

        // As Want, and the library passes on the messages that wait. A room that is not open yet opens without a hold.
        private void WantMessages(int kinds)
        {
            Want(kinds);
            takesMessages = true;
            NativeMethods.mmn_take_messages(handle);
        }

        [MonoPInvokeCallback(typeof(EventCallback))]
        private static void OnEvent(IntPtr userData, IntPtr networkEvent)
        {
            try
            {
                Room room = (Room)GCHandle.FromIntPtr(userData).Target;
                try
                {
                    room.Take(networkEvent);
                }
                catch (Exception exception)
                {
                    room.Surface(exception);
                }
            }
            catch (Exception)
            {
                // No exception may leave this method, and no room is known to surface it.
            }
        }

        [MonoPInvokeCallback(typeof(DropCallback))]
        private static void OnDropped(IntPtr userData)
        {
            try
            {
                GCHandle.FromIntPtr(userData).Free();
            }
            catch (Exception)
            {
                // As above.
            }
        }

        private void Take(IntPtr networkEvent)
        {
            if (begun == 0)
            {
                // Before wanted is read: a subscription sets that, and then reads begun.
                Interlocked.Exchange(ref begun, 1);
            }
            int present = Volatile.Read(ref wanted);
            if (present != served)
            {
                Present(present & ~served);
            }
            if (NetworkEvent.KindOf(networkEvent) != EventKind.Message)
            {
                TakeChange(RoomEvents.CopyOf(NetworkEvent.At(networkEvent), this));
            }
            else
            {
                TakeMessage(networkEvent);
            }
        }

        private void TakeMessage(IntPtr networkEvent)
        {
            ushort type = NetworkEvent.TypeOf(networkEvent);
            DataHandler one;
            Action<Message> copied = null;
            if (!Volatile.Read(ref views).TryGetValue(type, out one) && !Volatile.Read(ref typed).TryGetValue(type, out copied))
            {
                copied = messageReceived;
            }
            Action<RoomEvent> all = happened;
            if (copied != null || all != null)
            {
                Message copy = CopyOf(networkEvent);
                Raise(copied, copy);
                // The views come before it.
                ShowView(networkEvent, type, one);
                Raise(all, copy);
            }
            else
            {
                ShowView(networkEvent, type, one);
            }
        }

        // Calls the handler of its type, if it has one, and then the handlers of all types.
        private void ShowView(IntPtr networkEvent, ushort type, DataHandler one)
        {
            DataHandler all = dataReceived;
            if (one == null && all == null)
            {
                return;
            }
            MessageView message = new MessageView();
            message.From = names.Of(NetworkEvent.PeerOf(networkEvent));
            message.Data = NetworkEvent.DataOf(networkEvent);
            message.Length = NetworkEvent.LengthOf(networkEvent);
            message.Type = type;
            message.Flags = NetworkEvent.FlagsOf(networkEvent);
            message.Channel = NetworkEvent.ChannelOf(networkEvent);
            message.Delivery = NetworkEvent.DeliveryOf(networkEvent);
            Raise(one, message);
            Raise(all, message);
        }

        private void Raise(DataHandler handler, MessageView message)
        {
            try
            {
                if (handler != null)
                {
                    handler(message);
                }
            }
            catch (Exception exception)
            {
                Surface(exception);
            }
        }

        // As RoomEvents.CopyOf, but without a copy of the struct and of the sender's id.
        private Message CopyOf(IntPtr networkEvent)
        {
            return new Message
            {
                Room = this,
                From = names.Of(NetworkEvent.PeerOf(networkEvent)),
                Data = Utf8.Bytes(NetworkEvent.DataOf(networkEvent), NetworkEvent.LengthOf(networkEvent)),
                Type = NetworkEvent.TypeOf(networkEvent),
                Flags = NetworkEvent.FlagsOf(networkEvent),
                Channel = NetworkEvent.ChannelOf(networkEvent),
                Delivery = NetworkEvent.DeliveryOf(networkEvent),
                PeerIndex = NetworkEvent.PeerIndexOf(networkEvent),
            };
        }

        // An event that is not a message. The library repeats the state to a handler that is registered anew: what the view already shows
        // is no news.
        private void TakeChange(RoomEvent e)
        {
            if (e is LeaderChanged change)
            {
                if (change.Leader == view.LeaderId)
                {
                    return;
                }
                change.Previous = view.LeaderId;
                view.Leader = change;
                if ((served & Leaders) != 0)
                {
                    Raise(leaderChanged, change.Leader);
                }
            }
            else if (e is LeadershipGained || e is LeadershipLost)
            {
                bool leads = e is LeadershipGained;
                if (leads == view.Leads)
                {
                    return;
                }
                view.Leads = leads;
                if ((served & Leaderships) != 0)
                {
                    Raise(leadershipChanged, leads);
                }
            }
            else if (e is ConnectionResult result)
            {
                Settle(result);
                Raise(connectionResult, result);
            }
            else if (e is PathChanged path)
            {
                Raise(pathChanged, path);
            }
            else if (e is RelayChanged relay)
            {
                Raise(relayChanged, relay);
            }
            else if (e is PortMappingChanged mapping)
            {
                Raise(portMappingChanged, mapping);
            }
            else if (e is TurnChanged turn)
            {
                Raise(turnChanged, turn);
            }
            else if (e is TransferResult transfer)
            {
                FreeBuffer(transfer);
            }
            else if (state != null && IsOfState(e.Kind))
            {
                state.Take(e);
            }
            else
            {
                string peer;
                PeerStatus? status;
                if (!view.Note(ref e, out peer, out status))
                {
                    return;
                }
                if (status.HasValue && (served & Statuses) != 0)
                {
                    RaiseStatus(peer, status.Value);
                }
            }
            if ((served & Happenings) != 0)
            {
                Raise(happened, e);
            }
            if ((served & Changes) != 0)
            {
                Raise(changed, e);
            }
            if (e is PeerLeft left)
            {
                names.Forget(left.Peer);
                Raise(Departed, left.Peer);
            }
        }

        private static bool IsOfState(EventKind kind)
        {
            return kind >= EventKind.Action && kind <= EventKind.StateMember;
        }

        // The first events of new kinds.
        private void Present(int kinds)
        {
            served |= kinds;
            if ((kinds & Leaders) != 0 && view.LeaderId != null)
            {
                Raise(leaderChanged, view.LeaderId);
            }
            if ((kinds & Leaderships) != 0 && view.Leads)
            {
                Raise(leadershipChanged, true);
            }
            if ((kinds & Statuses) != 0)
            {
                foreach (string peer in view.Members())
                {
                    if (view.IsConnected(peer))
                    {
                        RaiseStatus(peer, PeerStatus.Connected);
                    }
                }
            }
            if ((kinds & (Happenings | Changes)) != 0)
            {
                foreach (RoomEvent e in view.Events(this))
                {
                    if ((kinds & Happenings) != 0)
                    {
                        Raise(happened, e);
                    }
                    if ((kinds & Changes) != 0)
                    {
                        Raise(changed, e);
                    }
                }
            }
        }

        private void RaiseStatus(string peer, PeerStatus status)
        {
            Action<string, PeerStatus> handler = peerStatusChanged;
            if (handler == null)
            {
                return;
            }
            try
            {
                handler(peer, status);
            }
            catch (Exception exception)
            {
                Surface(exception);
            }
        }

        internal void Raise<T>(Action<T> handler, T argument)
        {
            if (handler == null)
            {
                return;
            }
            try
            {
                handler(argument);
            }
            catch (Exception exception)
            {
                Surface(exception);
            }
        }

        // The room as the events so far show it.
        private sealed class View
        {
            // The last change of the leader; null before the first one.
            internal LeaderChanged Leader;

            internal string LeaderId
            {
                get { return Leader == null ? null : Leader.Leader; }
            }

            internal bool Leads;

            // Members by id: the index of each, and whether its link is lost.
            private readonly Dictionary<string, KeyValuePair<uint, bool>> members =
                new Dictionary<string, KeyValuePair<uint, bool>>(StringComparer.Ordinal);

            internal bool IsConnected(string peer)
            {
                KeyValuePair<uint, bool> member;
                return members.TryGetValue(peer, out member) && !member.Value;
            }

            // Notes an event of a member. Returns whether it is news, and what it changes in the member's link.
            internal bool Note(ref RoomEvent e, out string peer, out PeerStatus? status)
            {
                peer = null;
                status = null;
                KeyValuePair<uint, bool> member;
                if (e is PeerJoined joined)
                {
                    peer = joined.Peer;
                    if (members.TryGetValue(peer, out member))
                    {
                        if (!member.Value)
                        {
                            return false;
                        }
                        // The repeated state stands for it.
                        e = new PeerReturned { Room = e.Room, Peer = peer, PeerIndex = joined.PeerIndex };
                    }
                    members[peer] = new KeyValuePair<uint, bool>(joined.PeerIndex, false);
                    status = PeerStatus.Connected;
                }
                else if (e is PeerReturned returned)
                {
                    peer = returned.Peer;
                    members[peer] = new KeyValuePair<uint, bool>(returned.PeerIndex, false);
                    status = PeerStatus.Connected;
                }
                else if (e is PeerReconnecting lost)
                {
                    peer = lost.Peer;
                    if (members.TryGetValue(peer, out member) && member.Value)
                    {
                        return false;
                    }
                    members[peer] = new KeyValuePair<uint, bool>(lost.PeerIndex, true);
                    status = PeerStatus.Disconnected;
                }
                else if (e is PeerLeft left)
                {
                    peer = left.Peer;
                    // A loss is reported once.
                    if (IsConnected(peer))
                    {
                        status = PeerStatus.Disconnected;
                    }
                    members.Remove(peer);
                }
                return true;
            }

            // The ids of the members, sorted.
            internal List<string> Members()
            {
                List<string> ids = new List<string>(members.Keys);
                ids.Sort(StringComparer.Ordinal);
                return ids;
            }

            // The events that lead to this state: the leader, then the members in the order of their ids.
            internal List<RoomEvent> Events(Room room)
            {
                List<RoomEvent> events = new List<RoomEvent>();
                if (LeaderId != null)
                {
                    events.Add(new LeaderChanged
                    {
                        Room = room,
                        Leader = LeaderId,
                        Term = Leader.Term,
                        Epoch = Leader.Epoch,
                        Reason = Leader.Reason,
                        PeerIndex = Leader.PeerIndex,
                    });
                    if (Leads)
                    {
                        events.Add(new LeadershipGained
                        {
                            Room = room,
                            Leader = LeaderId,
                            Term = Leader.Term,
                            Epoch = Leader.Epoch,
                            Reason = Leader.Reason,
                            PeerIndex = Leader.PeerIndex,
                        });
                    }
                }
                foreach (string id in Members())
                {
                    KeyValuePair<uint, bool> member = members[id];
                    events.Add(new PeerJoined { Room = room, Peer = id, PeerIndex = member.Key });
                    if (member.Value)
                    {
                        events.Add(new PeerReconnecting { Room = room, Peer = id, PeerIndex = member.Key });
                    }
                }
                return events;
            }
        }
    }
}
