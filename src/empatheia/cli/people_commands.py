"""The commands of studies and curation, as :mod:`empatheia.cli.core_commands` has the core's; imports nothing."""

COMMANDS: dict[str, tuple[str, str, str]] = {
    "judge": (
        "empatheia.cli.judge:judge",
        "Let a language model compare two systems' replies, in both orders.",
        "people",
    ),
    "study": (
        "empatheia.cli.study:app",
        "Run studies with people: ratings, comparisons, live talks, collection.",
        "people",
    ),
    "curate": ("empatheia.cli.curate:app", "Make dialogue corpora out of subtitles and chats.", "people"),
    "analyze --engine dask": ("empatheia.cli.analyze_shards:analyze_files", "", "people"),
}
