"""Archives of models: equal bytes for equal models, nothing installed of a damaged, forged or unsigned one."""

import hashlib
import json
import shutil
import tarfile

import pytest

from empatheia.errors import CheckpointError, ConfigError, DataError, MissingResourceError
from empatheia.resources import models_root
from empatheia.resources.catalogue import bundled_root, find_model
from empatheia_research.training.model_archive import (
    LIST,
    install_archive,
    list_models,
    named_models,
    pack_models,
    read_list,
)

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.delenv("EMPATHEIA_MODELS", raising=False)
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")


def model_at(folder, name="a lab's"):
    """A model folder of no part and no system's name, with a folder in it."""
    shutil.copytree(bundled_root() / "listener_as_trained", folder)
    manifest = json.loads((folder / "empatheia.json").read_text()) | {"name": name, "licence": "MIT"}
    (folder / "empatheia.json").write_text(json.dumps(manifest))
    (folder / "words").mkdir()
    (folder / "words" / "pieces.txt").write_text("a\nb\n")
    return folder


@pytest.fixture
def lab(tmp_path):
    return model_at(tmp_path / "lab")


def keys(folder, name):
    """PEM files of a new pair."""
    own = ed25519.Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())
    private, public = folder / f"{name}.pem", folder / f"{name}-public.pem"
    pem = serialization.Encoding.PEM
    private.write_bytes(own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    public.write_bytes(own.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def rewritten(archive, change):
    """The archive's members through ``change(name, data) -> data or None``, in a new one."""
    out = archive.with_name("changed.tar")
    with tarfile.open(archive) as old, tarfile.open(out, "w") as new:
        for member in old.getmembers():
            data = change(member.name, old.extractfile(member).read())
            if data is not None:
                path = archive.parent / "member"
                path.write_bytes(data)
                new.add(path, arcname=member.name)
    return out


# -- what goes in comes out ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".tar", ".tar.gz", ".tgz"])
def test_what_is_packed_is_installed(lab, tmp_path, ending):
    archive = tmp_path / f"models{ending}"
    packed = pack_models({"ours": lab}, archive)
    assert [(m.name, m.title, m.licence) for m in packed.models] == [("ours", "a lab's", "MIT")]
    (model,) = install_archive(archive)
    assert (model.name, model.state, model.folder) == ("ours", "installed", models_root() / "ours")
    for place in packed.models[0].files:
        assert (model.folder / place).read_bytes() == (lab / place).read_bytes()
    assert find_model("ours") == model.folder
    assert [m.state for m in install_archive(archive)] == ["installed already"]
    assert not list(models_root().glob(".archive-*"))


def test_equal_models_give_equal_archives(lab, tmp_path):
    other = shutil.copytree(lab, tmp_path / "elsewhere")
    (other / "empatheia.json").touch()
    for ending in (".tar", ".tar.gz"):
        first, second = tmp_path / f"one{ending}", tmp_path / f"two{ending}"
        pack_models({"ours": lab}, first)
        pack_models({"ours": other}, second)
        assert first.read_bytes() == second.read_bytes()


def test_a_run_stands_for_its_checkpoint_and_names_for_installed_models(lab, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(lab, run / "checkpoint")
    pack_models(named_models([f"ours={run}"]), tmp_path / "m.tar")
    install_archive(tmp_path / "m.tar")
    assert named_models([]) == {"ours": models_root() / "ours"} == named_models(["ours"])


def test_an_installed_part_loads_before_it_is_taken(lab, tmp_path):
    pack_models({"intent": lab}, tmp_path / "m.tar")
    with pytest.raises(Exception, match=r"intent|config\.json|labels"):
        install_archive(tmp_path / "m.tar")
    assert not (models_root() / "intent").exists()


def test_some_of_an_archive(lab, tmp_path):
    pack_models({"one": lab, "two": lab}, tmp_path / "m.tar")
    assert [model.name for model in install_archive(tmp_path / "m.tar", ["two"])] == ["two"]
    assert not (models_root() / "one").exists()
    with pytest.raises(ConfigError, match=r"has no model 'three'; it has: one, two\."):
        install_archive(tmp_path / "m.tar", ["three"])


def test_another_model_of_the_name_is_replaced_only_when_told(lab, tmp_path):
    pack_models({"ours": lab}, tmp_path / "m.tar")
    install_archive(tmp_path / "m.tar")
    later = model_at(tmp_path / "later", "a later one")
    pack_models({"ours": later}, tmp_path / "later.tar")
    with pytest.raises(ConfigError, match=r"another model 'ours' is installed in .*Replace it with --force"):
        install_archive(tmp_path / "later.tar")
    assert install_archive(tmp_path / "later.tar", replace=True)[0].state == "installed"
    assert "later" in (models_root() / "ours" / "empatheia.json").read_text()


# -- signatures ------------------------------------------------------------------------------------------------


def test_a_signed_archive_is_taken_from_its_signer_alone(lab, tmp_path):
    private, public = keys(tmp_path, "lab")
    _, stranger = keys(tmp_path, "stranger")
    pack_models({"ours": lab}, tmp_path / "m.tar", private)
    with pytest.raises(DataError, match=r"not signed by .*stranger-public\.pem: another signer, or changed since"):
        install_archive(tmp_path / "m.tar", key=stranger)
    assert not (models_root() / "ours").exists()
    assert install_archive(tmp_path / "m.tar", key=public)[0].state == "installed"


def test_the_signature_covers_every_byte(lab, tmp_path):
    private, public = keys(tmp_path, "lab")
    pack_models({"ours": lab}, tmp_path / "m.tar", private)

    def more_to_it(name, data):
        if name == LIST:
            listed = json.loads(data)
            digest = hashlib.sha256(b"a\nc\n").hexdigest()
            listed["models"][0]["files"]["words/pieces.txt"] = {"size": 4, "sha256": digest}
            return json.dumps(listed).encode()
        return b"a\nc\n" if name.endswith("pieces.txt") else data

    changed = rewritten(tmp_path / "m.tar", more_to_it)
    with pytest.raises(DataError, match="changed since"):
        install_archive(changed, key=public)
    assert install_archive(changed)[0].state == "installed", "unsigned, its list is right"


def test_an_unsigned_archive_is_refused_where_a_key_is_given(lab, tmp_path):
    _, public = keys(tmp_path, "lab")
    pack_models({"ours": lab}, tmp_path / "m.tar")
    with pytest.raises(DataError, match="the archive is not signed"):
        install_archive(tmp_path / "m.tar", key=public)


@pytest.mark.parametrize("text", ["", "no key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_what_is_no_key(lab, tmp_path, text):
    private, public = keys(tmp_path, "lab")
    pack_models({"ours": lab}, tmp_path / "m.tar", private)
    bad = tmp_path / "bad.pem"
    bad.write_text(text)
    with pytest.raises(ConfigError, match=r"not an Ed25519 public key; accepted: one made by: openssl genpkey"):
        install_archive(tmp_path / "m.tar", key=bad)
    with pytest.raises(ConfigError, match="not an Ed25519 private key"):
        pack_models({"ours": lab}, tmp_path / "n.tar", public)
    with pytest.raises(ConfigError, match=r"the key .*nowhere.pem cannot be read"):
        pack_models({"ours": lab}, tmp_path / "n.tar", tmp_path / "nowhere.pem")
    assert not (tmp_path / "n.tar").exists()


# -- what is wrong with an archive -----------------------------------------------------------------------------


def in_list(old, new):
    return lambda name, data: data.replace(old, new) if name == LIST else data


def in_pieces(new):
    return lambda name, data: new if name.endswith("pieces.txt") else data


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda name, data: None if name == LIST else data, "no empatheia-models.json in it"),
        (in_list(b"{", b"<"), "is damaged"),
        (in_list(b'"format": 1', b'"format": 2'), "is damaged: .*less than or equal to 1"),
        (in_list(b'"name": "ours"', b'"name": "../x"'), "cannot be the name of a folder"),
        (in_pieces(None), r"words/pieces\.txt is missing"),
        (in_pieces(b"a\nb\nc\n"), r"pieces\.txt is damaged"),
        (in_pieces(b"x\nb\n"), r"pieces\.txt is damaged"),
    ],
)
def test_a_damaged_archive_installs_nothing(lab, tmp_path, change, told):
    pack_models({"ours": lab, "whole": lab}, tmp_path / "m.tar")
    with pytest.raises(DataError, match=told):
        install_archive(rewritten(tmp_path / "m.tar", change))
    assert [path.name for path in models_root().iterdir()] == []


def test_more_than_is_listed_is_refused(lab, tmp_path):
    pack_models({"ours": lab}, tmp_path / "m.tar")
    with tarfile.open(tmp_path / "m.tar", "a") as tar:
        tar.add(lab / "words" / "pieces.txt", arcname="ours/more.txt")
    with pytest.raises(DataError, match=r"ours: more\.txt is not listed"):
        install_archive(tmp_path / "m.tar")


def test_code_is_neither_packed_nor_installed(lab, tmp_path):
    pack_models({"ours": lab}, tmp_path / "m.tar")
    (lab / "modeling.py").write_text("print('hello')")
    with pytest.raises(CheckpointError, match=r"modeling\.py is not a kind of file that models have"):
        pack_models({"ours": lab}, tmp_path / "n.tar")

    def with_code(name, data):
        return data.replace(b"pieces.txt", b"pieces.py") if name == LIST else data

    changed = rewritten(tmp_path / "m.tar", with_code)
    with tarfile.open(changed) as tar:
        tar.extractall(tmp_path / "open", filter="data")
    (tmp_path / "open" / "ours" / "words" / "pieces.txt").rename(tmp_path / "open" / "ours" / "words" / "pieces.py")
    with pytest.raises(DataError, match=r"pieces\.py is not a kind of file that models have; refused"):
        install_archive(tmp_path / "open")


def test_a_link_that_leads_out_is_not_packed(lab, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("mine")
    (lab / "words" / "more.txt").symlink_to(secret)
    with pytest.raises(CheckpointError, match="link that leads out"):
        pack_models({"ours": lab}, tmp_path / "m.tar")


def test_what_is_no_archive(lab, tmp_path):
    (tmp_path / "text.tar").write_text("nothing packed")
    with pytest.raises(DataError, match="damaged archive"):
        install_archive(tmp_path / "text.tar")
    with pytest.raises(MissingResourceError, match=r"no archive .*Accepted: an http\(s\) address, a \.tar"):
        install_archive(tmp_path / "nowhere.tar")
    with pytest.raises(ConfigError, match=r"does not end like an archive; accepted: \.tar"):
        pack_models({"ours": lab}, tmp_path / "models.zip")
    with pytest.raises(MissingResourceError, match="the offline switch is on"):
        install_archive("https://example.org/models.tar")


def test_the_checksum_of_the_archive(lab, tmp_path):
    pack_models({"ours": lab}, tmp_path / "m.tar")
    with pytest.raises(DataError, match=r"SHA-256 is [0-9a-f]{64}, expected 0000"):
        install_archive(tmp_path / "m.tar", sha256=64 * "0")
    right = hashlib.sha256((tmp_path / "m.tar").read_bytes()).hexdigest()
    assert install_archive(tmp_path / "m.tar", sha256=right.upper())[0].state == "installed"


def test_names_to_pack(lab):
    with pytest.raises(ConfigError, match="two models are to be packed as 'a'"):
        named_models([f"a={lab}", f"a={lab}"])
    with pytest.raises(ConfigError, match="cannot be the name of a folder"):
        named_models([f"../a={lab}"])
    with pytest.raises(ConfigError, match="no model is installed in"):
        named_models([])


# -- the bundled models, the command ---------------------------------------------------------------------------


def test_the_bundled_models_are_those_of_the_list():
    root = bundled_root()
    kept = read_list(root)
    assert kept == list_models({path.name: path for path in root.iterdir() if path.is_dir()})
    assert sum(model.size for model in kept.models) < 25_000_000


def test_the_commands(lab, tmp_path, cli):
    private, public = keys(tmp_path, "lab")
    archive = str(tmp_path / "lab.tar.gz")
    packed = cli("models", "export", archive, f"ours={lab}", "--key", str(private))
    assert packed.code == 0 and "ours: a lab's" in packed.out and "licence: MIT" in packed.out
    assert packed.out.rstrip().endswith(", signed")
    got = cli("models", "get", archive, "--key", str(public), "--only", "ours", "--json")
    assert json.loads(got.out) == [{"model": "ours", "state": "installed", "folder": str(models_root() / "ours")}]
    assert cli("models", "export", str(tmp_path / "list" / LIST), "ours").code == 0
    assert [model.name for model in read_list(tmp_path / "list").models] == ["ours"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["get", "listner"], "Did you mean 'listener'? Accepted: listener, second_look, or an archive of models"),
        (["get", "listener", "--only", "intent"], "--only, --sha256 and --key are for an archive"),
        (["export", "list.json", "listener", "--key", "lab.pem"], "a list alone is not signed"),
    ],
)
def test_commands_that_cannot_be_meant(cli, arguments, told):
    ended = cli("models", *arguments)
    assert ended.code != 0 and told in ended.err
