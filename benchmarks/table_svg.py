#!/usr/bin/env python3
"""Draws what benchmarks/table.py measured, as times the mark to beat, beside the targets.

    benchmarks/table_svg.py results/table/summary.json OUT.svg

A bar is value / mark (mark / value where less is better); the line on it is the target. Measures without a mark are
left out, and bars longer than the drawing end in an arrow with their number.
"""
import html
import json
import sys

from table import short

WIDTH, LEFT, RIGHT, TOP, ROW, LONGEST = 760, 250, 110, 48, 26, 2.2
REACHED, BELOW, INK = "#0b62c4", "#9aa7b8", "#333"


def ratio(line, value):
    return line["mark"] / value if line["less"] else value / line["mark"]


def draw(lines):
    lines = [line for line in lines if line["mark"]]
    height = TOP + ROW * len(lines) + 30
    x = lambda times: LEFT + (WIDTH - LEFT - RIGHT) * min(times, LONGEST) / LONGEST
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
           f'font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="12" y="20" font-size="14" font-weight="bold">Times the mark to beat</text>',
           f'<text x="12" y="36" fill="{INK}">line: target; blue: reached; * mark of another run</text>']
    for times in (0, 0.5, 1, 1.5, 2):
        colour = "#555" if times == 1 else "#e3e6ea"
        out.append(f'<line x1="{x(times):.1f}" x2="{x(times):.1f}" y1="{TOP}" y2="{height - 24}" stroke="{colour}"/>'
                   f'<text x="{x(times):.1f}" y="{height - 8}" text-anchor="middle" fill="#555">{times:g}</text>')
    for row, line in enumerate(lines):
        top, times = TOP + ROW * row, ratio(line, line["value"])
        name = html.escape(line["name"]) + ("" if line["same_run"] else " *")
        beyond = f" ({times:.0f} x) →" if times > LONGEST else ""
        out.append(f'<text x="{LEFT - 8}" y="{top + 17}" text-anchor="end" fill="{INK}">{name}</text>'
                   f'<rect x="{LEFT}" y="{top + 5}" width="{x(times) - LEFT:.1f}" height="{ROW - 9}" '
                   f'fill="{REACHED if line["reached"] else BELOW}"/>'
                   f'<text x="{x(times) + 6:.1f}" y="{top + 17}" fill="{INK}">{short(line["value"])}{beyond}</text>')
        goal = x(ratio(line, line["target"]))
        out.append(
            f'<line x1="{goal:.1f}" x2="{goal:.1f}" y1="{top + 2}" y2="{top + ROW - 1}" stroke="#d33" '
            f'stroke-width="2"/>')
    return "\n".join(out) + "\n</svg>\n"


def main(source, target):
    with open(source) as file:
        picture = draw(json.load(file))
    with open(target, "w") as file:
        file.write(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
