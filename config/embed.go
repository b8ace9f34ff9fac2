// Package config has custom resource definitions and manifests of this directory, for tests. They are compiled in: what a test program
// reads before its first test begins, as it does to start an API server, is not among the inputs by which the go command decides whether a
// cached result still holds.
package config

import "embed"

// CRDs are the definitions, by their paths from this directory.
//
//go:embed core/crd/generated/*.yaml providers/*/crd/*.yaml bootstrap/*/crd/*.yaml
var CRDs embed.FS

// Manifests are those that tests install before the first one begins, by their paths from this directory.
//
//go:embed core/webhook/*.yaml target-cluster/*.yaml
var Manifests embed.FS
