// Package statuswrites checks design decision 7: at most one patch of an object's status in each reconcile. It
// type-checks the programs and follows the calls of Save of contracts/controller/scopes, which sends that patch.
package statuswrites
