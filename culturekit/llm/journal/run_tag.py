"""The name of one run of a stage, the same after every kill of it."""

import secrets

from culturekit.records.work import Work
from culturekit.storage.atomic import sync_folder, write_atomically

__all__ = ["run_tag"]


def run_tag(work: Work) -> str:
    """Give the tag of this run: a random one that lies in its scratch folder, and so lives as long as the run does."""
    path = work.scratch / "run_tag"
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        tag = secrets.token_hex(8)
        write_atomically(path, tag.encode("ascii"))
        sync_folder(work.scratch)
        return tag
