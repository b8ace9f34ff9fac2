package machinetemplate

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
)

// How long a call to the cloud that has failed is not repeated: doubled from firstRetry up to lastRetry. What people have to repair
// begins with slowRetry.
const (
	firstRetry = time.Second
	slowRetry  = 30 * time.Second
	lastRetry  = 10 * time.Minute
)

// retries keeps, for each template, when the cloud may be asked again. It is kept in memory only: after a restart each
// template is asked for once at once.
type retries struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]retry
}

type retry struct {
	// uid distinguishes a template from a later one of the same name.
	uid types.UID
	// failures in a row.
	failures int
	until    time.Time
	// never is true if asking again is of no use.
	never bool
}

// failed remembers a failure. The outcome has the time when the template is to be reconciled again.
func (r *retries) failed(template client.Object, failure error, now time.Time) outcome.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries == nil {
		r.entries = map[types.NamespacedName]retry{}
	}
	key := client.ObjectKeyFromObject(template)
	e := r.entries[key]
	if e.uid != template.GetUID() {
		e = retry{uid: template.GetUID()}
	}
	e.failures++
	wait := max(waitAfter(driver.ClassOf(failure), e.failures), driver.RetryAfterOf(failure))
	e.until, e.never = now.Add(wait), driver.IsTerminal(failure)
	r.entries[key] = e
	if e.never {
		return outcome.Wait()
	}
	return outcome.WaitFor(wait)
}

// waitAfter returns the wait after the n-th failure in a row.
func waitAfter(class driver.Class, n int) time.Duration {
	wait := firstRetry
	if class == driver.ClassAuth || class == driver.ClassQuota || class == driver.ClassUnresolved {
		wait = slowRetry
	}
	for ; n > 1 && wait < lastRetry; n-- {
		wait *= 2
	}
	return min(wait, lastRetry)
}

// held is finished if the template may be asked for now; else it has the time when it is to be reconciled again.
func (r *retries) held(template client.Object, now time.Time) outcome.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[client.ObjectKeyFromObject(template)]
	switch wait := e.until.Sub(now); {
	case !ok || e.uid != template.GetUID():
		return outcome.Continue()
	case e.never:
		return outcome.Wait()
	case wait > 0:
		return outcome.WaitFor(wait)
	}
	return outcome.Continue()
}

func (r *retries) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, key)
}
