"""A model folder is read and never run: no code of its own, no pickle, no question on stdin, no link that leads out."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "understanding"))

from tiny_causes import entailment_model, spans_model
from tiny_classifiers import encoder_classifier

from empatheia.errors import CheckpointError, MissingDependencyError, MissingResourceError
from empatheia_research.pretrained import build_pretrained, load_pretrained, load_weights
from tiny_language_models import make_folder

CODE = """
import os
from pathlib import Path

Path({ran!r}).write_text("the folder's code ran")
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast


class EvilConfig(PreTrainedConfig):
    model_type = "evil"


class EvilModel(PreTrainedModel):
    config_class = EvilConfig


class EvilTokenizer(PreTrainedTokenizerFast):
    pass
"""
AUTO = {"AutoConfig": "evil.EvilConfig"} | dict.fromkeys(
    ("AutoModel", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM"), "evil.EvilModel"
)


@pytest.fixture
def ran(tmp_path, monkeypatch) -> Path:
    """The file that the code of a folder writes when it runs; whoever is asked says yes."""
    monkeypatch.setattr("builtins.input", lambda *question: "y")
    return tmp_path / "ran.txt"


@pytest.fixture(params=["model", "tokenizer"])
def evil(request, tmp_path, ran) -> Path:
    """A folder whose model, or whose tokenizer alone, is known only by the code in it."""
    folder = make_folder(tmp_path / "evil")
    (folder / "evil.py").write_text(CODE.format(ran=str(ran)))
    config = json.loads((folder / "config.json").read_text())
    described = json.loads((folder / "tokenizer_config.json").read_text())
    if request.param == "model":
        config |= {"model_type": "evil", "auto_map": AUTO}
    described |= {"tokenizer_class": "EvilTokenizer", "auto_map": {"AutoTokenizer": [None, "evil.EvilTokenizer"]}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps(described))
    return folder


def test_the_folder_is_as_bad_as_it_is_meant_to_be(evil, ran, monkeypatch, tmp_path):
    """Read without the one door, and with a yes, its code runs."""
    from transformers import AutoTokenizer

    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    AutoTokenizer.from_pretrained(evil)
    assert ran.is_file()


@pytest.mark.parametrize("name", ["AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoTokenizer"])
def test_code_in_a_folder_is_not_run(evil, ran, name):
    import transformers

    try:
        load_pretrained(getattr(transformers, name), evil, "the beginning", "The end.")
    except CheckpointError as refused:
        assert "the beginning: it brings code of its own, which is never run here. Choose" in str(refused)
        assert str(refused).endswith("The end.") and "\n" not in str(refused)
    assert not ran.exists()


COMMANDS = {
    "respond": ("respond", "I won!", "--system", "language_model", "--folder", "EVIL"),
    "chat": ("chat", "--system", "language_model", "--folder", "EVIL"),
    "a part": ("analyze", "I won!", "--with", "emotion", "--model-for", "emotion=EVIL"),
    "provider": ("analyze", "I won!", "--with", "inferences", "--model-for", "inferences=EVIL"),
    "infer": ("infer", "FILE", "--provider", "EVIL", "--out", "OUT"),
    "index": ("infer", "--build-index", "sample", "--encoder", "EVIL", "--index", "OUT"),
    "pull": ("models", "pull", "EVIL", "--as", "emotion"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_code_of_a_folder_or_asks(cli, evil, ran, command, tmp_path, monkeypatch):
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    (tmp_path / "a.txt").write_text("I won!\n")
    places = {"EVIL": str(evil), "FILE": str(tmp_path / "a.txt"), "OUT": str(tmp_path / "out.jsonl")}
    arguments = [places.get(word, word.replace("EVIL", str(evil))) for word in COMMANDS[command]]
    done = cli(*arguments, stdin="y\n" * 9)
    assert not ran.exists() and "trust_remote_code" not in done.err, done.err
    assert done.code in (0, 1, 2, 3) and "unexpected" not in done.err and "y/N" not in done.out + done.err


@pytest.mark.parametrize("command", ["a part", "pull"])
def test_a_classifier_on_an_encoder_with_code_is_refused(cli, ran, command, tmp_path, monkeypatch):
    """Our own configuration, whose encoder names code: the network is built, not read."""
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    folder = tmp_path / "emotion"
    made = encoder_classifier()
    made.model.save_pretrained(folder)
    made.reader.save(folder)
    config = json.loads((folder / "config.json").read_text())
    config["encoder_config"]["auto_map"] = AUTO
    (folder / "config.json").write_text(json.dumps(config))
    arguments = [word.replace("EVIL", str(folder)) for word in COMMANDS[command]]
    done = cli(*arguments, stdin="y\n" * 9)
    assert not ran.exists() and "unexpected" not in done.err, done.err


def test_a_network_is_built_without_code(ran):
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    config = AutoConfig.for_model("vit_mae", auto_map={"AutoModelForCausalLM": "evil--evil.EvilModel"})
    with pytest.raises(ValueError, match="custom code"):
        build_pretrained(AutoModelForCausalLM, config)
    tiny = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    known = AutoConfig.for_model("bert", vocab_size=9, **tiny, auto_map={"AutoModel": "evil--evil.EvilModel"})
    assert type(build_pretrained(AutoModel, known)).__module__.startswith("transformers.")


def test_a_configuration_that_names_code_of_the_hub_is_refused(tmp_path):
    from transformers import AutoModelForCausalLM

    folder = make_folder(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text()) | {"attn_implementation": "someone/kernel"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        CheckpointError, match=r"asks for code \(attn_implementation: 'someone/kernel'\), which is never"
    ):
        load_pretrained(AutoModelForCausalLM, folder)


# -- weights -------------------------------------------------------------------------------------------------


class Runs:
    """What unpickles by running a command."""

    def __init__(self, ran: Path) -> None:
        self.ran = ran

    def __reduce__(self):
        return os.system, (f"touch {self.ran}",)


def test_pickled_weights_are_not_read(tmp_path, ran):
    import torch
    from transformers import AutoModelForCausalLM

    folder = make_folder(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Runs(ran)}, folder / "pytorch_model.bin")
    message = r"its weights are in pytorch_model\.bin, a kind of file that can run code and is not read; save as safe"
    with pytest.raises(CheckpointError, match=message):
        load_pretrained(AutoModelForCausalLM, folder)
    assert not ran.exists()


def test_weights_in_a_harmless_pickle_are_not_read_either(tmp_path):
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    folder = make_folder(tmp_path / "model")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"its weights are in pytorch_model\.bin"):
        load_pretrained(AutoModelForCausalLM, folder)


@pytest.mark.parametrize("content", [b"", b"\x80\x04junk" * 9, b"\xff" * 64, b'{"a": 1}'])
def test_damaged_weights_are_told(tmp_path, content):
    from transformers import AutoModelForCausalLM

    folder = make_folder(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(
        CheckpointError, match=r"cannot read .*model': a weights file is truncated or damaged \(.* Give a"
    ):
        load_pretrained(AutoModelForCausalLM, folder)
    with pytest.raises(
        CheckpointError, match=r"model\.safetensors is missing, truncated or damaged \(.*Train it again"
    ):
        load_weights(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="is missing, truncated"):
        load_weights(folder / "model.safetensors")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"model_type": 5}', '{"model_type": "llama", "hidden_size": "x"}'])
def test_a_damaged_configuration_is_told(tmp_path, content):
    from transformers import AutoModelForCausalLM

    folder = make_folder(tmp_path / "model")
    (folder / "config.json").write_text(content)
    with pytest.raises(
        CheckpointError, match=r"cannot read .* Give a folder with config\.json, model\.safetensors and"
    ):
        load_pretrained(AutoModelForCausalLM, folder)


@pytest.mark.parametrize(
    ("part", "made", "name"),
    [
        ("causes", entailment_model, "threshold"),
        ("causes", spans_model, "null_threshold"),
        ("emotion", lambda: encoder_classifier().model, "softmax_temperature"),
    ],
)
def test_a_number_that_is_none_in_the_configuration_of_a_part_is_told(cli, tmp_path, part, made, name):
    """Every turn is below and above a threshold of NaN: answers were silent, checks of ranges passed it."""
    made().save_pretrained(tmp_path / "model")
    file = tmp_path / "model" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: float("nan")}))
    done = cli("analyze", "I won!", "--with", part, "--model-for", f"{part}={tmp_path / 'model'}")
    assert done.code == 1 and f"config.json has {name} NaN; a number is expected. Give a folder" in done.err, done.err
    assert done.err.count("\n") == 1 and done.out == ""


@pytest.mark.parametrize(
    ("model", "file"),
    [
        ("gao2021-small", "config.json"),
        ("gao2021-small", "model.safetensors"),
        ("gao2021-small", "tokenizer.json"),
        ("gao2021-small", "empatheia.json"),
        ("listener_as_trained", "config.json"),
        ("listener_as_trained", "adapter.safetensors"),
        ("listener_as_trained", "empatheia.json"),
    ],
)
@pytest.mark.parametrize("content", [b"", b"\x80\x04junk" * 9])
def test_a_damaged_part_of_a_bundled_model_is_named_by_its_file(cli, tmp_path, model, file, content):
    from empatheia.resources.catalogue import bundled_root

    folder = Path(shutil.copytree(bundled_root() / model, tmp_path / "model"))
    (folder / file).write_bytes(content)
    done = cli("analyze", "I won!", "--model", str(folder))
    assert done.code == 1 and file in done.err and str(folder) in done.err and "unexpected" not in done.err, done.err
    assert done.err.startswith("error: ") and done.err.count("\n") == 1 and done.out == ""


def test_what_is_not_here_is_told(tmp_path, monkeypatch):
    from transformers import AutoConfig

    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")
    with pytest.raises(MissingResourceError, match="no model folder"):
        load_pretrained(AutoConfig, tmp_path / "nowhere")

    class Needy:
        @staticmethod
        def from_pretrained(folder, **options):
            raise ImportError("SentencePiece is not installed:\n  pip install sentencepiece")

    with pytest.raises(MissingDependencyError, match=r"cannot read .*: SentencePiece is not installed: pip install"):
        load_pretrained(Needy, tmp_path)


# -- links ---------------------------------------------------------------------------------------------------


@pytest.fixture
def secret(tmp_path) -> Path:
    (tmp_path / "secret.json").write_text('{"password": "hunter2"}')
    return tmp_path / "secret.json"


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors"])
def test_links_out_of_a_folder_are_not_followed(tmp_path, secret, name):
    from transformers import AutoTokenizer

    folder = make_folder(tmp_path / "model")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(secret)
    with pytest.raises(
        CheckpointError, match=rf"{name} is a link that leads out of its folder; it is not followed. Put"
    ):
        load_pretrained(AutoTokenizer, folder)


def test_links_inside_a_folder_and_to_it_and_in_the_cache_of_the_hub_are_followed(tmp_path):
    from transformers import AutoModelForCausalLM

    folder = make_folder(tmp_path / "model")
    (tmp_path / "link").symlink_to(folder)
    (folder / "config.json").rename(folder / "real.json")
    (folder / "config.json").symlink_to("real.json")
    assert load_pretrained(AutoModelForCausalLM, tmp_path / "link").config.model_type == "llama"
    store = tmp_path / "hub" / "models--a--b"
    (store / "snapshots" / "1").mkdir(parents=True)
    (store / "blobs").mkdir()
    for file in folder.iterdir():
        (store / "blobs" / f"hash-{file.name}").write_bytes(file.read_bytes())
        (store / "snapshots" / "1" / file.name).symlink_to(f"../../blobs/hash-{file.name}")
    assert load_pretrained(AutoModelForCausalLM, store / "snapshots" / "1").config.model_type == "llama"


@pytest.mark.parametrize("place", ["notes.json", "inner/notes.json", "inner/folder"])
def test_a_model_with_links_out_is_not_installed(tiny_copy, secret, place, tmp_path, monkeypatch):
    """The secret would be copied into a folder that is handed on."""
    from empatheia_research.training.install import install_run, install_system

    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    (tiny_copy / "inner").mkdir()
    (tiny_copy / place).symlink_to(secret.parent if place.endswith("folder") else secret)
    run = tmp_path / "run"
    run.mkdir()
    (run / "checkpoint").symlink_to(tiny_copy)
    (run / "metrics.json").write_text("{}")
    for install in (install_system, install_run):
        with pytest.raises(CheckpointError, match=r"is a link that leads out of its folder; it is not followed"):
            install(run if install is install_run else tiny_copy, "cause_gated")
    assert not list((tmp_path / "models").rglob("*"))
