#!/usr/bin/env bash
# Writes a release as a local repository of clusterctl: <directory>/<label of the provider>/<version>/<file>.
# usage: REGISTRY=… TAG=… config/release.sh path/to/kustomize v0.1.0 directory
set -euo pipefail
cd "$(dirname "$0")/.."
kustomize=$1 version=$2 dir=$3
number='(0|[1-9][0-9]*)' identifier='[0-9A-Za-z-]+'
if ! [[ $version =~ ^v$number\.$number\.$number(-$identifier(\.$identifier)*)?$ ]]; then
  echo "release: '$version' is no version that clusterctl reads: give one like VERSION=v0.1.0" >&2
  exit 1
fi
major=${BASH_REMATCH[1]} minor=${BASH_REMATCH[2]}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
config/render.sh "$kustomize" "$work"

# Each release knows the series of those before it and its own, the newest first: clusterctl goes by the first that has its contract.
metadata() {
  sed '/^releaseSeries:/q' config/metadata.yaml
  grep -A1 "^- major: $major$" config/metadata.yaml | grep -q "^  minor: $minor$" ||
    printf -- '- major: %s\n  minor: %s\n  contract: v1beta2\n' "$major" "$minor"
  sed '1,/^releaseSeries:/d' config/metadata.yaml
}
# What an earlier run has written and this one does not is no part of the release. Providers of others may lie in the same directory.
for label in cluster-api bootstrap-millwright-cloudconfig infrastructure-millwright-{aws,azure,gcp} target images; do
  rm -rf "${dir:?}/$label/$version"
done
component() { # label, rendered file, name of the file
  mkdir -p "$dir/$1/$version"
  cp "$work/$2" "$dir/$1/$version/$3"
  metadata >"$dir/$1/$version/metadata.yaml"
}
component cluster-api core/core-components.yaml core-components.yaml
component cluster-api core-cert-manager/core-components.yaml core-components-cert-manager.yaml
component cluster-api core-without-webhooks/core-components.yaml core-components-without-webhooks.yaml
component bootstrap-millwright-cloudconfig bootstrap-cloudconfig/bootstrap-components.yaml bootstrap-components.yaml
for cloud in aws azure gcp; do
  component "infrastructure-millwright-$cloud" "infrastructure-$cloud/infrastructure-components.yaml" infrastructure-components.yaml
  cp config/templates/"$cloud"/cluster-template*.yaml "$dir/infrastructure-millwright-$cloud/$version/"
done
mkdir -p "$dir/target/$version" "$dir/cert-manager/v0.0.1"
cp "$work/target/target-components.yaml" config/samples/aws/kubeconfig-secret.yaml.tmpl "$dir/target/$version/"
# For Cluster API's own programs in the target cluster.
cp config/samples/upstream/kubeadm.yaml "$dir/target/$version/kubeadm.yaml"
cp config/samples/upstream/core.yaml "$dir/target/$version/cluster-api-core.yaml"
cp config/release/cert-manager.yaml "$dir/cert-manager/v0.0.1/"
cp config/release/clusterctl.yaml "$dir/"
notes=docs/releases/v$major.$minor.md
{ echo "# Millwright $version"; echo; sed 1d "$notes" 2>/dev/null || true
  echo; echo "## Images"; echo
  grep -ho 'image: .*' "$work"/{core,bootstrap-cloudconfig,infrastructure-*}/*-components.yaml | sed 's/image: \(.*\)/- `\1`/' | sort -u
} >"$dir/release-notes-$version.md"
echo "release: $version is in $dir; set MILLWRIGHT_RELEASE=$(cd "$dir" && pwd) and use clusterctl --config $dir/clusterctl.yaml"
