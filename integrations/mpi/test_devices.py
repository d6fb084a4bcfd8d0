# SPDX-License-Identifier: Apache-2.0
"""Engines below MPI: compressdev with faults, devices that are not there, several ranks; and the
simulated FPGA cores."""

from __future__ import annotations

import json
import re

import pytest

import wirepress

KINDS = 11  # of faults, engines/compressdev/faulty_device.hpp
SETTINGS = {
    "WIREPRESS_MPI_TRUST": "1",
    "WIREPRESS_MPI_SAME_HOST": "1",
    "WIREPRESS_MPI_THRESHOLD": "1",
    "WIREPRESS_VERIFY": "on",
}


def exchange(mpi, engine: str, report, *, n: int = 100, seed: int = 1, codec="zlib", ranks=2):
    """n messages, every byte of which must be right; the ranks' reports and what was said."""
    mine = SETTINGS | {
        "LD_PRELOAD": str(mpi.library),
        "WIREPRESS_ENGINE": engine,
        "WIREPRESS_MPI_CODEC": codec,
        "WIREPRESS_MPI_REPORT": str(report),
    }
    done = mpi.start([mine] * ranks, [mpi.build("devices.c"), str(n), str(seed)], 120)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"devices (\d+) right of (\d+), slowest", done.stdout)
    assert found and int(found[1]) == int(found[2]) == n, done.stdout + done.stderr
    return json.loads(report.read_text())["ranks"], done.stderr


def bytes_of(ranks, name: str) -> int:
    return sum(call.get(name, 0) for rank in ranks for call in rank["calls"].values())


def need(mpi, module: str, why: str) -> None:
    folder = mpi.library.parents[2] / "engines" / "compressdev"
    if not (folder / f"libwirepress_compressdev{module}.so").is_file():
        pytest.skip(why)


@pytest.fixture
def faulty(mpi):
    need(mpi, "_faulty", "the test kit's device is not built")


@pytest.fixture
def isal(mpi):
    need(mpi, "", "engine compressdev has no module here: libdpdk-dev was not found")


@pytest.mark.parametrize("codec", ["deflate", "zlib", "gzip"])
def test_faults_mixed(mpi, faulty, tmp_path, codec):
    ranks, said = exchange(mpi, "compressdev:faulty-3!", tmp_path / "r", codec=codec)
    assert bytes_of(ranks, "device_bytes") > 0
    assert said == ""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 24, 6))
def test_ten_thousand_messages(mpi, faulty, tmp_path, first):
    """Each kind alone, then all kinds by seed: 24 jobs of 420 messages."""
    for i in range(first, first + 6):
        device = f"faulty-{i}-{i + 1}" if i < KINDS else f"faulty-{i}"
        codec = ("deflate", "zlib", "gzip")[i % 3]
        ranks, _ = exchange(
            mpi, f"compressdev:{device}!", tmp_path / "r", n=420, seed=i, codec=codec
        )
        # Where the first job of all is lost the device is off from then on.
        off = "the device is off" in ranks[0]["engine"]["state"]
        assert bytes_of(ranks, "device_bytes") > 0 or (off and "-2-3" in device)


def test_three_ranks_of_a_host(mpi, isal, tmp_path):
    ranks, said = exchange(mpi, "compressdev:isal!", tmp_path / "r", ranks=3)
    assert said == "" and bytes_of(ranks, "device_bytes") > 0
    for rank in ranks:
        assert rank["engine"]["name"] == "compressdev:isal!" and rank["engine"]["refusal"] == ""
        assert rank["engine"]["state"].startswith("isal (compress_isal): DEFLATE")


def test_a_virtual_device(mpi, tmp_path):
    """Every rank's report says that it is one."""
    need(mpi, "_virtual", "virtual devices are not built")
    ranks, said = exchange(mpi, "compressdev:virtual-bluefield2!", tmp_path / "r", n=30)
    assert said == "" and bytes_of(ranks, "device_bytes") > 0
    for rank in ranks:
        assert rank["engine"]["state"].startswith("virtual-bluefield2 (virtual: BlueField-2")


def test_a_device_that_is_not_there(mpi, faulty, tmp_path):
    """The job goes on with the cores, and one line says why."""
    ranks, said = exchange(mpi, "compressdev:faulty", tmp_path / "r", n=10)
    assert said == (
        "wirepress: compressdev:faulty: faulty is not faulty-SEED or faulty-SEED-KIND; "
        "the cores do its jobs\n"
    )
    assert bytes_of(ranks, "device_bytes") == 0 < bytes_of(ranks, "raw_bytes")
    assert all("is not faulty-SEED" in rank["engine"]["refusal"] for rank in ranks)


def test_a_device_that_must_be_there(mpi, faulty):
    """With ! the job ends."""
    mine = SETTINGS | {
        "LD_PRELOAD": str(mpi.library),
        "WIREPRESS_ENGINE": "compressdev:faulty!",
        "WIREPRESS_MPI_CODEC": "zlib",
    }
    done = mpi.start([mine] * 2, [mpi.build("devices.c"), "10"], 60)
    assert "right of" not in done.stdout
    assert "is not faulty-SEED or faulty-SEED-KIND; the job ends" in done.stderr


need_cores = pytest.mark.skipif(
    not any(engine.name == "rtl" and engine.available for engine in wirepress.engines()),
    reason="built without the simulated cores",
)


@need_cores
@pytest.mark.parametrize("codec", ["lz4", "snappy", "zstd:1", "bx:m=23"])
def test_simulated_cores_carry_messages(mpi, tmp_path, codec):
    ranks, said = exchange(mpi, "rtl", tmp_path / "r", n=10, codec=codec)
    assert said == ""
    assert bytes_of(ranks, "compressed_messages") > 0 == bytes_of(ranks, "cores_bytes")


def hash_of(mpi, report, **settings: str) -> tuple[str, int]:
    """Of what arrives in a program of three ranks, and the messages that were compressed."""
    mine = SETTINGS | {"WIREPRESS_MPI_REPORT": str(report), **settings}
    said = mpi.run(3, [mpi.build("hashes.c"), "2"], mine, 240)
    found = re.search("hash ([0-9a-f]{16})", said)
    assert found, said
    ranks = json.loads(report.read_text())["ranks"]
    return found[1], bytes_of(ranks, "compressed_messages")


# A codec and the error that results may have.
IN_THE_LOOP = [
    ("lz4", "none"),
    ("snappy", "none"),
    ("zstd:1", "none"),
    ("bx:m=23", "none"),
    ("bx", "bits:6"),
    ("fre", "bits:6"),
    ("zfp", "abs:1e-3"),
]


@need_cores
@pytest.mark.parametrize(("codec", "error"), IN_THE_LOOP)
def test_a_program_gets_the_same_from_simulated_cores(mpi, tmp_path, codec, error):
    """To the last bit what the processor's kernels give; without --error, what MPI gives."""
    settings = {"WIREPRESS_MPI_CODEC": codec, "WIREPRESS_MPI_ERROR": error}
    by_cores, n = hash_of(mpi, tmp_path / "rtl", WIREPRESS_ENGINE="rtl", **settings)
    by_library, n_library = hash_of(mpi, tmp_path / "cpu", WIREPRESS_ENGINE="cpu", **settings)
    plain, n_plain = hash_of(mpi, tmp_path / "off", WIREPRESS_MPI_COMPRESS="off")
    assert by_cores == by_library and n > 0 and n_library > 0 == n_plain
    assert (by_cores == plain) == (error == "none")


@pytest.mark.parametrize("codec", ["zlib", "zeros", "auto"])
def test_memory_of_a_gpu(mpi, tmp_path, codec):
    """By turns none, one and both ranks have their buffers there, where the cores would end."""
    run_in_device_memory(mpi, tmp_path, codec, ranks=2)


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["zlib", "zeros"])
def test_memory_of_a_gpu_on_three_ranks(mpi, tmp_path, codec):
    run_in_device_memory(mpi, tmp_path, codec, ranks=3)


def run_in_device_memory(mpi, tmp_path, codec: str, *, ranks: int) -> None:
    for which in ("some", "all"):
        report = tmp_path / which
        mine = SETTINGS | {
            "LD_PRELOAD": str(mpi.library),
            "WIREPRESS_MPI_CODEC": codec,
            "WIREPRESS_MPI_REPORT": str(report),
            "WIREPRESS_MPI_NONBLOCKING": "on",
        }
        program = [mpi.build("device_memory.c", "-ldl", "-pthread"), "1", which]
        done = mpi.start([mine] * ranks, program, 240)
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"device memory: \d\d+ buffers, all right", done.stdout), done.stdout
    # Where no buffer lies on the cores, all that was compressed came from a device. What auto sends
    # raw depends on times.
    reports = json.loads(report.read_text())["ranks"]
    assert bytes_of(reports, "compressed_messages") > 0 or codec == "auto"
    if codec == "auto":
        return
    for call in CODED_THERE:
        done = [rank["calls"][call] for rank in reports[:2] if call in rank["calls"]]
        there = sum(call.get("device_bytes", 0) for call in done)
        assert (there > 0) == (codec == "zeros"), (call, done)
        assert codec == "zeros" or sum(call.get("cores_bytes", 0) for call in done) > 0, (
            call,
            done,
        )


# What a device codes and expands where the recipe has a kernel there.
CODED_THERE = [
    "MPI_Send",
    "MPI_Ssend",
    "MPI_Isend",
    "MPI_Sendrecv",
    "MPI_Sendrecv_replace",
    "MPI_Send_init",
    "MPI_Recv",
    "MPI_Irecv",
    "MPI_Recv_init",
    "MPI_Bcast",
    "MPI_Allreduce",
    "MPI_Reduce",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Neighbor_alltoallw",
]
# Of those the ones in which a node's ranks have copies for each other.
BY_NODES = ["MPI_Bcast", "MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter", "MPI_Allgather"]


def test_memory_of_a_gpu_on_nodes_with_several_ranks(mpi, rendezvous_class):
    with rendezvous_class(3, [0, 1, 1]) as server:
        settings = server.settings | {
            "LD_PRELOAD": str(mpi.library),
            "WIREPRESS_MPI_CODEC": "zeros",
            "WIREPRESS_MPI_THRESHOLD": "1",
            "WIREPRESS_VERIFY": "on",
        }
        program = [mpi.build("device_memory.c", "-ldl", "-pthread"), "0", "all"]
        done = mpi.start([settings] * 3, program, 240)
        assert done.returncode == 0, done.stdout + done.stderr
    reports = [json.loads(server.reports[rank])["calls"] for rank in range(3)]
    # The first is alone on its node, the other two have a copy for each other.
    for call in BY_NODES:
        assert reports[0][call]["device_bytes"] > 0, call
        assert not any(rank[call].get("device_bytes") for rank in reports[1:]), call
    # Of messages between pairs those to other nodes need none.
    for call in ("MPI_Gather", "MPI_Alltoall", "MPI_Alltoallv"):
        assert any(rank[call].get("device_bytes") for rank in reports[1:]), call


@pytest.mark.parametrize("collectives", ["on", "off"])
def test_memory_of_a_gpu_inside_a_node(mpi, rendezvous_class, collectives):
    """MPI runs these calls; it does not reach the buffers."""
    with rendezvous_class(3, [0, 1, 1]) as server:
        mine = {"WIREPRESS_MPI_COLLECTIVES": collectives}
        program = [mpi.build("inside.c", "-ldl")]
        assert "ok inside" in mpi.run(3, program, server.settings | mine)


@pytest.mark.parametrize("nodes", [[0, 0], [0, 1]])
def test_a_driver_that_comes_late(mpi, rendezvous_class, nodes):
    """While no library is loaded nobody asks about addresses; a driver is asked at once."""
    if b"cuPointerGetAttribute" not in mpi.library.read_bytes():
        pytest.skip("the module was built without a CUDA compiler")
    libraries = [
        mpi.build(source, "-shared", "-fPIC", f"-Wl,-soname,{name}")
        for source, name in (("plugin.c", "libplugin.so"), ("driver.c", "libcuda.so.1"))
    ]
    program = [mpi.build("late_driver.c", "-ldl"), *libraries]
    with rendezvous_class(2, nodes) as server:
        assert "ok late driver" in mpi.run(2, program, server.settings)


def test_a_chain_in_memory_of_a_gpu(mpi, tmp_path):
    """Its ends have nobody to receive from, or to send to."""
    mine = SETTINGS | {
        "LD_PRELOAD": str(mpi.library),
        "WIREPRESS_MPI_CODEC": "zeros",
        "WIREPRESS_MPI_REPORT": str(tmp_path / "report"),
    }
    done = mpi.start([mine] * 3, [mpi.build("shifts.c", "-ldl"), "chain", "device"], 120)
    assert done.returncode == 0 and "ok shifts" in done.stdout, done.stdout + done.stderr


def run_short_of_memory(mpi, report, *words: str) -> tuple[list, str]:
    """The ranks' reports, and the one sentence that was said."""
    mine = SETTINGS | {
        "LD_PRELOAD": f"{mpi.library}:{mpi.build('memory.c')}",
        "WIREPRESS_MPI_CODEC": "zlib",
        "WIREPRESS_MPI_CHUNK": "512KiB",  # pieces are as large as what is refused
        "WIREPRESS_MPI_REPORT": str(report),
    }
    done = mpi.start([mine] * 2, [mpi.build("room.c", "-ldl"), *words], 120)
    assert done.returncode == 0 and "ok room" in done.stdout, done.stdout + done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("wirepress: rank 1:")]
    assert len(said) == 1, done.stderr
    ranks = json.loads(report.read_text())["ranks"]
    assert ranks[0]["events"]["no_memory"] == 0 < ranks[1]["events"]["no_memory"]
    return ranks, said[0]


def test_no_memory_beside_a_buffer(mpi, tmp_path):
    """What MPI must not have is refused with an error and a sentence, and works with memory."""
    ranks, said = run_short_of_memory(mpi, tmp_path / "report")
    assert "no memory for a message of 300000 bytes" in said
    assert ranks[1]["events"]["in_pieces"] > 0


def test_no_memory_for_a_copy(mpi, tmp_path):
    _, said = run_short_of_memory(mpi, tmp_path / "report", "sends")
    assert "no memory for a copy of a message of 300000 bytes, which MPI does not reach" in said


def test_no_memory_for_pieces_that_nobody_takes(mpi, tmp_path):
    """Whose receiver waits for the sender: the message is lost, and the ranks go on."""
    ranks, said = run_short_of_memory(mpi, tmp_path / "report", "late")
    assert "no memory for copies of a message in pieces" in said
    assert ranks[1]["events"]["in_pieces"] == 2
