# SPDX-License-Identifier: Apache-2.0
"""Checkpoints held against PyTorch's own: types, shapes, ranks, damage, asynchronous saves."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import errno
import functools
import io
import json
import os
import pickle
import random
import re
import shutil
import signal
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("wirepress.torch", reason="wirepress is not installed")

import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
import wirepress.torch as wt  # noqa: E402
from spec.tests.frames import decode  # noqa: E402
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402
from torch.distributed.checkpoint.metadata import MetadataIndex  # noqa: E402
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, ReadItem  # noqa: E402
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor  # noqa: E402
from torch.testing._internal.two_tensor import TwoTensor  # noqa: E402
from wirepress import FrameError, ParameterError, wps  # noqa: E402
from wirepress.torch.dcp_metadata import from_bytes  # noqa: E402

OnRanks = Callable[..., list[Any]]
State = dict[str, Any]
pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.distributed is:UserWarning"),
    pytest.mark.filterwarnings("ignore:Detected an existing checkpoint:UserWarning"),
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning"),
]

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex32, torch.complex64,
    torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz, torch.float8_e8m0fnu, torch.int8, torch.uint8, torch.int16, torch.uint16,
    torch.int32, torch.uint32, torch.int64, torch.uint64, torch.bool,
]  # fmt: skip
SHAPES = [(), (0,), (1,), (3, 0, 5), (7,), (33, 5), (2, 3, 4, 5, 6), (130_001,)]


def noise(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """Any bits that a tensor of this type can have, NaN and -0 among them."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    size = torch.empty(shape).numel() * dtype.itemsize
    data = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator)
    return data.view(dtype).reshape(shape) if size else torch.empty(shape, dtype=dtype)


def bits(tensor: torch.Tensor) -> tuple[torch.dtype, torch.Size, bytes]:
    local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    plain = local.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
    return local.dtype, local.shape, plain.numpy().tobytes()


def flat(state: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested dicts and lists; tensors as their bits."""
    children = state.items() if isinstance(state, dict) else enumerate(state)
    for key, value in children:
        if isinstance(value, (dict, list)):
            yield from flat(value, f"{name}.{key}")
        else:
            yield f"{name}.{key}", bits(value) if isinstance(value, torch.Tensor) else value


def same(a: State, b: State) -> bool:
    return dict(flat(a)) == dict(flat(b))


def cleared(state: Any) -> Any:
    """A state of the same tensors, all zeros, in which objects are None."""
    if isinstance(state, dict):
        return {name: cleared(value) for name, value in state.items()}
    if isinstance(state, list):
        return [cleared(value) for value in state]
    if not isinstance(state, torch.Tensor):
        return None
    if isinstance(state, DTensor):
        return torch.zeros_like(state)
    size = state.numel() * state.dtype.itemsize
    memory = torch.zeros(size, dtype=torch.uint8)
    return memory.view(state.dtype).reshape(state.shape) if size else torch.empty_like(state)


def save_both(state: State, folder: str | Path, **options: Any) -> None:
    dcp.save(state, storage_writer=dcp.FileSystemWriter(f"{folder}/plain"))
    dcp.save(state, storage_writer=wt.CheckpointWriter(f"{folder}/own", **options))


def load_both(state: State, folder: str | Path, reader: wt.CheckpointReader | None = None) -> State:
    """What both readers load into a state like this one, which must be the same."""
    plain, own = cleared(state), cleared(state)
    dcp.load(plain, storage_reader=dcp.FileSystemReader(f"{folder}/plain"))
    dcp.load(own, storage_reader=reader or wt.CheckpointReader(f"{folder}/own"))
    assert same(plain, own)
    return own


# ---- one process ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_and_shape(dtype: torch.dtype, tmp_path: Path) -> None:
    state = {f"t{i}": noise(shape, dtype, i) for i, shape in enumerate(SHAPES)}
    if dtype in (torch.complex32, torch.float8_e8m0fnu):  # which PyTorch's reader cannot copy
        dcp.save(state, storage_writer=wt.CheckpointWriter(tmp_path))
        loaded = cleared(state)
        dcp.load(loaded, storage_reader=wt.CheckpointReader(tmp_path))
    else:
        save_both(state, tmp_path)
        loaded = load_both(state, tmp_path)
    assert same(loaded, state)


def nested() -> State:
    base = noise((64, 48), torch.float32, 1)
    return {
        "model": {
            "base": base, "tied": base, "transposed": base.t(), "strided": base[::3, 1::2],
            "expanded": base[:1].expand(5, 48), "parameter": torch.nn.Parameter(base.clone()),
            "conjugate": noise((9, 4), torch.complex64, 2).conj(),
            "negative": torch._neg_view(base[:7]),
            "last": base.reshape(2, 4, 8, 48).to(memory_format=torch.channels_last),
        },
        "optim": {"state": {"0": {"step": torch.tensor(7.0), "list": [1, base[0], "x"]}}},
        "epoch": 3, "text": "a" * 5000, "nothing": None, "tuple": (1, 2.5), "": torch.ones(2),
        "name with / and \u00e9": torch.arange(5),
    }  # fmt: skip


def test_views_objects_and_nests(tmp_path: Path) -> None:
    save_both(nested(), tmp_path)
    assert same(load_both(nested(), tmp_path), nested())


def test_targets_of_other_kinds(tmp_path: Path) -> None:
    """The tensors that are loaded into may be views and of other types."""
    state = {name: noise((40, 30), torch.bfloat16, 3).nan_to_num() for name in "abcd"}
    save_both(state, tmp_path)
    wide = torch.zeros(80, 60)
    made: Callable[[], State] = lambda: {  # noqa: E731
        "a": torch.zeros(30, 40, dtype=torch.bfloat16).t(), "b": torch.zeros(40, 30),
        "c": wide.clone()[::2, ::2], "d": torch.zeros(40, 30, dtype=torch.float64).t().t(),
    }  # fmt: skip
    plain, own = made(), made()
    dcp.load(plain, storage_reader=dcp.FileSystemReader(tmp_path / "plain"))
    dcp.load(own, storage_reader=wt.CheckpointReader(tmp_path / "own"))
    assert same(plain, own) and own["a"].ne(0).any()


def test_the_specification_reads_it(tmp_path: Path) -> None:
    state = nested() | {f"t{i}": noise((33, 5), dtype, i) for i, dtype in enumerate(DTYPES)}
    writer = wt.CheckpointWriter(tmp_path, rules={"model.base": "store"}, block_size="1KiB")
    dcp.save(state, storage_writer=writer)
    items = decode.decode_checkpoint(tmp_path)
    tensors = {name: value for name, value in flat(state) if isinstance(value, tuple)}
    found = {f".{name}": raw for (name, offsets), raw in items.items() if offsets is not None}
    assert found == {name: value[2] for name, value in tensors.items() if name != ".tuple"}
    assert torch.load(io.BytesIO(items["text", None])) == state["text"]
    assert b"model.base (0, 0): 12288 bytes" in decode.decode_any(tmp_path)


class Box(dcp.DefaultLoadPlanner):
    """Wants a box of a tensor that was saved whole."""

    def __init__(self, offsets: tuple[int, ...]) -> None:
        super().__init__()
        self.offsets = torch.Size(offsets)

    def create_local_plan(self) -> LoadPlan:
        ((name, target),) = self.state_dict.items()
        zeros = torch.Size([0] * target.dim())
        index = MetadataIndex(name, zeros)
        return LoadPlan(
            [ReadItem(LoadItemType.TENSOR, index, zeros, index, self.offsets, target.shape)]
        )


def read_box(
    path: Path, name: str, like: torch.Tensor, offsets: tuple[int, ...], lengths: tuple[int, ...]
) -> tuple[torch.Tensor, int]:
    target = torch.zeros(lengths, dtype=like.dtype)
    reader = wt.CheckpointReader(path)
    dcp.load({name: target}, storage_reader=reader, planner=Box(offsets))
    return target, reader.bytes_read


@pytest.mark.parametrize("recipe", ["planes", "auto", "shuffle+lz4"])
def test_items_of_several_frames_and_parts_of_them(recipe: str, tmp_path: Path) -> None:
    n = (17 << 20) // 4 + 5
    state = {"w": torch.linspace(0, 1, n)}
    state["w"][n // 2 : n // 2 + 300_000] = noise((300_000,), torch.float32)
    dcp.save(state, storage_writer=wt.CheckpointWriter(tmp_path, recipe, threads=1))
    loaded = cleared(state)
    reader = wt.CheckpointReader(tmp_path)
    dcp.load(loaded, storage_reader=reader)
    assert same(loaded, state)
    edge = 4 << 20  # values in a frame
    for begin, end in [
        (0, 1),
        (edge, edge + 1),
        (edge - 1, edge + 1),
        (n - 1, n),
        (n // 2, n // 2),
    ]:
        part, read = read_box(tmp_path, "w", state["w"], (begin,), (end - begin,))
        assert bits(part) == bits(state["w"][begin:end])
        assert read < reader.bytes_read / 4


def test_boxes(tmp_path: Path) -> None:
    """Any box of a tensor, the content of which lies in rows with other values between them."""
    state = {"w": noise((6, 9, 40, 11), torch.float32)}
    writer = wt.CheckpointWriter(tmp_path, "shuffle+lz4", block_size="4KiB")
    dcp.save(state, storage_writer=writer)
    rng = random.Random(5)
    for _ in range(40):
        begins = [rng.randrange(n) for n in state["w"].shape]
        ends = [rng.randint(a, n) for a, n in zip(begins, state["w"].shape, strict=True)]
        lengths = tuple(b - a for a, b in zip(begins, ends, strict=True))
        part, _ = read_box(tmp_path, "w", state["w"], tuple(begins), lengths)
        box = tuple(slice(a, b) for a, b in zip(begins, ends, strict=True))
        assert bits(part) == bits(state["w"][box])


def test_loss_only_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.randn(9000, generator=torch.Generator().manual_seed(4))
    state = {"a.w": values, "b.w": values.clone(), "half": values.half(), "n": torch.arange(5000)}
    monkeypatch.setenv("WIREPRESS_RECIPE", "bx:m=5")
    save_both(state, tmp_path)
    assert same(load_both(state, tmp_path), state)
    loaded = cleared(state)
    writer = wt.CheckpointWriter(tmp_path, rules={"a.*": "bx:m=5", "*": "planes"})
    dcp.save(state, storage_writer=writer)
    dcp.load(loaded, storage_reader=wt.CheckpointReader(tmp_path))
    assert bits(loaded["a.w"]) != bits(state["a.w"])
    torch.testing.assert_close(loaded["a.w"], state["a.w"], rtol=2**-5, atol=0)
    assert all(bits(loaded[name]) == bits(state[name]) for name in ("b.w", "half", "n"))


def test_overwriting_and_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for n in range(3):
        state = {"w": torch.full((1000,), float(n))}
        dcp.save(state, storage_writer=wt.CheckpointWriter(tmp_path))
        loaded = cleared(state)
        dcp.load(loaded, storage_reader=wt.CheckpointReader(tmp_path))
        assert same(loaded, state)
        names = sorted(os.listdir(tmp_path))
        assert len(names) == 3 and names[0] == ".metadata" and names[2] == "notes.txt"
    with pytest.raises(CheckpointException, match="holds a checkpoint, and overwrite is False"):
        dcp.save(state, storage_writer=wt.CheckpointWriter(tmp_path, overwrite=False))


def test_planners_that_remember_their_plans(tmp_path: Path) -> None:
    for n in range(3):
        state = {"w": torch.full((50,), float(n)), "n": n}
        planner = dcp.DefaultSavePlanner(enable_plan_caching=True)
        writer = wt.CheckpointWriter(tmp_path / str(n // 2), rules={"w": "planes"})
        dcp.save(state, storage_writer=writer, planner=planner)
        loaded = cleared(state)
        dcp.load(loaded, storage_reader=wt.CheckpointReader(tmp_path / str(n // 2)))
        assert same(loaded, state)


def test_planners_of_other_kinds(tmp_path: Path) -> None:
    state = {"a": {"w": torch.ones(3)}, "n": 5}
    planner = dcp.DefaultSavePlanner(flatten_state_dict=False)
    dcp.save(
        {"w": state["a"]["w"], "n": 5},
        storage_writer=wt.CheckpointWriter(tmp_path),
        planner=planner,
    )
    loaded = {"w": torch.zeros(3), "n": 0}
    load_planner = dcp.DefaultLoadPlanner(flatten_state_dict=False)
    dcp.load(loaded, storage_reader=wt.CheckpointReader(tmp_path), planner=load_planner)
    assert loaded["w"].eq(1).all()

    class Odd(dcp.DefaultSavePlanner):
        def create_global_plan(self, plans: Any) -> Any:
            plans, metadata = super().create_global_plan(plans)
            return plans, dataclasses.replace(metadata, planner_data={"n": object()})

    with pytest.raises(CheckpointException, match="the planner left a dict for the metadata"):
        dcp.save(state, storage_writer=wt.CheckpointWriter(tmp_path), planner=Odd())


def test_writers_and_readers_are_sent_to_processes(tmp_path: Path) -> None:
    writer = pickle.loads(pickle.dumps(wt.CheckpointWriter(tmp_path, threads=1)))
    state = {"w": torch.arange(9)}
    dcp.save(state, storage_writer=writer)
    loaded, version = cleared(state), torch.zeros(1)._version
    dcp.load(loaded, storage_reader=pickle.loads(pickle.dumps(wt.CheckpointReader(tmp_path))))
    assert same(loaded, state) and loaded["w"]._version > version  # autograd hears of it


def test_loading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CheckpointException, match=r"No such file or directory: '.*metadata'"):
        dcp.load({"w": torch.ones(1)}, storage_reader=wt.CheckpointReader(tmp_path))
    dcp.save({"w": torch.ones(1)}, storage_writer=wt.CheckpointWriter(tmp_path))
    with pytest.raises(CheckpointException, match="Missing key in checkpoint state_dict: other"):
        dcp.load({"other": torch.ones(1)}, storage_reader=wt.CheckpointReader(tmp_path))
    with pytest.raises(CheckpointException, match="Size mismatch"):
        dcp.load({"w": torch.ones(2)}, storage_reader=wt.CheckpointReader(tmp_path))
    plain = dcp.FileSystemWriter(tmp_path / "plain")
    dcp.save({"w": torch.ones(1)}, storage_writer=plain)
    with pytest.raises(CheckpointException, match="load it with FileSystemReader"):
        dcp.load({"w": torch.ones(1)}, storage_reader=wt.CheckpointReader(tmp_path / "plain"))


def test_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = nested()
    for name in ("conjugate", "negative"):  # which PyTorch's own stager copies as they are not
        del state["model"][name]
    dcp.save(state, checkpoint_id=tmp_path / "before")
    handle = wt.register_dcp(threads=1)
    try:
        dcp.save(state, checkpoint_id=tmp_path / "own")
        dcp.async_save(state, checkpoint_id=str(tmp_path / "async")).result()
        for name in ("before", "own", "async"):
            loaded = cleared(state)
            dcp.load(loaded, checkpoint_id=tmp_path / name)
            assert same(loaded, state)
    finally:
        handle.remove()
    assert list((tmp_path / "own").glob("*.wpd")) and list((tmp_path / "before").glob("*.distcp"))
    dcp.save(state, checkpoint_id=tmp_path / "after")
    assert not list((tmp_path / "after").glob("*.wpd"))
    with pytest.raises(ParameterError, match="nosuch"):
        wt.register_dcp("nosuch")
    monkeypatch.delattr("torch.distributed.checkpoint._storage_utils.FileSystemReader")
    with pytest.raises(ParameterError, match=r"give dcp\.save a CheckpointWriter"):
        wt.register_dcp()


def test_asynchronous_saves_hold_what_was_there_at_the_call(tmp_path: Path) -> None:
    state = {"w": torch.ones(3 << 20), "step": torch.tensor(1)} | nested()
    saves = []
    for n in range(3):
        writer = wt.CheckpointWriter(tmp_path / str(n), threads=1)
        saves.append(dcp.async_save(state, storage_writer=writer))
        state["w"] += 1
        state["step"] += 1
    for n, save in enumerate(saves):
        save.result()
        loaded = cleared(state)
        dcp.load(loaded, storage_reader=wt.CheckpointReader(tmp_path / str(n)))
        assert loaded["step"] == n + 1 and loaded["w"].eq(n + 1).all()
        assert same(loaded["model"], state["model"])


# ---- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "options", "text"),
    [
        (torch.zeros(3).to_sparse(), {}, r"tensor x: tensor x is torch.sparse_coo"),
        (torch.zeros(3, device="meta"), {}, "tensor x is meta"),
        (TwoTensor(torch.zeros(3), torch.zeros(3)), {}, "x is a TwoTensor, not a plain tensor"),
        (torch.zeros(3), {"rules": {"y*": "planes"}}, 'the rule "y\\*" fits no item, such as "x"'),
        (torch.zeros(3).half(), {"recipe": "onebit"}, "tensor x: "),
    ],
    ids=["sparse", "meta", "subclass", "rule", "recipe"],
)
def test_what_cannot_be_saved_is_refused(
    what: torch.Tensor, options: dict[str, Any], text: str, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointException, match=text):
        dcp.save({"x": what}, storage_writer=wt.CheckpointWriter(tmp_path, **options))
    assert os.listdir(tmp_path) == []


def test_wrong_recipes_and_options_are_refused_at_once() -> None:
    for arguments in ({"recipe": "nosuch"}, {"rules": {"*": "nosuch"}}, {"treads": 1}):
        with pytest.raises(ParameterError):
            wt.CheckpointWriter("x", **arguments)
    with pytest.raises(ParameterError):
        wt.CheckpointReader("x", treads=1)
    writer = wt.CheckpointWriter("x")
    with pytest.raises(ParameterError, match="use_collectives=True"):
        writer.set_up_storage_writer(True, rank=0, use_collectives=False)


# ---- damage ---------------------------------------------------------------------------------


class Loading:
    """Loads a state again and again; the metadata are read once."""

    def __init__(self, path: Path, state: State) -> None:
        self.reader, self.planner = wt.CheckpointReader(path), dcp.DefaultLoadPlanner()
        metadata = self.reader.read_metadata()
        self.reader.set_up_storage_reader(metadata, True)
        self.planner.set_up_planner(cleared(state), metadata, True)
        self.plan = self.planner.create_local_plan()

    def error(self) -> str:
        """The sentence with which it is refused; "": it is not."""
        try:
            self.reader.read_data(self.plan, self.planner)
        except FrameError as error:
            return str(error)
        return ""


def load_error(path: Path, state: State) -> str:
    return Loading(path, state).error()


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, State]:
    state = {
        "weight": noise((9, 7), torch.float32), "half": torch.zeros(300, dtype=torch.bfloat16),
        "n": torch.arange(7), "text": "epoch 3", "scalar": torch.tensor(2.5),
    }  # fmt: skip
    path = tmp_path / "own"
    dcp.save(state, storage_writer=wt.CheckpointWriter(path, threads=1))
    return path, state


def check_flips(path: Path, state: State, bits_of: Callable[[int], Iterable[int]]) -> None:
    """Each of these bits of the file of data, flipped, is an error that names its item."""
    (file,) = path.glob("*.wpd")
    good, loading = file.read_bytes(), Loading(path, state)
    places = wt.CheckpointReader(path).read_metadata().storage_data
    owner = {at: index.fqn for index, p in places.items() for at in range(p.at, p.end)}
    assert len(owner) == len(good) - 4
    texts: dict[tuple[int, int], str] = {}
    with open(file, "r+b", buffering=0) as writable:
        for at in range(len(good)):
            for bit in bits_of(at):
                os.pwrite(writable.fileno(), bytes([good[at] ^ 1 << bit]), at)
                texts[at, bit] = loading.error()
            os.pwrite(writable.fileno(), good[at : at + 1], at)
    for (at, bit), text in texts.items():
        named = re.match(re.escape(f"{file}: ") + r"(tensor|object) (\w+): .*$", text)
        assert named and (at < 4 or named[2] == owner[at]), (at, bit, text)
    assert loading.error() == ""


def test_a_check_without_a_state(tmp_path: Path) -> None:
    """It reads what no load does, too, such as the frame of an empty tensor."""
    state = {"w": noise((40,), torch.float32), "none": torch.zeros(0, 3), "text": "x"}
    dcp.save(state, storage_writer=wt.CheckpointWriter(tmp_path))
    reader = wt.CheckpointReader(tmp_path, threads=1)
    reader.check()
    (file,) = tmp_path.glob("*.wpd")
    good = file.read_bytes()
    assert reader.bytes_read >= len(good)
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 1 << at % 8
        file.write_bytes(bad)
        with pytest.raises(FrameError, match=rf"^{re.escape(str(file))}: (tensor|object) \w+: "):
            reader.check()
    (tmp_path / ".metadata").unlink()
    with pytest.raises(FileNotFoundError):
        reader.check()


def test_flipped_bits_are_found_and_name_their_item(small: tuple[Path, State]) -> None:
    check_flips(*small, lambda at: [at % 8])


@pytest.mark.slow
def test_every_flipped_bit_is_found_and_names_its_item(small: tuple[Path, State]) -> None:
    check_flips(*small, lambda _: range(8))


@pytest.mark.filterwarnings("ignore")
def test_flipped_bits_and_truncations_of_the_metadata(small: tuple[Path, State]) -> None:
    path, _ = small
    file = path / ".metadata"
    good = file.read_bytes()
    reader = wt.CheckpointReader(path)
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 1 << at % 8
        with contextlib.suppress(FrameError):
            from_bytes(bytes(bad))
            pytest.fail(f"byte {at}")
    for size in [*range(40), *range(40, len(good), 17), len(good) - 1, len(good) + 1]:
        file.write_bytes((good + b"x")[:size])
        with pytest.raises(FrameError, match=f"^{re.escape(str(file))}: "):
            reader.read_metadata()
    file.unlink()
    with pytest.raises(FileNotFoundError):
        reader.read_metadata()


def test_truncated_and_swapped_files(small: tuple[Path, State], tmp_path: Path) -> None:
    path, state = small
    (file,) = path.glob("*.wpd")
    good = file.read_bytes()
    for size in [*range(0, len(good), 7), len(good) - 1, len(good) + 1]:
        file.write_bytes((good + b"x")[:size])
        assert load_error(path, state).startswith(f"{file}: ")
    file.unlink()
    assert "the file is not there" in load_error(path, state)
    # Intact frames of the same size that belong to another tensor, and to another save.
    a, b = noise((300,), torch.float32, 1), noise((300,), torch.float32, 2)
    dcp.save({"a": a, "b": b}, storage_writer=wt.CheckpointWriter(path))
    (file,) = path.glob("*.wpd")
    places = wt.CheckpointReader(path).read_metadata().storage_data
    data = file.read_bytes()
    pieces = {index.fqn: data[p.at : p.at + p.size] for index, p in places.items()}
    assert len(pieces["a"]) == len(pieces["b"])
    swapped = data.replace(pieces["a"], b"-").replace(pieces["b"], pieces["a"])
    file.write_bytes(swapped.replace(b"-", pieces["b"], 1))
    assert re.search("tensor [ab]: ", load_error(path, {"a": a, "b": b}))
    dcp.save({"a": b, "b": a}, storage_writer=wt.CheckpointWriter(tmp_path / "other"))
    (other,) = (tmp_path / "other").glob("*.wpd")
    shutil.copy(other, file)
    assert "do not match the seal" in load_error(path, {"a": a, "b": b})


def test_contradicting_metadata_are_refused(small: tuple[Path, State]) -> None:
    """What carries a right checksum, too: numbers of any size and of the wrong kind."""
    path, _ = small
    file = path / ".metadata"
    good = json.loads(file.read_bytes()[12:-4])
    rng = random.Random(3)
    refusals = []
    for _ in range(300):
        content = copy.deepcopy(good)
        mutate(content, rng)
        text = json.dumps(content).encode()
        data = b"WPM\x10" + len(text).to_bytes(8, "little") + text
        file.write_bytes(data + zlib.crc32(data).to_bytes(4, "little"))
        reader = wt.CheckpointReader(path)
        try:
            metadata = reader.read_metadata()
            assert all(type(p.at) is int for p in metadata.storage_data.values())
        except FrameError as error:
            refusals.append(str(error))
    assert set(refusals) == {f"{file}: the metadata contradict themselves"}
    assert len(refusals) > 150


def test_damaged_heads_under_a_right_seal(small: tuple[Path, State]) -> None:
    """What an attacker could write: any bytes, and the checksums that fit them."""
    path, state = small
    (file,) = path.glob("*.wpd")
    good, loading, rng = file.read_bytes(), Loading(path, state), random.Random(6)
    places = loading.plan and loading.reader._metadata.storage_data
    for _ in range(400):
        index, place = rng.choice(list(places.items()))
        data = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(place.at, place.end)
            data[at] = rng.randrange(256)
            if rng.random() < 0.5 and place.at + place.size <= at:  # the same in the frame
                data[place.at + at - place.at - place.size] = data[at]
        seal = zlib.crc32(data[place.at + place.size : place.end])
        places[index] = dataclasses.replace(place, seal=seal)
        file.write_bytes(data)
        text = loading.error()
        assert text.startswith(f"{file}: ") or data == good
        places[index] = place


def mutate(content: Any, rng: random.Random) -> None:
    """Changes one value, somewhere."""
    while True:
        keys = list(content if isinstance(content, dict) else range(len(content)))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(content[key], (dict, list)) or rng.random() < 0.1:
            break
        content = content[key]
    content[key] = rng.choice([-1, 1 << 63, 1 << 99, 1.5, True, None, "x", "../x", [], {}, [1], ""])


# ---- a full disk ----------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["write", "fdatasync", "fsync"])
def test_a_full_disk_leaves_the_checkpoint_before(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {"w": torch.ones(100)}
    dcp.save(before, storage_writer=wt.CheckpointWriter(tmp_path))
    names = sorted(os.listdir(tmp_path))

    def fails(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    big = {"w": torch.zeros(5 << 20), "more": noise((9 << 20,), torch.int32)}
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fails)
        with pytest.raises(CheckpointException, match=r"No space left on device: '.*wpd'"):
            dcp.save(big, storage_writer=wt.CheckpointWriter(tmp_path, "store", threads=1))
    assert sorted(os.listdir(tmp_path)) == names
    loaded = cleared(before)
    dcp.load(loaded, storage_reader=wt.CheckpointReader(tmp_path))
    assert same(loaded, before)


def test_two_saves_into_one_folder_at_once(tmp_path: Path) -> None:
    """The one that begins second takes the files of the first, which says so at its end."""

    class Slow(wt.CheckpointWriter):
        def write_data(self, plan: Any, planner: Any) -> Any:
            done = super().write_data(plan, planner)
            dcp.save({"w": torch.ones(5)}, storage_writer=wt.CheckpointWriter(tmp_path))
            return done

    with pytest.raises(CheckpointException, match="another save uses the folder"):
        dcp.save({"w": torch.zeros(5)}, storage_writer=Slow(tmp_path))
    loaded = {"w": torch.zeros(5)}
    dcp.load(loaded, storage_reader=wt.CheckpointReader(tmp_path))
    assert loaded["w"].eq(1).all()


# ---- kills ----------------------------------------------------------------------------------

CALLS = ("open", "write", "fsync", "fdatasync", "replace", "unlink", "mkdir")


class Dead(OSError):
    """Comes out of every call after the death."""


class Dying:
    """What a process that dies at its n-th call leaves behind, as after a power failure.

    A write is done by half before; what was not synced by then is cut off. The process ends, or
    goes on without a file system: what it does then cannot change a file.
    """

    def __init__(self, n: int, end: Callable[[], None] | None = None) -> None:
        self.left, self.lock, self.end = n, threading.Lock(), end
        self.paths: dict[int, str] = {}  # of descriptors
        self.unsynced: set[str] = set()
        self.real = {name: getattr(os, name) for name in CALLS} | {"file": open}

    def __enter__(self) -> Dying:
        for name in CALLS:
            setattr(os, name, functools.partial(self.call, name))
        wps.open = functools.partial(self.call, "file")
        return self

    def __exit__(self, *_: object) -> None:
        for name in CALLS:
            setattr(os, name, self.real[name])
        del wps.open

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            self.left -= 1
            if self.left == 0:
                self.die(name, args)
            if self.left <= 0:
                raise Dead(errno.EIO, "dead")
            result = self.real[name](*args, **kwargs)
            self.note(name, args, result)
            return result

    def note(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """What a power failure would take."""
        if name in ("open", "file"):
            self.paths[result if name == "open" else result.fileno()] = args[0]
            if name == "file" or args[1] & os.O_CREAT:
                self.unsynced.add(args[0])
        elif name == "write":
            self.unsynced.add(self.paths[args[0]])
        elif name == "fsync":
            self.unsynced.discard(self.paths.get(args[0], ""))
        elif name == "replace" and args[0] in self.unsynced:
            self.unsynced.add(args[1])

    def die(self, name: str, args: tuple[Any, ...]) -> None:
        if name == "write":
            self.real["write"](args[0], args[1][: len(args[1]) // 2])
        for path in self.unsynced:
            with contextlib.suppress(OSError):
                os.truncate(path, os.stat(path).st_size // 2)
        if self.end:
            self.end()


def epoch(n: int) -> State:
    return {
        "w": torch.full((3000,), float(n)),
        "moment": torch.arange(500) + n,
        "text": f"epoch {n}",
    }


def loaded_epoch(folder: str) -> int | None:
    """Which epoch's checkpoint loads, whole; None: there is none."""
    if not os.path.exists(f"{folder}/.metadata"):
        return None
    state = epoch(-1)
    dcp.load(state, storage_reader=wt.CheckpointReader(folder), no_dist=True)
    n = int(state["text"].split()[1])
    assert same(state, epoch(n))
    return n


def dies_in_thought(folder: str, n: int, at: int) -> bool:
    """Saves without a file system from the `at`-th call on; whether that came."""
    with Dying(at) as dying, contextlib.suppress(CheckpointException):
        dcp.save(epoch(n), storage_writer=wt.CheckpointWriter(folder, threads=1))
    return dying.left <= 0


def dies_in_a_child(folder: str, n: int, at: int, by: str) -> bool:
    """Saves in a child that dies at its `at`-th call or after some time; whether it did."""
    child = os.fork()
    if not child:
        writer = wt.CheckpointWriter(folder, threads=1)
        if by == "exit":
            Dying(at, lambda: os._exit(9)).__enter__()
        else:
            signal.setitimer(signal.ITIMER_REAL, at * 1e-3)  # which ends the process
        dcp.save(epoch(n), storage_writer=writer)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9, -signal.SIGALRM), status
    return status != 0


def kills(folder: str, n: int, by: str) -> tuple[int, int, int]:
    """How many died, how many of those had completed their checkpoint, how many ended well."""
    dead = complete = ended = 0
    last: int | None = None
    while dead < n:
        now = dead + ended
        if by == "thought":
            died = dies_in_thought(folder, now, 1 + now % 26)
        else:
            died = dies_in_a_child(folder, now, 1 + now % 26, by)
        found = loaded_epoch(folder)
        assert found == now if not died else found in (last, now)
        dead, ended, complete = dead + died, ended + (not died), complete + (died and found == now)
        last = found
        if not died:  # and its files alone are there
            assert len(os.listdir(folder)) == 2
    return dead, complete, ended


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[str]:
    """A folder that need not wait for a disk, where there is one."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield folder


@pytest.mark.filterwarnings("ignore")
def test_killed_saves_leave_the_last_checkpoint(in_memory: str) -> None:
    dead, complete, ended = kills(f"{in_memory}/thought", 100, "thought")
    assert dead == 100 and complete and ended


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_thousand_killed_saves(on_ranks: OnRanks, in_memory: str) -> None:
    for n, by in ((120, "exit"), (40, "time"), (840, "thought")):
        arguments = f"{in_memory}/{by}", n, by
        ((dead, *_),) = on_ranks(kills, 1, *arguments, backend="", timeout=900)
        assert dead == n


# ---- ranks ----------------------------------------------------------------------------------


def sharded() -> State:
    """DTensors in all placements, also on more ranks than rows, and plain tensors."""
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    full = {
        "rows": noise((37, 6), torch.float32, 1), "columns": noise((5, 33), torch.bfloat16, 2),
        "few": noise((3, 4), torch.float32, 3), "long": noise((9000,), torch.int64, 4),
        "cube": noise((4, 6, 7), torch.float64, 5), "same": noise((11,), torch.float32, 6),
        "big": noise((4096, 512), torch.float32, 8),
    }  # fmt: skip
    ways = {"columns": Shard(1), "cube": Shard(2), "same": Replicate()}
    state: State = {
        name: distribute_tensor(tensor, mesh, [ways.get(name, Shard(0))])
        for name, tensor in full.items()
    }
    n = dist.get_world_size()
    grid = dist.init_device_mesh("cpu", (n // 2, 2) if n % 2 == 0 else (n, 1))
    tiles = noise((13, 9), torch.float32, 9)
    state["tiles"] = distribute_tensor(tiles, grid, [Shard(0), Shard(1)])
    return state | {"plain": noise((8, 8), torch.float32, 7), "scalar": torch.tensor(4), "n": 5}


def save_sharded(folder: str) -> None:
    state = sharded()
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
    save_both(state, folder, threads=1)


def load_sharded(folders: list[str]) -> list[int]:
    """Bytes that this rank read from each checkpoint."""
    state, read = sharded(), []
    for folder in folders:
        reader = wt.CheckpointReader(f"{folder}/own", threads=1)
        assert same(load_both(state, folder, reader), state)
        read.append(reader.bytes_read)
    return read


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("by", "ranks"),
    [
        ((1, 4), 2),
        pytest.param((1, 2, 4), 1, marks=SLOW),
        pytest.param((1, 2, 4), 8, marks=SLOW),
        pytest.param((2,), 3, marks=SLOW),
    ],
)
def test_resharding(
    by: tuple[int, ...], ranks: int, on_ranks: OnRanks, tmp_path_factory: Any
) -> None:
    """A rank reads little more than its share."""
    folders = [saved_by(n, on_ranks, tmp_path_factory) for n in by]
    stored = [sum(f.stat().st_size for f in Path(folder, "own").iterdir()) for folder in folders]
    for read in on_ranks(load_sharded, ranks, folders):
        assert all(n <= 1.1 * size / ranks for n, size in zip(read, stored, strict=True))


_saved: dict[int, str] = {}


def saved_by(n: int, on_ranks: OnRanks, folders: Any) -> str:
    if n not in _saved:
        _saved[n] = str(folders.mktemp(f"by{n}"))
        on_ranks(save_sharded, n, _saved[n])
        assert len(list(Path(_saved[n], "own").glob("*.wpd"))) == n
    return _saved[n]


def fsdp() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 5))
    for layer in (model[0], model):
        fully_shard(layer)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        data = torch.randn(8, 32, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()


def states(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> State:
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optim": moments}


def train_and_save(folder: str) -> list[bytes]:
    model, optimizer = fsdp()
    train(model, optimizer, range(3))
    writer = wt.CheckpointWriter(folder, threads=1)
    dcp.async_save(states(model, optimizer), storage_writer=writer).result()
    train(model, optimizer, range(3, 5))
    return [bits(parameter.full_tensor())[2] for parameter in model.parameters()]


def load_and_train(folder: str) -> list[bytes]:
    model, optimizer = fsdp()
    state = states(model, optimizer)
    dcp.load(state, storage_reader=wt.CheckpointReader(folder))
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"]
    )
    train(model, optimizer, range(3, 5))
    return [bits(parameter.full_tensor())[2] for parameter in model.parameters()]


@pytest.mark.filterwarnings("ignore")
def test_fsdp_goes_on_with_the_same_bits(on_ranks: OnRanks, tmp_path: Path) -> None:
    saved = on_ranks(train_and_save, 2, str(tmp_path / "c"))
    assert on_ranks(load_and_train, 2, str(tmp_path / "c")) == saved


def saves_of_which_one_dies(folder: str) -> list[int | None]:
    """Which checkpoint loads after a good save, and after one in which rank 1 died."""

    def epoch_of(n: int) -> State:
        return epoch(n) | {"mine": torch.full((9,), n), **sharded()}

    dcp.save(epoch_of(1), storage_writer=wt.CheckpointWriter(folder, threads=1))
    found = [loaded_epoch(folder)]
    if dist.get_rank() == 1:
        Dying(2, lambda: os._exit(9)).__enter__()
    with pytest.raises(BaseException, match=r"."):  # gloo's error; it is no Exception
        dcp.save(epoch_of(2), storage_writer=wt.CheckpointWriter(folder, threads=1))
    return [*found, loaded_epoch(folder)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_rank_that_dies(on_ranks: OnRanks, tmp_path: Path) -> None:
    assert on_ranks(saves_of_which_one_dies, 2, str(tmp_path), dying=[1])[0] == [1, 1]
    left = set(os.listdir(tmp_path))
    dcp.save(epoch(3), storage_writer=wt.CheckpointWriter(tmp_path))
    assert len(left) > 3 and len(os.listdir(tmp_path)) == 2 and loaded_epoch(str(tmp_path)) == 3


def damaged(folder: str) -> str:
    """What a rank says when the file of another one is damaged."""
    state = sharded()
    writer = wt.CheckpointWriter(folder)
    dcp.save(state, storage_writer=writer)
    dist.barrier()
    if dist.get_rank() == 0:
        (file,) = Path(folder).glob("1-*.wpd")
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    dist.barrier()
    try:
        dcp.load(cleared(state), storage_reader=wt.CheckpointReader(folder))
    except CheckpointException as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_all_ranks_hear_of_damage(on_ranks: OnRanks, tmp_path: Path) -> None:
    for text in on_ranks(damaged, 2, str(tmp_path)):
        assert re.search(r"1-[0-9a-f]{16}\.wpd: (tensor|object) \w+: ", text)
