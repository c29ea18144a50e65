"""Report data made by hand, harmless and hostile."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from types import SimpleNamespace as Row
from typing import Any

from culturekit.kg.store import DumpPosition
from culturekit.report.charts import ModelLine, Rank, Seen, in_order
from culturekit.report.countries import ArtifactShares, CountryShares, Extremes, Share
from culturekit.report.differences import Breakdown, DifferenceLine, KernelTable
from culturekit.report.faithfulness import Faithfulness, Instrument, Judge, JudgedScores, LookedAt
from culturekit.report.headline import verdict_on
from culturekit.report.people import People, RatingGrid
from culturekit.report.provenance import Making, MakingLine, MissingLine, Paid, Party, StageLine
from culturekit.report.realism import (
    Cell,
    RealismColumn,
    RealismTable,
    RealismTables,
    Variety,
    VarietyColumn,
    WithinCountries,
)
from culturekit.report.run_folders import Figure
from culturekit.report.thumbnails import Mosaic, MosaicModel, Near, PromptImages, PromptLine, Shot, Tile
from culturekit.report.write import AgreementLine, ReportData, RouteTable, Trust, TwoRoutes
from culturekit.trail.evidence import ArtifactEvidence, PathNode, Statement

HOSTILE = (
    "<script>document.title='pwned'</script>", '"><img src=x onerror="document.title=\'pwned\'">',
    "javascript:document.title='pwned'", "{{ 7 * 7 }}{% raw %}", "]]><svg onload=\"document.title='pwned'\">",
    "‮gnp.exe", "=cmd|' /C calc'!A0", "&lt;b&gt;",
)  # fmt: skip


class Elements(HTMLParser):
    """What a browser would make of a page: elements with their attributes, and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def names(self) -> list[tuple[str, ...]]:
        """The names of elements and of their attributes."""
        return [(tag, *attributes) for tag, attributes in self.tags]

    def values(self, *attributes: str) -> list[str]:
        return [value for _, given in self.tags for name, value in given.items() if name in attributes and value]


FILES = ("thumbnail", "thumbnails", "reference", "similarity", "counts", "checks")

NOTHING = Share(0.0, 0.0, 0.01, 0)

TILES = (Tile("i-1", "mirage-1.png", "Khakhra", 0.93, 0.3), Tile("i-2", "atlas-1.png", None, 0.6, 0.01))


def figure(value: float, row: int) -> Figure:
    return Figure(value, value - 0.01, value + 0.01, 1200, row)


# Quality, diversity as it leads with the mapped one, and no product
BESIDE = ((figure(0.5, 1), None), (figure(0.4, 2), figure(0.6, 9)), (None, None))


def line(
    model: str, mapped: float, truth: float | None, *, free: int | None, similarity: float,
    corrected: float | None = None, nothing: float | None = None,
) -> ModelLine:  # fmt: skip
    return ModelLine(
        model=model, backend="simulated?favour=IN&favour_strength=0.8", images=1200, mapped=figure(mapped, 1),
        corrected=None if corrected is None else figure(corrected, 4),
        truth=None if truth is None else figure(truth, 2), quality=figure(0.5, 3), culture_free=free,
        similarity={"lowest 5 %": 0.6, "median": similarity, "highest 5 %": 0.99},
        seen=None if nothing is None else Seen(150, figure(nothing, 5), {"country": figure(0.8, 6)}),
    )  # fmt: skip


def audited_page() -> ReportData:
    data = page()
    models = tuple(
        replace(
            model,
            corrected=figure(0.13 if model.culture_free else 0.69, 4),
            rank=Rank(Figure(2 - number, 1, 2, 1200, 6), 2),
            seen=Seen(150, figure(0.97 if model.culture_free else 0.02, 5), {"country": figure(0.8, 6)}),
        )
        for number, model in enumerate(data.models)
    )
    cells = tuple((figure(0.3, 2), figure(0.5, 1), None) for _ in range(2))
    table = replace(
        data.tables[0], labels=("corrected", "mapped", "truth"), rows=tuple((model.model, cells) for model in models)
    )
    corrected = replace(data.differences[0], first="atlas", second="mirage", labels="corrected", common=0)
    differences = (replace(corrected, mapped=data.differences[0]), data.differences[1])
    return replace(data, models=in_order(models), tables=(table,), differences=differences)


def page() -> ReportData:
    """A small page with two models, one of them a liar."""
    models = (line("mirage", 0.8, 0.125, free=1200, similarity=0.7), line("atlas", 0.7, 0.7, free=0, similarity=0.97))
    dump = DumpPosition("sample.json.gz", 1, 12268, 93, "dump-0")
    path = (
        PathNode("Q2095", "food", (), dump),
        PathNode("Q2878618", "Khakhra", (Statement("P279", "Q2095", "food", "normal"),), dump),
    )
    evidence = ArtifactEvidence("Q2878618", "Khakhra", "cuisine", path, (Statement("P495", "Q668", "India", "normal"),))
    shots = tuple(
        Shot(
            image_id=f"{model.model}-1", model=model.model, concept="cuisine", thumbnail=f"{model.model}-1.png",
            prompt="Image of traditional food",
            nearest=(Near("Q2878618", "Khakhra", "IN", 0.9, 0.2, "reference.png"),), truth_known=True,
            truth=None if model.culture_free else "Khakhra", evidence=evidence,
        )
        for model in models
    )  # fmt: skip
    cells = tuple((figure(0.5, number), figure(0.25, number + 5)) for number in range(2))
    table = KernelTable(
        "country", "vs", "Diversity VS/8", "q = 1", (None, "cuisine"), ("mapped", "truth"),
        tuple((m.model, cells) for m in models), 0.6, (("floor: shuffled images", (figure(0.7, 11), None)),),
    )  # fmt: skip
    stage = StageLine(
        "graph", "ingest", "ab" * 32, {"dump-0": "cd" * 32}, {"items": 998}, {"malformed": 1}, {"draw": 7}
    )
    return ReportData(
        title="How diverse are the cultures these models show?", question="Which of these two models is lying?",
        verdict=verdict_on(models), models=models, kernel="uniform", size=8, confidence="95 %", tables=(table,),
        shots=shots, caveats=("The judge reads wording only.",), stages=(stage,), thumbnails={},
        versions={"culturekit": "0", "polars": "2"},
        trust=Trust(
            countries=(Row(country=None, shown=400, recall=0.97, mapped=400, precision=0.97),
                       Row(country="IN", shown=60, recall=0.9, mapped=62, precision=0.87)),
            hubs=(Row(model="mirage", artifact="Khakhra", artifact_id="Q2878618", country="IN", share=0.31,
                      nearest=12),),
            skew={"atlas": 0.4, "mirage": 3.2},
            bounds=(Row(model="atlas", concept="cuisine", worst=figure(0.4, 7), best=figure(0.6, 8), unknown=90,
                        images=1200),),
            stability=(Row(between=("clip", "embedded"), metric="vs", concept=None, kernel="country", value=0.33,
                           stable=False),),
        ),
        shares=CountryShares(
            names={"BR": "Brazil", "IN": "India", "SG": "Singapore"}, models=("mirage", "atlas"),
            shares={
                "mirage": {"BR": Share(0.25, 0.2, 0.3, 300), "IN": Share(0.75, 0.7, 0.8, 900), "SG": NOTHING},
                "atlas": {"BR": Share(0.01, None, None, 12), "IN": Share(0.5, 0.4, 0.6, 600), "SG": NOTHING},
            },
            images={"mirage": 1200, "atlas": 1200}, available={"BR": 0.5, "IN": 0.5}, off_the_map=("SG",),
        ),
        prompts=(
            PromptLine("p-1", "Image of traditional food", "cuisine", ((0.8, 50), (0.7, 50))),
            PromptLine("p-2", "Image of a famous landmark", None, (None, (0.65, 1))),
        ),
        differences=(
            DifferenceLine("mirage", "atlas", None, "vs", "mapped", figure(0.1, 3), 0.0004, 3, 1),
            DifferenceLine("atlas", "mirage", None, "qvs", "mapped", figure(0.01, 4), 0.31, 3, 0),
        ),
        gaps=(
            gap(model="atlas", concept=None, gap=figure(0.12, 2), p=0.01, beyond_chance=True),
            gap(model="mirage", concept="cuisine", gap=figure(-0.005, 3), p=0.6, beyond_chance=False),
        ),
        breakdown=Breakdown(
            (None, "cuisine"), ("quality", "vs", "qvs"), tuple((m.model, (BESIDE, BESIDE)) for m in models)
        ),
        mosaics=(mosaic("mirage"), replace(mosaic("atlas"), abstained=12, mapped=1188)),
        extremes=Extremes(
            most=(ArtifactShares("Khakhra", "IN", 0.8, (Share(0.3, 0.2, 0.4, 360), None)),),
            least=(ArtifactShares("Feijoada", "BR", 0.9, (None, None)),), artifacts=513, never=(300, 12),
        ),
        prompt_images=(
            PromptImages("p-1", "Image of traditional food", "cuisine", (("mirage", TILES, 400), ("atlas", TILES, 8))),
        ),
        parties=(Party("mapping", "embedded", {"weights": "none", "revision": "1"}), Party("quality", "embedded", {})),
        paid=(Paid("filter", "judge-1", 0.0123),),
    )  # fmt: skip


def gap(**of: Any) -> Row:
    return Row(
        score="quality", labels="mapped", first="Global North", second="Global South", scheme="cultivate", prompts=40,
        countries=(("IT", "US"), ("IN",)), target="these", **of,
    )  # fmt: skip


def mosaic(model: str) -> MosaicModel:
    found = Mosaic("Q2878618", "Khakhra", "IN", 31, 0.026, 0.91, 0.2, "reference.png", TILES)
    return MosaicModel(model, 1200, 0, 0, 1200, 322, (found, replace(found, reference=None, country=None)))


def near(value: float, row: int) -> Figure:
    return Figure(value, value - 0.05, value + 0.05, 80, row)


COUNTS = {
    "common": 96, "named_a": 96, "named_b": 80, "abstained_a": 0, "abstained_b": 7, "none_shown_a": 0,
    "none_shown_b": 5, "no_answer_a": 0, "no_answer_b": 4, "images_a": 400, "images_b": 96,
}  # fmt: skip


def routes(text: str = "atlas", *, stable: bool = False) -> TwoRoutes:
    """What two routes say of one model; every text is the same one."""
    pair = (near(0.711, 1), near(0.422, 2))
    return TwoRoutes(
        judge=text, sample=96,
        tables=(RouteTable(text, "Diversity VS/8", ("country", "uniform"), ((text, (pair, (None, None))),)),
            RouteTable(None, "Diversity VS/8", ("country", "uniform"), ((text, (pair, pair)),))),
        agreement=(AgreementLine(text, text, (pair, (near(0.6, 3), None), (None, None)), COUNTS),),
        partings=(Row(model=text, mapped=text, tagged=text, images=9, share=0.11),),
        ranking=(Row(metric="vs", concept=text, kernel="country", n=4, value=1.0 if stable else 0.33, stable=stable),),
        left_out={text: 304}, caveats=(text,),
    )  # fmt: skip


LACKING = MissingLine("atlas", 400, {"refused": 3, "missing": 2}, 2, 3, 1, 6, 4, 35, 11)


def people(text: str) -> People:
    rated = Row(mean=1.5, sd=0.5, within=0.25, items=7, annotators=3, answers=21, mark="below 2")
    line = {"pool": text, "images": 40}
    return People(
        caveat=text, pools_by=text, encoder=text, answers=120, items=40,
        grids=(RatingGrid(text, text, (text, "JP"), ((text, text, (rated, None)),)),),
        agreement=(
            Row(criterion=text, people=3, answers=40, alpha=(0.5, 0.2, 0.8), kappa=None, pairwise=0.75, **line),
        ),
        divergence=(Row(asked=text, a=text, b=text, value=-0.5, ci_low=-0.9, ci_high=-0.1, p=0.01, n=12),),
        pairs=1, thinned=((text, {text: 3}, {text: 4}),), aside={text: 2},
        checks={"checks": {"answered": 4, "failed": 1}, "repeats": {"answered": 6, "failed": 2}},
        metrics=(Row(rating=text, metric=text, spearman=0.4, low=0.1, high=0.6, kendall=0.3, pearson=None, prompts=12,
                     **line),),
    )  # fmt: skip


def faithfulness(*models: str) -> Faithfulness:
    """Two judges of some models, the last of which has no score by one of them."""
    some: dict[str, Figure | None] = {model: Figure(0.5, 0.4, 0.6, 12, row) for row, model in enumerate(models)}
    looked = {model: LookedAt(48, 3, 2, 1, 4) for model in models}
    lacking: dict[str, Figure | None] = {**some, models[-1]: None}
    concepts = {"art": some, "cuisine": lacking}
    dsg = Instrument("dsg", "seer-1", "DSG", "these", "share", lacking, looked, concepts)
    clip = Instrument("quality", "clipscore:vit", "CLIPScore", "population", "share", some, looked, {"art": some})
    line = Row(
        text="Is it round?", kind="attribute", concept="art", prompt="A round bowl", prompt_id="p1",
        rates={models[0]: (0.75, 12)},
    )  # fmt: skip
    judge = Judge("answers", "seer-1", "openai at http://127.0.0.1:1/v1, wording 1a2b3c4d", "not known", "It errs.", "")
    by = {"title": "DSG", "judge": "seer-1"}
    difference = Figure(0.1, -0.1, 0.3, 12, 1)
    apart = Row(first=models[0], second=models[-1], difference=difference, p=0.2, common=2, left_out=1, **by)
    missing = ("No scorer compared image and text.",)
    alone, right = Figure(0.7, 0.68, 0.72, 400, 3), Figure(0.41, 0.35, 0.47, 400, 2)
    marked = Row(
        model=models[0], place="art", judged=alone, corrected=right, people=120, trust=0.8, pool="in-region",
        marked="one rater", **by,
    )  # fmt: skip
    judged = JudgedScores((marked,), "belongs yes", {"people marked too few items": 3})
    return Faithfulness((dsg, clip), (judge,), (line,), (line,), 2, missing, (apart,), judged)


def realism(text: str) -> dict[str, Any]:
    """What is said of realism and variety, one text everywhere."""
    cell, shaded = Cell(text, text, 3, 1, text), Figure(0.5, None, None, 1, 1)
    column = VarietyColumn(text, text, text, {text: cell}, {text: 1})
    return {
        "realism": RealismTables(
            text, text, (RealismColumn(text, text, text),), (RealismTable(text, 3, 3, ((text, (cell, None)),)),),
            (text,), {text: 1},
        ),
        "variety": Variety((text,), (column,), (text,), {text: 1}, (text,)),
        "within": WithinCountries((text,), {text: cell}, {text: 1}, ((text, {text: (cell, shaded)}),), (text,)),
    }  # fmt: skip


def full_page() -> ReportData:
    """The page with every section that a run can have."""
    making = Making(("a",), ("folder",), (("b",),), (MakingLine("c", ("d",), apart=True),))
    return replace(
        page(), faithfulness=faithfulness("mirage", "atlas"), making=making, people=people("plain"), routes=routes(),
        missing=(replace(LACKING, not_made={"atlas": 5}),), **realism("plain"),
    )  # fmt: skip


def hostile_page(text: str) -> ReportData:
    """The same page with a hostile text in place of every text of its data, keys too, whatever the field."""
    data = with_text(full_page(), text)
    assert isinstance(data, ReportData)
    return replace(data, verdict=replace(data.verdict, named=(text,), headline=text))


def with_text(value: Any, text: str) -> Any:
    """Put a text in the place of every text, however deep; names of files and of counts are made by us and stay."""
    if isinstance(value, str):
        return text
    if isinstance(value, Mapping):
        return {with_text(key, text): with_text(each, text) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(with_text(each, text) for each in value)
    if isinstance(value, Row):
        return Row(**{name: with_text(each, text) for name, each in vars(value).items()})
    if is_dataclass(value) and not isinstance(value, type):
        held = {each.name: getattr(value, each.name) for each in fields(value)}
        return replace(value, **{name: each if name in FILES else with_text(each, text) for name, each in held.items()})
    return value
