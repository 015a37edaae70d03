"""The commands of research, as :mod:`empatheia.cli.core_commands` has those of the core; the table imports nothing."""

COMMANDS: dict[str, tuple[str, str, str]] = {
    "data": ("empatheia.cli.data:app", "Get, show and count corpora.", "research"),
    "train": ("empatheia.cli.train:train", "Train recipes; stopped runs continue.", "research"),
    "queue": ("empatheia.cli.queue:app", "Train a queue of recipes in order; a stopped one continues.", "research"),
    "evaluate": (
        "empatheia.cli.evaluate:evaluate",
        "Score a run and print it beside the published row.",
        "research",
    ),
    "reproduce": (
        "empatheia.cli.reproduce:reproduce",
        "Compare a published table with our runs, and name the missing ones.",
        "research",
    ),
    "plot": (
        "empatheia.cli.plot:app",
        "Plot curves, confusions, labels, lengths and trade-offs of runs.",
        "research",
    ),
    "leaderboard": (
        "empatheia.cli.leaderboard:leaderboard",
        "Write a page of all runs: sort, filter, replies side by side.",
        "research",
    ),
    "annotate": (
        "empatheia.cli.annotate:annotate",
        "Label causes, emotions or mechanisms of a corpus with a trained model.",
        "research",
    ),
    "infer": (
        "empatheia.cli.infer:infer",
        "Write commonsense inferences about every speaker turn to a file; build the index.",
        "research",
    ),
    "models train": (
        "empatheia.cli.models_training:train_models",
        "Train the model of a part, and install it.",
        "research",
    ),
    "models export": (
        "empatheia.cli.models_training:export_models",
        "Pack models into one archive that others install by 'models get'.",
        "research",
    ),
    "models pull": (
        "empatheia.cli.models_training:pull_model",
        "Fetch a model from the hub, and install it for a part or a system.",
        "research",
    ),
    "--system": ("empatheia.listener.systems:", "", "research"),
    "package": ("empatheia.cli.package:package", "Turn a finished run into a model folder with its card.", "research"),
}
