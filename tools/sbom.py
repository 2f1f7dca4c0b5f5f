#!/usr/bin/env python3
"""Writes what a build or a release artefact is made of, as CycloneDX 1.5 (JSON), from what the build really links.

usage: tools/sbom.py BUILD_DIR [ARTEFACT...]
Of BUILD_DIR, its program, libraries and plugins: BUILD_DIR/hexad.cdx.json. Of each ARTEFACT (a .deb, a .tar.gz, or a
folder of tools/bundle.sh) made from that build: ARTEFACT.cdx.json. Prints the names of the files that it has written.
A library is known by the Debian package whose file the loader takes, or by the wheel of tools/wheels.txt that it was
unpacked from; a header that was compiled in likewise, by the build's own record of what each object includes. What no
package has is listed as a file, and told on standard error.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import uuid
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Where a wheel's files lie in the cache, and the wheel (tools/setup.sh).
UNPACKED = ((r"/libtorch-[^/]+/torch/", "torch"),
            (r"/libtorch-[^/]+/nvidia/cu13/lib/libcudart", "nvidia-cuda-runtime"),
            (r"/libtorch-[^/]+/nvidia/cu13/lib/libcupti", "nvidia-cuda-cupti"),
            (r"/arrow-[^/]+/pyarrow/", "pyarrow"),
            (r"/cudnn-frontend-[^/]+/", "nvidia-cudnn-frontend"),
            (r"/flashinfer-[^/]+/", "flashinfer-python"))
VENDORED = "dlpack.h"  # the one header of another project that the SDK has


def die(text):
    sys.exit(f"sbom: {text}")


def said(*command):
    """What a command prints; what it complains of is not an error here."""
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def is_elf(path):
    with open(path, "rb") as file:
        header = file.read(18)
    return header[:4] == b"\x7fELF" and header[16] in (2, 3)


def wheels():
    """Name to version and SHA-256 of the pinned wheels."""
    found, name = {}, None
    for line in (HERE / "wheels.txt").read_text().splitlines():
        if match := re.match(r"([a-z0-9-]+)==(\S+)", line):
            name, version = match.groups()
            found[name] = [version, []]
        if match := re.search(r"--hash=sha256:([0-9a-f]{64})", line):
            found[name][1].append(match[1])
    return found


class Origins:
    """Who has a file: a component without its uses, each made once."""

    def __init__(self):
        self.pins, self.by_path, self.packages = wheels(), {}, {}

    def look_up(self, paths):
        """The packages of many files at once: dpkg reads all its lists for each call."""
        asked = {}
        for path in set(paths) - self.by_path.keys():
            real = os.path.realpath(path)
            for name in {path, os.path.normpath(path), real}:
                for known in (name, name.removeprefix("/usr"), "/usr" + name):
                    asked.setdefault(known, set()).add(path)
            self.by_path[path] = self.wheel(real)
        names = [name for name, paths in asked.items() if not all(self.by_path[path] for path in paths)]
        for begin in range(0, len(names), 500):
            for line in said("dpkg-query", "-S", "--", *names[begin:begin + 500]).splitlines():
                owners, _, file = line.partition(": ")
                if file in asked and not owners.startswith("diversion "):
                    for path in asked[file]:
                        self.by_path[path] = self.by_path[path] or self.package(owners.split(", ")[0])

    def of(self, path):
        self.look_up([path])
        if not self.by_path[path]:
            print(f"sbom: no package and no pinned wheel has {path}", file=sys.stderr)
            self.by_path[path] = {"type": "file", "name": os.path.basename(path), "bom-ref": f"file:{path}",
                                  "hashes": [{"alg": "SHA-256", "content": digest(path)}]}
        return self.by_path[path]

    def wheel(self, path):
        for pattern, name in UNPACKED:
            if re.search(pattern, path):
                if name not in self.pins:
                    die(f"{path} is of the wheel {name}, which tools/wheels.txt does not name")
                version, hashes = self.pins[name]
                ref = f"pkg:pypi/{name}@{version}"
                return {"type": "library", "name": name, "version": version, "purl": ref, "bom-ref": ref,
                        "hashes": [{"alg": "SHA-256", "content": each} for each in hashes]}
        return None

    def package(self, name):
        if name not in self.packages:
            form = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}"
            package, version, arch, source, source_version = said("dpkg-query", "-W", "-f", form, name).split("\t")
            system = dict(re.findall(r'^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text(), re.M))
            quoted = version.replace("+", "%2B").replace(":", "%3A").replace("~", "%7E")
            ref = f"pkg:deb/{system.get('ID', 'debian')}/{package}@{quoted}?arch={arch}"
            if "VERSION_ID" in system:
                ref += f"&distro={system['ID']}-{system['VERSION_ID']}"
            self.packages[name] = {
                "type": "library", "name": package, "version": version, "purl": ref, "bom-ref": ref,
                "properties": [{"name": "hexad:source-package", "value": f"{source} {source_version}"}]}
        return self.packages[name]


class Build:
    """The build that an artefact was made from."""

    def __init__(self, folder):
        self.folder = folder
        cache = folder / "CMakeCache.txt"
        if not cache.exists():
            die(f"{folder} is no build: it has no CMakeCache.txt. Run make build first")
        text = cache.read_text()
        self.version = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(\S+)", text, re.M)[1]
        source = re.search(r"^CMAKE_HOME_DIRECTORY:\w+=(.+)", text, re.M)
        self.source = source[1] if source else str(HERE.parent)
        self.files = {path.name: path for pattern in ("bin/hexad*", "lib/*.so", "lib/hexad/plugins/*.so")
                      for path in sorted(folder.glob(pattern)) if path.is_file() and is_elf(path)}
        self.deps = None

    def headers(self, path):
        """Files of others that were compiled into one of `files`."""
        if not (self.folder / "build.ninja").exists():
            return set()
        if self.deps is None:
            self.deps = self.read_deps()
        inputs = said("ninja", "-C", str(self.folder), "-t", "inputs", str(path.relative_to(self.folder)))
        found = set().union(*(self.deps.get(line.strip(), ()) for line in inputs.splitlines()))
        return {name for name in found if os.path.exists(name)}

    def read_deps(self):
        deps, current = {}, None
        for line in said("ninja", "-C", str(self.folder), "-t", "deps").splitlines():
            if line.startswith("    "):
                name = line.strip()
                ours = not name.startswith("/") or name.startswith((self.source + "/", f"{self.folder}/"))
                if not ours:
                    current.add(name)
            elif ": #deps" in line:
                current = deps.setdefault(line.split(": #deps")[0], set())
        return deps


def libraries(path):
    """What the loader takes for a file, as paths, and what it does not find."""
    found, missing = set(), []
    for line in said("ldd", str(path)).splitlines():
        if match := re.match(r"\s*(\S+) => (/\S+)", line):
            found.add(match[2])
        elif match := re.match(r"\s*(/\S+) \(0x", line):
            found.add(match[1])
        elif match := re.match(r"\s*(\S+) => not found", line):
            missing.append(match[1])
    return found, missing


def cached(name):
    """The library of this name that the system's cache leads to."""
    for line in said("/sbin/ldconfig", "-p").splitlines():
        if match := re.match(rf"\s*{re.escape(name)} .* => (/\S+)", line):
            return match[1]
    return None


def opened(path, linked):
    """Libraries of the system whose names stand in a file as a text of their own: it opens them while it runs. The
    names of those that are `linked` stand there as well, in its string table."""
    names = set(re.findall(rb"(?<=\0)lib[A-Za-z0-9_+-]+\.so(?:\.[0-9]+)+(?=\0)", Path(path).read_bytes()))
    names = {name.decode() for name in names} - {os.path.basename(each) for each in linked}
    return {found for name in names if (found := cached(name))}


class Bom:
    def __init__(self, build, origins, name):
        self.build, self.origins, self.name = build, origins, name
        self.components, self.uses, self.edges = {}, {}, {}

    def add(self, component, use, user):
        ref = component["bom-ref"]
        self.components.setdefault(ref, component)
        self.uses.setdefault(ref, set()).add(use)
        self.edges.setdefault(user, set()).add(ref)
        self.edges.setdefault(ref, set())
        return ref

    def add_file(self, path, name, user):
        return self.add({"type": "library" if ".so" in name else "application", "name": name,
                         "version": self.build.version, "bom-ref": f"hexad:{name}",
                         "hashes": [{"alg": "SHA-256", "content": digest(path)}]}, "own", user)

    def add_elf(self, path, user):
        own = self.build.files.get(path.name)
        if not own:  # a library of others that was taken along
            system = cached(path.name)
            return self.add(self.origins.of(system or str(path)), "bundled", user)
        ref = self.add_file(path, path.name, user)
        found, missing = libraries(own)
        if missing:
            die(f"{own} needs {', '.join(missing)}, which the loader does not find")
        self.origins.look_up(found)
        for library in found:
            if Path(library).name in self.build.files:
                self.edges[ref].add(f"hexad:{Path(library).name}")
            else:
                self.add(self.origins.of(library), "linked", ref)
        for library in opened(own, found):
            self.add(self.origins.of(library), "opened at run time", ref)
        headers = self.build.headers(own)
        self.origins.look_up(headers)
        for header in headers:
            self.add(self.origins.of(header), "headers compiled in", ref)
        return ref

    def add_header(self, path, user):
        version = dict(re.findall(r"#define DLPACK_(MAJOR|MINOR)_VERSION (\d+)", path.read_text()))
        if len(version) != 2:
            die(f"{path} does not say its version")
        number = f"{version['MAJOR']}.{version['MINOR']}"
        ref = f"pkg:github/dmlc/dlpack@v{number}"
        self.add({"type": "library", "name": "dlpack", "version": number, "purl": ref, "bom-ref": ref,
                  "licenses": [{"license": {"id": "Apache-2.0"}}],
                  "hashes": [{"alg": "SHA-256", "content": digest(path)}]}, "bundled", user)

    def json(self):
        components = []
        for ref in sorted(self.components):
            component = dict(self.components[ref])
            uses = [{"name": "hexad:use", "value": use} for use in sorted(self.uses[ref])]
            component["properties"] = component.get("properties", []) + uses
            components.append(component)
        refs = {"hexad"} | self.components.keys()
        dependencies = [{"ref": ref, "dependsOn": sorted(self.edges.get(ref, set()) & refs)} for ref in sorted(refs)]
        metadata = {"component": {"type": "application", "name": self.name, "version": self.build.version,
                                  "bom-ref": "hexad"}}
        body = {"metadata": metadata, "components": components, "dependencies": dependencies}
        # The same build has the same document: its number is of what it says.
        number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
        return {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{number}", "version": 1,
                **body}


def write(bom, out):
    Path(out).write_text(json.dumps(bom.json(), indent=1) + "\n")
    print(out)


def unpack(artefact, folder):
    if artefact.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", str(artefact), folder], check=True)
    elif artefact.name.endswith(".tar.gz"):
        with tarfile.open(artefact) as archive:
            archive.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(folder)
    else:
        die(f"{artefact} is no .deb, no .tar.gz and no folder")
    return Path(folder)


def of_folder(bom, folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if not files:
        die(f"{folder} is empty")
    for path in files:
        if is_elf(path):
            bom.add_elf(path, "hexad")
        elif path.name == VENDORED:
            bom.add_header(path, "hexad")


def main():
    if len(sys.argv) < 2:
        die("wanted BUILD_DIR [ARTEFACT...]")
    build, origins = Build(Path(sys.argv[1]).resolve()), Origins()
    if len(sys.argv) == 2:
        bom = Bom(build, origins, "hexad")
        if not build.files:
            die(f"{build.folder} has no program, library or plugin: run make build first")
        for path in build.files.values():
            bom.add_elf(path, "hexad")
        bom.add_header(HERE.parent / "sdk/include" / VENDORED, "hexad")
        write(bom, build.folder / "hexad.cdx.json")
    for artefact in map(Path, sys.argv[2:]):
        if not artefact.exists():
            die(f"{artefact} is not there")
        bom = Bom(build, origins, artefact.name)
        with tempfile.TemporaryDirectory() as work:
            of_folder(bom, artefact if artefact.is_dir() else unpack(artefact, work))
        write(bom, f"{str(artefact).rstrip('/')}.cdx.json")


if __name__ == "__main__":
    main()
