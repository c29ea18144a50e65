"""Tables of images against their files, their prompts, and what was asked for."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from culturekit.verify.chain import sha256_of
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["check_images", "check_truth"]

CHECK = "images"
SHOWN = 3


def check_images(tree: RunTree, ledger: Ledger) -> None:
    """Go through every table of images."""
    for stage in tree.stages.values():
        if "images.parquet" in stage.manifest.outputs:
            with ledger.guarded(CHECK, stage.name):
                rows = pl.read_parquet(stage.folder / "images.parquet").to_dicts()
                check_files(stage, rows, ledger)
                check_asked(tree, stage, rows, ledger)


def check_files(stage: FinishedStage, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Compare the files with the table: each where it says, with the hash it says, and no other."""
    problems: list[tuple[str, str, object, object]] = []
    named = set()
    for row in rows:
        place = f"{stage.name}/{row['path']} (image {row['image_id']})"
        path = PurePosixPath(row["path"])
        if row["status"] != "ok":
            continue
        if path.is_absolute() or ".." in path.parts or not row["path"]:
            problems.append((place, "the path leads out of the folder", "a path below it", row["path"]))
            continue
        named.add(row["path"])
        file = stage.folder / path
        if not file.is_file():
            problems.append((place, "the picture is gone", row["sha256"], "no file"))
            continue
        content = sha256_of(file)
        if content != row["sha256"]:
            problems.append((place, "the picture is not the one that the table describes", row["sha256"], content))
    folders = [stage.folder / name for name, record in stage.manifest.outputs.items() if record.files]
    for file in (file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()):
        name = file.relative_to(stage.folder).as_posix()
        if name not in named:
            problems.append((f"{stage.name}/{name}", "the picture is in no row of the table", "a row", "none"))
    ledger.count("pictures compared with their rows", len(rows))
    for where, problem, expected, found in problems[:SHOWN]:
        ledger.broken(CHECK, where, problem, expected=expected, found=found)
    if len(problems) > SHOWN:
        ledger.broken(CHECK, f"{stage.name}/images.parquet", f"and {len(problems) - SHOWN:,} more such differences")


def check_asked(tree: RunTree, stage: FinishedStage, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Compare images with the prompts they were made from: who was asked, what, and how often."""
    where, path = f"{stage.name}/images.parquet", tree.source(stage, "prompts")
    wanted = stage.manifest.counts
    counted = {"images": len(rows), "ok": sum(row["status"] == "ok" for row in rows)}
    for name, found in counted.items():
        if wanted.get(name, found) != found:
            ledger.broken(CHECK, where, f"the manifest counts other {name}", expected=found, found=wanted[name])
    cells = Counter((row["model"], row["prompt_id"], row["repeat"], row["slot"]) for row in rows)
    twice = [cell for cell, count in cells.items() if count > 1 and None not in cell]
    if twice:
        ledger.broken(CHECK, where, "two images are of one prompt, repeat and slot", found=twice[0])
    if path is None or path.suffix != ".parquet":
        return
    prompts = {row["prompt_id"]: row for row in pl.read_parquet(path).to_dicts()}
    wrong = [problem for row in rows for problem in against_prompt(row, prompts)]
    for problem, expected, found in wrong[:SHOWN]:
        ledger.broken(CHECK, where, problem, expected=expected, found=found)
    ledger.count("images compared with their prompts", len(rows))


def against_prompt(
    row: Mapping[str, Any], prompts: Mapping[str, Mapping[str, Any]]
) -> list[tuple[str, object, object]]:
    """List in what an image departs from its prompt."""
    if row["prompt_id"] is None:
        return []
    prompt = prompts.get(row["prompt_id"])
    if prompt is None:
        return [(f"image {row['image_id']} is of a prompt that is not there", "one of the prompts", row["prompt_id"])]
    pairs = [(name, prompt[name], row.get(name)) for name in ("concept", "country") if row.get(name) is not None]
    if row["rewriter"] == "off" and row["prompt_sent"] is not None:
        pairs.append(("the prompt sent", prompt["text"], row["prompt_sent"]))
    return [
        (f"image {row['image_id']}: {name} is not the prompt's", expected, found)
        for name, expected, found in pairs
        if expected != found
    ]


def check_truth(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Work out what simulated images really show from what their tables say was drawn."""
    images, space = tree.source(stage, "images"), tree.source(stage, "cspace")
    if images is None or space is None:
        ledger.note("truth", stage.name, "its images or cultural space are not here")
        return
    compare_truth(stage, images, space, ledger)


def compare_truth(stage: FinishedStage, images: Path, space: Path, ledger: Ledger) -> None:
    """Compare the table of the truth with images and cultural space."""
    places: dict[tuple[str, str], dict[str, Any]] = {}
    countries: dict[str, set[str]] = {}
    for row in pl.read_parquet(space).to_dicts():
        places.setdefault((row["artifact_id"], row["country"]), row)
        countries.setdefault(row["artifact_id"], set()).add(row["country"])
    wanted = {}
    for row in pl.read_parquet(images).to_dicts():
        if row["status"] == "ok":
            artifact, country = row["truth_artifact_id"], row["truth_country"]
            place = places.get((artifact, country), {})
            kept = {name: row[name] for name in ("model", "prompt_id", "repeat", "slot")}
            wanted[row["image_id"]] = {
                **kept, "concept": row.get("concept"), "artifact_id": artifact, "country": country,
                "artifact": place.get("name"), "continent": place.get("continent"),
                "countries": sorted(countries.get(artifact, ())), "rank": 1, "abstained": artifact is None,
                "method": "truth",
            }  # fmt: skip
    found = {row["image_id"]: row for row in pl.read_parquet(stage.folder / "matches.parquet").to_dicts()}
    ledger.count("true labels worked out", len(wanted))
    where, shown = f"{stage.name}/matches.parquet", 0
    if set(wanted) != set(found):
        ledger.broken(
            "truth", where, "other images have a truth than were made", expected=len(wanted), found=len(found)
        )
    for image in sorted(set(wanted) & set(found)):
        for name, expected in wanted[image].items():
            if found[image][name] != expected and shown < SHOWN:
                shown += 1
                ledger.broken(
                    "truth", where, f"image {image}: {name} is not what was drawn", expected=expected,
                    found=found[image][name],
                )  # fmt: skip
