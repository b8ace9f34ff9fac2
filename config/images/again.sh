#!/usr/bin/env bash
# Makes the images of managers in two clones of the commit, in directories of different lengths: one with the build cache that there is, the
# other with an empty one, which compiles the standard library and every module. Fails unless the digests are the same.
#   PLATFORMS=linux/amd64 again.sh MANAGER...
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
image() { # clone, list
  git clone -q "$root" "$1"
  make -C "$1" images QUIET=1 ONLY="$managers" PLATFORMS="$PLATFORMS" IMAGES=out/images >/dev/null
  cp "$1/out/images/images.txt" "$2"
}
managers=$*
mkdir -p "$dir/cache" "$dir/another/directory"
SECONDS=0
image "$dir/clone" "$dir/first"
first=$SECONDS
GOCACHE="$dir/cache" image "$dir/another/directory/of-another-name" "$dir/second"
cat "$dir/first"
if ! diff "$dir/first" "$dir/second"; then
  echo "images-check: the same commit, compiled twice, gives other images: see the lines above" >&2
  exit 1
fi
echo "the same digests from two compilations, $first s with the build cache and $((SECONDS - first)) s without" >&2
