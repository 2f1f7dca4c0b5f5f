#!/usr/bin/env python3
"""Draws measurements beside a peer's, each pair with its unit, versions and machine, readable in light and dark.

    benchmarks/peers_svg.py docs/peers.json docs/peers.svg

The file holds groups, {"machine", "script", "measured", "rows"}; a row is {"what", "unit", "ours", "peer", "by"}, by:
the peer with its version, and "less": true where less is better. Bars of a pair share a scale, on which the longer one
is whole: lengths of different pairs say nothing about each other.
"""
import html
import json
import sys

WIDTH, LEFT, LONGEST, BAR, PAIR, HEAD = 860, 300, 300, 13, 46, 44
STYLE = """<style>
  text { fill: #1b2330; }
  .paper { fill: #fff; }
  .soft { fill: #5b6577; font-size: 12px; }
  .name { font-weight: 600; font-size: 14px; }
  .ours { fill: #2f6fde; }
  .peer { fill: #9aa7b8; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ef; }
    .paper { fill: #191e27; }
    .soft { fill: #a4adbd; }
    .ours { fill: #7fadff; }
    .peer { fill: #6b7689; }
  }
</style>"""


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def text(x, y, words, more=""):
    return f'<text x="{x}" y="{y:.1f}"{more}>{html.escape(words)}</text>'


def pair(row, top):
    longer, times = max(row["ours"], row["peer"]), row["ours"] / row["peer"]
    if row.get("less"):
        times = 1 / times
    note = f"{times:.2f} times {'as fast' if row.get('less') else 'the peer'}"
    out = [text(LEFT - 10, top + 12, row["what"], ' text-anchor="end"'),
           text(LEFT - 10, top + 28, row["unit"] + (", less is better" if row.get("less") else ""),
                ' text-anchor="end" class="soft"')]
    for at, (side, name) in enumerate((("ours", f"Hexad, {note}"), ("peer", row["by"]))):
        y, length = top + at * (BAR + 4), LONGEST * row[side] / longer
        out += [f'<rect class="{side}" x="{LEFT}" y="{y:.1f}" width="{length:.1f}" height="{BAR}" rx="2"/>',
                text(round(LEFT + length + 6, 1), y + 11, f"{number(row[side])}  {name}", ' class="soft"')]
    return out


def draw(groups):
    height = sum(HEAD + PAIR * len(group["rows"]) for group in groups) + 16
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           'font-family="system-ui, sans-serif" font-size="13">', STYLE,
           f'<rect class="paper" width="{WIDTH}" height="{height}" rx="10"/>']
    top = 8
    for group in groups:
        out += [text(16, top + 18, group["machine"], ' class="name"'),
                text(16, top + 35, f"{group['script']}, measured {group['measured']}", ' class="soft"')]
        top += HEAD
        for row in group["rows"]:
            out += pair(row, top + 4)
            top += PAIR
    return "\n".join(out) + "\n</svg>\n"


def main(source, target):
    with open(source) as file:
        picture = draw(json.load(file)["groups"])
    with open(target, "w") as file:
        file.write(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
