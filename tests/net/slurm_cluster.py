# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster whose nodes are the hosts of hosts.py: munged, slurmctld on host 0, and a slurmd
on each host, all of one private configuration. Needs the packages slurmctld, slurmd, slurm-client
and munge (slurm-wlm of Debian and Ubuntu has them all), and root.

Every node has a /tmp of its own, as on clusters. What lies under the folder of the cluster is the
same on all of them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from hosts import Hosts

CPUS = 8  # a node has, as Slurm reckons; it binds nothing to cores here
START_SECONDS = 60
PROGRAMS = ("munged", "slurmctld", "slurmd", "slurmstepd", "srun", "sbatch", "salloc", "squeue")

CONFIGURATION = """
ClusterName=wirepress
SlurmctldHost={first}({address})
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
LaunchParameters=use_interactive_step
SlurmdParameters=config_overrides
ReturnToService=2
PartitionName=main Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:16
"""


def find(program: str) -> str | None:
    """Debian keeps the programs of the daemons, and slurmstepd, in places of their own."""
    folders = (os.environ.get("PATH", ""), "/usr/sbin", "/usr/lib/slurm-wlm")
    for name in (program, f"{program}-wlm"):
        if path := shutil.which(name, path=os.pathsep.join(folders)):
            return path
    return None


def why_not() -> str:
    missing = [program for program in PROGRAMS if find(program) is None]
    if missing:
        return f"no {', '.join(missing)} (apt-get install slurmctld slurmd slurm-client munge)"
    return ""


class Slurm:
    """A cluster of these hosts; use it in a with statement. `shared` is on all nodes.

    Its path is to be short: sockets of slurmstepd lie below it.
    """

    def __init__(self, hosts: Hosts, shared: Path) -> None:
        self.hosts, self.shared = hosts, shared
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir=shared))
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Slurm:
        with contextlib.ExitStack() as stack:
            self._configure()
            self._spawn(stack, self._munged())
            self._spawn(stack, self.on(0, [str(find("slurmctld")), "-D"]))
            for i in range(self.hosts.n):
                step = str(find("slurmstepd"))
                self._spawn(stack, self.on(i, [str(find("slurmd")), "-D", "-d", step]))
            self._wait_until_idle()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    # ---- starting ----

    def _configure(self) -> None:
        names = [self.hosts.namespace(i) for i in range(self.hosts.n)]
        text = CONFIGURATION.format(
            first=names[0], address=self.hosts.address(0), folder=self.folder
        )
        known = "127.0.0.1 localhost\n"
        for i, name in enumerate(names):
            address = self.hosts.address(i)
            text += f"NodeName={name} NodeAddr={address} CPUs={CPUS} CoresPerSocket={CPUS}\n"
            known += f"{address} {name}\n"
            (self.folder / f"spool-{name}").mkdir()
        (self.folder / "state").mkdir()
        (self.folder / "slurm.conf").write_text(text)
        # or slurmd looks for the control groups of a systemd
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.folder / "hosts").write_text(known)
        for i in range(self.hosts.n):
            (self.folder / "enter").with_suffix(f".{i}").write_text(self._enter(i))

    def _enter(self, i: int) -> str:
        """A script that runs its words on node i, in mounts of its own by `ip netns exec`."""
        tmp = self.folder / f"tmp-{i}"
        tmp.mkdir(mode=0o1777)
        lines = [f"mount --bind {self.folder}/hosts /etc/hosts"]
        if self.shared.is_relative_to("/tmp"):
            within = tmp / self.shared.relative_to("/tmp")
            within.mkdir(parents=True)
            lines.append(f"mount --bind {self.shared} {within}")
        lines += [f"mount --rbind {tmp} /tmp", f"hostname {self.hosts.namespace(i)}", 'exec "$@"']
        return "set -e\n" + "\n".join(lines) + "\n"

    def _munged(self) -> list[str]:
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(64))
        key.chmod(0o400)
        files = {"key-file": "key", "socket": "socket", "seed-file": "seed", "pid-file": "pid",
                 "log-file": "log"}  # fmt: skip
        words = [f"--{option}={self.folder}/munge.{name}" for option, name in files.items()]
        # by force: it does not like that others may write to a folder above its own (/tmp)
        return [str(find("munged")), "--foreground", "--force", *words]

    def _spawn(self, stack: contextlib.ExitStack, words: list[str]) -> None:
        daemon = subprocess.Popen(
            words,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.enter_context(daemon)
        stack.callback(daemon.terminate)

    def _wait_until_idle(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            done = self.run(0, ["sinfo", "-h", "-N", "-o", "%t"])
            if done.stdout.split() == ["idle"] * self.hosts.n:
                return
            if time.monotonic() > deadline:
                logs = [path.read_text()[-1000:] for path in sorted(self.folder.glob("*.log"))]
                raise OSError("\n".join(["Slurm does not start:", done.stderr, *logs]))
            time.sleep(0.2)

    # ---- using ----

    def environment(self) -> dict[str, str]:
        return os.environ | {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def on(self, i: int, words: Sequence[str | Path]) -> list[str]:
        """The words that run a command on node i; with environment()."""
        enter = ["unshare", "--uts", "sh", f"{self.folder}/enter.{i}"]
        return ["ip", "netns", "exec", self.hosts.namespace(i), *enter, *map(str, words)]

    def run(
        self, i: int, words: Sequence[str | Path], seconds: float = 100, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """On node i, with these variables besides. What takes longer loses its jobs: else nodes
        would not be free for the next command."""
        try:
            return subprocess.run(
                self.on(i, words),
                env=self.environment() | settings,
                capture_output=True,
                text=True,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            cancel = self.on(i, ["scancel", "--partition=main"])
            subprocess.run(cancel, env=self.environment(), timeout=30, check=False)
            raise
