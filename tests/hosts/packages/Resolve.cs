// Resolves every type and member that the assembly of the first argument refers to, and prints the referenced assemblies, one a
// line. Under CoreCLR it fails for types that only Mono's mscorlib has.
using System;
using System.Reflection;

internal static class Resolve
{
    private const int TypeRef = 0x01000000, MemberRef = 0x0A000000;

    private static int Main(string[] arguments)
    {
        Assembly assembly = Assembly.LoadFrom(arguments[0]);
        int types = All(assembly, TypeRef), members = All(assembly, MemberRef);
        Console.Error.WriteLine(types + " types, " + members + " members");
        foreach (AssemblyName name in assembly.GetReferencedAssemblies())
        {
            Console.WriteLine(name.FullName);
        }
        return types > 50 && members > 100 ? 0 : 1;
    }

    private static int All(Assembly assembly, int table)
    {
        // Resolving members of generic types needs arguments; any will do.
        Type[] some = { typeof(object), typeof(object), typeof(object), typeof(object) };
        for (int row = 1; ; row++)
        {
            try
            {
                assembly.ManifestModule.ResolveMember(table + row, some, some);
            }
            catch (ArgumentOutOfRangeException)
            {
                return row - 1; // the table's end
            }
        }
    }
}
