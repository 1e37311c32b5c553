using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace MetaMystia.Network
{
    /// <summary>The type number of the messages of a class or struct: the same in every member, 0x0100 to 0xFFFF, another for each.</summary>
    [AttributeUsage(AttributeTargets.Class | AttributeTargets.Struct, Inherited = false)]
    public sealed class MessageTypeAttribute : Attribute
    {
        /// <exception cref="ArgumentOutOfRangeException">The number is not between 0x0100 and 0xFFFF.</exception>
        public MessageTypeAttribute(int number)
        {
            if (number < Room.FirstUserType || number > ushort.MaxValue)
            {
                throw new ArgumentOutOfRangeException("number", number, "A message type is between 0x0100 and 0xFFFF.");
            }
            Number = (ushort)number;
        }

        public ushort Number { get; private set; }
    }

    /// <summary>Turns values into bytes and back: a few lines around the serializer of your choice.</summary>
    /// <remarks>The threads that send call <see cref="Write{T}"/>, at the same time if they send at the same time. The thread that runs
    /// the handlers calls <see cref="Read{T}"/>, never twice at a time.</remarks>
    public interface IMessageSerializer
    {
        /// <summary>The bytes of a value. They are copied before the thread calls again, so one buffer for each thread is enough.</summary>
        ArraySegment<byte> Write<T>(T value);

        /// <summary>Reads a value. The bytes are another member's: anything may come. They are valid during the call only.</summary>
        /// <exception cref="Exception">The bytes are no such value. <see cref="Room.HandlerFailed"/> then receives the exception.</exception>
        T Read<T>(ArraySegment<byte> bytes);
    }

    /// <summary>A request got no answer: the other member has no handler for it, or the handler failed.</summary>
    public sealed class RequestException : Exception
    {
        internal RequestException(string message)
            : base(message)
        {
        }
    }

    /// <summary>
    /// Messages as values of your classes and structs, and requests with an answer, over a <see cref="Room"/>. Each type has its number by
    /// <see cref="MessageTypeAttribute"/>. Handlers run on the thread of the room's handlers.
    /// </summary>
    /// <remarks>One object per room, made in the <c>subscribe</c> function of Join so that it misses nothing. All members may be used from
    /// any thread. Beyond what the serializer makes, messages make no garbage; a request makes a task and a timer.</remarks>
    public sealed class TypedMessages
    {
        /// <summary>Most requests of this member that wait for an answer.</summary>
        public const int MaxRequests = 4096;

        // In the flags of a message, which these messages have to themselves.
        private const byte Plain = 0, Request = 2, Answer = 4, NoHandler = 8, HandlerThrew = 16; // bit 0 belongs to the library
        // Before the value of a request or an answer: the number of the request, the lowest byte first.
        private const int NumberBytes = 4;
        private const int KeptBytes = 64 * 1024;

        [ThreadStatic]
        private static byte[] framed;

        private readonly Room room;
        private readonly IMessageSerializer serializer;
        private byte[] received; // used by the handlers, which run one at a time
        private readonly Dictionary<ushort, Handlers> handlers = new Dictionary<ushort, Handlers>(); // guarded by itself
        private readonly Dictionary<uint, Waiting> requests = new Dictionary<uint, Waiting>(); // guarded by itself
        private uint lastRequest; // guarded by requests
        private bool ended; // guarded by requests

        private delegate void Value(string from, ArraySegment<byte> bytes);

        private delegate void Asked(string from, uint number, ArraySegment<byte> bytes);

        // The handlers of one type. Each is replaced, never changed.
        private sealed class Handlers
        {
            internal volatile Value OnValue;
            internal volatile Asked OnRequest;
        }

        // A request without an answer so far.
        private sealed class Waiting
        {
            internal string Peer;
            internal ushort Type;
            internal Timer Timer;
            internal Action<ArraySegment<byte>> Settle;
            internal Action<Exception> Fail;
        }

        /// <exception cref="ArgumentNullException">There is no room or no serializer.</exception>
        public TypedMessages(Room room, IMessageSerializer serializer)
        {
            if (room == null)
            {
                throw new ArgumentNullException("room");
            }
            if (serializer == null)
            {
                throw new ArgumentNullException("serializer");
            }
            this.room = room;
            this.serializer = serializer;
            room.Departed += FailRequestsTo;
            room.Ended += EndRequests;
        }

        /// <summary>The handler of the messages of a type, with the sender's id; null removes it.</summary>
        /// <exception cref="InvalidOperationException"><typeparamref name="T"/> has no <see cref="MessageTypeAttribute"/>.</exception>
        public void On<T>(Action<string, T> handler)
        {
            Handlers of = HandlersOf(TypeOf<T>.Number);
            of.OnValue = handler == null ? (Value)null : (from, bytes) => handler(from, Read<T>(from, TypeOf<T>.Number, bytes));
        }

        /// <summary>
        /// The handler of the requests of a type, which returns the answer; null removes it. If it throws, the request ends with a
        /// <see cref="RequestException"/> at the sender, and <see cref="Room.HandlerFailed"/> receives the exception here.
        /// </summary>
        /// <exception cref="InvalidOperationException"><typeparamref name="TRequest"/> has no <see cref="MessageTypeAttribute"/>.</exception>
        public void OnRequest<TRequest, TAnswer>(Func<string, TRequest, TAnswer> handler)
        {
            ushort type = TypeOf<TRequest>.Number;
            Handlers of = HandlersOf(type);
            if (handler == null)
            {
                of.OnRequest = null;
                return;
            }
            of.OnRequest = (from, number, bytes) =>
            {
                ArraySegment<byte> answer;
                try
                {
                    answer = serializer.Write(handler(from, Read<TRequest>(from, type, bytes)));
                }
                catch (Exception)
                {
                    Reply(from, type, number, HandlerThrew, default(ArraySegment<byte>));
                    throw;
                }
                Reply(from, type, number, Answer, answer);
            };
        }

        /// <summary>Sends to all connected members, as <see cref="Room.Broadcast(Payload, Delivery, ushort, byte)"/>.</summary>
        public void Broadcast<T>(T value, Delivery delivery = default(Delivery))
        {
            room.Broadcast(serializer.Write(value), delivery, TypeOf<T>.Number, Plain);
        }

        /// <summary>Sends to one member, as <see cref="Room.SendTo(string, Payload, Delivery, ushort, byte)"/>.</summary>
        public void SendTo<T>(string peerId, T value, Delivery delivery = default(Delivery))
        {
            room.SendTo(peerId, serializer.Write(value), delivery, TypeOf<T>.Number, Plain);
        }

        /// <summary>Sends to the leader, as <see cref="Room.SendToLeader(Payload, Delivery, ushort, byte)"/>.</summary>
        public void SendToLeader<T>(T value, Delivery delivery = default(Delivery))
        {
            room.SendToLeader(serializer.Write(value), delivery, TypeOf<T>.Number, Plain);
        }

        /// <summary>Sends to all members as their leader, as <see cref="Room.SendFromLeader(Payload, Delivery, ushort, byte)"/>.</summary>
        public void SendFromLeader<T>(T value, Delivery delivery = default(Delivery))
        {
            room.SendFromLeader(serializer.Write(value), delivery, TypeOf<T>.Number, Plain);
        }

        /// <summary>
        /// Sends a request to one member and returns its answer. Code that awaits it runs as after <see cref="Room.ConnectAsync"/>.
        /// </summary>
        /// <param name="peerId">The member. Only its answer counts.</param>
        /// <param name="request">Its type needs a <see cref="MessageTypeAttribute"/>; that of the answer needs none.</param>
        /// <param name="timeoutMs">The longest wait for the answer, 1 to 600,000 ms.</param>
        /// <exception cref="NetworkException">At once: a refused send, or -7 if <see cref="MaxRequests"/> wait already. Awaited: -5 PeerNotFound when
        /// the member leaves, -1 NotInitialized when the room is left before.</exception>
        /// <exception cref="RequestException">Awaited: the member has no handler for the request, or the handler failed.</exception>
        /// <exception cref="TimeoutException">Awaited: there was no answer in time. The member may have carried out the request.</exception>
        public Task<TAnswer> RequestAsync<TRequest, TAnswer>(string peerId, TRequest request, int timeoutMs)
        {
            if (peerId == null)
            {
                throw new ArgumentNullException("peerId");
            }
            if (timeoutMs < 1 || timeoutMs > 600000)
            {
                throw new ArgumentOutOfRangeException("timeoutMs", timeoutMs, "The wait for an answer is between 1 and 600000 ms.");
            }
            ushort type = TypeOf<TRequest>.Number;
            ArraySegment<byte> value = serializer.Write(request);
            TaskCompletionSource<TAnswer> answered = Room.NewSource<TAnswer>();
            Waiting waiting = new Waiting { Peer = peerId, Type = type };
            waiting.Settle = bytes =>
            {
                TAnswer answer;
                try
                {
                    answer = Read<TAnswer>(peerId, type, bytes);
                }
                catch (Exception exception)
                {
                    Room.Complete(() => answered.TrySetException(exception));
                    return;
                }
                Room.Complete(() => answered.TrySetResult(answer));
            };
            waiting.Fail = exception => Room.Complete(() => answered.TrySetException(exception));
            uint number = Begin(waiting, timeoutMs);
            try
            {
                room.SendTo(peerId, Frame(number, value), type, Request);
            }
            catch (Exception)
            {
                Take(number, null);
                throw;
            }
            return answered.Task;
        }

        private uint Begin(Waiting waiting, int timeoutMs)
        {
            lock (requests)
            {
                if (ended)
                {
                    throw Room.RoomLeft();
                }
                if (requests.Count >= MaxRequests)
                {
                    throw new NetworkException(ErrorCode.SendQueueFull, MaxRequests + " requests wait for their answers; no more may.");
                }
                do
                {
                    lastRequest = unchecked(lastRequest + 1);
                }
                while (requests.ContainsKey(lastRequest));
                uint number = lastRequest;
                requests.Add(number, waiting);
                waiting.Timer = new Timer(ignored => OnTimeout(number, timeoutMs), null, timeoutMs, Timeout.Infinite);
                return number;
            }
        }

        // Removes a request, which then ends once. Only if it went to `peer`, unless that is null.
        private Waiting Take(uint number, string peer)
        {
            Waiting waiting;
            lock (requests)
            {
                if (!requests.TryGetValue(number, out waiting) || (peer != null && waiting.Peer != peer))
                {
                    return null;
                }
                requests.Remove(number);
            }
            waiting.Timer.Dispose();
            return waiting;
        }

        private void OnTimeout(uint number, int timeoutMs)
        {
            Waiting waiting = Take(number, null);
            if (waiting != null)
            {
                waiting.Fail(new TimeoutException(waiting.Peer + " did not answer the request within " + timeoutMs + " ms."));
            }
        }

        private void FailRequestsTo(string peer)
        {
            FailRequests(peer, () => new NetworkException(ErrorCode.PeerNotFound, peer + " left before it answered the request."));
        }

        private void EndRequests()
        {
            FailRequests(null, Room.RoomLeft);
        }

        // Of one member, or all of them: then no more begin.
        private void FailRequests(string peer, Func<Exception> why)
        {
            List<uint> numbers = new List<uint>();
            lock (requests)
            {
                ended |= peer == null;
                foreach (KeyValuePair<uint, Waiting> request in requests)
                {
                    if (peer == null || request.Value.Peer == peer)
                    {
                        numbers.Add(request.Key);
                    }
                }
            }
            foreach (uint number in numbers)
            {
                Waiting waiting = Take(number, null);
                if (waiting != null)
                {
                    waiting.Fail(why());
                }
            }
        }

        private Handlers HandlersOf(ushort type)
        {
            Handlers of;
            lock (handlers)
            {
                if (handlers.TryGetValue(type, out of))
                {
                    return of;
                }
                handlers.Add(type, of = new Handlers());
            }
            room.OnView(type, message => Received(of, message));
            return of;
        }

        private void Received(Handlers of, MessageView message)
        {
            byte[] buffer = BufferOf(message.Length, ref received);
            message.CopyTo(buffer);
            if (message.Flags == Plain)
            {
                Value onValue = of.OnValue;
                if (onValue != null)
                {
                    onValue(message.From, new ArraySegment<byte>(buffer, 0, message.Length));
                }
                return;
            }
            if (message.Length < NumberBytes)
            {
                throw new FormatException("A message of type " + Hex(message.Type) + " from " + message.From + " has " + message.Length
                    + " bytes, too few for a request or an answer.");
            }
            uint number = (uint)(buffer[0] | buffer[1] << 8 | buffer[2] << 16 | buffer[3] << 24);
            ArraySegment<byte> value = new ArraySegment<byte>(buffer, NumberBytes, message.Length - NumberBytes);
            if (message.Flags == Request)
            {
                Asked onRequest = of.OnRequest;
                if (onRequest != null)
                {
                    onRequest(message.From, number, value);
                }
                else
                {
                    Reply(message.From, message.Type, number, NoHandler, default(ArraySegment<byte>));
                }
                return;
            }
            // Of a request that has ended, or of another member: no answer.
            Waiting waiting = Take(number, message.From);
            if (waiting == null)
            {
                return;
            }
            if (message.Flags == Answer && waiting.Type == message.Type)
            {
                waiting.Settle(value);
                return;
            }
            waiting.Fail(new RequestException(message.Flags == NoHandler
                ? message.From + " has no handler for requests of type " + Hex(waiting.Type) + "."
                : "The handler of " + message.From + " for requests of type " + Hex(waiting.Type) + " failed."));
        }

        // A member that has left needs no answer. One whose queue is full gets none: its request ends with its time.
        private void Reply(string peer, ushort type, uint number, byte flags, ArraySegment<byte> value)
        {
            room.TrySendTo(peer, Frame(number, value), type, flags);
        }

        private static ArraySegment<byte> Frame(uint number, ArraySegment<byte> value)
        {
            int length = NumberBytes + value.Count;
            byte[] buffer = BufferOf(length, ref framed);
            for (int index = 0; index < NumberBytes; index++)
            {
                buffer[index] = (byte)(number >> 8 * index);
            }
            if (value.Count > 0)
            {
                Buffer.BlockCopy(value.Array, value.Offset, buffer, NumberBytes, value.Count);
            }
            return new ArraySegment<byte>(buffer, 0, length);
        }

        // At least that long: the kept buffer, made larger if need be, or for a long message another one.
        private static byte[] BufferOf(int length, ref byte[] kept)
        {
            if (length > KeptBytes)
            {
                return new byte[length];
            }
            if (kept == null || kept.Length < length)
            {
                kept = new byte[Math.Max(length, kept == null ? 256 : kept.Length * 2)];
            }
            return kept;
        }

        private T Read<T>(string from, ushort type, ArraySegment<byte> bytes)
        {
            try
            {
                return serializer.Read<T>(bytes);
            }
            catch (Exception exception)
            {
                throw new FormatException(bytes.Count + " bytes of type " + Hex(type) + " from " + from + " are no " + typeof(T).Name + ": "
                    + exception.Message, exception);
            }
        }

        private static string Hex(ushort type)
        {
            return "0x" + type.ToString("X4");
        }

        private static class TypeOf<T>
        {
            private static readonly int number = Find();

            internal static ushort Number
            {
                get
                {
                    if (number == 0)
                    {
                        throw new InvalidOperationException(typeof(T) + " has no [MessageType(number)].");
                    }
                    return (ushort)number;
                }
            }

            private static int Find()
            {
                object[] found = typeof(T).GetCustomAttributes(typeof(MessageTypeAttribute), false);
                return found.Length == 0 ? 0 : ((MessageTypeAttribute)found[0]).Number;
            }
        }
    }
}
