from pathlib import Path

import pytest

from tests.faults.embed_kills import EmbedKills, images_of, kill_and_count


@pytest.mark.endtoend
def test_a_killed_embedding_ends_in_the_same_bytes_and_encodes_little_again(tmp_path: Path) -> None:
    images = images_of(tmp_path / "images", 700)
    result = kill_and_count(tmp_path, images, kills=2, workers=2, seed=4, slow=0.1, shards_in_flight=2)
    assert result.kills >= 2
    assert result.different == []
    assert result.again <= result.most_again


def test_the_count_fails_where_more_was_encoded_again_than_was_in_flight() -> None:
    assert EmbedKills(kills=1, again=512, most_again=512).fine
    assert not EmbedKills(kills=1, again=513, most_again=512).fine
    assert not EmbedKills(different=["vectors.npy"]).fine
