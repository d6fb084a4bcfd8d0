# SPDX-License-Identifier: Apache-2.0
"""Tensors in .wps files, held against safetensors: types, shapes, damage."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")

import wirepress.torch as wt  # noqa: E402
from spec.tests.frames import decode  # noqa: E402
from wirepress import FrameError, ParameterError, wps  # noqa: E402
from wirepress.commands import cli  # noqa: E402
from wirepress.torch.weights import _DTYPES  # noqa: E402

OnRanks = Callable[..., list[Any]]
SHAPES = [(), (0,), (0, 3), (1,), (33, 65), (2, 3, 4, 5, 6, 2)]


def make(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=dtype)
    return (torch.randn(shape, generator=generator) * 9).abs().to(dtype)


def bits(tensor: torch.Tensor) -> tuple[torch.dtype, torch.Size, bytes]:
    plain = tensor.detach().resolve_conj().contiguous().reshape(-1).view(torch.uint8)
    return tensor.dtype, tensor.shape, plain.numpy().tobytes()


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(bits(a[name]) == bits(b[name]) for name in a)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("dtype", _DTYPES.values(), ids=str)
def test_every_type_and_shape_beside_safetensors(dtype: torch.dtype) -> None:
    tensors = {f"t{i}": make(dtype, shape) for i, shape in enumerate(SHAPES)}
    wt.save_file(tensors, "own.wps", {"step": "7"})
    assert same(wt.load_file("own.wps"), tensors)
    assert cli.main(["convert", "-q", "own.wps"]) == 0
    assert same(safetensors.load_file("own.safetensors"), tensors)
    with safetensors.safe_open("own.safetensors", "pt") as file:
        assert file.metadata() == {"step": "7"}

    safetensors.save_file(tensors, "theirs.safetensors")
    assert cli.main(["convert", "-q", "theirs.safetensors"]) == 0
    assert same(wt.load_file("theirs.wps"), tensors)
    assert cli.main(["convert", "-q", "theirs.wps", "-o", "again.safetensors"]) == 0
    assert Path("again.safetensors").read_bytes() == Path("theirs.safetensors").read_bytes()
    assert decode.decode_any(Path("theirs.wps")) == Path("theirs.safetensors").read_bytes()


def test_views_and_tied_weights() -> None:
    base = make(torch.float32, (64, 48))
    tensors = {
        "base": base, "tied": base, "transposed": base.t(), "strided": base[::3, 1::2],
        "expanded": base[:1].expand(5, 48), "conjugate": make(torch.complex64, (9, 4)).conj(),
        "last": base.reshape(2, 4, 8, 48).to(memory_format=torch.channels_last),
        "parameter": torch.nn.Parameter(base),
    }  # fmt: skip
    wt.save_file(tensors, "m.wps")
    assert same(wt.load_file("m.wps"), tensors)
    assert same(wt.load_file("m.wps", names=["tied"]), {"tied": base})
    wt.load_file("m.wps")["base"].add_(1)  # memory of its own


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(3, dtype=torch.complex128),
        torch.zeros(3).to_sparse(),
        torch.zeros(3, device="meta"),
        torch.nested.nested_tensor([torch.zeros(3), torch.zeros(2)], layout=torch.jagged),
        torch.nn.LazyLinear(4).weight,
        [1.0],
    ],
    ids=["complex128", "sparse", "meta", "nested", "lazy", "list"],
)
def test_what_safetensors_cannot_hold_is_refused(tensor: object) -> None:
    with pytest.raises(ParameterError, match=r"\bx is"):
        wt.save_file({"x": tensor}, "m.wps")
    assert os.listdir() == []


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_storages_stay_resizable(tmp_path: Path) -> None:
    """FSDP frees the storages of its parameters; NumPy's arrays of tensors would forbid it."""
    import torch.distributed.checkpoint as dcp

    tensors = {"a": torch.ones(1000), "b": torch.ones(10, dtype=torch.bfloat16)}
    wt.save_file(tensors, tmp_path / "w.wps")
    dcp.save(tensors, storage_writer=wt.CheckpointWriter(tmp_path / "saved"), no_dist=True)
    dcp.load(tensors, storage_reader=wt.CheckpointReader(tmp_path / "saved"), no_dist=True)
    assert bool((tensors["a"] == 1).all())
    for tensor in tensors.values():
        tensor.untyped_storage().resize_(0)


@pytest.mark.filterwarnings("ignore")  # both are prototypes, and PyTorch says so
def test_tensors_whose_values_others_hold_are_refused() -> None:
    parts = [torch.zeros(3), torch.zeros(2)]
    for tensor, kind in (
        (torch.nested.nested_tensor(parts), "nested"),
        (torch.masked.masked_tensor(torch.zeros(3), torch.ones(3).bool()), "a MaskedTensor"),
    ):
        with pytest.raises(ParameterError, match=f"tensor x is {kind}"):
            wt.save_file({"x": tensor}, "m.wps")
    assert os.listdir() == []


@pytest.mark.parametrize("names", [(0,), (0, "0"), (True,), (None,), (("a", 1),), ("\ud800",)])
def test_names_that_are_no_text_are_refused(names: tuple[Any, ...]) -> None:
    """JSON would make text of some, and so one name of two."""
    with pytest.raises(ParameterError, match="text"):
        wt.save_file({name: torch.zeros(3) for name in names}, "m.wps")
    assert os.listdir() == []


def test_loss_only_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = {"w": make(torch.float32, (300, 20)), "n": torch.arange(5000)}
    monkeypatch.setenv("WIREPRESS_RECIPE", "bx:m=5")
    wt.save_file(tensors, "exact.wps")
    assert same(wt.load_file("exact.wps"), tensors)
    wt.save_file(tensors, "lossy.wps", recipe="bx:m=5")
    loaded = wt.load_file("lossy.wps")
    assert bits(loaded["n"]) == bits(tensors["n"]) and bits(loaded["w"]) != bits(tensors["w"])
    torch.testing.assert_close(loaded["w"], tensors["w"], rtol=2**-5, atol=0)
    with pytest.raises(ParameterError):
        wt.save_file(tensors, "m.wps", recipe="nonsense")


def test_killed_saves_leave_the_file_before(on_ranks: OnRanks) -> None:
    ((dead, complete),) = on_ranks(killed, 1, os.getcwd(), backend="")
    assert dead == 6 and complete == 2


def killed(folder: str) -> tuple[int, int]:
    """How many saves died, and how many of those had replaced the file."""
    os.chdir(folder)
    tensors = {"a": make(torch.float32, (300, 20)), "b": torch.arange(900)}
    wt.save_file(tensors, "m.wps")
    complete = 0
    for at in itertools.count(1):
        child = os.fork()
        if not child:
            die_at(at)
            wt.save_file({"a": tensors["a"] + at}, "m.wps", threads=1)
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            assert same(wt.load_file("m.wps"), {"a": tensors["a"] + at})
            return at - 1, complete
        found = wt.load_file("m.wps")
        complete += "b" not in found
        assert same(found, {"a": tensors["a"] + at} if "b" not in found else tensors)
        wt.save_file(tensors, "m.wps")
    raise AssertionError


def die_at(n: int) -> None:
    """The process ends before the n-th of the calls that write, sync and rename."""
    left = [n]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os._exit(9)
            return call(*args, **kwargs)

        return count

    calls = (
        (os, "fsync"),
        (os, "replace"),
        (os, "open"),
        (wps.Writer, "add"),
        (wps.Writer, "finish"),
    )
    for owner, name in calls:
        setattr(owner, name, counted(getattr(owner, name)))


@pytest.fixture
def small() -> bytes:
    tensors = {
        "weight": make(torch.float32, (20, 12)), "half": make(torch.bfloat16, (30,)),
        "empty": torch.zeros(0, 3), "count": torch.arange(7),
    }  # fmt: skip
    wt.save_file(tensors, "m.wps")
    return Path("m.wps").read_bytes()


def owners(content: bytes) -> list[str]:
    """The tensor to which each byte belongs; "": the head, the header or the index."""
    Path("whole.wps").write_bytes(content)
    with open("whole.wps", "rb") as file:
        places = wps.Reader(file)._places
    found = [""] * len(content)
    for name, (_, at, size, _) in places.items():
        found[at : at + size] = [name] * size
    return found


def test_every_flipped_bit_is_found_and_names_its_tensor(small: bytes) -> None:
    for at, name in enumerate(owners(small)):
        for bit in range(8):
            damaged = bytearray(small)
            damaged[at] ^= 1 << bit
            Path("m.wps").write_bytes(damaged)
            with pytest.raises(FrameError) as caught:
                wt.load_file("m.wps")
            text = str(caught.value)
            assert text.startswith("m.wps: ") and "\n" not in text
            assert not name or f"tensor {name}: " in text, (at, bit, text)


def test_frames_in_each_others_place_are_found() -> None:
    """Intact frames of the same type and size, which nothing but their seals tells apart."""
    tensors = {name: make(torch.float32, (50, 4)) + i for i, name in enumerate("abc")}
    wt.save_file(tensors, "m.wps", recipe="store")
    content = Path("m.wps").read_bytes()
    places = {name: owners(content).index(name) for name in tensors}
    size = places["b"] - places["a"]
    a, b = (content[places[name] : places[name] + size] for name in "ab")
    Path("m.wps").write_bytes(content.replace(a + b, b + a))
    for name in "ab":
        with pytest.raises(FrameError, match=rf"^m\.wps: tensor {name}: its frame does not match"):
            wt.load_file("m.wps", names=[name])
    assert same(wt.load_file("m.wps", names=["c"]), {"c": tensors["c"]})


def test_every_truncation_and_longer_files_are_refused(
    small: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    for size in [*range(len(small)), len(small) + 1]:
        Path("m.wps").write_bytes((small + b"x")[:size])
        with pytest.raises(FrameError, match=r"^m\.wps: "):
            wt.load_file("m.wps")
    assert cli.main(["convert", "m.wps"]) == 1
    assert capfd.readouterr().err.count("\n") == 1
    assert not os.path.exists("m.safetensors")


def test_the_specification_refuses_damage(small: bytes) -> None:
    for at in range(0, len(small), 3):
        damaged = bytearray(small)
        damaged[at] ^= 1 << at % 8
        for bad in (damaged, small[:at]):
            Path("m.wps").write_bytes(bad)
            with pytest.raises(decode.FrameError):
                decode.decode_any(Path("m.wps"))


def test_damaged_safetensors_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    safetensors.save_file({"w": make(torch.float32, (9, 9))}, "good.safetensors")
    good = Path("good.safetensors").read_bytes()
    gap = good.replace(b"[0,324]", b"[4,328]") + b"1234"
    shape = good.replace(b"[9,9]", b"[9,8]")
    assert gap != good != shape
    huge = (1 << 60).to_bytes(8, "little") + good[8:]
    for bad in (b"", good[:7], good[:40], good[:-1], good + b"x", gap, shape, huge):
        Path("bad.safetensors").write_bytes(bad)
        assert cli.main(["convert", "bad.safetensors"]) == 1
        error = capfd.readouterr().err
        assert error.startswith("wirepress: bad.safetensors: ") and error.count("\n") == 1
        assert not os.path.exists("bad.wps")
