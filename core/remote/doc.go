// Package remote has what the core keeps of target clusters, on the connections of contracts/remote: a cache of Nodes, and the
// requests about Nodes, none of which a worker of a controller waits for.
//
// Nodes are cached without what nothing reads (images, addresses, heartbeat times, managed fields), so a
// heartbeat changes nothing and wakes nothing.
package remote
