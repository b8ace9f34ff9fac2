// Package remote has the connections to target clusters: the clusters in which Machines are Nodes. The core and the bootstrap
// provider use the same ones, with the same bounds.
//
// Each Cluster has one goroutine that dials with the kubeconfig Secret `<cluster>-kubeconfig`, probes the API server, and dials
// again when needed. A cluster that does not answer delays nothing but itself. The goroutine and all that it started end
// with the Cluster. What a manager caches of target clusters it attaches to each connection, see Options.Attach.
package remote
