// A game with BepInEx, as a plugin sees it: loads BepInEx/plugins/Coop/Coop.dll, and its references from any folder of plugins.
// The plugin's own Main plays.
using System;
using System.IO;
using System.Reflection;

internal static class Game
{
    private static int Main(string[] arguments)
    {
        string plugins = Path.Combine(AppDomain.CurrentDomain.BaseDirectory, "BepInEx", "plugins");
        AppDomain.CurrentDomain.AssemblyResolve += (sender, wanted) =>
        {
            string[] found = Directory.GetFiles(plugins, new AssemblyName(wanted.Name).Name + ".dll", SearchOption.AllDirectories);
            return found.Length == 0 ? null : Assembly.LoadFrom(found[0]);
        };
        Assembly plugin = Assembly.LoadFrom(Path.Combine(plugins, "Coop", "Coop.dll"));
        return (int)plugin.EntryPoint.Invoke(null, new object[] { arguments });
    }
}
