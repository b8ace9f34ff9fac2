// Package static verifies the manifests of a provider: its CRDs, roles, metadata.yaml and templates. It needs no cluster.
package static
