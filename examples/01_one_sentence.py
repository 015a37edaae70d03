"""One sentence: which emotions, which words caused them, and what one could answer."""

import empatheia

SENTENCE = "I finally passed my driving test after failing it three times!"

analysis = empatheia.analyze(SENTENCE)

print(SENTENCE)
strongest = sorted(analysis.newest.emotions.items(), key=lambda item: -item[1])[:3]
print("feels:  ", ", ".join(f"{name} {probability:.0%}" for name, probability in strongest))
for cause in analysis.newest.causes:
    print("because:", cause.of(analysis.dialogue.turns), f"({cause.score:.2f})")

# The same words as offsets into the text, for a program that highlights them:
text = analysis.dialogue.turns[0].text
marks = [" "] * len(text)
for cause in analysis.newest.causes:
    marks[cause.start : cause.end] = "^" * (cause.end - cause.start)
print(f"\n{text}\n{''.join(marks)}\n")

print("answer: ", empatheia.respond(SENTENCE).text)
