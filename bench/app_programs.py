# SPDX-License-Identifier: Apache-2.0
"""Seven programs that the project did not write, for apps.py: the Debian packages of each, what
it computes, where it says how long that took, and what of its results must not change.

Inputs are made here, from fixed numbers; nothing is downloaded but the packages. All of these
packages are built with Open MPI.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PYTHON = "/usr/bin/python3"  # Debian's, for which its packages are built
PETSC = "/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real/lib/python3/dist-packages"


@dataclass(frozen=True)
class Program:
    name: str
    title: str  # the program, and what it computes here
    packages: tuple[str, ...]
    needs: tuple[str, ...]  # files that these packages bring
    prepare: Callable[[Path, int], None]  # fills a folder with the inputs for a number of ranks
    command: tuple[str, ...]  # run in that folder
    seconds: str  # in what it prints: the seconds of its own timer; {log} of such files, too
    compared: str  # what the result is, in words
    files: tuple[str, ...] = ()  # whose bytes are the result ...
    lines: str = ""  # ... and the printed lines that match
    log: str = ""  # a file in which the program writes what others print
    environment: dict[str, str] = field(default_factory=dict)

    def missing(self) -> list[str]:
        return [path for path in self.needs if not Path(path).exists()]


def result(program: Program, folder: Path, printed: str) -> str:
    """A checksum of what the program computed.

    Raises:
        ValueError: the program left out what is compared.
    """
    found = hashlib.sha256()
    lines = re.findall(program.lines, printed, re.M) if program.lines else []
    if program.lines and not lines:
        raise ValueError(f"{program.name} printed no line like {program.lines}")
    found.update("\n".join(map(str, lines)).encode())
    for pattern in program.files:
        paths = sorted(folder.glob(pattern))
        if not paths:
            raise ValueError(f"{program.name} wrote no {pattern}")
        for path in paths:
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def own_seconds(program: Program, folder: Path, printed: str) -> float:
    """By the program's own timer: the part that it calls its work, without starting up.

    Raises:
        ValueError: the program did not say.
    """
    text = (folder / program.log).read_text() if program.log else printed
    match = re.findall(program.seconds, text, re.M)
    if not match:
        raise ValueError(f"{program.name} did not say how long it took")
    last = match[-1]
    if isinstance(last, tuple):  # minutes and seconds
        return 60 * float(last[0] or 0) + float(last[1])
    return float(last)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _tool(folder: Path, *words: str, stdin: str | None = None, **environment: str) -> None:
    """A step of the preparation.

    Raises:
        OSError: it failed; with the end of what it said.
    """
    done = subprocess.run(
        words,
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {(done.stdout + done.stderr)[-1500:]}")


# ---- LAMMPS ----


def _lammps(folder: Path, _ranks: int) -> None:
    _write(folder / "in.melt", """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 24 0 24 0 24
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo_modify format float %.17g
thermo 20
run 120
write_dump all custom final.dump id x y z vx vy vz modify sort id format float %.17g
""")  # fmt: skip


# ---- GROMACS ----


def _gromacs(folder: Path, _ranks: int) -> None:
    _write(folder / "water.top", """\
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
Water
[ molecules ]
""")  # fmt: skip
    _write(folder / "md.mdp", """\
integrator = md
dt = 0.001
nsteps = 200
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
tcoupl = no
gen-vel = yes
gen-temp = 300
gen-seed = 17
nstxout = 200
nstvout = 200
nstenergy = 50
nstlog = 50
""")  # fmt: skip
    _tool(folder, "gmx", "solvate", "-cs", "spc216.gro", "-box", "5", "5", "5", "-o", "water.gro",
          "-p", "water.top")  # fmt: skip
    _tool(folder, "gmx", "grompp", "-f", "md.mdp", "-c", "water.gro", "-p", "water.top",
          "-o", "md.tpr")  # fmt: skip


# ---- Quantum ESPRESSO ----


def _espresso(folder: Path, _ranks: int) -> None:
    # The pseudopotential is made by the suite's own generator.
    _tool(folder, "ld1.x", stdin="""\
&input
 title='Si', zed=14., rel=1, config='[Ne] 3s2 3p2 3d-2', iswitch=3, dft='PZ'
/
&inputp
 pseudotype=2, file_pseudopw='Si.UPF', author='made', lloc=2, tm=.true.
/
3
3S 1 0 2.00 0.00 2.10 2.10
3P 2 1 2.00 0.00 2.30 2.30
3D 3 2 -2.00 -0.10 2.30 2.30
""")  # fmt: skip
    face = [(0.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0)]
    sites = face + [(x + 0.25, y + 0.25, z + 0.25) for x, y, z in face]
    state, atoms = 7, []
    for site in sites:  # each a little off its place, always by as much
        moved = []
        for place in site:
            state = state * 1103515245 + 12345 & 0x7FFFFFFF
            moved.append(f"{place + 0.02 * (state / 2**31 - 0.5):.6f}")
        atoms.append(f"Si {' '.join(moved)}")
    _write(folder / "si.in", """\
&control
 calculation='scf', prefix='si', outdir='out', pseudo_dir='.', tprnfor=.true., disk_io='none'
/
&system
 ibrav=1, celldm(1)=10.2, nat=8, ntyp=1, ecutwfc=30
/
&electrons
 conv_thr=1e-10, startingwfc='atomic'
/
ATOMIC_SPECIES
Si 28.086 Si.UPF
ATOMIC_POSITIONS crystal
""" + "\n".join(atoms) + "\nK_POINTS automatic\n1 1 1 1 1 1\n")  # fmt: skip


# ---- Meep ----


def _meep(folder: Path, _ranks: int) -> None:
    _write(folder / "wave.ctl", """\
(set! geometry-lattice (make lattice (size 8 8 8)))
(set! resolution 10)
(set! pml-layers (list (make pml (thickness 1))))
(set! geometry (list (make sphere (center 1 0 0) (radius 1)
  (material (make dielectric (epsilon 4))))))
(set! sources (list (make source (src (make gaussian-src (frequency 0.5) (fwidth 0.4)))
  (component Ez) (center -1 0.3 0.2))))
(run-until 12)
(define (field c x y z) (number->string (get-field-point c (vector3 x y z))))
(print "field ez " (field Ez 1 0 0) " " (field Ez 0.3 -1 1) " " (field Ez -2 1.5 -1) "\\n")
(print "field ex " (field Ex 1 0 0) " " (field Ex 0.3 -1 1) " " (field Ex -2 1.5 -1) "\\n")
(print "field energy " (number->string
  (electric-energy-in-box (volume (center 0 0 0) (size 6 6 6)))) "\\n")
""")  # fmt: skip


# ---- PETSc ----


def _petsc(folder: Path, _ranks: int) -> None:
    _write(folder / "poisson.py", f"""\
import sys
sys.path.insert(0, {PETSC!r})
import numpy as np
from petsc4py import PETSc

n, comm = 96, PETSc.COMM_WORLD
start = PETSc.Log.getTime()
a = PETSc.Mat().createAIJ([n**3, n**3], nnz=(7, 7), comm=comm)
first, last = a.getOwnershipRange()
row = np.arange(first, last)
place = np.array([row // n**2, row // n % n, row % n])
columns, there = [row], [np.ones(len(row), bool)]
for axis, stride in enumerate((n**2, n, 1)):
    columns += [row - stride, row + stride]
    there += [place[axis] > 0, place[axis] < n - 1]
there, columns = np.stack(there, 1), np.stack(columns, 1)
values = np.where(np.arange(7) == 0, 6.0, -1.0) * np.ones((len(row), 1))
ends = np.concatenate([[0], np.cumsum(there.sum(1))]).astype(PETSc.IntType)
a.setValuesCSR(ends, columns[there].astype(PETSc.IntType), values[there])
a.assemble()
x, b = a.createVecs()
z, y, w = (place + 1) / (n + 1)
b.array[:] = np.exp(-40 * ((w - 0.4) ** 2 + (y - 0.5) ** 2 + (z - 0.6) ** 2)) / (n + 1) ** 2
solver = PETSc.KSP().create(comm)
solver.setOperators(a)
solver.setType("cg")
solver.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
solver.getPC().setType("jacobi")
solver.setTolerances(rtol=1e-8)
solver.solve(b, x)
norm, largest = x.norm(), x.max()[1]
PETSc.Sys.Print("solved", solver.getIterationNumber(), solver.getResidualNorm().hex(), norm.hex(),
                largest.hex())
PETSc.Sys.Print("seconds", PETSc.Log.getTime() - start)
open(f"solution.{{comm.rank}}", "wb").write(x.array.tobytes())
""")  # fmt: skip


# ---- OpenFOAM ----

FOAM = {"WM_PROJECT_DIR": "/usr/share/openfoam"}


def _foam_file(folder: Path, path: str, text: str, kind: str = "dictionary") -> None:
    head = f"FoamFile {{ version 2.0; format ascii; class {kind}; object {Path(path).name}; }}\n"
    _write(folder / path, head + text)


def _openfoam(folder: Path, ranks: int) -> None:
    _foam_file(folder, "system/controlDict", """\
application icoFoam; startFrom startTime; startTime 0; stopAt endTime; endTime 0.012; deltaT 0.001;
writeControl timeStep; writeInterval 12; writeFormat binary; writePrecision 16;
timeFormat general; timePrecision 6; runTimeModifiable false;
""")  # fmt: skip
    _foam_file(folder, "system/blockMeshDict", """\
convertToMeters 0.1;
vertices ((0 0 0)(1 0 0)(1 1 0)(0 1 0)(0 0 1)(1 0 1)(1 1 1)(0 1 1));
blocks (hex (0 1 2 3 4 5 6 7) (44 44 44) simpleGrading (1 1 1));
edges ();
boundary (
  lid { type wall; faces ((3 7 6 2)); }
  walls { type wall; faces ((0 4 7 3)(2 6 5 1)(1 5 4 0)(0 3 2 1)(4 5 6 7)); }
);
""")  # fmt: skip
    _foam_file(folder, "system/fvSchemes", """\
ddtSchemes { default Euler; }
gradSchemes { default Gauss linear; }
divSchemes { default none; div(phi,U) Gauss linear; }
laplacianSchemes { default Gauss linear orthogonal; }
interpolationSchemes { default linear; }
snGradSchemes { default orthogonal; }
""")  # fmt: skip
    _foam_file(folder, "system/fvSolution", """\
solvers {
  p { solver PCG; preconditioner DIC; tolerance 1e-06; relTol 0.05; }
  pFinal { $p; relTol 0; }
  U { solver PBiCGStab; preconditioner DILU; tolerance 1e-06; relTol 0; }
}
PISO { nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }
""")  # fmt: skip
    _foam_file(folder, "system/decomposeParDict",
               f"numberOfSubdomains {ranks}; method simple; "
               f"simpleCoeffs {{ n ({ranks} 1 1); delta 0.001; }}\n")  # fmt: skip
    _foam_file(folder, "constant/transportProperties", "nu [0 2 -1 0 0 0 0] 0.01;\n")
    _foam_file(folder, "0/p", """\
dimensions [0 2 -2 0 0 0 0]; internalField uniform 0;
boundaryField { ".*" { type zeroGradient; } }
""", "volScalarField")  # fmt: skip
    _foam_file(folder, "0/U", """\
dimensions [0 1 -1 0 0 0 0]; internalField uniform (0 0 0);
boundaryField { lid { type fixedValue; value uniform (1 0 0); } walls { type noSlip; } }
""", "volVectorField")  # fmt: skip
    _tool(folder, "blockMesh", **FOAM)
    _tool(folder, "decomposePar", "-force", **FOAM)


# ---- parallel HDF5 ----


def _hdf5(folder: Path, _ranks: int) -> None:
    # Time steps of a field that ranks own in slabs along one axis, written along another, so that
    # the values change hands: by an Alltoall, and in HDF5's collective writing.
    _write(folder / "steps.py", """\
import hashlib
import numpy as np
import h5py
from mpi4py import MPI

comm = MPI.COMM_WORLD
n, steps = 96, 16
mine = n // comm.size
start = comm.rank * mine
z, y, x = np.meshgrid(np.arange(start, start + mine), np.arange(n), np.arange(n), indexing="ij")
began = MPI.Wtime()
with h5py.File("steps.h5", "w", driver="mpio", comm=comm) as file:
    data = file.create_dataset("field", (steps, n, n, n), "f8")
    for step in range(steps):
        field = np.sin(0.07 * x + 0.1 * step) * np.cos(0.05 * y) * np.exp(-0.02 * z)
        blocks = np.ascontiguousarray(
            field.reshape(mine, comm.size, mine, n).transpose(1, 0, 2, 3))
        turned = np.empty_like(blocks)
        comm.Alltoall(blocks, turned)
        turned = turned.reshape(n, mine, n)
        with data.collective:
            data[step, :, start:start + mine, :] = turned
comm.Barrier()
if comm.rank == 0:
    print("seconds", MPI.Wtime() - began)
    with h5py.File("steps.h5", "r") as file:
        print("values", hashlib.sha256(file["field"][:].tobytes()).hexdigest())
""")  # fmt: skip


PROGRAMS = {
    program.name: program
    for program in (
        Program(
            "lammps",
            "LAMMPS, 55,296 Lennard-Jones atoms, 120 steps",
            ("lammps",),
            ("/usr/bin/lmp",),
            _lammps,
            ("lmp", "-in", "in.melt", "-log", "none"),
            r"^Loop time of (\S+)",
            "all positions and velocities, energies of 7 steps",
            files=("final.dump",),
            lines=r"^ +\d+ +-?[\d.]+ +-?[\d.]+ .*$",
        ),
        Program(
            "gromacs",
            "GROMACS, 11,600 atoms of water with PME, 200 steps",
            ("gromacs",),
            ("/usr/bin/gmx", "/usr/bin/gmx_mpi"),
            _gromacs,
            ("gmx_mpi", "mdrun", "-s", "md.tpr", "-deffnm", "md", "-ntomp", "1", "-reprod",
             "-dlb", "no", "-notunepme", "-npme", "0", "-pin", "off"),
            r"^ +Time: +\S+ +(\S+)",
            "the trajectory file: all positions and velocities",
            files=("md.trr",),
            log="md.log",
        ),
        Program(
            "espresso",
            "Quantum ESPRESSO, 8 atoms of silicon to self-consistency",
            ("quantum-espresso",),
            ("/usr/bin/pw.x", "/usr/bin/ld1.x"),
            _espresso,
            ("pw.x", "-in", "si.in"),
            r"^ +PWSCF +:.*CPU +(?:(\d+)m *)?([\d.]+)s WALL",
            "energies of all iterations and the forces on all atoms, as printed",
            lines=r"^(?:!?  +total energy  .*|  +atom .* force = .*|  +Total force.*)$",
        ),
        Program(
            "meep",
            "Meep, light at a sphere, 80^3 points, 240 steps",
            ("meep-openmpi",),
            ("/usr/bin/meep",),
            _meep,
            ("meep", "wave.ctl"),
            r"^Elapsed run time = (\S+) s",
            "fields at three points and the energy, all digits",
            lines=r"^field .*$",
        ),
        Program(
            "petsc",
            "PETSc (by petsc4py), Poisson's equation on 96^3 points by CG",
            ("python3-petsc4py-real",),
            (PETSC,),
            _petsc,
            (PYTHON, "poisson.py"),
            r"^seconds (\S+)",
            "the solution, residual norm and number of iterations",
            files=("solution.*",),
            lines=r"^solved .*$",
        ),
        Program(
            "openfoam",
            "OpenFOAM's icoFoam, a driven cavity of 44^3 cells, 12 steps",
            ("openfoam",),
            ("/usr/bin/icoFoam", "/usr/share/openfoam/etc/controlDict"),
            _openfoam,
            ("icoFoam", "-parallel"),
            r"ClockTime = (\S+) s",
            "velocity and pressure in all cells, residuals of every solve",
            files=("processor*/0.012/U", "processor*/0.012/p"),
            lines=r"^.*Final residual.*$",
            environment=FOAM,
        ),
        Program(
            "hdf5",
            "parallel HDF5 (by h5py), 16 steps of a field of 96^3 doubles, turned and written",
            ("python3-h5py-mpi",),
            ("/usr/lib/python3/dist-packages/h5py/_debian_h5py_mpi",),
            _hdf5,
            (PYTHON, "steps.py"),
            r"^seconds (\S+)",
            "all values in the file",
            lines=r"^values .*$",
        ),
    )
}  # fmt: skip


def make_inputs(program: Program, ranks: int, folder: Path) -> Path:
    """The inputs of a program for a number of ranks; made once, again where this file changed."""
    stamp = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    made = folder / "made"
    if not made.exists() or made.read_text() != stamp:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        program.prepare(folder, ranks)
        made.write_text(stamp)
    return folder
