// A game on RoomWorld, without Mirror: chests that the host fills, and players with coins. Prints its events, one line each. Its
// input are commands, a line each, and its end ends the program. At the host: spawn KEY COINS, fill KEYS COUNT, set KEY COINS, label KEY
// LENGTH, destroy KEY, work (every frame changes all chests) and rest, save (prints the world once the room has it), stop, restart. At a client: usurp
// (writes to the room as another host does). At both: earn COINS, room (the coins in the room's properties).
//
//   mcs -langversion:7 -out:World.exe examples/mirror/*.cs examples/mirror/tests/{Stub,World}.cs \
//     examples/unity/RoomLink.cs examples/unity/tests/{Unity,Commands}.cs bindings/csharp/*.cs
//   LD_LIBRARY_PATH=target/release mono World.exe ann SESSION
//   LD_LIBRARY_PATH=target/release mono World.exe bob SESSION ADDRESS

using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using MetaMystia.Network;
using Mirror;
using UnityEngine;

internal sealed class World : NetworkManager
{
    private const int Prefab = 7, PlayerPrefab = 8;
    // Of an object's value: the asset id and ten numbers come before the chest's coins.
    private const int CoinsAt = 44;

    private RoomTransport room;
    private RoomWorld world;
    private Room watched;
    private bool saving, working;
    private int confirmed;

    private void Start(string id, string session)
    {
        room = new RoomTransport { playerId = id, sessionId = session, password = "a secret", port = 0 };
        transport = room;
        playerPrefab = NewPrefab("Player", PlayerPrefab);
        spawnPrefabs.Add(NewPrefab("Chest", Prefab));
        GameObject altar = NewPrefab("Altar", Prefab);
        altar.GetComponent<NetworkIdentity>().sceneId = 0xa17a;
        sceneObjects.Add(altar);
        world = new RoomWorld { manager = this, transport = room };
        world.Ready += isNew =>
        {
            Commands.Say(isNew ? "new world" : "known world");
            Commands.Say("host");
        };
        world.Failed += (item, text) => Commands.Say("failed " + text);
        world.OnEnable();
        new HostMigration { manager = this, transport = room }.OnEnable();
    }

    private static GameObject NewPrefab(string name, uint asset)
    {
        GameObject prefab = new GameObject(name);
        prefab.AddComponent<NetworkIdentity>().assetId = asset;
        prefab.AddComponent<Chest>();
        prefab.AddComponent<RoomObject>();
        return prefab;
    }

    // ---------------------------------------------------------------- the game's messages: Mirror would send the chests' SyncVars

    public override void OnServerAddPlayer(NetworkConnectionToClient conn)
    {
        base.OnServerAddPlayer(conn);
        SendCoins(conn.connectionId);
    }

    private void SendCoins(int id)
    {
        int coins = NetworkServer.connections[id].identity.GetComponent<Chest>().coins;
        if (id == NetworkConnection.LocalConnectionId)
        {
            Commands.Say("coins " + coins);
        }
        else
        {
            room.ServerSend(id, new ArraySegment<byte>(BitConverter.GetBytes(coins)), Channels.Reliable);
        }
    }

    private void Earn(int id, int coins)
    {
        NetworkServer.connections[id].identity.GetComponent<Chest>().coins += coins;
        SendCoins(id);
    }

    public override void OnClientConnect()
    {
        Commands.Say("connected to " + room.Host);
    }

    public override void OnClientDisconnect()
    {
        Commands.Say("disconnected");
    }

    // ---------------------------------------------------------------- commands

    private void Obey(string[] words)
    {
        string key = words.Length > 1 ? words[1] : null;
        int number = words.Length > 2 ? int.Parse(words[2]) : 0;
        switch (words[0])
        {
            case "spawn":
                Spawn(key, number);
                break;
            case "fill":
                for (int index = 0; index < number; index++)
                {
                    Spawn(key + index, 1000 * index);
                }
                break;
            case "set":
                Find(key).coins = number;
                break;
            case "label":
                Find(key).label = new string('x', number);
                break;
            case "destroy":
                NetworkServer.Destroy(Find(key).gameObject);
                break;
            case "work":
            case "rest":
                working = words[0] == "work";
                break;
            case "usurp":
                byte[] other = room.Room.State.GetBytes("object/chest2");
                room.Room.State.SetProperties(
                    StateChange.Set("world", "usurper"),
                    StateChange.Remove("object/chest0"),
                    StateChange.Set("object/chest1", other),
                    StateChange.Set("object/copy", other));
                break;
            case "save":
                saving = true;
                break;
            case "earn":
                if (NetworkServer.active)
                {
                    Earn(NetworkConnection.LocalConnectionId, int.Parse(key));
                }
                else
                {
                    room.ClientSend(new ArraySegment<byte>(BitConverter.GetBytes(int.Parse(key))), Channels.Reliable);
                }
                break;
            case "room":
                Commands.Say("room " + string.Join(" ", Properties().Select(pair => pair.Key + "=" + pair.Value)));
                break;
            case "stop":
                StopHost();
                break;
            case "restart":
                StopHost();
                StartHost();
                break;
            default:
                throw new ArgumentException(words[0]);
        }
    }

    private void Spawn(string key, int coins)
    {
        GameObject chest = Instantiate(spawnPrefabs[0]);
        chest.GetComponent<RoomObject>().key = key;
        chest.GetComponent<Chest>().coins = coins;
        chest.transform.localPosition = new Vector3(coins, 2 * coins, 0.5f);
        NetworkServer.Spawn(chest);
    }

    private static IEnumerable<RoomObject> Items()
    {
        return NetworkServer.spawned.Values.Select(item => item.GetComponent<RoomObject>()).Where(item => item.Property != null);
    }

    private static Chest Find(string key)
    {
        return Items().Single(item => item.Property == "object/" + key).GetComponent<Chest>();
    }

    // The coins of each object in the room.
    private IEnumerable<KeyValuePair<string, int>> Properties()
    {
        foreach (string key in room.Room.State.Keys)
        {
            byte[] value = room.Room.State.GetBytes(key);
            if (key != "world")
            {
                yield return new KeyValuePair<string, int>(key, value.Length == 0 ? -1 : BitConverter.ToInt32(value, CoinsAt));
            }
        }
    }

    // Each object with its coins, place and label, sorted.
    private static string Describe()
    {
        IEnumerable<string> items = Items().Select(item =>
        {
            Chest chest = item.GetComponent<Chest>();
            return item.Property + "=" + chest.coins + "@" + item.transform.localPosition.y + "/" + chest.label.Length;
        });
        return string.Join(" ", items.OrderBy(text => text, StringComparer.Ordinal));
    }

    // ---------------------------------------------------------------- frames

    private void Frame()
    {
        if (working)
        {
            foreach (RoomObject item in Items().Where(item => item.Member == null))
            {
                item.GetComponent<Chest>().coins++;
            }
        }
        // Before the events: a host that stood still has changes to write, and does not know yet that it is none any more.
        world.Update();
        room.ServerEarlyUpdate();
        room.ClientEarlyUpdate();
        MonoBehaviour.RunCoroutines();
        room.OnServerDataReceived = (id, segment, channel) => Earn(id, BitConverter.ToInt32(segment.Array, segment.Offset));
        room.OnClientDataReceived = (segment, channel) => Commands.Say("coins " + BitConverter.ToInt32(segment.Array, segment.Offset));
        if (saving && world.IsSaved())
        {
            saving = false;
            Commands.Say("world " + Describe());
        }
        Watch();
    }

    private void Watch()
    {
        if (room.Room == null)
        {
            return;
        }
        if (room.Room != watched)
        {
            watched = room.Room;
            watched.Changed += e =>
            {
                if (e is ActionResult result && result.Code != ErrorCode.Ok)
                {
                    Commands.Say("refused " + result.Code);
                }
            };
        }
        if (working)
        {
            int coins = Properties().Where(pair => pair.Key == "object/chest0").Select(pair => pair.Value).FirstOrDefault();
            if (coins > confirmed)
            {
                confirmed = coins;
                Commands.Say("confirmed " + coins);
            }
        }
    }

    private void Run(Commands commands)
    {
        while (true)
        {
            string command = commands.Next();
            if (command == null)
            {
                room.OnDisable();
                return;
            }
            if (command.Length > 0)
            {
                Obey(command.Split(' '));
            }
            Frame();
            Thread.Sleep(1);
        }
    }

    private static int Main(string[] arguments)
    {
        Commands commands = new Commands();
        try
        {
            World game = new World();
            game.Start(arguments[0], arguments[1]);
            if (arguments.Length == 2)
            {
                game.StartHost();
                Commands.Say("address " + game.room.Address);
            }
            else
            {
                game.networkAddress = arguments[2];
                game.StartClient();
            }
            game.Run(commands);
            return 0;
        }
        catch (Exception exception)
        {
            Console.Error.WriteLine("FAILED " + arguments[0] + ": " + exception);
            return 1;
        }
    }
}
