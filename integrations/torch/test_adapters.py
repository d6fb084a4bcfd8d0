# SPDX-License-Identifier: Apache-2.0
"""The adapters for training frameworks: real packages, two processes with gloo, tiny models."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

METHODS = ("int8", "topk:ratio=0.05")
TIMEOUT = 240  # of a test's ranks; importing a framework takes long on a busy machine
STEPS = 6
OnRanks = Callable[..., list[Any]]


def need(*packages: str) -> None:
    for package in packages:
        pytest.importorskip(package, reason=f"package {package} is not installed")


# ---- on ranks -------------------------------------------------------------------------------


def become_torchrun() -> None:
    """Gives the process what torchrun would: frameworks make their process groups themselves."""
    import torch.distributed as dist

    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    rank, n = dist.get_rank(), dist.get_world_size()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = [free.getsockname()[1]]
    dist.broadcast_object_list(port, src=0)
    dist.destroy_process_group()
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), GROUP_RANK="0", MASTER_ADDR="127.0.0.1",
        WORLD_SIZE=str(n), LOCAL_WORLD_SIZE=str(n), MASTER_PORT=str(port[0]),
        TORCHELASTIC_RUN_ID="test", TORCHELASTIC_USE_AGENT_STORE="False",
    )  # fmt: skip


def tiny_model() -> Any:
    import torch

    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(32, 256), torch.nn.ReLU(), torch.nn.Linear(256, 32))


def tiny_data() -> Any:
    import torch

    x = torch.randn(64, 32, generator=torch.Generator().manual_seed(2))
    return torch.utils.data.TensorDataset(x, x.roll(1, 1))


def values(model: Any) -> list[float]:
    import torch

    return torch.cat([p.detach().flatten().double() for p in model.parameters()]).tolist()


def leftovers() -> tuple[int, int]:
    """Threads and process groups."""
    import torch.distributed as dist

    groups = len(dist.distributed_c10d._world.pg_map) if dist.is_initialized() else 0
    return threading.active_count(), groups


def check(runs: list[dict[str, dict[str, Any]]]) -> None:
    """What every adapter's runs, by rank and method, have to be."""
    first = runs[0]
    for method in ("none", *METHODS):
        for other in runs[1:]:
            assert other[method]["values"] == first[method]["values"]  # on all ranks
    begin, plain = first["none"]["begin"], first["none"]["values"]

    def distance(a: list[float], b: list[float]) -> float:
        return sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5

    for method in METHODS:
        run = first[method]
        far = distance(run["values"], plain) / distance(begin, plain)
        assert 0 < far < (0.2 if method == "int8" else 1.1), (method, far)
        assert run["statistics"]["steps"] == STEPS
        assert run["statistics"]["ratio"] > (3 if method == "int8" else 5)
        for rank in runs:
            assert rank[method]["resumed"] == rank[method]["values"]  # bit for bit
            assert rank[method]["after"] == rank[method]["before"]  # nothing is left


# ---- PyTorch Lightning ----------------------------------------------------------------------


def lightning_trainer(folder: str, epochs: int = 3, **more: Any) -> Any:
    from lightning import pytorch as pl

    settings = {
        "accelerator": "cpu", "devices": 2, "strategy": "ddp", "logger": False,
        "max_epochs": epochs, "enable_progress_bar": False, "enable_model_summary": False,
        "accumulate_grad_batches": 2, "default_root_dir": folder, "num_sanity_val_steps": 0,
        "enable_checkpointing": False,
    }  # fmt: skip
    return pl.Trainer(**(settings | more))


def lightning_module() -> Any:
    from lightning import pytorch as pl

    import torch

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = tiny_model()

        def training_step(self, batch: Any) -> Any:
            return torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=1e-2)

        def train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(tiny_data(), batch_size=8)  # 4 batches a rank

    return Module()


def run_lightning(folder: str) -> dict[str, dict[str, Any]]:
    become_torchrun()
    from lightning.pytorch.callbacks import ModelCheckpoint

    from wirepress.torch.lightning import Compress

    done: dict[str, dict[str, Any]] = {}
    for method in ("none", *METHODS):
        module, found = lightning_module(), {}
        found["begin"] = values(module)
        keep = ModelCheckpoint(f"{folder}/{method}", "{epoch}", save_top_k=-1)
        compress = Compress(method)
        callbacks = [keep, compress] if method != "none" else []
        found["before"] = leftovers()
        trainer = lightning_trainer(
            folder, callbacks=callbacks, enable_checkpointing=bool(callbacks)
        )
        if method == METHODS[0]:  # the group first exists now
            trainer.strategy.connect(module)
            trainer.strategy.setup_environment()
            found["before"] = leftovers()
        trainer.fit(module)
        found["values"] = values(module)
        if callbacks:
            found["statistics"] = compress.state.statistics()
            found["after"] = leftovers()
            module = lightning_module()
            lightning_trainer(folder, callbacks=[Compress(method)]).fit(
                module, ckpt_path=f"{folder}/{method}/epoch=0.ckpt"
            )
            found["resumed"] = values(module)
        done[method] = found
    return done | {"refused": lightning_refusals(folder)}  # type: ignore[dict-item]


def lightning_refusals(folder: str) -> Any:
    from wirepress.errors import ParameterError
    from wirepress.torch.lightning import Compress

    said = []
    kept = f"{folder}/topk:ratio=0.05/epoch=0.ckpt"
    trainer = lightning_trainer(folder)
    trainer.fit(lightning_module())
    trainer.save_checkpoint(f"{folder}/without.ckpt")
    for callback, path in (
        (Compress("topk:ratio=0.05"), f"{folder}/without.ckpt"),
        (Compress("int8"), kept),
        (Compress("no-such-codec"), None),
    ):
        try:
            lightning_trainer(folder, callbacks=[callback]).fit(lightning_module(), ckpt_path=path)
            said.append("nothing")
        except ParameterError as error:
            said.append(str(error))
    said.append(lightning_sharded(folder))
    loose = Compress("topk:ratio=0.05", strict=False)
    lightning_trainer(folder, callbacks=[loose]).fit(
        lightning_module(), ckpt_path=f"{folder}/without.ckpt"
    )
    return said


def lightning_sharded(folder: str) -> str:
    from lightning.pytorch.strategies import ModelParallelStrategy

    from torch.distributed.fsdp import fully_shard
    from wirepress.errors import ParameterError
    from wirepress.torch.lightning import Compress

    module = lightning_module()
    module.configure_model = lambda: fully_shard(
        module.net, mesh=module.device_mesh["data_parallel"]
    )
    strategy = ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=1)
    try:
        lightning_trainer(folder, strategy=strategy, callbacks=[Compress()]).fit(module)
    except ParameterError as error:
        return str(error)
    return "nothing"


@pytest.mark.slow
def test_lightning(on_ranks: OnRanks, tmp_path: Path) -> None:
    need("lightning")
    runs = on_ranks(run_lightning, 2, str(tmp_path), timeout=TIMEOUT)
    check(runs)
    without, other, unknown, sharded = runs[0]["refused"]
    assert sharded.startswith("ModelParallelStrategy: the model is sharded")
    assert "holds no state of wirepress" in without and "strict=False" in without
    assert "settings" in other and "no-such-codec" in unknown
    assert runs[1]["refused"] == runs[0]["refused"]
    assert not list(tmp_path.glob("**/*.part"))


def run_lightning_group(folder: str) -> tuple[list[float], Any]:
    become_torchrun()
    from lightning.pytorch.strategies import DDPStrategy

    import wirepress.torch

    os.environ["WIREPRESS_TORCH_RECIPE"] = "int8"
    os.environ["WIREPRESS_TORCH_THRESHOLD"] = "1KiB"
    module = lightning_module()
    strategy = DDPStrategy(process_group_backend="wirepress")
    lightning_trainer(folder, strategy=strategy).fit(module)
    return values(module), wirepress.torch.statistics()


@pytest.mark.slow
def test_lightning_with_a_group_of_wirepress(on_ranks: OnRanks, tmp_path: Path) -> None:
    need("lightning")
    (first, traffic), (second, _) = on_ranks(run_lightning_group, 2, str(tmp_path), timeout=TIMEOUT)
    assert first == second
    assert traffic["all_reduce"].compressed_calls > 0


@pytest.mark.slow
def test_lightning_refuses_one_process(tmp_path: Path) -> None:
    code = """
import sys
from integrations.torch.test_adapters import lightning_module, lightning_trainer
from wirepress.torch.lightning import Compress
lightning_trainer(sys.argv[1], devices=1, strategy="auto", callbacks=[Compress()]).fit(
    lightning_module())
"""
    need("lightning")
    done = python(code, str(tmp_path))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("wirepress.errors.ParameterError: SingleDeviceStrategy: there is one pr")


# ---- Accelerate -----------------------------------------------------------------------------


def accelerated(
    method: str, begin: int, end: int, load: str = "", save: str = ""
) -> dict[str, Any]:
    """Steps begin to end, from what lies in `load`; after half of the steps `save`."""
    from accelerate import Accelerator

    import torch
    from wirepress.torch.accelerate import compress

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    before = leftovers()
    model = tiny_model()
    found: dict[str, Any] = {"begin": values(model), "before": before}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model, optimizer = accelerator.prepare(model, optimizer)
    state = compress(accelerator, model, method) if method != "none" else None
    if load:
        accelerator.load_state(load)
    for step in range(begin, end):
        if save and step == STEPS // 2:
            accelerator.save_state(save)
        for part in range(2):
            x, y = tiny_data()[16 * (step % 2) + 8 * part + 4 * accelerator.process_index :][:2]
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(x[:4]), y[:4])
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
    found["values"] = values(model)
    if state:
        found["statistics"] = state.statistics()
        state.close()
        found["after"] = leftovers()
        accelerator.save_state(f"{save or load}-closed")  # says so, and goes on
    accelerator.free_memory()
    return found


def run_accelerate(folder: str) -> dict[str, dict[str, Any]]:
    become_torchrun()
    from accelerate import Accelerator

    from wirepress.errors import ParameterError
    from wirepress.torch.accelerate import compress

    done = {"none": accelerated("none", 0, STEPS)}
    for method in METHODS:
        path = f"{folder}/{method}"
        done[method] = accelerated(method, 0, STEPS, save=path)
        done[method]["resumed"] = accelerated(method, STEPS // 2, STEPS, load=path)["values"]
    said = []
    missing = Path(folder) / "topk:ratio=0.05" / f"wirepress_0_rank_{1}.pt"
    if os.environ["RANK"] == "1":
        missing.unlink()
    for path, method in ((f"{folder}/int8", "int4"), (str(missing.parent), "topk:ratio=0.05")):
        try:
            accelerated(method, 0, 1, load=path)
        except ParameterError as error:
            said.append(str(error))
    try:
        compress(Accelerator(cpu=True), tiny_model())
    except ParameterError as error:
        said.append(str(error))
    done["refused"] = said  # type: ignore[assignment]
    return done


@pytest.mark.slow
def test_accelerate(on_ranks: OnRanks, tmp_path: Path) -> None:
    need("accelerate")
    runs = on_ranks(run_accelerate, 2, str(tmp_path), timeout=TIMEOUT)
    check(runs)
    settings, missing, unprepared = runs[0]["refused"]
    assert "settings" in settings
    assert "rank 1: " in missing and "has no wirepress_0_rank_1.pt" in missing
    assert unprepared == "accelerator.prepare did not return this Sequential; compress what it did"
    assert runs[1]["refused"][1:] == runs[0]["refused"][1:]


@pytest.mark.slow
def test_accelerate_refuses_one_process() -> None:
    code = """
import torch
from accelerate import Accelerator
from wirepress.torch.accelerate import compress
accelerator = Accelerator(cpu=True)
compress(accelerator, accelerator.prepare(torch.nn.Linear(2, 2)))
"""
    need("accelerate")
    done = python(code)
    assert done.returncode == 1
    assert "wirepress.errors.ParameterError: there is one process" in done.stderr


# ---- Hugging Face Trainer -------------------------------------------------------------------


def hugging_trainer(folder: str, **more: Any) -> Any:
    import transformers

    import torch

    transformers.logging.set_verbosity_error()
    torch.manual_seed(1)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=128, n_positions=16, n_embd=64, n_layer=1, n_head=2,
            bos_token_id=0, eos_token_id=0,
        )
    )  # fmt: skip
    ids = torch.randint(128, (64, 16), generator=torch.Generator().manual_seed(2))
    settings = {
        "output_dir": folder, "use_cpu": True, "ddp_backend": "gloo", "max_steps": STEPS,
        "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "report_to": [],
        "save_steps": STEPS // 2, "logging_steps": STEPS, "disable_tqdm": True,
        "learning_rate": 1e-3,
    }  # fmt: skip
    return transformers.Trainer(
        model,
        transformers.TrainingArguments(**(settings | more)),
        train_dataset=[{"input_ids": row, "labels": row} for row in ids],
    )


def run_transformers(folder: str) -> dict[str, dict[str, Any]]:
    become_torchrun()
    from wirepress.errors import ParameterError
    from wirepress.torch.transformers import compress

    done: dict[str, dict[str, Any]] = {}
    for method in ("none", *METHODS):
        path = f"{folder}/{method}"
        trainer = hugging_trainer(path)
        found: dict[str, Any] = {"begin": values(trainer.model), "before": leftovers()}
        if method != "none":
            callback = compress(trainer, method)
        trainer.train()
        found["values"] = values(trainer.model)
        if method != "none":
            found["statistics"] = callback.state.statistics()
            found["after"] = leftovers()
            found["log"] = trainer.state.log_history[-1]
            trainer = hugging_trainer(path)
            compress(trainer, method)
            trainer.train(resume_from_checkpoint=f"{path}/checkpoint-{STEPS // 2}")
            found["resumed"] = values(trainer.model)
            trainer.args.max_steps = STEPS + 1  # the same Trainer trains on, from its last
            trainer.train(resume_from_checkpoint=True)
        done[method] = found
    said = []
    plain = f"{folder}/none/checkpoint-{STEPS // 2}"
    for method, more in (("int8", {}), ("no-such-codec", {})):
        try:
            trainer = hugging_trainer(f"{folder}/none", **more)
            compress(trainer, method)
            trainer.train(resume_from_checkpoint=plain)
        except ParameterError as error:
            said.append(str(error))
    done["refused"] = said  # type: ignore[assignment]
    return done


@pytest.mark.slow
def test_transformers(on_ranks: OnRanks, tmp_path: Path) -> None:
    need("transformers", "accelerate")
    runs = on_ranks(run_transformers, 2, str(tmp_path), timeout=TIMEOUT)
    check(runs)
    assert runs[0]["int8"]["log"]["wirepress_ratio"] > 3
    without, unknown = runs[0]["refused"]
    assert "was saved without wirepress" in without and "no-such-codec" in unknown
    for method in METHODS:
        saved = {path.name for path in (tmp_path / method / f"checkpoint-{STEPS}").iterdir()}
        assert {"wirepress_0_rank_0.pt", "wirepress_0_rank_1.pt"} <= saved


@pytest.mark.slow
def test_transformers_refuses_one_process(tmp_path: Path) -> None:
    code = """
import sys
from integrations.torch.test_adapters import hugging_trainer
from wirepress.torch.transformers import compress
compress(hugging_trainer(sys.argv[1], ddp_backend=None))
"""
    need("transformers", "accelerate")
    done = python(code, str(tmp_path))
    assert done.returncode == 1
    assert "wirepress.errors.ParameterError: there is one process" in done.stderr


# ---- states in files ------------------------------------------------------------------------


def run_files(folder: str) -> list[str]:
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel
    from wirepress.errors import ParameterError
    from wirepress.torch import checkpoints, compress

    rank = dist.get_rank()
    model = DistributedDataParallel(tiny_model())
    state = compress(model, "topk:ratio=0.05")
    group = model.process_group

    def step(n: int) -> list[float]:
        for i in range(n):
            x, y = tiny_data()[16 * i + 8 * rank : 16 * i + 8 * rank + 8]
            model.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
        return [p.grad.sum().item() for p in model.parameters()]

    def said(call: Callable[[], Any]) -> str:
        try:
            call()
        except ParameterError as error:
            return str(error)
        return "nothing"

    step(2)
    checkpoints.save_file(state, folder, group)
    after = step(1)
    mine = checkpoints.file_of(folder, rank)
    checkpoints.load_file(state, folder, group)
    assert step(1) == after

    def load(strict: bool = True) -> str:
        return said(lambda: checkpoints.load_file(state, folder, group, strict=strict))

    answers = []
    whole = mine.read_bytes()
    for content in (whole[:-100], b"", whole.replace(b"P", b"Q")):
        if rank == 1:
            mine.write_bytes(content)
        answers += [load(), load(strict=False)]
    if rank == 1:
        torch.save([1], mine)
    answers.append(load())
    if rank == 1:
        mine.unlink()
        mine.mkdir()
    answers += [load(), said(lambda: checkpoints.save_file(state, folder, group))]
    dist.barrier()
    sharded = fully_shard(tiny_model(), mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))
    answers += [said(lambda m=m: checkpoints.ddp_model(m)) for m in (sharded, tiny_model())]
    step(1)  # the state still works
    state.close()
    return answers


def test_states_of_ranks_in_files(on_ranks: OnRanks, tmp_path: Path) -> None:
    """A file that cannot be read or written on one rank is an error on all."""
    first, second = on_ranks(run_files, 2, str(tmp_path))
    assert first == second
    for strict, loose in (first[0:2], first[2:4], first[4:6]):
        assert "rank 1: " in strict and "wirepress_0_rank_1.pt cannot be read: " in strict
        assert loose == "nothing"
    assert first[6].endswith("rank_1.pt is no state of wirepress: it holds list")
    assert "rank_1.pt cannot be read: IsADirectoryError" in first[7]
    assert "rank_1.pt could not be written" in first[8]
    assert first[9].startswith("the model is sharded") and "compress_fsdp" in first[9]
    assert first[10].startswith("the model is Sequential; wirepress compresses")


# ---- all ------------------------------------------------------------------------------------


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[2]
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    environment |= {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, env=environment, cwd=root, timeout=TIMEOUT,
    )  # fmt: skip


def test_no_framework_is_imported_unasked() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    code = (
        "import sys, wirepress.torch\n"
        "print(sorted({'lightning', 'pytorch_lightning', 'transformers', 'accelerate'} & "
        "sys.modules.keys()))"
    )
    assert python(code).stdout == "[]\n"


@pytest.mark.parametrize("name", ["lightning", "accelerate", "transformers"])
def test_what_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    for package in ("lightning", "pytorch_lightning", "accelerate", "transformers"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "lightning.pytorch", raising=False)
    monkeypatch.delitem(sys.modules, f"wirepress.torch.{name}", raising=False)
    with pytest.raises(ImportError, match=rf"wirepress.torch.{name} needs .*pip install"):
        importlib.import_module(f"wirepress.torch.{name}")
