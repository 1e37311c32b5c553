// Tests the room's state of the binding, with real rooms of this process over loopback. Prints "ok NAME" per promise and exits with 0
// only when all hold.
//
//   mcs -langversion:7 -out:State.exe bindings/csharp/tests/State.cs bindings/csharp/tests/Checks.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono State.exe [NAME...]
//
// NAME: actions, snapshots, properties, claims, merges, exceptions, refusals (default: all).

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Text;
using System.Threading.Tasks;
using MetaMystia.Network;
using static Checks;

internal static class State
{
    private const ushort Add = Room.FirstUserType, Say = Room.FirstUserType + 1;
    private const int Actions = 200; // at a time: fewer than the open requests that a member may have
    private const uint ShortTail = 256;

    private static int Main(string[] arguments)
    {
        return Run(arguments,
            new Test("actions", ActionsComeInOneOrder),
            new Test("snapshots", ANewcomerLoads),
            new Test("properties", PropertiesChange),
            new Test("claims", AClaimHasOneWinner),
            new Test("merges", AMergeRollsBack),
            new Test("exceptions", ExceptionsStayHere),
            new Test("refusals", CallsAreRefused));
    }

    // A member in poll mode with a sum and a chat.
    private sealed class Player
    {
        internal readonly Room Room;
        internal int Sum;
        internal string Chat = "";
        internal readonly List<RoomAction> Received = new List<RoomAction>();
        internal readonly List<PropertyChanged> Changes = new List<PropertyChanged>();
        internal readonly List<StateReset> Resets = new List<StateReset>();
        internal readonly List<StateMemberChanged> Members = new List<StateMemberChanged>();
        internal readonly List<Exception> Failures = new List<Exception>();
        internal StateOpened Opened;

        // Without discovery. The first one creates the room: two logs that merge would be another test.
        internal Player(string name, string session, Player first = null, StateOptions state = new StateOptions())
        {
            RoomOptions options = new RoomOptions { State = state };
            options.Settings.DiscoveryMode = DiscoveryMode.Off;
            options.Settings.Entry = first == null ? RoomEntry.Create : RoomEntry.Join;
            Room = Added(Room.Join(name, session, options, Subscribe));
            if (first != null)
            {
                Room.Connect(first.Room.LocalAddress);
            }
        }

        internal RoomState State
        {
            get { return Room.State; }
        }

        private void Subscribe(Room room)
        {
            room.HandlerFailed += Failures.Add;
            room.State.Action += action =>
            {
                Received.Add(action);
                if (action.Type == Add)
                {
                    Sum += action.ReadInt32();
                }
                else
                {
                    Chat += action.Text;
                }
            };
            room.State.PropertyChanged += Changes.Add;
            room.State.MemberChanged += Members.Add;
            room.State.Opened += opening => Opened = opening;
            room.State.Reset += Resets.Add;
            room.State.Save = () => Encoding.UTF8.GetBytes(Sum + "\n" + Chat);
            room.State.Load = saved =>
            {
                string[] parts = Encoding.UTF8.GetString(saved).Split('\n');
                Sum = saved.Length == 0 ? 0 : int.Parse(parts[0]);
                Chat = saved.Length == 0 ? "" : parts[1];
            };
        }

        internal string View()
        {
            return string.Join(" ", Received.Select(action => action.Index + action.Author + action.TimeMs + action.Type));
        }
    }

    private static T Await<T>(Task<T> task)
    {
        Wait("a result", () => task.IsCompleted);
        return task.GetAwaiter().GetResult();
    }

    private static int CodeOf(StateRequest request)
    {
        ActionResult result = Await(request.Result);
        Must(result.Request == request.Number, "the result of another request");
        return result.Code;
    }

    private static Player[] Three(string session)
    {
        Player ann = new Player("ann", session);
        Wait("a first opening", () => ann.State.Info.Members == 1);
        Player[] all = { ann, new Player("bob", session, ann), new Player("cid", session, ann) };
        // Until its host has received that, a change of a property may come to it without its author, as a part of the state.
        Wait("three members", () => all.All(player => player.State.Info.Members == 3 && player.Members.Count(member => member.Here) == 3));
        return all;
    }

    private static void ActionsComeInOneOrder(string session)
    {
        Player[] all = Three(session);
        List<StateRequest> requests = new List<StateRequest>();
        for (int number = 0; number < Actions / 2; number++)
        {
            foreach (Player player in all)
            {
                requests.Add(player.State.Submit(Add, -number));
                requests.Add(player.State.Submit(Say, "神"));
            }
        }
        requests.ForEach(request => Must(CodeOf(request) == ErrorCode.Ok, "an action without Ok"));
        Wait("all actions", () => all.All(player => player.Received.Count == requests.Count));
        foreach (Player player in all)
        {
            Must(player.View() == all[0].View(), "two orders");
            Must(player.Sum == -3 * (Actions / 2) * (Actions / 2 - 1) / 2 && player.Chat.Length == requests.Count / 2, "another state");
            Must(player.Received.All(action => action.Mine == (action.Author == player.Room.PeerId)), "Mine");
            Must(player.Opened.Leader == "ann" && player.Opened.Exclusive, "Opened");
            Must(player.Members.Count(member => member.Here) == 3, "MemberChanged");
            Must(player.Resets.Count == 1 && player.Resets[0].Snapshot.Length == 0, "one Reset");
            Must(player.Failures.Count == 0, "a failure");
        }
        Must(all[0].State.Submit(Say, new byte[0]).Number > 0, "an empty action");
        Must(Throws<FormatException>(() => all[0].Received.First(action => action.Type == Say).ReadInt32()), "ReadInt32 of a text");
        Task<ActionResult> awaited = AwaitRequest(all[0]);
        Must(Await(awaited).Code == ErrorCode.Ok, "await");
        // The author of a request leaves before it has a result.
        Task<ActionResult> late = all[1].State.Submit(Add, 1).Result;
        all[1].Room.Dispose();
        Must(late.IsFaulted || late.Wait(WaitMs) || late.IsFaulted, "a request that outlives its room");
    }

    private static async Task<ActionResult> AwaitRequest(Player player)
    {
        return await player.State.Submit(Add, 0);
    }

    private static void ANewcomerLoads(string session)
    {
        StateOptions tail = new StateOptions { TailEntries = ShortTail };
        Player ann = new Player("ann", session, null, tail);
        for (int round = 0; round < 4; round++)
        {
            List<StateRequest> requests = Enumerable.Range(0, Actions).Select(number => ann.State.Submit(Add, 1)).ToList();
            requests.ForEach(request => CodeOf(request));
        }
        Player bob = new Player("bob", session, ann, tail);
        Wait("the state", () => bob.Sum == ann.Sum);
        Must(ann.Sum == 4 * Actions && bob.Received.Count <= ShortTail, "not a snapshot");
        Must(bob.Resets.Any(reset => reset.Snapshot.Length > 0 && reset.Code == ErrorCode.Ok), "no snapshot");
        // A member whose Save fails, and one without Save, are passed over.
        ann.State.Save = () => { throw new InvalidOperationException("on purpose"); };
        Player cid = new Player("cid", session, ann, tail);
        Wait("the first one to be asked", () => ann.Failures.Count > 0);
        bob.Room.Connect(cid.Room.LocalAddress);
        Wait("the state from bob", () => cid.Sum == ann.Sum);
        Must(ann.Failures.All(failure => failure.Message == "on purpose"), "another failure");
        // A host that answers later.
        ann.State.Save = null;
        bob.State.Save = null;
        cid.State.Save = null;
        SnapshotWanted wanted = null;
        ann.State.SnapshotWanted += e => wanted = e;
        Player dan = new Player("dan", session, ann, tail);
        Wait("a question", () => wanted != null);
        ann.State.ProvideSnapshot(wanted.Request, Encoding.UTF8.GetBytes(ann.Sum + "\n"));
        Wait("the late answer", () => dan.Sum == ann.Sum);
    }

    private static void PropertiesChange(string session)
    {
        Player[] all = Three(session);
        Player ann = all[0], bob = all[1];
        ann.State["map"] = "forest";
        Wait("the map", () => all.All(player => player.State["map"] == "forest" && player.Changes.Count == 1));
        Must(all.All(player => player.Changes[0].Text == "forest" && player.Changes[0].Author == "ann"), "PropertyChanged");
        Must(ann.State["none"] == null && ann.State.GetBytes("none") == null && ann.State.Find("none") == null, "a property that is not there");

        // With versions, all or none.
        ulong version = ann.State.Find("map").Version;
        StateChange created = StateChange.Set("new", "1"), stale = StateChange.Set("map", "x");
        created.ExpectedVersion = 0;
        stale.ExpectedVersion = version + 1;
        Must(CodeOf(ann.State.SetProperties(created, stale)) == ErrorCode.Conflict && ann.State["new"] == null, "a part of a set");
        stale.ExpectedVersion = version;
        Must(CodeOf(ann.State.SetProperties(created, stale, StateChange.Set("third", new byte[0]))) == ErrorCode.Ok, "a set");
        Wait("the set", () => all.All(player => string.Join(",", player.State.Keys) == "map,new,third" && player.State["map"] == "x"));
        Must(bob.State.GetBytes("third").Length == 0, "an empty value");
        bob.State["new"] = null;
        Wait("the removal", () => all.All(player => player.State["new"] == null));
        Must(!ann.Changes.Last().Exists && ann.Changes.Last().Text == "", "a removal is shown");

        // A member's own.
        bob.State.Me["ready"] = "1";
        Wait("ready", () => all.All(player => player.State.Of("bob")["ready"] == "1"));
        Must(bob.State.Me.GetBytes("ready").Length == 1 && ann.State.Me["ready"] == null, "another's own");
        Must(ann.State.Find("@bob/ready").Flags == (PropertyFlags.OwnerOnly | PropertyFlags.DiesWithOwner), "flags");
        Must(string.Join(",", ann.State.KeysOf("bob")) == "@bob/ready" && ann.State.KeysOf("cid").Length == 0, "KeysOf");
        Must(CodeOf(ann.State.SetProperties(StateChange.Set("@bob/ready", "0"))) == ErrorCode.Rejected, "another's own is set");
        Must(Throws<InvalidOperationException>(() => ann.State.Of("bob")["ready"] = "0"), "Of(peer) is set");
        bob.State.Me["second"] = "2";
        bob.State.Me["ready"] = null;
        Wait("the removal of an own one", () => ann.State.Of("bob")["ready"] == null && ann.State.Of("bob")["second"] == "2");
        bob.Room.Dispose();
        Wait("its end", () => ann.State.Of("bob")["second"] == null);
    }

    private static void AClaimHasOneWinner(string session)
    {
        Player[] all = Three(session);
        for (int number = 0; number < 20; number++)
        {
            string key = "ball " + number;
            Task<bool>[] claims = all.Reverse().Select(player => player.State.Claim(key)).ToArray();
            Must(claims.Count(claim => Await(claim)) == 1, "not one winner of " + key);
        }
        Task<bool> first = all[1].State.Claim("twice"), second = all[1].State.Claim("twice");
        Must(Await(first) && Await(second), "two claims of one member");
        Wait("the owner", () => all.All(player => player.State.Find("twice").Owner == "bob"));
        Must(all[1].State.Claim("twice").Result && !all[0].State.Claim("twice").Result, "a claim of an owned one");
        Must(!all[0].State.Release("twice").Result, "a release of another's");
        Must(Await(all[1].State.Release("twice")), "a release");
        Wait("no owner", () => all.All(player => player.State.Find("twice").Owner == null));
        Must(Await(all[0].State.Claim("twice")), "a claim of a released one");
        // A claim is for the version that its member has received.
        Wait("the owner at bob", () => all[1].State.Find("twice").Owner == "ann");
        Must(Await(all[1].State.Claim("twice", true)), "a claim that takes");
        all[1].Room.Dispose();
        Wait("the leader has it", () => all[0].State.Find("twice").Owner == "ann");
    }

    private static void AMergeRollsBack(string session)
    {
        Player ann = new Player("ann", session), bob = new Player("bob", session);
        List<RolledBack> undone = new List<RolledBack>();
        foreach (Player player in new[] { ann, bob })
        {
            Player own = player;
            own.State.RolledBack += action =>
            {
                undone.Add(action);
                if (action.Mine)
                {
                    own.State.Submit(action.Type, action.Data);
                }
            };
            Must(CodeOf(own.State.Submit(Say, own.Room.PeerId)) == ErrorCode.Ok, "a side");
        }
        ann.Room.Connect(bob.Room.LocalAddress);
        Wait("one state", () => ann.Chat.Length == 6 && ann.Chat == bob.Chat);
        Must(undone.Count == 1 && undone[0].Mine && ann.Chat.EndsWith(undone[0].Text), "RolledBack");
    }

    private static void ExceptionsStayHere(string session)
    {
        Player ann = new Player("ann", session);
        Exception fault = new InvalidOperationException("on purpose");
        ann.State.Action += a => { throw fault; };
        ann.State.PropertyChanged += p => { throw fault; };
        ann.State.Opened += o => { throw fault; };
        ann.State.MemberChanged += m => { throw fault; };
        ann.State.Load += data => { throw fault; };
        ann.State["map"] = "forest";
        Must(CodeOf(ann.State.Submit(Add, 1)) == ErrorCode.Ok && ann.Sum == 1, "an action");
        Wait("five failures", () => ann.Failures.Count == 5);
    }

    private static void CallsAreRefused(string session)
    {
        Room plain = Room.Join("plain", session + "-plain", new RoomOptions());
        Must(Refused(() => plain.State.Submit(Add, 1)) == ErrorCode.NotSupported, "a room without a state");
        plain.Dispose();
        RoomOptions wrong = new RoomOptions { State = new StateOptions { TailEntries = 1 } };
        Must(Refused(() => Room.Join("wrong", session, wrong)) == ErrorCode.InvalidArgument, "a tail of one entry");

        Player ann = new Player("ann", session);
        RoomState state = ann.State;
        Must(Refused(() => state.Submit(1, 1)) == ErrorCode.InvalidArgument, "a type of the library");
        Must(Refused(() => state.Submit(Add, new byte[16385])) == ErrorCode.MessageTooLarge, "an action that is too long");
        Must(Throws<ArgumentNullException>(() => state.Submit(Add, (byte[])null)), "no data");
        Must(Throws<ArgumentNullException>(() => state.Submit(Add, (string)null)), "no text");
        foreach (string key in new[] { "", "a\nb", new string('k', 65) })
        {
            Must(Refused(() => state.Find(key)) == ErrorCode.InvalidArgument, "Find: a key");
            Must(Refused(() => state[key] = "x") == ErrorCode.InvalidArgument, "set: a key");
        }
        Must(Throws<ArgumentException>(() => state["a\0b"] = "x"), "a NUL");
        Must(Throws<ArgumentNullException>(() => state[null] = "x") && Throws<ArgumentNullException>(() => state.Find(null)), "no key");
        Must(Throws<ArgumentException>(() => state.SetProperties()) && Throws<ArgumentException>(() => state.SetProperties((StateChange)null)), "no change");
        Must(Throws<ArgumentException>(() => state.Of("")) && Throws<ArgumentException>(() => state.Me[""] = "x"), "no name");
        Must(Refused(() => state.ProvideSnapshot(99, new byte[1])) < 0, "an answer without a question");
        Task<ActionResult> open = state.Submit(Add, 1).Result;
        Task<bool> claim = state.Claim("ball");
        ann.Room.Dispose();
        Must(Refused(() => open.GetAwaiter().GetResult()) == ErrorCode.NotInitialized, "a request of a room that was left");
        Must(Refused(() => claim.GetAwaiter().GetResult()) == ErrorCode.NotInitialized, "a claim in a room that was left");
        Must(Refused(() => state.Submit(Add, 1)) == ErrorCode.NotInitialized, "Submit after Dispose");
        Must(Refused(() => state.Find("map")) == ErrorCode.NotInitialized, "Find after Dispose");
        Must(Refused(() => GC.KeepAlive(state.Keys)) == ErrorCode.NotInitialized, "Keys after Dispose");
        Must(Refused(() => GC.KeepAlive(state.Info)) == ErrorCode.NotInitialized, "Info after Dispose");
    }
}
