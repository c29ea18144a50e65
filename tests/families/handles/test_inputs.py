"""Files that are held against each other."""

from pathlib import Path

import pytest

from culturekit.errors import IntegrityError, UsageError
from culturekit.families.handles.inputs import Files, asked
from culturekit.families.routes import RouteOptions, RouteReads, routes
from culturekit.families.stability import named_tables


def test_a_file_is_not_compared_with_itself(tmp_path: Path) -> None:
    here, again = tmp_path / "scores.parquet", tmp_path / "." / "up" / ".." / "scores.parquet"
    with pytest.raises(UsageError, match="a ranking is compared with itself; expected another file on each side"):
        named_tables([f"clip={here}", f"siglip={again}"])
    with pytest.raises(UsageError, match="a route is compared with itself"):
        routes(RouteReads(Files([here]), Files([tmp_path / "other.parquet", again])), RouteOptions())


@pytest.mark.parametrize("content", [b"", b"prompt_id,text\np,x\n"])
def test_prompts_that_are_no_table_of_ours_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "prompts.parquet").write_bytes(content)
    with pytest.raises(IntegrityError, match="not a readable Parquet file; expected the table prompts"):
        asked(tmp_path / "prompts.parquet", tmp_path)
