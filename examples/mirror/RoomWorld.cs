using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Text;
using MetaMystia.Network;
using Mirror;
using UnityEngine;
using Debug = UnityEngine.Debug;

/// <summary>
/// Keeps a game's networked objects in the room's state, so that the next host has them when this one is gone: each object with a
/// <see cref="RoomObject"/> is a property of the room. Put it beside the <see cref="NetworkManager"/> and the
/// <see cref="RoomTransport"/>, in all players.
/// </summary>
/// <remarks>
/// Only the host writes: it claims the world before it spawns the objects, and a host before it writes nothing any more, whenever
/// its writes arrive.
/// </remarks>
public class RoomWorld : MonoBehaviour
{
    private const string Objects = "object/", Players = "player/";
    private const int MaxKey = 64; // bytes

    public NetworkManager manager;
    public RoomTransport transport;
    [Tooltip("How often the host looks for changed objects, in milliseconds. A write has up to 31 objects and 32 KiB, and the next one waits for its result.")]
    public int intervalMs = 100;

    /// <summary>The world of this process; null without one.</summary>
    public static RoomWorld Active { get; private set; }

    /// <summary>
    /// This member is the host, and has all objects that the room keeps. True if the room has none yet: the game spawns its first
    /// objects. Raised again when two parts of the room have merged.
    /// </summary>
    public event Action<bool> Ready;

    /// <summary>An object that the room cannot keep or this host cannot load, and why. The object is null if it cannot be spawned.</summary>
    public event Action<RoomObject, string> Failed;

    private readonly Stopwatch clock = Stopwatch.StartNew();
    private readonly List<RoomObject> kept = new List<RoomObject>();
    private readonly Dictionary<string, RoomObject> byProperty = new Dictionary<string, RoomObject>();
    private readonly RoomClaim claim = new RoomClaim("world");
    private long lookAt;
    private RoomChanges changes;

    public void OnEnable()
    {
        Active = this;
        changes = changes ?? new RoomChanges(Fail);
        transport.keepsState = true; // before it enters a room
    }

    public void OnDisable()
    {
        Active = null;
    }

    public void Update()
    {
        if (NetworkServer.isLoadingScene)
        {
            return;
        }
        bool serves = NetworkServer.active && transport.ServerActive();
        if (!serves)
        {
            changes.Removed.Clear(); // They ended with the server.
        }
        if (!serves || !transport.Room.IsLeader)
        {
            claim.Release();
            return;
        }
        RoomState state = transport.Room.State;
        int code;
        switch (claim.Settle(state, out code))
        {
            case RoomClaim.Outcome.Claimed:
                Follow();
                break;
            case RoomClaim.Outcome.Written:
                changes.Confirm();
                break;
            case RoomClaim.Outcome.Refused:
                changes.Refuse(code);
                break;
        }
        if (claim.IsBusy || clock.ElapsedMilliseconds < lookAt)
        {
            return;
        }
        lookAt = clock.ElapsedMilliseconds + intervalMs;
        if (!claim.IsCurrent(state))
        {
            claim.Take(state, transport.Room.PeerId);
            return;
        }
        List<StateChange> next = changes.Next(kept);
        if (next.Count > 0)
        {
            claim.Write(state, next);
        }
    }

    /// <summary>Whether the room has confirmed all objects that fit as they are now. Wait for it before you stop a host.</summary>
    public bool IsSaved()
    {
        return claim.Held && !claim.IsBusy && changes.Removed.Count == 0 && !kept.Exists(changes.HasChanged);
    }

    // ---------------------------------------------------------------- objects that come and go

    internal void Keep(RoomObject item)
    {
        NetworkConnectionToClient client = item.connectionToClient;
        bool isPlayer = client != null && client.identity == item.netIdentity;
        item.Member = isPlayer ? MemberOf(client) : null;
        if (item.key.Length == 0)
        {
            item.key = item.InScene ? item.netIdentity.sceneId.ToString("x") : Guid.NewGuid().ToString("N");
        }
        string property = isPlayer ? Players + item.Member : Objects + item.key;
        RoomObject other;
        if (byProperty.TryGetValue(property, out other) && isPlayer)
        {
            Forget(other); // The client has a new object.
        }
        else if (other != null || Encoding.UTF8.GetByteCount(property) > MaxKey)
        {
            Fail(item, "cannot have the key " + property + (other != null ? ": another object has it" : ": it has more than " + MaxKey + " bytes"));
            return;
        }
        item.Property = property;
        kept.Add(item);
        byProperty.Add(property, item);
        // A removal under way is of an older object.
        RoomProperty found = changes.Removed.Remove(property) ? null : transport.Room.State.Find(property);
        if (found != null && (found.Value.Length > 0 || !claim.Held))
        {
            Load(item, found.Value);
        }
    }

    internal void Drop(RoomObject item)
    {
        if (item.Property == null)
        {
            return;
        }
        if (!transport.ServerActive())
        {
            claim.Release(); // The server ends, not the object.
        }
        else if (item.Member == null && (item.Confirmed != null || item.Sent != null))
        {
            changes.Removed[item.Property] = item.InScene; // A player's goes when the player leaves the room.
        }
        Forget(item);
    }

    private void Forget(RoomObject item)
    {
        kept.Remove(item);
        changes.Forget(item);
        byProperty.Remove(item.Property);
        item.Property = null;
        item.Confirmed = item.Sent = null;
    }

    private string MemberOf(NetworkConnectionToClient client)
    {
        bool isOwn = client.connectionId == NetworkConnection.LocalConnectionId;
        return isOwn ? transport.Room.PeerId : transport.ServerGetClientAddress(client.connectionId);
    }

    // ---------------------------------------------------------------- from the room

    // From here on no other host writes. Where the room does not have what this host has written, it has another host's state.
    private void Follow()
    {
        foreach (RoomObject item in kept.ToArray())
        {
            RoomProperty found = transport.Room.State.Find(item.Property);
            bool isThere = found != null && found.Value.Length > 0;
            if (isThere && item.Sent != null && RoomChanges.AreEqual(found.Value, item.Sent, item.Sent.Length))
            {
                item.Confirmed = item.Sent;
            }
            else if (isThere && (item.Confirmed == null || !RoomChanges.AreEqual(found.Value, item.Confirmed, item.Confirmed.Length)))
            {
                Load(item, found.Value);
            }
            else if (!isThere && item.Confirmed != null && item.Member == null)
            {
                Forget(item);
                NetworkServer.Destroy(item.gameObject);
            }
            item.Confirmed = isThere ? item.Confirmed : null;
            item.Sent = null;
        }
        foreach (string property in transport.Room.State.Keys)
        {
            if (property.StartsWith(Objects, StringComparison.Ordinal) && !byProperty.ContainsKey(property) && !changes.Removed.ContainsKey(property))
            {
                Spawn(property);
            }
        }
        Action<bool> ready = Ready;
        if (ready != null)
        {
            ready(claim.IsFirst);
        }
    }

    private void Spawn(string property)
    {
        try
        {
            uint asset = RoomObject.AssetOf(transport.Room.State.GetBytes(property));
            GameObject prefab = manager.spawnPrefabs.Find(known => known != null && known.GetComponent<NetworkIdentity>().assetId == asset);
            if (prefab != null)
            {
                GameObject instance = Instantiate(prefab);
                instance.GetComponent<RoomObject>().key = property.Substring(Objects.Length);
                NetworkServer.Spawn(instance); // Keep() loads its state.
            }
            else if (asset != 0)
            {
                Fail(null, property + " has the asset id " + asset + ", which none of the NetworkManager's spawnPrefabs has");
            }
        }
        catch (Exception exception)
        {
            Fail(null, property + " cannot be spawned: " + exception.Message);
        }
    }

    private void Load(RoomObject item, byte[] value)
    {
        item.Confirmed = value;
        try
        {
            if (value.Length > 0) // else Follow() destroys it
            {
                item.Read(value);
            }
        }
        catch (Exception exception)
        {
            Fail(item, "cannot be loaded from " + value.Length + " bytes: " + exception.Message);
        }
    }

    private void Fail(RoomObject item, string text)
    {
        text = item == null ? text : item.name + " (" + item.key + ") " + text;
        Debug.LogError("RoomWorld: " + text);
        Action<RoomObject, string> failed = Failed;
        if (failed != null)
        {
            failed(item, text);
        }
    }
}
