"""What was tampered with is found, also where every hash was made to fit again, in runs of all five recipes."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.digests import digest_file
from culturekit.core.schemas import KEPT
from culturekit.core.tables import write_table
from culturekit.people.space_check import sample, score
from culturekit.verify.verify_run import Verification, verify_run
from tests.builders.spaces import rows_of
from tests.conftest import stage_here
from tests.people.test_space_review import answered
from tests.recipes.shipped_recipes import SMALL, shared_small
from tests.verify.forging import (
    Tamper,
    change_table,
    drop_row,
    edit_cell,
    edit_output,
    edit_text,
    in_json,
    in_recipe,
    in_text,
    read_json,
    reseal,
    reseal_all,
    write_json,
)

# One stage of each kind that the small runs have, by recipe
STAGES = {
    "cube": (
        "candidates comparison cspace diagnosis filter graph images-broad images-floor-shuffled index matches-broad "
        "prompts quality-broad report scores shown truth-broad"
    ),
    "c3": (
        "aligned-pairs alt-texts answers-images captioned-plain captions collection collection-prompts difficulty "
        "exported-c3 faithfulness judged-vqascore named-expanded pair-truth pairs-to-rate pearson prompts ranked "
        "rated-images rated-sample ratings report seen-pairs selected stats-expanded to-rate-images translated "
        "vectors-image-pairs vqascore-plain worth"
    ),
    "cultivate": (
        "ablations baseline-values compared cure-northern-placed exag-candidates-described faithfulness level-placed "
        "activities ahead-truth breakdown by-group corrected-gaps descriptors extracted-even gaps images-even "
        "judged-align likert-even-by-1 marks mentions meta others pages phrases prompts proposals-1 rated-sample "
        "raters ratings real real-scores report simulated-answers sources stereotyped-even stereotypes taken-in "
        "to-mark-items to-rate truth-even"
    ),
    "inclusion": (
        "answers-task1 extractors images-glossy judged-objects marks names-of-objects objects-glossy plain-prompts "
        "rated-task1 realism-by-captioner report scores-task1 scores-task2 tables-task1 to-look-at to-rate-task1 "
        "triplets truth"
    ),
    "linguistic": (
        "answers-persons clipscore-literal dialects drawn-persons images-literal judged-modern neutral-literal "
        "prompts prompts-dialects prompts-neutral prompts-specific question-captions questions-literal rated-persons "
        "ratings report to-rate-persons tones-dall-eval truth vectors-images-literal"
    ),
}

# Stages of `cube` whose outputs are edited in every run of the tests; all others in the slow ones
QUICK = ("candidates", "images-broad", "report", "scores")

# Stages from whose output the recipe is wired, and what is found where it is edited
ALONE = {"pages": "recipe.json: gives no run here"}

RECIPES = ["cube", *(pytest.param(recipe, marks=pytest.mark.slow) for recipe in SMALL)]


@pytest.fixture
def run(request: pytest.FixtureRequest, shared_folder: Path, tmp_path: Path) -> Path:
    """A copy of the finished small run of the recipe that a test names, to break."""
    recipe = request.node.callspec.params["recipe"]
    whole = request.getfixturevalue("small_run") if recipe == "cube" else shared_small(recipe, shared_folder)
    return Path(shutil.copytree(whole, tmp_path / "run"))


def broken(answer: Verification) -> str:
    return "\n".join(str(finding) for finding in answer.findings if finding.severity == "broken")


def test_an_untouched_run_is_verified(small_run: Path) -> None:
    answer = verify_run(small_run)
    assert answer.findings == ()
    assert answer.exit_code == 0
    assert {verdict.verdict for verdict in answer.verdicts} == {"verified"}
    tables = [pl.read_parquet(small_run / f"{stage}/scores.parquet") for stage in ("scores", "comparison")]
    assert len(answer.verdicts) == sum(table.height for table in tables)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", SMALL)
def test_an_untouched_run_of_another_recipe_is_verified(recipe: str, shared_folder: Path) -> None:
    answer = verify_run(shared_small(recipe, shared_folder))
    assert [str(finding) for finding in answer.findings] == []
    assert {verdict.verdict for verdict in answer.verdicts} == {"verified"}


@pytest.mark.parametrize("recipe", RECIPES)
def test_there_is_a_tampering_with_every_kind_of_stage(recipe: str, run: Path) -> None:
    kinds = {read_json(path)["stage"] for path in run.glob("*/manifest.json")}
    assert {read_json(run / name / "manifest.json")["stage"] for name in STAGES[recipe].split()} == kinds


def test_a_run_whose_manifests_were_only_written_again_is_verified(run_copy: Path) -> None:
    """The forger's tools alone change nothing: what tamperings find is the tampering."""
    reseal_all(run_copy)
    assert broken(verify_run(run_copy)) == ""


def outputs_of(folder: Path) -> list[Path]:
    """List what a stage wrote, but for empty tables."""
    paths = [folder / name for name in read_json(folder / "manifest.json")["outputs"]]
    return [path for path in paths if path.suffix != ".parquet" or pl.read_parquet(path).height]


def apart(run: Path, names: Sequence[str]) -> list[list[str]]:
    """Part stages into lists within which none reads another: what is found of each is of its own tampering."""
    reads = {}
    for name in names:
        record = read_json(run / name / "run.json")
        reads[name] = {Path(place).parts[1] for place in record["inputs"].values() if Path(place).parts[0] == ".."}
    parted: list[list[str]] = []
    for name in names:
        for part in parted:
            if not any(name in reads[other] or other in reads[name] or {name, other} & {*ALONE} for other in part):
                part.append(name)
                break
        else:
            parted.append([name])
    return parted


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_output_that_is_edited_is_seen_by_its_hash(recipe: str, run: Path) -> None:
    paths = [path for name in STAGES[recipe].split() for path in outputs_of(run / name)]
    for path in paths:
        edit_output(path)
    found = broken(verify_run(run, only=["report"]))
    missed = [path for path in paths if f"{path.relative_to(run)}: is not what its stage wrote" not in found]
    assert missed == []


def check_edits_are_found(run: Path, names: Sequence[str], cases: int) -> None:
    """Edit a cell, a number, a letter or a picture of every output, and what no hash covers: counts, drops, notes.

    All hashes are made to fit again.
    """
    tried = 0
    for part in apart(run, names):
        copy = Path(shutil.copytree(run, run.with_name("copy")))
        expected = []
        for name in part:
            for path in outputs_of(copy / name):
                edit_output(path)
                expected.append(f"{name}/{path.name}: ")
            manifest = read_json(copy / name / "manifest.json")
            for stated in ("counts", "drops", "notes"):
                manifest[stated] = {**manifest.get(stated, {}), "made up": 7}
                expected.append(f"{name}/manifest.json: its {stated} are others when it is made again")
            write_json(copy / name / "manifest.json", manifest)
        reseal_all(copy)
        found = broken(verify_run(copy, only=part))
        if part[0] in ALONE:
            expected = [ALONE[part[0]]]
        assert [line for line in expected if line not in found] == [], found
        tried += len(expected)
        shutil.rmtree(copy)
    assert tried >= cases


def test_every_edit_is_found_where_all_hashes_fit(run_copy: Path) -> None:
    check_edits_are_found(run_copy, QUICK, 18)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "cases"), [("cube", 60), ("c3", 100), ("cultivate", 130), ("inclusion", 60), ("linguistic", 70)]
)
def test_every_edit_of_every_kind_of_stage_is_found(recipe: str, cases: int, run: Path) -> None:
    check_edits_are_found(run, STAGES[recipe].split(), cases)


def test_every_edit_of_a_space_that_was_checked_by_hand_is_found(tmp_path: Path) -> None:
    """The manifests of a sample and of its score have all that makes them again; no recipe does."""
    dish = {"concept": "cuisine", "country_qids": ["Q155"], "roots": ["Q746549"], "reason": "judge m"}
    rows = [{**dish, "qid": f"Q{n}", "label": f"dish {n}", "verdict": "keep" if n % 3 else "review"}
            for n in range(1, 60)]  # fmt: skip
    kept, run = write_table(tmp_path, KEPT, rows_of(KEPT, *rows).sort(KEPT.key)), tmp_path / "run"
    stage_here(sample.stage(kept, keeps=20, undecided=9, seed=3), run / "to-check")
    answered(run / "to-check", 2)
    stage_here(score.stage(run / "to-check", confidence=0.9), run / "checked")
    assert verify_run(run).findings == ()
    check_edits_are_found(run, ["to-check", "checked"], 12)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", STAGES)
def test_every_row_that_is_removed_is_found(recipe: str, run: Path) -> None:
    for part in apart(run, STAGES[recipe].split()):
        copy = Path(shutil.copytree(run, run.with_name("copy")))
        tables = [path for name in part for path in outputs_of(copy / name) if path.suffix == ".parquet"]
        for path in tables:
            drop_row(path)
        reseal_all(copy)
        found = broken(verify_run(copy, only=part))
        assert [path for path in tables if f"{path.parent.name}/{path.name}: " not in found] == [], found
        shutil.rmtree(copy)


def replaced_picture(number: int) -> Tamper:
    """Put a picture in the place of another, and say so in the table."""

    def change(root: Path) -> None:
        table = root / "images-broad/images.parquet"
        rows = pl.read_parquet(table)
        mine, other = rows["path"][number], rows["path"][number - 5]
        shutil.copyfile(root / "images-broad" / other, root / "images-broad" / mine)
        seen = digest_file(root / "images-broad" / mine)
        change_table(
            table,
            lambda t: t.with_columns(sha256=pl.when(pl.col("path") == mine).then(pl.lit(seen)).otherwise("sha256")),
        )

    return change


def edited(path: str, edit: Tamper) -> Tamper:
    return lambda root: edit(root / path)


def without_stage(name: str) -> Tamper:
    return lambda root: shutil.rmtree(root / name)


def unlisted_stage(name: str) -> Tamper:
    """Take a stage out of the run and out of the list that the recipe record has of its stages."""

    def change(root: Path) -> None:
        shutil.rmtree(root / name)
        in_recipe("stages", to=lambda stages: [each for each in stages if each != name])(root)

    return change


def earlier(change: Tamper) -> Tamper:
    """Have another stage be of an earlier version, too."""

    def both(root: Path) -> None:
        in_json("scores/manifest.json", "version", to=8)(root)
        change(root)

    return both


def add_picture(root: Path) -> None:
    first = min((root / "images-broad/files").rglob("*.png"))
    shutil.copyfile(first, first.with_name("zzz.png"))


def path_outside(root: Path) -> None:
    def change(table: pl.DataFrame) -> pl.DataFrame:
        there = "../images-narrow/" + table["path"][0]
        return table.with_columns(path=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(there)).otherwise("path"))

    change_table(root / "images-broad/images.parquet", change)


def link_outside(root: Path) -> None:
    outside = root.parent / "elsewhere.parquet"
    (root / "scores/values.parquet").rename(outside)
    (root / "scores/values.parquet").symlink_to(outside)


def another_input(root: Path) -> None:
    """Have scores read the images of one model in the place of another's, and say so wherever it is said."""
    record = read_json(root / "quality-broad/run.json")
    record["inputs"]["images"] = "../images-narrow/images.parquet"
    write_json(root / "quality-broad/run.json", record)


def cut_manifest(root: Path) -> None:
    path = root / "index/manifest.json"
    path.write_bytes(path.read_bytes()[:-40])


@dataclass(frozen=True)
class Tampering:
    """The stage that is made again to find it, what is changed, how it ends, and a part of what is said."""

    stage: str
    change: Tamper
    code: int
    said: str
    sealed: bool = True


PAGE = "report/report.html"
# Of a run of `cube`; hashes are made to fit again wherever `sealed`
TAMPERINGS = {
    "prose of the report": Tampering("report", in_text(PAGE, "diversity", "variety"), 4, "report.html: line"),
    "the title of the report": Tampering("report", in_text(PAGE, "<title>", "<title>Best: "), 4, "report.html: line"),
    "a widened CSP": Tampering("report", in_text(PAGE, "default-src &#39;none&#39;", "default-src *"), 4,
     "report.html: line"),
    "a script in the report": Tampering("report", in_text(PAGE, "</body>", "<script>1</script></body>"), 4,
     "report.html: line"),
    "a style of the report": Tampering("report", in_text(PAGE, "<style", "<style data-a=b"), 4, "report.html: line"),
    "models of the report": Tampering("report", in_text(PAGE, 'data-model="broad"', 'data-model="narrow"'), 4,
     "report.html: line"),
    "a report that is cut": Tampering("report", edited(PAGE, lambda path: path.write_bytes(path.read_bytes()[:-9])), 4,
     "report.html"),
    "a removed report": Tampering("scores", without_stage("report"), 1,
     "report: is a stage of the recipe, and is not here", sealed=False),
    "a removed stage": Tampering("scores", without_stage("truth-broad"), 4, "no stage of the run wrote this input",
     sealed=False),
    "a stage taken off the list": Tampering("report", unlisted_stage("comparison"), 4,
     "recipe.json: is not what a run writes", sealed=False),
    "a first picture replaced": Tampering("images-broad", replaced_picture(5), 4, "images-broad"),
    "a picture replaced in the middle": Tampering("matches-broad", replaced_picture(21), 4, "matches-broad"),
    "a picture added": Tampering("images-broad", add_picture, 4, "the picture is in no row of the table"),
    "a picture of another folder": Tampering("images-broad", path_outside, 4, "the path leads out of the folder"),
    "a link out of the run": Tampering("scores", link_outside, 4, "a link leads out", sealed=False),
    "another input": Tampering("quality-broad", another_input, 4,
     "quality-broad: is not the stage that its recipe gives"),
    "a manifest cut": Tampering("prompts", cut_manifest, 4, "index/manifest.json: could not be read", sealed=False),
    "a file added": Tampering("prompts", lambda root: (root / "scores/notes.txt").write_text("a"), 4,
     "is in no manifest", sealed=False),
    "an option": Tampering("scores", in_json("scores/manifest.json", "options", "confidence", to=0.9), 4,
     "option confidence: 0.9 -> 0.95"),
    "an option in the forger's favour": Tampering("scores", in_json("scores/manifest.json", "options", "size", to=4), 4,
     "option size: 4 -> 8"),
    "a seed": Tampering("images-broad", in_json("images-broad/manifest.json", "seeds", "images", to=5), 4,
     "seed images"),
    "a backend": Tampering("images-broad", in_json("images-broad/manifest.json", "options", "backend",
     to="simulated?temperature=9"), 4, "option backend"),
    "a kind": Tampering("shown", in_json("shown/manifest.json", "stage", to="score-shown"), 4,
     "kind: score-shown -> distribution"),
    "a name of an input": Tampering("quality-broad", in_json("quality-broad/manifest.json", "inputs", "images", "name",
     to="m.parquet"), 4, "named otherwise"),
    "a key of no manifest": Tampering("scores", in_json("scores/manifest.json", "checked by", to="somebody"), 4,
     "says something that no", sealed=False),
    "an earlier version": Tampering("scores", in_json("scores/manifest.json", "version", to=8), 1,
     "made by version 8 of score-qvs"),
    "an option of a version with fewer": Tampering("scores", in_json("scores/manifest.json", "options",
     to=lambda options: {name: value for name, value in options.items() if name != "confidence"}), 1,
     "scores: not verifiable here: made when the stage had fewer options; option confidence: not there -> "),
    "another kind of stage, among stages of an earlier version": Tampering("shown", earlier(
     in_json("shown/manifest.json", "stage", to="score-shown")), 1, "made by an earlier version of its recipe; kind: "),
    "an input that an earlier version did not have": Tampering("report", earlier(in_json("report/manifest.json",
     "inputs", to=lambda inputs: dict(list(inputs.items())[1:]))), 1, "by an earlier version of its recipe; input"),
    "a table in the place of another, among stages of an earlier version": Tampering("quality-broad",
     earlier(another_input), 4, "is not the stage that its recipe gives"),
    "a later version": Tampering("report", in_json("report/manifest.json", "version", to=99), 1,
     "made by version 99 of report"),
    "the seed of the recipe": Tampering("images-broad", in_recipe("seed", to=5), 4, "seed images"),
    "the encoder of the recipe": Tampering("index", in_recipe("encoder", to="letters"), 4,
     "is not the stage that its recipe gives"),
    "the judge of the recipe": Tampering("filter", in_recipe("judge", to="simulated:filter"), 4,
     "filter: is not the stage"),
    "the models of the recipe": Tampering("prompts", in_recipe("models", 0, "name", to="best"), 4,
     "recipe.json: is not what a run writes"),
    "a backend of the recipe": Tampering("images-broad", in_recipe("models", 0, "backend",
     to="simulated?temperature=9"), 4, "option backend"),
    "countries of the recipe": Tampering("candidates", in_recipe("countries", to=["JP", "FR"]), 4,
     "candidates: is not the stage"),
    "scores of the recipe": Tampering("scores", in_recipe("scores", "confidence", to=0.8), 4,
     "scores: is not the stage"),
    "a recipe of a version with fewer keys": Tampering("prompts", in_recipe("models", 0, "buying", to={}), 1,
     "lacks keys that a run of this version writes"),
    "a key of no recipe": Tampering("prompts", in_recipe("verified", to=True), 4, "recipe.json: gives no run here"),
    "spaces in the recipe": Tampering("prompts", in_text("recipe.json", ":", ": "), 4,
     "recipe.json: is not what a run writes"),
    "no recipe": Tampering("report", lambda root: (root / "recipe.json").unlink(), 4, "recipe.json: is gone",
     sealed=False),
}  # fmt: skip

OFTEN = {"prose of the report", "a widened CSP", "a removed report", "the encoder of the recipe", "an earlier version"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in OFTEN else [pytest.mark.slow]) for n in TAMPERINGS])
def test_a_tampering_is_found(name: str, run_copy: Path) -> None:
    tampering = TAMPERINGS[name]
    tampering.change(run_copy)
    if tampering.sealed:
        reseal_all(run_copy)
    answer = verify_run(run_copy, only=[tampering.stage])
    found = [str(finding) for finding in answer.findings if finding.severity != "note"]
    assert answer.exit_code == tampering.code, found
    assert any(tampering.said in line for line in found), found


def test_the_dump_of_the_recipe_is_not_another_one(run_copy: Path, tmp_path: Path) -> None:
    dump = read_json(run_copy / "recipe.json")["dump"]
    assert dump == ["sample"]
    other = tmp_path / "other.json"
    other.write_text("[\n]\n", encoding="utf-8")
    in_recipe("dump", to=[str(other)])(run_copy)
    reseal_all(run_copy)
    answer = verify_run(run_copy, only=["graph"])
    assert answer.exit_code == 4
    assert "graph: is not the stage that its recipe gives; found input dump" in broken(answer)


@pytest.mark.parametrize(
    "change",
    [in_recipe("llm", "concurrency", to=3), in_json("scores/manifest.json", "code", "culturekit", to="9.9")],
    ids=["how answers were bought", "the version that made a stage"],
)
def test_what_decides_no_byte_changes_the_fingerprint_alone(change: Tamper, run_copy: Path) -> None:
    before = verify_run(run_copy, only=["scores"]).fingerprint
    change(run_copy)
    answer = verify_run(run_copy)
    assert answer.exit_code == 0
    assert answer.fingerprint != before


def test_other_packages_are_noted_where_the_bytes_are_the_same_and_looked_at_where_not(run_copy: Path) -> None:
    in_json("shown/manifest.json", "packages", "polars", to="0.1")(run_copy)
    answer = verify_run(run_copy, only=["shown"])
    assert [str(finding) for finding in answer.findings] == ["shown: was made with polars 0.1; its bytes are the same"]
    edit_cell(run_copy / "shown/distributions.parquet")
    reseal_all(run_copy)
    answer = verify_run(run_copy, only=["shown"])
    assert answer.exit_code == 1
    assert "not verifiable here, made with polars 0.1: row 0" in str(answer.findings)


def test_a_score_that_was_changed_is_wrong_and_the_others_are_verified(run_copy: Path) -> None:
    edit_cell(run_copy / "scores/scores.parquet")
    reseal_all(run_copy)
    verdicts = verify_run(run_copy, only=["scores"]).verdicts
    assert sorted(each.verdict for each in verdicts) == ["verified"] * (len(verdicts) - 1) + ["wrong"]


def test_an_edited_stage_folder_of_a_run_is_found_by_itself(run_copy: Path) -> None:
    """Its recipe lies beside it."""
    edit_text(run_copy / PAGE)
    assert verify_run(run_copy / "report").exit_code == 4
    reseal(run_copy / "report")
    assert "report.html: line" in broken(verify_run(run_copy / "report"))
    assert verify_run(run_copy / "scores").exit_code == 0
