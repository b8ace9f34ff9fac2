#!/usr/bin/env bash
# Writes a release as a local repository of clusterctl: <directory>/<label of the provider>/<version>/<file>.
# usage: REGISTRY=… TAG=… [MAKE_IMAGES=make] config/release.sh path/to/kustomize v0.1.0 directory
# With MAKE_IMAGES the release has the images as archives, their digests and SBOMs: this is the make that writes them.
set -euo pipefail
cd "$(dirname "$0")/.."
kustomize=$1 version=$2 dir=$3
number='(0|[1-9][0-9]*)' identifier='[0-9A-Za-z-]+'
if ! [[ $version =~ ^v$number\.$number\.$number(-$identifier(\.$identifier)*)?$ ]]; then
  echo "release: '$version' is no version that clusterctl reads: give one like VERSION=v0.1.0" >&2
  exit 1
fi
major=${BASH_REMATCH[1]} minor=${BASH_REMATCH[2]}
if [ -n "${ONLY:-}" ]; then
  echo "release: ONLY='$ONLY': a release has the images of all managers. Leave ONLY out; \`make images\` takes it" >&2
  exit 1
fi

# In the order in which they are put in place: what clusterctl looks for comes last.
labels=(images target infrastructure-millwright-{aws,azure,gcp} bootstrap-millwright-cloudconfig cluster-api)
# A directory of releases is recognized by its clusterctl.yaml. In another one, files with our names belong to another user.
stop() {
  echo "release: $1 is there and was not made by a release: give another directory, RELEASES=…" >&2
  exit 1
}
if [ -e "$dir/clusterctl.yaml" ]; then
  [ "$(head -n 1 "$dir/clusterctl.yaml")" = "$(head -n 1 config/release/clusterctl.yaml)" ] || stop "$dir/clusterctl.yaml"
else
  for label in "${labels[@]}"; do
    [ ! -e "$dir/$label/$version" ] || stop "$dir/$label/$version"
  done
fi

work=$(mktemp -d)
stage=$dir/.release-$version
trap 'rm -rf "$work"' EXIT
config/render.sh "$kustomize" "$work" release
mkdir -p "$dir"
# Two releases into one directory would write into each other's stage. The lock is on the directory itself, so that no file is left; where
# there is no flock (macOS), only one may run at a time.
if command -v flock >/dev/null; then
  exec 9<"$dir"
  flock -n 9 || { echo "release: waits for another release that writes into $dir" >&2; flock 9; }
fi
# What a version consists of, in the order in which it is put in place: without checksums it is not complete, and what clusterctl looks for comes last.
paths() { printf '%s\n' "checksums-$1.txt" "release-notes-$1.md" "${labels[@]/%//$1}"; }
# While a version takes the place of another of the same name, that is in a directory aside, with an empty file *.none for what it had not. Where
# there is such a directory the replacement was interrupted: the former version comes back, whole.
put_back() { # version
  local aside=$dir/.release-before-$1 path
  [ -d "$aside" ] || return 0
  for path in $(paths "$1" | awk '{line[NR]=$0} END {for (n=NR; n; n--) print line[n]}'); do # the other way round
    if [ -e "$aside/$path.none" ] || [ -e "$aside/$path" ]; then rm -rf "${dir:?}/$path"; fi
    if [ -e "$aside/$path" ]; then mv "$aside/$path" "$dir/$path"; fi
  done
  rm -rf "$aside"
}
# Not before: a release that waits and is interrupted leaves the stage to the one that works.
trap 'put_back "$version"; rm -rf "$work" "$stage"' EXIT
for left in "$dir"/.release-before-v*; do
  put_back "${left#"$dir"/.release-before-}"
done

# Each release knows the series of those before it and its own, the newest first: clusterctl goes by the first that has its contract.
{ sed '/^releaseSeries:/q' config/metadata.yaml
  { awk '/major:/ {major=$3} /minor:/ {minor=$2} /contract:/ {print major, minor, $2}' config/metadata.yaml
    echo "$major $minor v1beta2"
  } | sort -k1,1nr -k2,2nr -u | awk '{printf "- major: %s\n  minor: %s\n  contract: %s\n", $1, $2, $3}'
} >"$work/metadata.yaml"
# It is made aside, in the same file system, and moved to its place when it is whole: clusterctl takes the highest version that it finds for the latest.
rm -rf "$dir"/.release-v* # Of releases that were killed, of whatever version: this one alone has the lock.
mkdir -p "$stage"
component() { # label, rendered file, name of the file
  mkdir -p "$stage/$1/$version"
  cp "$work/$2" "$stage/$1/$version/$3"
  cp "$work/metadata.yaml" "$stage/$1/$version/"
}
component cluster-api core/core-components.yaml core-components.yaml
component cluster-api core-cert-manager/core-components.yaml core-components-cert-manager.yaml
component cluster-api core-without-webhooks/core-components.yaml core-components-without-webhooks.yaml
component bootstrap-millwright-cloudconfig bootstrap-cloudconfig/bootstrap-components.yaml bootstrap-components.yaml
for cloud in aws azure gcp; do
  component "infrastructure-millwright-$cloud" "infrastructure-$cloud/infrastructure-components.yaml" infrastructure-components.yaml
  cp config/templates/"$cloud"/cluster-template*.yaml "$stage/infrastructure-millwright-$cloud/$version/"
done
mkdir -p "$stage/target/$version"
cp "$work/target/target-components.yaml" config/samples/aws/kubeconfig-secret.yaml.tmpl "$stage/target/$version/"
# For Cluster API's own programs in the target cluster.
cp config/samples/upstream/kubeadm.yaml "$stage/target/$version/kubeadm.yaml"
cp config/samples/upstream/core.yaml "$stage/target/$version/cluster-api-core.yaml"
if [ -n "${MAKE_IMAGES:-}" ]; then
  "$MAKE_IMAGES" images TAG="$TAG" IMAGES="$stage/images/$version"
  # make -n runs this script, since make is in its line, and that only says what it would do.
  [ -s "$stage/images/$version/images.txt" ] || { echo "release: no images were made: $dir stays as it is" >&2; exit 1; }
fi
mkdir -p "$dir/cert-manager/v0.0.1"
cp config/release/cert-manager.yaml "$dir/cert-manager/v0.0.1/"
cp config/release/clusterctl.yaml "$dir/"

notes=docs/releases/v$major.$minor.md
{ echo "# Millwright $version"; echo; sed 1d "$notes" 2>/dev/null || true
  echo; echo "## Images"; echo
  grep -ho 'image: .*' "$work"/{core,bootstrap-cloudconfig,infrastructure-*}/*-components.yaml | sed 's/image: \(.*\)/- `\1`/' | sort -u
  images=$stage/images/$version/images.txt
  [ ! -e "$images" ] || printf '\nFor %s; their digests are in `images/%s/images.txt`.\n' "$(awk '$2 != "index" {print $2}' "$images" | sort -u | paste -sd' ' | sed 's/ /, /g')" "$version"
} >"$stage/release-notes-$version.md"

# What an earlier run has written and this one does not is no part of it. The checksums are made when all is in place.
aside=$dir/.release-before-$version
for path in $(paths "$version"); do
  directory=${path%"${path##*/}"} # "" or with a slash at its end
  mkdir -p "$aside/$directory"
  if [ -e "$dir/$path" ]; then mv "$dir/$path" "$aside/$path"; else : >"$aside/$path.none"; fi
  [ -e "$stage/$path" ] || continue
  mkdir -p "$dir/$directory"
  mv "$stage/$path" "$dir/$path"
done
mv "$aside" "$stage/before" # From here on the new one is in place.
rm -rf "$stage"
echo "release: $version is in $dir; set MILLWRIGHT_RELEASE=$(cd "$dir" && pwd) and use clusterctl --config $dir/clusterctl.yaml"
