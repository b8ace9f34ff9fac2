package machinetemplate

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
)

// How long a call to the cloud that has failed is not repeated: doubled from the first up to the last. What people repair
// begins with the slow one.
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
	// uid tells a template from a later one of the same name.
	uid types.UID
	// failures in a row.
	failures int
	until    time.Time
	// never says that asking again is of no use.
	never bool
}

// failed remembers a failure and says when the template is to be reconciled again.
func (r *retries) failed(template client.Object, failure error, now time.Time) ctrl.Result {
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
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: wait}
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

// held says whether the template is not to be asked for now, and when it is to be reconciled again.
func (r *retries) held(template client.Object, now time.Time) (bool, ctrl.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[client.ObjectKeyFromObject(template)]
	switch wait := e.until.Sub(now); {
	case !ok || e.uid != template.GetUID():
		return false, ctrl.Result{}
	case e.never:
		return true, ctrl.Result{}
	case wait > 0:
		return true, ctrl.Result{RequeueAfter: wait}
	}
	return false, ctrl.Result{}
}

func (r *retries) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, key)
}
