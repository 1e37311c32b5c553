// A stub of the parts of Netcode for GameObjects that this folder uses, by the public names of version 2.5, so that it can be compiled
// and tested without it. It is no part of a game: there the real assembly replaces it. The manager starts, polls, disconnects and shuts
// down its transport as Netcode does it: a client whose connection ends shuts down at the end of the frame, and so does its transport.

using System;
using System.Collections.Generic;

namespace Unity.Netcode
{
    using UnityEngine;

    public enum NetworkEvent
    {
        Data,
        Connect,
        Disconnect,
        TransportFailure,
        Nothing,
    }

    public enum NetworkDelivery
    {
        Unreliable,
        UnreliableSequenced,
        Reliable,
        ReliableSequenced,
        ReliableFragmentedSequenced,
    }

    public abstract class NetworkTransport : MonoBehaviour
    {
        public abstract ulong ServerClientId { get; }

        public virtual bool IsSupported
        {
            get { return true; }
        }

        public delegate void TransportEventDelegate(NetworkEvent eventType, ulong clientId, ArraySegment<byte> payload, float receiveTime);

        public event TransportEventDelegate OnTransportEvent;

        protected void InvokeOnTransportEvent(NetworkEvent eventType, ulong clientId, ArraySegment<byte> payload, float receiveTime)
        {
            TransportEventDelegate handler = OnTransportEvent;
            if (handler != null)
            {
                handler(eventType, clientId, payload, receiveTime);
            }
        }

        public abstract void Send(ulong clientId, ArraySegment<byte> payload, NetworkDelivery networkDelivery);

        public abstract NetworkEvent PollEvent(out ulong clientId, out ArraySegment<byte> payload, out float receiveTime);

        public abstract bool StartClient();

        public abstract bool StartServer();

        public abstract void DisconnectRemoteClient(ulong clientId);

        public abstract void DisconnectLocalClient();

        public abstract ulong GetCurrentRtt(ulong clientId);

        public abstract void Shutdown();

        public abstract void Initialize(NetworkManager networkManager = null);
    }

    public sealed class NetworkConfig
    {
        public NetworkTransport NetworkTransport;
    }

    public class NetworkManager : MonoBehaviour
    {
        public NetworkConfig NetworkConfig = new NetworkConfig();

        public bool IsListening { get; private set; }
        public bool IsServer { get; private set; }
        public bool IsClient { get; private set; }
        public bool ShutdownInProgress { get; private set; }
        public int MaximumTransmissionUnitSize { get; set; } = 1296;

        // Stand for what Netcode does with connections and messages; ids are the transport's.
        internal Action<ulong> Connected, Disconnected;
        internal Action<ulong, ArraySegment<byte>> Received;
        internal readonly HashSet<ulong> Clients = new HashSet<ulong>();

        private NetworkTransport Transport
        {
            get { return NetworkConfig.NetworkTransport; }
        }

        public bool StartHost()
        {
            return Start(true);
        }

        public bool StartClient()
        {
            return Start(false);
        }

        public void Shutdown(bool discardMessageQueue = false)
        {
            if (IsServer || IsClient)
            {
                ShutdownInProgress = true;
            }
        }

        public void DisconnectClient(ulong clientId)
        {
            Clients.Remove(clientId);
            Transport.DisconnectRemoteClient(clientId);
        }

        private bool Start(bool server)
        {
            if (IsListening)
            {
                throw new InvalidOperationException("Cannot start while an instance is already running");
            }
            IsServer = server;
            IsClient = true;
            Transport.OnTransportEvent += OnTransportEvent;
            Transport.Initialize(this);
            IsListening = server ? Transport.StartServer() : Transport.StartClient();
            if (!IsListening)
            {
                Debug.LogError("shutting down due to a start failure of the transport");
                End();
            }
            return IsListening;
        }

        // The parts of a frame in which Netcode runs.
        internal void EarlyUpdate()
        {
            NetworkEvent type = NetworkEvent.Data;
            while (IsListening && type != NetworkEvent.Nothing)
            {
                ulong id;
                ArraySegment<byte> payload;
                float time;
                type = Transport.PollEvent(out id, out payload, out time);
                Handle(type, id, payload);
                if (type == NetworkEvent.Disconnect || type == NetworkEvent.TransportFailure)
                {
                    return;
                }
            }
        }

        internal void PostLateUpdate()
        {
            if (!ShutdownInProgress)
            {
                return;
            }
            if (IsServer)
            {
                foreach (ulong client in Clients)
                {
                    Transport.DisconnectRemoteClient(client);
                }
            }
            else
            {
                Transport.DisconnectLocalClient();
            }
            Transport.Shutdown();
            End();
        }

        private void OnTransportEvent(NetworkEvent type, ulong id, ArraySegment<byte> payload, float time)
        {
            Handle(type, id, payload);
        }

        private void End()
        {
            Transport.OnTransportEvent -= OnTransportEvent;
            IsListening = IsServer = IsClient = ShutdownInProgress = false;
            Clients.Clear();
        }

        private void Handle(NetworkEvent type, ulong id, ArraySegment<byte> payload)
        {
            switch (type)
            {
                case NetworkEvent.Connect:
                    Expect(IsServer == (id != Transport.ServerClientId), "a connection", id);
                    Expect(Clients.Add(id), "a second connection", id);
                    Connected(id);
                    break;
                case NetworkEvent.Data:
                    Expect(Clients.Contains(id), "data without a connection", id);
                    Received(id, payload);
                    break;
                case NetworkEvent.TransportFailure:
                    Shutdown(true);
                    break;
                case NetworkEvent.Disconnect:
                    bool known = Clients.Remove(id);
                    Expect(known || !IsServer, "an end without a connection", id);
                    Disconnected(id);
                    if (!IsServer)
                    {
                        Shutdown(true);
                    }
                    break;
            }
        }

        // Netcode logs an error, and its tables are wrong from then on.
        private static void Expect(bool holds, string text, ulong id)
        {
            if (!holds)
            {
                throw new InvalidOperationException(text + " of " + id);
            }
        }
    }
}
