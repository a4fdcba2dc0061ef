"""The look of the page: light and dark, on screens and on paper."""

from typing import Final

CSS: Final = """
:root {
  color-scheme: light dark;
  --paper: #f4f6f8; --card: #ffffff; --ink: #1b2530; --quiet: #566575; --line: #dfe5eb;
  --best: #0072b2; --best-soft: #e6f1f8; --accent: #00607f; --code: #eef2f5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #10171e; --card: #18212b; --ink: #e5ebf1; --quiet: #9dabb9; --line: #2a3744;
    --best: #56b4e9; --best-soft: #1b3345; --accent: #7cc7ee; --code: #121a22;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif;
}
main { max-width: 1080px; margin: 0 auto; padding: 40px 24px 64px; }
header p.eyebrow {
  margin: 0; color: var(--accent); font-size: 13px; font-weight: 600; letter-spacing: .08em; text-transform: uppercase;
}
h1 { margin: 4px 0 12px; font-size: 30px; line-height: 1.2; letter-spacing: -.01em; }
h2 { margin: 0 0 4px; font-size: 20px; letter-spacing: -.005em; }
h3 { margin: 24px 0 6px; font-size: 16px; }
p { margin: 0 0 12px; }
p.lead { font-size: 19px; line-height: 1.45; max-width: 52em; }
p.note, figcaption { color: var(--quiet); font-size: 14px; }
a { color: var(--accent); }
section, .tiles { margin-top: 24px; }
section {
  background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 24px;
}
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(210px, 1fr)); gap: 16px; padding: 0; }
.tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 16px 20px; }
.tiles dt { color: var(--quiet); font-size: 13px; }
.tiles dd { margin: 0; }
.tiles dd.value { font-size: 28px; font-weight: 650; line-height: 1.25; letter-spacing: -.02em; }
.tiles dd.more { color: var(--quiet); font-size: 13px; }
.tiles div.first { background: var(--best-soft); border-color: var(--best); }
.tiles div.first dd.value { color: var(--best); }
figure { margin: 12px 0 0; }
figure img { display: block; width: 100%; height: auto; }
figcaption { margin-top: 8px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin-top: 12px; font-size: 14px; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--quiet); padding-bottom: 8px; }
th, td { padding: 7px 10px; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th {
  color: var(--quiet); font-weight: 600; font-size: 13px; line-height: 1.3; vertical-align: bottom;
  border-bottom-width: 2px;
}
td.n, th.n { text-align: right; }
td.n { white-space: nowrap; }
td.wide { min-width: 18em; font-size: 13px; }
tbody th { font-weight: 500; min-width: 9em; overflow-wrap: anywhere; }
section .scroll + .scroll { margin-top: 28px; }
tr.best th, tr.best td { background: var(--best-soft); font-weight: 600; }
tr:last-child th, tr:last-child td { border-bottom: 0; }
.badge {
  display: inline-block; margin-left: 6px; padding: 0 8px; border: 1px solid currentColor; border-radius: 999px;
  color: var(--quiet); font-size: 12px; font-weight: 600; white-space: nowrap;
}
tr.best .badge { color: var(--best); }
code, pre { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 13px; }
pre {
  margin: 8px 0 12px; padding: 12px 16px; background: var(--code); border: 1px solid var(--line); border-radius: 8px;
  white-space: pre-wrap; overflow-wrap: anywhere;
}
ul { margin: 8px 0 0; padding-left: 22px; }
li { margin-bottom: 6px; }
summary { cursor: pointer; font-weight: 600; margin-top: 12px; }
footer { margin-top: 24px; color: var(--quiet); font-size: 13px; }
@media (max-width: 640px) {
  main { padding: 24px 12px 40px; } section { padding: 16px; } h1 { font-size: 24px; } p.lead { font-size: 17px; }
}
@media print {
  :root {
    --paper: #fff; --card: #fff; --ink: #000; --quiet: #444; --line: #ccc; --best: #005a8c; --best-soft: #eef5fa;
    --accent: #004b66; --code: #f6f6f6;
  }
  @page { margin: 14mm; }
  body { font-size: 11pt; }
  main { max-width: none; padding: 0; }
  section { border: 0; padding: 0; break-inside: auto; }
  .tiles { grid-template-columns: repeat(4, 1fr); gap: 8px; }
  .tiles div { padding: 8px 12px; }
  .tiles dd.value { font-size: 18pt; }
  figure, tr, .tiles div { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .scroll { overflow: visible; }
  table { font-size: 8.5pt; }
  th, td { padding: 3px 5px; }
  td.wide, tbody th { min-width: 0; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
""".strip()
