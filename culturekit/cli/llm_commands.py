"""`culturekit llm`: what was asked and answered, what it cost, what it would cost."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import AsJson, Prices
from culturekit.cli.showing import show
from culturekit.llm.redaction import redact

if TYPE_CHECKING:
    from culturekit.llm.ledger import Exchange, Ledger


llm_app = typer.Typer(
    no_args_is_help=True,
    help="Language models: the log of a run, its cost, and prices.",
    cls=lazy_group(
        "llm", {"prices update": CommandAt("culturekit.cli.llm_commands:prices_update", "prices-of-ours.yaml")}
    ),
)

SHOWN = 2_000  # Characters of a request or a reply that the log shows; --json shows all


@llm_app.command(epilog="Example: culturekit llm log runs/cube --outcome refused --limit 5")
def log(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or of one of its stages, finished or not.")],
    outcome: Annotated[
        str,
        typer.Option(help="Only exchanges that ended so, such as ok, invalid, refused, unread, busy, timeout. [all]"),
    ] = "",
    qid: Annotated[
        str, typer.Option(help="Only exchanges about this item or artifact, such as Q2065278 or LLM:pao-de-queijo.")
    ] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many of the last exchanges of each stage.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show requests and replies as they left and came.

    Also while the run is going on.
    """
    from culturekit.llm.ledger import journals_below, latest_exchanges, read_ledger
    from culturekit.trail.evidence import exchanges_about

    places, shows_any = journals_below([run]), False
    for journal in places:
        if qid:
            found = iter(exchanges_about(journal.path, qid, outcome=outcome, limit=limit))
        else:
            found = latest_exchanges(journal.path, outcome=outcome, limit=limit)
        for exchange in found:
            shows_any = True
            sent = {"request": exchange.request, "reply": exchange.reply}
            texts = {name: redact(content.decode("utf-8", "backslashreplace")) for name, content in sent.items()}
            data = {"stage": journal.stage, **asdict(exchange), **texts}
            show(data, exchange_lines(journal.stage, exchange), as_json=as_json)
    if not shows_any:
        ended = sorted({line.outcome for line in read_ledger(places).lines})
        typer.echo(f"no such exchange; those that are there ended {', '.join(ended) or 'in nothing'}", err=True)


def exchange_lines(stage: str, exchange: "Exchange") -> Iterator[str]:
    """Write an exchange for a terminal."""
    from culturekit.llm.ledger import shown_text

    when = datetime.fromtimestamp(exchange.at, UTC).isoformat(timespec="seconds")
    usage, parts = exchange.usage, [f"{stage} #{exchange.number}", when, exchange.outcome, exchange.mode]
    parts += [exchange.model, f"try {exchange.attempt}", f"status {exchange.status}"]
    if usage is not None:
        parts.append(f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out")
    if exchange.usd is not None:
        parts.append(f"{exchange.usd:.6f} USD")
    yield "  ".join(part for part in parts if part)
    for what, content in (("asked", exchange.request), ("answered", exchange.reply)):
        text = shown_text(content.decode("utf-8", "backslashreplace"), longest=SHOWN, rest="; --json shows them")
        yield f"  {what:<8}  {text}"


@llm_app.command(epilog="Example: culturekit llm cost runs/cube")
def cost(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or of stages.")],
    as_json: AsJson = False,
) -> None:
    """Add up what runs have cost.

    Requests, tokens and US dollars by stage, model, mode and outcome.
    """
    from culturekit.llm.ledger import journals_below, read_ledger

    ledger = read_ledger(journals_below(runs))
    *lines, total = (
        {**asdict(line), "usd": line.usd, "usd_unsure": line.usd_unsure} for line in (*ledger.lines, ledger.total)
    )
    show({"lines": lines, "total": total}, ledger_lines(ledger), as_json=as_json)


def ledger_lines(ledger: "Ledger") -> Iterator[str]:
    """Write a ledger as a table, and under it what the sums do not hold."""
    yield (
        f"{'stage':<20} {'model':<26} {'mode':<7} {'outcome':<11} {'requests':>9} {'tokens in':>13} {'cached':>12} "
        f"{'tokens out':>12} {'thinking':>11} {'USD':>12}"
    )
    for line in (*ledger.lines, ledger.total):
        yield (
            f"{line.stage:<20} {line.model:<26} {line.mode:<7} {line.outcome:<11} {line.requests:>9,} "
            f"{line.input_tokens:>13,} {line.cached_tokens:>12,} {line.output_tokens:>12,} {line.thinking_tokens:>11,} "
            f"{line.usd:>12.6f}"
        )
    total = ledger.total
    if total.perhaps_billed:
        yield (
            f"{total.perhaps_billed:,} requests got no reply, or are under way; the provider may have billed them all "
            "the same."
        )
    if total.counted_here:
        yield f"{total.counted_here:,} replies did not tell their usage, or not truly; their tokens were counted here."
    if total.usd_unsure:
        yield (
            f"Up to {total.usd_unsure:.6f} USD on top may be billed for these; a budget counts them at that, "
            f"{total.usd + total.usd_unsure:.6f} USD in all."
        )
    if total.unpriced:
        yield f"{total.unpriced:,} replies have no price; they stand with 0 USD."
    if total.unread:
        yield f"{total.unread:,} replies wait to be read; run the stage again, and they count."


@llm_app.command(epilog="Example: culturekit llm prices --json")
def prices(
    model: Annotated[str | None, typer.Argument(help="Id of a model, as a provider writes it. [all]")] = None,
    prices: Prices = None,
    as_json: AsJson = False,
) -> None:
    """Show what tokens cost, in US dollars per million.

    When that was known to hold, and where it was read.
    """
    from culturekit.core.errors import UsageError
    from culturekit.llm.prices import known_prices, price_of

    price = None if model is None else price_of(model)
    if model is not None and price is None:
        raise UsageError(
            f"no price of {model} is known",
            expected=" or ".join(sorted(known.model for known in known_prices())),
            hint="State one in the SPEC, in US dollars per million tokens in and out: ?price=0.15/0.60",
        )
    listed = known_prices() if price is None else (price,)
    lines = [f"{'model':<38} {'in':>8} {'cached':>8} {'out':>8} {'batch':>6}  {'date':<10}  {'shuts':<10}  instead"]
    for known in listed:
        cached = "" if known.cached is None else f"{known.cached:.3f}"
        line = (
            f"{known.model:<38} {known.input:>8.3f} {cached:>8} {known.output:>8.2f} {known.batch:>6.0%}  "
            f"{known.date}  {known.shuts or '':<10}  {known.instead or ''}"
        )
        lines.append(line.rstrip())
    lines += [f"from {source}" for source in dict.fromkeys(known.source for known in listed)]
    show([known.model_dump() for known in listed], lines, as_json=as_json)


def prices_update(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="File or address: YAML as `prices.yaml`, or LiteLLM's model_prices_and_context_window.json.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Renew the prices that are known.

    What differs is written to prices.yaml in the folder culturekit of $XDG_CONFIG_HOME, or ~/.config, and wins over
    the shipped list, line by line.
    """
    from culturekit.llm.price_update import update_prices

    renewed = update_prices(source)
    show(renewed, renewed.lines(), as_json=as_json)
