# SPDX-License-Identifier: Apache-2.0
"""Recipe of Spack for wirepress.

The project has no public home yet, so `git` is a place that nothing can be fetched from: point
Spack at a checkout (docs/guides/packages.md):

    spack repo create ~/wirepress-spack wirepress_local
    mkdir ~/wirepress-spack/packages/wirepress
    cp packaging/spack/package.py ~/wirepress-spack/packages/wirepress/
    spack repo add ~/wirepress-spack
    spack env create wirepress && spack env activate wirepress
    spack develop --path /path/to/wirepress wirepress@0.1.0
    spack add wirepress@0.1.0 && spack install
"""

import os

from spack.package import *
from spack_repo.builtin.build_systems.cmake import CMakePackage


class Wirepress(CMakePackage):
    """Compression in flight: an unmodified MPI program, started with `wirepress run`, sends fewer
    bytes over its network; codecs for files, arrays and gradients in one frame format."""

    homepage = "file:///path/to/wirepress"
    git = "file:///path/to/wirepress"

    license("Apache-2.0", checked_by="wirepress")

    version("0.1.0", branch="main")

    variant("mpi", default=True, description="the module for this MPI")
    variant("python", default=True, description="the command line and the Python package")
    variant("hdf5", default=False, description="the filter's folder in HDF5_PLUGIN_PATH")
    variant("adios2", default=False, description="the operator for ADIOS2")
    variant("isal", default=False, description="DEFLATE by ISA-L, too: kernel cpu:isal")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")

    # One line for each library that CMake looks for (wpr_find_library, find_path).
    depends_on("isa-l", when="+isal")
    depends_on("libdeflate")
    depends_on("lz4")
    depends_on("snappy")
    depends_on("xxhash", type="build")
    depends_on("zfp@1:")
    depends_on("zstd")
    depends_on("sz3@3.1.7", type="build")

    depends_on("mpi", when="+mpi")
    depends_on("hdf5", when="+hdf5", type="run")
    depends_on("adios2@2.12:", when="+adios2")

    extends("python", when="+python")
    with when("+python"):
        depends_on("python@3.10:", type=("build", "run"))
        depends_on("py-nanobind@2.4:", type="build")
        depends_on("py-scikit-build-core@0.10:", type="build")
        depends_on("py-shtab@1.3.4:", type=("build", "run"))
        depends_on("py-tqdm@4.60:", type=("build", "run"))
        depends_on("py-tomli@2:", when="^python@:3.10", type=("build", "run"))
        depends_on("py-numpy", type="run")
        depends_on("py-h5py", when="+hdf5", type="run")

    # `wirepress run` is Python.
    conflicts("+mpi~python", msg="+mpi needs +python: wirepress run is a Python program")

    def mpi_name(self):
        """The ABI that the module is named after."""
        name = self.spec["mpi"].name
        return "openmpi" if name == "openmpi" else "mpich"

    @run_before("cmake", when="+python")
    def metadata(self):
        """Name, version and entry points, by which Zarr and numcodecs find wirepress."""
        code = "from scikit_build_core.build import prepare_metadata_for_build_wheel as make"
        with working_dir(self.stage.source_path):
            mkdirp("metadata")
            python("-c", f"{code}; make('metadata')")

    def cmake_args(self):
        spec = self.spec
        args = [
            self.define("WPR_SZ3_DIR", spec["sz3"].prefix),
            self.define_from_variant("WPR_PYTHON", "python"),
            self.define_from_variant("WPR_ISAL", "isal"),
            # nothing that lies beside Spack on this machine
            self.define("WPR_CCACHE", False),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_PkgConfig", True),  # libdpdk
        ]
        for family in ("openmpi", "mpich", "openmpi5", "mpich5", "abi"):
            args.append(self.define(f"WPR_MPICC_{family}", False))
        if spec.satisfies("+mpi"):
            args.append(self.define("WPR_MPICC", f"{self.mpi_name()}={spec['mpi'].mpicc}"))
        if spec.satisfies("+adios2"):
            args.append(self.define("WPR_ADIOS2_DIR", spec["adios2"].prefix))
        else:
            args.append(self.define("WPR_ADIOS2_INCLUDE", False))
        if spec.satisfies("+python"):
            site = os.path.relpath(python_platlib, self.prefix)
            args += [
                self.define("Python_EXECUTABLE", spec["python"].command.path),
                self.define("WPR_PYTHON_DIR", site),
                self.define(
                    "WPR_DIST_INFO",
                    join_path(
                        self.stage.source_path, "metadata", f"wirepress-{spec.version}.dist-info"
                    ),
                ),
            ]
        return args

    def setup_run_environment(self, env):
        if self.spec.satisfies("+hdf5"):
            for lib in ("lib", "lib64"):
                folder = join_path(self.prefix, lib, "wirepress", "hdf5", "plugin")
                if os.path.isdir(folder):
                    env.prepend_path("HDF5_PLUGIN_PATH", folder)
