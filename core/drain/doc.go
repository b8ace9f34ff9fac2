// Package drain empties Nodes: it cordons them and evicts their pods, without ever blocking the caller.
//
// A Drainer holds any number of drains, one for each Node. Step begins a drain or takes over what has changed in the Request,
// and returns at once. From then on the drain continues by itself, by the events of the Node's pods and by deadlines.
// Options.Notify is called when something has changed, and the caller calls Step again.
//
// Nothing is stored: what a drain has reached is derived from the Node and its pods, so it survives a restart of the process.
package drain
