import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from culturekit.core.digests import digest_bytes
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.run import run_stage
from culturekit.core.schemas import IMAGES
from culturekit.generation.backend import BACKENDS
from culturekit.generation.folder import folder_run as folder_hashes
from culturekit.generation.folder.folder_listing import PictureFile
from culturekit.generation.folder.folder_run import image_folder, stage_of
from tests.conftest import HeardProgress, HereEngine, Item, Result, stage_here
from tests.faults.kill_and_resume import content
from tests.generation.folder.folder_worlds import clean, fill, picture, prompts, take


def test_every_file_is_a_row_and_what_is_no_picture_is_counted(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["p1__a.png", "deep/er/p2__b.png", ".hidden/p3__c.png", ".p4.png", "p4__d"])
    (root / "Thumbs.db").write_bytes(b"x")
    (root / "notes.txt").write_bytes(b"x")
    (root / "._p1__a.png").write_bytes(b"\x00\x05\x16\x07rest")
    run, rows = take(f"folder:{root}?pattern={{prompt_id}}__{{_}}|.{{prompt_id}}", tmp_path / "out", prompts(tmp_path))
    assert dict(zip(rows["source"], rows["prompt_id"], strict=True)) == {
        "p1__a.png": "p1", "deep/er/p2__b.png": "p2", ".hidden/p3__c.png": "p3", ".p4.png": "p4", "p4__d": "p4",
    }  # fmt: skip
    assert set(rows["status"]) == {"ok"}
    assert run.manifest.drops == {".db": 1, ".txt": 1, "side file of a Mac (._NAME)": 1}
    assert run.manifest.notes["not_pictures"][".txt"] == ["notes.txt"]
    assert clean(run)
    assert IMAGES.problems(pl.read_parquet(tmp_path / "out/images.parquet")) == []
    drops = pl.read_parquet(tmp_path / "out/drops.parquet")
    assert drops["key"].to_list() == ["._p1__a.png", "Thumbs.db", "notes.txt"]


def test_a_folder_without_a_picture_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "pics").mkdir()
    run, rows = take(f"folder:{tmp_path / 'pics'}", tmp_path / "out", prompts(tmp_path))
    assert rows.is_empty()
    assert run.manifest.notes["findings"] == ["the folder holds no picture"]


def test_a_plain_file_stays_as_it_is_and_another_is_written_anew(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["plain.png"])
    Image.new("RGBA", (8, 8), (200, 0, 0, 128)).save(root / "clear.png")
    (root / "photo.jpg").write_bytes(picture(6, form="JPEG"))
    frames = [Image.fromarray(np.full((8, 8, 3), shade, np.uint8)) for shade in (0, 120, 255)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    (root / "moving.gif").write_bytes(buffer.getvalue())
    (root / "grey.png").write_bytes(picture(7, mode="L"))
    _, rows = take(f"folder:{root}", tmp_path / "out")
    by = {row["source"]: row for row in rows.iter_rows(named=True)}
    for name in ("plain.png", "photo.jpg"):
        assert (tmp_path / "out" / by[name]["path"]).read_bytes() == (root / name).read_bytes()
        assert (tmp_path / "out" / by[name]["path"]).samefile(root / name)
        assert by[name]["sha256"] == by[name]["source_sha256"]
        assert by[name]["reason"] is None
    assert by["photo.jpg"]["path"].endswith(".jpg")
    for name, reason in (
        ("clear.png", "transparency laid on white"),
        ("moving.gif", "first of 3 frames"),
        ("grey.png", "L to RGB"),
    ):
        written = tmp_path / "out" / by[name]["path"]
        assert written.suffix == ".png"
        assert reason in by[name]["reason"]
        assert by[name]["source_sha256"] == digest_bytes((root / name).read_bytes())
        assert by[name]["sha256"] == digest_bytes(written.read_bytes()) != by[name]["source_sha256"]
        with Image.open(written) as opened:
            assert opened.mode == "RGB"
        assert (by[name]["width"], by[name]["height"]) == (8, 8)


def test_where_links_cannot_be_made_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    root = fill(tmp_path / "pics", ["a.png"])
    monkeypatch.setattr(os, "link", cannot)
    _, rows = take(f"folder:{root}", tmp_path / "out")
    assert (tmp_path / "out" / rows["path"][0]).stat().st_nlink == 1


def test_the_same_folder_elsewhere_linked_or_copied_gives_the_same_bytes(tmp_path: Path) -> None:
    names = ["p1__1.png", "p1__2.png", "p2__1.png", "nothing.png"]
    one, two = fill(tmp_path / "a/pics", names), fill(tmp_path / "b/c/pics", list(names))
    table = prompts(tmp_path)
    take(f"folder:{one}?pattern={{prompt_id}}__{{id}}", tmp_path / "one", table, slots=2)
    take(f"folder:{two}?pattern={{prompt_id}}__{{id}}&files=copy", tmp_path / "two", table, slots=2)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert [next((tmp_path / name).rglob("*.png")).stat().st_nlink for name in ("one", "two")] == [2, 1]


@pytest.mark.endtoend
def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", [f"p{1 + number % 4}__{number}.png" for number in range(450)])
    table = prompts(tmp_path)
    take(f"folder:{root}", tmp_path / "one", table)
    stage = stage_of(image_folder(f"folder:{root}", table))
    with LocalEngine(2) as engine:
        run_stage(stage, tmp_path / "two", engine=engine, progress=HeardProgress())
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_repeats_and_slots_are_dealt_out_in_natural_order_and_holes_are_rows(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", [f"p1_img{number}.png" for number in (10, 2, 1, 9, 3)])
    run, rows = take(
        f"folder:{root}?pattern={{prompt_id}}_{{id}}", tmp_path / "out", prompts(tmp_path, {"p1": "one", "p2": "two"}),
        repeats=2, slots=2,
    )  # fmt: skip
    places = {row["source"]: (row["repeat"], row["slot"]) for row in rows.iter_rows(named=True) if row["source"]}
    assert places == {
        "p1_img1.png": (0, 0), "p1_img2.png": (0, 1), "p1_img3.png": (1, 0), "p1_img9.png": (1, 1),
        "p1_img10.png": (2, 0),
    }  # fmt: skip
    missing = rows.filter(pl.col("status") == "missing")
    assert missing.select("prompt_id", "repeat", "slot").rows() == [
        ("p2", 0, 0), ("p2", 0, 1), ("p2", 1, 0), ("p2", 1, 1),
    ]  # fmt: skip
    assert set(missing["reason"]) == {"no file for this prompt, repeat and slot"}
    assert missing["image_id"].n_unique() == 4
    assert run.manifest.drops == {"missing": 4}
    assert not clean(run)


def test_repeats_that_were_begun_are_filled_up_and_names_that_count_from_one_can_be_shifted(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", [f"p1_{number}.png" for number in range(3)])
    _, rows = take(
        f"folder:{root}?pattern={{prompt_id}}_{{id}}", tmp_path / "o", prompts(tmp_path, {"p1": "x"}), slots=2
    )
    assert rows.filter(pl.col("status") == "missing").select("repeat", "slot").rows() == [(1, 1)]
    root = fill(tmp_path / "shifted", ["p1_1_1.png", "p1_1_2.png"])
    _, rows = take(
        f"folder:{root}?pattern={{prompt_id}}_{{repeat}}_{{slot}}&first=1", tmp_path / "p", prompts(tmp_path)
    )
    assert rows.select("repeat", "slot").rows() == [(0, 0), (0, 1)]


def test_numbers_of_names_are_kept_and_a_place_taken_twice_is_said(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["p1/2-5.png", "p1/0-1.jpg", "p1/0-1.png", "p1/0-999.png"])
    run, rows = take(f"folder:{root}?pattern={{prompt_id}}/{{repeat}}-{{slot}}", tmp_path / "o", prompts(tmp_path))
    by = {row["source"]: row for row in rows.iter_rows(named=True)}
    assert (by["p1/2-5.png"]["repeat"], by["p1/2-5.png"]["slot"]) == (2, 5)
    assert by["p1/0-1.png"]["reason"] == "same repeat and slot as p1/0-1.jpg"
    assert by["p1/0-999.png"]["status"] == "unmatched"
    assert "slot 999" in by["p1/0-999.png"]["reason"]
    assert not clean(run)


def test_prompts_are_found_by_their_text_as_file_names_spell_it(tmp_path: Path) -> None:
    names = {
        "A_photo_of_Jollof_rice,_from_Nigeria__1.png": "p1", "a-photo-of-creme-brulee-from-france__1.png": "p2",
        "写真_抹茶_日本__1.png": "p3", "a photo of jollof rice and__1.png": "p4",
    }  # fmt: skip
    root = fill(tmp_path / "pics", [*names, "a photo of jollof rice__1.png", "a photo of a cat__1.png"])
    run, rows = take(f"folder:{root}?pattern={{prompt}}__{{id}}.png", tmp_path / "out", prompts(tmp_path))
    found = dict(zip(rows["source"], rows["prompt_id"], strict=True))
    assert {name: found[name] for name in names} == names
    unmatched = dict(rows.filter(pl.col("status") == "unmatched").select("source", "reason").rows())
    assert unmatched["a photo of jollof rice__1.png"] == "fits more than one prompt: p1, p4"
    assert unmatched["a photo of a cat__1.png"] == "no prompt reads 'a photo of a cat'"
    assert run.manifest.notes["findings"] == ["1 file found no prompt", "1 file fits more than one prompt"]


def test_what_a_prompt_is_about_finds_it_too(tmp_path: Path) -> None:
    root = fill(
        tmp_path / "pics", ["Nigeria/jollof_rice_1.png", "gh/jollof rice_1.png", "JPN/Q3_1.png", "FR/pizza_1.png"]
    )
    run, rows = take(f"folder:{root}?pattern={{country}}/{{artifact}}_{{id}}", tmp_path / "out", prompts(tmp_path))
    assert dict(zip(rows["source"], rows["prompt_id"], strict=True)) == {
        "Nigeria/jollof_rice_1.png": "p1", "gh/jollof rice_1.png": "p4", "JPN/Q3_1.png": "p3", "FR/pizza_1.png": None,
    }  # fmt: skip
    assert not clean(run)


def test_a_pattern_is_found_where_none_is_stated(tmp_path: Path) -> None:
    table = prompts(tmp_path)
    for number, names in enumerate(
        [
            ["p1.png", "p2.png"],
            ["p1/x.png", "p1/y.png"],
            ["7-123-A photo of Jollof rice, from Nigeria.png"],
            ["p1_a_b.png"],
        ]
    ):
        run, rows = take(f"folder:{fill(tmp_path / str(number), names)}", tmp_path / f"out{number}", table)
        assert None not in rows["prompt_id"].to_list(), names
        assert run.manifest.notes["naming"]["guessed"]


def test_duplicates_are_rows_that_name_the_first(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["p1__1.png", "p1__2.png"])
    (root / "p1__10.png").write_bytes((root / "p1__1.png").read_bytes())
    run, rows = take(f"folder:{root}", tmp_path / "out", prompts(tmp_path))
    by = {row["source"]: row for row in rows.iter_rows(named=True)}
    assert by["p1__10.png"]["duplicate_of"] == by["p1__1.png"]["image_id"] != by["p1__10.png"]["image_id"]
    assert run.manifest.counts["duplicates"] == 1
    assert run.manifest.notes["duplicates"] == {"files": 1, "of": 1, "samples": [["p1__1.png", "p1__10.png"]]}
    assert clean(run)


def test_links_that_lead_out_are_rows_and_are_not_read(tmp_path: Path) -> None:
    outside = fill(tmp_path / "elsewhere", ["other.png", "secret.png"])
    root = fill(tmp_path / "pics", ["in.png"])
    (root / "out.png").symlink_to(outside / "secret.png")
    (root / "up.png").symlink_to("../elsewhere/secret.png")
    (root / "gone.png").symlink_to("nothing.png")
    (root / "inner.png").symlink_to("in.png")
    (root / "folder").symlink_to(outside)
    (root / "loop").symlink_to(".")
    run, rows = take(f"folder:{root}", tmp_path / "out")
    assert dict(rows.select("source", "reason").rows()) == {
        "in.png": None, "inner.png": None, "out.png": "link that leads out of the folder",
        "up.png": "link that leads out of the folder", "gone.png": "link that leads nowhere",
    }  # fmt: skip
    assert run.manifest.drops == {
        "failed": 3,
        "link that leads out of the folder": 1,
        "link to a folder, which is not followed": 1,
    }
    secret = digest_bytes((outside / "secret.png").read_bytes())
    assert secret not in content(tmp_path / "out").values()
    assert not clean(run)


def test_broken_files_pipes_and_odd_names_are_rows(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["good.png", "日本 語\n.png"])
    (root / "empty.png").write_bytes(b"")
    (root / "cut.png").write_bytes(picture(1)[:60])
    (root / "text.jpg").write_bytes(b"no picture at all")
    os.mkfifo(root / "pipe.png")
    (Path(os.fsdecode(os.fsencode(root) + b"/\xff\xfe.png"))).write_bytes(picture(3))
    run, rows = take(f"folder:{root}", tmp_path / "out")
    ok = rows.filter(pl.col("status") == "ok")["source"].to_list()
    assert sorted(ok) == sorted(["good.png", "日本 語\n.png", "\\xff\\xfe.png"])
    failed = rows.filter(pl.col("status") == "failed")
    assert failed["source"].to_list() == ["cut.png", "empty.png", "pipe.png", "text.jpg"]
    assert failed["reason"].null_count() == 0
    assert run.manifest.notes["findings"] == ["4 files could not be read as a picture"]


def test_models_are_named_by_the_pattern_and_one_can_be_taken(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["sdxl/p1_0.png", "flux/p1_0.png"])
    spec, table = f"folder:{root}?pattern={{model}}/{{prompt_id}}_{{slot}}", prompts(tmp_path)
    _, both = take(spec, tmp_path / "both", table)
    assert both["model"].to_list() == ["flux", "sdxl"]
    run, one = take(spec, tmp_path / "one", table, model="SDXL")
    assert one.select("model", "source").rows() == [("SDXL", "sdxl/p1_0.png")]
    assert run.manifest.drops == {"of another model": 1}
    fill(root, ["SDXL/p1_0.png"])
    with pytest.raises(UsageError, match=r"names of models that cannot be told apart.*found 'SDXL' and 'sdxl'"):
        take(spec, tmp_path / "alike", table)


def test_without_prompts_names_still_tell_what_they_tell(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["Nigeria/a_fish_dish__2.png", "Nigeria/a_fish_dish__1.png"])
    run, rows = take(f"folder:{root}?pattern={{country}}/{{prompt}}__{{id}}", tmp_path / "out")
    assert rows.select("prompt_id", "prompt_sent", "country", "repeat", "slot").rows() == [
        ("a-fish-dish", "a fish dish", "NG", 0, 0),
        ("a-fish-dish", "a fish dish", "NG", 1, 0),
    ]
    assert clean(run)
    with pytest.raises(UsageError, match="no prompts were given"):
        take(f"folder:{root}?pattern={{artifact}}__{{id}}", tmp_path / "none")


def test_a_folder_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["a.png", "b.png"])

    class Meddler(HereEngine):
        def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
            assert function.__name__ == "take_shard"
            (root / "b.png").write_bytes(picture(77))
            return super().map(function, items)

    stage = stage_of(image_folder(f"folder:{root}", None))
    with pytest.raises(IntegrityError, match="changed while it was read"):
        run_stage(stage, tmp_path / "out", engine=Meddler(), progress=HeardProgress())
    assert not (tmp_path / "out").exists()
    _, rows = take(f"folder:{root}", tmp_path / "out")
    assert set(rows["status"]) == {"ok"}


def test_a_folder_is_not_hashed_twice_and_a_change_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    hash_file = folder_hashes.hash_file

    def heard(root: Path, file: PictureFile) -> PictureFile:
        seen.append(file.name)
        return hash_file(root, file)

    monkeypatch.setattr(folder_hashes, "WORTH_REMEMBERING", 0)
    monkeypatch.setattr(folder_hashes, "hash_file", heard)
    root = fill(tmp_path / "pics", ["a.png", "b.png"])
    assert take(f"folder:{root}", tmp_path / "out")[0].state == "built"
    assert take(f"folder:{root}", tmp_path / "out")[0].state == "reused"
    assert sorted(seen) == ["a.png", "b.png"]
    (root / "b.png").write_bytes(picture(9))
    assert take(f"folder:{root}", tmp_path / "out")[0].state == "built"
    assert sorted(seen) == ["a.png", "b.png", "b.png"]


def test_the_output_cannot_lie_in_the_folder_which_is_imported_and_not_asked(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["a.png"])
    with pytest.raises(UsageError, match="lies in the folder of images"):
        take(f"folder:{root}", root / "out")
    assert sorted(path.name for path in root.iterdir()) == ["a.png"]
    with pytest.raises(UsageError, match="a folder of images is imported, not asked"):
        BACKENDS.make(f"folder:{tmp_path / 'pics'}?pattern={{prompt_id}}_{{slot}}")


def test_a_picture_that_cannot_be_read_costs_no_batch_of_the_others(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", [f"p1__{number:02d}.png" for number in range(24)])
    for number in (1, 9, 17):
        (root / f"p1__{number:02d}.png").write_bytes(b"\x89PNG\r\n\x1a\nno picture")
    out = tmp_path / "out"
    folder = image_folder(f"folder:{root}?pattern={{prompt_id}}__{{_}}", prompts(tmp_path), repeats=3, slots=8)
    run = stage_here(stage_of(folder), out)
    rows = pl.read_parquet(out / "images.parquet").filter(prompt_id="p1")
    assert rows.filter(status="ok").group_by("repeat").len().sort("repeat")["len"].to_list() == [8, 8, 5]
    assert rows.select("repeat", "slot").unique().height == 24
    assert run.manifest.drops["failed"] == 3
    assert run.manifest.notes["moved_to_fill_batches"] == 3
    ok = rows.filter(status="ok").sort("repeat", "slot")["source"].to_list()
    assert ok == sorted(ok)


def test_places_that_names_state_stay_though_a_picture_cannot_be_read(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", [f"p1__{repeat}-{slot}.png" for repeat in range(2) for slot in range(4)])
    (root / "p1__0-1.png").write_bytes(b"no picture")
    _, rows = take(f"folder:{root}?pattern={{prompt_id}}__{{repeat}}-{{slot}}", tmp_path / "out", prompts(tmp_path))
    stated = {f"p1__{row['repeat']}-{row['slot']}.png": row["source"] for row in rows.iter_rows(named=True)}
    assert all(name == source for name, source in stated.items())
