#!/usr/bin/env bash
# Regenerates what is derived from Go code: deepcopy functions, CRDs, RBAC roles.
# Upstream's CRDs are derived from its module, and committed like our own, so that kustomize builds config from a fresh clone.
# usage: config/generate.sh path/to/controller-gen
set -euo pipefail
cd "$(dirname "$0")/.."
gen=$1

# Seven seconds that every build would wait for. What it depends on and what it makes: a change of either runs it again.
state() {
  { echo "$gen"; sha256sum go.mod config/generate.sh bootstrap/cloudconfig/kubeletrules/featuregates.txt
    find core providers bootstrap contracts test/clouds/example -name '*.go' ! -name '*_test.go' -print0 | sort -z | xargs -0 sha256sum
    cat contracts/*/README.md
    find config/core/crd/generated config/*/rbac config/*/*/rbac config/*/*/crd test/clouds/example/provider/config -type f -print0 |
      sort -z | xargs -0 sha256sum
  } 2>/dev/null | sha256sum
}
stamp=out/generate.sum
[ ! -f "$stamp" ] || [ "$(state)" != "$(cat "$stamp")" ] || exit 0

core_crds=config/core/crd/generated
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$gen" paths=sigs.k8s.io/cluster-api/api/core/v1beta1 paths=sigs.k8s.io/cluster-api/api/core/v1beta2 \
  paths=sigs.k8s.io/cluster-api/api/ipam/v1alpha1 paths=sigs.k8s.io/cluster-api/api/ipam/v1beta1 \
  paths=sigs.k8s.io/cluster-api/api/ipam/v1beta2 \
  crd:crdVersions=v1 output:crd:dir="$tmp"
mkdir -p "$core_crds"
for kind in {clusters,machines,machinesets,machinedeployments,machinehealthchecks,machinedrainrules,machinepools}.cluster.x-k8s.io \
  {ipaddresses,ipaddressclaims}.ipam.cluster.x-k8s.io; do
  file=${kind#*.}_${kind%%.*}.yaml
  # No timestamps move when nothing changed: builds that depend on the file stay cached.
  cmp -s "$tmp/$file" "$core_crds/$file" || cp "$tmp/$file" "$core_crds/"
done

"$gen" rbac:roleName=millwright-system-core-manager paths=./core/... output:rbac:dir=config/core/rbac
"$gen" object rbac:roleName=millwright-aws-system-manager crd:crdVersions=v1 \
  paths=./providers/aws/... paths=./providers/driver/... \
  output:crd:dir=config/providers/aws/crd output:rbac:dir=config/providers/aws/rbac
"$gen" object rbac:roleName=millwright-gcp-system-manager crd:crdVersions=v1 \
  paths=./providers/gcp/... paths=./providers/driver/... \
  output:crd:dir=config/providers/gcp/crd output:rbac:dir=config/providers/gcp/rbac
"$gen" object rbac:roleName=millwright-azure-system-manager crd:crdVersions=v1 \
  paths=./providers/azure/... paths=./providers/driver/... \
  output:crd:dir=config/providers/azure/crd output:rbac:dir=config/providers/azure/rbac
"$gen" object rbac:roleName=millwright-cloudconfig-system-manager crd:crdVersions=v1 \
  paths=./bootstrap/cloudconfig/... \
  output:crd:dir=config/bootstrap/cloudconfig/crd output:rbac:dir=config/bootstrap/cloudconfig/rbac
# What a kubelet accepts is a table, which Go types cannot express.
go run -trimpath ./bootstrap/cloudconfig/kubeletrules/cmd/schema \
  config/bootstrap/cloudconfig/crd/bootstrap.millwright.dev_cloudconfigs.yaml:spec.kubelet \
  config/bootstrap/cloudconfig/crd/bootstrap.millwright.dev_cloudconfigtemplates.yaml:spec.template.spec.kubelet
# The example of docs/guides/write-a-provider.md is installed by nobody, so its manifests are beside it.
"$gen" object rbac:roleName=millwright-example-manager crd:crdVersions=v1 \
  paths=./test/clouds/example/provider/... paths=./providers/driver/... \
  output:crd:dir=test/clouds/example/provider/config/crd output:rbac:dir=test/clouds/example/provider/config/rbac
# The tables of rules in the pages of the contracts.
go run -trimpath ./contracts/rules/cmd/tables
mkdir -p out
state >"$stamp"
