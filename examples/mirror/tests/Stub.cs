// A stub of the parts of UnityEngine and Mirror that RoomTransport and HostMigration use, by their public names, so that these can
// be compiled and tested without them. It is no part of a game: there the real assemblies replace it.

using System;
using System.Collections;

namespace UnityEngine
{
    public class MonoBehaviour
    {
        public bool enabled = true;

        public void StartCoroutine(IEnumerator routine)
        {
        }
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

        public static void LogException(Exception exception)
        {
            Console.Error.WriteLine(exception);
        }
    }
}

namespace Mirror
{
    public static class Channels
    {
        public const int Reliable = 0;
        public const int Unreliable = 1;
    }

    public static class NetworkServer
    {
        public static bool active;
    }

    public static class NetworkClient
    {
        public static bool active;
    }

    public class NetworkManager : UnityEngine.MonoBehaviour
    {
        public void StartHost()
        {
        }

        public void StartClient()
        {
        }

        public void StopHost()
        {
        }

        public void StopClient()
        {
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

    public abstract class Transport : UnityEngine.MonoBehaviour
    {
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
