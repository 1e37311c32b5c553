using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace MetaMystia.Network
{
    /// <summary>The card that a room shows in the local network: <see cref="Room.ShowCard"/>. The library adds the number of players, the address, and whether a secret is needed.</summary>
    public sealed class RoomCard
    {
        /// <summary>The game, 1 to 64 bytes of UTF-8: browsers of other games do not list the room.</summary>
        public string Game;
        /// <summary>The room's name for players, 1 to 64 bytes of UTF-8.</summary>
        public string Name;
        /// <summary>Up to 400 bytes of the game; null is none.</summary>
        public byte[] Data;
        /// <summary>true: the card holds the session id, so that every browser of the game can join.</summary>
        public bool IsOpen;
        /// <summary>Most players, to show; 0 is no number.</summary>
        public uint MaxPlayers;
        /// <summary>UDP port of the browsers' questions; 0 is 15354.</summary>
        public uint Port;
    }

    public sealed partial class Room
    {
        // NativeMethods has it with a card.
        [DllImport(NativeMethods.Library, CallingConvention = CallingConvention.Cdecl, EntryPoint = "mmn_show_card")]
        private static extern int TakeCardDown(ulong room, IntPtr none);

        /// <summary>
        /// Shows a card of the room in the local network, in place of an earlier one; null takes it down. The leader alone shows its card:
        /// call this at every member, so that the room stays in the lists when its leader goes.
        /// </summary>
        /// <exception cref="NetworkException">-3 when something in it is invalid, -16 when the room has no IPv4 address to show, -4
        /// when the port cannot be bound.</exception>
        public void ShowCard(RoomCard card)
        {
            if (card == null)
            {
                Check(TakeCardDown(handle, IntPtr.Zero));
                return;
            }
            List<GCHandle> pinned = new List<GCHandle>();
            try
            {
                Card native = new Card();
                native.StructSize = (uint)Marshal.SizeOf(typeof(Card));
                native.Flags = card.IsOpen ? NativeMethods.CardOpen : 0;
                native.Game = RoomOptions.Pin(pinned, Utf8.ToNative(card.Game));
                native.Name = RoomOptions.Pin(pinned, Utf8.ToNative(card.Name));
                native.Data = RoomOptions.Pin(pinned, card.Data);
                native.DataLength = card.Data == null ? 0 : (uint)card.Data.Length;
                native.MaxPlayers = card.MaxPlayers;
                native.Port = card.Port;
                Check(NativeMethods.mmn_show_card(handle, ref native));
            }
            finally
            {
                foreach (GCHandle one in pinned)
                {
                    one.Free();
                }
            }
        }
    }

    /// <summary>A room in the list of a <see cref="RoomBrowser"/>. Anybody in the network can show a card: these are a stranger's texts and bytes.</summary>
    public sealed class RoomListing
    {
        /// <summary>The event.</summary>
        public readonly ListChange Change;
        /// <summary>Its number in this browser. It stays when another member becomes the room's leader.</summary>
        public readonly ulong Id;
        /// <summary>Its name for players.</summary>
        public readonly string Name;
        /// <summary>The session id, if its card is open; else null.</summary>
        public readonly string SessionId;
        /// <summary>The leader's address, for <see cref="Room.Connect"/>.</summary>
        public readonly string Address;
        /// <summary>The fingerprint of the leader's key.</summary>
        public readonly string Fingerprint;
        /// <summary>Bytes of the game.</summary>
        public readonly byte[] Data;
        /// <summary>Its members.</summary>
        public readonly uint Players;
        /// <summary>Most players; 0 is no number.</summary>
        public readonly uint MaxPlayers;
        /// <summary>Whether a member needs a secret besides the session id.</summary>
        public readonly bool NeedsSecret;

        internal RoomListing(ListedRoom native)
        {
            string session = Utf8.FromNative(native.SessionId);
            Change = native.Change;
            Id = native.Id;
            Name = Utf8.FromNative(native.Name);
            SessionId = session == "" ? null : session;
            Address = Utf8.FromNative(native.Address);
            Fingerprint = Utf8.FromNative(native.Fingerprint);
            Data = Utf8.Bytes(native.Data, (int)native.DataLength);
            Players = native.Players;
            MaxPlayers = native.MaxPlayers;
            NeedsSecret = native.NeedsSecret != 0;
        }
    }

    /// <summary>A list of the rooms of one game in the local network, by the cards that they show. It needs no room of this process. Close it with <see cref="Dispose"/>.</summary>
    public sealed class RoomBrowser : IDisposable
    {
        private static readonly ListedRoomCallback RoomThunk = OnRoom;
        // Guarded by itself.
        private static readonly List<RoomBrowser> browsers = new List<RoomBrowser>();

        private readonly Dictionary<ulong, RoomListing> rooms = new Dictionary<ulong, RoomListing>();
        private ulong handle;

        /// <summary>Opens a browser.</summary>
        /// <param name="game">The game, as in <see cref="RoomCard.Game"/>.</param>
        /// <param name="poll">true: handlers run inside <see cref="Poll"/>; false: on a thread of the library.</param>
        /// <param name="port">UDP port of the questions; 0 is 15354.</param>
        /// <param name="changed">A handler of <see cref="Changed"/>, which misses nothing; null is none.</param>
        /// <exception cref="NetworkException">-3 when an argument is invalid, -13 when 16 browsers are open, -4 without a socket.</exception>
        public RoomBrowser(string game, bool poll = true, uint port = 0, Action<RoomListing> changed = null)
        {
            Room.HookExit();
            Changed += changed;
            byte[] name = Utf8.ToNative(game);
            // Freed by the library's call of Room.DropThunk, or here if the library has not taken it.
            GCHandle self = GCHandle.Alloc(this);
            GCHandle pinned = GCHandle.Alloc(name, GCHandleType.Pinned);
            BrowseOptions options = new BrowseOptions();
            options.StructSize = (uint)Marshal.SizeOf(typeof(BrowseOptions));
            options.DispatchMode = poll ? DispatchMode.Poll : DispatchMode.Thread;
            options.Game = name == null ? IntPtr.Zero : pinned.AddrOfPinnedObject();
            options.OnRoom = RoomThunk;
            options.UserData = GCHandle.ToIntPtr(self);
            options.DropFunction = Room.DropThunk;
            options.Port = port;
            int code = NativeFile.First(() => NativeMethods.mmn_browse_open(ref options, ref handle));
            pinned.Free();
            if (code < 0)
            {
                NetworkException refused = Room.LastError(code);
                self.Free();
                throw refused;
            }
            lock (browsers)
            {
                browsers.Add(this);
            }
        }

        /// <summary>Receives the changes of rooms, one at a time.</summary>
        public event Action<RoomListing> Changed;

        /// <summary>Receives the exceptions of handlers, which never reach native code.</summary>
        public event Action<Exception> HandlerFailed;

        /// <summary>The rooms of the moment, in the order in which they were found.</summary>
        public RoomListing[] Rooms
        {
            get
            {
                lock (rooms)
                {
                    RoomListing[] listed = new RoomListing[rooms.Count];
                    rooms.Values.CopyTo(listed, 0);
                    Array.Sort(listed, (one, other) => one.Id.CompareTo(other.Id));
                    return listed;
                }
            }
        }

        /// <summary>In poll mode, runs the handlers for up to <paramref name="max"/> changes on the calling thread, and returns their number. Never waits. Call it once per frame.</summary>
        /// <exception cref="NetworkException">-15 inside a handler and while another thread polls, -3 when the browser is not in poll mode, -1 when it is closed.</exception>
        public int Poll(int max = int.MaxValue)
        {
            int ran = NativeMethods.mmn_browse_poll(handle, max);
            Room.Check(ran);
            return ran;
        }

        /// <summary>Closes the browser; waits for a running handler. A second call does nothing.</summary>
        /// <exception cref="NetworkException">-15 inside a handler; the browser stays open.</exception>
        public void Dispose()
        {
            int code = NativeMethods.mmn_browse_close(handle);
            if (code != ErrorCode.Ok && code != ErrorCode.NotInitialized)
            {
                throw Room.LastError(code);
            }
            lock (browsers)
            {
                browsers.Remove(this);
            }
        }

        // Closes all browsers of this domain, which ends.
        internal static void Withdraw()
        {
            RoomBrowser[] open;
            lock (browsers)
            {
                open = browsers.ToArray();
                browsers.Clear();
            }
            foreach (RoomBrowser browser in open)
            {
                NativeMethods.mmn_browse_close(browser.handle);
            }
        }

        [MonoPInvokeCallback(typeof(ListedRoomCallback))]
        private static void OnRoom(IntPtr userData, IntPtr room)
        {
            try
            {
                RoomBrowser browser = (RoomBrowser)GCHandle.FromIntPtr(userData).Target;
                browser.Take(new RoomListing((ListedRoom)Marshal.PtrToStructure(room, typeof(ListedRoom))));
            }
            catch (Exception)
            {
                // No exception may leave this method.
            }
        }

        private void Take(RoomListing listing)
        {
            lock (rooms)
            {
                if (listing.Change == ListChange.Gone)
                {
                    rooms.Remove(listing.Id);
                }
                else
                {
                    rooms[listing.Id] = listing;
                }
            }
            Action<RoomListing> handlers = Changed;
            if (handlers == null)
            {
                return;
            }
            foreach (Delegate handler in handlers.GetInvocationList())
            {
                try
                {
                    ((Action<RoomListing>)handler)(listing);
                }
                catch (Exception exception)
                {
                    Action<Exception> failed = HandlerFailed;
                    if (failed != null)
                    {
                        failed(exception);
                    }
                }
            }
        }
    }
}
