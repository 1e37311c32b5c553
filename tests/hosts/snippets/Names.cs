// The names that parts of programs in the documents use.
using System;
using System.Collections.Generic;
using MetaMystia.Network;

internal sealed class Thing
{
    public readonly Thing transform = null;
    public int position = 0;
}

internal static class CoopPlugin
{
    public static Func<int> OwnPosition;
    public static Action<string, int> Moved;
}

internal abstract class Names
{
    protected const ushort Add = 0x0100, Say = 0x0101;
    protected Room room;
    protected RoomOptions options;
    protected string id, typed;
    protected bool hosting, leave;
    protected byte[] data, position, file;
    protected ulong unitId;
    protected int counter;
    protected List<string> chat;
    protected Thing player;

    protected static byte[] Encode(int counter, List<string> chat)
    {
        return null;
    }

    protected static void Decode(byte[] saved, out int counter, out List<string> chat)
    {
        counter = 0;
        chat = null;
    }

    protected static Thing Puppet(string id)
    {
        return null;
    }

    protected static void SetLobbyData(string key, string value)
    {
    }

    protected static void OnRelay(RelayChanged change)
    {
    }

    protected static void Show(string text)
    {
    }

    protected static void Spawn(string id)
    {
    }

    protected static void Grey(string id)
    {
    }

    protected static void Ungrey(string id)
    {
    }

    protected static void Despawn(string id, LeftReason reason)
    {
    }

    protected static void Handle(string id, ushort type, byte[] data)
    {
    }

    protected static void ShowLeader(string id)
    {
    }

    protected static void Sorry(string text, byte[] data)
    {
    }
}
