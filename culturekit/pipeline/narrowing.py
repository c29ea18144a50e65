"""How the intervals of an audit narrow while people answer, for who asks to see it."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from culturekit.annotate.answer_desk import AnswerDesk
from culturekit.annotate.importing import import_answers
from culturekit.errors import CultureKitError
from culturekit.families.collection_scores import QvsOptions
from culturekit.families.corrected import Correction, score_corrected
from culturekit.metrics.diversity.kernels import STANDARD_KERNELS
from culturekit.records.schemas import AUDITS, MATCHES
from culturekit.records.work import Engine, Quiet, Work
from culturekit.report.model_lines import HEADLINE_KERNEL
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.storage.tables import read_table

__all__ = ["Narrowing"]

EVERY = 30
"""Answers after which intervals are worked out again."""


class Narrowing:
    """Works out corrected intervals after every so many answers, beside people's work.

    Who answers learns the widest interval; models are named to `tell` alone.
    """

    def __init__(self, run: RunFolders, desk: AnswerDesk, engine: Engine, tell: Callable[[str], None]) -> None:
        """Begin with what is answered."""
        self.run, self.desk, self.engine, self.tell = run, desk, engine, tell
        self.looked_at, self.looking = desk.answered, threading.Lock()

    def heard(self) -> None:
        """Take note of an answer; look again if enough are new and nobody is looking."""
        if self.desk.answered - self.looked_at >= EVERY and self.looking.acquire(blocking=False):
            self.looked_at = self.desk.answered
            threading.Thread(target=self.look, name="intervals").start()

    def end(self) -> None:
        """Look a last time, after who is looking."""
        self.looking.acquire()
        self.look()

    def look(self) -> None:
        """Work the intervals out, and tell; whoever calls holds the lock, and it is free then."""
        try:
            for line in self.lines():
                self.tell(line)
        except CultureKitError as error:
            self.tell(f"no intervals yet: {error}")
        finally:
            self.looking.release()

    def lines(self) -> Iterator[str]:
        """Say the corrected diversity of each model, as far as answers carry it."""
        options = self.run.manifest(roles.SCORES).options
        kernels, size = (STANDARD_KERNELS[HEADLINE_KERNEL],), int(options["size"])
        matches = pl.concat([self.run.matches(model).select(list(MATCHES.schema)) for model in self.run.models])
        found = score_corrected(
            matches, self.audits(), None, options=QvsOptions(kernels=kernels, size=size),
            correction=Correction(required=False),
        )  # fmt: skip
        overall = pl.col("concept").is_null()
        scores = found.scores.filter(overall | ~overall.any().over("model"))
        widths = (scores["ci_high"] - scores["ci_low"]).to_list()
        self.desk.aside = f"; the widest of {len(widths)} intervals is {max(widths):.3f}" if widths else ""
        yield f"after {self.desk.answered:,} answers, corrected diversity ({HEADLINE_KERNEL} kernel):"
        for row in scores.iter_rows(named=True):
            about = f"{row['model']}, {row['concept'] or 'all concepts'}"
            yield f"  {about:<32} {row['value']:.3f} [{row['ci_low']:.3f}, {row['ci_high']:.3f}]"
        for reason, count in found.left_out.items():
            yield f"  {reason} ({count})"

    def audits(self) -> pl.DataFrame:
        """Import the answers that there are, as the run will."""
        project, journal = self.run.folder(roles.TO_AUDIT), self.desk.journal.path
        with TemporaryDirectory(prefix="culturekit-audit-") as folder:
            import_answers(Work({}, Path(folder), Path(folder), self.engine, Quiet()), project, [journal], pool=None)
            return read_table(Path(folder) / f"{AUDITS.name}.parquet", AUDITS)
