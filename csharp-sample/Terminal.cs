using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;
using System.Text.RegularExpressions;

/// <summary>A key that was pressed: a character as <see cref="Text"/>, or another by its name.</summary>
internal struct Key
{
    public ConsoleKey Name;
    /// <summary>Null with a name.</summary>
    public string Text;
}

/// <summary>
/// The screen of a terminal, drawn in place: it writes only rows that changed, all of them at once, so that nothing flickers. Also
/// its keys, which it polls without waiting. <see cref="Dispose"/> restores the terminal.
/// </summary>
internal sealed class Terminal : IDisposable
{
    // The alternate screen, on which lines do not wrap; and the return from it, with the cursor and without colours.
    private const string Enter = "\x1b[?1049h\x1b[?7l\x1b[0m\x1b[2J";
    private const string Leave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

    private const int Interrupted = 4; // EINTR

    // Sequences of xterm, the Linux console and compatible terminals, after an escape.
    private static readonly Dictionary<string, ConsoleKey> Sequences = new Dictionary<string, ConsoleKey>
    {
        { "OA", ConsoleKey.UpArrow }, { "[A", ConsoleKey.UpArrow }, { "OB", ConsoleKey.DownArrow }, { "[B", ConsoleKey.DownArrow },
        { "[5~", ConsoleKey.PageUp }, { "[6~", ConsoleKey.PageDown },
        { "OQ", ConsoleKey.F2 }, { "[12~", ConsoleKey.F2 }, { "[[B", ConsoleKey.F2 },
        { "OR", ConsoleKey.F3 }, { "[13~", ConsoleKey.F3 }, { "[[C", ConsoleKey.F3 },
        { "OS", ConsoleKey.F4 }, { "[14~", ConsoleKey.F4 }, { "[[D", ConsoleKey.F4 },
        { "[21~", ConsoleKey.F10 },
    };
    private static readonly Dictionary<char, ConsoleKey> Controls = new Dictionary<char, ConsoleKey>
    {
        { '\r', ConsoleKey.Enter }, { '\n', ConsoleKey.Enter }, { '\b', ConsoleKey.Backspace }, { '\x7f', ConsoleKey.Backspace },
        { '\x0c', ConsoleKey.Clear }, { '\x15', ConsoleKey.OemClear }, // Ctrl-L, Ctrl-U
    };
    private static readonly Regex Sequence = new Regex(@"\G\x1b(?:(\[\[[A-E]|\[[\d;?]*[@-~]|O[@-~])|[^\[O])", RegexOptions.CultureInvariant);
    private static readonly bool Windows = Environment.OSVersion.Platform == PlatformID.Win32NT;

    private readonly Decoder decoder = new UTF8Encoding(false).GetDecoder();
    private readonly byte[] read = new byte[1024];
    private readonly char[] characters = new char[1024];
    private string unread = ""; // the beginning of a sequence
    private readonly Stream output = Console.OpenStandardOutput();
    private readonly object gate = new object();
    private string[] shown = new string[0];
    private int shownWidth, shownRow, shownColumn;
    private bool closed;

    private Terminal()
    {
        // A process that is ended by a signal (SIGTERM on CoreCLR) ends here, on another thread.
        AppDomain.CurrentDomain.ProcessExit += OnExit;
        Write(Enter);
    }

    /// <summary>Null without a screen to draw on, or without a user: a pipe, a file, TERM=dumb.</summary>
    public static Terminal Open()
    {
        if (Console.IsInputRedirected || Console.IsOutputRedirected)
        {
            return null;
        }
        string kind = Environment.GetEnvironmentVariable("TERM");
        if (Windows ? !EnableSequences() : string.IsNullOrEmpty(kind) || kind == "dumb")
        {
            return null;
        }
        try
        {
            // The runtime prepares the terminal at the first query for keys, and may fail.
            return (Console.KeyAvailable || true) && Console.WindowWidth > 0 && Console.WindowHeight > 0 ? new Terminal() : null;
        }
        catch (Exception exception) when (exception is IOException || exception is InvalidOperationException || exception is NotSupportedException)
        {
            return null;
        }
    }

    /// <summary>Columns; follows the window.</summary>
    public int Width
    {
        get { return Math.Max(Console.WindowWidth, 1); }
    }

    /// <summary>Rows; follows the window.</summary>
    public int Height
    {
        get { return Math.Max(Console.WindowHeight, 1); }
    }

    /// <summary>The keys that were pressed since the last call.</summary>
    public List<Key> Keys()
    {
        List<Key> keys = new List<Key>();
        if (Windows)
        {
            while (Console.KeyAvailable)
            {
                ConsoleKeyInfo info = Console.ReadKey(true);
                keys.Add(Named(info.Key, info.KeyChar));
            }
            return keys;
        }
        // Of several characters that come at once, Mono's Console.ReadKey returns one, and the others with the next key.
        if (!Console.KeyAvailable)
        {
            unread = ""; // Escape alone
            return keys;
        }
        int length = (int)ReadBytes(0, read, (IntPtr)read.Length);
        if (length < 0 && Marshal.GetLastWin32Error() == Interrupted)
        {
            return keys;
        }
        if (length <= 0)
        {
            throw new IOException("the terminal is gone");
        }
        string text = unread + new string(characters, 0, decoder.GetChars(read, 0, length, characters, 0));
        int at = 0;
        while (at < text.Length)
        {
            if (text[at] != '\x1b')
            {
                keys.Add(Named(0, text[at++]));
                continue;
            }
            Match match = Sequence.Match(text, at);
            if (!match.Success)
            {
                break;
            }
            ConsoleKey key;
            if (Sequences.TryGetValue(match.Groups[1].Value, out key))
            {
                keys.Add(new Key { Name = key });
            }
            at += match.Length;
        }
        unread = text.Length - at < 32 ? text.Substring(at) : "";
        return keys;
    }

    private static Key Named(ConsoleKey name, char character)
    {
        ConsoleKey control;
        if (Controls.TryGetValue(character, out control))
        {
            return new Key { Name = control };
        }
        return character < ' ' ? new Key { Name = name } : new Key { Text = character.ToString() };
    }

    /// <summary>Shows these rows, of <paramref name="width"/> columns each, with the cursor at a place, counted from 0.</summary>
    public void Draw(IList<string> rows, int width, int cursorRow, int cursorColumn)
    {
        StringBuilder text = new StringBuilder();
        bool anew = width != shownWidth || rows.Count != shown.Length;
        if (anew)
        {
            text.Append("\x1b[0m\x1b[2J");
        }
        string[] now = new string[rows.Count];
        for (int row = 0; row < now.Length; row++)
        {
            now[row] = rows[row];
            if (anew || now[row] != shown[row])
            {
                At(text, row, 0).Append(now[row]);
            }
        }
        if (text.Length == 0 && cursorRow == shownRow && cursorColumn == shownColumn)
        {
            return;
        }
        text.Insert(0, "\x1b[?25l");
        At(text, cursorRow, cursorColumn).Append("\x1b[?25h");
        Write(text.ToString());
        shown = now;
        shownWidth = width;
        shownRow = cursorRow;
        shownColumn = cursorColumn;
    }

    /// <summary>Makes the next <see cref="Draw"/> write everything: another program may have written to the screen.</summary>
    public void Forget()
    {
        shownWidth = 0;
        if (!closed)
        {
            Write(Enter);
        }
    }

    public void Dispose()
    {
        lock (gate)
        {
            if (closed)
            {
                return;
            }
            try
            {
                Write(Leave);
            }
            catch (IOException)
            {
                // The terminal is gone, and with it the state to restore.
            }
            closed = true;
        }
        AppDomain.CurrentDomain.ProcessExit -= OnExit;
    }

    private void OnExit(object sender, EventArgs arguments)
    {
        Dispose();
    }

    private void Write(string text)
    {
        byte[] bytes = Encoding.UTF8.GetBytes(text);
        lock (gate)
        {
            if (!closed)
            {
                output.Write(bytes, 0, bytes.Length);
                output.Flush();
            }
        }
    }

    private static StringBuilder At(StringBuilder text, int row, int column)
    {
        return text.Append("\x1b[").Append(row + 1).Append(';').Append(column + 1).Append('H');
    }

    [DllImport("libc", EntryPoint = "read", SetLastError = true)]
    private static extern IntPtr ReadBytes(int file, byte[] buffer, IntPtr count);

    // Windows interprets control sequences only for programs that enable it.
    private static bool EnableSequences()
    {
        const int standardOutput = -11, interpret = 4;
        int mode;
        IntPtr handle = GetStdHandle(standardOutput);
        return GetConsoleMode(handle, out mode) && SetConsoleMode(handle, mode | interpret);
    }

    [DllImport("kernel32")]
    private static extern IntPtr GetStdHandle(int which);

    [DllImport("kernel32")]
    private static extern bool GetConsoleMode(IntPtr console, out int mode);

    [DllImport("kernel32")]
    private static extern bool SetConsoleMode(IntPtr console, int mode);
}

/// <summary>One row of a <see cref="Terminal"/>, written from left to right. Text that does not fit is cut off.</summary>
internal sealed class Row
{
    // https://no-color.org
    private static readonly bool Plain = !string.IsNullOrEmpty(Environment.GetEnvironmentVariable("NO_COLOR"));

    private readonly StringBuilder text = new StringBuilder();
    private readonly int width;
    private readonly string background;
    private int column;

    /// <param name="width">In columns.</param>
    /// <param name="background">Parameters of SGR (ECMA-48 8.3.117), as all styles here; "" is the terminal's own.</param>
    public Row(int width, string background = "")
    {
        this.width = width;
        this.background = background;
    }

    /// <summary>Columns left.</summary>
    public int Left
    {
        get { return width - column; }
    }

    public Row Put(string content, string style = "")
    {
        string fits = Columns.Cut(content, width - column);
        if (fits.Length > 0)
        {
            text.Append("\x1b[0");
            foreach (string part in new[] { background, style })
            {
                if (part.Length > 0 && (!Plain || part == "7" || part == "1"))
                {
                    text.Append(';').Append(part);
                }
            }
            text.Append('m').Append(fits);
            column += Columns.Of(fits);
        }
        return this;
    }

    /// <summary>Blanks up to a column.</summary>
    public Row To(int next)
    {
        return next > column ? Put(new string(' ', next - column)) : this;
    }

    /// <summary>Puts content so that it ends before a column.</summary>
    public Row PutRight(string content, int end, string style = "")
    {
        return To(end - Columns.Of(content)).Put(content, style);
    }

    /// <summary>The row at exactly the width of the screen: it covers an earlier row, and nothing needs erasing.</summary>
    public override string ToString()
    {
        To(width);
        return text + "\x1b[0m";
    }
}

/// <summary>Columns of a text on a terminal. Characters of CJK take two each, marks over another character none.</summary>
internal static class Columns
{
    // First and last, of the code points that the Unicode Standard's EastAsianWidth.txt calls wide or fullwidth, in their blocks.
    private static readonly int[] Wide =
    {
        0x1100, 0x115F, 0x231A, 0x231B, 0x2329, 0x232A, 0x23E9, 0x23EC, 0x23F0, 0x23F0, 0x23F3, 0x23F3, 0x25FD, 0x25FE, 0x2614, 0x2615,
        0x2648, 0x2653, 0x267F, 0x267F, 0x2693, 0x2693, 0x26A1, 0x26A1, 0x26AA, 0x26AB, 0x26BD, 0x26BE, 0x26C4, 0x26C5, 0x26CE, 0x26CE,
        0x26D4, 0x26D4, 0x26EA, 0x26EA, 0x26F2, 0x26F3, 0x26F5, 0x26F5, 0x26FA, 0x26FA, 0x26FD, 0x26FD, 0x2705, 0x2705, 0x270A, 0x270B,
        0x2728, 0x2728, 0x274C, 0x274C, 0x274E, 0x274E, 0x2753, 0x2755, 0x2757, 0x2757, 0x2795, 0x2797, 0x27B0, 0x27B0, 0x27BF, 0x27BF,
        0x2B1B, 0x2B1C, 0x2B50, 0x2B50, 0x2B55, 0x2B55, 0x2E80, 0x303E, 0x3041, 0x3247, 0x3250, 0x4DBF, 0x4E00, 0xA4C6, 0xA960, 0xA97C,
        0xAC00, 0xD7A3, 0xF900, 0xFAFF, 0xFE10, 0xFE19, 0xFE30, 0xFE6B, 0xFF01, 0xFF60, 0xFFE0, 0xFFE6, 0x16FE0, 0x18D08, 0x1AFF0, 0x1B2FB,
        0x1F004, 0x1F004, 0x1F0CF, 0x1F0CF, 0x1F18E, 0x1F18E, 0x1F191, 0x1F19A, 0x1F200, 0x1F265, 0x1F300, 0x1F320, 0x1F32D, 0x1F335,
        0x1F337, 0x1F37C, 0x1F37E, 0x1F393, 0x1F3A0, 0x1F3CA, 0x1F3CF, 0x1F3D3, 0x1F3E0, 0x1F3F0, 0x1F3F4, 0x1F3F4, 0x1F3F8, 0x1F43E,
        0x1F440, 0x1F440, 0x1F442, 0x1F4FC, 0x1F4FF, 0x1F53D, 0x1F54B, 0x1F54E, 0x1F550, 0x1F567, 0x1F57A, 0x1F57A, 0x1F595, 0x1F596,
        0x1F5A4, 0x1F5A4, 0x1F5FB, 0x1F64F, 0x1F680, 0x1F6C5, 0x1F6CC, 0x1F6CC, 0x1F6D0, 0x1F6D2, 0x1F6D5, 0x1F6DF, 0x1F6EB, 0x1F6EC,
        0x1F6F4, 0x1F6FC, 0x1F7E0, 0x1F7F0, 0x1F90C, 0x1F93A, 0x1F93C, 0x1F945, 0x1F947, 0x1F9FF, 0x1FA70, 0x1FAFF, 0x20000, 0x3FFFD,
    };

    public static int Of(string text)
    {
        int columns = 0;
        for (int i = 0; i < text.Length; i += Length(text, i))
        {
            columns += At(text, i);
        }
        return columns;
    }

    /// <summary>The part of its beginning that fits.</summary>
    public static string Cut(string text, int columns)
    {
        int i = 0;
        for (int left = columns; i < text.Length && (left -= At(text, i)) >= 0; i += Length(text, i))
        {
        }
        return text.Substring(0, i);
    }

    /// <summary>The part of its end that fits.</summary>
    public static string CutLeft(string text, int columns)
    {
        while (Of(text) > columns)
        {
            text = text.Substring(Length(text, 0));
        }
        return text;
    }

    /// <summary>Text from others, without characters that would move the cursor, change colours, or turn the direction of a line.</summary>
    public static string Clean(string text)
    {
        StringBuilder clean = new StringBuilder(text.Length);
        for (int i = 0; i < text.Length; i += Length(text, i))
        {
            switch (CharUnicodeInfo.GetUnicodeCategory(text, i))
            {
                case UnicodeCategory.Format:
                    break;
                case UnicodeCategory.Control:
                case UnicodeCategory.LineSeparator:
                case UnicodeCategory.ParagraphSeparator:
                case UnicodeCategory.Surrogate:
                    clean.Append('\uFFFD');
                    break;
                default:
                    clean.Append(text, i, Length(text, i));
                    break;
            }
        }
        return clean.ToString();
    }

    private static int At(string text, int i)
    {
        UnicodeCategory category = CharUnicodeInfo.GetUnicodeCategory(text, i);
        if (category == UnicodeCategory.NonSpacingMark || category == UnicodeCategory.EnclosingMark || category == UnicodeCategory.Format)
        {
            return 0;
        }
        int point = Length(text, i) == 2 ? char.ConvertToUtf32(text, i) : text[i];
        int found = Array.BinarySearch(Wide, point);
        // Inside a pair, or at one of its ends.
        return found >= 0 || (~found & 1) == 1 ? 2 : 1;
    }

    private static int Length(string text, int i)
    {
        return char.IsSurrogatePair(text, i) ? 2 : 1;
    }
}
