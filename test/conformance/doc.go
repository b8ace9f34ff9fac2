// Package conformance runs the conformance suite on our providers and on others that can be run here, on simulated clouds, and keeps the
// reports in docs/conformance. See README.md.
package conformance
