"""A conversation that is going on: the model answers the last turn with the earlier ones in view."""

from empatheia import Decoding, Dialogue, Listener

dialogue = Dialogue.of(
    "My sister and I have not spoken for two years.",
    "That sounds painful. What happened between you?",
    "We argued about our parents' house. Yesterday she called me out of the blue.",
)

listener = Listener.load()
reply = listener.respond(dialogue)
print("reflected", reply.text)

small = Listener.load("gao2021-small")  # a responder that generates, and so can do it in several ways
for strategy in ("greedy", "beam", "sample"):
    print(f"{strategy:<9}", small.respond(dialogue, decoding=Decoding(strategy=strategy, seed=7)).text)

analysis = reply.analysis
print("\nbefore answering it saw", analysis.newest.emotion.label, "in")
for span in analysis.newest.causes:
    role = analysis.dialogue.turns[span.turn].role
    words = span.of(analysis.dialogue.turns)
    print(f"  turn {span.turn} ({role}), characters {span.start}-{span.end}: {words!r}")

# Turn by turn, as a program with a chat window would:
print()
conversation = listener.converse()
for text in ("I start my first job on Monday.", "What if nobody there likes me?"):
    print("you     ", text)
    print("listener", conversation.say(text).text)
