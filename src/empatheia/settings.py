"""Settings of all kinds: strict classes, YAML files with bounds, overrides, names that may become files.

Data of the package itself, word lists and forms, is read by :func:`read_package_yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeGuard

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from empatheia.errors import ConfigError
from empatheia.reading import read_text
from empatheia.registry import nearest

YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The compiled one where PyYAML has it: ten times faster."""
_MOST_DEEP, _MOST_VALUES, _MOST_LOOKED_AT, _MOST_DIGITS = 40, 100_000, 200, 100
_TOO_DEEP = f"values are nested more than {_MOST_DEEP} deep, or in themselves; accepted: less."
_NUMBER = re.compile(r"[-+]?(0[xb][0-9a-fA-F_]+|[0-9][0-9_]*(:[0-9_.]+)*)")
"""What YAML makes a whole number of, or one to the base of 60."""
_EXPONENT = re.compile(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+")
_PLAIN = re.compile(r"\w(?:[\w .+=,@~()-]*[\w+=@~)-])?")
_LONGEST = 120
_ENDINGS = (".part", ".partial")
"""Of files that are being written, which may be removed."""
_ACCEPTED = (
    "a letter, digit or '_', then also blanks and . + = , @ ~ ( ) -; no blank or dot at the end, no '.part' or"
    f" '.partial' there, at most {_LONGEST} characters"
)


class Strict(BaseModel):
    """Settings: an unknown key is an error, and so is a number that is none (NaN) or has no end."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=(), allow_inf_nan=False)


class Sparse(Strict):
    """Settings that leave out of a dump what is not given: files of runs made before a field was added stay the same.

    Attributes:
        unwritten: Field to the values that are not written, as a dump of either mode holds them.
    """

    unwritten: ClassVar[Mapping[str, tuple[object, ...]]] = {}

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value not in self.unwritten.get(name, ())}


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """``over`` laid on ``base``: dicts merge, lists of named dicts (stages) merge by name, all else replaces."""
    out = dict(base)
    for key, value in over.items():
        old = out.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            out[key] = merge(old, value)
        elif _is_named(value) and _is_named(old):
            by_name = {item["name"]: item for item in value}
            unknown = set(by_name) - {item["name"] for item in old}
            if unknown:
                raise ConfigError(
                    f"stage {sorted(unknown)[0]!r} is overridden but not defined;"
                    f" defined: {', '.join(item['name'] for item in old)}."
                )
            out[key] = [merge(item, by_name.get(item["name"], {})) for item in old]
        else:
            out[key] = value
    return out


def _is_named(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(v, dict) and isinstance(v.get("name"), str) for v in value)
    )


def apply_override(tree: Mapping[str, object], override: str) -> dict[str, object]:
    """Sets ``a.b=value`` in a copy of a recipe tree; a stage is addressed by name: ``stages.joint.epochs=2``.

    Raises:
        ConfigError: The text has no ``=``, or no such stage.
    """
    path, equals, text = override.partition("=")
    if not equals:
        raise ConfigError(f"override {override!r} is not of the form key=value.")
    value = _parsed(text, f"override {override[:60]!r}")
    if isinstance(value, str) and _EXPONENT.fullmatch(value):  # YAML reads 1e-4 as text
        value = float(value)
    keys = path.strip().split(".")
    if keys[0] == "stages" and len(keys) >= 3:
        return merge(tree, {"stages": [merge({"name": keys[1]}, _nest(keys[2:], value))]})
    return merge(tree, _nest(keys, value))


def _nest(keys: list[str], value: Any) -> dict[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    return value


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A YAML file that holds a mapping.

    Raises:
        ConfigError: Missing file (names the nearest in that folder), bad YAML (with line), or not a mapping.
    """
    path = Path(path)
    try:
        is_there = path.is_file()
    except OSError:  # a name that is too long for a file
        is_there = False
    if not is_there:
        name = str(path) if len(str(path)) <= 300 else f"{str(path)[:300]}..."
        raise ConfigError(f"no recipe at {name!r}.{nearest(name, _recipes_near(path)) or ' Check the path.'}")
    try:
        text = read_text(path)
    except ValueError as problem:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(problem).split())[:300]}.") from None
    tree = _parsed(text, str(path))
    if not isinstance(tree, dict):
        raise ConfigError(
            f"{path}: a recipe is a mapping of keys, found {type(tree).__name__}. Write `name: value` lines."
        )
    return tree


def read_package_yaml(module: str, name: str) -> Any:
    """What a YAML file beside a module of ours holds; it is not checked.

    Args:
        module: The module's ``__file__``.
        name: Of the file, e.g. ``words.yaml``.
    """
    return yaml.load(Path(module).with_name(name).read_text(encoding="utf-8"), YAML_LOADER)


def _recipes_near(path: Path) -> list[str]:
    """Recipes one may have meant: in the folder of a path, or the nearest one above that is there, and one below."""
    try:
        folder = next((parent for parent in path.parents if parent.is_dir()), Path())
        folders = [folder, *(inner for inner in islice(folder.iterdir(), _MOST_LOOKED_AT) if inner.is_dir())]
        return sorted(str(file) for inner in folders for file in islice(inner.glob("*.yaml"), _MOST_LOOKED_AT))
    except OSError:  # a folder one may not read
        return []


def _parsed(text: str, origin: str) -> Any:
    """The value of a YAML text.

    Raises:
        ConfigError: It is none, or one that :func:`_check_nodes` refuses.
    """
    problem: Exception | None = None
    for loader in (YAML_LOADER, yaml.SafeLoader):  # the messages of the second name the right line
        try:
            _check_nodes(text, origin, loader)
            return yaml.load(text, loader)
        except ConfigError:
            raise
        except Exception as error:  # a tag on a value of another kind raises errors of all kinds
            problem = error
    raise ConfigError(f"{origin}: not valid YAML: {' '.join(str(problem).split())[:300]}.")


def _check_nodes(text: str, origin: str, loader: type) -> None:
    """Refuses, before values are made of it, what a short YAML text can blow up to.

    Anchors within anchors, merged or not, count as often as they are named; for deep nesting the compiled loader has no
    limit but its stack; numbers of many digits take the square of their length.

    Raises:
        ConfigError: It is.
        yaml.YAMLError: It is no YAML.
    """
    total, anchored, open_nodes = 0, dict[str, tuple[int, int]](), list[_OpenNode]()
    for event in yaml.parse(text, loader):
        levels = 0
        match event:
            case yaml.CollectionStartEvent():
                open_nodes.append(_OpenNode(event.anchor, total))
                total += 1
            case yaml.CollectionEndEvent():
                node = open_nodes.pop()
                levels = node.levels + 1
                anchored[node.anchor or ""] = (total - node.before, levels)
            case yaml.ScalarEvent():
                total += 1
                anchored[event.anchor or ""] = (1, 0)
                _check_digits(event, origin)
            case yaml.AliasEvent():  # one that is not anchored is in itself, or an error the loader tells
                is_in_itself = event.anchor in (node.anchor for node in open_nodes)
                size, levels = anchored.get(event.anchor, (0, _MOST_DEEP + 1 if is_in_itself else 0))
                total += size
        if len(open_nodes) + levels > _MOST_DEEP:
            raise ConfigError(f"{origin}: {_TOO_DEEP}")
        if total > _MOST_VALUES:
            raise ConfigError(
                f"{origin}: over {_MOST_VALUES:,} values and keys, its anchors resolved; accepted: fewer."
            )
        if open_nodes:
            open_nodes[-1].levels = max(open_nodes[-1].levels, levels)


def _check_digits(event: yaml.ScalarEvent, origin: str) -> None:
    if event.implicit[0] and len(event.value) > _MOST_DIGITS and _NUMBER.fullmatch(event.value):
        raise ConfigError(
            f"{origin}: a number of {len(event.value):,} characters; accepted: {_MOST_DIGITS}, or quotes."
        )


@dataclass
class _OpenNode:
    """A list or mapping that is being read: its anchor, the nodes before it, and the levels in it so far."""

    anchor: str | None
    before: int
    levels: int = 0


def explain_invalid(
    problem: ValidationError,
    tree: Mapping[str, object],
    model: type[BaseModel],
    prefix: str = "",
    blocks: Mapping[str, type[BaseModel]] = MappingProxyType({}),
) -> str:
    """The first error of a validation on one line: the key, what was found, what is accepted, the nearest name.

    Args:
        problem: What pydantic raised.
        tree: What was validated.
        model: Against which class.
        prefix: In front of the key's path.
        blocks: The class of a key of the whole, where the field's type does not tell it.
    """
    errors = problem.errors()  # a mistyped key also leaves the right one missing: tell the former
    first = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    parts = [str(part) for part in first["loc"]]
    if len(parts) > 1 and parts[0] == "stages":  # name the stage instead of counting it
        stages = tree["stages"]
        named = stages[int(parts[1])] if isinstance(stages, Sequence) else None
        if isinstance(named, dict) and parts[2:] != ["name"]:
            parts[1] = str(named.get("name", parts[1]))
    where = prefix + ".".join(parts)
    if first["type"] != "extra_forbidden":
        return f"{where}: {first['msg']} (found {first.get('input')!r})."
    for depth, part in enumerate(first["loc"][:-1]):
        if not isinstance(part, int):
            model = (blocks if depth == 0 else {}).get(part) or _class_of_field(model, part)
    known = list(model.model_fields)
    return f"unknown key {where!r}.{nearest(str(first['loc'][-1]), known)} Accepted here: {', '.join(known)}."


def _class_of_field(model: type[BaseModel], name: str) -> type[BaseModel]:
    """The class of a field's value, or of those in it if it is a collection."""
    annotation = model.model_fields[name].annotation
    args = getattr(annotation, "__args__", ())
    return next(kind for kind in (annotation, *args) if isinstance(kind, type) and issubclass(kind, BaseModel))


def plain_name(text: str) -> str:
    """The text, if it can be the name of one file or folder.

    Raises:
        ValueError: It is empty, has a separator, leads elsewhere (``..``, an absolute path) or is too long.

    >>> plain_name("joint")
    'joint'
    """
    if not _is_plain(text):
        raise ValueError(f"{_shown(text)} cannot be the name of a folder; accepted: {_ACCEPTED}")
    return text


def path_name(text: str) -> str:
    """The text, if it is one :func:`plain_name` or several with ``/`` between: a place below a folder.

    Raises:
        ValueError: A part of it is no plain name.

    >>> path_name("gao2021/soft")
    'gao2021/soft'
    """
    if not all(map(_is_plain, text.split("/"))):
        raise ValueError(
            f"{_shown(text)} cannot be a name; accepted: names such as 'soft' or 'gao2021/soft', each part: {_ACCEPTED}"
        )
    return text


PlainName = Annotated[str, AfterValidator(plain_name)]
PathName = Annotated[str, AfterValidator(path_name)]


def _is_plain(text: str) -> bool:
    return len(text) <= _LONGEST and _PLAIN.fullmatch(text) is not None and not text.lower().endswith(_ENDINGS)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
