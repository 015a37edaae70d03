"""Share of a corpus's speaker turns that the check flags, each flagged one with its reasons, to be read one by one."""

from __future__ import annotations

import argparse
import json

from empatheia.care import Detector
from empatheia.care.evaluating import Share
from empatheia_research.corpora import CORPORA


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="empathetic_dialogues", help="a name from 'empatheia data list'")
    parser.add_argument("--split", default="test")
    parser.add_argument("--small", action="store_true", help="by the small classifier, as without the encoder")
    options = parser.parse_args()

    detector = Detector(encoder=not options.small)
    loaded = CORPORA.get(options.corpus)(options.split)
    texts = [turn.text for dialogue in loaded.dialogues for turn in dialogue.turns if turn.role == "speaker"]
    flagged = {"concern": 0, "crisis": 0}
    for text in texts:
        found = detector.assess(text)
        if found.is_flagged:
            flagged[found.level] += 1
            print(json.dumps({"level": found.level, "text": text, "reasons": found.reasons}, ensure_ascii=False))
    for level, n in flagged.items():
        print(f"{level}: {Share(n, len(texts))}")


if __name__ == "__main__":
    main()
