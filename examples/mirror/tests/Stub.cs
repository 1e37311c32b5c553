// A stub of the parts of UnityEngine and Mirror that this folder uses, by their public names, so that it can be compiled and tested
// without them. It is no part of a game: there the real assemblies replace it. Objects are spawned, unspawned and destroyed as
// Mirror does it on the host; nothing of them is sent to clients.

using System;
using System.Collections;
using System.Collections.Generic;
using System.Linq;

namespace UnityEngine
{
    public class Object
    {
        public virtual string name { get; set; }

        public static T Instantiate<T>(T original) where T : Object
        {
            return (T)original.Copy();
        }

        internal virtual Object Copy()
        {
            return (Object)MemberwiseClone();
        }
    }

    public sealed class GameObject : Object
    {
        private List<Component> components = new List<Component>();

        public GameObject(string name)
        {
            this.name = name;
            AddComponent<Transform>();
        }

        public Transform transform
        {
            get { return GetComponent<Transform>(); }
        }

        public T AddComponent<T>() where T : Component, new()
        {
            T component = new T();
            component.gameObject = this;
            components.Add(component);
            return component;
        }

        public T GetComponent<T>()
        {
            return components.OfType<T>().FirstOrDefault();
        }

        public T[] GetComponents<T>()
        {
            return components.OfType<T>().ToArray();
        }

        internal override Object Copy()
        {
            GameObject copy = (GameObject)MemberwiseClone();
            copy.name += "(Clone)";
            copy.components = components.ConvertAll(component => component.CopyTo(copy));
            return copy;
        }
    }

    public class Component : Object
    {
        public GameObject gameObject { get; internal set; }

        public override string name
        {
            get { return gameObject.name; }
        }

        public Transform transform
        {
            get { return gameObject.transform; }
        }

        public T GetComponent<T>()
        {
            return gameObject.GetComponent<T>();
        }

        public T[] GetComponents<T>()
        {
            return gameObject.GetComponents<T>();
        }

        internal Component CopyTo(GameObject other)
        {
            Component copy = (Component)MemberwiseClone();
            copy.gameObject = other;
            return copy;
        }
    }

    public class Transform : Component
    {
        public Vector3 localPosition { get; set; }
        public Quaternion localRotation { get; set; }
        public Vector3 localScale { get; set; }
    }

    public struct Vector3
    {
        public float x, y, z;

        public Vector3(float x, float y, float z)
        {
            this.x = x;
            this.y = y;
            this.z = z;
        }
    }

    public struct Quaternion
    {
        public float x, y, z, w;

        public Quaternion(float x, float y, float z, float w)
        {
            this.x = x;
            this.y = y;
            this.z = z;
            this.w = w;
        }
    }

    public class MonoBehaviour : Component
    {
        public bool enabled = true;

        private static List<IEnumerator> coroutines = new List<IEnumerator>();

        public Coroutine StartCoroutine(IEnumerator routine)
        {
            coroutines.Add(routine);
            return new Coroutine();
        }

        // One frame of Unity.
        internal static void RunCoroutines()
        {
            List<IEnumerator> running = coroutines;
            coroutines = new List<IEnumerator>();
            coroutines.AddRange(running.FindAll(routine => routine.MoveNext()));
        }
    }

    public sealed class Coroutine
    {
    }

    [AttributeUsage(AttributeTargets.Field)]
    public sealed class TooltipAttribute : Attribute
    {
        public TooltipAttribute(string tooltip)
        {
        }
    }

    public static class Debug
    {
        public static void LogWarning(object message)
        {
            Console.Error.WriteLine("warning: " + message);
        }

        public static void LogError(object message)
        {
            Console.Error.WriteLine("error: " + message);
        }

        public static void LogException(Exception exception)
        {
            Console.Error.WriteLine(exception);
        }
    }
}

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
