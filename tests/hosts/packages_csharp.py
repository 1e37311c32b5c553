"""The C# packages, built, checked file by file, and installed into empty projects that are compiled and run.

`packages_csharp.py STORY`. Run by `tests/hosts`; MMN_LIBRARY names the library. With MMN_PACKAGES, a folder, its packages are
installed, and none is built (`make test-dist`).
"""

import collections
import contextlib
import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import typing
import xml.etree.ElementTree as xml
import zipfile
from pathlib import Path, PurePosixPath, PureWindowsPath

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts")]

import demo
import stories
from install import package

TIMEOUT_SECONDS = 60
VERSION = package("version")
SOURCES = ROOT / "tests" / "hosts" / "packages"
CORECLR = ROOT / "target" / "tools" / "dotnetcore2" / "bin"
LIBRARY = demo.LIBRARY_NAME
LICENCES = {"LICENSE-APACHE.txt", "LICENSE-MIT.txt", "THIRD-PARTY-LICENSES.txt"}
ASSEMBLY = {"MetaMystiaNetwork.dll", "MetaMystiaNetwork.xml"}


class Runtime(typing.NamedTuple):
    """The command that runs CoreCLR programs, and the native library there."""

    command: list
    rid: str
    library: str
    path: Path  # of the native library
    environment: dict
    drive: str = ""  # the root of all paths on Windows

    def named(self, path):
        return str(PureWindowsPath(self.drive, path)) if self.drive else str(path)


LINUX = Runtime([str(CORECLR / "dotnet")], "linux-x64", LIBRARY, Path(os.environ.get("MMN_LIBRARY", "")), {})


# ---------------------------------------------------------------- stories: the files


def equal_input_gives_equal_packages():
    with Place() as place:
        names = [path.name for path in place.build()]
        assert names == [
            f"MetaMystiaNetwork-BepInEx-{VERSION}.zip",
            f"MetaMystiaNetwork.{VERSION}.nupkg",
            f"com.metamystia.network-{VERSION}.tgz",
        ], names
        first = digests(place.build())
        assert first == digests(place.build())


def missing_files_are_named():
    with Place() as place:
        empty = place.path / "empty"
        empty.mkdir()
        place.refuses(["--natives", empty], f"{empty} has none of the folders linux-arm64, linux-x64, ")
        (empty / "win-x64").mkdir()
        place.refuses(["--natives", empty], f"{empty / 'win-x64'} has no meta_mystia_network.dll")
        place.refuses(["--natives", place.natives, "msi"], "msi is no kind of package; there are nuget, unity, bepinex")
        only_arm = place.path / "arm"
        shutil.copytree(place.natives / "linux-x64", only_arm / "linux-arm64")
        place.refuses(["--natives", only_arm, "unity"], f"{only_arm} has linux-arm64, and this package takes only linux-x64, win-x64")


def the_nuget_package_has_its_parts():
    with Place(every_rid=True) as place:
        package = place.unzip("nuget")
        files = listed(package)
        natives = {
            "runtimes/linux-arm64/native/libmeta_mystia_network.so",
            "runtimes/linux-x64/native/libmeta_mystia_network.so",
            "runtimes/win-x64/native/meta_mystia_network.dll",
        }
        (properties,) = {path for path in files if path.endswith(".psmdcp")}
        assert files == natives | LICENCES | {
            "MetaMystiaNetwork.nuspec",
            "README.md",
            "[Content_Types].xml",
            "_rels/.rels",
            properties,
            "build/MetaMystiaNetwork.targets",
            "buildTransitive/MetaMystiaNetwork.targets",
            *(f"lib/{framework}/{name}" for framework in ("net461", "netstandard2.0") for name in ASSEMBLY),
        }, files

        types = xml.parse(package / "[Content_Types].xml").getroot()
        assert types.tag == "{http://schemas.openxmlformats.org/package/2006/content-types}Types", types.tag
        covered = {default.attrib["Extension"] for default in types}
        extensions = {PurePosixPath(path).suffix[1:] or PurePosixPath(path).name[1:] for path in files - {"[Content_Types].xml"}}
        assert covered == extensions, (covered, extensions)
        targets = {relation.attrib["Target"] for relation in xml.parse(package / "_rels/.rels").getroot()}
        assert targets == {"/MetaMystiaNetwork.nuspec", f"/{properties}"}, targets
        xml.parse(package / properties)

        nuspec = {tag_of(element): element for element in xml.parse(package / "MetaMystiaNetwork.nuspec").getroot()[0]}
        assert nuspec["id"].text == "MetaMystiaNetwork" and nuspec["version"].text == VERSION
        assert nuspec["license"].attrib == {"type": "expression"} and nuspec["license"].text == "MIT OR Apache-2.0"
        assert nuspec["readme"].text in files
        assert nuspec["title"].text and nuspec["copyright"].text
        # The gallery takes 35,000 characters.
        assert "### Added" in nuspec["releaseNotes"].text and len(nuspec["releaseNotes"].text) < 35000
        groups = {group.attrib["targetFramework"] for group in nuspec["dependencies"]}
        assert groups == {".NETFramework4.6.1", ".NETStandard2.0"}, groups

        # The files that the targets copy for .NET Framework exist, and each lands beside the program under its own name.
        copied = copied_natives(package)
        assert copied == {"meta_mystia_network.dll", LIBRARY}, copied
        documented = xml.parse(package / "lib" / "netstandard2.0" / "MetaMystiaNetwork.xml").find(".//member[@name='T:MetaMystia.Network.Room']")
        assert "several rooms at a time" in "".join(documented.itertext())


def the_project_file_agrees_with_the_package():
    """No SDK is at hand to build it: the files that it names exist, and its expression finds the version."""
    path = ROOT / "bindings" / "csharp" / "MetaMystiaNetwork.csproj"
    project = xml.parse(path).getroot()
    assert [item.attrib["Include"] for item in project.iter("Compile")] == ["*.cs"]
    packed = [item.attrib["Include"] for item in project.iter("None")]
    for include in packed:
        assert "$(" in include or (path.parent / include).is_file(), include
    assert project.find(".//TargetFrameworks").text == "netstandard2.0;netstandard2.1"
    (pattern,) = re.findall(r"'(\(\?m\).*)'\)\.Groups\[1\]\.Value", project.find(".//Version").text)
    assert re.search(pattern, (ROOT / "Cargo.toml").read_text("utf-8"))[1] == VERSION
    nuspec = xml.parse(ROOT / "packaging" / "csharp" / "nuget" / "MetaMystiaNetwork.nuspec").getroot()[0]
    described = {tag_of(element): element.text for element in nuspec}
    for name, tag in {"id": "PackageId", "authors": "Authors", "description": "Description", "title": "Title", "copyright": "Copyright", "tags": "PackageTags", "license": "PackageLicenseExpression"}.items():
        assert project.find(f".//{tag}").text == described[name], name


def the_unity_package_has_its_parts():
    with Place(every_rid=True) as place:
        package = place.untar()
        files = listed(package)
        assets = {path for path in files if not path.endswith(".meta")}
        runtime = {f"Runtime/{path.name}" for path in (ROOT / "bindings" / "csharp").glob("*.cs")}
        plugins = {"Plugins/x86_64/libmeta_mystia_network.so", "Plugins/x86_64/meta_mystia_network.dll"}
        documents = {"README.md", "CHANGELOG.md", "LICENSE.md", "package.json"}
        assert assets == runtime | plugins | documents | LICENCES | {"Runtime/MetaMystiaNetwork.asmdef", "Samples~/Lobby/Lobby.cs"}, assets

        manifest = json.loads((package / "package.json").read_text("utf-8"))
        assert manifest["name"] == "com.metamystia.network" and manifest["version"] == VERSION
        for sample in manifest["samples"]:
            assert list((package / sample["path"]).glob("*.cs")), sample
        asmdef = json.loads((package / "Runtime" / "MetaMystiaNetwork.asmdef").read_text("utf-8"))
        assert asmdef["name"] == "MetaMystiaNetwork" and asmdef["autoReferenced"]

        # Every asset and folder but Samples~ has one .meta, with an id of its own.
        folders = {str(parent) for path in assets for parent in PurePosixPath(path).parents} - {".", "Samples~"}
        metas = {path.removesuffix(".meta"): (package / path).read_text("utf-8") for path in files - assets}
        assert metas.keys() == assets | folders, metas.keys() ^ (assets | folders)
        ids = {path: re.fullmatch(r"fileFormatVersion: 2\nguid: ([0-9a-f]{32})\n(?s:.*)", text)[1] for path, text in metas.items()}
        assert max(collections.Counter(ids.values()).values()) == 1, ids
        # Scenes refer to assets by these ids: they never change.
        assert ids["Runtime/MetaMystiaNetwork.asmdef"] == "b905703ee228b67e623c67f7628a8953", ids
        importers = {path: re.search(r"^(\w+Importer):$", text, re.MULTILINE)[1] for path, text in metas.items()}
        assert {path for path, name in importers.items() if name == "PluginImporter"} == plugins
        assert {path for path, name in importers.items() if name == "MonoImporter"} == runtime | {"Samples~/Lobby/Lobby.cs"}
        assert all(("folderAsset: yes" in metas[path]) == (path in folders) for path in metas)
        for path in plugins:
            system, player = ("Windows", "Win64") if path.endswith(".dll") else ("Linux", "Linux64")
            editor, enabled = platforms(metas[path])
            assert editor == system and enabled == {"Editor", player}, (path, editor, enabled)


def the_bepinex_package_has_its_parts():
    with Place(every_rid=True) as place:
        package = place.unzip("bepinex")
        folder = "BepInEx/plugins/MetaMystiaNetwork"
        names = ASSEMBLY | LICENCES | {"README.md", LIBRARY, "meta_mystia_network.dll"}
        assert listed(package) == {f"{folder}/{name}" for name in names}, listed(package)
        readme = (package / folder / "README.md").read_text("utf-8")
        assert f"# MetaMystiaNetwork {VERSION} for BepInEx 6" in readme and "$" not in readme, readme


# ---------------------------------------------------------------- stories: installed into an empty project


def a_program_with_the_nuget_package_greets_another_under_mono():
    with Place() as place:
        package, project = place.unzip("nuget"), place.project()
        mcs(project / "Hello.exe", [program_of(package)], [package / "lib" / "net461" / "MetaMystiaNetwork.dll"])
        shutil.copy(package / "lib" / "net461" / "MetaMystiaNetwork.dll", project)
        copied_natives(package, project)
        greet(["mono", project / "Hello.exe"])


def a_program_with_the_nuget_package_greets_another_under_coreclr(runtime=LINUX):
    """Both files stay in NuGet's package folder, where the program's .deps.json lists them, as after `dotnet build`."""
    with Place() as place:
        project, packages = place.project(), place.path / "packages"
        package = place.unzip("nuget", packages / "metamystianetwork" / VERSION)
        assembly = "lib/netstandard2.0/MetaMystiaNetwork.dll"
        coreclr(project / "Hello.dll", [program_of(package)], [package / assembly])
        libraries = {
            "Hello/1.0.0": ({"runtime": {"Hello.dll": {}}, "dependencies": {"MetaMystiaNetwork": VERSION}}, "project"),
            f"MetaMystiaNetwork/{VERSION}": (
                {
                    "runtime": {assembly: {}},
                    "runtimeTargets": {f"runtimes/{runtime.rid}/native/{runtime.library}": {"rid": runtime.rid, "assetType": "native"}},
                },
                "package",
            ),
        }
        framework = ".NETCoreApp,Version=v3.1"
        (project / "Hello.deps.json").write_text(
            json.dumps(
                {
                    "runtimeTarget": {"name": framework},
                    "targets": {framework: {name: assets for name, (assets, _) in libraries.items()}},
                    "libraries": {
                        name: {"type": kind, "serviceable": False, "sha512": "", **({"path": name.lower()} if kind == "package" else {})}
                        for name, (_, kind) in libraries.items()
                    },
                }
            ),
            "utf-8",
        )
        greet([*runtime.command, "exec", "--additionalprobingpath", packages, project / "Hello.dll"], runtime.environment)


def the_assembly_uses_only_what_every_framework_has():
    """It refers to mscorlib alone, and CoreCLR's mscorlib forwards each of its types."""
    with Place() as place:
        assembly = place.unzip("nuget") / "lib" / "netstandard2.0" / "MetaMystiaNetwork.dll"
        program = place.project() / "Resolve.dll"
        coreclr(program, [SOURCES / "Resolve.cs"], [])
        done = call([CORECLR / "dotnet", program, assembly])
        assert done.split() and done.splitlines() == ["mscorlib, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089"], done


def a_unity_project_with_the_package_plays_its_sample():
    with Place() as place:
        package, project = place.untar(), place.project()
        # Like Unity: the assembly definition is an assembly, and the imported sample is in the project's own.
        assembly = project / "MetaMystiaNetwork.dll"
        unsafe = ["-unsafe"] if json.loads((package / "Runtime" / "MetaMystiaNetwork.asmdef").read_text("utf-8"))["allowUnsafeCode"] else []
        mcs(assembly, sorted((package / "Runtime").glob("*.cs")), [], ["-target:library", *unsafe])
        game = project / "Game.exe"
        mcs(game, [*sorted((package / "Samples~" / "Lobby").glob("*.cs")), SOURCES / "Unity.cs"], [assembly])
        for plugin in (package / "Plugins" / "x86_64").glob("*.so"):
            shutil.copy(plugin, project)
        window = ["mono", game, "session=unity"]
        with Program([*window, "player=ann"]) as ann:
            ann.send_line("press Host a game")
            address = ann.next("Others join you at (.*)")
            agree([ann], "Leader: (ann)")
            with Program([*window, "player=bob", f"dial={address}"]) as bob:
                bob.send_line("press Join a game")
                ann.next("bob joined")
                bob.next("ann joined")
                agree([ann, bob], "Leader: (ann)")
                ann.send_line("type hello from ann")
                ann.send_line("press Say")
                bob.next("ann: hello from ann")
                bob.send_line("type hello from bob")
                bob.send_line("press Say")
                ann.next("bob: hello from bob")
                bob.send_line("press Leave")
                ann.next("bob left: left")
                agree([ann], "Leader: (ann)")
                bob.ends_well()
                # The object is destroyed while it is in the room.
                ann.ends_well()


def a_plugin_with_the_bepinex_package_plays_under_coreclr(runtime=LINUX):
    with Place() as place:
        game = bepinex_game(place, coreclr)
        coreclr(game / "Game.dll", [SOURCES / "Game.cs"], [])
        done = call([*runtime.command, game / "Game.dll"], runtime.environment)
        assert done == "ok\n", done


def a_plugin_with_the_bepinex_package_plays_under_mono():
    with Place() as place:
        game = bepinex_game(place, mcs)
        mcs(game / "Game.exe", [SOURCES / "Game.cs"], [])
        done = call(["mono", game / "Game.exe"])
        assert done == "ok\n", done


def bepinex_game(place, compile):
    """An empty game with the package and the sample's plugin, which refers to the package's assembly and has no copy of it."""
    game = place.unzip("bepinex")
    assembly = game / "BepInEx" / "plugins" / "MetaMystiaNetwork" / "MetaMystiaNetwork.dll"
    folder = game / "BepInEx" / "plugins" / "Coop"
    folder.mkdir()
    sample = ROOT / "examples" / "bepinex"
    compile(folder / "Coop.dll", [sample / "CoopPlugin.cs", *sorted((sample / "tests").glob("*.cs"))], [assembly])
    return game


# ---------------------------------------------------------------- stories: Room.LoadNative


# Libraries that are too old, in C: the functions that they have.
OLD = {
    "older": 'unsigned mmn_abi_version(void) { return 7; } const char *mmn_library_version(void) { return "0.0.7"; }',
    "oldest": "unsigned GetAbiVersion(void) { return 5; }",
}
LOADS = ("folder", "file", "loaded", "beside", "missed", "refused", "threads")


def a_library_is_loaded_from_a_path_under_mono():
    load_native(lambda folder, compile: ["mono", compile(mcs, folder / "LoadNative.exe")])


def a_library_is_loaded_from_a_path_under_coreclr(runtime=LINUX):
    load_native(lambda folder, compile: [*runtime.command, compile(coreclr, folder / "LoadNative.dll")], runtime)


def a_library_of_another_version_is_named_under_mono():
    old_libraries(mcs, "LoadNative.exe", ["mono"])


def a_library_of_another_version_is_named_under_coreclr():
    old_libraries(coreclr, "LoadNative.dll", LINUX.command)


def old_libraries(compiler, name, command):
    sources = [ROOT / "bindings" / "csharp" / "tests" / "LoadNative.cs", *sorted((ROOT / "bindings" / "csharp").glob("*.cs"))]
    with tempfile.TemporaryDirectory() as path:
        program = Path(path) / name
        compiler(program, sources, [])
        for story, functions in OLD.items():
            folder = Path(path) / story
            folder.mkdir()
            source = folder / "old.c"
            source.write_text(functions + "\n", "utf-8")
            call(["gcc", "-shared", "-fPIC", "-o", folder / LIBRARY, source])
            done = call([*command, program, story, folder, folder], {})
            assert done.splitlines()[-1:] == ["ok"], done


def load_native(command_in, runtime=LINUX):
    """Each in its own process and folders. In `loaded` the runtime finds the library by itself."""
    sources = [ROOT / "bindings" / "csharp" / "tests" / "LoadNative.cs", *sorted((ROOT / "bindings" / "csharp").glob("*.cs"))]
    with Place() as place:

        def compile(compiler, program):
            compiler(program, sources, [])
            return program

        built = place.project()
        command = command_in(built, compile)
        for story in LOADS:
            folder = place.path / story
            shutil.copytree(built, folder / "program")
            for name in ("library", "copy"):
                (folder / name).mkdir()
                shutil.copy(runtime.path, folder / name / runtime.library)
            found = {"LD_LIBRARY_PATH": str(folder / "library"), "WINEPATH": str(folder / "library")} if story == "loaded" else {}
            program = folder / "program" / command[-1].name
            done = call([*command[:-1], program, story, *(runtime.named(folder / name) for name in ("library", "copy"))], {**runtime.environment, **found})
            assert done.splitlines()[-1:] == ["ok"], done
            print(f"{story}: {done}")


# ---------------------------------------------------------------- building and unpacking


class Place:
    """A folder with the natives of Linux, as `make dist` lays them out, the packages, and projects. Text files stand in for the
    natives of other systems.
    """

    def __init__(self, every_rid=False):
        self.every_rid = every_rid

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.path = Path(self._folder.name)
        self.natives = self.path / "dist"
        rids = {"linux-x64": LIBRARY}
        if self.every_rid:
            rids = {**rids, "linux-arm64": LIBRARY, "win-x64": "meta_mystia_network.dll"}
        for rid, name in rids.items():
            folder = self.natives / rid
            shutil.copytree(ROOT / "include", folder / "include")
            if rid == "linux-x64":
                shutil.copy(os.environ["MMN_LIBRARY"], folder / name)
            else:
                (folder / name).write_text(f"the library for {rid}", "utf-8")
            for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
                shutil.copy(ROOT / licence, folder)
            (folder / "THIRD-PARTY-LICENSES.txt").write_text("those of the crates", "utf-8")
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def build(self, *kinds):
        if "MMN_PACKAGES" in os.environ:
            endings = {"nuget": "*.nupkg", "unity": "*.tgz", "bepinex": "*-BepInEx-*.zip"}
            return sorted(path for kind in kinds for path in Path(os.environ["MMN_PACKAGES"]).glob(endings[kind]))
        out = self.path / "packages-built"
        call([sys.executable, ROOT / "packaging" / "csharp" / "packages.py", "--natives", self.natives, "--out", out, *kinds])
        return sorted(out.iterdir())

    def refuses(self, arguments, reason):
        command = [sys.executable, ROOT / "packaging" / "csharp" / "packages.py", "--out", self.path / "none", *arguments]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        assert done.returncode == 1 and done.stderr.startswith(f"packages.py: {reason}"), done
        assert len(done.stderr.splitlines()) == 1, done.stderr

    def unzip(self, kind, folder=None):
        (package,) = self.build(kind)
        folder = folder or self.path / kind
        with zipfile.ZipFile(package) as archive:
            assert archive.testzip() is None
            archive.extractall(folder)
        return folder

    def untar(self):
        (package,) = self.build("unity")
        with tarfile.open(package, "r:gz") as archive:
            assert {PurePosixPath(entry.name).parts[0] for entry in archive} == {"package"}
            archive.extractall(self.path / "unity")
        return self.path / "unity" / "package"

    def project(self):
        folder = self.path / "project"
        folder.mkdir()
        return folder


def digests(paths):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def listed(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def tag_of(element):
    return element.tag.split("}")[1]


def copied_natives(package, project=None):
    """The natives that the .targets copies beside a program of .NET Framework: copies the existing ones, and returns all names."""
    names = set()
    for folder in ("build", "buildTransitive"):
        targets = package / folder / "MetaMystiaNetwork.targets"
        space = {"m": "http://schemas.microsoft.com/developer/msbuild/2003"}
        root = xml.parse(targets).getroot()
        (natives,) = root.findall(".//m:MetaMystiaNetworkNatives", space)
        base = natives.text.replace("$(MSBuildThisFileDirectory)", f"{targets.parent}/")
        for item in root.findall(".//m:ItemGroup/m:None", space):
            path = Path(item.attrib["Include"].replace("$(MetaMystiaNetworkNatives)", base))
            assert item.attrib["Condition"] == f"Exists('{item.attrib['Include']}')" and item.attrib["Link"] == path.name, item.attrib
            names.add(path.name)
            if project is None:
                assert path.is_file(), path
            elif path.is_file():
                shutil.copy(path, project)
    return names


def platforms(meta):
    """The editor's system and the enabled platforms of a PluginImporter."""
    text = meta[meta.index("platformData:") :]
    entries = re.findall(r"  - first:\n      (.*)\n    second:\n      enabled: (\d)\n((?:      .*\n)*)", text)
    enabled = {name.split(": ")[-1] for name, on, _ in entries if on == "1"}
    (editor,) = [settings for name, _, settings in entries if name == "Editor: Editor"]
    excluded = dict(re.findall(r"Exclude (\w+): (\d)", text))
    assert {name for name, one in excluded.items() if one == "0"} == enabled, (excluded, enabled)
    return re.search(r"OS: (\w+)", editor)[1], enabled


def program_of(package):
    """The program in the package's README, as pasted."""
    (program,) = re.findall(r"^```csharp\n(.*?)^```$", (package / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    path = package.parent / "Hello.cs"
    path.write_text(program, "utf-8")
    return path


def mcs(program, sources, references, options=()):
    """Compiles for Mono and .NET Framework."""
    call(["mcs", "-langversion:7", "-warnaserror", *options, f"-out:{program}", *(f"-r:{path}" for path in references), *sources])


def coreclr(program, sources, references, options=()):
    """Compiles against CoreCLR's assemblies, among them the ones that forward the types of older assemblies."""
    (folder,) = (CORECLR / "shared" / "Microsoft.NETCore.App").iterdir()
    framework = [path for path in folder.glob("*.dll") if re.match(r"(System\..*|mscorlib|netstandard)\.dll", path.name) and "Native" not in path.name]
    assert framework, f"{CORECLR} has no runtime; run scripts/install-tools.sh coreclr first"
    # mcs insists on .exe; the file may be renamed to .dll. It warns of assemblies that refer to others by another version.
    built = program.with_suffix(".exe")
    mcs(built, sources, [*sorted(framework), *references], ["-nostdlib", "-noconfig", "-nowarn:1701,1702", *options])
    built.rename(program)
    program.with_suffix(".runtimeconfig.json").write_text(
        json.dumps(
            {
                "runtimeOptions": {
                    "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},
                    "configProperties": {"System.Globalization.Invariant": True},
                }
            }
        ),
        "utf-8",
    )


# ---------------------------------------------------------------- running


def environment(more=()):
    """Without variables that would help a program to find the library in another way than its package does."""
    ours = ("MMN_LIBRARY", "LD_LIBRARY_PATH", "MONO_PATH")
    return {**{name: value for name, value in os.environ.items() if name not in ours}, "TERM": "dumb", **dict(more)}


def call(command, more=()):
    done = subprocess.run([str(part) for part in command], env=environment(more), capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def greet(command, more=()):
    """Two instances of the README's program: each receives the other's hello, and ends with its input."""
    with Program([*command, "alice"], more) as alice:
        with Program([*command, "bob", alice.next("others dial (.*)")], more) as bob:
            alice.next("bob: hello")
            bob.next("alice: hello")
            agree([alice, bob], "the leader is (.*)")
            bob.ends_well()
            alice.ends_well()


def agree(programs, pattern):
    """The last matching lines of both have equal first groups."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        named = [program.last(pattern) for program in programs]
        if None not in named and len(set(named)) == 1:
            return
        assert time.monotonic() < deadline, f"{pattern!r} is {named}"
        for program in programs:
            program.read(0.05)


class Program:
    """A process that prints lines, and ends with its input."""

    def __init__(self, command, more=()):
        self.command = [str(part) for part in command]
        self.process = subprocess.Popen(
            self.command, env=environment(more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.printed, self.lines = [], queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.kill()
        self.process.wait()

    def send_line(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def next(self, pattern):
        """The first group, or all, of a line of its output, past or future, that matches as a whole."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            for line in self.printed:
                if found := re.fullmatch(pattern, line):
                    return found[found.re.groups and 1]
            is_open = self.read(deadline - time.monotonic())
            assert is_open and time.monotonic() < deadline, f"{self.command} did not print {pattern!r}:\n" + "\n".join(self.printed)

    def last(self, pattern):
        found = [match for line in self.printed if (match := re.fullmatch(pattern, line))]
        return found[-1][1] if found else None

    def read(self, seconds):
        """Waits for a line; False after the last."""
        with contextlib.suppress(queue.Empty):
            line = self.lines.get(timeout=max(0, seconds))
            if line is None:
                self.lines.put(None)
                return False
            self.printed.append(line)
        return True

    def ends_well(self):
        self.process.stdin.close()
        code = self.process.wait(TIMEOUT_SECONDS)
        while self.read(TIMEOUT_SECONDS):
            pass
        text = "\n".join(self.printed)
        assert code == 0 and "error" not in text and "xception" not in text, f"{self.command} ended with {code}:\n{text}"


if __name__ == "__main__":
    stories.main(globals())
