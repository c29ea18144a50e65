"""What a recipe `c3` is refused for before anything runs, and what it wires."""

from pathlib import Path

import pytest

from culturekit.config.kinds import AnyRecipe
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.schemas import IMAGES
from culturekit.core.torch_places import mend_torchvision
from culturekit.recipes.planning import pilot_encoders, plan_lines, plan_recipe
from tests.builders.spaces import rows_of
from tests.conftest import stages_of
from tests.index.models.tiny_transformers import make_clip, make_sentence


def c3(*stated: str) -> AnyRecipe:
    return load_any_recipe(find_recipe("c3"), stated)


def test_without_people_the_truth_still_says_what_strategies_are_worth(tmp_path: Path) -> None:
    names = {stage.name for stage in stages_of(c3("people=null"), tmp_path)}
    assert {"worth", "truth", "pair-truth", "selected"} <= names
    assert names.isdisjoint({"ratings", "pearson", "judged-vqascore", "to-rate-images", "to-rate-pairs"})


def test_forms_wait_where_nobody_answers(tmp_path: Path) -> None:
    names = {stage.name for stage in stages_of(c3("people.simulated=null"), tmp_path)}
    assert {"to-rate-images", "to-rate-pairs", "worth"} <= names
    assert names.isdisjoint({"rated-images", "pearson"})


def test_without_pairs_models_alone_are_evaluated(tmp_path: Path) -> None:
    names = {stage.name for stage in stages_of(c3("pairs=null"), tmp_path)}
    assert {"aligned-steady", "ratings", "report"} <= names
    assert names.isdisjoint({"selected", "worth", "aligned-pairs"})


def test_single_tokens_are_compared_where_that_is_asked(tmp_path: Path) -> None:
    given = {stage.name: stage.options.get("give") for stage in stages_of(c3("encoders.tokens=true"), tmp_path)}
    assert {name.split("-")[1]: give for name, give in given.items() if name.endswith("-pairs") and give} == {
        "source": "tokens", "target": "tokens", "image": "tokens", "objects": "mean",
    }  # fmt: skip
    assert given["vectors-image-pairs"] is None, "an image is one vector in the paper, too"


def test_a_plan_says_how_long_many_pairs_take_and_reads_none_of_them(tmp_path: Path) -> None:
    """A table of 143 million pairs was read whole before it was planned, and took all memory."""
    row = {"image_id": "i", "path": "i.png", "model": "web", "rewriter": "off", "provider_params": "{}",
           "sha256": "0", "width": 1, "height": 1, "status": "ok"}  # fmt: skip
    images, captions, many = tmp_path / "images.parquet", tmp_path / "captions.csv", 1_100_000
    rows_of(IMAGES, row).sample(many, with_replacement=True).write_parquet(images)
    captions.write_text("id,text\ni,x\n")
    stated = ("pairs.simulated=null", f"pairs.images={images}", f"pairs.captions={captions}", "pairs.keep=300000",
              "pairs.listed=kept", "people.simulated=null")  # fmt: skip
    planned = {one.name: one for one in plan_recipe(c3(*stated), tmp_path / "run")}
    vectors = (f"vectors-{side}-pairs" for side in ("source", "target", "objects", "image", "image-target"))
    taking = [planned[name] for name in ("translated", "seen-pairs", *vectors, "aligned-pairs", "selected")]
    assert [one.units for one in taking] == [many] * len(taking)
    assert all(one.seconds is not None and 1 < one.seconds < 12_000 for one in taking)


def test_paid_models_have_a_price_before_anything_ran(tmp_path: Path) -> None:
    """Of captions and of images that there are not yet, by what is usually asked about one."""
    paid = "openai:gpt-4o-mini?rpm=600"
    named = [f"{key}={paid}" for key in ("captions.proposer", "judge", "objects.lister", "pairs.translator")]
    planned = {one.name: one for one in plan_recipe(c3(*named, "captions.count=9889"), tmp_path)}
    asked = {name: one for name, one in planned.items() if one.requests}
    of_images = {f"{what}-{model}" for what in ("vqascore", "seen") for model in ("steady", "showy", "plain")}
    assert set(asked) == {"captions", "named-expanded", "translated", "seen-pairs", *of_images}
    assert all(one.dollars for one in asked.values())
    assert asked["named-expanded"].requests == 9_889
    assert asked["named-expanded"].seconds == 988.9, "600 a minute are allowed"
    lines = "\n".join(plan_lines(list(planned.values())))
    assert "From the requests a minute (rpm) stated: captions, named-expanded" in lines


def test_a_pilot_times_encoders_with_weights_of_which_a_plan_knows_no_minutes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    mend_torchvision()
    pytest.importorskip("sentence_transformers")
    make_sentence(tmp_path / "labse")
    make_clip(tmp_path / "clip")
    text, image = (
        f"sentence:{tmp_path / 'labse/whole'}?device=cpu",
        f"transformers:{tmp_path / 'clip'}?device=cpu",
    )
    recipe, run = c3(f"encoders={{text: '{text}', image: '{image}'}}"), tmp_path / "run"
    vectors = {one.name: one for one in plan_recipe(recipe, run) if one.name.startswith("vectors-")}
    assert {one.seconds for one in vectors.values()} == {None}
    paces = pilot_encoders(recipe, run)
    assert set(paces) == {(text, "texts"), (image, "texts"), (image, "images")}
    piloted = {one.name: one for one in plan_recipe(recipe, run, paces=paces)}
    assert not run.exists(), "a pilot of encoders writes nothing"
    assert piloted["vectors-image-pairs"].seconds == 432 * paces[image, "images"]
    assert piloted["vectors-source-pairs"].seconds == 432 * paces[text, "texts"]
