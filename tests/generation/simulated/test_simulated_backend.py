from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import CSPACE
from culturekit.core.tables import write_table
from culturekit.generation.backend import BACKENDS, Failure, ImageRequest, Picture
from tests.generation.simulated.simulated_models import asked, model, pictures, space, wide_space

SPACE = wide_space(24)
MIXED = [
    asked(1), asked(2, artifact_id="Q7"), asked(3, concept="music"), asked(4, country="FR"), asked(2**63 - 1),
    asked(-5), *map(asked, range(10, 30)),
]  # fmt: skip


def test_a_reply_is_the_same_in_whatever_batch(tmp_path: Path) -> None:
    backend = model(tmp_path, SPACE, "noise=0.3&error=0.5&collapse=0.3&size=32")
    together = backend.generate(MIXED)
    backwards = backend.generate(MIXED[::-1])[::-1]
    alone = [backend.generate([request])[0] for request in MIXED]
    assert sum(isinstance(reply, Failure) for reply in together) == 1
    for reply, *others in zip(together, backwards, alone, strict=True):
        for other in others:
            if isinstance(reply, Picture) and isinstance(other, Picture):
                assert np.array_equal(reply.pixels, other.pixels)
                assert reply == replace(other, pixels=reply.pixels)
            else:
                assert reply == other


def test_only_seed_artifact_and_country_matter(tmp_path: Path) -> None:
    backend = model(tmp_path, SPACE)
    one = asked(5, artifact_id="Q7")
    other = replace(one, prompt_id="q", text="another", negative_text="no", repeat=4, slot=2)
    first, second, third = pictures(backend.generate([one, other, replace(one, seed=6)]))
    assert np.array_equal(first.pixels, second.pixels)
    assert not np.array_equal(first.pixels, third.pixels)


def test_the_truth_comes_with_the_picture(tmp_path: Path) -> None:
    backend = model(tmp_path, SPACE)
    (named,) = pictures(backend.generate([asked(1, artifact_id="Q14")]))
    assert (named.truth_artifact_id, named.truth_country) == ("Q14", "IN")
    assert named.seed_honoured
    assert backend.knows_truth
    countries = dict(SPACE.select("artifact_id", "country").iter_rows())
    for picture in pictures(backend.generate([asked(seed) for seed in range(50)])):
        assert picture.truth_artifact_id
        assert picture.truth_country == countries[picture.truth_artifact_id]


def test_a_picture_shows_its_truth_and_not_what_was_asked_for(tmp_path: Path) -> None:
    (mistaken,) = pictures(model(tmp_path, SPACE, "error=1").generate([asked(1, artifact_id="Q14")]))
    assert mistaken.truth_artifact_id
    assert mistaken.truth_artifact_id != "Q14"
    honest = asked(1, artifact_id=mistaken.truth_artifact_id)
    (same,) = pictures(model(tmp_path, SPACE).generate([honest]))
    assert np.array_equal(mistaken.pixels, same.pixels)


def test_noise_is_the_share_of_pictures_without_truth_and_strikes_independently_of_error(tmp_path: Path) -> None:
    backend = model(tmp_path, SPACE, "noise=0.3&size=16")
    requests = [asked(seed, artifact_id="Q7" if seed % 2 else None) for seed in range(1000)]
    free = [picture.truth_artifact_id is None for picture in pictures(backend.generate(requests))]
    assert sum(free) / 1000 == pytest.approx(0.3, abs=0.045)
    assert sum(free[::2]) / 500 == pytest.approx(0.3, abs=0.06)
    backend = model(tmp_path, SPACE, "noise=0.5&error=0.5&size=16")
    drawn = pictures(backend.generate([asked(seed, artifact_id="Q7") for seed in range(1000)]))
    right = sum(picture.truth_artifact_id == "Q7" for picture in drawn)
    assert right / 1000 == pytest.approx(0.25, abs=0.045)


def test_a_culture_free_picture_depends_on_nothing_but_the_seed(tmp_path: Path) -> None:
    backend = model(tmp_path, SPACE, "noise=1")
    one, same, other = pictures(
        backend.generate([asked(3, artifact_id="Q7"), asked(3, artifact_id="Q14"), asked(4, artifact_id="Q7")])
    )
    assert np.array_equal(one.pixels, same.pixels)
    assert not np.array_equal(one.pixels, other.pixels)
    assert one.truth_country is None


@pytest.mark.parametrize("options", ["noise=0", "noise=1", "collapse=1"])
@pytest.mark.parametrize(("request_", "words"), [
    (asked(1, concept="music"), "concept 'music'"), (asked(1, country="ZZ"), "country 'ZZ'"),
    (asked(1, artifact_id="Q3"), "artifact 'Q3'"), (asked(1, concept=None), "neither artifact nor concept"),
])  # fmt: skip
def test_what_the_cspace_lacks_is_a_failure(tmp_path: Path, options: str, request_: ImageRequest, words: str) -> None:
    (reply,) = model(tmp_path, SPACE, options).generate([request_])
    assert isinstance(reply, Failure)
    assert reply.status == "failed"
    assert words in reply.reason


def test_the_option_goes_before_the_table_of_the_run_and_without_either_the_hint_helps(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    mine = write_table(tmp_path / "mine", CSPACE, space(("Q5", "art", "US", None)))
    run = write_table(tmp_path, CSPACE, SPACE)
    (picture,) = pictures(BACKENDS.make(f"simulated?cspace={mine}", cspace=run).generate([asked(1, concept="art")]))
    assert picture.truth_artifact_id == "Q5"
    with pytest.raises(UsageError, match="cspace=PATH"):
        BACKENDS.make("simulated?noise=1")
    with pytest.raises(UsageError, match=r"simulated\?cspace=PATH"):
        BACKENDS.make("simulated:cspace.parquet")


@pytest.mark.parametrize(("options", "words"), [
    ("noise=1.5", "noise"), ("temperature=-1", "temperature"), ("modes=0", "modes"), ("collapse=much", "collapse"),
    ("favour_strength=0.5", "favour_strength needs favour"), ("favour=US", "favour needs favour_strength"),
    ("favour=us&favour_strength=1", "favoured country 'us'.*FR or .*US"), ("favor=US", "no option favor"),
    ("drift_to=ZZ,US", "no artifact of ZZ, which drift_to names"), ("hubs=0", "hubs"), ("drift=-0.1", "drift"),
    ("drift=0.5&drift_to=BR,FR,IN,IT,JP,NG,TR,US", "nothing to draw away"), ("hub_skew=1.2", "hub_skew"),
])  # fmt: skip
def test_a_wrong_knob_is_said(tmp_path: Path, options: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        model(tmp_path, SPACE, options)
