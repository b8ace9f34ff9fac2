// Package static verifies what manifests show of a provider: its CRDs, roles, metadata.yaml and templates. It needs no cluster.
package static
