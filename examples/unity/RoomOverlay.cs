using MetaMystia.Network;
using UnityEngine;

/// <summary>
/// An overlay with the state of a room: leader, members, and of each link the path, the round trip, the loss and the bytes a second;
/// and the rooms of the local network. A key shows and hides it. Put it on any object, and set <see cref="Room"/> after the game has
/// entered its room.
/// </summary>
/// <remarks>
/// It is for players and testers alike: it shows neither the session id nor the secret. The game still polls its room and its browser.
/// </remarks>
public class RoomOverlay : MonoBehaviour
{
    private const float Margin = 4;

    [Tooltip("Shows and hides the overlay. With the Input System package alone Unity's OnGUI receives no keys: set visible instead.")]
    public KeyCode key = KeyCode.F8;
    [Tooltip("Whether it is shown.")]
    public bool visible = true;
    [Tooltip("Distance from the left and the upper edge of the screen, in points.")]
    public Vector2 corner = new Vector2(10, 10);

    private readonly RoomPanel panel = new RoomPanel(500);
    private readonly GUIContent content = new GUIContent();
    private GUIStyle style;
    private Rect box, label;

    /// <summary>The room to show; null is none.</summary>
    public Room Room
    {
        get { return panel.Room; }
        set { panel.Room = value; }
    }

    /// <summary>The browser whose rooms to list; null is none.</summary>
    public RoomBrowser Browser
    {
        get { return panel.Browser; }
        set { panel.Browser = value; }
    }

    private void Awake()
    {
        useGUILayout = false; // which would make garbage in every frame
    }

    private void OnGUI()
    {
        Event current = Event.current;
        if (current.type == EventType.KeyDown && current.keyCode == key)
        {
            visible = !visible;
            current.Use();
        }
        if (visible && current.type == EventType.Repaint)
        {
            Draw();
        }
    }

    private void Draw()
    {
        if (style == null)
        {
            // Names of other players are no markup.
            style = new GUIStyle(GUI.skin.label) { richText = false, wordWrap = false };
        }
        if (panel.Refresh())
        {
            content.text = panel.Text.Length == 0 ? "no room" : panel.Text;
            Vector2 size = style.CalcSize(content);
            box = new Rect(corner.x, corner.y, size.x + 2 * Margin, size.y + 2 * Margin);
            label = new Rect(corner.x + Margin, corner.y + Margin, size.x, size.y);
        }
        GUI.Box(box, GUIContent.none);
        GUI.Label(label, content, style);
    }
}
