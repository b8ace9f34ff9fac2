// Package remote keeps the connections to target clusters: the clusters in which Machines are Nodes.
//
// Each Cluster has one goroutine that dials with the kubeconfig Secret `<cluster>-kubeconfig`, keeps a cache
// of Nodes, probes the API server, and dials again when needed. A cluster that does not answer holds up
// nobody but itself. The goroutine and all that it started end with the Cluster.
//
// Nodes are cached without what nobody reads (images, addresses, heartbeat times, managed fields), so a
// heartbeat changes nothing and wakes nobody. Everything else is read live, through Connection.Client.
package remote
