using System.IO;
using Mirror;

/// <summary>An example of an object that the room keeps. Its prefab has a NetworkIdentity, this component and a <see cref="RoomObject"/>.</summary>
public class Chest : NetworkBehaviour, IRoomObject
{
    [SyncVar] public int coins;
    [SyncVar] public string label = "";

    public void Save(BinaryWriter writer)
    {
        writer.Write(coins);
        writer.Write(label);
    }

    public void Load(BinaryReader reader)
    {
        coins = reader.ReadInt32();
        label = reader.ReadString();
    }
}
