#!/usr/bin/env python3
"""The packages that README.md tells a reader to install have the tree's version, containers are given GPUs where their
image has libraries for them, and every `make TARGET` of a page is a target of the Makefile."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ("pip install hexad-{}-py3-none-manylinux_2_35_x86_64.whl ", "tar xf hexad-{}-linux-x86_64.tar.gz ",
            "hexad-{}-linux-x86_64/install.sh ", "sudo apt install ./hexad_{}_amd64.deb ")


def version():
    alone = ROOT / "sdk/VERSION"
    if alone.exists():
        return alone.read_text().strip()
    return re.search(r"project\(hexad VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def targets():
    return set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.M))


def asked(page):
    """Targets in code: `make test`, and lines of blocks that begin with make."""
    text = page.read_text()
    blocks = "\n".join(re.findall(r"^```.*?^```", text, re.M | re.S))
    return set(re.findall(r"`make ([a-z][a-z0-9-]*)", text) + re.findall(r"^make ([a-z][a-z0-9-]*)", blocks, re.M))


def wrong_containers(page, arguments):
    """Commands with GPUs and an image for CPUs, or the other way; with a folder and not the caller's number; with a
    build argument that the Dockerfile does not have."""
    for command in re.findall(r"^docker (?:[^\n]*\\\n)*[^\n]*", page.read_text(), re.M):
        built = re.findall(r"--build-arg (\w+)=", command)
        if command.startswith("docker build") and ("hexad-cuda" in command) != ("--build-arg TORCH=cuda" in command):
            yield f"{command}: hexad-cuda is what is built with TORCH=cuda"
        if command.startswith("docker run") and ("hexad-cuda" in command) != ("--gpus" in command):
            yield f"{command}: hexad-cuda is the image that is given GPUs"
        if "$PWD:/work" in command and '--user "$(id -u):$(id -g)"' not in command:
            yield f"{command}: the image's own user may not write to the folder"
        for name in set(built) - arguments:
            yield f"{command}: the Dockerfile has no ARG {name}"


def main():
    readme, now = (ROOT / "README.md").read_text(), version()
    found = [f"README.md has no '{each.format(now)}', and the version is {now}"
             for each in PACKAGES if each.format(now) not in readme]
    file = re.search(r"docker build -t hexad -f (\S+) build/dev/package ", readme)
    if not file or not (ROOT / file[1]).exists():
        found.append("README.md's docker build has no Dockerfile")
    arguments = set(re.findall(r"^ARG (\w+)", (ROOT / "tools/package/Dockerfile").read_text(), re.M))
    for page in (ROOT / "README.md", ROOT / "docs/install.md"):
        found += [f"{page.name}: {each}" for each in wrong_containers(page, arguments)]
    if f"## [{now}]" not in (ROOT / "CHANGELOG.md").read_text():
        found.append(f"CHANGELOG.md has no heading for {now}")
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        found += [f"{page.relative_to(ROOT)}: make {name} is no target" for name in sorted(asked(page) - targets())]
    print("\n".join(found) or "packages and targets are as pages say")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
