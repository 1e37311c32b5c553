using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;

namespace MetaMystia.Network
{
    // Events: the library calls one static function for all events of all rooms, which finds its room by the user data.
    public sealed partial class Room
    {
        // Kinds of subscriptions, each with its own first events.
        private const int Leaders = 1, Leaderships = 2, Statuses = 4, Happenings = 8, Changes = 16, Messages = 32;

        private const int HoldMs = 5000;    // as the library holds messages for a room without a handler
        private const int MostHeld = 4096;

        private Action<Message> messageReceived;
        private Dictionary<ushort, Action<Message>> typed = new Dictionary<ushort, Action<Message>>(); // replaced, never changed
        private Action<string> leaderChanged;
        private Action<bool> leadershipChanged;
        private Action<string, PeerStatus> peerStatusChanged;
        private Action<ConnectionResult> connectionResult;
        private Action<RoomEvent> happened, changed;

        private int wanted;     // kinds with a subscriber so far
        private int begun;      // 1 once the library has called the handler

        // Used by the handler alone, which runs once at a time.
        private int served;     // kinds that have received the present state
        private readonly View view = new View();
        private readonly int joinedAt = Environment.TickCount;
        private List<RoomEvent> held = new List<RoomEvent>(); // messages before the first handler of messages; null after the hold

        /// <summary>
        /// All events, messages included, in one order. The first subscription receives the present state: the leader, if
        /// one is known, and every member. A program that uses it needs no event below.
        /// </summary>
        public event Action<RoomEvent> Happened
        {
            add
            {
                Combine(ref happened, value);
                Want(Happenings | Messages);
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
                Want(Messages);
            }
            remove { Subtract(ref messageReceived, value); }
        }

        /// <summary>
        /// The handler of the messages of one type, which <see cref="MessageReceived"/> then does not report; null removes it.
        /// </summary>
        public void OnType(ushort type, Action<Message> handler)
        {
            if (type < FirstUserType)
            {
                throw new ArgumentOutOfRangeException("type", type, "Types below 0x0100 belong to the library.");
            }
            Dictionary<ushort, Action<Message>> seen, next;
            do
            {
                seen = Volatile.Read(ref typed);
                next = new Dictionary<ushort, Action<Message>>(seen);
                next.Remove(type);
                if (handler != null)
                {
                    next.Add(type, handler);
                }
            }
            while (Interlocked.CompareExchange(ref typed, next, seen) != seen);
            Want(Messages);
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
                Want(Messages);
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
                TakeChange(CopyOf(networkEvent));
            }
            else if ((served & Messages) == 0)
            {
                Hold(networkEvent);
            }
            else
            {
                TakeMessage(networkEvent);
            }
        }

        private void TakeMessage(IntPtr networkEvent)
        {
            ushort type = NetworkEvent.TypeOf(networkEvent);
            Action<Message> copied;
            if (!Volatile.Read(ref typed).TryGetValue(type, out copied))
            {
                copied = messageReceived;
            }
            if (copied != null)
            {
                Message message = new Message();
                message.From = names.Of(NetworkEvent.PeerOf(networkEvent));
                message.Data = Utf8.Bytes(NetworkEvent.DataOf(networkEvent), NetworkEvent.LengthOf(networkEvent));
                message.Type = type;
                message.Flags = NetworkEvent.FlagsOf(networkEvent);
                Raise(copied, message);
            }
            DataHandler viewed = dataReceived;
            if (viewed != null)
            {
                MessageView message = new MessageView();
                message.From = names.Of(NetworkEvent.PeerOf(networkEvent));
                message.Data = NetworkEvent.DataOf(networkEvent);
                message.Length = NetworkEvent.LengthOf(networkEvent);
                message.Type = type;
                message.Flags = NetworkEvent.FlagsOf(networkEvent);
                message.Channel = NetworkEvent.ChannelOf(networkEvent);
                message.DeliveryMode = NetworkEvent.DeliveryOf(networkEvent);
                Show(viewed, message);
            }
            Action<RoomEvent> all = happened;
            if (all != null)
            {
                Raise(all, CopyOf(networkEvent));
            }
        }

        private void Show(DataHandler handler, MessageView message)
        {
            try
            {
                handler(message);
            }
            catch (Exception exception)
            {
                Surface(exception);
            }
        }

        private void Hold(IntPtr networkEvent)
        {
            if (unchecked(Environment.TickCount - joinedAt) > HoldMs)
            {
                held = null;
            }
            if (held != null && held.Count < MostHeld)
            {
                held.Add(CopyOf(networkEvent));
            }
        }

        private void TakeHeld()
        {
            List<RoomEvent> messages = held;
            held = null;
            if (messages == null || unchecked(Environment.TickCount - joinedAt) > HoldMs)
            {
                return;
            }
            foreach (RoomEvent e in messages)
            {
                Action<Message> copied;
                if (!Volatile.Read(ref typed).TryGetValue(e.MessageType, out copied))
                {
                    copied = messageReceived;
                }
                Raise(copied, new Message { From = e.Peer, Data = e.Data, Type = e.MessageType, Flags = e.Flags });
                DataHandler viewed = dataReceived;
                if (viewed != null)
                {
                    GCHandle pinned = GCHandle.Alloc(e.Data.Length == 0 ? new byte[1] : e.Data, GCHandleType.Pinned);
                    MessageView message = new MessageView();
                    message.From = e.Peer;
                    message.Data = pinned.AddrOfPinnedObject();
                    message.Length = e.Data.Length;
                    message.Type = e.MessageType;
                    message.Flags = e.Flags;
                    message.Channel = e.Channel;
                    message.DeliveryMode = e.DeliveryMode;
                    Show(viewed, message);
                    pinned.Free();
                }
                Raise(happened, e);
            }
        }

        // An event that is not a message. The library repeats the state to a handler that is registered anew: what the view already shows
        // is no news.
        private void TakeChange(RoomEvent e)
        {
            PeerStatus? status = null;
            switch (e.Kind)
            {
                case EventKind.LeaderChanged:
                    if (e.Peer == view.Leader.Peer)
                    {
                        return;
                    }
                    e.Other = view.Leader.Peer;
                    view.Leader = e;
                    if ((served & Leaders) != 0)
                    {
                        Raise(leaderChanged, NullIfEmpty(e.Peer));
                    }
                    break;
                case EventKind.LeadershipGained:
                case EventKind.LeadershipLost:
                    bool leads = e.Kind == EventKind.LeadershipGained;
                    if (leads == view.Leads)
                    {
                        return;
                    }
                    view.Leads = leads;
                    if ((served & Leaderships) != 0)
                    {
                        Raise(leadershipChanged, leads);
                    }
                    break;
                default:
                    if (!view.Note(e, out status))
                    {
                        return;
                    }
                    break;
            }
            if (status.HasValue && (served & Statuses) != 0)
            {
                RaiseStatus(e.Peer, status.Value);
            }
            if (e.Kind == EventKind.ConnectionResult)
            {
                ConnectionResult result = new ConnectionResult();
                result.Address = e.Other;
                result.Success = e.Success;
                result.Code = e.Code;
                result.Peer = e.Peer;
                result.Reason = e.Reason;
                result.Data = e.Data;
                Settle(result);
                Raise(connectionResult, result);
            }
            if ((served & Happenings) != 0)
            {
                Raise(happened, e);
            }
            if ((served & Changes) != 0)
            {
                Raise(changed, e);
            }
            if (e.Kind == EventKind.Left)
            {
                names.Forget(e.Peer);
            }
        }

        // The first events of new kinds.
        private void Present(int kinds)
        {
            served |= kinds;
            if ((kinds & Leaders) != 0 && view.Leader.Peer.Length > 0)
            {
                Raise(leaderChanged, view.Leader.Peer);
            }
            if ((kinds & Leaderships) != 0 && view.Leads)
            {
                Raise(leadershipChanged, true);
            }
            if ((kinds & Statuses) != 0)
            {
                foreach (RoomEvent e in view.Events(this))
                {
                    if (e.Kind == EventKind.Joined && view.IsConnected(e.Peer))
                    {
                        RaiseStatus(e.Peer, PeerStatus.Connected);
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
            if ((kinds & Messages) != 0)
            {
                TakeHeld();
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

        private void Raise<T>(Action<T> handler, T argument)
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

        private RoomEvent CopyOf(IntPtr networkEvent)
        {
            NetworkEvent native = NetworkEvent.At(networkEvent);
            RoomEvent copy = new RoomEvent();
            copy.Room = this;
            copy.Kind = native.Kind;
            copy.Peer = Utf8.FromNative(native.Peer);
            copy.Other = Utf8.FromNative(native.Other);
            copy.Data = native.Bytes();
            copy.Reason = native.Reason;
            copy.Code = native.Code;
            copy.Success = native.Success != 0;
            copy.MessageType = native.MessageType;
            copy.Flags = native.Flags;
            copy.Channel = native.Channel;
            copy.DeliveryMode = native.Delivery;
            copy.Undelivered = native.Count;
            copy.Missed = native.Missed;
            copy.PeerIndex = native.PeerIndex;
            copy.FoundBy = native.FoundBy;
            copy.Request = native.Request;
            copy.Term = native.Term;
            copy.Epoch = native.Epoch;
            return copy;
        }

        // The room as the events so far show it.
        private sealed class View
        {
            // The last change of the leader; with an empty Peer there is none.
            internal RoomEvent Leader = new RoomEvent { Peer = "" };
            internal bool Leads;

            // Members by id: the index of each, and whether its link is lost.
            private readonly Dictionary<string, KeyValuePair<uint, bool>> members =
                new Dictionary<string, KeyValuePair<uint, bool>>(StringComparer.Ordinal);

            internal bool IsConnected(string peer)
            {
                KeyValuePair<uint, bool> member;
                return members.TryGetValue(peer, out member) && !member.Value;
            }

            // Notes an event. Returns whether it is news, and what it changes in the member's link.
            internal bool Note(RoomEvent e, out PeerStatus? status)
            {
                status = null;
                KeyValuePair<uint, bool> member;
                switch (e.Kind)
                {
                    case EventKind.Joined:
                        if (members.TryGetValue(e.Peer, out member))
                        {
                            if (!member.Value)
                            {
                                return false;
                            }
                            e.Kind = EventKind.Returned; // the repeated state stands for it
                        }
                        members[e.Peer] = new KeyValuePair<uint, bool>(e.PeerIndex, false);
                        status = PeerStatus.Connected;
                        return true;
                    case EventKind.Returned:
                        members[e.Peer] = new KeyValuePair<uint, bool>(e.PeerIndex, false);
                        status = PeerStatus.Connected;
                        return true;
                    case EventKind.Reconnecting:
                        if (members.TryGetValue(e.Peer, out member) && member.Value)
                        {
                            return false;
                        }
                        members[e.Peer] = new KeyValuePair<uint, bool>(e.PeerIndex, true);
                        status = PeerStatus.Disconnected;
                        return true;
                    case EventKind.Left:
                        // A loss is reported once.
                        if (IsConnected(e.Peer))
                        {
                            status = PeerStatus.Disconnected;
                        }
                        members.Remove(e.Peer);
                        return true;
                    default:
                        return true;
                }
            }

            // The events that lead to this state: the leader, then the members in the order of their ids.
            internal List<RoomEvent> Events(Room room)
            {
                List<RoomEvent> events = new List<RoomEvent>();
                if (Leader.Peer.Length > 0)
                {
                    events.Add(Leadership(room, EventKind.LeaderChanged));
                    if (Leads)
                    {
                        events.Add(Leadership(room, EventKind.LeadershipGained));
                    }
                }
                List<string> ids = new List<string>(members.Keys);
                ids.Sort(StringComparer.Ordinal);
                foreach (string id in ids)
                {
                    events.Add(Membership(room, id, EventKind.Joined));
                    if (members[id].Value)
                    {
                        events.Add(Membership(room, id, EventKind.Reconnecting));
                    }
                }
                return events;
            }

            private RoomEvent Leadership(Room room, uint kind)
            {
                RoomEvent e = Membership(room, Leader.Peer, kind);
                e.PeerIndex = Leader.PeerIndex;
                e.Reason = Leader.Reason;
                e.Term = Leader.Term;
                e.Epoch = Leader.Epoch;
                return e;
            }

            private RoomEvent Membership(Room room, string id, uint kind)
            {
                KeyValuePair<uint, bool> member;
                members.TryGetValue(id, out member);
                return new RoomEvent { Room = room, Kind = kind, Peer = id, Other = "", Data = new byte[0], PeerIndex = member.Key };
            }
        }
    }
}
