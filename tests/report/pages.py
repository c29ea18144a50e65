"""Report data made by hand, harmless and hostile."""

from dataclasses import replace

from culturekit.report.by_prompt import PromptLine
from culturekit.report.countries import CountryShares, Share
from culturekit.report.data import ReportData
from culturekit.report.differences import DifferenceLine
from culturekit.report.figures import Figure
from culturekit.report.kernels import KernelTable
from culturekit.report.making import Making, MakingLine
from culturekit.report.model_lines import ModelLine
from culturekit.report.provenance import StageLine
from culturekit.report.shots import Near, Shot
from culturekit.report.trust import BoundLine, CountryLine, HubLine, StabilityLine, Trust
from culturekit.report.verdict import verdict_on
from culturekit.trail.evidence import ArtifactEvidence, DumpPlace, PathNode, Said

__all__ = ["HOSTILE", "audited_page", "hostile_page", "page"]

HOSTILE = (
    "<script>document.title='pwned'</script>",
    '"><img src=x onerror="document.title=\'pwned\'">',
    "javascript:document.title='pwned'",
    "{{ 7 * 7 }}{% raw %}",
    "]]><svg onload=\"document.title='pwned'\">",
    "‮gnp.exe",
    "=cmd|' /C calc'!A0",
    "&lt;b&gt;",
)


NOTHING = Share(0.0, 0.0, 0.01, 0)


def figure(value: float, row: int) -> Figure:
    return Figure(value, value - 0.01, value + 0.01, 1200, row)


def line(
    model: str,
    mapped: float,
    truth: float | None,
    *,
    free: int | None,
    similarity: float,
    corrected: float | None = None,
) -> ModelLine:
    return ModelLine(
        model=model,
        backend="simulated",
        images=1200,
        mapped=figure(mapped, 1),
        corrected=None if corrected is None else figure(corrected, 4),
        truth=None if truth is None else figure(truth, 2),
        quality=figure(0.5, 3),
        culture_free=free,
        similarity={"lowest 5 %": 0.6, "median": similarity, "highest 5 %": 0.99},
    )


def audited_page() -> ReportData:
    """The same page after an audit."""
    data = page()
    models = tuple(replace(model, corrected=figure(0.13 if model.culture_free else 0.69, 4)) for model in data.models)
    cells = tuple((figure(0.5, 1), figure(0.3, 2), None) for _ in range(2))
    table = replace(
        data.tables[0], labels=("mapped", "corrected", "truth"), rows=tuple((model.model, cells) for model in models)
    )
    return replace(data, models=models, tables=(table,))


def page() -> ReportData:
    """A small page with two models, one of them a liar."""
    models = (line("mirage", 0.8, 0.125, free=1200, similarity=0.7), line("atlas", 0.7, 0.7, free=0, similarity=0.97))
    place = DumpPlace("dump-0", "sample.json.gz", 93, 1, 12268)
    path = (
        PathNode("Q2095", "food", (), place),
        PathNode("Q2878618", "Khakhra", (Said("P279", "Q2095", "food", "normal"),), place),
    )
    evidence = ArtifactEvidence("Q2878618", "Khakhra", "cuisine", path, (Said("P495", "Q668", "India", "normal"),))
    shots = tuple(
        Shot(
            image_id=f"{model.model}-1",
            model=model.model,
            concept="cuisine",
            thumbnail=f"{model.model}-1.png",
            prompt="Image of traditional food",
            nearest=(Near("Q2878618", "Khakhra", "IN", 0.9, 0.2, "reference.png"),),
            truth_known=True,
            truth=None if model.culture_free else "Khakhra",
            evidence=evidence,
        )
        for model in models
    )
    cells = tuple((figure(0.5, number), figure(0.25, number + 5)) for number in range(2))
    table = KernelTable(
        "cuisine",
        "vs",
        "Diversity VS/8",
        ("country", "uniform"),
        ("mapped", "truth"),
        tuple((m.model, cells) for m in models),
        (("floor: shuffled images", (figure(0.7, 11), None)),),
    )
    stage = StageLine(
        "graph", "ingest", "ab" * 32, {"dump-0": "cd" * 32}, {"items": 998}, {"malformed": 1}, {"draw": 7}
    )
    return ReportData(
        title="How diverse are the cultures these models show?",
        question="Which of these two models is lying?",
        verdict=verdict_on(models),
        models=models,
        kernel="uniform",
        tables=(table,),
        shots=shots,
        caveats=("The judge reads wording only.",),
        stages=(stage,),
        versions={"culturekit": "0", "polars": "2"},
        thumbnails={},
        trust=Trust(
            countries=(CountryLine(None, 400, 0.97, 400, 0.97), CountryLine("IN", 60, 0.9, 62, 0.87)),
            hubs=(HubLine("mirage", "Khakhra", "Q2878618", "IN", 0.31, 12),),
            skew={"atlas": 0.4, "mirage": 3.2},
            bounds=(BoundLine("atlas", "cuisine", figure(0.4, 7), figure(0.6, 8), 90, 1200),),
            stability=(StabilityLine(("clip", "embedded"), "vs", None, "country", 0.33, stable=False),),
        ),
        shares=CountryShares(
            names={"BR": "Brazil", "IN": "India", "SG": "Singapore"},
            models=("mirage", "atlas"),
            shares={
                "mirage": {"BR": Share(0.25, 0.2, 0.3, 300), "IN": Share(0.75, 0.7, 0.8, 900), "SG": NOTHING},
                "atlas": {"BR": Share(0.01, None, None, 12), "IN": Share(0.5, 0.4, 0.6, 600), "SG": NOTHING},
            },
            images={"mirage": 1200, "atlas": 1200},
            available={"BR": 0.5, "IN": 0.5},
            off_the_map=("SG",),
        ),
        prompts=(
            PromptLine("p-1", "Image of traditional food", "cuisine", ((0.8, 50), (0.7, 50))),
            PromptLine("p-2", "Image of a famous landmark", None, (None, (0.65, 1))),
        ),
        differences=(
            DifferenceLine("mirage", "atlas", None, "vs", "mapped", figure(0.1, 3), 0.0004, 3, 1),
            DifferenceLine("atlas", "mirage", None, "qvs", "mapped", figure(0.01, 4), 0.31, 3, 0),
        ),
    )


def hostile_page(text: str) -> ReportData:
    """The same page with a hostile text in every place that data can reach."""
    data = page()
    said = Said(text, text, text, text)
    node = PathNode(text, text, (said,), DumpPlace(text, text, 1, 0, 0))
    evidence = ArtifactEvidence(text, text, text, (node,), (said,))
    near = replace(data.shots[0].nearest[0], artifact_id=text, artifact=text, country=text)
    shot = replace(
        data.shots[0], prompt=text, nearest=(near,), truth=text, evidence=evidence, image_id=text, concept=text
    )
    model = replace(data.models[0], model=text, backend=text)
    stage = replace(data.stages[0], folder=text, stage=text, inputs={text: text}, counts={text: 1}, drops={text: 1})
    table = replace(
        data.tables[0], concept=text, rows=((text, data.tables[0].rows[0][1]),), limits=((text, (None, None)),)
    )
    return replace(
        data,
        models=(model, data.models[1]),
        verdict=verdict_on((model, data.models[1])),
        shots=(shot,),
        tables=(table,),
        stages=(stage,),
        caveats=(text,),
        versions={text: text},
        trust=hostile_trust(text),
        shares=CountryShares({"BR": text}, (text,), {text: {"BR": NOTHING}}, {text: 3}, {"BR": 1.0}, ("BR",)),
        prompts=(PromptLine(text, text, text, ((0.5, 1), None)),),
        differences=(DifferenceLine(text, text, text, text, text, figure(0.1, 1), None, 1, 1, (text,)),),
        making=Making((text,), (text,), ((text,),), (MakingLine(text, (text,), apart=True),)),
    )


def hostile_trust(text: str) -> Trust:
    """A hostile text in every place of what is said of the mapping."""
    return Trust(
        countries=(CountryLine(text, 1, None, 1, None),),
        hubs=(HubLine(text, text, text, text, 0.5, 1),),
        skew={text: 1.0},
        bounds=(BoundLine(text, text, figure(0.1, 1), figure(0.2, 2), 1, 2),),
        stability=(StabilityLine((text, text), text, text, text, 0.1, stable=False),),
    )
