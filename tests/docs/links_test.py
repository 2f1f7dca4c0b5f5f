#!/usr/bin/env python3
"""Every link of a page to a file of the tree, and to a heading in one, leads somewhere; docs/README.md names every page
of docs/."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^()\s]+)\)")


def pages():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    return [path for path in ROOT.rglob("*.md") if "build" not in path.relative_to(ROOT).parts]


def anchors(path):
    """As GitHub makes them of headings."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", FENCED.sub("", path.read_text()), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def broken(page):
    for target in LINK.findall(FENCED.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists():
            yield f"{target} is not there"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield f"{target}: {path.name} has no such heading"


def main():
    found = [f"{page.relative_to(ROOT)}: {what}" for page in pages() for what in broken(page)]
    index = (ROOT / "docs/README.md").read_text()
    for page in sorted((ROOT / "docs").glob("*.md")):
        if page.name != "README.md" and f"({page.name}" not in index:
            found.append(f"docs/README.md does not name {page.name}")
    print("\n".join(found) or "every link leads somewhere")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
