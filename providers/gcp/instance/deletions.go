package instance

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
)

// deletions are the deletions that Compute Engine has accepted, which go on as operations and may fail. The next request to delete the same
// resource reads the operation. Nothing is persisted: a new process asks for the deletion again.
type deletions struct {
	mu    sync.Mutex
	known map[string]deletion
}

// deletion is what is known of the deletion of one resource.
type deletion struct {
	// operation that continues, as far as is known; empty if there is none.
	operation string
	// failed is why the latest operation that has ended has failed; nil if none has.
	failed error
	at     time.Time
}

// maxDeletions is how many deletions are kept at least; keepDeletion is for how long others are.
const (
	maxDeletions = 1000
	keepDeletion = time.Hour
)

func (d *deletions) get(key string) deletion {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[key]
}

func (d *deletions) set(key string, to deletion) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]deletion{}
	}
	if len(d.known) >= maxDeletions {
		for k, old := range d.known {
			if time.Since(old.at) > keepDeletion {
				delete(d.known, k)
			}
		}
	}
	to.at = time.Now()
	d.known[key] = to
}

func (d *deletions) forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, key)
}

// deleteOnce deletes what a key stands for, unless a deletion of it continues. It returns why the latest deletion has failed, until one
// succeeds, also while another one continues: the caller waits longer each time. late is true for such a failure.
func (d *Driver) deleteOnce(
	ctx context.Context, scope driver.Scope, zone, key string, ask func() (operation, error),
) (late bool, err error) {
	key = scope.String() + "/" + zone + "/" + key
	known := d.deletions.get(key)
	if known.operation != "" {
		switch ended, failure := d.endedOperation(ctx, scope, zone, known.operation); {
		case driver.IsNotFound(failure) && !ended:
			known.operation = "" // Compute Engine does not know it any more.
		case failure != nil && !ended:
			return false, driver.WithoutEffect(failure)
		case !ended:
			return true, known.failed
		case failure != nil:
			d.deletions.set(key, deletion{failed: failure})
			return true, failure
		default:
			known = deletion{} // Lists may not show yet that it is gone.
		}
	}
	accepted, err := ask()
	if err != nil {
		d.deletions.forget(key)
		return false, err
	}
	known.operation = accepted.Name
	d.deletions.set(key, known)
	return true, known.failed
}

// endedOperation returns whether an operation of a zone has ended, and with which failure.
func (d *Driver) endedOperation(ctx context.Context, scope driver.Scope, zone, name string) (ended bool, failure error) {
	var o operation
	err := d.call(ctx, scope, request{
		name: "zoneOperations.get", method: http.MethodGet, path: []string{"zones", zone, "operations", name},
		query: url.Values{"fields": {operationFields}},
	}, &o)
	if err != nil || o.Status != "DONE" {
		return false, err
	}
	if len(o.Error.Errors) == 0 {
		return true, nil
	}
	f := o.Error.Errors[0]
	return true, &driver.Error{Class: refusedLate(f), Operation: "Delete", Code: f.Code,
		Err: errors.Errorf("the cloud accepted the deletion and did not carry it out: %s", f.Message)}
}
