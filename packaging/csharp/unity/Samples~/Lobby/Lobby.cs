using System;
using System.Collections.Generic;
using System.Text;
using MetaMystia.Network;
using UnityEngine;

/// <summary>
/// Put it on an empty object and press Play: the room's members, its leader, and a chat. In one local network players connect by
/// themselves. Elsewhere they meet at a relay: the player who hosts the game reads the room's code out to the others. Without a
/// relay one types the address that another one's window shows.
/// </summary>
public class Lobby : MonoBehaviour
{
    private const ushort Chat = Room.FirstUserType;
    private const int ShownLines = 12;

    public string session = "our secret tea party"; // the same for all players; with a relay, the room's code
    public string relay = ""; // the address of a relay, for players at home; the same for all
    public string player = ""; // different for each; empty is the name of this machine
    public string dial = ""; // the address of any other player

    private readonly List<string> lines = new List<string>();
    private Room room;
    private string typed = "";
    private string atRelay = ""; // whether this member is at the relay, or why not
    private bool ended;

    private void Start()
    {
        if (player.Length == 0)
        {
            player = Environment.MachineName;
        }
    }

    private void Update()
    {
        if (room != null)
        {
            room.Poll(100); // OnChanged and OnMessage run inside, on the main thread
        }
        if (ended)
        {
            Leave(); // not in the handler: a room is not left inside its handlers
        }
    }

    // Unity calls this when the scene, the game or play mode ends, and before it reloads scripts.
    private void OnDisable()
    {
        Leave();
    }

    private void OnGUI()
    {
        GUILayout.BeginArea(new Rect(10, 10, 420, 560));
        if (room == null)
        {
            ShowEntrance();
        }
        else
        {
            ShowRoom();
        }
        foreach (string line in lines)
        {
            GUILayout.Label(line);
        }
        GUILayout.EndArea();
    }

    private void ShowEntrance()
    {
        GUILayout.Label(relay.Length == 0 ? "Room" : "The code of the room to join");
        session = GUILayout.TextField(session);
        GUILayout.Label("Your id, unique in the room");
        player = GUILayout.TextField(player);
        GUILayout.Label("The address of any other player (not needed in one local network)");
        dial = GUILayout.TextField(dial);
        if (GUILayout.Button("Host a game"))
        {
            Try(() =>
            {
                if (relay.Length > 0)
                {
                    session = Room.CreateCode();
                }
                Enter(RoomEntry.Create);
            });
        }
        if (GUILayout.Button("Join a game"))
        {
            Try(() => Enter(RoomEntry.Join));
        }
    }

    private void ShowRoom()
    {
        string leader = room.Leader;
        GUILayout.Label(relay.Length == 0 ? "Others join you at " + room.LocalAddress : "The room's code: " + room.SessionId + atRelay);
        GUILayout.Label("Leader: " + (leader ?? "none yet"));
        GUILayout.Label(Describe(room.PeerId, leader) + " (you)");
        foreach (string member in room.Members)
        {
            int roundTripMs = room.RoundTripMs(member);
            GUILayout.Label(Describe(member, leader) + (roundTripMs < 0 ? "" : ", " + roundTripMs + " ms, " + PathTo(member)));
        }
        typed = GUILayout.TextField(typed);
        if (GUILayout.Button("Say") && typed.Length > 0)
        {
            Try(() => room.Broadcast(Encoding.UTF8.GetBytes(typed), Delivery.ReliableOrdered(), Chat));
            Show(player + ": " + typed);
            typed = "";
        }
        if (GUILayout.Button("Leave"))
        {
            Leave();
        }
    }

    // Why a link is slow: its packets may go over a relay or through another player.
    private string PathTo(string member)
    {
        LinkPath? path = room.PathOf(member);
        string carrier = room.CarrierOf(member);
        if (path == LinkPath.ThroughRelay)
        {
            return "over the relay";
        }
        return carrier == null ? "direct" : "through " + carrier + (path == LinkPath.ThroughLeader ? " (leader)" : "");
    }

    private static string Describe(string member, string leader)
    {
        return member == leader ? member + ", leads" : member;
    }

    private void Enter(RoomEntry entry)
    {
        RoomOptions options = new RoomOptions(); // poll mode
        options.Settings.Entry = entry; // a player that joins and finds no room does not create one
        options.Settings.DiscoveryMode = DiscoveryMode.Connect;
        if (relay.Length > 0)
        {
            options.Relays = new[] { relay };
        }
        room = Room.Join(player, session, options);
        ended = false;
        atRelay = ", on the way to the relay";
        room.HandlerFailed += exception => Debug.LogException(exception);
        room.Changed += OnChanged;
        room.RelayChanged += change => atRelay = change.Success ? "" : ": " + Encoding.UTF8.GetString(change.Data);
        room.OnType(Chat, message => Show(message.From + ": " + Encoding.UTF8.GetString(message.Data)));
        if (dial.Length > 0)
        {
            room.Connect(dial);
        }
    }

    private void OnChanged(RoomEvent e)
    {
        if (e is PeerJoined joined)
        {
            Show(joined.Peer + " joined");
        }
        else if (e is PeerLeft left)
        {
            Show(left.Peer + " left: " + left.Reason.Describe());
        }
        else if (e is LeaderChanged change)
        {
            Show(change.Leader != null ? change.Leader + " leads" : "no member leads");
        }
        else if (e is ConnectionResult result && !result.Success)
        {
            Show(result.Address + ": " + Room.Describe(result.Code));
        }
        else if (e is NoRoomFound)
        {
            Show("no room found yet; still looking");
        }
        else if (e is RoomEnded end)
        {
            Show("the room has ended: " + end.Reason.Describe());
            ended = true;
        }
    }

    private void Leave()
    {
        Room left = room;
        room = null;
        ended = false;
        if (left != null)
        {
            left.Dispose();
        }
    }

    private void Try(Action action)
    {
        try
        {
            action();
        }
        catch (NetworkException exception)
        {
            Show(exception.Message);
        }
        catch (DllNotFoundException exception)
        {
            Show("The native library is missing in Plugins: " + exception.Message);
        }
    }

    private void Show(string line)
    {
        lines.Add(line);
        if (lines.Count > ShownLines)
        {
            lines.RemoveAt(0);
        }
    }
}
