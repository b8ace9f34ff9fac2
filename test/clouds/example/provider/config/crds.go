// Package config has the custom resource definitions of the example provider, for tests.
package config

import "embed"

// CRDs are the definitions, by their paths from this directory. Why they are compiled in: see package config of the repository.
//
//go:embed crd/*.yaml
var CRDs embed.FS
