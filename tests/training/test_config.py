"""Recipes: what is wrong in a file is told with key and remedy; sizes, overrides and inheritance; all of ours load."""

from pathlib import Path

import pytest
import tiny_training as bench
import torch
import yaml

from empatheia.errors import ConfigError
from empatheia.settings import apply_override, merge, read_yaml
from empatheia_research.recipes.recipe import (
    SIZES,
    load_recipe,
    recipe_files,
    recipe_sizes,
    stage_data_config,
    validate_model_fields,
)
from empatheia_research.responders import RESPONDERS
from empatheia_research.shipped import recipes_root
from empatheia_research.training.tasks.base import accepted_fields

RECIPES = recipe_files(Path(__file__).resolve().parents[2] / "recipes")
TEXT = """
name: x
system: cause_gated
model: {width: 8}
data: {corpus: sample}
stages:
  - {name: first, losses: {emotion: 1.0}, epochs: 3}
  - {name: joint, losses: {words: 1.0}, learning_rate: 1e-4}
sizes:
  smoke:
    data: {train_limit: 5}
    stages:
      - {name: joint, epochs: 9}
  cpu: {}
"""


LAUGHS = "model:\n  a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"  a{i}: &a{i} [{', '.join(9 * [f'*a{i - 1}'])}]\n" for i in range(1, 12)
)
MERGED_LAUGHS = "model:\n  a0: &a0 {k: 1}\n" + "".join(
    f"  a{i}: &a{i} {{<<: [{', '.join(9 * [f'*a{i - 1}'])}]}}\n" for i in range(1, 8)
)


@pytest.fixture
def written(tmp_path):
    """Writes recipe files and gives the path of the last."""

    def write(text, name="recipe.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


# -- what is accepted ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: "/".join(path.parts[-2:]))
@pytest.mark.parametrize("size", SIZES)
def test_every_recipe_loads_in_every_size(path, size, written):
    if size not in recipe_sizes(path):
        assert size == "row"
        return
    recipe = load_recipe(path, size=size)
    assert recipe.name == "/".join(path.with_suffix("").parts[-2:]) and recipe.size == size
    assert load_recipe(written(recipe.dump())) == recipe
    if size == "smoke":
        assert "sample" in (recipe.data.corpus, getattr(recipe.data, "path", None)), "a smoke run needs no data"
    for stage in recipe.stages:
        stage_data_config(recipe, stage.data)
    if recipe.task == "respond":
        validate_model_fields(recipe.model, accepted_fields(RESPONDERS.get(recipe.system).config_class), str(path))


def test_a_row_lies_on_the_cpu_size(written):
    cpu = "  cpu: {data: {max_source: 64}, stages: [{name: joint, epochs: 4}]}\n"
    row = cpu + "  row: {stages: [{name: joint, epochs: 1}]}\n"
    recipe = load_recipe(written(TEXT.replace("  cpu: {}", row)), size="row")
    assert (recipe.size, recipe.data.max_source, recipe.stages[1].epochs) == ("row", 64, 1.0)


def test_a_recipe_has_a_row_only_where_it_is_given(written):
    path = written(TEXT)
    assert recipe_sizes(path) == ("smoke", "cpu", "full")
    with pytest.raises(ConfigError, match=r"has no size 'row'. Accepted: smoke, cpu, full\."):
        load_recipe(path, size="row")
    written(TEXT.replace("  cpu: {}", "  cpu: {}\n  row: {}"), "base.yaml")
    assert "row" in recipe_sizes(written("extends: base.yaml\n"))
    assert "row" not in recipe_sizes(written("extends: base.yaml\nsizes: {row: null}\n"))


def test_every_model_of_size_row_can_be_built():
    """A width that the heads do not divide is found here and not after hours of a queue."""
    built = 0
    for path in RECIPES:
        if "row" not in recipe_sizes(path):
            continue
        recipe = load_recipe(path, "row")
        if recipe.task in ("respond", "retrieve") and recipe.encoder is None:
            model_class = RESPONDERS.get(recipe.system)
            config = model_class.config_class(vocab_size=60, pad_token_id=0, **recipe.model)
            with torch.device("meta"):
                assert model_class(config).config.width == recipe.model["width"], path
            built += 1
    assert built > 30


@pytest.mark.parametrize("family", ["gao2021", "imagine", "rashkin2018"])
def test_rows_of_a_paper_get_the_same_training(family):
    """One pass over the replies (retrieval: as many as its other rows), of equal width."""
    rows = [load_recipe(path, "row") for path in RECIPES if path.parent.name == family and "row" in recipe_sizes(path)]
    trained = [recipe for recipe in rows if recipe.stages and recipe.task == "respond"]
    passes = {
        stage.epochs
        for recipe in trained
        for stage in recipe.stages
        if "words" in stage.losses and stage.name != "ensemble"
    }
    assert len(trained) > 5 and passes == {1.0} and {recipe.model["width"] for recipe in rows if recipe.stages} == {128}


def test_sizes_lie_on_the_file(written):
    path = written(TEXT)
    full, smoke = load_recipe(path), load_recipe(path, size="smoke")
    assert (full.size, smoke.size) == ("full", "smoke")
    assert (full.data.train_limit, smoke.data.train_limit) == (None, 5)
    assert [stage.epochs for stage in full.stages] == [3.0, 1.0]
    assert [stage.epochs for stage in smoke.stages] == [3.0, 9.0]
    assert smoke.stages[1].learning_rate == 1e-4 and smoke.data.corpus == "sample"


def test_a_file_may_choose_its_size(written):
    path = written(TEXT + "size: smoke\n")
    assert load_recipe(path).data.train_limit == 5
    assert load_recipe(path, size="full").data.train_limit is None


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("stages.joint.epochs=2", lambda r: r.stages[1].epochs == 2.0 and r.stages[0].epochs == 3.0),
        ("stages.joint.learning_rate=1e-4", lambda r: r.stages[1].learning_rate == 1e-4),
        ("stages.joint.eps=2.5E-9", lambda r: r.stages[1].eps == 2.5e-9),
        ("stages.first.losses.cause=0.5", lambda r: r.stages[0].losses == {"emotion": 1.0, "cause": 0.5}),
        ("model.dropout=0.2", lambda r: r.model == {"width": 8, "dropout": 0.2}),
        ("model.rate=1e-3", lambda r: r.model["rate"] == 1e-3),
        ("seed=7", lambda r: r.seed == 7),
        ("data.train_limit=null", lambda r: r.data.train_limit is None),
        ("data.roles=[listener, speaker]", lambda r: r.data.roles == ("listener", "speaker")),
        ("encoder=e5", lambda r: r.encoder == "e5"),  # not a number
        ("note=1-2", lambda r: r.note == "1-2"),
        ("data.causes_path=a=b.txt", lambda r: r.data.causes_path == "a=b.txt"),
    ],
)
def test_overrides(written, override, read):
    assert read(load_recipe(written(TEXT), overrides=[override]))


def test_overrides_and_seed_come_after_the_size(written):
    recipe = load_recipe(written(TEXT), size="smoke", overrides=["stages.joint.epochs=2", "seed=1"], seed=5)
    assert recipe.stages[1].epochs == 2.0 and recipe.seed == 5


def test_a_recipe_tells_what_was_overridden(written):
    file = written(TEXT)
    plain = load_recipe(file, "cpu")
    assert plain.overrides == () and "overrides" not in plain.dump()
    changed = load_recipe(file, "cpu", ["model.dropout=0.2"], seed=3)
    assert changed.overrides == ("model.dropout=0.2",)
    assert load_recipe(written(changed.dump(), "again.yaml")) == changed


def test_an_override_leaves_the_tree_alone():
    tree = yaml.safe_load(TEXT)
    apply_override(tree, "stages.joint.epochs=2")
    apply_override(tree, "model.width=9")
    assert tree == yaml.safe_load(TEXT)


def test_a_dumped_recipe_is_read_back(written):
    for recipe in (load_recipe(written(TEXT), size="smoke"), bench.tiny_recipe(note="ä: 'quoted' #")):
        assert load_recipe(written(recipe.dump())) == recipe
        assert load_recipe(written(recipe.dump())).dump() == recipe.dump()


def test_a_recipe_extends_another_and_that_one_a_third(written):
    written(TEXT, "base.yaml")
    written("extends: base.yaml\nname: y\nmodel: {n_heads: 2}\nsizes: {smoke: {model: {width: 4}}}\n", "middle.yaml")
    path = written("extends: middle.yaml\nname: z\nstages: [{name: joint, epochs: 4}]\n")
    recipe = load_recipe(path)
    assert (recipe.name, recipe.model) == ("z", {"width": 8, "n_heads": 2})
    assert [(stage.name, stage.epochs) for stage in recipe.stages] == [("first", 3.0), ("joint", 4.0)]
    smoke = load_recipe(path, size="smoke")
    assert smoke.model["width"] == 4 and smoke.data.train_limit == 5 and smoke.stages[1].epochs == 9.0


def test_merging_replaces_lists_and_merges_mappings():
    assert merge({"a": {"b": 1, "c": [1, 2]}}, {"a": {"c": [3]}, "d": 4}) == {"a": {"b": 1, "c": [3]}, "d": 4}


# -- what is told --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("sead=3", r"unknown key 'sead'. Did you mean 'seed'\?"),
        ("data.train_limits=3", r"unknown key 'data.train_limits'. Did you mean 'train_limit'\? Accepted"),
        ("tokenizer.knd=bpe", r"unknown key 'tokenizer.knd'. Did you mean 'kind'\?"),
        ("decoding.topk=3", r"unknown key 'decoding.topk'. Did you mean 'top_k'\?"),
        ("published={papr: x, table: t, row: r}", r"unknown key 'published.papr'. Did you mean 'paper'\?"),
        ("stages.joint.epoch=3", r"unknown key 'stages.joint.epoch'. Did you mean 'epochs'\?"),
        ("stages.joint.data={corpuss: x}", r"unknown key 'stages.joint.data.corpuss'. Did you mean 'corpus'\?"),
        ("stages.joint.data.max_source=2", r"stages.joint.data.max_source: .*greater than or equal to 8 \(found 2\)"),
        ("stages.joint.epochs=0", r"stages.joint.epochs: Input should be greater than 0 \(found 0\)"),
        ("stages.joint.schedule=cosin", r"stages.joint.schedule: Input should be 'constant', .* \(found 'cosin'\)"),
        ("stages.joint.select=word", r"stages.joint.select: no loss 'word'. Did you mean 'words'\?"),
        ("stages.last.epochs=3", "stage 'last' is overridden but not defined; defined: first, joint"),
        ("stages=[]", r"stages is missing or empty; task .respond. needs at least one"),
        ("stages=3", r"stages: .*\(found 3\)"),
        ("stages.joint=3", r"stages: Input should be a valid tuple"),
        ("stages=[3]", r"stages.0: .*\(found 3\)"),
        ("stages=[{losses: {a: 1}}, {losses: {b: 1}}]", r"stages.train: 2 stages have this name"),
        ("data=null", r"data: "),
        ("seed", "override 'seed' is not of the form key=value"),
        ("seed=-1", r"seed: Input should be greater than or equal to 0 \(found -1\)"),
        ("seed=4294967296", r"seed: Input should be less than 4294967296"),
        (
            "stages.joint.learning_rate=.inf",
            r"stages.joint.learning_rate: Input should be a finite number \(found inf\)",
        ),
        ("stages.joint.learning_rate=inf", r"stages.joint.learning_rate: Input should be a finite number"),
        ("stages.joint.losses.words=.nan", r"stages.joint.losses.words: Input should be a finite number \(found nan\)"),
        ("stages.joint.epochs=.inf", r"stages.joint.epochs: Input should be a finite number"),
        ("decoding.temperature=.nan", r"decoding.temperature: Input should be a finite number"),
        ("model.dropout=.nan", r"model.dropout: Input should be a finite number \(found nan\)"),
        ("model.sizes=[1, {a: -.inf}]", r"model.sizes.1.a: Input should be a finite number \(found -inf\)"),
        ("data.side_inputs.x.minimum=.nan", r"data.side_inputs.x.minimum: Input should be a finite number"),
        ("seed=" + 5000 * "9", r"a number of 5,000 characters; accepted: 100, or quotes"),
        ("model.x=" + 5000 * "[", r"nested more than 40 deep|not valid YAML"),
        ("model.x=" + 60 * "[" + 60 * "]", r"nested more than 40 deep, or in themselves; accepted: less"),
        ("seed=[1", r"override 'seed=\[1': not valid YAML"),
    ],
)
def test_a_wrong_key_or_value_is_told(written, change, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load_recipe(written(TEXT), overrides=[change])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [", r"recipe.yaml: not valid YAML: .*line 1"),
        ("- a\n", "a recipe is a mapping of keys, found list"),
        ("", "a recipe is a mapping of keys, found NoneType"),
        ("name: x\nsystem: y\n", r"stages is missing or empty"),
        (TEXT.replace("  cpu: {}", "  cpuu: {}"), r"`sizes` accepts smoke, row, cpu, full; found \['smoke', 'cpuu'\]"),
        (TEXT.replace("losses: {em", "loses: {em"), r"unknown key 'stages.first.loses'. Did you mean 'losses'\?"),
        (TEXT + "sizes: null\n", "`sizes` accepts smoke, row, cpu, full; found None"),
        (TEXT + "extends: 5\n", "`extends` is the file name of another recipe; found 5"),
        (TEXT + "extends: none.yaml\n", "no recipe at '.*none.yaml'"),
        (TEXT + "extends: recipe.yaml\n", "`extends` goes round in a circle: .*recipe.yaml -> "),
        (
            TEXT + "model: &a {b: *a}\n",
            "recipe.yaml: values are nested more than 40 deep, or in themselves; accepted: less",
        ),
        (TEXT + "note: &a [*a]\n", "values are nested more than 40 deep, or in themselves"),
        (TEXT + f"model: {{x: {600 * '['}{600 * ']'}}}\n", "values are nested more than 40 deep"),
        (TEXT + f"model: {{x: {50_000 * '['}{50_000 * ']'}}}\n", "values are nested more than 40 deep|not valid YAML"),
        (TEXT + LAUGHS, "recipe.yaml: over 100,000 values and keys, its anchors resolved; accepted: fewer"),
        (TEXT + MERGED_LAUGHS, "recipe.yaml: over 100,000 values and keys, its anchors resolved; accepted: fewer"),
        (TEXT + f"seed: {5000 * '9'}\n", "recipe.yaml: a number of 5,000 characters; accepted: 100"),
        (TEXT + f"seed: 1{5000 * ':1'}\n", "recipe.yaml: a number of 10,001 characters; accepted: 100"),
        (TEXT + "seed: !!bool 7\n", "recipe.yaml: not valid YAML: '7'"),
        (TEXT + "seed: !!int ''\n", "recipe.yaml: not valid YAML: "),
        (TEXT + f"extends: {5000 * 'a'}.yaml\n", r"no recipe at '.*aaa\.\.\.'"),
        (TEXT + 'extends: "a\\0b"\n', "no recipe at '.*a.*b'"),
        (TEXT + "size: medium\n", "size: Input should be 'smoke', 'row', 'cpu' or 'full' .found 'medium'."),
    ],
)
def test_a_wrong_file_is_told(written, text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load_recipe(written(text))
    assert any(name in str(caught.value) for name in ("recipe.yaml", "none.yaml", "aaa..."))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [LAUGHS, MERGED_LAUGHS])
def test_anchors_are_counted_before_values_are_made_of_them(written, text, monkeypatch):
    made = []
    monkeypatch.setattr("empatheia_research.recipes.recipe.yaml.load", lambda *_: made.append(1))
    with pytest.raises(ConfigError, match="over 100,000 values and keys"):
        read_yaml(written(TEXT + text))
    assert made == []


def test_a_wrong_size_block_is_told(written):
    with pytest.raises(ConfigError, match=r"`sizes.cpu` is a mapping of overrides; found 5"):
        load_recipe(written(TEXT.replace("cpu: {}", "cpu: 5")), size="cpu")
    with pytest.raises(
        ConfigError, match=r"unknown size 'smok'. Did you mean 'smoke'\? Accepted: smoke, row, cpu, full"
    ):
        load_recipe(written(TEXT), size="smok")


def test_a_file_that_is_not_there_is_looked_for_nearby_only(written, monkeypatch):
    """A mistyped path in a large folder had all of it walked through."""
    path = written(TEXT)
    (path.parent / "one" / "two").mkdir(parents=True)
    (path.parent / "one" / "soft.yaml").write_text(TEXT)
    (path.parent / "one" / "two" / "softly.yaml").write_text(TEXT)
    monkeypatch.setattr(Path, "rglob", lambda *_: pytest.fail("the whole tree is walked"))
    for wrong, right in (("one/sof.yaml", "one/soft.yaml"), ("on/soft.yaml", "one/soft.yaml"), ("a/b/c.yaml", "")):
        with pytest.raises(ConfigError, match=rf"no recipe at .*{wrong}'\..*{right}") as caught:
            load_recipe(path.parent / wrong)
        assert "two" not in str(caught.value)


def test_a_file_that_is_not_there_names_the_nearest(written):
    path = written(TEXT)
    with pytest.raises(ConfigError, match=r"no recipe at .*recip.yaml'. Did you mean .*recipe.yaml"):
        load_recipe(path.with_name("recip.yaml"))
    binary = written(TEXT)
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_recipe(binary)


def test_model_fields_are_checked_against_the_system():
    accepted = accepted_fields(RESPONDERS.get("cause_gated").config_class)
    assert {"width", "gate", "dropout", "variant"} <= set(accepted) and "vocab_size" not in accepted
    with pytest.raises(ConfigError, match=r"here: unknown key 'model.widht'. Did you mean 'width'\?"):
        validate_model_fields({"widht": 3}, accepted, "here")


# -- notes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["cpu", "full"])
def test_a_note_tells_what_the_recipe_does(size):
    """Notes stand beside the numbers: what they name must be what the resolved recipe says, at that size."""
    claims = {
        "our RECCON annotator": lambda r: r.data.causes == "annotator",
        "Commonsense by COMET": lambda r: "comet" in _provider(r),
        "Commonsense about": lambda r: _provider(r) == "inferences",
        "Mechanisms: labels of a model": lambda r: bool(r.data.mechanisms),
        "VADER's lexicon, in place": lambda r: r.data.causes_path == "vader",
        "Adamax 8e-4": lambda r: all(stage.optimizer == "adamax" for stage in r.stages),
        "12 beams in 6 groups": lambda r: (r.decoding.num_beams, r.decoding.num_groups) == (12, 6),
        "4 beams in 2 groups": lambda r: (r.decoding.num_beams, r.decoding.num_groups) == (4, 2),
        "Word vectors start at random": lambda r: not r.tokenizer.distil,
        "minilm), not from GloVe": lambda r: r.tokenizer.distil == "minilm",
        "Started from meed2/generator_dialogues": lambda r: "meed2/generator_dialogues" in str(r.start),
        "Started from meed2/transformer_dialogues": lambda r: "meed2/transformer_dialogues" in str(r.start),
        "One layer each": lambda r: (r.model["n_encoder_layers"], r.model["n_decoder_layers"]) == (1, 1),
    }
    found = dict.fromkeys(claims, 0)
    for file in recipe_files(recipes_root()):
        recipe = load_recipe(file, size)
        for words, holds in claims.items():
            if words in recipe.note:
                found[words] += 1
                assert holds(recipe), f"{recipe.name} {size}: its note says {words!r}"
    assert sum(n > 0 for n in found.values()) >= 7  # no claim is checked on a size where nothing makes it


def _provider(recipe):
    sides = recipe.data.side_inputs
    return next((str(sides[name]["provider"]) for name in sides if name.startswith("knowledge_of")), "")
