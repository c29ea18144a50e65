"""`culturekit score`: from tables to scores, one command per family of metrics."""

import typer

from culturekit.cli.scores import (
    agreement,
    ahead,
    audit_sample,
    c3,
    clip,
    compare,
    distribution,
    gaps,
    inclusion,
    linguistic,
    meta,
    questions,
    qvs,
    realism,
    routes,
    spread,
    stability,
    within,
)

__all__ = ["score_app"]

score_app = typer.Typer(no_args_is_help=True, help="Scores with intervals, from the tables of earlier stages.")


@score_app.callback()
def score_group() -> None:
    """Keep `score` a group however many commands it has."""


score_app.command(epilog="Example: culturekit score qvs --matches matches/matches.parquet --out scores")(qvs.qvs)
score_app.command(
    epilog="Example: culturekit score ahead --images images/images.parquet --prompts prompts/prompts.parquet "
    "--descriptors descriptors/descriptors.parquet --extracted judgments/judgments.parquet --phrases phrases "
    "--out scores"
)(ahead.ahead)
score_app.command(
    epilog="Example: culturekit score c3 --source source --target target --image images --image-target captions "
    "--keep 300000 --out scores"
)(c3.c3)
score_app.command(epilog="Example: culturekit score compare --values scores/values.parquet --out compared")(
    compare.compare
)
score_app.command(
    epilog="Example: culturekit score stability --scores clip=scores/scores.parquet "
    "--scores siglip=others/scores.parquet --out stability"
)(stability.stability)
score_app.command(
    epilog="Example: culturekit score routes --a matches/matches.parquet --b tags/matches.parquet "
    "--judgments tags/judgments.parquet --out routes"
)(routes.routes)
score_app.command(epilog="Example: culturekit score gaps --values scores/values.parquet --scheme cultivate --out gaps")(
    gaps.gaps
)
score_app.command(
    epilog="Example: culturekit score meta --values scores/values.parquet "
    "--annotations annotations/annotations.parquet --out meta"
)(meta.meta)
score_app.command(
    epilog="Example: culturekit score agreement --annotations annotations/annotations.parquet --out agreement"
)(agreement.agreement)
score_app.command(
    "audit-sample",
    epilog="Example: culturekit score audit-sample --matches matches/matches.parquet --n 150 --out to-audit",
)(audit_sample.draw_audit_sample)
score_app.command(epilog="Example: culturekit score distribution --matches matches/matches.parquet --out shares")(
    distribution.distribution
)
score_app.command(epilog="Example: culturekit score task1 --task1 annotations/task1.parquet --out scores")(
    inclusion.task1
)
score_app.command(epilog="Example: culturekit score task2 --task2 task2_geode.csv --out scores")(inclusion.task2)
score_app.command(epilog="Example: culturekit score survey --codes survey_codes.parquet --out scores")(inclusion.survey)
score_app.command(epilog="Example: culturekit score tones --images images/images.parquet --out scores")(
    linguistic.tones
)
score_app.command(
    epilog="Example: culturekit score dialects --images images/images.parquet --prompts prompts/prompts.parquet "
    "--quality quality/quality.parquet --out scores"
)(linguistic.dialects)
score_app.command(
    epilog="Example: culturekit score neutral --images images/images.parquet --prompts prompts/prompts.parquet "
    "--vectors vectors --out scores"
)(linguistic.neutral)
score_app.command(
    "question-pairs",
    epilog="Example: culturekit score question-pairs --images images/images.parquet --prompts prompts/prompts.parquet "
    "--vectors vectors --captions captions --out scores",
)(linguistic.question_pairs)
score_app.command(
    epilog="Example: culturekit score ratings --annotations annotations/annotations.parquet --out scores"
)(linguistic.ratings)
score_app.command(
    epilog="Example: culturekit score realism --real real --fake vectors --images images/images.parquet --out scores"
)(realism.realism)
score_app.command(
    epilog="Example: culturekit score clip --vectors vectors --texts prompt-vectors --images images/images.parquet "
    "--out scores"
)(clip.clip)
score_app.command(
    epilog="Example: culturekit score questions --images images/images.parquet "
    "--judgments judgments/judgments.parquet --questions questions.parquet --out scores"
)(questions.questions)
score_app.command(
    epilog="Example: culturekit score pairs --images images/images.parquet --measure lpips:lpips.safetensors "
    "--out pairs"
)(spread.pairs)
score_app.command(
    epilog="Example: culturekit score spread --images images/images.parquet --vectors vectors --distances pairs "
    "--out scores"
)(spread.spread)
score_app.command(
    epilog="Example: culturekit score within --matches matches/matches.parquet --prompts prompts/prompts.parquet "
    "--out scores"
)(within.within)
