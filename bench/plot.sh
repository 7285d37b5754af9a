#!/bin/sh
# Draws bars on a logarithmic scale: bench/plot.sh "TITLE" < table.tsv > plot.svg, where each line of the table is NAME<tab>VALUE.
# The first line is drawn as ours. Light and dark come from the viewer's own settings.
set -eu
title="${1:?usage: bench/plot.sh TITLE < table.tsv > plot.svg}"
awk -F '\t' -v title="$title" '
function log10(x) { return log(x) / log(10) }
function grouped(x,   text, out) {
  text = sprintf("%d", x + 0.5)
  while (length(text) > 3) { out = "," substr(text, length(text) - 2) out; text = substr(text, 1, length(text) - 3) }
  return text out
}
NF == 2 && $2 > 0 { count++; name[count] = $1; value[count] = $2; if ($2 > most) most = $2; if (least == 0 || $2 < least) least = $2 }
END {
  if (count == 0) exit 1
  low = int(log10(least)); high = int(log10(most)) + 1
  left = 230; width = 420; row = 34; top = 54
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 %d\" font-family=\"sans-serif\" font-size=\"14\" role=\"img\">\n", top + count * row + 30
  printf "<title>%s</title>\n", title
  print "<style>text{fill:#222}.grid{stroke:#ccc}.ours{fill:#1a7f5a}.other{fill:#8a8f98}@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}}</style>"
  printf "<text x=\"10\" y=\"24\" font-size=\"16\" font-weight=\"bold\">%s</text>\n", title
  for (power = low; power <= high; power++) {
    x = left + width * (power - low) / (high - low)
    printf "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>", x, top - 8, x, top + count * row
    printf "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" font-size=\"11\">%s</text>\n", x, top + count * row + 16, grouped(10 ^ power)
  }
  for (i = 1; i <= count; i++) {
    y = top + (i - 1) * row
    long = width * (log10(value[i]) - low) / (high - low)
    printf "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", left - 10, y + 17, name[i]
    printf "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"22\" rx=\"3\"/>", i == 1 ? "ours" : "other", left, y, long
    printf "<text x=\"%.1f\" y=\"%d\">%s</text>\n", left + long + 8, y + 17, grouped(value[i])
  }
  print "</svg>"
}'
