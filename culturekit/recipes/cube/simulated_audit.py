"""The audit of a simulated world: raters who know what was drawn label a sample of images."""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from culturekit.config.recipe_parts import Audit
from culturekit.core.schemas import AUDIT_SAMPLE, AUDITS, CSPACE, MATCHES
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Outcome, Work
from culturekit.index.raters.simulated_raters import simulated_audits
from culturekit.metrics.corrected.audit_sampling import audit_sample

CAVEAT = "The audit was made by simulated raters, who know what the simulated models drew."


def simulated_audit_stage(matches: Path, truth: Path, cspace: Path, audit: Audit, *, seed: int) -> Stage:
    """Draw images, and have simulated raters label them."""

    def run(work: Work) -> Outcome:
        sample = audit_sample(read_table(matches, MATCHES), n=audit.images, rng=np.random.default_rng(seed))
        said = simulated_audits(
            read_table(truth, MATCHES),
            read_table(cspace, CSPACE),
            sample["image_id"].to_list(),
            audit.raters,
            seed=seed,
        )
        write_table(work.out, AUDIT_SAMPLE, sample)
        write_table(work.out, AUDITS, said)
        return Outcome({"audit_sample": sample.height, "audits": said.height}, notes={"caveat": CAVEAT})

    inputs = {"matches": matches, "truth": truth, "cspace": cspace}
    options = {"images": audit.images, **asdict(audit.raters)}
    return Stage("audit", "simulated-audit", 4, run, inputs, options, {"audit": seed})
