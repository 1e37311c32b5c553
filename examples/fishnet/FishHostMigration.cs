using System.Collections;
using FishNet.Managing;
using UnityEngine;

/// <summary>
/// A game's reaction to the loss of its host: the member that the room has elected starts a server and its own client, the others
/// connect to it. Put it beside the <see cref="NetworkManager"/> and the <see cref="FishRoomTransport"/>.
/// </summary>
public class FishHostMigration : MonoBehaviour
{
    public NetworkManager manager;
    public FishRoomTransport transport;

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

    // In the next frames: FishNet has yet to despawn the previous host's objects. If the host changes again meanwhile, the newest
    // counts.
    private IEnumerator Switch()
    {
        yield return null;
        manager.ClientManager.StopConnection();
        manager.ServerManager.StopConnection(true);
        yield return null;
        switching = false;
        if (isHost)
        {
            manager.ServerManager.StartConnection();
        }
        manager.ClientManager.StartConnection(); // The room knows its host: the transport's address does not matter.
    }
}
