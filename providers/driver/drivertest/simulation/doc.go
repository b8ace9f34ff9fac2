// Package simulation runs a provider's Driver under the kit's reconciler in simulated time (testing/synctest): with an API server in
// memory, caches that lag, processes that crash or work at the same time, and a network to the cloud that loses, delays and repeats. It
// knows no cloud; what has to hold is judged by those who use it: the kit's own simulation, and the suite in drivertest.
package simulation
