"""``--model``, ``--system``, ``--endpoint``, ``--folder``: who answers in ``respond``, ``chat`` and servers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empatheia.cli import load_target
from empatheia.cli.listener_settings import LISTENER_FILES, check_overrides
from empatheia.cli.options import WhoOptions
from empatheia.cli.output import say
from empatheia.errors import ConfigError, MissingDependencyError
from empatheia.resources.catalogue import DEFAULT, LISTENER, describe_model, find_model
from empatheia.resources.chat_endpoint import Prices
from empatheia.resources.lookup import resolve_weights

if TYPE_CHECKING:
    from empatheia.listener.protocol import AnyListener
    from empatheia.resources.chat_endpoint import Usage

LANGUAGE_MODEL = "language_model"
SYSTEMS = "--system"
"""Under which the published systems join."""


def check_who(who: WhoOptions, file: Path | None = None) -> None:
    """Looks for what the options name, before a model is opened, which may take seconds.

    Args:
        who: The model may be a listener's YAML file.
        file: As ``--listener``.

    Raises:
        ConfigError: A YAML file is not there, or no system is called so.
        MissingResourceError: The model is not on this machine, or the system has no checkpoint.
    """
    if who.folder is not None:
        if who.system == LANGUAGE_MODEL:
            resolve_weights(who.folder)
        return
    if [who.model, who.system, file].count(None) != 2 or who.model == DEFAULT:  # open_listener says what does not fit
        return
    if who.model is not None and Path(who.model).suffix in LISTENER_FILES:
        file = Path(who.model)
    if file is not None:
        if file.suffix in LISTENER_FILES and not file.is_file():
            raise ConfigError(
                f"no file {str(file)!r}; accepted: the YAML file of a listener, see docs/howto/listener.md."
            )
    elif who.system is not None and who.system != LANGUAGE_MODEL:
        systems = load_target(SYSTEMS)
        systems.check_system(who.system)
        systems.find_system(who.system, who.runs or Path("runs"))
    elif who.model is not None:
        find_model(who.model)


def analyst(model: str | None) -> str:
    """Who analyses: the model that is named and here, else what perceives by default.

    Raises:
        MissingResourceError: The named model is not on this machine.
    """
    if model is None:
        return LISTENER
    check_who(WhoOptions(model=model))
    return model


def check_places(places: Sequence[str], runs: Path | None = None) -> None:
    """As :func:`check_who`, for what ``--model`` of a server names, which may also be a system."""
    for place in places:
        is_system = not Path(place).is_dir() and _is_system(place)
        check_who(WhoOptions(system=place, runs=runs) if is_system else WhoOptions(model=place, runs=runs))


def _is_system(name: str) -> bool:
    """Whether it is a published system; none is known where research is not installed."""
    try:
        return name in load_target(SYSTEMS).RESPONDERS
    except MissingDependencyError:
        return False


def open_listener(who: WhoOptions, overrides: Sequence[str] = ()) -> AnyListener:
    """Who answers, as the options say; one that sends the conversation away tells where to.

    Args:
        who: The options.
        overrides: Settings of a listener of five steps, which count where no model is named or its file is.

    Raises:
        ConfigError: Options that contradict each other or lack another one.
        MissingResourceError: The system has no checkpoint here; says which command makes one.
    """
    given = _check_together(who)
    prices = None if who.price_in is None or who.price_out is None else Prices(who.price_in, who.price_out)
    named = {"shown": who.condition, "analyst": who.model if given else None}
    options: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if who.llm is not None:
        from empatheia.listener import LanguageListener

        return _told(
            LanguageListener.of_endpoint(who.llm, who.endpoint, prices=prices, key_variable=who.key_env, **options)
        )
    if who.folder is not None:
        from empatheia.listener.listener import LISTENERS

        return LISTENERS.get("language_model").of_model(who.folder, **options)
    options |= {} if prices is None else {"prices": prices}
    if who.model in (None, DEFAULT) and who.system is None and not options:
        from empatheia.listener import FocusedListener

        return FocusedListener(check_overrides(overrides))
    place = _place(who)
    if overrides and Path(place).suffix in LISTENER_FILES:
        from empatheia.listener import FocusedListener

        return _told(FocusedListener.load(place, overrides=overrides))
    if options:
        return _language_model(place, options)
    from empatheia.listener import Listener

    return _told(Listener.load(place))


def _check_together(who: WhoOptions) -> list[str]:
    """The options of a language model that were given, if all go together.

    Raises:
        ConfigError: They do not; says what would.
    """
    named = {"--endpoint": who.endpoint, "--llm": who.llm, "--folder": who.folder}
    given = [name for name, value in named.items() if value is not None]
    if (who.price_in is None) != (who.price_out is None):
        raise ConfigError("give both --price-in and --price-out, or neither.")
    if who.system is None and who.runs is not None:
        raise ConfigError("--runs says where --system NAME looks; give --system too, or --model with a folder.")
    if given and who.system is None:
        raise ConfigError(f"{given[0]} needs --system language_model.")
    if given and who.system != LANGUAGE_MODEL:
        raise ConfigError(f"{given[0]} is for --system language_model, not {who.system!r}.")
    if who.folder is not None and len(given) > 1:
        raise ConfigError("--folder is a local model, --endpoint and --llm a served one; give one of them.")
    if given == ["--endpoint"]:
        raise ConfigError("--endpoint needs --llm, the name under which it serves the model.")
    return given


def _language_model(place: str | Path, options: dict[str, Any]) -> AnyListener:
    """The language model of a folder, with options that only such a one has.

    Raises:
        ConfigError: It is another system.
    """
    if describe_model(find_model(place), str(place)).system != LANGUAGE_MODEL:
        name = "--price-in" if options.keys() == {"prices"} else "--condition"
        raise ConfigError(f"{name} is for a language model: --system language_model, or a folder of one.")
    from empatheia.listener import LanguageListener

    return _told(LanguageListener.load(place, **options))


def _place(who: WhoOptions) -> str | Path:
    """The folder or name of the model to load."""
    if who.system is None:
        return LISTENER if who.model is None else who.model
    systems = load_target(SYSTEMS)
    systems.check_system(who.system)
    if who.model is not None:
        within = Path(who.model) / "checkpoint"
        place = find_model(within if within.is_dir() else who.model)
        systems.check_folder(place, who.system)
        return place
    runs = who.runs or Path("runs")
    if who.system == LANGUAGE_MODEL:
        try:
            place = systems.find_system(who.system, runs)
        except Exception as error:
            message = f"{error} A model as it is: --endpoint URL --llm NAME, or --folder DIR."
            raise type(error)(message) from None
    else:
        place = systems.find_system(who.system, runs)
    say(f"{who.system}: {place}")
    return place


def _told(listener: AnyListener) -> AnyListener:
    """The same, after it was said where it sends a conversation."""
    tell_host(listener)
    return listener


def tell_host(listener: Any) -> None:
    """Says where a conversation is sent, if it is."""
    if host := getattr(listener, "host", ""):
        say(f"asking {listener.name} at {host}")


def usage_line(listener: AnyListener) -> str:
    """Tokens and cost of a served model so far; empty for the others."""
    usage: Usage | None = getattr(listener, "usage", None)
    return "" if usage is None else str(usage)
