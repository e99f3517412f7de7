#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the screen of `tally top` after some seconds as SVG: top.py COLUMNS ROWS SECONDS [KEYS] >picture.svg
TALLY_BUILD is the build tree; the programs to be seen run already."""
import html
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tests/cli"))
from screen import Screen

columns, rows, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
s = Screen([os.environ["TALLY_BUILD"] + "/bin/tally", "top"], columns, rows)
s.wait("tally top")
s.keys(sys.argv[4] if len(sys.argv) > 4 else "")
end = time.monotonic() + seconds
while time.monotonic() < end:
    s.feed(0.1)
s.settle()
lines, styles = list(s.lines), list(s.styles)
s.keys("q")
s.status()

WIDE, HIGH = 7.83, 17
COLOURS = {"33": "#e5c07b", "32": "#98c379"}
out = []
for y, (line, style) in enumerate(zip(lines, styles)):
    top, attributes = y * HIGH + 10, style.split(";")
    fill = next((COLOURS[a] for a in attributes if a in COLOURS), "#dcdfe4")
    if "7" in attributes:
        out.append(f'<rect x="8" y="{top}" width="{columns * WIDE + 4:.0f}" height="{HIGH}" fill="#dcdfe4"/>')
        fill = "#282c34"
    weight = ' font-weight="bold"' if "1" in attributes else ""
    if line.strip():
        out.append(f'<text x="10" y="{top + 13}" fill="{fill}"{weight} xml:space="preserve" '
                   f'textLength="{len(line.rstrip()) * WIDE:.0f}">{html.escape(line.rstrip())}</text>')
print(f'<!-- SPDX-License-Identifier: Apache-2.0 -->\n<svg xmlns="http://www.w3.org/2000/svg" width="{columns * WIDE + 20:.0f}" '
      f'height="{rows * HIGH + 20}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13">'
      f'<rect width="100%" height="100%" rx="6" fill="#282c34"/>' + "\n".join(out) + "</svg>")
