// Package faults makes the servers that a program talks to unreliable in ways that real ones are: a reverse proxy
// before a Kubernetes API server, and a layer around a simulated cloud. What goes wrong follows from a seed.
package faults
