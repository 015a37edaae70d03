"""The commands of the core: name -> (place, help, extra).

The table imports nothing, so that ``empatheia --help`` is fast. ``place`` names the function or the
:class:`typer.Typer` of the command; ``extra`` the packages it cannot do without, ``pip install 'empatheia[EXTRA]'``.
Two words are a command that joins the group of the first. What has no help line is no command: another one loads it.
"""

COMMANDS: dict[str, tuple[str, str, str]] = {
    "analyze": (
        "empatheia.cli.analyze:analyze",
        "Find emotions and the words that caused them: text, stdin or file.",
        "",
    ),
    "respond": ("empatheia.cli.respond:respond", "Answer a conversation with one empathetic reply.", ""),
    "chat": ("empatheia.cli.chat:chat", "Talk with a model, turn by turn.", ""),
    "serve": ("empatheia.cli.serve:serve", "Answer over HTTP: OpenAI's protocol, analysis, chat page.", "serve"),
    "mcp": ("empatheia.cli.mcp:mcp", "Offer analysis and replies as tools for assistants (MCP).", "mcp"),
    "care": ("empatheia.cli.care:app", "Check texts for danger, measure the check, show help lines.", ""),
    "demo": (
        "empatheia.cli.demo:demo",
        "Show analysis and replies on short conversations, with the bundled model.",
        "",
    ),
    "models": ("empatheia.cli.models:app", "List models, show their cards, train or fetch more.", ""),
    "score": (
        "empatheia.cli.score:score",
        "Measure any replies: text files, or a file released with a paper.",
        "score",
    ),
    "doctor": ("empatheia.cli.doctor:doctor", "Show what is installed, what is missing and how to get it.", ""),
}
