using System.IO;
using Mirror;
using UnityEngine;

/// <summary>A component whose state the object's next host needs, beside the object's place.</summary>
public interface IRoomObject
{
    /// <summary>Writes the state. It is called several times a second: an equal state must give equal bytes.</summary>
    void Save(BinaryWriter writer);

    /// <summary>Replaces the state by what <see cref="Save"/> has written, on this host or on one before it.</summary>
    void Load(BinaryReader reader);
}

/// <summary>
/// Lets <see cref="RoomWorld"/> keep a networked object: its prefab, its place, and what its components that are
/// <see cref="IRoomObject"/> save. Make it the last of the object's NetworkBehaviours: it loads the state in OnStartServer.
/// </summary>
public sealed class RoomObject : NetworkBehaviour
{
    [Tooltip("The object's name in the room, up to 57 bytes; empty for a random one. If the room has an object of this name, this one gets its state.")]
    public string key = "";

    internal string Property; // null while the world does not keep it
    internal string Member; // of a player's object: the player's id
    internal byte[] Confirmed; // in the room, as far as this host knows; null for nothing
    internal byte[] Sent; // under way to the room
    internal bool Alone; // refused together with others
    internal bool Reported; // as one that the room cannot keep
    internal long RetryAt;

    private IRoomObject[] parts;

    internal bool InScene
    {
        get { return netIdentity.sceneId != 0; }
    }

    public override void OnStartServer()
    {
        parts = GetComponents<IRoomObject>();
        if (RoomWorld.Active != null)
        {
            RoomWorld.Active.Keep(this);
        }
    }

    public override void OnStopServer()
    {
        if (RoomWorld.Active != null)
        {
            RoomWorld.Active.Drop(this);
        }
    }

    internal void Write(BinaryWriter writer)
    {
        writer.Write(InScene ? 0 : netIdentity.assetId); // An object of a scene may be of a prefab, too.
        WriteVector(writer, transform.localPosition);
        Quaternion rotation = transform.localRotation;
        writer.Write(rotation.x);
        writer.Write(rotation.y);
        writer.Write(rotation.z);
        writer.Write(rotation.w);
        WriteVector(writer, transform.localScale);
        foreach (IRoomObject part in parts)
        {
            part.Save(writer);
        }
        writer.Flush();
    }

    internal void Read(byte[] value)
    {
        BinaryReader reader = new BinaryReader(new MemoryStream(value));
        reader.ReadUInt32(); // AssetOf
        transform.localPosition = ReadVector(reader);
        transform.localRotation = new Quaternion(reader.ReadSingle(), reader.ReadSingle(), reader.ReadSingle(), reader.ReadSingle());
        transform.localScale = ReadVector(reader);
        foreach (IRoomObject part in parts)
        {
            part.Load(reader);
        }
    }

    /// <summary>The asset id of a value's prefab; 0 for an object that each host's scene has.</summary>
    internal static uint AssetOf(byte[] value)
    {
        return value.Length == 0 ? 0 : new BinaryReader(new MemoryStream(value)).ReadUInt32();
    }

    private static void WriteVector(BinaryWriter writer, Vector3 vector)
    {
        writer.Write(vector.x);
        writer.Write(vector.y);
        writer.Write(vector.z);
    }

    private static Vector3 ReadVector(BinaryReader reader)
    {
        return new Vector3(reader.ReadSingle(), reader.ReadSingle(), reader.ReadSingle());
    }
}
