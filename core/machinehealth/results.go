package machinehealth

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/health"
)

// Result is what a round has found for a MachineHealthCheck.
type Result struct {
	// UID and Generation are those of the MachineHealthCheck that the round has read.
	UID        types.UID
	Generation int64
	// Invalid is what is wrong with its spec; "" for nothing. Then nothing is remediated.
	Invalid string
	// Targets are the names of the Machines that it judges, sorted.
	Targets []string
	// Healthy is how many of them are. Unhealthy is how many are to be replaced by what it asks for; the others only wait.
	Healthy, Unhealthy int
	// Limit is what its limits allow.
	health.Limit
	// Unreadable is why the Nodes cannot be read now; "" when they can. Then the numbers are those of before, as far as there are any.
	Unreadable string
	// Connecting means that it is not known yet whether they can: the connection is being made.
	Connecting bool
	// NotJudged is how many Machines are not judged because of that.
	NotJudged int
	// Frozen is why Held unhealthy Machines are not handed over now; "" for none.
	Frozen string
	Held   int
	// Refused is what the API server has refused to write to the Machines, or about their remediation, in its words; "" for nothing.
	Refused string
	// Template is why there is nothing to make requests of external remediation from; "" for nothing.
	Template string
}

// Results are the latest results by MachineHealthCheck. The zero value is ready for use.
type Results struct {
	mu       sync.Mutex
	of       map[client.ObjectKey]Result
	onChange []func(client.ObjectKey)
}

// Get returns the latest result; false when there has been no round for it yet.
func (r *Results) Get(check client.ObjectKey) (Result, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.of[check]
	return found, ok
}

// OnChange has f called when there is another result. f must not block.
func (r *Results) OnChange(f func(check client.ObjectKey)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onChange = append(r.onChange, f)
}

// Forget drops the result of a MachineHealthCheck that no longer exists.
func (r *Results) Forget(check client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, check)
}

func (r *Results) set(check client.ObjectKey, result Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, ok := r.of[check]; ok && reflect.DeepEqual(before, result) {
		return
	}
	if r.of == nil {
		r.of = map[client.ObjectKey]Result{}
	}
	r.of[check] = result
	for _, f := range r.onChange {
		f(check)
	}
}

// publish stores the results of the round for their users.
func (r *Reconciler) publish(s *round) {
	for _, c := range s.checks {
		if c.own && !c.paused {
			r.Results.set(client.ObjectKeyFromObject(c.MachineHealthCheck), c.result)
		}
	}
	unhealthy := map[string]int{}
	for _, t := range s.targets {
		if t.State == health.Unhealthy {
			unhealthy[t.Reason]++
		}
	}
	collected.set(s.key, unhealthy)
}
