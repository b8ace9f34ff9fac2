// Package example has the custom resource definitions of the example provider, for tests.
package example

import "embed"

// CRDs are the definitions, by their paths from this directory. Why they are compiled in: see package config.
//
//go:embed provider/config/crd/*.yaml
var CRDs embed.FS
