// A stub of the parts of Mirror that this folder uses, by their public names, so that it can be compiled and tested without it. It is
// no part of a game: there the real assembly replaces it. Objects are spawned, unspawned and destroyed as Mirror does it on the host;
// nothing of them is sent to clients.

using System;
using System.Collections.Generic;
using System.Linq;

namespace Mirror
{
    using UnityEngine;

    public static class Channels
    {
        public const int Reliable = 0;
        public const int Unreliable = 1;
    }

    [AttributeUsage(AttributeTargets.Field)]
    public sealed class SyncVarAttribute : Attribute
    {
    }

    public abstract class NetworkConnection
    {
        public const int LocalConnectionId = 0;
        public readonly int connectionId;

        internal NetworkConnection(int connectionId)
        {
            this.connectionId = connectionId;
        }

        public NetworkIdentity identity { get; internal set; }
    }

    public class NetworkConnectionToClient : NetworkConnection
    {
        internal readonly HashSet<NetworkIdentity> owned = new HashSet<NetworkIdentity>();

        public NetworkConnectionToClient(int connectionId)
            : base(connectionId)
        {
        }
    }

    public sealed class NetworkIdentity : MonoBehaviour
    {
        public ulong sceneId;

        public uint assetId { get; internal set; }
        public uint netId { get; internal set; }
        public NetworkConnectionToClient connectionToClient { get; internal set; }
    }

    public abstract class NetworkBehaviour : MonoBehaviour
    {
        public NetworkIdentity netIdentity
        {
            get { return GetComponent<NetworkIdentity>(); }
        }

        public NetworkConnectionToClient connectionToClient
        {
            get { return netIdentity.connectionToClient; }
        }

        public virtual void OnStartServer()
        {
        }

        public virtual void OnStopServer()
        {
        }
    }

    public static class NetworkServer
    {
        public static readonly Dictionary<uint, NetworkIdentity> spawned = new Dictionary<uint, NetworkIdentity>();
        public static Dictionary<int, NetworkConnectionToClient> connections = new Dictionary<int, NetworkConnectionToClient>();
        public static bool isLoadingScene;

        private static uint lastId;

        public static bool active { get; internal set; }

        public static bool AddPlayerForConnection(NetworkConnectionToClient conn, GameObject player)
        {
            conn.identity = player.GetComponent<NetworkIdentity>();
            Spawn(player, conn);
            return true;
        }

        public static void Spawn(GameObject obj, NetworkConnectionToClient ownerConnection = null)
        {
            NetworkIdentity identity = obj.GetComponent<NetworkIdentity>();
            identity.connectionToClient = ownerConnection;
            if (ownerConnection != null)
            {
                ownerConnection.owned.Add(identity);
            }
            identity.netId = ++lastId;
            spawned.Add(identity.netId, identity);
            foreach (NetworkBehaviour behaviour in obj.GetComponents<NetworkBehaviour>())
            {
                behaviour.OnStartServer();
            }
        }

        public static void Destroy(GameObject obj)
        {
            NetworkIdentity identity = obj.GetComponent<NetworkIdentity>();
            spawned.Remove(identity.netId);
            foreach (NetworkBehaviour behaviour in obj.GetComponents<NetworkBehaviour>())
            {
                behaviour.OnStopServer();
            }
            identity.netId = 0;
        }

        public static void Shutdown()
        {
            foreach (NetworkConnectionToClient connection in connections.Values.ToList())
            {
                Disconnected(connection.connectionId);
            }
            Transport.active.ServerStop();
            foreach (NetworkIdentity identity in spawned.Values.ToList())
            {
                Destroy(identity.gameObject);
            }
            active = false;
        }

        internal static void Disconnected(int id)
        {
            NetworkConnectionToClient connection;
            if (connections.TryGetValue(id, out connection))
            {
                connections.Remove(id);
                foreach (NetworkIdentity identity in connection.owned.Where(item => item.netId != 0))
                {
                    Destroy(identity.gameObject);
                }
            }
        }
    }

    public static class NetworkClient
    {
        public static bool active { get; internal set; }
    }

    public class NetworkManager : MonoBehaviour
    {
        public Transport transport;
        public string networkAddress = "localhost";
        public GameObject playerPrefab;
        public List<GameObject> spawnPrefabs = new List<GameObject>();
        // Objects that the scene has.
        internal List<GameObject> sceneObjects = new List<GameObject>();

        public virtual void OnServerAddPlayer(NetworkConnectionToClient conn)
        {
            NetworkServer.AddPlayerForConnection(conn, Instantiate(playerPrefab));
        }

        public virtual void OnClientConnect()
        {
        }

        public virtual void OnClientDisconnect()
        {
        }

        public void StartHost()
        {
            if (NetworkServer.active || NetworkClient.active)
            {
                Debug.LogWarning("Server or client already started.");
                return;
            }
            Attach();
            transport.ServerStart();
            NetworkServer.active = NetworkClient.active = true;
            sceneObjects.ForEach(item => NetworkServer.Spawn(item));
            Connected(NetworkConnection.LocalConnectionId);
        }

        public void StartClient()
        {
            if (NetworkClient.active)
            {
                Debug.LogWarning("Client already started.");
                return;
            }
            Attach();
            NetworkClient.active = true;
            transport.ClientConnect(networkAddress);
        }

        public void StopHost()
        {
            NetworkServer.Disconnected(NetworkConnection.LocalConnectionId);
            NetworkServer.Shutdown();
            NetworkClient.active = false;
        }

        public void StopClient()
        {
            transport.ClientDisconnect();
            NetworkClient.active = false;
        }

        private void Attach()
        {
            Transport.active = transport;
            transport.OnServerConnectedWithAddress = (id, address) => Connected(id);
            transport.OnServerDisconnected = NetworkServer.Disconnected;
            transport.OnClientConnected = OnClientConnect;
            transport.OnClientDisconnected = () =>
            {
                NetworkClient.active = false;
                OnClientDisconnect();
            };
        }

        // Mirror asks the client first.
        private void Connected(int id)
        {
            NetworkConnectionToClient connection = new NetworkConnectionToClient(id);
            NetworkServer.connections.Add(id, connection);
            OnServerAddPlayer(connection);
        }
    }

    public enum TransportError : byte
    {
        DnsResolve,
        Refused,
        Timeout,
        Congestion,
        InvalidReceive,
        InvalidSend,
        ConnectionClosed,
        Unexpected,
    }

    public abstract class Transport : MonoBehaviour
    {
        public static Transport active;

        public Action OnClientConnected;
        public Action<ArraySegment<byte>, int> OnClientDataReceived;
        public Action<ArraySegment<byte>, int> OnClientDataSent;
        public Action<TransportError, string> OnClientError;
        public Action OnClientDisconnected;
        public Action<int, string> OnServerConnectedWithAddress;
        public Action<int, ArraySegment<byte>, int> OnServerDataReceived;
        public Action<int, ArraySegment<byte>, int> OnServerDataSent;
        public Action<int, TransportError, string> OnServerError;
        public Action<int> OnServerDisconnected;

        public abstract bool Available();
        public abstract bool ClientConnected();
        public abstract void ClientConnect(string address);
        public abstract void ClientSend(ArraySegment<byte> segment, int channelId = Channels.Reliable);
        public abstract void ClientDisconnect();
        public abstract Uri ServerUri();
        public abstract bool ServerActive();
        public abstract void ServerStart();
        public abstract void ServerSend(int connectionId, ArraySegment<byte> segment, int channelId = Channels.Reliable);
        public abstract void ServerDisconnect(int connectionId);
        public abstract string ServerGetClientAddress(int connectionId);
        public abstract void ServerStop();
        public abstract int GetMaxPacketSize(int channelId = Channels.Reliable);
        public abstract void Shutdown();

        public virtual void ClientConnect(Uri uri)
        {
            ClientConnect(uri.Host);
        }

        public virtual int GetBatchThreshold(int channelId = Channels.Reliable)
        {
            return GetMaxPacketSize(channelId);
        }

        public virtual void ClientEarlyUpdate()
        {
        }

        public virtual void ServerEarlyUpdate()
        {
        }

        public virtual void ClientLateUpdate()
        {
        }

        public virtual void ServerLateUpdate()
        {
        }

        public virtual void OnApplicationQuit()
        {
            Shutdown();
        }
    }
}
