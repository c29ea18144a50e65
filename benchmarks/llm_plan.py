"""How far a plan is off: 3,000 requests, 200 of them bought as a pilot, a tokenizer and habits unknown to the plan."""

import numpy as np
from recording import record

from culturekit.core.digests import canonical_json
from culturekit.llm.client import Identity, Outgoing, Rate, Usage
from culturekit.llm.cost_plan import plan_cost
from culturekit.llm.journal import key_of
from culturekit.llm.ledger import Spent

IDENTITY = Identity("openai", "https://api.openai.com/v1", "chat/completions", "gpt-4o-mini")
RATE = Rate(0.15, 0.60)
ROWS, PILOT, RUNS = 3_000, 200, 20
WORDS = ["soup", "pho", "festival", "суп", "米粉", "dance", "temple", "स्वाद", "weaving", "وشاح", "drum", "mountain"]
INSTRUCTIONS = {
    "filter": "You judge candidates. " * 40,
    "extraction": "Quote the page. " * 10,
    "thinking": "Think. " * 20,
}
SPREAD = {"filter": 0.4, "extraction": 1.3, "thinking": 0.8}


def main() -> None:
    """Plan three kinds of task many times."""
    rows = [
        ["task", "off on input: median", "95 % of runs", "worst", "off in total: median", "95 % of runs ", "worst "]
    ]
    for task in INSTRUCTIONS:
        errors = np.abs([error_of(task, np.random.default_rng(seed)) for seed in range(RUNS)])
        figures = [f"{value:.1%}" for column in errors.T for value in (*np.quantile(column, (0.5, 0.95)), column.max())]
        rows.append([task, *figures])
    record(
        "llm_plan",
        title=f"Plans of {ROWS:,} requests after a pilot of {PILOT}, {RUNS} simulated runs each",
        command="python benchmarks/llm_plan.py",
        table=rows,
    )


def error_of(task: str, rng: np.random.Generator) -> tuple[float, float]:
    """Give how far a plan is off, as a share: on input, and in total."""
    lengths = np.exp(rng.normal(3.0, SPREAD[task], ROWS)).astype(int) + 1
    requests = [
        Outgoing(canonical_json({"i": INSTRUCTIONS[task], "q": number, "t": " ".join(rng.choice(WORDS, length))}))
        for number, length in enumerate(lengths)
    ]
    truth = [usage_of(task, outgoing, rng) for outgoing in requests]
    chosen = sorted(int(row) for row in rng.choice(ROWS, PILOT, replace=False))
    spent = [
        Spent(key_of(IDENTITY, requests[row]), "pilot", truth[row].input_tokens, truth[row].output_tokens, True)
        for row in chosen
    ]
    plan = plan_cost(requests, IDENTITY, RATE, spent=spent)
    left = [truth[row] for row in sorted(set(range(ROWS)) - set(chosen))]
    inputs, outputs = sum(usage.input_tokens for usage in left), sum(usage.output_tokens for usage in left)
    planned = RATE.input * plan.input_tokens + RATE.output * plan.output_tokens
    return plan.input_tokens / inputs - 1, planned / (RATE.input * inputs + RATE.output * outputs) - 1


def usage_of(task: str, outgoing: Outgoing, rng: np.random.Generator) -> Usage:
    """Count as another tokenizer would; output short, as long as the question, or thought about for long."""
    words = outgoing.body.decode().split()
    tokens = 11 + sum(1 + (len(word) - 1) // 5 + (0 if word.isascii() else 2 * len(word)) for word in words)
    if task == "filter":
        return Usage(tokens, 14 + int(rng.integers(0, 4)))
    if task == "extraction":
        return Usage(tokens, 20 + int(rng.gamma(2.0, 0.1 * tokens)))
    return Usage(tokens, 14 + int(rng.lognormal(5.0, 0.7)))


if __name__ == "__main__":
    main()
