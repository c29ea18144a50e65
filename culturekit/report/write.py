"""The report as a folder: the page, and the thumbnails it links to beside it."""

from culturekit.records.work import Outcome, Work
from culturekit.report.collect import collect
from culturekit.report.render import render
from culturekit.report.run_folders import RunFolders
from culturekit.report.thumbnails import Copied, small_copy
from culturekit.storage.atomic import write_atomically

__all__ = ["write_report"]


def write_report(work: Work, run: RunFolders) -> Outcome:
    """Write the report of a run."""
    data = collect(run)
    folder = work.out / "thumbnails"
    folder.mkdir(exist_ok=True)
    work.progress.begin(len(data.thumbnails), "thumbnails")
    wanted = [Copied(run.root, source, folder / name) for name, source in data.thumbnails.items()]
    unread = 0
    for read in work.engine.map(small_copy, wanted):
        unread += not read
        work.progress.advance(1)
    page = render(data).encode("utf-8")
    write_atomically(work.out / "report.html", page)
    counts = {"models": len(data.models), "shots": len(data.shots), "thumbnails": len(wanted), "bytes": len(page)}
    return Outcome(counts, {"picture that cannot be read": unread} if unread else {})
