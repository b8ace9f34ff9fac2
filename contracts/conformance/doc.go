// Package conformance verifies that a provider or a core keeps the rules of the contract. It is used by the command in
// cmd/conformance and can be imported by tests. The cases are in packages below it: static, those that need manifests alone;
// behaviour, in which the suite plays the core and watches a provider; core, in which it plays the providers and watches a core.
//
// A case records findings about rules; Collect turns them into the results of a report.
package conformance
