"""The group, and the commands respond, chat, demo, models and doctor."""

import json
import resource
import subprocess
import sys
import types
from importlib.metadata import EntryPoint

import pytest

from empatheia.cli import listed_commands, main
from empatheia_research.cli import COMMANDS as RESEARCH

COMMANDS = {name: entry.help for name, entry in listed_commands().items()}
"""Commands that ``--help`` lists, and their lines."""

TEXT = "I lost my grandmother last week and I keep her scarf on my desk."


def python(code: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **options)


def test_help_is_fast_and_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from empatheia.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as ended: assert not ended.code\n"
        "heavy = {'torch', 'transformers', 'numpy', 'polars', 'rich', 'nltk'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "own = {name for name in sys.modules if name.startswith('empatheia.cli.') and not name.endswith('_commands')}\n"
        "own -= {'empatheia.cli.output'}\n"
        "assert not own, own\n"
    )
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = python(code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.returncode == 0, done.stderr
    assert min(took) < 0.5, took  # seconds of processor time: a busy machine does not count
    shown = " ".join(done.stdout.split())
    for name, line in COMMANDS.items():
        assert f"{name} {line}" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_options_described(cli, name):
    done = cli(name, "--help")
    assert done.code == 0 and done.err == "" and "Usage: empatheia " + name in done.out


def test_light_commands_import_no_torch(tiny_model):
    code = (
        "import sys\n"
        "from empatheia.cli import main\n"
        "lines = ['analyze', '--help'], ['models', 'list'], ['models', 'show', sys.argv[1]], ['doctor', '--quick']\n"
        "for line in lines:\n"
        "    try: main(line)\n"
        "    except SystemExit: pass\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tiny_model)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_arguments_the_help_is_shown(cli):
    assert cli().out == cli("--help").out == cli("-h").out != ""
    assert cli("--version").out.startswith("empatheia ")
    bare = cli("models")
    assert bare.code == 2 and "list" in bare.err + bare.out


def test_a_command_that_is_not_there_spoils_no_other(cli, monkeypatch):
    monkeypatch.setitem(RESEARCH, "train", ("empatheia.cli.nowhere:train", "Train.", "research"))
    assert "train" in cli("--help").out
    done = cli("train")
    assert done.code == 3 and done.err.startswith("error: the command 'train' needs") and done.err.count("\n") == 1
    assert done.err.endswith("Reinstall the package: pip install --upgrade empatheia\n")


@pytest.mark.parametrize("where", ["import", "run"])
def test_a_command_whose_extra_is_missing_says_how_to_install_it(cli, monkeypatch, where):
    module = types.ModuleType("far_away")

    def train() -> None:
        import nothing_such  # noqa: F401  # pyright: ignore

    module.__dict__["train"] = train
    monkeypatch.setitem(sys.modules, "far_away", module)
    place = "nothing_such:train" if where == "import" else "far_away:train"
    monkeypatch.setitem(RESEARCH, "train", (place, "Train.", "research"))
    done = cli("train")
    said = "the command 'train' needs the module 'nothing_such', which is not installed."
    assert done.code == 3 and done.err == f"error: {said} pip install 'empatheia[research]'\n"


def test_what_joins_a_core_command_says_how_to_install_it(cli, monkeypatch):
    monkeypatch.setitem(RESEARCH, "models train", ("nothing_such:train", "Train a model.", "research"))
    monkeypatch.setitem(RESEARCH, "--system", ("nothing_such:", "", "research"))
    missing = "the module 'nothing_such', which is not installed. pip install 'empatheia[research]'\n"
    assert "train   Train a model." in cli("models", "--help").out
    assert cli("models", "train").err == f"error: the command 'models train' needs {missing}"
    assert cli("respond", TEXT, "--system", "cause_gated").err == f"error: --system needs {missing}"
    assert cli("models", "list").code == 0 and "cause_gated  " in cli("models", "list").out  # the bundled model
    assert "no such command 'models train'" in cli("models train").err and "--system" not in cli("--help").out


def plug_in(monkeypatch, *points: tuple[str, str], **modules: dict) -> None:
    """Entry points of another package, and the modules that they name."""
    for name, content in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    found = [EntryPoint(name, place, "empatheia.commands") for name, place in points]
    monkeypatch.setattr("empatheia.cli.entry_points", lambda group: found)


def test_an_entry_point_is_a_table_of_commands_and_own_names_win(cli, monkeypatch):
    table = {
        "wave": ("waves:wave", "Wave to somebody.", ""),
        "demo": ("waves:wave", "Not ours.", ""),
        "lost": ("waves:lost", "It is broken.", ""),
    }
    plug_in(monkeypatch, ("mine", "waves:COMMANDS"), waves={"COMMANDS": table, "wave": lambda: print("hello")})
    shown = " ".join(cli("--help").out.split())
    assert "wave Wave to somebody." in shown and "Not ours." not in shown and "mine" not in shown
    assert cli("wave").out == "hello\n" and "hello" not in cli("demo", "--help").out
    broken = cli("lost")
    assert broken.code == 3 and "the command 'lost' of waves cannot be loaded: AttributeError" in broken.err


def test_a_broken_plug_in_is_named_and_spoils_nothing(cli, monkeypatch):
    plug_in(monkeypatch, ("mine", "gone_package.commands:COMMANDS"), ("other", "gone_package:other"))
    listed = cli("--help")
    assert listed.code == 0 and "respond" in listed.out
    assert "the commands of gone_package (gone_package.commands) cannot be read: ModuleNotFoundError" in listed.err
    done = cli("other")
    assert done.code == 3 and "Reinstall gone_package, whose command it is." in done.err


def test_respond(cli, tiny_model):
    model = ("--model", str(tiny_model), "--set", "express.decoding.max_new_tokens=8")
    said = cli("respond", TEXT, *model)
    assert said.code == 0 and len(said.out.splitlines()) == 1
    reply = json.loads(cli("respond", TEXT, "--json", *model).out)
    assert reply["model"] == "tiny" and reply["decoding"] == {"strategy": "greedy", "max_new_tokens": 8}
    assert reply["understanding"]["turns"] == [{"role": "speaker", "text": TEXT}]
    several = cli("respond", "Hi.", "Hello.", "I am proud.", "--show", "analysis", *model)
    assert [line.split()[0] for line in several.out.splitlines() if line[0] != " "][:3] == [
        "speaker",
        "listener",
        "speaker",
    ]
    assert several.out.splitlines()[-1].startswith("listener  ") and "feels" in several.out
    lines = cli("respond", "-", "--json", *model, stdin="Hi.\nHello.\n\nI am proud.\n")
    assert [turn["text"] for turn in json.loads(lines.out)["understanding"]["turns"]] == [
        "Hi.",
        "Hello.",
        "I am proud.",
    ]
    sample = ("respond", TEXT, "--strategy", "sample", *model, "--seed")
    assert cli(*sample, "5").out == cli(*sample, "5").out
    emoji = cli("respond", "😭", *model)
    assert emoji.code == 0 and "uncertain: " in emoji.err and "uncertain" not in emoji.out


def test_chat_without_a_terminal(cli, tiny_model):
    lines = b"I lost my dog.\n\n/help\n/nonsense\n\x00\x01\nHe was 14. \xff\xfe\n/reset\nHi.\n/quit\nnever said\n"
    done = cli("chat", "--model", str(tiny_model), stdin=lines)
    assert done.code == 0 and len(done.out.splitlines()) == 3
    assert "no such command '/nonsense'; /help shows them." in done.err
    assert "say something; /help shows the commands." in done.err
    start = done.err.index("  /focus WORDS|auto|off   what")
    told = done.err[start : done.err.index("All else is said to the listener.")].splitlines()
    assert all(len(line) < 80 and line.split()[0].startswith("/") for line in told) and len(told) == 8
    assert "only white space or control characters; write at least one word" in done.err
    assert "the conversation is forgotten" in done.err
    alone = cli("chat", "--model", str(tiny_model), stdin="Hi.")
    assert done.out.splitlines()[2] == alone.out.strip()
    shown = cli("chat", "--show", "analysis", "--model", str(tiny_model), stdin="Hi.\nI am proud.\n")
    assert shown.out.count("feels") == 2 and shown.out.count("listener  ") == 2
    assert cli("chat", "--model", str(tiny_model), stdin="").code == 0


def test_demo(cli, tiny_model):
    done = cli("demo", "--model", str(tiny_model))
    assert done.code == 0 and done.err == ""
    assert done.out.count("speaker") == 2 and done.out.count("listener ") == 2 and "feels" in done.out
    assert "model tiny (cause_gated); weights: none: random weights" in done.out
    assert "chosen" not in done.out
    assert json.loads(cli("demo", "--json", "--model", str(tiny_model)).out)["model"] == "tiny"


def test_models(cli, tiny_copy, monkeypatch):
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tiny_copy.parent))
    (tiny_copy / "card.json").write_text(
        json.dumps({"metrics": {"accuracy": {"value": 44.125}, "note": "x", "ppl_word": 2}})
    )
    entry = next(e for e in json.loads(cli("models", "list", "--json").out) if e["name"] == "model")
    assert entry["system"] == "cause_gated" and entry["origin"] == "EMPATHEIA_MODELS" and entry["fault"] == ""
    assert entry["numbers"] == {"accuracy": 44.125, "ppl_word": 2.0} and entry["licence"] == "none: random weights"
    assert "accuracy 44.12, ppl_word 2" in cli("models", "list").out
    assert "card     none" in cli("models", "show", "model").out
    (tiny_copy / "README.md").write_text("# A card\n")
    assert cli("models", "show", str(tiny_copy)).out == "# A card\n"
    assert json.loads(cli("models", "show", "model", "--json").out)["title"] == "tiny"
    assert cli("models", "show", "./nowhere").code == 3


def test_doctor_names_what_is_missing_and_touches_no_network(cli, tmp_path, monkeypatch):
    import socket

    def refuse(*args, **kwargs):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("EMPATHEIA_DATA", str(tmp_path))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    checks = {check["part"]: check for check in json.loads(cli("doctor", "--quick", "--json").out)}
    assert checks["onnxruntime"]["state"] == "ok" and checks["cache"]["state"] == "ok"
    corpus = checks["corpus empathetic_dialogues"]
    assert corpus["state"] == "optional" and corpus["remedy"] == "empatheia data get empathetic_dialogues"
    for check in checks.values():
        assert check["state"] == "ok" or check["remedy"], check
    assert "vader_lexicon.txt" in checks["lexicon vader"]["remedy"] and "EmpDG" in checks["lexicon vader"]["found"]
    assert "dev,test" in checks["ATOMIC 2020"]["remedy"]
    (tmp_path / "lexicons").mkdir()
    (tmp_path / "lexicons" / "vader_lexicon.txt").write_text("x")
    (tmp_path / "empatheticdialogues").mkdir()
    (tmp_path / "empatheticdialogues" / "train.csv").write_text("x")
    again = {check["part"]: check for check in json.loads(cli("doctor", "--quick", "--json").out)}
    assert again["corpus empathetic_dialogues"]["state"] == again["lexicon vader"]["state"] == "ok"
    monkeypatch.setenv("EMPATHEIA_DATA", str(tmp_path / "nowhere"))
    assert cli("doctor", "--quick").code == 3


def test_a_reader_that_leaves_is_no_error(tiny_model):
    code = "from empatheia.cli import main; main()"
    command = [sys.executable, "-c", code, "data", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert said == b"" and process.returncode in (0, 1)


def test_ctrl_c_is_quiet(monkeypatch, capsys):
    import empatheia.cli.doctor as command

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_packages", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["doctor"])
    assert ended.value.code == 130 and capsys.readouterr().err.strip() == ""


def test_the_greeting_of_chat_is_a_sentence():
    from empatheia.cli.chat import _who

    assert _who("five steps") == "a listener of five steps" and _who("tiny") == "tiny"
