// A stub of UnityEngine's OnGUI, by its documented names and signatures, as far as the overlay uses it.

namespace UnityEngine
{
    public enum KeyCode
    {
        None = 0,
        F8 = 289,
    }

    public enum EventType
    {
        MouseDown = 0,
        KeyDown = 4,
        Repaint = 7,
        Layout = 8,
        Used = 12,
    }

    public sealed class Event
    {
        public static Event current { get; set; }
        public EventType type { get; set; }
        public KeyCode keyCode { get; set; }

        public void Use()
        {
            type = EventType.Used;
        }
    }

    public struct Vector2
    {
        public float x, y;

        public Vector2(float x, float y)
        {
            this.x = x;
            this.y = y;
        }
    }

    public struct Rect
    {
        public float x, y, width, height;

        public Rect(float x, float y, float width, float height)
        {
            this.x = x;
            this.y = y;
            this.width = width;
            this.height = height;
        }
    }

    public class GUIContent
    {
        public static GUIContent none = new GUIContent();
        public string text { get; set; } = "";
    }

    public sealed class GUIStyle
    {
        public bool richText { get; set; } = true;
        public bool wordWrap { get; set; }

        public GUIStyle(GUIStyle other)
        {
        }

        internal GUIStyle()
        {
        }

        public Vector2 CalcSize(GUIContent content)
        {
            string[] lines = content.text.Split('\n');
            return new Vector2(7 * content.text.Length / lines.Length, 15 * lines.Length);
        }
    }

    public sealed class GUISkin
    {
        public GUIStyle label { get; set; } = new GUIStyle();
    }

    public static class GUI
    {
        public static GUISkin skin { get; set; } = new GUISkin();
        // The text that a label has drawn; null for none, and for one that would be read as markup.
        internal static string Drawn;

        public static void Box(Rect position, GUIContent content)
        {
        }

        public static void Label(Rect position, GUIContent content, GUIStyle style)
        {
            Drawn = style.richText ? null : content.text;
        }
    }
}
