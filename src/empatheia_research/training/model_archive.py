"""Models in one archive: packed with a list of their files and hashes, signed, checked whole before one is installed.

An archive is a tar file. Its first member, ``empatheia-models.json``, says for every file of every model how many bytes
it has and their SHA-256; ``empatheia-models.sig`` is the Ed25519 signature (RFC 8032) of that list, so it covers every
byte. The same models give the same archive.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from empatheia.errors import CheckpointError, ConfigError, DataError, MissingDependencyError, MissingResourceError
from empatheia.listener.parts import PART_MODELS
from empatheia.reading import read_record
from empatheia.resources import cache_dir, models_root
from empatheia.resources.catalogue import describe_model, find_model
from empatheia.resources.fetch import Progress, download, extract_tar, file_sha256
from empatheia.resources.manifest import MANIFEST
from empatheia.settings import PlainName, Strict, plain_name
from empatheia.writing import MADE, cannot_write, save_folder, whole_file, write_atomically
from empatheia_research.pretrained import check_links
from empatheia_research.responders import RESPONDERS
from empatheia_research.training.install import install_folder, install_system

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

LIST, SIGNATURE = "empatheia-models.json", "empatheia-models.sig"
MAX_UNPACKED = 8 << 30
"""Bytes; the largest archive that is unpacked."""
_KINDS = frozenset(
    (".json", ".jsonl", ".safetensors", ".txt", ".model", ".npy", ".npz", ".jinja", ".yaml", ".md", ".gguf")
)
"""Of files a model folder is made of; none of them holds code that runs."""
_NEEDS_CRYPTOGRAPHY = "signatures need the package cryptography: pip install 'empatheia[signing]'"
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_KEYS = "made by: openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out public.pem"


class PackedFile(Strict):
    """One file of a packed model: its bytes and their SHA-256, in hex."""

    size: int = Field(ge=0, le=MAX_UNPACKED)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class PackedModel(Strict):
    """One model of an archive; ``files`` by their path below the model's folder, with ``/`` between."""

    name: PlainName
    title: str
    system: str
    licence: str
    files: dict[str, PackedFile]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files.values())


class PackedModels(Strict):
    """What is in an archive."""

    format: int = Field(1, ge=1, le=1)
    models: tuple[PackedModel, ...]

    def dump(self) -> str:
        """As JSON; equal lists give equal texts, and the signature is of this text."""
        return json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True)
class ArchivedModel:
    """What became of a model of an archive: ``state`` is ``installed`` or ``installed already``."""

    name: str
    state: str
    folder: Path


# -- packing ---------------------------------------------------------------------------------------------------


def named_models(given: Sequence[str]) -> dict[str, Path]:
    """Models to pack, by the name they are to have.

    Args:
        given: ``NAME`` (installed or bundled), ``NAME=FOLDER`` or ``NAME=RUN``; none = all that are installed.

    Raises:
        ConfigError: Two have one name, a name cannot be a folder's, or nothing is installed.
        EmpatheiaError: There is no such model.
    """
    if not given:
        root = models_root()
        given = sorted(path.name for path in root.iterdir() if (path / MANIFEST).is_file()) if root.is_dir() else []
        if not given:
            raise ConfigError(f"no model is installed in {root}. Name models to pack: NAME, NAME=FOLDER or NAME=RUN.")
    found: dict[str, Path] = {}
    for text in given:
        name, equals, place = text.partition("=")
        try:
            plain_name(name)
        except ValueError as problem:
            raise ConfigError(f"{text!r}: {problem}.") from None
        if name in found:
            raise ConfigError(f"two models are to be packed as {name!r}; give one of them another name: NAME=FOLDER.")
        found[name] = find_model(place if equals else name)
    return found


def list_models(models: Mapping[str, Path]) -> PackedModels:
    """Every file of these model folders with its size and hash.

    Raises:
        CheckpointError: A folder is no model, or holds a link that leads out or a kind of file that models have not.
    """
    return PackedModels(format=1, models=tuple(_listed(name, folder) for name, folder in sorted(models.items())))


def _listed(name: str, folder: Path) -> PackedModel:
    entry = describe_model(folder, name)
    if entry.fault:
        raise CheckpointError(f"{name} cannot be packed: {entry.fault}")
    check_links(folder, recursive=True)
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    paths.pop(MADE, None)
    for place, path in paths.items():
        if path.suffix.lower() not in _KINDS:
            raise CheckpointError(
                f"{name} cannot be packed: {path} is not a kind of file that models have ({', '.join(sorted(_KINDS))})."
                f" Move {place!r} away."
            )
    files = {place: PackedFile(size=path.stat().st_size, sha256=file_sha256(path)) for place, path in paths.items()}
    return PackedModel(name=name, title=entry.title, system=entry.system, licence=entry.licence, files=files)


def pack_models(models: Mapping[str, Path], archive: Path, key: Path | None = None) -> PackedModels:
    """Writes models into one archive; the same models give the same bytes.

    Args:
        models: From :func:`named_models`.
        archive: ``.tar``, ``.tar.gz`` or ``.tgz``; replaced if it is there.
        key: PEM file of an Ed25519 private key; None = not signed.

    Raises:
        ConfigError: The archive has another ending, or the key is none.
        CheckpointError: A model cannot be packed, or the disk is full; nothing half-written stays.
        MissingDependencyError: Signing needs the package cryptography.
    """
    if not archive.name.endswith((".tar", ".tar.gz", ".tgz")):
        raise ConfigError(f"{archive} does not end like an archive; accepted: .tar, .tar.gz, .tgz.")
    listed = list_models(models)
    text = listed.dump().encode()
    signature = None if key is None else _private_key(key).sign(text).hex().encode()
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(archive) as part, part.open("wb") as raw:
            if archive.name.endswith(".tar"):
                _write_tar(raw, models, listed, text, signature)
            else:
                with gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed:
                    _write_tar(packed, models, listed, text, signature)
    except OSError as problem:
        raise cannot_write(archive, problem) from None
    return listed


def _write_tar(
    file: io.IOBase, models: Mapping[str, Path], listed: PackedModels, text: bytes, signature: bytes | None
) -> None:
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:  # pyright: ignore[reportArgumentType]
        _add(tar, LIST, len(text), io.BytesIO(text))
        if signature is not None:
            _add(tar, SIGNATURE, len(signature), io.BytesIO(signature))
        for model in listed.models:
            for place, packed in model.files.items():
                with (models[model.name] / place).open("rb") as source:
                    _add(tar, f"{model.name}/{place}", packed.size, source)


def _add(tar: tarfile.TarFile, name: str, size: int, source: io.BufferedIOBase) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644  # no time, no owner: the same models give the same archive
    tar.addfile(member, source)


def write_list(models: Mapping[str, Path], path: Path) -> PackedModels:
    """Writes the list alone, to keep it where the archive itself is too large.

    Raises:
        CheckpointError: As :func:`pack_models`.
    """
    listed = list_models(models)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise cannot_write(path, problem) from None
    write_atomically(path, listed.dump())
    return listed


# -- unpacking -------------------------------------------------------------------------------------------------


def install_archive(
    place: str | Path,
    names: Sequence[str] = (),
    *,
    sha256: str | None = None,
    key: Path | None = None,
    replace: bool = False,
    progress: Progress | None = None,
) -> list[ArchivedModel]:
    """Installs the models of an archive; nothing of it is installed unless all of it is as its list says.

    Args:
        place: Address (http, https), archive file, or folder it was unpacked to.
        names: Of its models; none = all.
        sha256: What the archive's SHA-256 must be, in hex.
        key: PEM file of the Ed25519 public key its list must be signed with; None = a signature is not looked at.
        replace: Models of the same name that are installed and differ.
        progress: Of the download.

    Returns:
        What became of each, in the archive's order.

    Raises:
        ConfigError: It has no model of such a name, or another one of that name is installed and ``replace`` is off.
        DataError: It is damaged, no archive of models, or not signed by that key.
        CheckpointError: A model does not load.
        MissingResourceError: It is not there or cannot be fetched.
        MissingDependencyError: Checking a signature needs the package cryptography.
    """
    if _ADDRESS.match(str(place)):
        name = PurePosixPath(str(place).partition("?")[0]).name or "models.tar"
        place = download(str(place), cache_dir() / "archives" / plain_name(name), sha256, progress=progress)
    place = Path(place).expanduser()
    if place.is_dir():
        if sha256 is not None:
            raise ConfigError(f"{place} is a folder, which has no SHA-256; give the archive, or leave --sha256 out.")
        return _install_unpacked(place, names, key, replace)
    if not place.is_file():
        raise MissingResourceError(
            f"no archive {str(place)!r}. Accepted: an http(s) address, a .tar or .tar.gz, a folder."
        )
    if sha256 is not None and (found := file_sha256(place)) != sha256.lower():
        raise DataError(f"{place}: SHA-256 is {found}, expected {sha256.lower()}: damaged, or another version.")
    root = models_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root, prefix=".archive-") as folder:
            extract_tar(place, Path(folder), MAX_UNPACKED)
            return _install_unpacked(Path(folder), names, key, replace)
    except OSError as problem:
        raise cannot_write(root, problem) from None


def _install_unpacked(folder: Path, names: Sequence[str], key: Path | None, replace: bool) -> list[ArchivedModel]:
    listed = read_list(folder, key)
    known = {model.name: model for model in listed.models}
    for name in names:
        if name not in known:
            raise ConfigError(f"the archive has no model {name!r}; it has: {', '.join(known)}.")
    chosen = [model for model in listed.models if not names or model.name in names]
    for model in chosen:
        _check_files(folder, model)
    waiting = {model.name for model in chosen if not _is_installed(model)}
    for name in sorted(waiting):
        if (models_root() / name).exists() and not replace:
            raise ConfigError(f"another model {name!r} is installed in {models_root()}. Replace it with --force.")
    return [_installed(folder, model, model.name in waiting) for model in chosen]


def read_list(folder: Path, key: Path | None = None) -> PackedModels:
    """The list of an unpacked archive, its signature checked if a key is given.

    Raises:
        DataError: There is none, it is damaged, or it is not signed by that key.
    """
    path = folder / LIST
    if not path.is_file():
        raise DataError(f"no {LIST} in it: this is not an archive of models. `empatheia models export` makes one.")
    if key is not None:
        _check_signature(path, folder / SIGNATURE, key)
    try:
        return PackedModels.model_validate(read_record(path))
    except (ValueError, ValidationError) as problem:
        reason = problem.errors()[0]["msg"] if isinstance(problem, ValidationError) else problem
        raise DataError(f"{LIST} of the archive is damaged: {reason}.") from None


def _check_files(folder: Path, model: PackedModel) -> None:
    root = folder / model.name
    check_links(folder, recursive=True)
    there = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()} - {MADE}
    for place in sorted(there ^ set(model.files)):
        raise DataError(
            f"{model.name}: {place} is {'not listed' if place in there else 'missing'}; get the archive again."
        )
    for place, packed in model.files.items():
        path = root / place
        if path.suffix.lower() not in _KINDS:
            raise DataError(f"{model.name}: {place} is not a kind of file that models have; refused.")
        if path.stat().st_size != packed.size or file_sha256(path) != packed.sha256:
            raise DataError(
                f"{model.name}: {place} is damaged (its SHA-256 is not the listed one); get the archive again."
            )


def _is_installed(model: PackedModel) -> bool:
    folder = models_root() / model.name
    return all(
        (folder / place).is_file() and file_sha256(folder / place) == packed.sha256
        for place, packed in model.files.items()
    )


def _installed(folder: Path, model: PackedModel, is_waiting: bool) -> ArchivedModel:
    target = models_root() / model.name
    if not is_waiting:
        return ArchivedModel(model.name, "installed already", target)
    source = folder / model.name
    if model.name in {part.name for part in PART_MODELS}:
        install_folder(source, model.name)
    elif model.name in RESPONDERS:
        install_system(source, model.name)
    else:
        if fault := describe_model(source, model.name).fault:
            raise CheckpointError(f"{model.name} cannot be installed: {fault}")
        save_folder(target, lambda place: _copy(source, model, place))
    return ArchivedModel(model.name, "installed", target)


def _copy(source: Path, model: PackedModel, target: Path) -> None:
    for place in model.files:
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        (target / place).write_bytes((source / place).read_bytes())


# -- signatures ------------------------------------------------------------------------------------------------


def _private_key(path: Path) -> Ed25519PrivateKey:
    """Raises ConfigError or MissingDependencyError."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise MissingDependencyError(_NEEDS_CRYPTOGRAPHY) from None
    data = _read_key(path)
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError):  # no PEM; one with a password
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{path} is not an Ed25519 private key without a password; accepted: one {_KEYS}.")
    return key


def _public_key(path: Path) -> Ed25519PublicKey:
    """Raises ConfigError or MissingDependencyError."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise MissingDependencyError(_NEEDS_CRYPTOGRAPHY) from None
    data = _read_key(path)
    try:
        key = load_pem_public_key(data)
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigError(f"{path} is not an Ed25519 public key; accepted: one {_KEYS}.")
    return key


def _read_key(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(1 << 16)
    except OSError as problem:
        raise ConfigError(f"the key {path} cannot be read: {problem.strerror or problem}.") from None


def _check_signature(signed: Path, signature: Path, key: Path) -> None:
    """Raises DataError where it is missing or another one."""
    public = _public_key(key)
    from cryptography.exceptions import InvalidSignature

    if not signature.is_file():
        raise DataError(f"the archive is not signed, but a signature by {key} was required. Nothing was installed.")
    try:
        public.verify(bytes.fromhex(signature.read_text(encoding="ascii")[:1000]), signed.read_bytes())
    except (ValueError, InvalidSignature):
        raise DataError(
            f"the archive is not signed by {key}: another signer, or changed since. Nothing was installed."
        ) from None
