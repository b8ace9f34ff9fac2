package inframachine

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// store is what keeps the user data of an object beside its instance; nil if its spec does not ask for that.
func (r *Reconciler[M]) store(obj M) driver.UserDataStore[M] {
	if store, ok := r.Driver.(driver.UserDataStore[M]); ok && store.StoresUserData(obj) {
		return store
	}
	return nil
}

// isStored returns whether the user data that were read are those that this process has stored, for an object that has them stored at all.
func (r *Reconciler[M]) isStored(s *scope[M]) bool {
	return r.store(s.Object) == nil || r.storedOf(s).digest == sha256.Sum256(s.request.UserData)
}

// storedFor is for how long it is taken for granted that what was stored is still there: a launch that waits for hours looks again.
const storedFor = 10 * time.Minute

// storedData is what this process has stored for an object, and when.
type storedData struct {
	digest [sha256.Size]byte
	at     time.Time
}

func (r *Reconciler[M]) storedOf(s *scope[M]) storedData {
	if stored := r.stored.get(s.Key()); s.Now.Sub(stored.at) < storedFor {
		return stored
	}
	return storedData{}
}

// storeUserData stores the user data before a launch, once, and before that has a slot: others have it meanwhile. It waits for a turn of
// its own, since what stores the data may hang while the cloud's instances do not.
func (r *Reconciler[M]) storeUserData(ctx context.Context, s *scope[M]) outcome.Outcome {
	store := r.store(s.Object)
	if store == nil {
		return outcome.Continue()
	}
	if s.request.UserData == nil && r.storedOf(s) != (storedData{}) {
		return outcome.Continue() // What the launch reads is compared once more.
	}
	if s.request.UserData != nil && r.isStored(s) {
		return outcome.Continue()
	}
	leave, entered := r.storing.EnterFor(s.handle.Scope, s.Key())
	if !entered {
		return outcome.WaitFor(turnRetry + r.Options.Random(turnRetry/5))
	}
	defer leave()
	if s.request.UserData == nil {
		if out := r.readUserData(ctx, s); !out.Finished() {
			return out
		}
	}
	if out := r.holdStored(ctx, s); !out.Finished() {
		return out
	}
	s.completeRequest()
	if !s.launched.outstanding() { // The repetition of a launch has its own.
		lineage, wait := r.lineage(ctx, s)
		if wait > 0 {
			return outcome.WaitFor(wait)
		}
		s.request.Lineage = lineage
	} else {
		s.request.Lineage = s.launched.Lineage
	}
	callCtx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	err := r.limiter.Do(callCtx, r.cloud.LimitScope(s.handle.Scope), driver.CallStore, func(ctx context.Context) error {
		return store.StoreUserData(ctx, s.request)
	})
	if err != nil {
		return r.storeFailed(s, err)
	}
	r.stored.set(s.Key(), storedData{sha256.Sum256(s.request.UserData), s.Now})
	return outcome.Continue()
}

// holdStored records, before the first call, the finalizer and the UID by which what is stored is found again. From here on the object does
// not go before that has been removed.
func (r *Reconciler[M]) holdStored(ctx context.Context, s *scope[M]) outcome.Outcome {
	_, recorded := s.Object.GetAnnotations()[LaunchAnnotation]
	if recorded && !s.launched.UserDataRemoved && controllerutil.ContainsFinalizer(s.Object, Finalizer) {
		return outcome.Continue()
	}
	record := s.launched
	record.UserDataRemoved = false
	if err := s.writeRecord(ctx, record, nil); err != nil {
		return r.notRecorded(s, err)
	}
	return outcome.Continue()
}

// storeFailed explains why the user data cannot be stored, and decides when to try again: whatever the reason, nothing is lost by that.
func (r *Reconciler[M]) storeFailed(s *scope[M], err error) outcome.Outcome {
	err = &driver.Error{
		Class: driver.ClassOf(driver.WithoutEffect(err)), RetryAfter: driver.RetryAfterOf(err),
		Err: &storeError{err: err, outstanding: s.launched.outstanding()},
	}
	why := explain(err)
	s.events.Warning(launchFailedEvent, "Launch", "%s", why.message)
	s.observed.state = why
	return outcome.WaitFor(r.backoff.fail(s.Key(), err))
}

// storeError means that the user data could not be stored, so that this call launched nothing. outstanding is true if an earlier one may
// have.
type storeError struct {
	err         error
	outstanding bool
}

func (e *storeError) Error() string { return "storing the user data: " + e.err.Error() }

func (e *storeError) Unwrap() error { return e.err }

func storeErrorOf(err error) *storeError {
	var store *storeError
	if errors.As(err, &store) {
		return store
	}
	return nil
}

// explainStore explains it, and says what has been launched.
func explainStore(e *storeError) *explanation {
	why := explainStored(e.err)
	launched := "Nothing has been launched: "
	if e.outstanding {
		launched = "An earlier call may have launched an instance, which is still looked for; nothing more is launched: "
	}
	return &explanation{why.reason, launched + "the user data cannot be stored: " + why.message}
}

// explainStored explains why stored user data cannot be written or removed. None of it is permanent.
func explainStored(err error) *explanation {
	cause := withoutStop(err)
	switch driver.ClassOf(err) {
	case driver.ClassConflict:
		return &explanation{driverv1.ForeignInstanceReason, cause}
	case driver.ClassTerminal:
		return &explanation{driverv1.InvalidConfigurationReason,
			cause + ". Retried slowly; replace the Machine by one with a spec that the cloud accepts"}
	case driver.ClassUnknown, driver.ClassNotFound, driver.ClassRefused, driver.ClassCapacity:
		return &explanation{driverv1.CloudErrorReason, cause + ". Retried with backoff"}
	case driver.ClassQuota, driver.ClassThrottle, driver.ClassAuth, driver.ClassUnresolved:
	}
	return explain(err)
}
