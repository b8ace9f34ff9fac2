// Package measure reads what a core costs: its own metrics (API requests, reconciles), the kernel's
// account of its process (CPU time, resident memory) and the API server's audit log (which resources
// the requests were for). It starts nothing and waits for nothing; a cost is the difference of two
// samples.
package measure
