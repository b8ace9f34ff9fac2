#!/usr/bin/env bash
# Fails when something derived is not what its source says: generated code, CRDs, RBAC, go.mod.
set -euo pipefail
cd "$(dirname "$0")/.."

state() { git status --porcelain --untracked-files=all; git diff HEAD; }
before=$(state | sha256sum)
rm -f out/generate.sum out/render.sum # What is up to date is found out by making it.
make generate
for dir in . test/controlplane/binaries test/scale/upstream test/scale/capa test/interop/upstream test/interop/certmanager; do
  (cd "$dir" && go mod tidy)
done
if [ "$before" != "$(state | sha256sum)" ]; then
  git status --short
  git --no-pager diff HEAD | head -100
  echo "verify: files above are not up to date; run 'make generate' and 'go mod tidy' and commit the result" >&2
  exit 1
fi
# A module that these have in common is compiled once, since it has one version. CEL is the control plane's own: what the API
# server evaluates is what Kubernetes was released with. JWT's is that of Azure's SDK: a small package, and no reason to build the control
# plane again.
versions() { awk '$1 == "require" {sub("require ", "")} $2 ~ /^v[0-9]/ {print $1, $2}' "$1" | sort; }
# The programs of others are built as they were released, with the versions of their go.mod: what is tried with them is what people run.
files=(go.mod test/controlplane/binaries/go.mod go.tools.mod)
others=(test/interop/certmanager/go.mod test/interop/upstream/go.mod test/scale/capa/go.mod test/scale/upstream/go.mod)
unlisted=$(git ls-files '*go.mod' go.tools.mod | grep -vxF "$(printf '%s\n' "${files[@]}" "${others[@]}")" || true)
if [ -n "$unlisted" ]; then
  echo "verify: $unlisted: name it in config/verify.sh among the modules that share their versions, or among the programs of others" >&2
  exit 1
fi
differing=$(for a in "${files[@]}"; do for b in "${files[@]}"; do
  [[ $a < $b ]] && join <(versions "$a") <(versions "$b") |
    awk -v files="$a, $b" '$2 != $3 && $2 != "v0.0.0" && $3 != "v0.0.0" && !/cel-go|antlr4-go|golang-jwt/ {print $0, "(" files ")"}'
done; done) || true
if [ -n "$differing" ]; then
  echo "$differing"
  echo "verify: modules above have two versions, and are compiled twice; align them with 'go get' in the directory of the lower one" >&2
  exit 1
fi
make manifests
# The variants of the core: each has what its name says.
with=out/core/core-components.yaml without=out/core-without-webhooks/core-components.yaml certmanager=out/core-cert-manager/core-components.yaml
expect() { # number, pattern, file
  local found
  found=$(grep -cE -- "$2" "$3" || true)
  [ "$found" = "$1" ] || { echo "verify: $3 has '$2' $found times, not $1" >&2; exit 1; }
}
expect 9 '^    strategy: Webhook$' "$with"
expect 9 '^    strategy: Webhook$' "$certmanager"
expect 0 'strategy: Webhook|WebhookConfiguration' "$without"
expect 1 'webhook-port=0' "$without"
expect 11 '^    served: false$' "$without"
expect 0 '^    served: false$' "$with"
expect 1 '^      name: Reason$' <(sed -n '/^  name: machines.cluster.x-k8s.io$/,/^---$/p' "$with")
expect 11 '^    webhooks.millwright.dev/trust-from:' "$with"
expect 0 'webhooks.millwright.dev/trust-from' "$certmanager"
expect 11 '^    cert-manager.io/inject-ca-from:' "$certmanager"
# A directive for a linter that is off hides nothing today and a finding tomorrow.
enabled=$(sed -n '/^  enable:$/,/^  settings:$/s/^  - //p' .golangci.yml | sort)
off=$(git grep -hoE '//nolint:[a-z,]+' -- '*.go' | cut -d: -f2 | tr , '\n' | sort -u | comm -23 - <(echo "$enabled"))
if [ -n "$off" ]; then
  echo "verify: nolint directives name linters that are off: $off; drop the directives, or turn the linters on" >&2
  exit 1
fi
# A program that was built in the tree and committed by mistake stays in every clone for ever.
binaries=$(git grep -ILe '' | while read -r file; do [ -s "$file" ] && echo "$file"; done || true)
if [ -n "$binaries" ]; then
  echo "verify: git tracks files that are not text: $binaries; remove them with 'git rm --cached' and build programs into bin/ or out/" >&2
  exit 1
fi
go vet ./...
