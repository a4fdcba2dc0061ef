"""The functions in Python, called in this process: right results pass their check, wrong ones do not."""

import base64
import copy
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from tests.suite.conftest import work_of

from wattloom import suite
from wattloom.suite.families.chance import Chance, WrongResult
from wattloom.suite.families.images import picture, png, read_png

PLAIN = [name for name in suite.NAMES if name.endswith("-python") and name != "image-recognition-python"]
"""Image recognition is tried where its network is installed."""


@pytest.mark.parametrize("name", PLAIN)
def test_the_result_is_right_and_the_same_for_the_same_seed(name: str) -> None:
    work = work_of(name)
    for seed in (1, 4_000_000_000):
        result = json.loads(json.dumps(work.function(*work.args(seed))))
        work.check(result, seed)
    again = suite.Work(suite.described(name))
    assert again.args(1) == work.args(1)
    assert work.args(1) != work.args(2)


@pytest.mark.parametrize("name", PLAIN)
def test_the_result_of_another_seed_is_wrong(name: str) -> None:
    work = work_of(name)
    with pytest.raises(WrongResult, match=f"^{name}: "):
        work.check(work.function(*work.args(2)), 1)


FAMILIES = {suite.described(name).family: name for name in reversed(suite.NAMES)}
"""One of each."""


@pytest.mark.parametrize("name", FAMILIES.values())
@pytest.mark.parametrize("nonsense", [{}, None, 3, [], {"token": 1}, {"html": None}, {"archive": "?"}])
def test_nonsense_is_a_wrong_result_whatever_it_is(name: str, nonsense: Any) -> None:
    if suite.described(name).family == "video-to-gif":
        work_of(name)  # its input cannot even be made without ffmpeg
    with pytest.raises(WrongResult):
        suite.Work(suite.described(name)).check(nonsense, 1)


def spoiled(name: str, change: Callable[[dict[str, Any]], None]) -> str:
    """What is said of a right result in which something was changed."""
    work = work_of(name)
    result = copy.deepcopy(work.function(*work.args(1)))
    change(result)
    with pytest.raises(WrongResult) as said:
        work.check(result, 1)
    return str(said.value)


def test_a_token_with_another_signature_is_wrong() -> None:
    def change(result: dict[str, Any]) -> None:
        body, _, signature = result["token"].rpartition(".")
        result["token"] = f"{body}.{signature[:-8]}AAAAAAAA"

    assert "signature is wrong" in spoiled("jwt-python", change)


def test_a_function_that_takes_changed_tokens_is_wrong() -> None:
    assert "was changed" in spoiled("jwt-python", lambda result: result.update(tampered=True))


def test_a_picture_of_another_size_or_colour_is_wrong() -> None:
    large = base64.b64encode(png(picture(Chance("thumbnail", 1), 320, 240))).decode()
    assert "320x240" in spoiled("thumbnail-python", lambda result: result.update(image=large))
    other = base64.b64encode(png(picture(Chance("other", 1), 160, 120))).decode()
    assert "another colour" in spoiled("thumbnail-python", lambda result: result.update(image=other))


def test_a_product_with_one_number_wrong_is_wrong() -> None:
    def change(result: dict[str, Any]) -> None:
        result["product"][3][4] += 1 / 1024

    assert "not the product" in spoiled("matrix-native-python", change)
    assert "not the product" in spoiled("matrix-numpy-python", change)


def test_ranks_that_do_not_add_up_or_are_others_are_wrong() -> None:
    assert "add up" in spoiled("pagerank-python", lambda result: result["ranks"].__setitem__(0, 0.5))
    assert "power iteration" in spoiled("pagerank-python", lambda result: result["ranks"].reverse())


def test_a_page_that_is_not_escaped_is_wrong() -> None:
    def change(result: dict[str, Any]) -> None:
        result["html"] = result["html"].replace("&lt;b&gt;", "<b>").replace("&lt;/b&gt;", "</b>")

    assert "element <b>" in spoiled("html-python", change)


def test_an_archive_with_another_file_or_without_compression_is_wrong() -> None:
    given = suite.function("zip-python").args(1)[0]["files"]

    def packed(files: list[tuple[str, str]], how: int) -> Callable[[dict[str, Any]], None]:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", how) as archive:
            for name, text in files:
                archive.writestr(name, text)
        return lambda result: result.update(archive=base64.b64encode(content.getvalue()).decode())

    same = [(each["name"], each["text"]) for each in given]
    assert "not what it was" in spoiled("zip-python", packed([*same[:2], (same[2][0], "x")], zipfile.ZIP_DEFLATED))
    assert "the archive has" in spoiled("zip-python", packed(same[:2], zipfile.ZIP_DEFLATED))
    assert "not compressed" in spoiled("zip-python", packed(same, zipfile.ZIP_STORED))


def test_a_gif_that_lost_a_picture_is_wrong() -> None:
    def change(result: dict[str, Any]) -> None:
        content = base64.b64decode(result["gif"])
        last = content.rindex(b"\x21\xf9\x04")
        result["gif"] = base64.b64encode(content[:last] + b";").decode()

    assert "29 pictures" in spoiled("video-to-gif-python", change)


def test_what_we_write_as_png_pillow_reads_and_the_other_way_round() -> None:
    image = pytest.importorskip("PIL.Image", reason="PILLOW IS MISSING")
    pixels = picture(Chance("png", 3), 61, 47)
    assert (read_png(png(pixels)) == pixels).all()
    with image.open(io.BytesIO(png(pixels))) as opened:
        assert opened.tobytes() == pixels.tobytes()
        content = io.BytesIO()
        opened.save(content, "PNG")
    assert (read_png(content.getvalue()) == pixels).all()


def test_the_film_pillow_sees_in_the_gif_is_the_one_that_was_drawn() -> None:
    image = pytest.importorskip("PIL.Image", reason="PILLOW IS MISSING")
    from wattloom.suite.families.video_to_gif import _frames

    work = work_of("video-to-gif-python")
    gif = base64.b64decode(work.function(*work.args(1))["gif"])
    frames = _frames(1)
    with image.open(io.BytesIO(gif)) as opened:
        for number in (0, 15, 29):
            opened.seek(number)
            small = opened.convert("RGB").resize((8, 6), image.Resampling.BOX)
            drawn = image.fromarray(frames[number]).resize((8, 6), image.Resampling.BOX)
            away = [abs(a - b) for a, b in zip(small.tobytes(), drawn.tobytes(), strict=True)]
            assert sum(away) / len(away) < 8
