"""``--model``, ``--system``, ``--endpoint``, ``--folder``: who answers in ``respond`` and ``chat``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from empatheia.cli.listener_settings import LISTENER_FILES, check_overrides
from empatheia.errors import ConfigError

if TYPE_CHECKING:
    from empatheia.listener.protocol import AnyListener
    from empatheia.resources.chat_endpoint import Prices, Usage

LANGUAGE_MODEL = "language_model"

ModelOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Answer with this model only, by name or folder. Without it: the default listener."),
]
SystemOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="NAME", help="Answer with the best checkpoint of this system; see 'empatheia models list'."),
]
RunsOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(metavar="DIR", help="With --system: run folders to look in; without it ./runs."),
]
EndpointOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        metavar="URL", help="With --system language_model: an OpenAI-compatible endpoint [EMPATHEIA_BASE_URL]."
    ),
]
LlmOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="NAME", help="Name under which the endpoint serves the model."),
]
FolderOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="DIR", help="With --system language_model: a local model by folder or name."),
]
ConditionOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="PARTS", help="Add our analysis to the prompt: emotion, causes, intent, all or none."),
]
KeyOption = Annotated[str, typer.Option(help="Environment variable that holds the endpoint's key.")]
PriceInOption = Annotated[Optional[float], typer.Option(help="Price of a million prompt tokens.")]  # noqa: UP045
PriceOutOption = Annotated[Optional[float], typer.Option(help="Price of a million completion tokens.")]  # noqa: UP045


def check_who(
    model: str | None = None,
    system: str | None = None,
    runs: Path | None = None,
    file: Path | None = None,
    folder: str | None = None,
) -> None:
    """Looks for what the options name, before torch is imported, which takes seconds.

    Args:
        model: As ``--model``; also a listener's YAML file.
        system: As ``--system``.
        runs: As ``--runs``.
        file: As ``--listener``.
        folder: As ``--folder``.

    Raises:
        ConfigError: A YAML file is not there, or no system is called so.
        MissingResourceError: The model is not on this machine, or the system has no checkpoint.
    """
    from empatheia.checkpoints.catalogue import DEFAULT, find_model
    from empatheia.listener.systems import check_system, find_system

    if folder is not None:
        from empatheia.resources.lookup import resolve_weights

        if system == LANGUAGE_MODEL:
            resolve_weights(folder)
        return
    if [model, system, file].count(None) != 2 or model == DEFAULT:  # open_listener says what does not fit
        return
    if model is not None and Path(model).suffix in LISTENER_FILES:
        file = Path(model)
    if file is not None:
        if file.suffix in LISTENER_FILES and not file.is_file():
            raise ConfigError(
                f"no file {str(file)!r}; accepted: the YAML file of a listener, see docs/howto/listener.md."
            )
    elif system is not None and system != LANGUAGE_MODEL:
        check_system(system)
        find_system(system, runs or Path("runs"))
    elif model is not None:
        find_model(model)


def analyst(model: str | None) -> str:
    """Who analyses: the model that is named and here, else what perceives by default.

    Raises:
        MissingResourceError: The named model is not on this machine.
    """
    from empatheia.checkpoints.catalogue import perceiver

    if model is None:
        return perceiver()
    check_who(model)
    return model


def check_places(places: Sequence[str], runs: Path | None = None) -> None:
    """As :func:`check_who`, for what ``--model`` of a server names, which may also be a system."""
    from empatheia.responders import RESPONDERS

    for place in places:
        is_system = place in RESPONDERS and not Path(place).is_dir()
        check_who(None if is_system else place, place if is_system else None, runs)


def open_listener(
    model: str | None = None,
    system: str | None = None,
    *,
    runs: Path | None = None,
    endpoint: str | None = None,
    llm: str | None = None,
    folder: str | None = None,
    condition: str | None = None,
    key_env: str = "EMPATHEIA_API_KEY",
    price_in: float | None = None,
    price_out: float | None = None,
    overrides: Sequence[str] = (),
) -> AnyListener:
    """Who answers, as the options say; one that sends the conversation away tells where to.

    ``overrides`` are settings of a listener of five steps, which count where no model is named or its file is.

    Raises:
        ConfigError: Options that contradict each other or lack another one.
        MissingResourceError: The system has no checkpoint here; says which command makes one.
    """
    from empatheia.checkpoints.catalogue import DEFAULT

    asks = {"--endpoint": endpoint, "--llm": llm, "--folder": folder}
    given = [name for name, value in asks.items() if value is not None]
    _check_together(system, runs, given, (price_in, price_out))
    prices = _prices(price_in, price_out)
    options = _language_options(condition, model if given else None)
    if llm is not None:
        from empatheia.listener import LanguageListener

        return _told(LanguageListener.of_endpoint(llm, endpoint, prices=prices, key_variable=key_env, **options))
    if folder is not None:
        from empatheia.listener import LanguageListener

        return LanguageListener.of_model(folder, **options)
    options |= {} if prices is None else {"prices": prices}
    if model in (None, DEFAULT) and system is None and not options:
        from empatheia.listener import FocusedListener

        return FocusedListener(check_overrides(overrides))
    place = _place(model, system, runs or Path("runs"))
    if overrides and Path(place).suffix in LISTENER_FILES:
        from empatheia.listener import FocusedListener

        return _told(FocusedListener.load(place, overrides=overrides))
    return _language_model(place, options) if options else _loaded(place)


def _language_options(condition: str | None, analyst: str | None) -> dict[str, Any]:
    """What a language model's listener is told besides its place: what it is shown, and who reads feelings for it."""
    named = {"shown": condition, "analyst": analyst}
    return {name: value for name, value in named.items() if value is not None}


def _prices(price_in: float | None, price_out: float | None) -> Prices | None:
    """What a million tokens cost, if both prices are given."""
    if price_in is None or price_out is None:
        return None
    from empatheia.resources.chat_endpoint import Prices

    return Prices(price_in, price_out)


def _check_together(
    system: str | None, runs: Path | None, given: list[str], prices: tuple[float | None, float | None]
) -> None:
    """Whether the options go together; ``given`` names those of a language model.

    Raises:
        ConfigError: They do not; says what would.
    """
    if prices.count(None) == 1:
        raise ConfigError("give both --price-in and --price-out, or neither.")
    if system is None and runs is not None:
        raise ConfigError("--runs says where --system NAME looks; give --system too, or --model with a folder.")
    if given and system is None:
        raise ConfigError(f"{given[0]} needs --system language_model.")
    if given and system != LANGUAGE_MODEL:
        raise ConfigError(f"{given[0]} is for --system language_model, not {system!r}.")
    if "--folder" in given and len(given) > 1:
        raise ConfigError("--folder is a local model, --endpoint and --llm a served one; give one of them.")
    if given == ["--endpoint"]:
        raise ConfigError("--endpoint needs --llm, the name under which it serves the model.")


def _language_model(place: str | Path, options: dict[str, Any]) -> AnyListener:
    """The language model of a folder, with options that only such a one has.

    Raises:
        ConfigError: It is another system.
    """
    from empatheia.checkpoints.catalogue import describe_model, find_model
    from empatheia.listener import LanguageListener

    if describe_model(find_model(place), str(place)).system != LANGUAGE_MODEL:
        told = "--price-in" if options.keys() == {"prices"} else "--condition"
        raise ConfigError(f"{told} is for a language model: --system language_model, or a folder of one.")
    return _told(LanguageListener.load(place, **options))


def _place(model: str | None, system: str | None, runs: Path) -> str | Path:
    """The folder or name of the model to load."""
    from empatheia.checkpoints.catalogue import LISTENER, find_model

    if system is None:
        return LISTENER if model is None else model
    from empatheia.cli.output import say
    from empatheia.listener.systems import check_folder, check_system, find_system

    check_system(system)
    if model is not None:
        place = find_model(Path(model) / "checkpoint" if (Path(model) / "checkpoint").is_dir() else model)
        check_folder(place, system)
        return place
    if system == LANGUAGE_MODEL:
        try:
            place = find_system(system, runs)
        except Exception as error:
            told = f"{error} A model as it is: --endpoint URL --llm NAME, or --folder DIR."
            raise type(error)(told) from None
    else:
        place = find_system(system, runs)
    say(f"{system}: {place}")
    return place


def _loaded(place: str | Path) -> AnyListener:
    from empatheia.listener import Listener

    return _told(Listener.load(place))


def _told(listener: AnyListener) -> AnyListener:
    """The same, after it was said where it sends a conversation."""
    tell_host(listener)
    return listener


def tell_host(listener: Any) -> None:
    """Says where a conversation is sent, if it is."""
    from empatheia.cli.output import say

    if host := getattr(listener, "host", ""):
        say(f"asking {listener.name} at {host}")


def usage_line(listener: AnyListener) -> str:
    """Tokens and cost of a served model so far; empty for the others."""
    usage: Usage | None = getattr(listener, "usage", None)
    return "" if usage is None else str(usage)
