from pathlib import Path

import pytest

from tests.faults.hostile_files import EXPLAINED, READERS, give


@pytest.mark.parametrize("reader", READERS)
def test_whatever_a_file_holds_is_explained_with_its_name(reader: str, small_run: Path, tmp_path: Path) -> None:
    """Before, 31 contents of these gave 70 ("a mistake in culturekit") and some "Aborted!"."""
    ended = list(give(reader, tmp_path / "given", small_run, seed=5))
    assert len(ended) > 25
    unexplained = [one for one in ended if one.code not in {0, *EXPLAINED} or "Traceback" in one.words]
    assert not unexplained
    refused = [one for one in ended if one.code in {2, 4}]
    nameless = [one for one in refused if Path(reader.strip()).name not in one.words]
    assert not nameless
