# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For scripts that work in a bare Debian or Ubuntu: makes one by debootstrap in $work/root and runs
# commands there. Sourced by scripts/fresh-check and scripts/package-check.
#
# The script that sources this sets me (its name in sentences), SUITE, work (a folder, kept between
# runs), root=$work/root and keep (yes or no). Outside the namespaces it calls need_bare_root, then
# enter_namespaces; inside make_root, then install_in_root and in_root. Packages come from the
# mirror in /etc/apt, or from MIRROR and SECURITY_MIRROR; pip is set up as on this machine. Downloaded
# .deb files stay in $work/debs. With BASE=yes the bare system is kept in $work/base.tar, and the next
# root is made from it; the script that sets BASE removes the file.

say() { echo "$me: $*"; }
die() { say "$*" >&2; exit 2; }

# ---- what is taken over from this machine ----

is_ubuntu() { case $SUITE in focal|jammy|noble|plucky|questing|resolute) true ;; *) false ;; esac; }

mirrors() { # the addresses of the Debian mirrors that apt uses, one-line and deb822 formats
  local files=()
  shopt -s nullglob
  files=(/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources)
  sed -n -e 's/^URIs://p' -e 's/^deb \(\[.*\] \)\{0,1\}\([^ ]*\).*/\2/p' "${files[@]}" 2>/dev/null |
    tr -s ' ' '\n' | sed 's|/*$||'
}

apt_configuration() {
  local parts=main
  ! is_ubuntu || parts="main universe"
  {
    echo "deb $MIRROR $SUITE $parts"
    echo "deb $MIRROR $SUITE-updates $parts"
    [ -z "$SECURITY_MIRROR" ] || echo "deb $SECURITY_MIRROR $SUITE-security $parts"
  } > "$root/etc/apt/sources.list"
  # proxies and the like, no hooks
  cat /etc/apt/apt.conf /etc/apt/apt.conf.d/* 2>/dev/null |
    grep -iE '^ *Acquire::(https?|ftp|Retries|Check)' > "$root/etc/apt/apt.conf.d/99host" || true
}

pip_configuration() { # writes /etc/pip.conf, copies the files that it names (constraints), and
  # prints the folders of this machine that it names
  python3 - "$root" <<'PYTHON'
import ast, configparser, os, re, shutil, subprocess, sys

root = sys.argv[1]
listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"],
                        capture_output=True, text=True).stdout
config = configparser.RawConfigParser()
for line in sorted(listed.splitlines(), reverse=True):  # variables, ":env:", come last and win
    match = re.fullmatch(r"(:env:|\w+)\.([\w-]+)=(.*)", line)
    if not match:
        continue
    section = "global" if match[1] == ":env:" else match[1]
    if not config.has_section(section):
        config.add_section(section)
    value = str(ast.literal_eval(match[3]))
    config.set(section, match[2], value)
    if match[2] in ("constraint", "build-constraint", "requirement", "cert", "client-cert"):
        for path in filter(os.path.isfile, value.split()):
            copy = root + os.path.abspath(path)
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copyfile(path, copy)
    if match[2] in ("index-url", "extra-index-url", "find-links"):
        for word in value.split():
            path = re.sub(r"^file://(localhost)?", "", word).rstrip("/")
            path = path.removesuffix("/simple")  # an index leads to files beside it
            if path.startswith("/") and os.path.isdir(path):
                print(path)
with open(f"{root}/etc/pip.conf", "w") as file:
    config.write(file)
PYTHON
}

# ---- inside the namespaces ----

mounts() {
  mount --bind "$root" "$root" # "/" must be a mount for `ip netns exec`
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount --bind /dev "$root/dev"
  mkdir -p "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  mount --bind "$work/debs" "$root/var/cache/apt/archives"
  local folder
  while read -r folder; do
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
    mount -o remount,bind,ro "$root$folder"
  done < "$work/folders"
}

in_root() { # COMMAND... : with a clean environment
  local pass=() name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!name:-}" ] || pass+=("$name=${!name}")
  done
  # a job in the background begins with SIGINT ignored, and so would all that it starts
  env -i --default-signal=INT,QUIT "${pass[@]}" HOME=/root LANG=C.UTF-8 TERM=dumb \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    chroot "$root" "$@" < /dev/null
}

make_root() {
  rm -rf --one-file-system "$root"
  mkdir -p "$root" "$work/debs/partial"
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg package=debian-archive-keyring script=()
  if is_ubuntu; then
    keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg package=ubuntu-keyring
    # all of Ubuntu's releases have one script; this debootstrap may be older than the release
    script=(/usr/share/debootstrap/scripts/gutsy)
  fi
  keyring=${KEYRING:-$keyring}
  [ -f "$keyring" ] || die "$keyring is not there: apt-get install $package, or KEYRING=FILE"
  if [ -f "$work/base.tar" ]; then tar -C "$root" -xpf "$work/base.tar"; else
    say "debootstrap $SUITE"
    debootstrap --variant=minbase --keyring="$keyring" --cache-dir="$work/debs" \
      "$SUITE" "$root" "$MIRROR" "${script[@]}" > "$work/debootstrap.log" 2>&1 ||
      { tail -20 "$work/debootstrap.log"; die "debootstrap failed: $work/debootstrap.log"; }
    [ -z "${BASE:-}" ] || tar -C "$root" -cpf "$work/base.tar" .
  fi
  hostname fresh
  printf '127.0.0.1 localhost\n127.0.1.1 fresh\n::1 localhost\n' > "$root/etc/hosts"
  echo fresh > "$root/etc/hostname"
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  apt_configuration
  pip_configuration | sort -u > "$work/folders"
  mounts
}

install_in_root() { # PACKAGE... : with the certificates that this machine trusts besides
  {
    in_root apt-get update -qq
    in_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
  } > "$work/first.log" 2>&1 || { tail -20 "$work/first.log"; die "failed: $work/first.log"; }
  local bundle=/etc/ssl/certs/ca-certificates.crt
  [ ! -f "$bundle" ] || cp "$bundle" "$root$bundle"
}

# ---- outside ----

need_bare_root() {
  [ "$(id -u)" -eq 0 ] || die "needs root (debootstrap, chroot, mounts)"
  local tool
  for tool in debootstrap unshare python3 git; do
    command -v "$tool" > /dev/null ||
      die "needs $tool: apt-get install debootstrap util-linux python3 git"
  done
  if is_ubuntu; then
    export MIRROR=${MIRROR:-$(mirrors | grep -m1 '/ubuntu$' || true)}
    export SECURITY_MIRROR=${SECURITY_MIRROR:-$MIRROR}
  else
    export MIRROR=${MIRROR:-$(mirrors | grep -m1 '/debian$' || true)}
    export SECURITY_MIRROR=${SECURITY_MIRROR:-$(mirrors | grep -m1 '/debian-security$' || true)}
  fi
  [ -n "$MIRROR" ] || die "/etc/apt names no mirror for $SUITE; give one as MIRROR=..."
}

enter_namespaces() { # COMMAND... : runs it there, ends all that it started, removes the root (keep=no)
  mkdir -p "$work"
  exec 9> "$work/lock"
  flock -n 9 || die "another run is under way in $work"
  # --kill-child: with this process goes the first one in the PID namespace, and all others with it
  unshare --mount --pid --ipc --uts --fork --kill-child --mount-proc "$@" &
  inside=$!
  trap leave_namespaces EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  local rc=0
  wait "$inside" || rc=$?
  exit "$rc"
}

leave_namespaces() {
  kill -KILL "$inside" 2>/dev/null || true
  wait "$inside" 2>/dev/null || true
  exec 9> "$work/lock"
  flock -w 30 9 || true # held by whatever is still ending in there
  if [ "$keep" = yes ]; then say "kept: $root"; else rm -rf --one-file-system "$root"; fi
}
