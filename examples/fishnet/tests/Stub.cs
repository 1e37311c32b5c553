// A stub of the parts of FishNet that this folder uses, by the public names of version 4, so that it can be compiled and tested without
// it. It is no part of a game: there the real assembly replaces it. The managers start and stop the transport and follow its states as
// FishNet's do.

using System;
using System.Collections.Generic;

namespace FishNet.Transporting
{
    using FishNet.Managing;
    using UnityEngine;

    public enum Channel : byte
    {
        Reliable = 0,
        Unreliable = 1,
    }

    public enum LocalConnectionState
    {
        Stopped = 0,
        Stopping = 1,
        Starting = 2,
        Started = 4,
    }

    public enum RemoteConnectionState : byte
    {
        Stopped = 0,
        Started = 2,
    }

    public struct ClientConnectionStateArgs
    {
        public LocalConnectionState ConnectionState;
        public int TransportIndex;

        public ClientConnectionStateArgs(LocalConnectionState connectionState, int transportIndex)
        {
            ConnectionState = connectionState;
            TransportIndex = transportIndex;
        }
    }

    public struct ServerConnectionStateArgs
    {
        public int TransportIndex;
        public LocalConnectionState ConnectionState;

        public ServerConnectionStateArgs(LocalConnectionState connectionState, int transportIndex)
        {
            ConnectionState = connectionState;
            TransportIndex = transportIndex;
        }
    }

    public struct RemoteConnectionStateArgs
    {
        public int TransportIndex;
        public RemoteConnectionState ConnectionState;
        public int ConnectionId;

        public RemoteConnectionStateArgs(RemoteConnectionState connectionState, int connectionId, int transportIndex)
        {
            ConnectionState = connectionState;
            ConnectionId = connectionId;
            TransportIndex = transportIndex;
        }
    }

    public struct ClientReceivedDataArgs
    {
        public ArraySegment<byte> Data;
        public Channel Channel;
        public int TransportIndex;

        public ClientReceivedDataArgs(ArraySegment<byte> data, Channel channel, int transportIndex)
        {
            Data = data;
            Channel = channel;
            TransportIndex = transportIndex;
        }
    }

    public struct ServerReceivedDataArgs
    {
        public ArraySegment<byte> Data;
        public Channel Channel;
        public int ConnectionId;
        public int TransportIndex;

        public ServerReceivedDataArgs(ArraySegment<byte> data, Channel channel, int connectionId, int transportIndex)
        {
            Data = data;
            Channel = channel;
            ConnectionId = connectionId;
            TransportIndex = transportIndex;
        }
    }

    public abstract class Transport : MonoBehaviour
    {
        public NetworkManager NetworkManager { get; private set; }
        public int Index { get; private set; }

        public abstract event Action<ClientConnectionStateArgs> OnClientConnectionState;
        public abstract event Action<ServerConnectionStateArgs> OnServerConnectionState;
        public abstract event Action<RemoteConnectionStateArgs> OnRemoteConnectionState;
        public abstract event Action<ClientReceivedDataArgs> OnClientReceivedData;
        public abstract event Action<ServerReceivedDataArgs> OnServerReceivedData;

        public virtual void Initialize(NetworkManager networkManager, int transportIndex)
        {
            NetworkManager = networkManager;
            Index = transportIndex;
        }

        public abstract string GetConnectionAddress(int connectionId);
        public abstract void HandleClientConnectionState(ClientConnectionStateArgs connectionStateArgs);
        public abstract void HandleServerConnectionState(ServerConnectionStateArgs connectionStateArgs);
        public abstract void HandleRemoteConnectionState(RemoteConnectionStateArgs connectionStateArgs);
        public abstract LocalConnectionState GetConnectionState(bool server);
        public abstract RemoteConnectionState GetConnectionState(int connectionId);
        public abstract void SendToServer(byte channelId, ArraySegment<byte> segment);
        public abstract void SendToClient(byte channelId, ArraySegment<byte> segment, int connectionId);
        public abstract void HandleClientReceivedDataArgs(ClientReceivedDataArgs receivedDataArgs);
        public abstract void HandleServerReceivedDataArgs(ServerReceivedDataArgs receivedDataArgs);
        public abstract void IterateIncoming(bool asServer);
        public abstract void IterateOutgoing(bool asServer);

        public virtual void SetClientAddress(string address)
        {
        }

        public virtual string GetClientAddress()
        {
            return string.Empty;
        }

        public virtual void SetPort(ushort port)
        {
        }

        public virtual ushort GetPort()
        {
            return 0;
        }

        public abstract bool StartConnection(bool server);
        public abstract bool StopConnection(bool server);
        public abstract bool StopConnection(int connectionId, bool immediately);
        public abstract void Shutdown();
        public abstract int GetMTU(byte channel);
    }
}

namespace FishNet.Managing
{
    using FishNet.Transporting;
    using UnityEngine;

    public sealed class ServerManager
    {
        internal Transport Transport;
        internal readonly HashSet<int> Clients = new HashSet<int>();

        public bool Started { get; internal set; }

        public bool StartConnection()
        {
            return Transport.StartConnection(true);
        }

        public bool StopConnection(bool sendDisconnectMessage)
        {
            return Transport.StopConnection(true);
        }

        // FishNet's tables are wrong after a state out of its order.
        internal void Follow(RemoteConnectionStateArgs args)
        {
            bool started = args.ConnectionState == RemoteConnectionState.Started;
            Expect(Started || !started, "a client before the server", args.ConnectionId);
            Expect(started ? Clients.Add(args.ConnectionId) : Clients.Remove(args.ConnectionId) || !Started, "a state of no use", args.ConnectionId);
        }

        internal static void Expect(bool holds, string text, int id)
        {
            if (!holds)
            {
                throw new InvalidOperationException(text + ": " + id);
            }
        }
    }

    public sealed class ClientManager
    {
        internal Transport Transport;

        public bool Started { get; internal set; }

        public bool StartConnection()
        {
            return Transport.StartConnection(false);
        }

        public bool StopConnection()
        {
            return Transport.StopConnection(false);
        }
    }

    public sealed class NetworkManager : MonoBehaviour
    {
        public readonly ServerManager ServerManager = new ServerManager();
        public readonly ClientManager ClientManager = new ClientManager();

        // Stand for what FishNet does with connections and messages.
        internal Action<int, bool> RemoteChanged;
        internal Action<bool> ClientChanged;
        internal Action<int, ArraySegment<byte>> ServerReceived;
        internal Action<ArraySegment<byte>> ClientReceived;

        private Transport transport;
        private LocalConnectionState server, client;

        internal void Use(Transport transport)
        {
            this.transport = ServerManager.Transport = ClientManager.Transport = transport;
            transport.Initialize(this, 0);
            transport.OnServerConnectionState += OnServerState;
            transport.OnClientConnectionState += OnClientState;
            transport.OnRemoteConnectionState += OnRemoteState;
            transport.OnServerReceivedData += OnServerData;
            transport.OnClientReceivedData += OnClientData;
        }

        // The time manager's part of a frame: both sides, whether or not they are started.
        internal void Iterate()
        {
            transport.IterateIncoming(true);
            transport.IterateIncoming(false);
            transport.IterateOutgoing(true);
            transport.IterateOutgoing(false);
        }

        private void OnServerState(ServerConnectionStateArgs args)
        {
            server = Next(server, args.ConnectionState);
            ServerManager.Started = server == LocalConnectionState.Started;
            if (server == LocalConnectionState.Stopped)
            {
                ServerManager.Clients.Clear();
            }
        }

        private void OnClientState(ClientConnectionStateArgs args)
        {
            bool before = ClientManager.Started;
            client = Next(client, args.ConnectionState);
            ClientManager.Started = client == LocalConnectionState.Started;
            if (before != ClientManager.Started)
            {
                ClientChanged(ClientManager.Started);
            }
        }

        private void OnRemoteState(RemoteConnectionStateArgs args)
        {
            ServerManager.Follow(args);
            RemoteChanged(args.ConnectionId, args.ConnectionState == RemoteConnectionState.Started);
        }

        private void OnServerData(ServerReceivedDataArgs args)
        {
            ServerManager.Expect(ServerManager.Clients.Contains(args.ConnectionId), "data of no client", args.ConnectionId);
            ServerReceived(args.ConnectionId, args.Data);
        }

        private void OnClientData(ClientReceivedDataArgs args)
        {
            ServerManager.Expect(ClientManager.Started, "data for no client", 0);
            ClientReceived(args.Data);
        }

        // Stopped, Starting, Started or Stopping, Stopped.
        private static LocalConnectionState Next(LocalConnectionState old, LocalConnectionState next)
        {
            bool isNext = old == LocalConnectionState.Stopped ? next == LocalConnectionState.Starting
                : old == LocalConnectionState.Starting ? next == LocalConnectionState.Started || next == LocalConnectionState.Stopping
                : old == LocalConnectionState.Started ? next == LocalConnectionState.Stopping
                : next == LocalConnectionState.Stopped;
            ServerManager.Expect(isNext, old + " and then " + next, 0);
            return next;
        }
    }
}
