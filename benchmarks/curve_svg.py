#!/usr/bin/env python3
"""Draws a run's curves as an SVG file. usage: curve_svg.py METRICS.jsonl OUT.svg TITLE"""
import json
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 48, 16, 34, 40


def draw(target, title, curves):
    """curves: {name: (colour, [[(step, value in 0..1), ...], ...])}. Lines of one name have one colour; a name with a
    single line has dots too."""
    last = max(step for _, lines in curves.values() for line in lines for step, _ in line)
    x = lambda step: LEFT + (WIDTH - LEFT - RIGHT) * step / last
    y = lambda value: TOP + (HEIGHT - TOP - BOTTOM) * (1 - value)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/><text x="{LEFT}" y="18" font-size="14" '
           f'font-weight="bold">{title}</text>']
    for value in (0, 0.2, 0.4, 0.6, 0.8, 1):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#e3e6ea"/>'
                   f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#555">{value:g}</text>')
    for step in range(0, last + 1, max(1, last // 10)):
        out.append(f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#555">{step}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle" fill="#555">step</text>')
    # Names stand where no line is: below what has risen, or above what stays low.
    low = max(value for _, lines in curves.values() for line in lines for _, value in line) < 0.6
    names_x, names_y = (LEFT + 16, y(0.94)) if low else (WIDTH - 380, y(0.34))
    for row, (name, (colour, lines)) in enumerate(curves.items()):
        width = 2.5 if len(lines) == 1 else 1.2
        for points in lines:
            path = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in points)
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        if len(lines) == 1:
            out += [f'<circle cx="{x(s):.1f}" cy="{y(v):.1f}" r="3" fill="{colour}"/>' for s, v in lines[0]]
        top = names_y + 20 * row
        out.append(f'<line x1="{names_x}" x2="{names_x + 25}" y1="{top - 4:.1f}" y2="{top - 4:.1f}" stroke="{colour}" '
                   f'stroke-width="2.5"/><text x="{names_x + 32}" y="{top:.1f}" fill="#333">{name}</text>')
    open(target, "w").write("\n".join(out) + "\n</svg>\n")


def main(source, target, title):
    lines = [json.loads(line) for line in open(source)]
    of = lambda name: [[(l["step"], l[name]) for l in lines if name in l]]
    draw(target, title, {
        "training reward (mean of the step's samples)": ("#9aa7b8", of("train/reward")),
        "validation accuracy, temperature 1, unseen questions": ("#0b62c4", of("validation/accuracy")),
    })


if __name__ == "__main__":
    main(*sys.argv[1:])
