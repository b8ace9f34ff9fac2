// Package drain empties Nodes: it cordons them and evicts their pods, without ever blocking the caller.
//
// A Drainer holds any number of drains, one for each Node. The caller – a reconciler – calls Step whenever
// the thing that it reconciles comes up. Step returns at once: it begins the drain, or takes over what has
// changed in the Request, and returns how far the drain is and what is awaited. From then on the drain goes by
// itself, by the events of the Node's pods and by deadlines: it cordons, evicts, tries again what was
// refused. Options.Notify is called when something has changed, and the caller calls Step again. Nothing is polled.
//
// Each drain costs one patch for the cordon, one list and one watch of the pods of that Node alone (one
// request when the API server streams lists), one request for each eviction and one for each retry. The
// DaemonSets of a cluster are listed once a minute at most, and only while a pod of a DaemonSet is met.
//
// Nothing is stored: what a drain has reached is derived from the Node and its pods, so it survives a
// restart of the process and may move to another replica.
package drain
