"""The commands of studies and curation, as :mod:`empatheia.cli.core_commands` has the core's; imports nothing."""

COMMANDS: dict[str, tuple[str, str, str]] = {
    "judge": (
        "empatheia_people.cli.judge:judge",
        "Let a language model compare two systems' replies, in both orders.",
        "people",
    ),
    "study": (
        "empatheia_people.cli.study:app",
        "Run studies with people: ratings, comparisons, live talks, collection.",
        "people",
    ),
    "curate": ("empatheia_people.cli.curate:app", "Make dialogue corpora out of subtitles and chats.", "people"),
    "analyze --engine dask": ("empatheia_people.cli.analyze_shards:analyze_files", "", "people"),
}
