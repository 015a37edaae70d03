"""The commands of research, as :mod:`empatheia.cli.core_commands` has those of the core; the table imports nothing."""

COMMANDS: dict[str, tuple[str, str, str]] = {
    "data": ("empatheia_research.cli.data:app", "Get, show and count corpora.", "research"),
    "train": ("empatheia_research.cli.train:train", "Train recipes; stopped runs continue.", "research"),
    "queue": (
        "empatheia_research.cli.queue:app",
        "Train a queue of recipes in order; a stopped one continues.",
        "research",
    ),
    "evaluate": (
        "empatheia_research.cli.evaluate:evaluate",
        "Score a run and print it beside the published row.",
        "research",
    ),
    "reproduce": (
        "empatheia_research.cli.reproduce:reproduce",
        "Compare a published table with our runs, and name the missing ones.",
        "research",
    ),
    "plot": (
        "empatheia_research.cli.plot:app",
        "Plot curves, confusions, labels, lengths and trade-offs of runs.",
        "research",
    ),
    "leaderboard": (
        "empatheia_research.cli.leaderboard:leaderboard",
        "Write a page of all runs: sort, filter, replies side by side.",
        "research",
    ),
    "annotate": (
        "empatheia_research.cli.annotate:annotate",
        "Label causes, emotions or mechanisms of a corpus with a trained model.",
        "research",
    ),
    "infer": (
        "empatheia_research.cli.infer:infer",
        "Write commonsense inferences about every speaker turn to a file; build the index.",
        "research",
    ),
    "models train": (
        "empatheia_research.cli.models_training:train_models",
        "Train the model of a part, and install it.",
        "research",
    ),
    "models get": (
        "empatheia_research.cli.models_getting:get_models",
        "Get the base models of the default listener, or install an archive of models.",
        "research",
    ),
    "models remove": (
        "empatheia_research.cli.models_getting:remove_model",
        "Remove models that were installed.",
        "research",
    ),
    "models export": (
        "empatheia_research.cli.models_training:export_models",
        "Pack models into one archive that others install by 'models get'.",
        "research",
    ),
    "models pull": (
        "empatheia_research.cli.models_training:pull_model",
        "Fetch a model from the hub, and install it for a part or a system.",
        "research",
    ),
    "--system": ("empatheia_research.voices.systems:", "", "research"),
    "package": (
        "empatheia_research.cli.package:package",
        "Turn a finished run into a model folder with its card.",
        "research",
    ),
}
