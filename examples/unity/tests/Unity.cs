// A stub of the parts of UnityEngine that the examples use, by their public names, so that they can be compiled and tested without
// Unity. It is no part of a game.

using System;
using System.Collections;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;

namespace UnityEngine
{
    public class Object
    {
        public virtual string name { get; set; }

        public static T Instantiate<T>(T original) where T : Object
        {
            return (T)original.Copy();
        }

        internal virtual Object Copy()
        {
            return (Object)MemberwiseClone();
        }
    }

    public sealed class GameObject : Object
    {
        private List<Component> components = new List<Component>();

        public GameObject(string name)
        {
            this.name = name;
            AddComponent<Transform>();
        }

        public Transform transform
        {
            get { return GetComponent<Transform>(); }
        }

        public T AddComponent<T>() where T : Component, new()
        {
            T component = new T();
            component.gameObject = this;
            components.Add(component);
            return component;
        }

        public T GetComponent<T>()
        {
            return components.OfType<T>().FirstOrDefault();
        }

        public T[] GetComponents<T>()
        {
            return components.OfType<T>().ToArray();
        }

        internal override Object Copy()
        {
            GameObject copy = (GameObject)MemberwiseClone();
            copy.name += "(Clone)";
            copy.components = components.ConvertAll(component => component.CopyTo(copy));
            return copy;
        }
    }

    public class Component : Object
    {
        public GameObject gameObject { get; internal set; }

        public override string name
        {
            get { return gameObject.name; }
        }

        public Transform transform
        {
            get { return gameObject.transform; }
        }

        public T GetComponent<T>()
        {
            return gameObject.GetComponent<T>();
        }

        public T[] GetComponents<T>()
        {
            return gameObject.GetComponents<T>();
        }

        internal Component CopyTo(GameObject other)
        {
            Component copy = (Component)MemberwiseClone();
            copy.gameObject = other;
            return copy;
        }
    }

    public class Transform : Component
    {
        public Vector3 localPosition { get; set; }
        public Quaternion localRotation { get; set; }
        public Vector3 localScale { get; set; }
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

    public struct Quaternion
    {
        public float x, y, z, w;

        public Quaternion(float x, float y, float z, float w)
        {
            this.x = x;
            this.y = y;
            this.z = z;
            this.w = w;
        }
    }

    public class MonoBehaviour : Component
    {
        public bool enabled = true;
        public bool useGUILayout { get; set; } = true;

        private static List<IEnumerator> coroutines = new List<IEnumerator>();

        public Coroutine StartCoroutine(IEnumerator routine)
        {
            coroutines.Add(routine);
            return new Coroutine();
        }

        // One frame of Unity.
        internal static void RunCoroutines()
        {
            if (coroutines.Count == 0)
            {
                return; // Tests count the memory of a frame.
            }
            List<IEnumerator> running = coroutines;
            coroutines = new List<IEnumerator>();
            coroutines.AddRange(running.FindAll(routine => routine.MoveNext()));
        }
    }

    public sealed class Coroutine
    {
    }

    public static class Time
    {
        private static readonly Stopwatch clock = Stopwatch.StartNew();

        public static float realtimeSinceStartup
        {
            get { return (float)clock.Elapsed.TotalSeconds; }
        }
    }

    [AttributeUsage(AttributeTargets.Field)]
    public sealed class TooltipAttribute : Attribute
    {
        public TooltipAttribute(string tooltip)
        {
        }
    }

    public static class Debug
    {
        // The texts of warnings and errors, for tests.
        internal static Action<string> Logged;

        public static void LogWarning(object message)
        {
            Log("warning: " + message);
        }

        public static void LogError(object message)
        {
            Log("error: " + message);
        }

        private static void Log(string text)
        {
            Console.Error.WriteLine(text);
            if (Logged != null)
            {
                Logged(text);
            }
        }

        public static void LogException(Exception exception)
        {
            Console.Error.WriteLine(exception);
        }
    }
}
