"""Words of long texts: four times the length must take about four times, whatever the text is made of."""

from __future__ import annotations

import json

from report import arguments, measure

from empatheia.text.words import tokenize_words

PARTS = ("so it's me! ", "a", "'", "...!! ", "don't", "İ ")


def main() -> None:
    """Times each text at two lengths; prints nanoseconds of processor time a character and their ratio."""
    parser = arguments(__doc__ or "", n=1_000_000, n_naive=1)
    options, _ = parser.parse_known_args()  # `make bench ARGS=...` gives all benchmarks the same options
    rows = []
    for part in PARTS:
        costs = []
        for n in (options.n // 4, options.n):
            text = part * max(1, n // len(part))
            row = measure(part, lambda text=text: tokenize_words(text), len(text))
            costs.append((row.processor_seconds or row.seconds) / len(text) * 1e9)
        rows.append({"text": part, "short": round(costs[0], 1), "long": round(costs[1], 1)})
    if options.json:
        print(json.dumps({"words": rows, "characters": options.n}))
        return
    print(f"words: nanoseconds a character, {options.n // 4:,} and {options.n:,} characters")
    for row in rows:
        print(f"  {row['text']!r:16} {row['short']:>10} {row['long']:>10}")


if __name__ == "__main__":
    main()
