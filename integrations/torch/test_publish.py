# SPDX-License-Identifier: Apache-2.0
"""Weights from a trainer to its followers: equal, late, killed, lost, wrong, and loaded by half."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import wirepress.torch as wt  # noqa: E402
from wirepress import ParameterError, WirepressError, patches  # noqa: E402
from wirepress.torch import publish  # noqa: E402


class Trainer:
    """A model in bfloat16 and its float32 master; a step changes about 1 % of the words."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.master = {"w": torch.randn(200, 300), "b": torch.randn(300), "n": torch.ones(1)}
        self.weights = {name: tensor.bfloat16() for name, tensor in self.master.items()}
        self.weights["frozen"] = torch.randn(50).bfloat16()

    def step(self) -> None:
        for name, tensor in self.master.items():
            tensor += 3e-5 * torch.randn_like(tensor)
            self.weights[name].copy_(tensor)

    def digest(self) -> str:
        return patches.digest(self.weights)


def equal(subscriber: wt.WeightSubscriber, trainer: Trainer) -> bool:
    return patches.digest(subscriber.tensors) == trainer.digest()


def follow(place: str | Path, steps: int) -> wt.WeightPublisher:
    """Publishes steps; one subscriber takes each, one takes some, one comes at the end."""
    trainer = Trainer()
    publisher = wt.WeightPublisher(trainer.weights, place, anchor_every=30, threads=1)
    always, rarely = (wt.WeightSubscriber(place, threads=1) for _ in range(2))
    loaded: set[str] = set()
    for step in range(1, steps + 1):
        trainer.step()
        assert publisher.publish() == step
        always.stage()
        assert always.commit(lambda name, tensor: loaded.add(name)) == step
        assert equal(always, trainer)
        if step == 1:
            assert loaded == {"w", "b", "n", "frozen"}
            loaded.clear()
        if step % 17 == 0:
            assert rarely.stage() == step == rarely.commit() and equal(rarely, trainer)
    assert loaded <= {"w", "b", "n"}
    late = wt.WeightSubscriber(place)
    assert late.stage() == late.commit() == publisher.version and equal(late, trainer)
    return publisher


def test_followers_have_equal_weights(tmp_path: Path) -> None:
    follow(tmp_path, 40)
    follow("memory://weights", 20)


def test_neither_end_is_copied(tmp_path: Path) -> None:
    for end in (wt.WeightPublisher(Trainer().weights, tmp_path), wt.WeightSubscriber(tmp_path)):
        for call in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"{type(end).__name__} cannot be copied"):
                call(end)


@pytest.mark.slow
def test_followers_have_equal_weights_for_200_steps(tmp_path: Path) -> None:
    follow(tmp_path, 200)
    assert len(os.listdir(tmp_path)) <= 62  # the last two anchors, what follows them, the list


def test_weights_that_are_there_already(tmp_path: Path) -> None:
    trainer = Trainer()
    publisher = wt.WeightPublisher(trainer.weights, tmp_path)
    publisher.publish()
    copy = {name: tensor.clone() for name, tensor in trainer.weights.items()}
    known = wt.WeightSubscriber(tmp_path, copy)
    assert known.version == 1
    copy["w"][0, 0] += 1
    other = wt.WeightSubscriber(tmp_path, copy)
    assert other.version == 0
    trainer.step()
    publisher.publish(5)
    for subscriber in (known, other):
        assert subscriber.stage() == subscriber.commit() == 5 and equal(subscriber, trainer)
    with pytest.raises(ParameterError, match="version 5 is published, 5 is not above it"):
        publisher.publish(5)
    with pytest.raises(ParameterError, match="from version 5 to version 9; its last is 5"):
        known.stage(9)


def test_a_publisher_that_begins_again_goes_on(tmp_path: Path) -> None:
    trainer = Trainer()
    wt.WeightPublisher(trainer.weights, tmp_path).publish()
    subscriber = wt.WeightSubscriber(tmp_path)
    subscriber.stage(), subscriber.commit()
    first = wt.WeightPublisher(trainer.weights, tmp_path)  # the weights are those of version 1
    second = wt.WeightPublisher(trainer.weights, tmp_path)
    trainer.step()
    assert first.publish() == 2
    with pytest.raises(ParameterError, match="other versions than this publisher made"):
        second.publish()
    trainer.step()
    third = wt.WeightPublisher(trainer.weights, tmp_path)  # they are those of no version
    assert third.publish() == 3
    assert subscriber.stage() == subscriber.commit() == 3 and equal(subscriber, trainer)


def test_a_lost_or_damaged_patch_is_gone_around_or_refused(tmp_path: Path) -> None:
    trainer = Trainer()
    publisher = wt.WeightPublisher(trainer.weights, tmp_path, anchor_every=3)
    subscriber = wt.WeightSubscriber(tmp_path)
    for _ in range(5):  # 1 and 4 are anchors
        trainer.step()
        publisher.publish()
        if publisher.version == 1:
            subscriber.stage(), subscriber.commit()
    before = patches.digest(subscriber.tensors)
    (lost,) = tmp_path.glob("*2-*1.wpp")
    lost.unlink()
    assert subscriber.stage() == 5  # from the anchor
    (damaged,) = tmp_path.glob("*5-*4.wpp")
    whole = damaged.read_bytes()
    for bad in (whole[:-7], whole[:300] + bytes([whole[300] ^ 1]) + whole[301:], b""):
        damaged.write_bytes(bad)
        with pytest.raises(WirepressError):
            subscriber.stage()
        assert subscriber.version == 1 and patches.digest(subscriber.tensors) == before
    damaged.write_bytes(whole)
    names = (tmp_path / "VERSIONS").read_bytes()
    for at in range(0, len(names), 7):
        (tmp_path / "VERSIONS").write_bytes(names[:at] + bytes([names[at] ^ 4]) + names[at + 1 :])
        with pytest.raises(WirepressError):
            subscriber.stage()
    (tmp_path / "VERSIONS").write_bytes(names)
    assert subscriber.stage() == subscriber.commit() == 5 and equal(subscriber, trainer)


def test_a_load_that_fails_leaves_the_version(tmp_path: Path) -> None:
    trainer = Trainer()
    publisher = wt.WeightPublisher(trainer.weights, tmp_path)
    subscriber = wt.WeightSubscriber(tmp_path)
    publisher.publish()
    subscriber.stage(), subscriber.commit()
    before = patches.digest(subscriber.tensors)
    trainer.step()
    publisher.publish()
    subscriber.stage()

    def fail(name: str, tensor: torch.Tensor) -> None:
        raise RuntimeError(name)

    with pytest.raises(RuntimeError):
        subscriber.commit(fail)
    assert subscriber.version == 1 and patches.digest(subscriber.tensors) == before
    assert subscriber.commit(lambda name, tensor: None) == 2 and equal(subscriber, trainer)
    assert subscriber.stage() == 2 == subscriber.commit()  # a second time changes nothing


class Store(publish._Folder):
    """A folder whose calls of one kind fail: before they did anything, or after."""

    def __init__(self, path: Path, call: str, error: BaseException, *, after: bool = False) -> None:
        super().__init__(str(path))
        self.failing, self.error, self.after = call, error, after

    def _do(self, call: str, *args: object) -> None:
        if call == self.failing and not self.after:
            raise self.error
        getattr(super(), call.partition(" ")[0])(*args)
        if call == self.failing:
            raise self.error

    def write(self, name: str, data: bytes) -> None:
        self._do("write list" if name == "VERSIONS" else "write", name, data)

    def remove(self, name: str) -> None:
        self._do("remove", name)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", ["write", "write list", "remove"])
def test_a_store_that_fails_once(tmp_path: Path, call: str, after: bool) -> None:
    trainer = Trainer()
    publisher = wt.WeightPublisher(trainer.weights, tmp_path, anchor_every=2)
    subscriber = wt.WeightSubscriber(tmp_path)
    good = publisher._store
    for fails in (False, False, True, False, False):
        trainer.step()
        if fails:
            publisher._store = Store(tmp_path, call, NotImplementedError("no"), after=after)
            publisher._every = 1  # so that something is removed
        before = publisher.version
        try:
            assert publisher.publish() > before
        except NotImplementedError:
            assert fails and call != "remove"
            publisher._store = good
            taken = call == "write list" and after
            assert subscriber.stage() == subscriber.commit() == before + taken
            assert equal(subscriber, trainer) == taken
            continue
        publisher._store = good
        assert subscriber.stage() == subscriber.commit() == publisher.version
        assert equal(subscriber, trainer)


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_as_many_anchors_stay_as_asked_for(tmp_path: Path, keep: int) -> None:
    trainer = Trainer()
    others = {"notes.txt", "1-0.wpp", "000000000001-000000000000.wpp.bak", ".x.part"}
    for name in others:
        (tmp_path / name).write_text("not the publisher's")
    publisher = wt.WeightPublisher(trainer.weights, tmp_path, anchor_every=3, keep=keep)
    for step in range(1, 14):
        trainer.step()
        publisher.publish()
        anchors = -(-step // 3)
        named = {update.file for update in publisher._updates}
        assert sum(update.is_anchor for update in publisher._updates) == min(anchors, keep)
        assert {path.name for path in tmp_path.iterdir()} == others | {"VERSIONS"} | named
        late = wt.WeightSubscriber(tmp_path)
        assert late.stage() == late.commit() == step and equal(late, trainer)
    with pytest.raises(ParameterError, match="keep is 0; at least 1 anchor"):
        wt.WeightPublisher(trainer.weights, tmp_path, keep=0)


class Limited(publish._Folder):
    """A folder that cannot be listed, and one of whose files cannot be deleted."""

    stays, lists = "", True

    def remove(self, name: str) -> None:
        if name == self.stays:
            raise PermissionError("no")
        super().remove(name)

    def names(self) -> list[str]:
        if not self.lists:
            raise PermissionError("no list")
        return sorted(super().names())


def test_a_publisher_with_few_rights(tmp_path: Path) -> None:
    trainer = Trainer()
    publisher = wt.WeightPublisher(trainer.weights, tmp_path, anchor_every=2, keep=1)
    publisher._store = store = Limited(str(tmp_path))

    def publish_some(n: int) -> set[str]:
        for _ in range(n):
            trainer.step()
            publisher.publish()
        return {path.name for path in tmp_path.iterdir()} - {"VERSIONS"}

    store.lists = False
    with pytest.warns(UserWarning, match=r"cannot be listed, .*: no list") as told:
        left = publish_some(7)
    assert len(told) == 1 and left == {"000000000007-000000000000.wpp"}
    store.lists = True
    store.stays = "000000000007-000000000000.wpp"
    assert publish_some(2) == {store.stays, "000000000009-000000000000.wpp"}
    store.stays = ""
    assert publish_some(2) == {"000000000011-000000000000.wpp"}


def test_what_another_publisher_is_about_to_list_stays(tmp_path: Path) -> None:
    trainer = Trainer()
    publisher = wt.WeightPublisher(trainer.weights, tmp_path, anchor_every=1, keep=1)
    publisher.publish()
    coming = {"000000000003-000000000002.wpp", ".000000000003-000000000002.wpp.0af.part"}
    over = {"000000000002-000000000001.wpp", ".000000000001-000000000000.wpp.0af.part"}
    for name in coming | over:
        (tmp_path / name).write_text("")
    publisher.publish()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == coming | {"VERSIONS", "000000000002-000000000000.wpp"}
    write = publisher._store.write

    def then_another(name: str, data: bytes) -> None:
        write(name, data)
        if name == "VERSIONS":  # one that keeps more lists a file that this one would sweep
            update = publish.Update("000000000002-000000000001.wpp", 1, 2, "", 0)
            (tmp_path / update.file).write_text("")
            publish._write_list(publish._Folder(str(tmp_path)), [update])

    publisher._store.write = then_another
    publisher.publish()
    assert (tmp_path / "000000000002-000000000001.wpp").exists()


@pytest.mark.parametrize("place", ["folder", "memory://late-readers"])
def test_an_anchor_that_is_deleted_while_it_is_fetched(tmp_path: Path, place: str) -> None:
    trainer = Trainer()
    where = tmp_path if place == "folder" else place
    publisher = wt.WeightPublisher(trainer.weights, where, anchor_every=2, keep=1)
    subscriber = wt.WeightSubscriber(where)
    publisher.publish()
    read, left = subscriber._store.read, [3]

    def late(name: str) -> bytes | None:
        if name != "VERSIONS" and left[0]:
            left[0] -= 1
            for _ in range(2):  # an anchor, and a step behind it, or the other way around
                trainer.step()
                publisher.publish()
        return read(name)

    subscriber._store.read = late
    assert subscriber.stage() == subscriber.commit() == publisher.version == 7
    assert equal(subscriber, trainer) and left == [0]


def test_weights_of_inference_mode_and_views(tmp_path: Path) -> None:
    with torch.inference_mode():
        weights = {"w": torch.ones(8), "z": torch.ones(4, dtype=torch.complex64).conj().imag}
        publisher = wt.WeightPublisher(weights, tmp_path)
        publisher.publish()
    subscriber = wt.WeightSubscriber(tmp_path)
    for _ in range(3):
        weights["w"] = weights["w"] * 2
        publisher.publish()
        assert subscriber.stage() == subscriber.commit() == publisher.version
        assert patches.digest(subscriber.tensors) == patches.digest(weights)


@pytest.mark.parametrize(
    ("tensor", "kind"),
    [
        (torch.zeros(3, device="meta"), "meta"),
        (torch.zeros(3).to_sparse(), r"torch\.sparse_coo"),
        (torch.nn.LazyLinear(4).weight, "an UninitializedParameter"),
    ],
    ids=["meta", "sparse", "lazy"],
)
def test_tensors_without_values_in_rows_are_refused(
    tensor: torch.Tensor, kind: str, tmp_path: Path
) -> None:
    publisher = wt.WeightPublisher({"x": tensor}, tmp_path)
    with pytest.raises(ParameterError, match=f"tensor x is {kind}, which cannot be published"):
        publisher.publish()
    assert wt.WeightSubscriber(tmp_path).latest() == 0


def test_a_store_that_is_begun_anew(tmp_path: Path) -> None:
    trainer = Trainer()
    wt.WeightPublisher(trainer.weights, tmp_path).publish()
    subscriber = wt.WeightSubscriber(tmp_path)
    subscriber.stage(), subscriber.commit()
    for path in tmp_path.iterdir():
        path.unlink()
    trainer.step()
    wt.WeightPublisher(trainer.weights, tmp_path).publish()
    assert subscriber.stage() == subscriber.commit() == 1 and equal(subscriber, trainer)


@pytest.mark.parametrize(
    "rows",
    [
        [["../victim", 0, 1, "0" * 16, 7]],
        [["000000000001-000000000000.wpp", 0, 1, "0" * 16, 7]] * 2,
        [["000000000002-000000000001.wpp", 1, 2, "0" * 16, 7],
         ["000000000001-000000000000.wpp", 0, 1, "0" * 16, 7]],
    ],
)  # fmt: skip
def test_lists_that_name_what_is_not_theirs(tmp_path: Path, rows: list) -> None:
    store = publish._open_store(tmp_path)
    publish._write_list(store, [publish.Update(*row) for row in rows])
    with pytest.raises(WirepressError, match="the list VERSIONS of the store is damaged"):
        wt.WeightPublisher(Trainer().weights, tmp_path)


def test_files_by_url_are_a_folder(tmp_path: Path) -> None:
    follow(f"file://{tmp_path}", 3)
    assert (tmp_path / "VERSIONS").exists()
    follow(f"local://{tmp_path}/more", 3)
    assert not list(tmp_path.rglob("*.part"))


def in_child(function: Callable[[], object]) -> int:
    """The exit status of a copy of this process that runs a function."""
    child = os.fork()
    if child == 0:
        try:
            torch.set_num_threads(1)  # the threads of OpenMP are not copied
            function()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(call: int) -> None:
    """Ends this process before its `call`-th write, fsync, rename or unlink of a file."""
    left = [call]

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*args: object, **kwargs: object) -> object:
            if left[0] == 0:
                os._exit(9)
            left[0] -= 1
            return real(*args, **kwargs)

        return wrapper

    for name in ("fsync", "replace", "unlink", "open"):
        setattr(os, name, counted(getattr(os, name)))


def kills(tmp_path: Path, rounds: int) -> int:
    """Publishers that are killed at every write, one after the other; returns how many were."""
    trainer = Trainer()
    wt.WeightPublisher(trainer.weights, tmp_path, anchor_every=2, threads=1).publish()
    subscriber = wt.WeightSubscriber(tmp_path)
    subscriber.stage(), subscriber.commit()
    killed, digests = 0, {1: trainer.digest()}
    for step in range(rounds):
        for call in range(40):
            trainer.step()
            publisher = wt.WeightPublisher(trainer.weights, tmp_path, anchor_every=2, threads=1)
            next_version = publisher.version + 1

            def publish_and_die(at: int = call, by: wt.WeightPublisher = publisher) -> None:
                killed_at(at)
                by.publish()

            status = in_child(publish_and_die)
            assert status in (0, 9), (step, call)
            digests[next_version] = trainer.digest()
            version = subscriber.stage()
            assert subscriber.commit() == version and version in (next_version, next_version - 1)
            assert patches.digest(subscriber.tensors) == digests[version]
            assert status == 9 or version == next_version
            killed += status == 9
            if status == 0:
                break
    return killed


def test_kills_at_every_write(tmp_path: Path) -> None:
    assert kills(tmp_path, 1) >= 6
    left = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    named = {update.file for update in publish._read_list(publish._open_store(tmp_path))}
    assert named <= left
    (tmp_path / "000000000002-000000000001.wpp").write_bytes(b"of a publisher that was killed")
    publisher = wt.WeightPublisher(Trainer().weights, tmp_path, anchor_every=1)
    publisher.publish()  # an anchor: nothing stays that the list does not name
    named = {update.file for update in publisher._updates}
    assert {path.name for path in tmp_path.iterdir()} == {"VERSIONS"} | named


@pytest.mark.slow
def test_kills_at_every_write_many_times(tmp_path: Path) -> None:
    assert kills(tmp_path, 6) >= 36
