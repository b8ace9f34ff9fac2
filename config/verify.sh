#!/usr/bin/env bash
# Fails when something derived is not what its source says: generated code, CRDs, RBAC, go.mod.
set -euo pipefail
cd "$(dirname "$0")/.."

state() { git status --porcelain --untracked-files=all; git diff HEAD; }
before=$(state | sha256sum)
make generate
for dir in . test/controlplane/binaries test/scale/upstream; do
  (cd "$dir" && go mod tidy)
done
if [ "$before" != "$(state | sha256sum)" ]; then
  git status --short
  git --no-pager diff HEAD | head -100
  echo "verify: files above are not up to date; run 'make generate' and 'go mod tidy' and commit the result" >&2
  exit 1
fi
go vet ./...
