#!/usr/bin/env python3
"""The packages that README.md tells a reader to install have the tree's version, and every `make TARGET` of a page is a
target of the Makefile."""
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


def main():
    readme, now = (ROOT / "README.md").read_text(), version()
    found = [f"README.md has no '{each.format(now)}', and the version is {now}"
             for each in PACKAGES if each.format(now) not in readme]
    file = re.search(r"docker build -t hexad -f (\S+) build/dev/package ", readme)
    if not file or not (ROOT / file[1]).exists():
        found.append("README.md's docker build has no Dockerfile")
    if f"## [{now}]" not in (ROOT / "CHANGELOG.md").read_text():
        found.append(f"CHANGELOG.md has no heading for {now}")
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        found += [f"{page.relative_to(ROOT)}: make {name} is no target" for name in sorted(asked(page) - targets())]
    print("\n".join(found) or "packages and targets are as pages say")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
