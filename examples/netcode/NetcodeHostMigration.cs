using System.Collections;
using Unity.Netcode;
using UnityEngine;

/// <summary>
/// A game's reaction to the loss of its host: the member that the room has elected starts as host, the others start as its clients.
/// Put it beside the <see cref="NetworkManager"/> and the <see cref="NetcodeRoomTransport"/>.
/// </summary>
public class NetcodeHostMigration : MonoBehaviour
{
    public NetworkManager manager;
    public NetcodeRoomTransport transport;

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

    // Netcode ends a session at the end of a frame. If the host changes again meanwhile, the newest counts.
    private IEnumerator Switch()
    {
        yield return null;
        if (manager.IsListening && !manager.ShutdownInProgress)
        {
            manager.Shutdown(true);
        }
        while (manager.IsListening || manager.ShutdownInProgress)
        {
            yield return null;
        }
        switching = false;
        if (isHost)
        {
            manager.StartHost();
        }
        else
        {
            manager.StartClient(); // The room knows its host: the transport's address does not matter.
        }
    }
}
