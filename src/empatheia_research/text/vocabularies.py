"""Where a tokeniser's pieces come from: words counted, byte pairs learned, or an encoder's own folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from empatheia.errors import CheckpointError, ConfigError
from empatheia.text.words import Style, tokenize_words
from empatheia_research.pretrained import load_pretrained

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[BOS]", "[EOS]")
ROLE_SPECIALS = ("[USR]", "[SYS]")


def train_words(
    texts: Iterable[str],
    min_count: int = 1,
    max_size: int | None = None,
    style: Style = "family",
    roles: bool = False,
) -> tuple[Tokenizer, dict[str, int]]:
    """A word-level vocabulary.

    With ``min_count=1`` and no ``max_size`` the words keep the order of first sight, as in the code of MoEL
    and EmpDG; otherwise the most frequent come first, ties by first sight.

    Args:
        texts: What the vocabulary is taken from.
        min_count: Rarer words become UNK.
        max_size: Most entries, special ones included; None = no limit.
        style: Word rules.
        roles: Add ``[USR]`` and ``[SYS]``.

    Returns:
        The tokeniser, and the ids of its special pieces by lower-case name.

    Raises:
        ConfigError: ``max_size`` leaves no room for words.
    """
    names = special_names(roles)
    if max_size is not None and max_size <= len(names):
        raise ConfigError(f"max_size is {max_size}; accepted: more than the {len(names)} special pieces.")
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word.text for word in tokenize_words(text, style))
    if min_count > 1 or max_size is not None:
        ordered = [word for word, n in counts.most_common() if n >= min_count]
    else:
        ordered = list(counts)
    ordered = [word for word in ordered if word not in names]
    if max_size is not None:
        ordered = ordered[: max_size - len(names)]
    vocabulary = {word: i for i, word in enumerate([*names, *ordered])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer, special_ids(names)


def train_bpe(
    texts: Iterable[str], size: int = 8000, style: Style = "family", roles: bool = False
) -> tuple[Tokenizer, dict[str, int]]:
    """Byte-level byte-pair pieces inside words: every string can be encoded, and decodes to its words.

    Args:
        texts: What the pieces are learned from.
        size: Entries, special ones and the 256 bytes included.
        style: Word rules.
        roles: Add ``[USR]`` and ``[SYS]``.

    Returns:
        The tokeniser, and the ids of its special pieces by lower-case name.

    Raises:
        ConfigError: ``size`` is smaller than the bytes and special pieces.
    """
    names = special_names(roles)
    smallest = len(names) + len(pre_tokenizers.ByteLevel.alphabet())
    if size < smallest:
        raise ConfigError(f"size is {size}; accepted: at least {smallest} (every byte and the special pieces).")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(names),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    lines = (" ".join(word.text for word in tokenize_words(text, style)) for text in texts)
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer, special_ids(names)


def from_hf(folder: str | Path) -> tuple[Tokenizer, dict[str, int]]:
    """An encoder's own fast tokeniser; its CLS and SEP also serve as BOS and EOS if it has no such pieces.

    Args:
        folder: With tokenizer.json; nothing is fetched.

    Returns:
        The tokeniser, and the ids of its special pieces by lower-case name.

    Raises:
        CheckpointError: The folder is missing, has no fast tokeniser, or lacks a CLS, SEP or PAD piece.
    """
    if not Path(folder).is_dir():
        raise CheckpointError(f"no folder {str(folder)!r}; give an encoder's folder with tokenizer.json.")
    from transformers import AutoTokenizer

    try:
        loaded = load_pretrained(AutoTokenizer, folder)
        backend = loaded.backend_tokenizer
    except (AttributeError, CheckpointError) as problem:
        raise CheckpointError(
            f"no fast tokeniser in {str(folder)!r} ({short(problem)}); give a folder with tokenizer.json."
        ) from None
    cls_id = loaded.cls_token_id if loaded.cls_token_id is not None else loaded.bos_token_id
    sep_id = loaded.sep_token_id if loaded.sep_token_id is not None else loaded.eos_token_id
    if cls_id is None or sep_id is None or loaded.pad_token_id is None:
        raise CheckpointError(f"the tokeniser in {str(folder)!r} lacks a CLS, SEP or PAD piece; choose an encoder's.")
    specials = {
        "pad": loaded.pad_token_id,
        "unk": loaded.unk_token_id if loaded.unk_token_id is not None else loaded.pad_token_id,
        "cls": cls_id,
        "sep": sep_id,
        "bos": loaded.bos_token_id if loaded.bos_token_id is not None else cls_id,
        "eos": loaded.eos_token_id if loaded.eos_token_id is not None else sep_id,
    }
    return Tokenizer.from_str(backend.to_str()), specials


def special_names(roles: bool = False) -> tuple[str, ...]:
    """Our own special pieces, in the order of their ids."""
    return (*SPECIALS, *ROLE_SPECIALS) if roles else SPECIALS


def special_ids(names: Iterable[str]) -> dict[str, int]:
    """``[PAD]`` to ``pad: 0`` and so on."""
    return {name.strip("[]").lower(): i for i, name in enumerate(names)}


def short(problem: Exception) -> str:
    """A library's message on one line."""
    return " ".join(str(problem).split())[:200] or type(problem).__name__
