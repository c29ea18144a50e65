from pathlib import Path

import numpy as np
import pytest

from culturekit.core.digests import digest_bytes
from culturekit.core.errors import IntegrityError
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.index.embedding.embedding import load_picture, try_picture
from tests.core.odd_pictures import odd_picture


def test_the_picture_of_a_row_is_loaded(tmp_path: Path) -> None:
    made = odd_picture("png colour", 3)
    (tmp_path / "a.png").write_bytes(made.content)
    pixels = load_picture(tmp_path, "a.png", sha256=digest_bytes(made.content))
    assert np.array_equal(pixels, made.right)


def test_a_file_that_holds_no_picture_is_a_reason_or_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"words")
    found = try_picture(tmp_path, "a.png", sha256=digest_bytes(b"words"))
    assert found == NoPicture("picture format not read")
    with pytest.raises(IntegrityError, match="picture format not read"):
        load_picture(tmp_path, "a.png", sha256=digest_bytes(b"words"))


@pytest.mark.parametrize("name", ["gone.png", "../b.png", "link.png", "folder", "changed.png"])
def test_a_folder_that_is_not_as_its_table_promises_is_an_error(tmp_path: Path, name: str) -> None:
    root = tmp_path / "images"
    (root / "folder").mkdir(parents=True)
    content = odd_picture("png colour", 3).content
    (tmp_path / "b.png").write_bytes(content)
    (root / "link.png").symlink_to("../b.png")
    (root / "changed.png").write_bytes(content + b"!")
    with pytest.raises(IntegrityError, match=name.replace(".", r"\.")):
        try_picture(root, name, sha256=digest_bytes(content))
