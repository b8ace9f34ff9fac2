#!/usr/bin/env bash
# Renders the install manifests into a directory, out by default: one directory per provider as clusterctl expects them. The images are
# $REGISTRY/millwright-…:$TAG.
# usage: REGISTRY=… TAG=… config/render.sh path/to/kustomize [directory [release]]
# With release: into an empty directory, only what release.sh takes from there.
set -euo pipefail
cd "$(dirname "$0")/.."
kustomize=$1 out=${2:-out} purpose=${3:-}
registry=${REGISTRY:-registry.millwright.dev} tag=${TAG:-dev}
# What a registry or clusterctl would refuse is refused here, and nothing in it means anything to sed.
part='[a-z0-9]+([._-]+[a-z0-9]+)*'
if ! [[ $registry =~ ^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?)(/$part)*$ ]]; then
  echo "render: REGISTRY='$registry' cannot be in the name of an image: give one like REGISTRY=registry.example.com/team" >&2
  exit 1
fi
domain=${registry%%/*}
if ! [[ $domain =~ [.:] || $domain == localhost ]]; then
  echo "render: REGISTRY='$registry' has no registry's domain, with a dot or a port, before the first slash: clusterctl takes no image without." \
    "Give one like REGISTRY=registry.example.com/team, or docker.io/team" >&2
  exit 1
fi
if ! [[ $tag =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$ ]]; then
  echo "render: TAG='$tag' is no tag of an image: give one like TAG=v0.1.0" >&2
  exit 1
fi

mkdir -p "$out"
# As in generate.sh: nothing is to be done while inputs and outputs are those of the last run.
state() {
  { echo "$kustomize $registry $tag"
    find config "$out" -path "$out/release" -prune -o -type f -name '*.yaml' -print0 | sort -z | xargs -0 sha256sum config/render.sh
  } | sha256sum
}
stamp=$out/render.sum
[ ! -f "$stamp" ] || [ "$(state)" != "$(cat "$stamp")" ] || exit 0

render() { # directory of the kustomization, file below out/
  mkdir -p "$out/${2%/*}"
  "$kustomize" build "$1" | sed "s|image: registry.millwright.dev/\\(.*\\):dev$|image: $registry/\\1:$tag|" >"$out/$2"
}
render config/core core/core-components.yaml
render config/core/without-webhooks core-without-webhooks/core-components.yaml
render config/core/cert-manager core-cert-manager/core-components.yaml
render config/providers/aws infrastructure-aws/infrastructure-components.yaml
render config/providers/azure infrastructure-azure/infrastructure-components.yaml
render config/providers/gcp infrastructure-gcp/infrastructure-components.yaml
render config/bootstrap/cloudconfig bootstrap-cloudconfig/bootstrap-components.yaml
render config/target-cluster target/target-components.yaml
[ "$purpose" != release ] || exit 0
for provider in core core-without-webhooks core-cert-manager infrastructure-aws infrastructure-azure infrastructure-gcp bootstrap-cloudconfig; do
  cp config/metadata.yaml "$out/$provider/metadata.yaml"
done
# What config/tilt/Tiltfile deploys, for its test.
for overlay in core cloudconfig aws azure gcp clouds; do
  render "config/tilt/$overlay" "tilt/$overlay.yaml"
done
# The plain CRDs, a file each.
rm -rf "$out/core/crds"
mkdir -p "$out/core/crds"
"$kustomize" build config/core/crd -o "$out/core/crds"
state >"$stamp"
