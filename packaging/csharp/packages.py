#!/usr/bin/env python3
"""Builds the C# packages from the sources of `bindings/csharp` and the native libraries of `make dist`.

    packages.py [--natives DIR] [--out DIR] [nuget] [unity] [bepinex]

They go into DIR/packages, or into the directory of `--out`. Without a kind it builds all. Equal input gives equal bytes.
"""

import argparse
import gzip
import hashlib
import io
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import xml.sax.saxutils
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "scripts"))
from install import package  # noqa: E402
from release_notes import notes  # noqa: E402

BINDING = ROOT / "bindings" / "csharp"
ASSEMBLY = "MetaMystiaNetwork"
UNITY_NAME = "com.metamystia.network"

# The library's name under each of .NET's runtime identifiers.
LIBRARIES = {
    "linux-arm64": "libmeta_mystia_network.so",
    "linux-x64": "libmeta_mystia_network.so",
    "osx-arm64": "libmeta_mystia_network.dylib",
    "osx-x64": "libmeta_mystia_network.dylib",
    "win-x64": "meta_mystia_network.dll",
}
# The platforms of games.
GAME_RIDS = ("linux-x64", "win-x64")


class Failed(Exception):
    """The fault, and the file that has it."""


def main():
    kinds = {"nuget": nuget, "unity": unity, "bepinex": bepinex}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--natives", type=Path, default=ROOT / "target" / "dist", help="the folder with win-x64, linux-x64, ... (target/dist)")
    parser.add_argument("--out", type=Path, help="where the packages go (DIR/packages)")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(kinds)}; all without any")
    arguments = parser.parse_args()
    try:
        for kind in arguments.kinds:
            if kind not in kinds:
                raise Failed(f"{kind} is no kind of package; there are {', '.join(kinds)}")
        natives = Natives(arguments.natives)
        out = arguments.out or arguments.natives / "packages"
        out.mkdir(parents=True, exist_ok=True)
        assembly = compile_binding(version())
        for kind in arguments.kinds or kinds:
            name, content = kinds[kind](natives, assembly)
            (out / name).write_bytes(content)
            print(f"{out / name}: {len(content)} bytes, with {', '.join(natives.packed)}")
    except Failed as failure:
        print(f"packages.py: {failure}", file=sys.stderr)
        return 1
    return 0


# ---------------------------------------------------------------- the packages: {path: bytes}, and an archive of them


def nuget(natives, assembly):
    """One assembly for .NET, in both folders that NuGet searches, and the native libraries in .NET's folders for them."""
    targets = (HERE / "nuget" / f"{ASSEMBLY}.targets").read_bytes()
    nuspec = with_version(HERE / "nuget" / f"{ASSEMBLY}.nuspec").decode()
    files = {
        f"{ASSEMBLY}.nuspec": nuspec.replace("$releaseNotes$", xml.sax.saxutils.escape(notes(version()))).encode(),
        "README.md": (HERE / "nuget" / "README.md").read_bytes(),
        f"build/{ASSEMBLY}.targets": targets,
        f"buildTransitive/{ASSEMBLY}.targets": targets,
    }
    for framework in ("net461", "netstandard2.0"):
        for name, content in assembly.items():
            files[f"lib/{framework}/{name}"] = content
    for rid, library in natives.of(LIBRARIES):
        files[f"runtimes/{rid}/native/{library.name}"] = library.read_bytes()
    files.update(licences(natives))
    files.update(open_packaging(files))
    return f"{ASSEMBLY}.{version()}.nupkg", zipped(files)


def unity(natives, _assembly):
    """Sources, which Unity compiles, so that its IL2CPP processes them; each asset has its .meta file."""
    folder = HERE / "unity"
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    files["package.json"] = with_version(folder / "package.json")
    files["CHANGELOG.md"] = (ROOT / "CHANGELOG.md").read_bytes()
    files["LICENSE.md"] = b"MIT or Apache-2.0, at your choice: `LICENSE-MIT.txt`, `LICENSE-APACHE.txt`.\n"
    for source in sources():
        files[f"Runtime/{source.name}"] = source.read_bytes()
    plugins = {}
    for rid, library in natives.of(GAME_RIDS):
        path = f"Plugins/x86_64/{library.name}"
        files[path] = library.read_bytes()
        plugins[path] = rid
    files.update(licences(natives))
    files.update(metas(files, plugins))
    return f"{UNITY_NAME}-{version()}.tgz", tarred({f"package/{path}": content for path, content in files.items()})


def bepinex(natives, assembly):
    """The files that a player or a modder unpacks in the folder of the game."""
    folder = f"BepInEx/plugins/{ASSEMBLY}"
    files = {f"{folder}/{name}": content for name, content in assembly.items()}
    for _, library in natives.of(GAME_RIDS):
        files[f"{folder}/{library.name}"] = library.read_bytes()
    files[f"{folder}/README.md"] = with_version(HERE / "bepinex" / "README.md")
    files.update({f"{folder}/{name}": content for name, content in licences(natives).items()})
    return f"{ASSEMBLY}-BepInEx-{version()}.zip", zipped(files)


# ---------------------------------------------------------------- contents of the packages


class Natives:
    """The folders of `make dist`, each named by a runtime identifier of .NET."""

    def __init__(self, folder):
        self.folder = folder
        self.packed = []
        self.rids = [rid for rid in LIBRARIES if (folder / rid).is_dir()]
        if not self.rids:
            raise Failed(f"{folder} has none of the folders {', '.join(LIBRARIES)}; make dist makes them, --natives names another folder")
        for rid in self.rids:
            if not (folder / rid / LIBRARIES[rid]).is_file():
                raise Failed(f"{folder / rid} has no {LIBRARIES[rid]}; make dist puts it there")

    def of(self, rids):
        """(identifier, library) of the present ones that are in `rids`."""
        self.packed = [rid for rid in self.rids if rid in rids]
        if not self.packed:
            raise Failed(f"{self.folder} has {', '.join(self.rids)}, and this package takes only {', '.join(rids)}")
        return [(rid, self.folder / rid / LIBRARIES[rid]) for rid in self.packed]


def licences(natives):
    """The licences of this project, and of the crates in its library. With an extension, which some package formats require."""
    files = {f"{name}.txt": (ROOT / name).read_bytes() for name in ("LICENSE-MIT", "LICENSE-APACHE")}
    for rid in natives.packed:
        for path in sorted((natives.folder / rid).glob("THIRD-PARTY-LICENSES.*")):
            # They are equal except for crates of one system: the shorter name is for the first, then one for each that
            # differs.
            content = path.read_bytes()
            if content not in files.values():
                name = path.name if path.name not in files else f"{path.stem}-{rid}{path.suffix}"
                files[name] = content
    return files


def version():
    return package("version")


def with_version(path):
    return path.read_text("utf-8").replace("$version$", version()).encode()


def sources():
    return sorted(BINDING.glob("*.cs"))


def compile_binding(number):
    """{name: bytes} of the assembly and its documentation.

    mcs refers to Mono's mscorlib 4.0, and to no other assembly. .NET Framework and Mono have that; .NET and .NET Standard 2.0 have a
    mscorlib that forwards each of its types. So one assembly serves them all, as long as it uses no type that only Mono's has: the
    tests resolve every one of them under CoreCLR.
    """
    if shutil.which("mcs") is None:
        raise Failed("mcs is not installed; scripts/install-tools.sh installs it or explains how")
    core = ".".join((re.split(r"[-+]", number)[0].split(".") + ["0"] * 4)[:4])
    with tempfile.TemporaryDirectory() as folder:
        assembly, documentation = Path(folder) / f"{ASSEMBLY}.dll", Path(folder) / f"{ASSEMBLY}.xml"
        attributes = Path(folder) / "AssemblyInfo.cs"
        attributes.write_text(
            "using System.Reflection;\n"
            f'[assembly: AssemblyTitle("{ASSEMBLY}")]\n[assembly: AssemblyVersion("{core}")]\n'
            f'[assembly: AssemblyFileVersion("{core}")]\n[assembly: AssemblyInformationalVersion("{number}")]\n',
            "utf-8",
        )
        # CS0419: a cref that names a group of overloads; CS1591: public names without documentation.
        command = ["mcs", "-langversion:7", "-warnaserror", "-nowarn:419,1591", "-optimize+", "-target:library"]
        command += [f"-out:{assembly}", f"-doc:{documentation}", attributes, *sources()]
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Failed(f"mcs does not compile the binding:\n{done.stdout}")
        return {assembly.name: reproducible(assembly.read_bytes()), documentation.name: documentation.read_bytes()}


def reproducible(assembly):
    """The assembly with an identity that follows from its content: mcs writes the time, and a random id of the module."""
    content = bytearray(assembly)
    (headers,) = struct.unpack_from("<I", content, 0x3C)
    struct.pack_into("<I", content, headers + 8, 0)
    # ECMA-335 II.24.2: the metadata's root, its streams, and the stream of GUIDs, which has one.
    root = content.index(b"BSJB")
    (length,) = struct.unpack_from("<I", content, root + 12)
    (streams,) = struct.unpack_from("<H", content, root + 16 + length + 2)
    at = root + 16 + length + 4
    for _ in range(streams):
        offset, size = struct.unpack_from("<II", content, at)
        name = content[at + 8 : content.index(0, at + 8)]
        if name == b"#GUID" and size == 16:
            content[root + offset : root + offset + size] = bytes(size)
            content[root + offset : root + offset + size] = hashlib.sha256(content).digest()[:size]
            return bytes(content)
        at += 8 + (len(name) // 4 + 1) * 4
    raise Failed("mcs made an assembly without a module id")


# ---------------------------------------------------------------- NuGet


def open_packaging(files):
    """The parts that make a zip an OPC package (ECMA-376 part 2): types, relationships and properties."""
    properties = f"package/services/metadata/core-properties/{stable_id('core-properties')}.psmdcp"
    extensions = sorted({PurePosixPath(path).suffix[1:] for path in files} - {""})
    types = {extension: "application/octet" for extension in extensions}
    types["rels"] = "application/vnd.openxmlformats-package.relationships+xml"
    types["psmdcp"] = "application/vnd.openxmlformats-package.core-properties+xml"
    defaults = "".join(f'  <Default Extension="{name}" ContentType="{types[name]}" />\n' for name in sorted(types))
    nuspec = files[f"{ASSEMBLY}.nuspec"].decode()
    (description,) = re.findall(r"<description>(.*?)</description>", nuspec, re.DOTALL)
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return {
        "[Content_Types].xml": (
            f'{head}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">\n{defaults}</Types>\n'
        ).encode(),
        "_rels/.rels": (
            f'{head}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">\n'
            f'  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/{ASSEMBLY}.nuspec" Id="R1" />\n'
            '  <Relationship Type="http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties" '
            f'Target="/{properties}" Id="R2" />\n</Relationships>\n'
        ).encode(),
        properties: (
            f'{head}<coreProperties xmlns:dc="http://purl.org/dc/elements/1.1/" '
            'xmlns="http://schemas.openxmlformats.org/package/2006/metadata/core-properties">\n'
            f"  <dc:creator>The meta_mystia_network authors</dc:creator>\n  <dc:description>{description}</dc:description>\n"
            f"  <dc:identifier>{ASSEMBLY}</dc:identifier>\n  <version>{xml.sax.saxutils.escape(version())}</version>\n</coreProperties>\n"
        ).encode(),
    }


# ---------------------------------------------------------------- Unity


def metas(files, plugins):
    """The .meta file of each asset and folder. Unity ignores folders whose names end in ~, but copies the files in them with theirs."""
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents} - {"."}
    result = {f"{path}.meta": meta(path, FOLDER) for path in folders if not path.endswith("~")}
    for path in files:
        if path in plugins:
            body = plugin_importer(plugins[path])
        elif path == "package.json":
            body = importer("PackageManifestImporter")
        else:
            body = {
                ".cs": MONO_IMPORTER,
                ".asmdef": importer("AssemblyDefinitionImporter"),
                ".md": importer("TextScriptImporter"),
                ".txt": importer("TextScriptImporter"),
                ".html": importer("TextScriptImporter"),
            }.get(PurePosixPath(path).suffix, importer("DefaultImporter"))
        result[f"{path}.meta"] = meta(path, body)
    return result


def meta(path, body):
    return f"fileFormatVersion: 2\nguid: {stable_id(path)}\n{body}".encode()


def stable_id(path):
    """An id that is equal in every build and version: scenes and asmdefs refer to assets by it."""
    return hashlib.md5(f"{UNITY_NAME}/{path}".encode(), usedforsecurity=False).hexdigest()


def importer(name):
    return f"{name}:\n  externalObjects: {{}}\n  userData: \n  assetBundleName: \n  assetBundleVariant: \n"


FOLDER = "folderAsset: yes\n" + importer("DefaultImporter")

MONO_IMPORTER = """MonoImporter:
  externalObjects: {}
  serializedVersion: 2
  defaultReferences: []
  executionOrder: 0
  icon: {instanceID: 0}
  userData: 
  assetBundleName: 
  assetBundleVariant: 
"""


def plugin_importer(rid):
    """A native library for one system: in its editor, and in its 64-bit player."""
    player, system = {"win-x64": ("Win64", "Windows"), "linux-x64": ("Linux64", "Linux")}[rid]
    players = {"Linux64": "Linux64", "OSXUniversal": "OSXUniversal", "Win": "Win", "Win64": "Win64"}
    exclude = "".join(f"        Exclude {name}: {int(name != player)}\n" for name in players)
    standalone = "".join(
        f"  - first:\n      Standalone: {name}\n    second:\n      enabled: {int(name == player)}\n"
        f"      settings:\n        CPU: {'x86_64' if name == player else 'None'}\n"
        for name in players
    )
    return f"""PluginImporter:
  externalObjects: {{}}
  serializedVersion: 2
  iconMap: {{}}
  executionOrder: {{}}
  defineConstraints: []
  isPreloaded: 0
  isOverridable: 0
  isExplicitlyReferenced: 0
  validateReferences: 1
  platformData:
  - first:
      : Any
    second:
      enabled: 0
      settings:
        Exclude Editor: 0
{exclude}  - first:
      Any: 
    second:
      enabled: 0
      settings: {{}}
  - first:
      Editor: Editor
    second:
      enabled: 1
      settings:
        CPU: x86_64
        DefaultValueInitialized: true
        OS: {system}
{standalone}  userData: 
  assetBundleName: 
  assetBundleVariant: 
"""


# ---------------------------------------------------------------- archives, with fixed times and in a fixed order


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(files):
            entry = zipfile.ZipInfo(path)  # 1980 is the first year of zip's times
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, files[path])
    return buffer.getvalue()


def tarred(files):
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9, mtime=0, filename="") as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for path in sorted(files):
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(files[path]), 0o644
                archive.addfile(entry, io.BytesIO(files[path]))
    return buffer.getvalue()


if __name__ == "__main__":
    sys.exit(main())
