"""Runs transformers' own model tests, from the source package of the installed version, on every responder.

    python tests/responders/mixins/run.py [FOLDER] [arguments of pytest]

The source package is fetched once into FOLDER (default: build/contract); where it cannot be, this says so and ends
well. Of its test files only those on top are in it: what they take from elsewhere is filled in by ``stand_ins``.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
WANTED = ("test_modeling_common.py", "test_configuration_common.py")
NEEDS = "parameterized==0.9.0"
PIP = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--no-input")

STAND_INS = {
    "__init__.py": "",
    "exporters/__init__.py": "",
    "exporters/test_export.py": "class ExportTesterMixin:\n    pass\n",
    "generation/__init__.py": "",
    "generation/test_utils.py": "class GenerationTesterMixin:\n    pass\n",
    "utils/__init__.py": "",
    "utils/test_configuration_utils.py": (
        'config_common_kwargs = {"output_hidden_states": True, "dtype": "float16", "chunk_size_feed_forward": 5,\n'
        '    "architectures": ["BertModel"], "id2label": {0: "label"}, "label2id": {"label": "0"},\n'
        '    "problem_type": "regression", "pad_token_id": 7, "eos_token_id": 8, "bos_token_id": 6}\n'
    ),
}
"""What the two files import from folders that the source package leaves out."""


def fetch(folder: Path) -> str:
    """Makes ``folder/common_tests`` and ``folder/packages``.

    Returns:
        Why it could not; empty when all is there.
    """
    target = folder / "common_tests"
    name = f"transformers-{version('transformers')}"
    stamp = folder / f".{name}"
    if stamp.is_file():
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    for arguments in (
        (
            "download",
            "--no-binary",
            ":all:",
            "--no-deps",
            "--no-build-isolation",
            "-d",
            str(folder),
            name.replace("-", "=="),
        ),
        ("install", "--no-deps", "--upgrade", "--target", str(folder / "packages"), NEEDS),
    ):
        ran = subprocess.run([*PIP, *arguments], capture_output=True, text=True, check=False)
        if ran.returncode:
            return f"pip {arguments[0]}: {(ran.stderr.strip().splitlines() or ['no message'])[-1]}"
    for path, text in STAND_INS.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text, encoding="utf-8")
    with tarfile.open(next(folder.glob(f"{name}.tar.gz"))) as package:
        for file in WANTED:
            member = package.extractfile(f"{name}/tests/{file}")
            assert member is not None  # a file, not a folder
            (target / file).write_bytes(member.read())
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    stamp.touch()
    return ""


def main(arguments: list[str]) -> int:
    """Fetches, then runs; 0 also where nothing could be fetched."""
    folder = Path("build/contract")
    if arguments and not arguments[0].startswith("-"):
        folder = Path(arguments.pop(0))
    if problem := fetch(folder):
        print(f"skipped: no source package of transformers {version('transformers')} ({problem})")
        return 0
    paths = (folder, folder / "packages", HERE.parent)
    before = f"import sys; sys.path[:0] = {[str(path.resolve()) for path in paths]!r}; import pytest;"
    command = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--noconftest",
        "-c",
        str(folder / "pytest.ini"),
        str(HERE / "systems.py"),
        *arguments,
    ]
    return subprocess.run(
        [sys.executable, "-c", f"{before} sys.exit(pytest.main({command!r}))"], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
