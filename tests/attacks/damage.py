"""Ways to damage a good file: each takes its bytes and a source of chance, and gives other bytes."""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
from collections.abc import Callable
from random import Random

Damage = Callable[[bytes, Random], bytes]
ODD = [
    *(None, True, False, 0, -1, 1.5, 10**30, 2**63, float("nan"), float("inf"), "", "x", "\x1b[2J", "\ud800", "../x"),
    *([], {}, [None], [[]], {"a": None}, [1, "2"], {"": ""}, "9" * 400, [0] * 300),
]
_VALUE = re.compile(rb'("(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false|null)')


def _cut(raw: bytes, chance: Random) -> bytes:
    return raw[: chance.randrange(len(raw) + 1)]


def _bits(raw: bytes, chance: Random) -> bytes:
    out = bytearray(raw)
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        if out:
            out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


def _bytes(raw: bytes, chance: Random) -> bytes:
    place = chance.randrange(len(raw) + 1)
    odd = chance.choice(
        (b"\xff", b"\x00", b"\xc3\x28", b"\xed\xa0\x80", b"\x85", b"\x1b[2J", b"\r", b'"', b"\xe2\x80\xa8")
    )
    return raw[:place] + odd + raw[place + chance.choice((0, 0, 1)) :]


def _removed(raw: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(raw) + 1)
    return raw[:start] + raw[start + chance.randrange(1, 40) :]


def _chance(raw: bytes, chance: Random) -> bytes:
    return chance.randbytes(chance.choice((0, 1, 3, 50, 400)))


def _lines(raw: bytes, chance: Random) -> bytes:
    lines = raw.split(b"\n")
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            lines[first], lines[second] = lines[second], lines[first]
        case 1:
            lines.insert(first, lines[second])
        case 2:
            del lines[first]
        case _:
            lines[first] = lines[first] + lines[second]
    return b"\n".join(lines)


def _cells(raw: bytes, chance: Random) -> bytes:
    """Ragged tables: a separator more or less."""
    places = [m.start() for m in re.finditer(rb"[,\t;:]", raw)]
    if not places:
        return raw
    place, kept = chance.choice(places), chance.random() < 0.5
    return raw[: place + kept] + chance.choice((b"", b",", b"\t", b'"', b",,,")) + raw[place + 1 :]


def _value(raw: bytes, chance: Random) -> bytes:
    """A value of JSON in place of another."""
    found = list(_VALUE.finditer(raw))
    if not found:
        return raw
    match = chance.choice(found)
    return raw[: match.start()] + json.dumps(chance.choice(ODD)).encode() + raw[match.end() :]


def _tree(raw: bytes, chance: Random) -> bytes:
    """A node of a JSON value, or of a line of JSON, of another kind, gone, or there twice."""
    lines = raw.split(b"\n")
    i = chance.randrange(len(lines))
    for part, put in ((raw, lambda new: new), (lines[i], lambda new: b"\n".join([*lines[:i], new, *lines[i + 1 :]]))):
        try:
            value = json.loads(part)
        except (ValueError, RecursionError):
            continue
        return put(json.dumps(_changed(value, chance)).encode())
    return raw


def _changed(value: object, chance: Random) -> object:
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        if chance.random() < 0.15:
            return {name: inner for name, inner in value.items() if name != key}
        return {**value, key: _changed(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        i = chance.randrange(len(value))
        if chance.random() < 0.15:
            return [*value[:i], *value[i + 1 :]]
        return [*value[:i], _changed(value[i], chance), *value[i + 1 :]]
    return chance.choice(ODD)


def _deep(raw: bytes, chance: Random) -> bytes:
    n = chance.choice((90, 101, 990, 5000, 100_000))
    deep = chance.choice((b"[" * n, b"[" * n + b"]" * n, b'{"a":' * n + b"1" + b"}" * n))
    found = list(_VALUE.finditer(raw)) if chance.random() < 0.7 else []
    if not found:
        return deep
    match = chance.choice(found)
    return raw[: match.start()] + deep + raw[match.end() :]


def _digits(raw: bytes, chance: Random) -> bytes:
    digits = chance.choice(
        (b"9" * 5000, b"9" * 400, b"1e999", b"-" + b"9" * 101, b"0" * 99, b"300000000", "²".encode())
    )
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", raw)) or list(_VALUE.finditer(raw))
    if not found:
        return digits
    match = chance.choice(found)
    return raw[: match.start()] + digits + raw[match.end() :]


def _packed(raw: bytes, chance: Random) -> bytes:
    packed = gzip.compress(raw, mtime=0)
    match chance.randrange(3):
        case 0:
            return packed
        case 1:
            return packed[: chance.randrange(2, len(packed))]
        case _:
            return _bits(packed, chance)


def _coded(raw: bytes, chance: Random) -> bytes:
    text = raw.decode("utf-8", "replace")
    return text.encode(chance.choice(("utf-16", "utf-8-sig", "latin-1", "utf-16-le", "utf-32")), "replace")


def _ends(raw: bytes, chance: Random) -> bytes:
    return raw.replace(b"\n", chance.choice((b"\r", b"\r\n", b"\x85", b"\n\n", b"\n\r", b"\x00", b" ")))


def _long(raw: bytes, chance: Random) -> bytes:
    place = chance.randrange(len(raw) + 1)
    return raw[:place] + chance.choice((b"a", b" ", b'"', b"\\", b",", "é".encode())) * 30_000 + raw[place:]


def _whole(raw: bytes, chance: Random) -> bytes:
    """A JSON value of another kind in place of all."""
    return json.dumps(chance.choice(ODD)).encode()


def _foreign(raw: bytes, chance: Random) -> bytes:
    import zipfile

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.json", raw[:200])
    return chance.choice(
        (file.getvalue(), b"%PDF-1.4\n", b"\x80\x04\x95.", b"GGUF\x03\0\0\0", b"\x93NUMPY\x01\0v\0{", b"{}", b"")
    )


def _tensors(raw: bytes, chance: Random) -> bytes:
    """A safetensors file whose header says something else, or whose numbers are none."""
    size = int.from_bytes(raw[:8], "little")
    try:
        head, body = json.loads(raw[8 : 8 + size]), bytearray(raw[8 + size :])
    except (ValueError, RecursionError):
        return raw
    if not isinstance(head, dict) or not head:
        return raw
    match chance.randrange(4):
        case 0:
            head = _changed(head, chance)
        case 1:
            head["_" + chance.choice(list(head))] = head.pop(chance.choice(list(head)))
        case 2:
            first, second = chance.choice(list(head)), chance.choice(list(head))
            head[first], head[second] = head[second], head[first]
        case _:
            place = chance.randrange(0, len(body) + 1, 4)
            body[place : place + 4] = struct.pack("<f", chance.choice((float("nan"), float("inf"), -1e38, 3e38)))
    told = json.dumps(head).encode()
    return len(told).to_bytes(8, "little") + told + bytes(body)


DAMAGES: dict[str, Damage] = {
    "nothing": lambda raw, _: raw,
    "cut": _cut,
    "bits": _bits,
    "odd bytes": _bytes,
    "bytes gone": _removed,
    "bytes by chance": _chance,
    "lines moved": _lines,
    "ragged cells": _cells,
    "a value of another kind": _value,
    "a node of another kind": _tree,
    "all of another kind": _whole,
    "deep nesting": _deep,
    "odd numbers": _digits,
    "gzip": _packed,
    "another encoding": _coded,
    "line ends": _ends,
    "long runs": _long,
    "a foreign file": _foreign,
    "other tensors": _tensors,
}


def damaged(raw: bytes, name: str, seed: int) -> bytes:
    """A file's bytes after a damage, the same for the same seed; one in four is damaged twice."""
    chance = Random(f"{name} {seed}")
    out = DAMAGES[name](raw, chance)
    again = name != "nothing" and chance.random() < 0.25
    return DAMAGES[chance.choice(list(DAMAGES))](out, chance) if again else out
