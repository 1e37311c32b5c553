// The parts of BepInEx 6 that the plugin in the binding's README uses.
using System;

namespace BepInEx
{
    [AttributeUsage(AttributeTargets.Class)]
    public sealed class BepInPlugin : Attribute
    {
        public BepInPlugin(string guid, string name, string version)
        {
        }
    }
}

namespace BepInEx.Logging
{
    public sealed class ManualLogSource
    {
        public void LogInfo(object data)
        {
        }
    }
}

namespace BepInEx.Unity.IL2CPP
{
    public abstract class BasePlugin
    {
        protected BasePlugin()
        {
            Log = new Logging.ManualLogSource();
        }

        public Logging.ManualLogSource Log { get; private set; }

        public abstract void Load();

        public virtual bool Unload()
        {
            return false;
        }
    }
}
