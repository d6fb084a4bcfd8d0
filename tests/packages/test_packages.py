# SPDX-License-Identifier: Apache-2.0
"""What can be said of packages unbuilt; `make package-check` installs and uses them."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.modules import load

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "packaging" / "spack" / "package.py"


@pytest.fixture(scope="module")
def make_wheel():
    pytest.importorskip("elftools", reason="scripts/setup release installs auditwheel")
    return load(ROOT / "scripts/make_wheel.py")


def library(folder: Path, name: str, *flags: str) -> bytes:
    path = folder / name
    command = ["cc", "-shared", "-nostdlib", "-o", path, "-x", "c", "/dev/null", *flags]
    subprocess.run(command, check=True)
    return path.read_bytes()


def test_wheel_refuses_what_stays_behind(make_wheel, tmp_path):
    other = tmp_path / "libother.so"
    library(tmp_path, "libother.so", f"-Wl,-soname,{other.name}")
    needs = ("-x", "none", "-Wl,--no-as-needed", str(other))
    data = library(tmp_path, "libx.so", *needs)
    (found,) = make_wheel.problems([make_wheel.read_module("wirepress/libx.so", data)])
    assert found == "wirepress/libx.so needs libother.so, which is not in the wheel"
    both = [
        make_wheel.read_module("wirepress/libx.so", data),
        make_wheel.read_module("wirepress.libs/libother.so", other.read_bytes()),
    ]
    assert make_wheel.problems(both) == []


@pytest.mark.parametrize("folder", ["/usr/lib/mpi", "$ORIGIN/../lib:/opt/mpi"])
@pytest.mark.parametrize("kind", ["--enable-new-dtags", "--disable-new-dtags"])
def test_wheel_refuses_folders_of_this_machine(make_wheel, tmp_path, folder, kind):
    data = library(tmp_path, "libx.so", f"-Wl,-rpath,{folder},{kind}")
    (found,) = make_wheel.problems([make_wheel.read_module("libx.so", data)])
    assert folder.split(":")[-1] in found and "of this machine" in found


def test_wheel_takes_mpi_and_what_lies_inside(make_wheel, tmp_path):
    for soname in make_wheel.MPI:
        library(tmp_path, soname, f"-Wl,-soname,{soname}")
        needs = ("-x", "none", "-Wl,--no-as-needed", str(tmp_path / soname))
        data = library(tmp_path, "libx.so", *needs, "-Wl,-rpath,$ORIGIN/../wirepress.libs")
        module = make_wheel.read_module("libx.so", data)
        assert module.needed == [soname] and make_wheel.problems([module]) == []


def test_wheel_knows_every_mpi(make_wheel):
    libraries = load(ROOT / "python/wirepress/launch/mpi_libraries.py")
    assert set(make_wheel.MPI) == set(libraries.FAMILIES)


# ---- Spack -----------------------------------------------------------------------------------

SPACK_NAMES = {"deflate": "libdeflate", "isal": "isa-l", "xxhash.h": "xxhash"}
NOT_OF_SPACK = {"Threads", "GTest", "Python", "share"}


def depended() -> dict[str, str]:
    """By package, the requirement: what the recipe's depends_on and extends say."""
    found = {}
    for node in ast.walk(ast.parse(RECIPE.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("depends_on", "extends"):
            assert isinstance(node.args[0], ast.Constant)
            name, _, version = str(node.args[0].value).partition("@")
            found[name] = version or found.get(name, "")
    return found


def looked_for() -> set[str]:
    """What CMake needs that a user installs: wpr_find_library, find_path and find_package."""
    found = set()
    for path in [ROOT / "CMakeLists.txt", *ROOT.glob("*/CMakeLists.txt"),
                 *ROOT.glob("codecs/*/CMakeLists.txt")]:  # fmt: skip
        text = path.read_text()
        found |= set(re.findall(r"wpr_find_library\(\w+ \S+ (\w+)", text))
        found |= set(re.findall(r"find_path\(\w+ (xxhash\.h)", text))
        found |= {f"py-{name}" for name in re.findall(r"find_package\((nanobind)", text)}
    return {SPACK_NAMES.get(name, name) for name in found}


def test_spack_recipe_names_every_library():
    wanted = looked_for()
    assert {"lz4", "zstd", "snappy", "libdeflate", "zfp", "xxhash", "py-nanobind"} <= wanted
    assert wanted <= set(depended())


def test_spack_recipe_names_every_python_package():
    text = (ROOT / "pyproject.toml").read_text()
    dependencies = re.search(r"^dependencies = \[(.*)\]", text, re.M)
    assert dependencies
    for name, version in re.findall(r'"([\w-]+)>=([\d.]+)', dependencies[1]):
        assert depended()[f"py-{name}"] == f"{version}:"


def test_spack_recipe_has_the_version():
    header = (ROOT / "include/wirepress/wirepress.h").read_text()
    version = re.search(r'#define WPR_VERSION "(.*)"', header)
    assert version and f'version("{version[1]}"' in RECIPE.read_text()


def test_spack_recipe_sets_variables_that_cmake_has():
    text = RECIPE.read_text()
    compile(text, str(RECIPE), "exec")
    lists = [ROOT / "CMakeLists.txt", *ROOT.glob("*/*.cmake"), *ROOT.glob("*/CMakeLists.txt"),
             *ROOT.glob("*/*/CMakeLists.txt")]  # fmt: skip
    cmake = "".join(path.read_text() for path in lists)
    for name in re.findall(r'"(WPR_\w+?)_?(?:\{\w+\})?"', text):
        assert re.search(rf"\b{name}", cmake), name
    families = re.search(r"for family in \((.*)\):", text)
    known = set(re.findall(r"wpr_find_mpi\((\w+)", cmake))
    assert families and set(re.findall(r'"(\w+)"', families[1])) == known


# ---- Debian ----------------------------------------------------------------------------------


def test_debian_packages_hold_every_component():
    text = (ROOT / "packaging/deb/packages.cmake").read_text()
    packaged = set(re.findall(r"^wpr_deb\((\w+) ", text, re.M)) | {"wirepress_mpi_mpich"}
    lists = [*ROOT.glob("*/CMakeLists.txt"), *ROOT.glob("*/*/CMakeLists.txt")]
    named = set()
    for path in lists:
        if path.parent.name != "build":
            named |= set(re.findall(r"COMPONENT (\w+)", path.read_text()))
    assert named and named <= packaged


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
@pytest.mark.parametrize("script", ["deb", "package-check", "fresh-check", "bare-root.sh"])
def test_scripts_parse(script):
    subprocess.run(["bash", "-n", ROOT / "scripts" / script], check=True)
