# SPDX-License-Identifier: Apache-2.0
"""compress, decompress, inspect, ranges, lists, errors."""

from __future__ import annotations

import doctest
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st

import wirepress
import wirepress.api

LOSSLESS = [codec.name for codec in wirepress.codecs() if codec.lossless]
RECIPES = [*LOSSLESS, "lz4:9", "zstd:-5", "zstd:19", "deflate:1", "shuffle:4+zstd:3", "shuffle+lz4"]


def test_doctests() -> None:
    for module in (wirepress, wirepress.api):
        result = doctest.testmod(module, optionflags=doctest.ELLIPSIS, raise_on_error=False)
        assert result.attempted > 0
        assert result.failed == 0


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 100_000])
def test_round_trip(recipe: str, size: int, text: bytes) -> None:
    frame = wirepress.compress(text[:size], recipe, block_size=1024)
    assert wirepress.decompress(frame) == text[:size]
    info = wirepress.inspect(frame)
    assert (info.raw_size, info.n_blocks, info.shape) == (size, -(-size // 1024), None)
    assert info.recipe.split(":")[0].split("+")[0] == recipe.split(":")[0].split("+")[0]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_bytes_do_not_depend_on_threads(threads: int, text: bytes) -> None:
    expected = wirepress.compress(text, "zstd:1", threads=1, block_size=65536)
    assert wirepress.compress(text, "zstd:1", threads=threads, block_size=65536) == expected
    assert wirepress.decompress(expected, threads=threads) == text


@settings(max_examples=60, deadline=None)
@given(
    data=st.binary(max_size=5000),
    recipe=st.sampled_from(RECIPES),
    block_size=st.sampled_from([1024, 4096]),
    checksum=st.booleans(),
)
def test_round_trip_of_anything(data: bytes, recipe: str, block_size: int, checksum: bool) -> None:
    data *= 3  # something to find
    frame = wirepress.compress(data, recipe, block_size=block_size, checksum=checksum)
    assert wirepress.decompress(frame) == data
    assert len(frame) <= len(data) + 32 + 8 * -(-len(data) // block_size)


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, 10**6), flip=st.integers(1, 255), recipe=st.sampled_from(RECIPES))
def test_damage_is_found(at: int, flip: int, recipe: str) -> None:
    data = bytes(range(200)) * 20
    frame = bytearray(wirepress.compress(data, recipe, block_size=1024))
    frame[at % len(frame)] ^= flip
    with pytest.raises(wirepress.FrameError):
        wirepress.decompress(frame)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_truncation_is_found(recipe: str) -> None:
    frame = wirepress.compress(bytes(range(200)) * 11, recipe, block_size=1024)
    for size in range(len(frame)):
        with pytest.raises(wirepress.FrameError):
            wirepress.decompress(frame[:size])
    with pytest.raises(wirepress.CorruptError):
        wirepress.decompress(frame + b"\0")


@pytest.mark.parametrize("streamed", [False, True])
def test_truncations_name_the_block(streamed: bool) -> None:
    data = bytes(range(200)) * 50
    stream = wirepress.StreamCompressor(block_size=1024)
    frame = stream.update(data) + stream.finish()
    if not streamed:
        frame = wirepress.compress(data, block_size=1024)
    for size, block in ((20, 0), (500, 2), (len(frame) - 3, 9)):
        with pytest.raises(wirepress.TruncatedError, match=rf"block {block}: needs \d+ bytes"):
            wirepress.decompress(frame[:size])


def test_range(text: bytes) -> None:
    frame = wirepress.compress(text, "lz4", block_size=4096)
    for offset, size in ((0, 0), (0, 1), (4095, 2), (70_000, 30_000), (len(text), 0)):
        assert wirepress.decompress_range(frame, offset, size) == text[offset : offset + size]
    with pytest.raises(wirepress.ParameterError, match=str(len(text))):
        wirepress.decompress_range(frame, len(text), 1)


def test_out(text: bytes) -> None:
    frame = wirepress.compress(text, "lz4")
    out = bytearray(len(text) + 5)
    assert wirepress.decompress(frame, out) is out
    assert out[: len(text)] == text
    array = np.empty(len(text), np.uint8)
    assert wirepress.decompress(frame, out=array) is array
    assert array.tobytes() == text
    with pytest.raises(wirepress.TooSmallError):
        wirepress.decompress(frame, bytearray(len(text) - 1))
    for unwritable in (bytes(len(text)), array[::2]):
        with pytest.raises((BufferError, ValueError)):
            wirepress.decompress(frame, unwritable)


def test_compress_into(text: bytes) -> None:
    compressor = wirepress.Compressor("zstd:1")
    out = bytearray(compressor.bound(len(text)))
    size = compressor.compress_into(text, out)
    assert wirepress.decompress(memoryview(out)[:size]) == text
    with pytest.raises(wirepress.TooSmallError):
        compressor.compress_into(text, bytearray(100))
    assert compressor.decompress(compressor.compress(text)) == text  # still usable


def test_stats(text: bytes) -> None:
    compressor = wirepress.Compressor("zstd:1", threads=1, block_size="64KiB")
    frame = compressor.compress(text)
    stats = compressor.stats
    assert (stats.raw_bytes, stats.wire_bytes) == (len(text), len(frame))
    assert stats.blocks == -(-len(text) // 65536)
    assert stats.ratio == pytest.approx(len(text) / len(frame))
    assert stats.compress_seconds > 0
    compressor.decompress(frame)
    assert compressor.stats.expanded_bytes == len(text)
    compressor.reset_stats()
    assert compressor.stats.raw_bytes == 0
    random = np.random.default_rng(1).bytes(1 << 20)
    compressor.compress(random)
    assert compressor.stats.bypassed_probe + compressor.stats.bypassed_size == 16


def test_options_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {option.key for option in wirepress.options()}
    assert {"recipe", "block_size", "threads", "checksum", "engine"} <= keys
    monkeypatch.setenv("WIREPRESS_RECIPE", "lz4:9")
    assert wirepress.Compressor().option("recipe") == ("lz4:9", "environment")
    assert wirepress.Compressor("zstd").option("recipe") == ("zstd", "set")
    assert wirepress.inspect(wirepress.compress(b"x" * 99)).recipe == "lz4:9"
    monkeypatch.setenv("WIREPRESS_THREADS", "many")
    with pytest.raises(wirepress.ParameterError, match=r"WIREPRESS_.*many"):
        wirepress.compress(b"")


@pytest.mark.parametrize("codec", wirepress.codecs(), ids=lambda codec: codec.name)
def test_every_kernel_agrees(codec: wirepress.Codec, field: np.ndarray) -> None:
    frames = []
    field = field if "float32" in codec.dtypes else field.view(np.int32)
    for kernel in codec.kernels:
        if kernel.usable:
            engine = f"{kernel.engine}:{kernel.variant}"
            frames.append(wirepress.compress(field, codec.name, engine=engine))
            scalar = wirepress.decompress(frames[0], raw=True, engine="cpu:scalar")
            assert wirepress.decompress(frames[-1], raw=True, engine=engine) == scalar
    assert frames
    if codec.exact_encode:
        assert len(set(frames)) == 1


VARIANTS = sorted(
    {
        f"{kernel.engine}:{kernel.variant}"
        for codec in wirepress.codecs()
        for kernel in codec.kernels
        if kernel.usable and kernel.engine != "compressdev"  # behind whose colon stands a device
    }
)


@pytest.mark.parametrize("engine", VARIANTS)
def test_a_variant_that_the_codec_lacks_is_refused(
    engine: str, field: np.ndarray, tmp_path: Path
) -> None:
    lacking = 0
    for codec in wirepress.codecs():
        data = field if "float32" in codec.dtypes else field.view(np.int32)
        copies = codec.name == "store" and engine.startswith("cpu:")
        if copies or any(f"{k.engine}:{k.variant}" == engine for k in codec.kernels):
            wirepress.compress(data, codec.name, engine=engine)
            continue
        lacking += 1
        sentence = f"(has no kernel {engine}; it has |no kernel for engine .{engine})"
        with pytest.raises(wirepress.ParameterError, match=sentence):
            wirepress.compress(data, codec.name, engine=engine)
        with pytest.raises(wirepress.ParameterError, match=sentence):
            wirepress.StreamCompressor(codec.name, engine=engine, dtype=str(data.dtype))
        path = tmp_path / codec.name
        with pytest.raises(wirepress.ParameterError, match=sentence):
            wirepress.FrameStore(path, (100,), data.dtype, recipe=codec.name, engine=engine)
        assert not path.exists()
    assert lacking


@pytest.mark.parametrize("policy", ["compressed", "disk"])
def test_a_store_is_read_with_the_variant_that_made_it(policy: str, tmp_path: Path) -> None:
    """Reading takes no recipe and `disk` packs nothing: neither is a reason to refuse one."""
    values = np.linspace(1, 2, 100, dtype=np.float32)
    path = tmp_path / "store"
    recipe = "bx:m=23" if policy == "compressed" else None
    with wirepress.FrameStore(
        path, (100,), "float32", recipe=recipe, policy=policy, engine="cpu:scalar"
    ) as store:
        store.put(0, values)
    with wirepress.FrameStore(path, engine="cpu:scalar") as store:
        assert np.array_equal(store.get(0), values)


def test_frames_of_codecs_without_the_variant() -> None:
    """The processor's other kernels read them, which is counted; a simulated core does not."""
    data = b"text that lz4 finds again and again; " * 500
    frame = wirepress.compress(data, "lz4")
    before = wirepress.device_work().cores_bytes
    assert wirepress.decompress(frame, engine="cpu:scalar") == data
    after = wirepress.device_work()
    assert after.cores_bytes - before == len(data) and "no codec of the recipe" in after.reason
    if "rtl:verilator16" in VARIANTS:
        assert wirepress.decompress(frame, engine="rtl:verilator16") == data
        with pytest.raises(
            wirepress.UnsupportedError, match="zstd:1 has no kernel rtl:verilator16"
        ):
            wirepress.decompress(wirepress.compress(data, "zstd"), engine="rtl:verilator16")
    assert wirepress.device_work() == after


def test_lossy_within_its_bound(field: np.ndarray) -> None:
    restored = wirepress.decompress(wirepress.compress(field, "fre:m=5"))
    assert restored.dtype == field.dtype
    assert np.all(np.abs(restored - field) <= np.abs(field) * 2.0**-6)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"recipe": "zpaq"}, r"zpaq.*known: .*lz4.*zstd"),
        ({"recipe": "zstd:99"}, r"zstd.*99.*22"),
        ({"recipe": "zstd:speed=3"}, r"speed.*known: level"),
        ({"recipe": "zstd+lz4+zstd+lz4+zstd"}, r"4"),
        ({"recipe": ""}, r"recipe"),
        ({"block_sise": 4096}, r"block_sise.*known: .*block_size"),
        ({"block_size": 1000}, r"block_size.*1000"),
        ({"threads": "many"}, r"threads.*many"),
        ({"threads": -1}, r"threads.*-1"),
        ({"engine": "gpu"}, r"gpu.*known: .*cpu"),
        ({"engine": "cpu:sse9"}, r"sse9.*known: .*cpu:scalar"),
        ({"checksum": "perhaps"}, r"checksum.*perhaps"),
    ],
)
def test_wrong_settings(arguments: dict[str, wirepress.api.Value], sentence: str) -> None:
    with pytest.raises(wirepress.ParameterError, match=sentence) as caught:
        wirepress.compress(b"data" * 100, **arguments)
    assert isinstance(caught.value, ValueError)
    assert caught.value.status == "parameter"


def test_wrong_types() -> None:
    with pytest.raises(TypeError, match="not str"):
        wirepress.compress("text")
    with pytest.raises(TypeError, match="not list"):
        wirepress.compress([1, 2, 3])
    with pytest.raises(TypeError, match="threads"):
        wirepress.compress(b"", threads=1.5)
    with pytest.raises(TypeError):
        wirepress.decompress("text")


def test_not_a_frame() -> None:
    for junk in (b"", b"W", b"WPR", b"PK\x03\x04" * 20, bytes(100)):
        with pytest.raises(wirepress.FrameError):
            wirepress.decompress(junk)
        with pytest.raises(wirepress.FrameError):
            wirepress.inspect(junk)
    frame = wirepress.compress(b"x" * 5000, "zstd", block_size=1024)
    with pytest.raises(wirepress.ChecksumError, match="block 4"):
        wirepress.decompress(frame[:-1] + bytes([frame[-1] ^ 1]))


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(wirepress.ChecksumError("block 3")))
    assert (str(error), error.code, error.status) == ("block 3", 11, "checksum")


def test_lists() -> None:
    names = [codec.name for codec in wirepress.codecs()]
    assert names[0] == "store"
    assert {"lz4", "zstd", "fre", "shuffle"} <= set(names)
    assert len({codec.id for codec in wirepress.codecs()}) == len(names)
    assert all(codec.kernels and codec.sentence for codec in wirepress.codecs())
    assert (
        {"cpu"}
        <= {e.name for e in wirepress.engines() if e.available}
        <= {
            "cpu",
            "rtl",
            "compressdev",
        }
    )
    for option in wirepress.options():
        assert option.variable == f"WIREPRESS_{option.key.upper()}"


# ---- arrays cut at rows, blocks with recipes of their own ----------------------------------------


def smooth(*shape: int) -> np.ndarray:
    grid = np.meshgrid(*(np.linspace(0, 3, n) for n in shape), indexing="ij")
    return np.sin(sum(grid)).astype(np.float32)


@pytest.mark.parametrize("shape", [(50, 60), (33, 7, 20), (4, 5, 6, 7), (1000,), (3, 4000)])
@pytest.mark.parametrize("recipe", ["zfp:accuracy=1e-4", "zfp", "sz3:abs=1e-4+zstd:1"])
def test_codecs_that_see_the_shape(shape: tuple[int, ...], recipe: str) -> None:
    field = smooth(*shape)
    one = wirepress.compress(field, recipe, block_size="4KiB", threads=1)
    assert one == wirepress.compress(field, recipe, block_size="4KiB", threads=3)
    back = wirepress.decompress(one, threads=2)
    assert back.shape == shape
    assert np.abs(back - field).max() <= 1e-4
    info = wirepress.inspect(one)
    rows = 4 * field[0].nbytes if len(shape) > 1 else 4096
    assert info.block_size % rows == 0
    raw = back.tobytes()
    for offset in 0, len(raw) // 3, len(raw) - 7:
        assert wirepress.decompress_range(one, offset, 7) == raw[offset : offset + 7]


def test_a_shape_helps() -> None:
    field = smooth(40, 40, 40)
    flat = wirepress.compress(field.ravel(), "zfp:accuracy=1e-3")
    assert len(wirepress.compress(field, "zfp:accuracy=1e-3")) < len(flat) / 2


def test_auto(field: np.ndarray, text: bytes) -> None:
    mixed = b"".join([bytes(200_000), text[:200_000], os.urandom(200_000)])
    for recipe in "auto", "auto:goal=ratio", "auto:goal=speed", "auto:min-speed=1KB/s":
        frame = wirepress.compress(mixed, recipe, block_size="4KiB")
        assert wirepress.decompress(frame) == mixed
        assert (wirepress.decompress(wirepress.compress(field, recipe)) == field).all()
    frame = wirepress.compress(mixed, "auto:goal=ratio", block_size="4KiB")
    assert len(frame) < len(mixed) * 0.6
    lossy = wirepress.compress(field, "auto:rel=1e-2,goal=ratio")
    assert np.allclose(wirepress.decompress(lossy), field, rtol=1e-2, atol=0)


def test_gradients() -> None:
    rng = np.random.default_rng(3)
    gradient = rng.laplace(0, 1e-3, 10_000).astype(np.float32)
    residual = np.zeros_like(gradient)
    compressor = wirepress.Compressor("topk:0.01")
    total = np.zeros_like(gradient)
    for _ in range(3):
        frame = compressor.compress_feedback(gradient, residual)
        assert compressor.decompress_add(frame, total) == gradient.size
    assert np.allclose(total + residual, 3 * gradient, atol=1e-6)
    again, out = residual.copy(), bytearray(compressor.bound(gradient.nbytes))
    size = compressor.compress_feedback_into(gradient, residual, out)
    assert out[:size] == compressor.compress_feedback(gradient, again) and (residual == again).all()
    both = compressor.decompress(compressor.add(frame, frame), raw=True)
    once = compressor.decompress(frame, raw=True)
    twice = 2 * np.frombuffer(once, np.float32)
    assert (np.frombuffer(both, np.float32) == twice).all()
    fre = wirepress.compress(gradient, "fre")
    with pytest.raises(wirepress.UnsupportedError, match="fre"):
        compressor.add(fre, fre)
    for wrong in gradient.astype(np.float64), gradient[:9]:
        with pytest.raises(wirepress.ParameterError, match=r"float32|residual"):
            compressor.compress_feedback(wrong, residual)
    rounded = wirepress.Compressor("terngrad")
    first = rounded.compress(gradient)
    rounded.set("seed", 1)
    assert rounded.compress(gradient) != first


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_gradients_of_16_bits(name: str) -> None:
    """Their frame is that of the same values in float32, and sums are rounded once."""
    values = np.random.default_rng(3).laplace(0, 1e-3, 30_001).astype(np.float32)
    if name == "float16":
        halves = values.astype(np.float16)
        wide, typed = halves.astype(np.float32), {}
        rounded = lambda x: x.astype(np.float16)  # noqa: E731
    else:
        halves = (values.view(np.uint32) >> 16).astype(np.uint16)
        wide, typed = (halves.astype(np.uint32) << 16).view(np.float32), {"dtype": "bfloat16"}

        def rounded(x: np.ndarray) -> np.ndarray:
            words = x.view(np.uint32)
            return ((words + 0x7FFF + (words >> 16 & 1)) >> 16).astype(np.uint16)

    for recipe in "topk:0.01", "onebit", "fre:m=3+zstd:1":
        compressor = wirepress.Compressor(recipe, block_size="4KiB", threads=2)
        residual, expected = np.zeros_like(wide), np.zeros_like(wide)
        for _ in range(2):
            frame = compressor.compress_feedback(halves, residual, **typed)
            assert frame == compressor.compress_feedback(wide, expected)
            assert (residual == expected).all()
        out = bytearray(compressor.bound(residual.nbytes))
        size = compressor.compress_feedback_into(halves, residual, out, **typed)
        assert out[:size] == compressor.compress_feedback(wide, expected)
        total = halves.copy()
        assert compressor.decompress_add(out[:size], total, **typed) == wide.size
        decoded = np.frombuffer(compressor.decompress(out[:size], raw=True), np.float32)
        assert (total == rounded(wide + decoded)).all()
    with pytest.raises(wirepress.ParameterError, match="gradient must be float32, bfloat16"):
        compressor.compress_feedback(np.zeros(3, np.int16), np.zeros(3, np.float32))
    with pytest.raises(wirepress.ParameterError, match="residual must be float32"):
        compressor.compress_feedback(halves, halves, **typed)
    with pytest.raises(wirepress.ParameterError, match="out must be float32, bfloat16"):
        compressor.decompress_add(frame, np.zeros(30_001, np.int16))


def test_options_as_numbers():
    values = {"seed": "5", "block_size": "1MiB", "link": "1.2 GB/s", "checksum": "off"}
    compressor = wirepress.Compressor(**values, mpi_link="auto", mpi_threshold="2 mb")
    numbers = [compressor.number(key) for key in (*values, "mpi_link", "mpi_threshold")]
    assert numbers == [5, 1 << 20, 1.2e9, 0, 0, 2_000_000]
    for key in "recipe", "nothing":
        with pytest.raises(wirepress.ParameterError, match=f'no option "{key}" that is a number'):
            compressor.number(key)


@pytest.mark.parametrize(
    ("text", "bytes_a_second"),
    [("10Gbps", 1.25e9), ("1.2GB/s", 1.2e9), ("8 bit/s", 1), ("1MiB/s", 1 << 20)],
)
def test_rates(text, bytes_a_second, monkeypatch):
    monkeypatch.setenv("WIREPRESS_BLOCK_SIZE", "wrong")
    assert wirepress.api.rate(text) == bytes_a_second


@pytest.mark.parametrize("text", ["", "10", "Gbps", "-1Gbps", "0bps", "nanGbps", "1Gb", "1 GB"])
def test_what_is_no_rate(text):
    with pytest.raises(wirepress.ParameterError, match="is not a rate such as"):
        wirepress.api.rate(text)
