# SPDX-License-Identifier: Apache-2.0
"""Patches: exact for every type, refused when damaged or out of order, never applied by half."""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import wirepress
from python.tests.conftest import Command
from spec.tests.frames import decode
from wirepress import _core, patches
from wirepress.errors import FrameError, ParameterError, WirepressError

State = dict[str, np.ndarray]
TYPES = ["float32", "float16", "float64", "int8", "uint16", "int64", "bool"]


def state(seed: int = 1, n: int = 3000) -> State:
    rng = np.random.default_rng(seed)
    found = {t: (rng.normal(size=n) * 20).astype(t) for t in TYPES}
    return found | {
        "matrix": rng.normal(size=(50, 40)).astype(np.float32),
        "five": rng.normal(size=(2, 3, 2, 3, 2)).astype(np.float16),
        "scalar": np.array(3, np.float32),
        "empty": np.zeros((0, 3), np.float32),
        "same": np.arange(20),
    }


def moved(old: State, share: float, seed: int = 2) -> State:
    rng = np.random.default_rng(seed)
    new = {name: array.copy() for name, array in old.items()}
    for name, array in new.items():
        if name == "same" or array.size == 0:
            continue
        raw = array.reshape(-1).view(np.uint8)
        where = rng.random(raw.size) < share
        raw[where] ^= 1 if array.dtype == bool else rng.integers(1, 256, raw.size, np.uint8)[where]
    return new


def equal(a: State, b: State) -> bool:
    return sorted(a) == sorted(b) and all(
        a[k].dtype == b[k].dtype and a[k].shape == b[k].shape and a[k].tobytes() == b[k].tobytes()
        for k in a
    )


def described(tensors: State) -> dict[str, tuple[str, list[int], bytes]]:
    return {k: (v.dtype.name, list(v.shape), v.tobytes()) for k, v in tensors.items()}


@pytest.mark.parametrize("op", patches.OPS[1:])
@pytest.mark.parametrize("share", [0.0, 0.004, 0.1, 0.6])
def test_a_patch_makes_the_target(op: str, share: float) -> None:
    old, n = state(), 300
    old = {k: v[:n] if v.ndim == 1 else v for k, v in old.items()}
    new = moved(old, share)
    update = wirepress.diff(old, new, op=op)
    assert {k: v[2] for k, v in decode.apply_patch(update, described(old)).items()} == {
        k: v.tobytes() for k, v in new.items()
    }
    memory = {k: v.__array_interface__["data"][0] for k, v in old.items()}
    assert wirepress.patch(update, old) == 1 and equal(old, new)
    assert memory == {k: v.__array_interface__["data"][0] for k, v in old.items()}


def test_every_word_of_16_bits_becomes_any_other() -> None:
    words = np.arange(65536, dtype=np.uint16)
    for turn in (1, 0x7FFF, 0x8000, 0xFFFF):
        old, new = {"w": words.view(np.float16)}, {"w": (words ^ turn).view(np.float16)}
        old = {"w": old["w"].copy()}
        wirepress.patch(wirepress.diff(old, new), old)
        assert equal(old, new)


def test_tensors_come_go_and_change_their_type_and_shape() -> None:
    old, new = state(), moved(state(), 0.01)
    new["matrix"], new["int8"] = new["matrix"].reshape(40, 50), new["int8"].astype(np.int16)
    new["more"] = np.ones(7, np.float32)
    del new["float16"]
    wirepress.patch(wirepress.diff(old, new), old)
    assert equal(old, new)


def test_torch_state_dicts() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(30, 40), torch.nn.Linear(40, 3)).bfloat16()
    old = {k: v.clone() for k, v in model.state_dict().items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter[0] *= 1.01
    update = wirepress.diff(old, model.state_dict(), base=7, target=9)
    place = old["0.weight"].data_ptr()
    assert wirepress.patch(update, old) == 9 and old["0.weight"].data_ptr() == place
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor.view(torch.int16), old[name].view(torch.int16))


def test_tensors_without_values_in_rows_are_named() -> None:
    torch = pytest.importorskip("torch")
    for tensor, kind in (
        (torch.zeros(3, device="meta"), "on meta: bring it to the CPU"),
        (torch.zeros(3).to_sparse(), "torch.sparse_coo: its values do not lie in rows"),
    ):
        with pytest.raises(ParameterError, match=f"tensor x is {kind}"):
            wirepress.diff({}, {"x": tensor}, base=0, target=1)


def test_wrong_bases_are_refused_and_nothing_is_touched() -> None:
    old, new = state(), moved(state(), 0.01)
    update = wirepress.diff(old, new, base=3, target=4)
    for name, sentence in (("matrix", "tensor matrix is .* not"), (None, "have version 4 already")):
        wrong = {k: v.copy() for k, v in (old if name else new).items()}
        if name:
            wrong[name][3] += 1
        before = {k: v.copy() for k, v in wrong.items()}
        with pytest.raises(ParameterError, match=f"(?s){sentence}|version 3.*{sentence}") as error:
            wirepress.patch(update, wrong)
        assert f"the patch is for version 3, digest {patches.digest(old)}" in str(error.value)
        assert equal(wrong, before)
    with pytest.raises(ParameterError, match="versions rise"):
        wirepress.diff(old, new, base=4, target=4)
    with pytest.raises(ParameterError, match="a list, not an array"):
        wirepress.diff(old, {"w": [1, 2]})
    frozen = {k: v.copy() for k, v in old.items()}
    frozen["matrix"].flags.writeable = False
    with pytest.raises(ParameterError, match="cannot be written"):
        wirepress.patch(update, frozen)
    assert equal(frozen, old)


@pytest.mark.parametrize("op", ["ulp", "set"])
def test_folds_do_both(op: str) -> None:
    versions = [state()]
    for seed in range(4):
        versions.append(moved(versions[-1], 0.02, seed))
    versions[2]["new"] = np.arange(9, dtype=np.float32)
    versions[3]["new"] = versions[2]["new"] + np.float32(1)
    versions[4]["new"] = versions[3]["new"]
    updates = [
        wirepress.diff(a, b, base=i, target=i + 1, op=op)
        for i, (a, b) in enumerate(itertools.pairwise(versions))
    ]
    folded = updates[0]
    for update in updates[1:]:
        folded = wirepress.fold(folded, update)
    right = wirepress.fold(updates[0], wirepress.fold(wirepress.fold(*updates[1:3]), updates[3]))
    for joined in (folded, right):
        base = {k: v.copy() for k, v in versions[0].items()}
        assert wirepress.patch(joined, base) == 4 and equal(base, versions[4])
    with pytest.raises(ParameterError, match=r"second patch is for version 3.*leads to 1"):
        wirepress.fold(updates[0], updates[3])


def test_damage_is_refused_and_nothing_is_touched() -> None:
    old, new = {"w": state()["float32"], "v": state()["float16"]}, {}
    new = moved(old, 0.05)
    update = wirepress.diff(old, new)
    rng = random.Random(1)
    cases = [update[:n] for n in range(0, len(update), max(1, len(update) // 150))] + [
        update + b"\0"
    ]
    for _ in range(400):
        bad = bytearray(update)
        for _ in range(rng.randint(1, 3)):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        cases.append(bytes(bad))
    for bad in cases:
        if bad == update:
            continue
        words = {k: v.copy() for k, v in old.items()}
        with pytest.raises(FrameError):
            wirepress.patch(bad, words)
        assert equal(words, old)


def sealed(update: bytes, change: object) -> bytes:
    """The patch with another table, whose hash is right."""
    size = int.from_bytes(update[-16:-8], "little")
    table = json.loads(update[-16 - size : -16])
    change(table)  # type: ignore[operator]
    text = json.dumps(table).encode()
    body = update[20 : -16 - size]
    tail = len(text).to_bytes(8, "little")
    return (
        update[:20]
        + body
        + text
        + tail
        + _core.hash(update[:20] + text + tail).to_bytes(8, "little")
    )


def test_tables_that_lie_are_refused() -> None:
    old, new = {"w": state()["float32"]}, {}
    new = moved(old, 0.01)
    update = wirepress.diff(old, new)
    assert sealed(update, lambda table: None) != update
    fields = {
        "shape": [[1 << 40], [3001], ["a"], -1, None, [1 << 61], [[3000]], [-3000]],
        "dtype": ["float16", "x", None, 3, "float64", "int64"],
        "op": ["set", "same", "full", "x", None, 1],
        "base": [None, "x", 3, "0" * 16, "-" + "0" * 15],
        "target": ["0" * 16, None, 3],
        "frames": [[], None, [[1, 2]], [[10**30, 1]], [["a", 1]], [[-1, 1]], 3],
        "name": [None, 3, "v", ""],
    }
    cases = [(f, v) for f, values in fields.items() for v in values]
    for field, value in cases:

        def change(table: dict, field: str = field, value: object = value) -> None:
            table["tensors"][0][field] = value

        words = {"w": old["w"].copy()}
        with pytest.raises(WirepressError):
            wirepress.patch(sealed(update, change), words)
        assert equal(words, old), (field, value)
    for change in (
        lambda t: t.clear(),
        lambda t: t.update(tensors=3),
        lambda t: t.update(base=1),
        lambda t: t["tensors"].append(t["tensors"][0]),
        lambda t: t.update(header=3),
    ):
        with pytest.raises(FrameError):
            wirepress.patch(sealed(update, change), {"w": old["w"].copy()})


def test_tables_agree_with_themselves() -> None:
    old = {"w": state()["float32"], "kept": state()["int8"], "wide": np.arange(9.0)}
    new = {**old, "w": moved({"w": old["w"]}, 0.01)["w"]}
    update = wirepress.diff(old, new)
    other = wirepress.diff(new, old)

    def same_of_another_type(table: dict) -> None:
        table["tensors"][1]["dtype"] = "float16"

    for change in (
        lambda table: table.update(target="0" * 16),
        lambda table: table["tensors"][1].update(target="0" * 16),
        lambda table: table["tensors"][1].update(base="0" * 16),
        lambda table: table["tensors"][2].update(op="ulp", frames=[[1, 1]]),
        lambda table: table.update(header="\ud800"),
        same_of_another_type,
    ):
        words = {name: array.copy() for name, array in old.items()}
        with pytest.raises(FrameError):
            wirepress.patch(sealed(update, change), words)
        assert equal(words, old)
    assert other != update


def test_tensors_that_share_memory() -> None:
    first = {"a": np.zeros(100, np.float32), "b": np.zeros(100, np.float32)}
    tied = {name: array + 1 for name, array in first.items()}
    parted = {"a": first["a"] + 1, "b": first["b"] + 2}
    for target, good in ((tied, True), (parted, False)):
        one = np.zeros(100, np.float32)
        words = {"a": one, "b": one}
        if good:
            assert wirepress.patch(wirepress.diff(first, target), words) == 1
            assert (one == 1).all()
            continue
        with pytest.raises(ParameterError, match="a and b share memory and become different"):
            wirepress.patch(wirepress.diff(first, target), words)
        assert (one == 0).all()


def test_tensors_without_elements() -> None:
    old = {"w": np.ones(3, np.float32)}
    for shape in ((0,), (0, 3), (2, 0, 0)):
        new = {**old, "e": np.zeros(shape, np.float32)}
        words = {"w": old["w"].copy()}
        wirepress.patch(wirepress.diff(old, new), words)
        assert words["e"].shape == shape and words["e"].dtype == np.float32


def test_what_no_patch_can_name() -> None:
    array = np.ones(3, np.float32)
    with pytest.raises(ParameterError, match="names of tensors are text"):
        wirepress.diff({1: array}, {1: array})  # type: ignore[dict-item]
    with pytest.raises(ParameterError, match="mask"):
        wirepress.diff({}, {"w": np.ma.masked_array(array, [1, 0, 0])})


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_calls_that_mean_nothing() -> None:
    old = {"w": np.zeros((2, 8), np.float32)}
    new = {"w": np.ones((2, 8), np.float32)}
    update = patches.diff(old, new)
    for call, sentence in (
        (lambda: patches.patch(old, update), "`patch` takes it first"),
        (lambda: patches.patch(update, old["w"]), "names and their tensors"),
        (lambda: patches.diff(old["w"], new["w"]), "names and their tensors"),
        (lambda: patches.digest([old["w"]]), "names and their tensors"),
        (lambda: patches.fold(None, update), "a patch is bytes"),
        (lambda: patches.diff(old, new, recipe="bx:m=3"), "recipes of its own"),
        (lambda: patches.diff(old, new, base="1"), "base '1' is not a whole number"),
        (lambda: patches.diff(old, new, base=-1), "base -1 is not in"),
        (lambda: patches.diff(old, new, base=3, target=3), "versions rise"),
    ):
        with pytest.raises((TypeError, ParameterError), match=sentence) as caught:
            call()
        assert "\n" not in str(caught.value)
    matrix = {"w": np.matrix(old["w"])}
    assert patches.patch(update, matrix) == 1
    assert (matrix["w"] == new["w"]).all()


def test_folds_of_other_options_and_types() -> None:
    a = {"w": state()["float32"], "v": state()["float32"]}
    b, c = moved(a, 0.05, 1), moved(a, 0.05, 2)
    c["v"] = np.arange(100, dtype=np.int16)
    folded = wirepress.fold(
        wirepress.diff(a, b), wirepress.diff(b, c, base=1, target=2, block_size=64 << 10)
    )
    size = int.from_bytes(folded[-16:-8], "little")
    rows = {row["name"]: row for row in json.loads(folded[-16 - size : -16])["tensors"]}
    assert rows["v"]["op"] == "full" and rows["v"]["base"] is None
    words = {name: array.copy() for name, array in a.items()}
    assert wirepress.patch(folded, words) == 2 and equal(words, c)


@pytest.mark.parametrize("of", [np.int8, np.int16, np.float64])
def test_steps_of_other_words_are_refused(of: type) -> None:
    coder = wirepress.Compressor("sparse")
    before, after = np.zeros(4000, np.float32), np.ones(4000, np.float32)
    steps = coder.compress_steps(before, after)
    words = np.zeros(16000 // np.dtype(of).itemsize, of)
    with pytest.raises(ParameterError, match="the steps are of words of 4 bytes"):
        coder.take_steps(steps, words)
    assert not words.any()
    typed = memoryview(words)
    with pytest.raises(ParameterError, match="the steps are of words of 4 bytes"):
        coder.take_steps(steps, typed.cast("B").cast(typed.format))
    for other in (before.astype(">f4"), memoryview(before.astype(">f4")), before.astype(object)):
        with pytest.raises(ParameterError, match="byte order"):
            coder.take_steps(steps, other)
    coder.take_steps(steps, before)
    assert (before == 1).all()


def write_safetensors(path: Path, tensors: State, note: str) -> None:
    names = {"float32": "F32", "float16": "F16", "int8": "I8"}
    entries, at = {"__metadata__": {"note": note}}, 0
    for name, array in tensors.items():
        entries[name] = {
            "dtype": names[array.dtype.name], "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }  # fmt: skip
        at += array.nbytes
    header = json.dumps(entries).encode()
    body = b"".join(array.tobytes() for array in tensors.values())
    path.write_bytes(len(header).to_bytes(8, "little") + header + body)


def test_files_keep_their_header_true(tmp_path: Path, wirepress_in: Command) -> None:
    old = {"w": np.ones(12, np.float32)}
    write_safetensors(tmp_path / "old.safetensors", old, "")
    changes = [
        {"w": np.ones(12, np.float16)},
        {"w": np.ones((3, 4), np.float32)},
        {**old, "more": np.ones(3, np.float32)},
        {},
    ]
    for new in changes:
        (tmp_path / "u.wpp").write_bytes(wirepress.diff(old, new))
        done = wirepress_in("patch", "old.safetensors", "u.wpp", "-o", "new.safetensors")
        assert done.returncode != 0 and b"make it with wirepress diff" in done.stderr
        assert not (tmp_path / "new.safetensors").exists()
    text = b'{"\xed\xa0\x80":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    (tmp_path / "bad.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 4)
    done = wirepress_in("diff", "old.safetensors", "bad.safetensors", "-o", "v.wpp")
    assert done.returncode != 0 and done.stderr.count(b"\n") == 1
    done = wirepress_in("diff", "old.safetensors", "old.safetensors", "-o", "-")
    assert done.returncode == 2 and b"give -o a file" in done.stderr


def test_the_commands(tmp_path: Path, wirepress_in: Command) -> None:
    names = ("float32", "float16", "int8")
    versions = [{k: state()[k] for k in names}]
    for seed in (1, 2):
        versions.append(moved(versions[-1], 0.01, seed))
    for i, version in enumerate(versions):
        write_safetensors(tmp_path / f"{i}.safetensors", version, "x" * (i > 1))
    for i in (0, 1):
        files = [f"{i}.safetensors", f"{i + 1}.safetensors"]
        made = wirepress_in("diff", *files, "-o", f"{i}.wpp", "--versions", f"{i}:{i + 1}")
        assert made.returncode == 0, made.stderr
    assert wirepress_in("fold", "0.wpp", "1.wpp", "-o", "02.wpp").returncode == 0
    done = wirepress_in("patch", "0.safetensors", "02.wpp", "-o", "new.safetensors", "--json")
    assert json.loads(done.stdout)["version"] == 2
    assert (tmp_path / "new.safetensors").read_bytes() == (tmp_path / "2.safetensors").read_bytes()
    wrong = wirepress_in("patch", "0.safetensors", "1.wpp", "-o", "other.safetensors")
    assert wrong.returncode != 0 and b"the patch is for version 1, digest" in wrong.stderr
    assert wrong.stderr.count(b"\n") == 1 and not (tmp_path / "other.safetensors").exists()
    again = wirepress_in("patch", "0.safetensors", "0.wpp", "-o", "new.safetensors")
    assert again.returncode != 0 and b"-f replaces it" in again.stderr
    # In place: the base itself becomes the target.
    over = wirepress_in("patch", "0.safetensors", "0.wpp", "-o", "0.safetensors", "-f")
    assert over.returncode == 0
    assert (tmp_path / "0.safetensors").read_bytes() == (tmp_path / "1.safetensors").read_bytes()
    assert not list(tmp_path.glob(".*.part"))


def test_results_and_sources_of_other_kinds(
    tmp_path: Path, main: Callable[..., tuple[int, str]]
) -> None:
    """A result replaces a file and nothing else; a source may be a pipe, and a bad one is named."""
    for name, seed in ("a.safetensors", 1), ("b.safetensors", 2):
        weights = {key: state()[key] for key in ("float32", "int8")}
        write_safetensors(tmp_path / name, moved(weights, 0.1, seed), "")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_bytes(b"no patch, but some text " * 9)
    diff = ("diff", "a.safetensors", "b.safetensors", "-f", "-o")
    assert main(*diff, "p.wpp") == (0, "")

    def files() -> set[tuple[str, int, int, int, int]]:
        rows = ((path.name, path.lstat()) for path in tmp_path.iterdir())
        return {(n, s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns) for n, s in rows}

    before = files()
    for command, sentence in (
        ((*diff, "pipe"), "pipe is not a regular file"),
        ((*diff, "folder"), "folder is not a regular file"),
        ((*diff, "a.safetensors"), "is the source itself"),
        ((*diff, "./b.safetensors"), "is the source itself"),
        ((*diff, ""), "the name of a file is empty"),
        ((*diff, "none/p.wpp"), "wirepress: none/p.wpp: No such file or directory"),
        (("patch", "a.safetensors", "p.wpp", "-f", "-o", "p.wpp"), "is the source itself"),
        (("patch", "a.safetensors", "text", "-o", "new"), "text: this is not a patch"),
        (("fold", "p.wpp", "text", "-o", "new"), "text: this is not a patch"),
        (("fold", "p.wpp", "p.wpp", "-f", "-o", "p.wpp"), "is the source itself"),
        (("convert", "a.safetensors", "-o", "-"), "writes regular files; stdout is none"),
        (("convert", "a.safetensors", "-o", "pipe"), "writes regular files; pipe is none"),
        (("compress", "text", "-o", ""), "the name of a file is empty"),
        (("compress", ""), "the name of a file is empty"),
    ):
        status, error = main(*command)
        assert status in (1, 2) and sentence in error, (command, error)
        assert files() == before, command
    content, read, write = (tmp_path / "p.wpp").read_bytes(), *os.pipe()
    threading.Thread(target=lambda: (os.write(write, content), os.close(write))).start()
    with open(read, "rb"):
        assert main("patch", "a.safetensors", f"/dev/fd/{read}", "-o", "new") == (0, "")
    assert (tmp_path / "new").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
