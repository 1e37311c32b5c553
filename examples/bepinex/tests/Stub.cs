// A stub of the parts of BepInEx 6 and UnityEngine that CoopPlugin uses, by their public names, so that it can be compiled and
// tested without them. It is no part of a mod: there the real assemblies replace it.

using System;
using System.Collections.Generic;
using System.Diagnostics;

namespace BepInEx
{
    [AttributeUsage(AttributeTargets.Class)]
    public class BepInPlugin : Attribute
    {
        public BepInPlugin(string guid, string name, string version)
        {
        }
    }
}

namespace BepInEx.Logging
{
    public class ManualLogSource
    {
        public static readonly List<string> Lines = new List<string>();

        public void LogInfo(object data)
        {
            Lines.Add("info: " + data);
        }

        public void LogWarning(object data)
        {
            Lines.Add("warning: " + data);
        }

        public void LogError(object data)
        {
            Lines.Add("error: " + data);
        }
    }
}

namespace BepInEx.Configuration
{
    public class ConfigEntry<T>
    {
        public T Value { get; set; }
    }

    public class ConfigFile
    {
        // Settings that a player has written into the file.
        public static readonly Dictionary<string, object> Written = new Dictionary<string, object>();

        public ConfigEntry<T> Bind<T>(string section, string key, T defaultValue, string description)
        {
            object written;
            ConfigEntry<T> entry = new ConfigEntry<T>();
            entry.Value = Written.TryGetValue(section + "." + key, out written) ? (T)written : defaultValue;
            return entry;
        }
    }
}

namespace BepInEx.Unity.IL2CPP
{
    public abstract class BasePlugin
    {
        public BepInEx.Logging.ManualLogSource Log { get; } = new BepInEx.Logging.ManualLogSource();

        public BepInEx.Configuration.ConfigFile Config { get; } = new BepInEx.Configuration.ConfigFile();

        public abstract void Load();

        public virtual bool Unload()
        {
            return false;
        }

        public T AddComponent<T>() where T : UnityEngine.MonoBehaviour
        {
            T component = (T)Activator.CreateInstance(typeof(T), IntPtr.Zero);
            UnityEngine.MonoBehaviour.Alive.Add(component);
            return component;
        }
    }
}

namespace UnityEngine
{
    public class Object
    {
        public static void Destroy(Object destroyed)
        {
            MonoBehaviour.Alive.Remove((MonoBehaviour)destroyed);
        }
    }

    public class MonoBehaviour : Object
    {
        public static readonly List<MonoBehaviour> Alive = new List<MonoBehaviour>();

        public MonoBehaviour(IntPtr pointer)
        {
        }
    }

    public static class Time
    {
        private static readonly Stopwatch Clock = Stopwatch.StartNew();

        public static float unscaledTime
        {
            get { return (float)Clock.Elapsed.TotalSeconds; }
        }
    }

    public struct Vector3
    {
        public float x, y, z;

        public Vector3(float x, float y, float z)
        {
            this.x = x;
            this.y = y;
            this.z = z;
        }
    }
}
