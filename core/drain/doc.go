// Package drain empties Nodes: it cordons them and evicts their pods, without ever blocking the caller.
//
// A Drainer holds any number of drains, one for each Node. The caller – a reconciler – calls Step whenever
// the thing that it reconciles comes up, and Step returns at once: it looks at what is known, sends what is
// due (the cordon, evictions) from goroutines of its own, and says what is awaited. When there is something
// to do or to report, Options.Notify is called with the key of the drain, and the caller calls Step again.
// Retries are due at Result.NextDeadline; the caller comes back then. Nothing is polled.
//
// Each drain costs one patch for the cordon, one list and one watch of the pods of that Node alone (one
// request when the API server streams lists), one request for each eviction and one for each retry. The
// DaemonSets of a cluster are listed once a minute at most, and only while a pod of a DaemonSet is met.
//
// Nothing is stored: what a drain has reached is derived from the Node and its pods, so it survives a
// restart of the process and may move to another replica.
package drain
