# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Roots of Debian in which packages are tried. The script that reads this has `out`, the packages'
# folder, `say` and `fail`.

# Print the tar file of suite $1 with packages $2... in it, which is made when there is none.
base() {
	local suite=$1 tar mirror include=()
	shift
	tar=${out:?}/roots/$(IFS=-; echo "$suite${*:+-$*}").tar
	[ $# -eq 0 ] || include=("--include=$(IFS=,; echo "$*")")
	if [ ! -s "$tar" ]; then
		# shellcheck disable=SC2016 # apt-get fills it in
		mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' |
			grep '/debian/*$' | sort -u | head -n 1)
		[ -n "$mirror" ] || fail "apt here has no source of Debian's main: of what are the roots to be made?"
		say "making a $suite (mmdebstrap; log in ${tar%.tar}.log)"
		mkdir -p "$out/roots"
		# A mirror that stands still, as one of a snapshot does, serves lists beyond their time.
		mmdebstrap --variant=minbase --format=tar "${include[@]}" --aptopt='Acquire::Check-Valid-Until "false"' \
			"$suite" "$tar.new" "$mirror" >"${tar%.tar}.log" 2>&1 ||
			fail "mmdebstrap made no $suite: see ${tar%.tar}.log"
		mv "$tar.new" "$tar"
	fi
	echo "$tar"
}
