# SPDX-License-Identifier: Apache-2.0
"""Engine compressdev in processes of its own, over DPDK's software drivers."""

import fcntl
import os
import shutil
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import wirepress
from python.tests.device_scripts import HEAD, run

ENGINE = {engine.name: engine for engine in wirepress.engines()}.get("compressdev")
if ENGINE is None or not ENGINE.available:
    pytest.skip(ENGINE.reason if ENGINE else "no engine compressdev", allow_module_level=True)


@pytest.mark.parametrize("driver", ["isal", "zlib"])
def test_silent_and_affinity_kept(driver: str) -> None:
    run(
        f"""
round_trip("cpu")
assert not loaded() and state() == ""
cores, threads = os.sched_getaffinity(0), len(os.listdir("/proc/self/task"))
for recipe in ("deflate", "zlib", "gzip", "shuffle:4+gzip"):
    round_trip("compressdev:{driver}", recipe, verify=True, threads=1)
assert loaded() and os.sched_getaffinity(0) == cores
assert len(os.listdir("/proc/self/task")) <= threads + 1
assert state().startswith("{driver} (compress_{driver})") and ", 0 expanded" not in state()
"""
    )


def test_sz3_is_split() -> None:
    """SZ3's loss on the cores, what is lossless on the device. Its codes have no known size, so a
    format with a sum is expanded there, and raw deflate on the cores."""
    run(
        """
import numpy
x = numpy.linspace(0, 9, 65536, dtype="f4").reshape(64, 1024)
values = numpy.sin(x) + numpy.random.default_rng(1).normal(0, 1e-3, x.shape).astype("f4")
for last, expands in (("zlib", True), ("gzip", True), ("deflate", False)):
    recipe = "sz3:abs=1e-4+" + last
    split = wirepress.Compressor(recipe, engine="compressdev:isal!", block_size="32KiB", threads=1)
    before = done()
    frame = split.compress(values)
    back = split.decompress(frame)
    assert abs(back - values).max() <= 1e-4
    assert (back == wirepress.decompress(frame)).all()
    cores = wirepress.Compressor(recipe, block_size="32KiB").compress(values)
    assert (split.decompress(cores) == back).all()
    compressed, expanded = (now - then for now, then in zip(done(), before))
    assert 1000 < compressed < values.nbytes and (expanded >= compressed) == expands, done()
assert "the size of what the code expands to is not known" in state()
"""
    )


def test_blocks_are_divided() -> None:
    run(
        """
from re import search
threads = len(os.listdir("/proc/self/task"))
divided = wirepress.Compressor("zlib", engine="cores+compressdev:isal!", block_size="32KiB")
assert wirepress.decompress(divided.compress(data), raw=True) == data
assert len(os.listdir("/proc/self/task")) >= threads + 4
assert int(search(r"; ([0-9]+) jobs by the device", state())[1]) > 0
"""
    )


def test_a_child_uses_the_cores() -> None:
    run(
        """
compressor = wirepress.Compressor("gzip", engine="compressdev", block_size="32KiB", threads=1)
frame = compressor.compress(data)
child = os.fork()
if child == 0:
    good = compressor.decompress(compressor.compress(data), raw=True) == data
    os._exit(0 if good and "belongs to the parent" in state() else 1)
assert os.waitpid(child, 0)[1] == 0
assert compressor.decompress(frame, raw=True) == data and "parent" not in state()
"""
    )


def test_bad_input_is_one_sentence() -> None:
    """With ! it is an error; without, the cores do the device's jobs, and `refusal` says why."""
    run(
        """
def sentence(engine):
    try:
        wirepress.Compressor(engine=engine)
    except wirepress.ParameterError as error:
        return str(error)
assert "no driver compress_none" in sentence("compressdev:none!")
assert sentence("compressdev:none") is None and "librte-compress-" in state("refusal")
round_trip("compressdev:none")
assert state() == ""
assert "cpu has no devices" in sentence("cores+cpu")
assert 'engine with devices "cpu:nothing!"' in sentence("cpu:nothing!")
round_trip("compressdev:zlib!")
assert state("refusal") == ""
assert "has device zlib" in sentence("compressdev:isal!")
assert sentence("compressdev:isal") is None and "has device zlib" in state("refusal")
"""
    )


START = """
import ctypes, ctypes.util
def start_dpdk():
    "As a program that uses DPDK itself: 0 or more where it started."
    words = [b"host", b"--no-huge", b"--no-shconf", b"--no-telemetry", b"--no-pci",
             b"--log-level=*:1", b"-m", b"16"]
    arguments = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    name = ctypes.util.find_library("rte_eal")
    return ctypes.CDLL(name, ctypes.RTLD_GLOBAL).rte_eal_init(len(words), arguments)
"""


def test_a_program_that_uses_dpdk_itself() -> None:
    """DPDK starts once in a process: the second one to come is told, and the first goes on."""
    run(
        START
        + """
assert start_dpdk() >= 0
round_trip("compressdev:isal")
assert "this program uses DPDK itself" in state("refusal") and state() == ""
"""
    )
    run(
        START
        + """
round_trip("compressdev:isal!")
before = done()
quiet, errors = os.open(os.devnull, os.O_WRONLY), os.dup(2)
os.dup2(quiet, 2)  # DPDK prints that it was started before
assert start_dpdk() < 0
os.dup2(errors, 2)
round_trip("compressdev:isal!")
assert all(now > then for now, then in zip(done(), before)) and state("refusal") == ""
"""
    )


MOUNT = ["unshare", "-m", "sh", "-c"]


@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run([*MOUNT, "mount -t tmpfs none /sys"], capture_output=True).returncode != 0,
    reason="no right to mount over /sys",
)
def test_without_sys() -> None:
    script = HEAD + 'round_trip("compressdev"); assert "mount it" in state("refusal")'
    words = [*MOUNT, 'mount -t tmpfs none /sys && exec "$0" "$@"', sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# DPDK's folder of drivers without those of memory pools.
NO_POOLS = """cp -a $1/. $2 && rm $2/librte_mempool_ring* && mount --bind $2 $1 && shift 2
"""


@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run([*MOUNT, "mount -t tmpfs none /sys"], capture_output=True).returncode != 0,
    reason="no right to mount",
)
def test_without_memory_pools(tmp_path: Path) -> None:
    folders = sorted(Path("/usr/lib").glob("*/dpdk/pmds-*"))
    if len(folders) != 1:
        pytest.skip("DPDK's folder of drivers is elsewhere")
    script = HEAD + 'round_trip("compressdev"); assert "librte-mempool-ring" in state("refusal")'
    words = [*MOUNT, NO_POOLS + 'exec "$@"', "sh", str(folders[0]), str(tmp_path)]
    done = subprocess.run(
        [*words, sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Devices that are there by their names alone: the file system of the kernel's lists is covered.
BUS = """mount -t tmpfs none /sys/bus/pci/devices && cd /sys/bus/pci/devices
for driver in none virtio-pci vfio-pci mlx5_core; do
  i=$((i + 1)) && mkdir 0000:0$i:00.0 && ln -s ../7 0000:0$i:00.0/iommu_group
  [ $driver = none ] || ln -s ../../$driver 0000:0$i:00.0/driver
done
"""
RUN = 'exec "$0" "$@"\n'


def refused_as_user(address: str, why: str, before: str = "") -> None:
    """An ordinary user names the device behind BUS, and the sentence says why."""
    script = (
        HEAD
        + f"""
round_trip("cpu")
os.setgid(65534)
os.setuid(65534)
round_trip("compressdev:{address}")
assert {why!r} in state("refusal"), state("refusal")
"""
    )
    words = [*MOUNT, BUS + before + RUN, sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


needs_bus = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run([*MOUNT, BUS + RUN, "true"], capture_output=True).returncode != 0,
    reason="no right to mount over /sys",
)


@needs_bus
@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("0000:09:00.0", "there is no device 0000:09:00.0 on the PCI bus"),
        ("0000:01:00.0", "has driver none: bind it with dpdk-devbind.py -b vfio-pci 0000:01:00.0"),
        ("0000:02:00.0", "has driver virtio-pci: bind it"),
        ("0000:03:00.0", "may not open /dev/vfio/7, the group of 0000:03:00.0: No such file"),
        ("0000:04:00.0", "install rdma-core"),
        ("qat", "name the device by its address"),
        ("isal.so", "names no device"),
    ],
)
def test_a_device_that_cannot_be_had(address: str, why: str) -> None:
    """One sentence says what is missing; an ordinary user gets it, too."""
    refused_as_user(address, why)


# The group's file is a terminal that somebody has for himself: it, too, is busy for others.
GROUP = """mkdir /sys/bus/pci/devices/pts && mount --bind /dev/pts /sys/bus/pci/devices/pts
mount -t tmpfs none /dev && mkdir /dev/vfio /dev/pts && mknod -m 666 /dev/null c 1 3
mount --bind /sys/bus/pci/devices/pts /dev/pts && ln -s {terminal} /dev/vfio/7
"""


@needs_bus
def test_a_device_that_another_process_has() -> None:
    ours, theirs = os.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCEXCL)
        terminal = os.ttyname(theirs)
        os.chmod(terminal, 0o666)
        why = "another process has 0000:03:00.0: /dev/vfio/7 is busy"
        refused_as_user("0000:03:00.0", why, GROUP.format(terminal=terminal))
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the user takes root")
def test_three_processes_of_an_ordinary_user() -> None:
    script = (
        HEAD
        + """
round_trip("cpu")  # what is loaded late may lie where only root reads
os.setgid(65534)
os.setuid(65534)
round_trip("compressdev:isal")
"""
    )
    several = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    assert [process.wait() for process in several] == [0, 0, 0]


KIT = Path(__file__).parents[2] / "build" / "dev" / "engines" / "compressdev"
FAULTY = KIT / "libwirepress_compressdev_faulty.so"


@pytest.mark.skipif(not FAULTY.is_file(), reason="the faulty device is built by preset dev")
def test_the_store_outlives_faults(tmp_path: Path) -> None:
    """Steps through a device that fails in every way: each comes back bit for bit."""
    run(
        f"""
from wirepress import FrameStore
import numpy
for seed in range(4):
    rng = numpy.random.default_rng(seed)
    steps = [numpy.cumsum(rng.integers(0, 4, (64, 1024)), 1).astype("int32") for _ in range(8)]
    path = {str(tmp_path)!r} + f"/{{seed}}.wps"
    pid = os.fork()  # a process has one device
    if pid == 0:
        more = {{"block_size": "32KiB", "verify": True}}
        with FrameStore(path, (64, 1024), "int32", recipe="zlib", policy="compressed",
                        engine=f"compressdev:faulty-{{seed}}!", options=more) as store:
            for i, step in enumerate(steps):
                store.put(i, step)
            good = all((store.get(i) == steps[i]).all() for i in range(8))
        if not good or "; 0 jobs by" in state():
            print(seed, good, state(), flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
""",
        env=os.environ | {"LD_LIBRARY_PATH": str(KIT)},  # a wheel has no devices of the test kit
    )
