#!/usr/bin/env python3
"""Every message that docs/troubleshooting.md quotes is one of the sources': its pieces between `…` stand in one text
there, in this order. A text is what C++ makes of literals that follow each other; {} and %s in it are what differs."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("app", "compat", "core", "lib", "modeling", "plugins", "runtime")
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
DIFFERS = re.compile(r"\{[^{}]*\}|%[-0-9.]*(?:ll|z)?[a-z]")


def texts():
    found = set()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.?pp")):
            for literal in LITERALS.findall(path.read_text(errors="replace")):
                text = re.sub(r'"\s*"', "", literal)[1:-1].replace('\\"', '"').replace("\\n", "\n")
                found.add(DIFFERS.sub("\0", text))
    return found


def pieces(message):
    return [piece for piece in (part.strip() for part in message.split("…")) if piece]


def stands(message, known):
    """Among the sources' texts, with nothing between two pieces that the page does not mark."""
    pattern = re.compile(r"[^\n]*?\0[^\n]*?".join(re.escape(piece) for piece in pieces(message)))
    return any(pattern.search(text) for text in known)


def quoted(page):
    for block in re.findall(r"^```\n(.*?)^```", page, re.M | re.S):
        yield from block.splitlines()


def main():
    known = texts()
    if stands("no free port in […, …): narrow cluster.master_port_range_low", known):
        sys.exit("this test finds what no source says")
    messages = list(quoted((ROOT / "docs/troubleshooting.md").read_text()))
    if len(messages) < 30:
        sys.exit(f"{len(messages)} messages were found in the page: its form has changed")
    unknown = [message for message in messages if not stands(message, known)]
    for message in unknown:
        print(f"docs/troubleshooting.md quotes what no source says: {message}")
    print(f"{len(messages)} messages, {len(unknown)} unknown")
    return bool(unknown)


if __name__ == "__main__":
    sys.exit(main())
