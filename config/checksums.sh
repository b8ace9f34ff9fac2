#!/usr/bin/env bash
# Writes the checksums of a release, its images among them. It comes last.
# usage: config/checksums.sh v0.1.0 directory
set -euo pipefail
version=$1
cd "$2"
# All of ours that belongs to this version; clusterctl.yaml and the stub are those of every version. Providers of others may lie beside it.
find . -type f \( -path "./cluster-api/$version/*" -o -path "./*-millwright-*/$version/*" -o -path "./target/$version/*" -o -path "./images/$version/*" -o -path ./cert-manager/v0.0.1/cert-manager.yaml -o -path ./clusterctl.yaml -o -path "./release-notes-$version.md" \) -print0 |
  sort -z | xargs -0 sha256sum >"checksums-$version.txt"
