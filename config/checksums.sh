#!/usr/bin/env bash
# Writes the checksums of a release, its images among them. It comes last.
# usage: config/checksums.sh v0.1.0 directory
set -euo pipefail
version=$1
cd "$2"
# All that belongs to this version; clusterctl.yaml and the stub are those of every version.
find . -type f \( -path "*/$version/*" -o -path './cert-manager/*' -o -name clusterctl.yaml -o -name "release-notes-$version.md" \) -print0 |
  sort -z | xargs -0 sha256sum >"checksums-$version.txt"
