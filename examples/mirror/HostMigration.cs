using System.Collections;
using Mirror;
using UnityEngine;

/// <summary>
/// A game's reaction to the loss of its host: the member that the room has elected starts a server, the others connect to it. Put
/// it beside the <see cref="NetworkManager"/> and the <see cref="RoomTransport"/>.
/// </summary>
public class HostMigration : MonoBehaviour
{
    public NetworkManager manager;
    public RoomTransport transport;

    private bool switching, isHost;

    public void OnEnable()
    {
        transport.HostChanged += OnHostChanged;
    }

    public void OnDisable()
    {
        transport.HostChanged -= OnHostChanged;
        switching = false; // Unity ends the coroutines of a disabled component.
    }

    private void OnHostChanged(string host, bool isThisMember)
    {
        isHost = isThisMember;
        if (!switching)
        {
            switching = true;
            StartCoroutine(Switch());
        }
    }

    // In the next frame: this one is inside a handler of the transport, and Mirror has yet to close the previous host's objects. If
    // the host changes again meanwhile, the newest counts.
    private IEnumerator Switch()
    {
        yield return null;
        if (NetworkServer.active)
        {
            manager.StopHost();
        }
        else if (NetworkClient.active)
        {
            manager.StopClient();
        }
        yield return null;
        switching = false;
        if (isHost)
        {
            manager.StartHost();
        }
        else
        {
            manager.StartClient(); // The room knows its host: networkAddress does not matter.
        }
    }
}
