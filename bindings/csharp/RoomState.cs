using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading.Tasks;

namespace MetaMystia.Network
{
    /// <summary>
    /// The state that a room's members share and that outlives its leader: actions in one order, and properties. Set
    /// <see cref="RoomOptions.State"/> in all members; <see cref="Room.State"/> is this member's view.
    /// </summary>
    /// <remarks>
    /// <para>A host changes its own state inside <see cref="Action"/> alone, in all members alike. <see cref="Save"/> and <see cref="Load"/>
    /// pass it to newcomers. A host that keeps all of it in properties needs neither.</para>
    /// <para>Its events are not repeated. In poll mode subscribe before the first <see cref="Room.Poll"/>; else in the <c>subscribe</c>
    /// function of <see cref="Room.Join(string, string, RoomOptions, Action{Room})"/>.</para>
    /// <para>Properties are read as of the last event that this host has received: a value that it has just set shows once the room has
    /// confirmed it.</para>
    /// </remarks>
    public sealed class RoomState
    {
        private delegate int NativeCall(ref ulong request);

        private const int MaxKeyBytes = 64;

        private readonly Room room;
        private readonly string self;
        private readonly MemberProperties me;

        // Guarded by itself. What completes each open request; it takes null once the room was left.
        private readonly Dictionary<ulong, Action<ActionResult>> waiting = new Dictionary<ulong, Action<ActionResult>>();
        // Guarded by waiting.
        private readonly Dictionary<ulong, ActionResult> early = new Dictionary<ulong, ActionResult>(); // results that precede their call's return
        private int calls; // that have not returned
        private bool left;

        private Action<RoomAction> action;
        private Action<RolledBack> rolledBack;
        private Action<PropertyChanged> propertyChanged;
        private Action<StateReset> reset;
        private Action<StateOpened> opened;
        private Action<StateMemberChanged> memberChanged;
        private Action<SnapshotWanted> snapshotWanted;
        private volatile Func<byte[]> save;
        private volatile Action<byte[]> load;

        internal RoomState(Room room, string self)
        {
            this.room = room;
            this.self = self;
            me = new MemberProperties(this, self);
        }

        /// <summary>The room has confirmed an action, of any member: all hosts receive the same ones in the same order.</summary>
        public event Action<RoomAction> Action
        {
            add { Room.Combine(ref action, value); }
            remove { Room.Subtract(ref action, value); }
        }

        /// <summary>A merge of two parts of the room has undone an action, before <see cref="Load"/> and before anything else. The host may
        /// submit it again: a line of a chat, not a purchase.</summary>
        public event Action<RolledBack> RolledBack
        {
            add { Room.Combine(ref rolledBack, value); }
            remove { Room.Subtract(ref rolledBack, value); }
        }

        /// <summary>A property has changed, by any member, or because its owner has left.</summary>
        public event Action<PropertyChanged> PropertyChanged
        {
            add { Room.Combine(ref propertyChanged, value); }
            remove { Room.Subtract(ref propertyChanged, value); }
        }

        /// <summary>The host begins anew, after its <see cref="Load"/>. <see cref="StateReset.Code"/> shows whether actions are missing.</summary>
        public event Action<StateReset> Reset
        {
            add { Room.Combine(ref reset, value); }
            remove { Room.Subtract(ref reset, value); }
        }

        /// <summary>Another member orders the requests, or none does; requests wait until one does.</summary>
        public event Action<StateOpened> Opened
        {
            add { Room.Combine(ref opened, value); }
            remove { Room.Subtract(ref opened, value); }
        }

        /// <summary>A member has come or gone, at the same place among the actions everywhere. Only members that are here own properties.</summary>
        public event Action<StateMemberChanged> MemberChanged
        {
            add { Room.Combine(ref memberChanged, value); }
            remove { Room.Subtract(ref memberChanged, value); }
        }

        /// <summary>For a host that encodes its state after the event, without <see cref="Save"/>: copy the state inside this event, and answer
        /// with <see cref="ProvideSnapshot"/> within 120 s.</summary>
        public event Action<SnapshotWanted> SnapshotWanted
        {
            add { Room.Combine(ref snapshotWanted, value); }
            remove { Room.Subtract(ref snapshotWanted, value); }
        }

        /// <summary>Returns the state that the actions have made, for another member's <see cref="Load"/>; null declines. It runs between two
        /// events. Without it the host declines.</summary>
        public Func<byte[]> Save
        {
            get { return save; }
            set { save = value; }
        }

        /// <summary>Replaces the host's state by what another member's <see cref="Save"/> has returned, or, if that is empty, by the initial
        /// state.</summary>
        public Action<byte[]> Load
        {
            get { return load; }
            set { load = value; }
        }

        /// <summary>Submits an action, up to 16 KiB, with a type of 0x0100 or higher. The library keeps it over losses of the leader.</summary>
        /// <returns>The request, which may be awaited.</returns>
        /// <exception cref="NetworkException">-3 for a type below 0x0100, -7 with too many open requests, -8 beyond 16 KiB.</exception>
        public StateRequest Submit(ushort type, byte[] data)
        {
            if (data == null)
            {
                throw new ArgumentNullException("data");
            }
            return Request((ref ulong request) => NativeMethods.mmn_submit(room.Handle, data, data.Length, type, ref request));
        }

        /// <summary>Submits a text in UTF-8, which <see cref="RoomAction.Text"/> reads.</summary>
        public StateRequest Submit(ushort type, string text)
        {
            return Submit(type, Utf8.ToBytes(text, "text"));
        }

        /// <summary>Submits a number in four bytes, the lowest first, which <see cref="RoomAction.ReadInt32"/> reads.</summary>
        public StateRequest Submit(ushort type, int number)
        {
            return Submit(type, new[] { (byte)number, (byte)(number >> 8), (byte)(number >> 16), (byte)(number >> 24) });
        }

        /// <summary>The text of a property of the room; null if there is none. Setting it keeps its owner, and null removes it.</summary>
        /// <exception cref="NetworkException">-3 for a key that is not 1 to 64 bytes without control characters.</exception>
        public string this[string key]
        {
            get
            {
                RoomProperty found = Find(key);
                return found == null ? null : found.Text;
            }
            set { SetProperties(value == null ? StateChange.Remove(key) : StateChange.Set(key, value)); }
        }

        /// <summary>The value of a property; null if there is none.</summary>
        public byte[] GetBytes(string key)
        {
            RoomProperty found = Find(key);
            return found == null ? null : found.Value;
        }

        /// <summary>Sets a property, which keeps its owner.</summary>
        public StateRequest SetBytes(string key, byte[] value)
        {
            return SetProperties(StateChange.Set(key, value));
        }

        /// <summary>A property with its owner and version; null if there is none.</summary>
        public RoomProperty Find(string key)
        {
            if (key == null)
            {
                throw new ArgumentNullException("key");
            }
            PropertyInfo info = PropertyInfo.Empty();
            IntPtr value = NativeMethods.mmn_property(room.Handle, Utf8.ToNative(key), ref info);
            if (value == IntPtr.Zero)
            {
                // NULL also stands for an error, and a success leaves an earlier error of the thread in place.
                if (!room.IsOpen || !IsKey(key))
                {
                    throw Room.LastError(NativeMethods.mmn_last_error_code());
                }
                return null;
            }
            return new RoomProperty(key, Utf8.Bytes(value, info.Length), Room.NullIfEmpty(Utf8.FromNative(info.Owner)), info.Version, info.Flags);
        }

        /// <summary>The keys of all properties, sorted.</summary>
        public string[] Keys
        {
            get { return KeysFrom(null); }
        }

        /// <summary>The keys of the properties that a member owns, sorted.</summary>
        public string[] KeysOf(string peerId)
        {
            if (peerId == null)
            {
                throw new ArgumentNullException("peerId");
            }
            return KeysFrom(Utf8.ToNative(peerId));
        }

        /// <summary>This member's own properties: <c>Me["ready"] = "1"</c>. It alone changes them, and they go when it leaves.</summary>
        public MemberProperties Me
        {
            get { return me; }
        }

        /// <summary>A member's own properties: <c>Of(peer)["ready"]</c>.</summary>
        public MemberProperties Of(string peerId)
        {
            if (string.IsNullOrEmpty(peerId))
            {
                throw new ArgumentException("The id of a member is missing.", "peerId");
            }
            return peerId == self ? me : new MemberProperties(this, peerId);
        }

        /// <summary>
        /// Makes this member the owner of a property, which comes into being if need be. Of several members that claim it at a time, one
        /// succeeds. The leader owns it once its owner has left.
        /// </summary>
        /// <param name="key">The property.</param>
        /// <param name="take">Also takes it from another member; else the result is false at once if another owns it.</param>
        /// <returns>Whether this member owns the property.</returns>
        /// <exception cref="NetworkException">Awaited: -26 StateFull; -1 when the room was left before there was a result.</exception>
        public Task<bool> Claim(string key, bool take = false)
        {
            RoomProperty found = Find(key);
            string owner = found == null ? null : found.Owner;
            if (owner == self || (owner != null && !take))
            {
                return Completed(owner == self);
            }
            return Change(Ownership(key, self, found), code => code == ErrorCode.Ok || IsMine(key));
        }

        /// <summary>Leaves a property without an owner. The result is false if this member does not own it.</summary>
        public Task<bool> Release(string key)
        {
            RoomProperty found = Find(key);
            if (found == null || found.Owner != self)
            {
                return Completed(false);
            }
            return Change(Ownership(key, "", found), code => code == ErrorCode.Ok);
        }

        /// <summary>
        /// Makes 1 to 32 changes of properties, all or none. The result's code is <see cref="ErrorCode.Conflict"/> if a property has another
        /// version than <see cref="StateChange.ExpectedVersion"/> or a new owner is not here, <see cref="ErrorCode.StateFull"/>, or
        /// <see cref="ErrorCode.Rejected"/> if another member owns a property that only its owner changes.
        /// </summary>
        public StateRequest SetProperties(params StateChange[] changes)
        {
            return Request((ref ulong request) => Call(changes, ref request));
        }

        /// <summary>Answers a <see cref="SnapshotWanted"/> with a copy of the host's state; null declines.</summary>
        public void ProvideSnapshot(ulong request, byte[] snapshot)
        {
            // NULL declines, and an empty array is a snapshot.
            Room.Check(NativeMethods.mmn_provide_snapshot(room.Handle, request, snapshot, snapshot == null ? 0 : snapshot.Length));
        }

        /// <summary>Figures of the state at this member.</summary>
        public StateInfo Info
        {
            get
            {
                StateInfo info = StateInfo.Empty();
                Room.Check(NativeMethods.mmn_state_info(room.Handle, ref info));
                return info;
            }
        }

        // Runs inside the handler of an event.
        internal void Take(RoomEvent e)
        {
            if (e is RoomAction confirmed)
            {
                room.Raise(action, confirmed);
            }
            else if (e is ActionResult result)
            {
                Settle(result);
            }
            else if (e is PropertyChanged change)
            {
                room.Raise(propertyChanged, change);
            }
            else if (e is StateReset anew)
            {
                room.Raise(load, anew.Snapshot);
                room.Raise(reset, anew);
            }
            else if (e is RolledBack undone)
            {
                room.Raise(rolledBack, undone);
            }
            else if (e is SnapshotWanted wanted)
            {
                Provide(wanted);
            }
            else if (e is StateOpened opening)
            {
                room.Raise(opened, opening);
            }
            else if (e is StateMemberChanged member)
            {
                room.Raise(memberChanged, member);
            }
        }

        // After the room was left, no result comes any more.
        internal void End()
        {
            List<Action<ActionResult>> ended;
            lock (waiting)
            {
                left = true;
                ended = new List<Action<ActionResult>>(waiting.Values);
                waiting.Clear();
            }
            foreach (Action<ActionResult> settle in ended)
            {
                settle(null);
            }
        }

        private void Provide(SnapshotWanted wanted)
        {
            Func<byte[]> saving = save;
            if (saving == null && snapshotWanted != null)
            {
                room.Raise(snapshotWanted, wanted);
                return;
            }
            try
            {
                ProvideSnapshot(wanted.Request, saving == null ? null : saving());
            }
            catch (Exception exception)
            {
                room.Surface(exception);
                // The newcomer asks another member at once.
                NativeMethods.mmn_provide_snapshot(room.Handle, wanted.Request, null, 0);
            }
        }

        private void Settle(ActionResult result)
        {
            Action<ActionResult> settle;
            lock (waiting)
            {
                if (waiting.TryGetValue(result.Request, out settle))
                {
                    waiting.Remove(result.Request);
                }
                else if (calls > 0)
                {
                    early[result.Request] = result;
                }
            }
            if (settle != null)
            {
                settle(result);
            }
        }

        // Without a lock during the call: its result may precede its return.
        private ulong Begin(NativeCall call, Action<ActionResult> settle)
        {
            lock (waiting)
            {
                calls++;
            }
            ulong request = 0;
            int code = ErrorCode.InternalError;
            ActionResult result = null;
            bool ended;
            NetworkException refused = null;
            try
            {
                code = call(ref request);
                if (code < 0)
                {
                    refused = Room.LastError(code);
                }
            }
            finally
            {
                lock (waiting)
                {
                    calls--;
                    ended = left;
                    if (code >= 0 && !early.TryGetValue(request, out result) && !ended)
                    {
                        waiting.Add(request, settle);
                    }
                    early.Remove(request);
                    if (calls == 0)
                    {
                        early.Clear();
                    }
                }
            }
            if (refused != null)
            {
                throw refused;
            }
            if (result != null || ended)
            {
                settle(result);
            }
            return request;
        }

        private StateRequest Request(NativeCall call)
        {
            TaskCompletionSource<ActionResult> source = Room.NewSource<ActionResult>();
            ulong number = Begin(call, result => Complete(source, result, code => result));
            return new StateRequest(number, source.Task);
        }

        // outcome: whether the change has succeeded, from a code that is no error of the host.
        private Task<bool> Change(StateChange change, Func<int, bool> outcome)
        {
            TaskCompletionSource<bool> source = Room.NewSource<bool>();
            Begin((ref ulong request) => Call(new[] { change }, ref request), result => Complete(source, result, code =>
            {
                if (code == ErrorCode.StateFull)
                {
                    throw new NetworkException(code, Room.Describe(code));
                }
                return outcome(code);
            }));
            return source.Task;
        }

        private static void Complete<T>(TaskCompletionSource<T> source, ActionResult result, Func<int, T> outcome)
        {
            Exception failure;
            try
            {
                if (result != null)
                {
                    T value = outcome(result.Code);
                    Room.Complete(() => source.TrySetResult(value));
                    return;
                }
                failure = Room.RoomLeft();
            }
            catch (Exception exception)
            {
                failure = exception;
            }
            Room.Complete(() =>
            {
                source.TrySetException(failure);
                // Most hosts await few of their requests: the others are no unobserved failures.
                GC.KeepAlive(source.Task.Exception);
            });
        }

        private static Task<bool> Completed(bool value)
        {
            TaskCompletionSource<bool> source = new TaskCompletionSource<bool>();
            source.SetResult(value);
            return source.Task;
        }

        private static StateChange Ownership(string key, string owner, RoomProperty found)
        {
            return new StateChange(key)
            {
                Owner = owner,
                Flags = PropertyFlags.KeepValue | PropertyFlags.FallsToLeader,
                ExpectedVersion = found == null ? 0 : found.Version,
            };
        }

        private bool IsMine(string key)
        {
            RoomProperty found = Find(key);
            return found != null && found.Owner == self;
        }

        private int Call(StateChange[] changes, ref ulong request)
        {
            if (changes == null)
            {
                throw new ArgumentNullException("changes");
            }
            if (changes.Length == 0)
            {
                throw new ArgumentException("A set of changes has at least one.", "changes");
            }
            List<GCHandle> pinned = new List<GCHandle>();
            try
            {
                PropertyChange[] native = new PropertyChange[changes.Length];
                for (int index = 0; index < changes.Length; index++)
                {
                    if (changes[index] == null)
                    {
                        throw new ArgumentException("Change " + index + " is null.", "changes");
                    }
                    native[index] = changes[index].ToNative(pinned);
                }
                pinned.Add(GCHandle.Alloc(native, GCHandleType.Pinned));
                return NativeMethods.mmn_set_properties(room.Handle, ref native[0], native.Length, ref request);
            }
            finally
            {
                foreach (GCHandle handle in pinned)
                {
                    handle.Free();
                }
            }
        }

        private string[] KeysFrom(byte[] owner)
        {
            IntPtr keys = NativeMethods.mmn_property_keys(room.Handle, owner);
            return Room.CheckText(keys).Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries);
        }

        private static bool IsKey(string key)
        {
            foreach (char part in key)
            {
                if (char.IsControl(part))
                {
                    return false;
                }
            }
            return key.Length > 0 && Encoding.UTF8.GetByteCount(key) <= MaxKeyBytes;
        }
    }

    /// <summary>A member's own properties, each with the key <c>@id/name</c>. The member alone changes them, and they go when it leaves.</summary>
    public sealed class MemberProperties
    {
        private readonly RoomState state;
        private readonly string peer;

        internal MemberProperties(RoomState state, string peer)
        {
            this.state = state;
            this.peer = peer;
        }

        /// <summary>The member.</summary>
        public string PeerId
        {
            get { return peer; }
        }

        /// <summary>The text of a property; null if there is none. Only <see cref="RoomState.Me"/> can be set, and null removes it.</summary>
        /// <exception cref="InvalidOperationException">Set, for another member.</exception>
        public string this[string name]
        {
            get { return state[KeyOf(name)]; }
            set { Set(name, value == null ? null : Utf8.ToBytes(value, "value")); }
        }

        /// <summary>The value of a property; null if there is none.</summary>
        public byte[] GetBytes(string name)
        {
            return state.GetBytes(KeyOf(name));
        }

        /// <summary>As setting <c>this[name]</c>, with a request that may be awaited.</summary>
        /// <exception cref="InvalidOperationException">For another member.</exception>
        public StateRequest Set(string name, byte[] value)
        {
            if (this != state.Me)
            {
                throw new InvalidOperationException("Only " + peer + " changes its own properties.");
            }
            if (value == null)
            {
                return state.SetProperties(StateChange.Remove(KeyOf(name)));
            }
            return state.SetProperties(new StateChange(KeyOf(name))
            {
                Value = value,
                Owner = peer,
                Flags = PropertyFlags.OwnerOnly | PropertyFlags.DiesWithOwner,
            });
        }

        /// <summary>The key of a property, as in <see cref="PropertyChanged.Key"/>.</summary>
        public string KeyOf(string name)
        {
            if (string.IsNullOrEmpty(name))
            {
                throw new ArgumentException("The name of a property is missing.", "name");
            }
            return "@" + peer + "/" + name;
        }
    }

    /// <summary>A call of <c>Submit</c> or <c>SetProperties</c>. Await it for its result.</summary>
    public sealed class StateRequest
    {
        internal StateRequest(ulong number, Task<ActionResult> result)
        {
            Number = number;
            Result = result;
        }

        /// <summary>Its number, as in <see cref="RoomAction.Request"/> and <see cref="ActionResult.Request"/>.</summary>
        public ulong Number { get; private set; }

        /// <summary>
        /// Completes after the events of its entry, in poll mode inside <see cref="Room.Poll"/>. Fails with a <see cref="NetworkException"/>
        /// of code -1 when the room was left before.
        /// </summary>
        public Task<ActionResult> Result { get; private set; }

        /// <summary>For <c>await</c>.</summary>
        public TaskAwaiter<ActionResult> GetAwaiter()
        {
            return Result.GetAwaiter();
        }
    }

    /// <summary>A property of the room's state, as it was when it was read.</summary>
    public sealed class RoomProperty
    {
        internal RoomProperty(string key, byte[] value, string owner, ulong version, uint flags)
        {
            Key = key;
            Value = value;
            Owner = owner;
            Version = version;
            Flags = flags;
        }

        /// <summary>Its name.</summary>
        public string Key { get; private set; }

        /// <summary>Its value, a copy.</summary>
        public byte[] Value { get; private set; }

        /// <summary>Its value as text in UTF-8.</summary>
        public string Text
        {
            get { return Encoding.UTF8.GetString(Value); }
        }

        /// <summary>Its owner; null if it has none.</summary>
        public string Owner { get; private set; }

        /// <summary>Its version, for <see cref="StateChange.ExpectedVersion"/>.</summary>
        public ulong Version { get; private set; }

        /// <summary>The sum of its <see cref="PropertyFlags"/>.</summary>
        public uint Flags { get; private set; }
    }

    /// <summary>A change of one property, for <see cref="RoomState.SetProperties"/>.</summary>
    public sealed class StateChange
    {
        /// <summary>A change of the property with this key: by default it gets an empty value and keeps its owner.</summary>
        public StateChange(string key)
        {
            if (key == null)
            {
                throw new ArgumentNullException("key");
            }
            Key = key;
            ExpectedVersion = NativeMethods.AnyVersion;
        }

        /// <summary>Sets a property to a text in UTF-8.</summary>
        public static StateChange Set(string key, string text)
        {
            return new StateChange(key) { Value = Utf8.ToBytes(text, "text") };
        }

        /// <summary>Sets a property.</summary>
        public static StateChange Set(string key, byte[] value)
        {
            if (value == null)
            {
                throw new ArgumentNullException("value");
            }
            return new StateChange(key) { Value = value };
        }

        /// <summary>Removes a property.</summary>
        public static StateChange Remove(string key)
        {
            return new StateChange(key) { Flags = PropertyFlags.Remove };
        }

        /// <summary>The property: 1 to 64 bytes of UTF-8 without control characters.</summary>
        public string Key { get; private set; }

        /// <summary>The new value, up to 8 KiB; null is an empty one.</summary>
        public byte[] Value { get; set; }

        /// <summary>The new owner, which must be here; "" is none, and null keeps the owner.</summary>
        public string Owner { get; set; }

        /// <summary>The sum of <see cref="PropertyFlags"/>.</summary>
        public uint Flags { get; set; }

        /// <summary>The version that the property must have: 0 if it must not exist; by default any, <see cref="NativeMethods.AnyVersion"/>.</summary>
        public ulong ExpectedVersion { get; set; }

        internal PropertyChange ToNative(List<GCHandle> pinned)
        {
            PropertyChange change = new PropertyChange();
            change.StructSize = (uint)Marshal.SizeOf(typeof(PropertyChange));
            change.Flags = Flags;
            change.Key = RoomOptions.Pin(pinned, Utf8.ToNative(Key));
            change.Owner = RoomOptions.Pin(pinned, Utf8.ToNative(Owner));
            change.Value = RoomOptions.Pin(pinned, Value);
            change.Length = Value == null ? 0 : Value.Length;
            change.ExpectedVersion = ExpectedVersion;
            return change;
        }
    }

    public sealed partial class RoomAction
    {
        /// <summary>The action as text in UTF-8.</summary>
        public string Text
        {
            get { return Encoding.UTF8.GetString(Data); }
        }

        /// <summary>Whether this member submitted it.</summary>
        public bool Mine
        {
            get { return Request != 0; }
        }

        /// <summary>The number of <see cref="RoomState.Submit(ushort, int)"/>.</summary>
        /// <exception cref="FormatException">The action does not have four bytes.</exception>
        public int ReadInt32()
        {
            if (Data.Length != sizeof(int))
            {
                throw new FormatException("The action of " + Author + " has " + Data.Length + " bytes; a number has 4.");
            }
            return Data[0] | Data[1] << 8 | Data[2] << 16 | Data[3] << 24;
        }
    }

    public sealed partial class RolledBack
    {
        /// <summary>The action as text in UTF-8.</summary>
        public string Text
        {
            get { return Encoding.UTF8.GetString(Data); }
        }

        /// <summary>Whether this member submitted it.</summary>
        public bool Mine
        {
            get { return Request != 0; }
        }
    }

    public sealed partial class PropertyChanged
    {
        /// <summary>Its value as text in UTF-8; "" if it does not exist.</summary>
        public string Text
        {
            get { return Encoding.UTF8.GetString(Value); }
        }
    }

    /// <summary>Fields that are 0 have the library's defaults, so that <c>new StateOptions()</c> is enough.</summary>
    public partial struct StateOptions
    {
        /// <summary>The library's defaults.</summary>
        public static StateOptions Default()
        {
            StateOptions options = new StateOptions();
            options.StructSize = (uint)Marshal.SizeOf(typeof(StateOptions));
            Room.Check(NativeFile.First(() => NativeMethods.mmn_default_state_options(ref options)));
            return options;
        }

        internal StateOptions Filled()
        {
            StateOptions filled = Default();
            filled.TailEntries = TailEntries == 0 ? filled.TailEntries : TailEntries;
            filled.TailBytes = TailBytes == 0 ? filled.TailBytes : TailBytes;
            filled.MaxSnapshotBytes = MaxSnapshotBytes == 0 ? filled.MaxSnapshotBytes : MaxSnapshotBytes;
            return filled;
        }
    }

    public partial struct PropertyInfo
    {
        /// <summary>Information to be filled in, with its size set.</summary>
        public static PropertyInfo Empty()
        {
            PropertyInfo info = new PropertyInfo();
            info.StructSize = (uint)Marshal.SizeOf(typeof(PropertyInfo));
            return info;
        }
    }

    public partial struct StateInfo
    {
        /// <summary>Figures to be filled in, with their size set.</summary>
        public static StateInfo Empty()
        {
            StateInfo info = new StateInfo();
            info.StructSize = (uint)Marshal.SizeOf(typeof(StateInfo));
            return info;
        }
    }
}
