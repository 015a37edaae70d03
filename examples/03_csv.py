"""A table of messages: which emotions are there, and which messages should a person look at first?"""

import csv
import tempfile
from collections import Counter
from pathlib import Path

import empatheia

MESSAGES = [
    ("1", "My order arrived broken for the second time and nobody answers my mails."),
    ("2", "Thank you so much, the replacement came within a day!"),
    ("3", "I am worried that the medicine will not be here before my trip."),
    ("4", "I ordered the wrong size, my own fault, sorry for the trouble."),
    ("5", "You charged me twice!! This is outrageous."),
]
WORRYING = {"angry", "furious", "annoyed", "disappointed", "afraid", "anxious", "terrified", "devastated"}

path = Path(tempfile.mkdtemp()) / "messages.csv"
with path.open("w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerows([("id", "text"), *MESSAGES])

with path.open(newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))

results = empatheia.analyze([row["text"] for row in rows])

counts = Counter(result.newest.emotion.label for result in results)
print("emotions:", ", ".join(f"{name} {n}" for name, n in counts.most_common()))
print("\nto look at first:")


def urgency(analysis):
    return sum(probability for name, probability in analysis.newest.emotions.items() if name in WORRYING)


for row, result in sorted(zip(rows, results, strict=True), key=lambda pair: -urgency(pair[1])):
    causes = "; ".join(cause.of(result.dialogue.turns) for cause in result.newest.causes) or "no cause found"
    print(f"{urgency(result):4.0%}  message {row['id']}: {result.newest.emotion.label} because of: {causes}")

# The same from the shell, in constant memory and with bad rows reported:
#   empatheia analyze messages.csv --column text --out messages.emotions.csv
