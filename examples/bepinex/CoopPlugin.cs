using System;
using System.Runtime.InteropServices;
using System.Text;
using BepInEx;
using BepInEx.Unity.IL2CPP;
using MetaMystia.Network;
using UnityEngine;

/// <summary>
/// A BepInEx 6 plugin (IL2CPP) that puts the players of a game into one room and shows each the positions of the others. The game
/// sets <see cref="OwnPosition"/> and listens to <see cref="Moved"/>, both on Unity's main thread.
/// </summary>
[BepInPlugin("org.example.coop", "Co-op", "1.0.0")]
public class CoopPlugin : BasePlugin
{
    private const ushort Position = Room.FirstUserType;
    private const int PositionBytes = 12;
    private const float SendEverySeconds = 0.05f;

    /// <summary>This player's position; null sends none.</summary>
    public static Func<Vector3> OwnPosition;

    /// <summary>Another player, by its id, moved to this position.</summary>
    public static event Action<string, Vector3> Moved;

    internal static CoopPlugin Instance;

    private readonly byte[] outgoing = new byte[PositionBytes], incoming = new byte[PositionBytes];
    private Room room;
    private CoopUpdates updates;
    private bool ended;
    private float nextSend;

    public override void Load()
    {
        string session = Config.Bind("Room", "Name", "our secret tea party", "The same for all players of one game.").Value;
        string player = Config.Bind("Room", "Player", Environment.UserName, "Your id, unique in the room.").Value;
        string address = Config.Bind("Room", "Address", "", "The address of any player; empty for the first.").Value;
        ushort port = Config.Bind("Room", "Port", (ushort)0, "The UDP port to bind; 0 for any.").Value;
        try
        {
            RoomOptions options = new RoomOptions();
            options.Settings.BindPort = port;
            room = Room.Join(player, session, options);
        }
        catch (DllNotFoundException)
        {
            Log.LogError("meta_mystia_network.dll is not beside this plugin.");
            return;
        }
        catch (NetworkException exception)
        {
            Log.LogError(exception.Message);
            return;
        }
        room.HandlerFailed += exception => Log.LogError(exception);
        room.Changed += OnChanged;
        room.DataReceived += OnData;
        Log.LogInfo("others can join me at " + room.LocalAddress);
        if (address.Length > 0)
        {
            Dial(address);
        }
        Instance = this;
        updates = AddComponent<CoopUpdates>();
    }

    public override bool Unload()
    {
        Instance = null;
        if (updates != null)
        {
            UnityEngine.Object.Destroy(updates);
            updates = null;
        }
        Leave();
        return true;
    }

    private void Dial(string address)
    {
        try
        {
            room.Connect(address);
        }
        catch (NetworkException exception)
        {
            Log.LogError(exception.Message);
        }
    }

    // Every frame. The handlers run inside Poll.
    internal void OnUpdate()
    {
        if (room == null)
        {
            return;
        }
        room.Poll(100);
        if (ended)
        {
            Leave();
            return;
        }
        Func<Vector3> position = OwnPosition;
        if (position == null || Time.unscaledTime < nextSend)
        {
            return;
        }
        nextSend = Time.unscaledTime + SendEverySeconds;
        Write(position(), outgoing);
        // Sequenced: a lost position is not sent again, and an older one never arrives after a newer one.
        room.TryBroadcast(outgoing, Delivery.Sequenced(0), Position);
    }

    private void OnChanged(RoomEvent e)
    {
        if (e is PeerJoined joined)
        {
            Log.LogInfo(joined.Peer + " joined");
        }
        else if (e is PeerLeft left)
        {
            Log.LogInfo(left.Peer + " left: " + left.Reason.Describe());
        }
        else if (e is LeaderChanged change)
        {
            Log.LogInfo(change.Leader != null ? change.Leader + " leads" : "no member leads");
        }
        else if (e is ConnectionResult result && !result.Success)
        {
            Log.LogWarning(result.Address + ": " + Room.Describe(result.Code) + " " + Encoding.UTF8.GetString(result.Data));
        }
        else if (e is RoomEnded end)
        {
            Log.LogWarning("the room has ended: " + end.Reason.Describe());
            ended = true; // Not here: a room is not left inside its handlers.
        }
    }

    private void OnData(MessageView message)
    {
        Action<string, Vector3> moved = Moved;
        if (message.Type != Position || message.Length != PositionBytes || moved == null)
        {
            return;
        }
        message.CopyTo(incoming);
        moved(message.From, Read(incoming));
    }

    private void Leave()
    {
        Room left = room;
        room = null;
        if (left != null)
        {
            left.Dispose();
        }
    }

    // Little-endian, on every machine, and without an array for each number.
    [StructLayout(LayoutKind.Explicit)]
    private struct Number
    {
        [FieldOffset(0)] internal float Value;
        [FieldOffset(0)] internal uint Bits;
    }

    private static void Write(Vector3 position, byte[] bytes)
    {
        for (int axis = 0; axis < 3; axis++)
        {
            Number number = new Number();
            number.Value = axis == 0 ? position.x : axis == 1 ? position.y : position.z;
            for (int index = 0; index < 4; index++)
            {
                bytes[4 * axis + index] = (byte)(number.Bits >> (8 * index));
            }
        }
    }

    private static Vector3 Read(byte[] bytes)
    {
        float[] values = read;
        for (int axis = 0; axis < 3; axis++)
        {
            Number number = new Number();
            for (int index = 0; index < 4; index++)
            {
                number.Bits |= (uint)bytes[4 * axis + index] << (8 * index);
            }
            values[axis] = number.Value;
        }
        return new Vector3(values[0], values[1], values[2]);
    }

    private static readonly float[] read = new float[3]; // for the main thread
}

/// <summary>Unity's frames. BepInEx registers the class with the game's type system.</summary>
public class CoopUpdates : MonoBehaviour
{
    public CoopUpdates(IntPtr pointer)
        : base(pointer)
    {
    }

    public void Update()
    {
        CoopPlugin plugin = CoopPlugin.Instance;
        if (plugin != null)
        {
            plugin.OnUpdate();
        }
    }
}
