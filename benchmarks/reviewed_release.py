"""A release of 300,000 whose quality is known: judged on loopback, reviewed in groups, sampled, released with a card.

The sample's real candidates, many times over, go through the commands of "Publish a release" as a curator types them.
The judge leaves 10 % open and errs as often as dialled; three people decide groups in browsers, two judge the sample.
Then 200 samples are drawn, and it is counted how often intervals hold the truth. Without `--full` there are 6,000.
"""

import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import numpy as np
import polars as pl
from recording import record
from release_world import Taken, run

sys.path.insert(0, str(Path(__file__).parents[1]))

from culturekit.builders.filtering.candidate_review import reviewable
from culturekit.builders.filtering.cspace_filter import country_rows
from culturekit.core.schemas import KEPT, SPACE_SAMPLE
from culturekit.core.tables import read_table
from culturekit.people.answers import journal_in
from culturekit.people.space_check import CELL, UNIT, check_rows, draw_sample
from tests.chromium import somebody
from tests.llm.server.running import server_process
from tests.people.projects import serving
from tests.people.reviewed_world import decide_in_browser, decision_on, replicated, truth_of
from tests.people.test_space_review import fill_in

ROOTS = [word for concept in ("art", "cuisine", "landmarks") for word in ("--roots", concept)]
DRAWS = 200


def reviewed(groups: Path, truth: dict[tuple[str, str], float]) -> tuple[int, float]:
    """Let three people decide the groups in browsers of their own; give how many, and the seconds."""
    start, address = time.perf_counter(), ""

    def decide(name: str) -> int:
        with tempfile.TemporaryDirectory() as profile, somebody(Path(profile)) as page:
            return decide_in_browser(page, address, name, lambda shown: decision_on(shown, truth), most=100_000)

    with serving(groups, journal_in(groups)) as server, ThreadPoolExecutor(3) as people:
        address = server.address
        return sum(people.map(decide, ("Ada", "Bo", "Cy"))), time.perf_counter() - start


def held(folder: Path, table: pl.DataFrame) -> list[list[str]]:
    """Draw samples of what was reviewed; count how often intervals hold the truth."""
    rows = reviewable(folder / "reviewed/kept.parquet", folder / "kept/removed.parquet")
    units = country_rows(rows.with_columns(root=pl.col("roots").list.first()), "root")
    units = units.with_columns(confidence=pl.lit(None, pl.Float64)).join(table.select(*UNIT, "truth"), on=UNIT)
    cells = units.group_by(*CELL, "verdict").agg(units=pl.len().cast(pl.UInt32))
    sides = {"wrong keeps": "keep", "wrong removes": "remove", "undecided that belong": "review"}
    sums: dict[tuple[str | None, str | None], pl.DataFrame] = {}
    hits: dict[str, list[bool]] = {}
    for draw in range(DRAWS):
        drawn = draw_sample(
            units.drop("truth"), {"keep": 300, "remove": 200, "review": 100}, rng=np.random.default_rng(draw)
        )
        told = drawn.join(units.select(*UNIT, people="truth"), on=UNIT, how="left", maintain_order="left")
        for row in check_rows(told, cells):
            place = {name: row[name] for name in CELL if row[name] is not None}
            if len(place) == 2:
                continue
            key = (row["concept"], row["country"])
            if key not in sums:
                sums[key] = units.filter(**place).group_by("verdict").agg(pl.col("truth").sum(), n=pl.len())
            if row["measure"] == "artifacts":
                true = float(sums[key]["truth"].sum())
            else:
                one = sums[key].filter(verdict=sides[row["measure"]]).row(0, named=True)
                true = one["truth"] / one["n"]
                true = 1 - true if row["measure"] == "wrong keeps" else true
            inside = row["ci_low"] - 1e-9 <= true <= row["ci_high"] + 1e-9
            where = "of all" if not place else f"by {next(iter(place))}"
            hits.setdefault(f"{row['measure']}, {where}", []).append(inside)
    return [[f"held, {name}", "", "", "", f"{np.mean(each):.3f}"] for name, each in sorted(hits.items())]


def main() -> None:
    """Measure and record."""
    size, os.environ["OPENAI_API_KEY"] = 300_000 if "--full" in sys.argv else 6_000, "sk-of-nobody"
    taken: dict[str, Taken] = {}
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        at = {name: str(folder / name) for name in
              ("run", "kept", "groups", "reviewed", "to-check", "checked", "cspace", "hand", "card")}  # fmt: skip
        kept, reviewed_table = f"{at['kept']}/kept.parquet", f"{at['reviewed']}/kept.parquet"
        run("run", "cube-release", "--workdir", at["run"])
        candidates = replicated(Path(at["run"]) / "candidates/candidates.parquet", size, folder)
        table = truth_of(candidates)
        server = stack.enter_context(server_process(model="tests.people.reviewed_world:answer"))
        judge = f"openai:judge-1?base_url={server.openai_url}&price=0.15/0.60"
        taken["filter"] = run("cspace", "filter", "--candidates", str(candidates), *ROOTS, "--llm", judge, "--batch",
                              "--out", at["kept"])  # fmt: skip
        taken["review export"] = run("cspace", "review", "export", "--kept", kept, "--groups", "--graph",
                                     f"{at['run']}/graph", "--out", at["groups"])  # fmt: skip
        form = (folder / "groups/hand-out/form.html").stat().st_size
        truth = {(name, where): known for name, where, known in table.select("label", "place", "truth").iter_rows()}
        groups, seconds = reviewed(folder / "groups", truth)
        taken["review import"] = run("cspace", "review", "import", str(journal_in(folder / "groups")), "--project",
                                     at["groups"], "--kept", kept, "--out", at["reviewed"])  # fmt: skip
        taken["check sample"] = run("cspace", "check", "sample", "--kept", reviewed_table, "--removed",
                                    f"{at['kept']}/removed.parquet", "--out", at["to-check"])  # fmt: skip
        drawn = read_table(folder / "to-check/space_sample.parquet", SPACE_SAMPLE)
        known = drawn.join(table, on=UNIT, maintain_order="left")
        said = {
            " ".join(key): "accept" if word else "reject" for *key, word in known.select(*UNIT, "truth").iter_rows()
        }
        fill_in(folder / "to-check", said, ["Dan", "Eve"])
        taken["check score"] = run("cspace", "check", "score", "--project", at["to-check"], "--out", at["checked"])
        taken["release"] = run("cspace", "release", "--kept", reviewed_table, *ROOTS, "--format",
                               "parquet,jsonl,csv,public", "--checked", f"{at['checked']}/space_check.parquet",
                               "--out", at["cspace"])  # fmt: skip
        run("card", "init", at["hand"], "--name", "mine")
        taken["card build"] = run("card", "build", at["cspace"], "--hand", at["hand"], "--out", at["card"])
        rows = [["step", "seconds", "processor seconds", "most memory", "result"]]
        made = {"review export": f"{groups:,} groups, {form / 1e6:.1f} MB"}
        held_here = getrusage(RUSAGE_SELF).ru_maxrss / 1024  # a process starts with what its parent held at most
        rows += [[name, f"{one.seconds:.0f}", f"{one.cpu:.0f}", f"{'≤ ' * (one.mb <= held_here)}{one.mb:,.0f} MB",
                  made.get(name, "")] for name, one in taken.items()]  # fmt: skip
        before, after = (
            read_table(Path(path), KEPT).filter(verdict="review").height for path in (kept, reviewed_table)
        )
        rows += [["review", f"{seconds:.0f}", "", "", f"{before - after:,} of {before:,} settled by three people"]]
        card = (folder / "card/README.md").read_text(encoding="utf-8").splitlines()
        rows += [[cells[1].strip(), "", "", "", cells[3].strip().replace("\\", "")] for line in card
                 if len(cells := line.split("|")) > 4 and cells[2].strip() == "all"]  # fmt: skip
        rows += held(folder, table)
    record("reviewed_release", title=f"A release of {size:,} candidates, reviewed in groups and checked by a sample",
           command="python benchmarks/reviewed_release.py --full", table=rows)  # fmt: skip


if __name__ == "__main__":
    main()
