package inframachine

import (
	"context"
	"sync"

	"millwright.dev/providers/driver"
)

// endInstances asks the cloud to terminate instances that carry the marks of their handles, and before that to lift the protection that
// their specs have asked for: anyone who deletes the Machine asks for its end. Those without any come first, since the others are a call
// each. It has one error, or nil, for each handle.
func (r *Reconciler[M]) endInstances(ctx context.Context, in driver.Scope, handles []driver.Handle) []error {
	errs := make([]error, len(handles))
	var plain, protected []int // in handles
	for n, h := range handles {
		if h.Protected {
			protected = append(protected, n)
		} else {
			plain = append(plain, n)
		}
	}
	r.endSome(ctx, in, handles, plain, errs)
	r.endSome(ctx, in, handles, r.unprotect(ctx, in, handles, protected, errs), errs)
	return errs
}

// endSome asks the cloud to terminate some of the instances, and sets their errors.
func (r *Reconciler[M]) endSome(ctx context.Context, in driver.Scope, handles []driver.Handle, some []int, errs []error) {
	if len(some) == 0 {
		return
	}
	chosen := make([]driver.Handle, 0, len(some))
	for _, n := range some {
		chosen = append(chosen, handles[n])
	}
	for i, err := range r.deleteInstances(ctx, in, chosen) {
		errs[some[i]] = err
	}
}

// unprotectors is for how many instances of a batch the protection is lifted at a time.
const unprotectors = 10

// unprotect lifts the protection of some of the instances, waits no longer for all of them than for any call, and returns those that may be
// terminated now. The others get its errors. What the cloud does not know any more is left to the termination to say. Some are asked for at
// a time, so that a few whose calls hang do not take the time of all behind them.
func (r *Reconciler[M]) unprotect(ctx context.Context, in driver.Scope, handles []driver.Handle, some []int, errs []error) []int {
	unprotector, ok := r.Driver.(driver.Unprotector[M])
	if !ok {
		return some
	}
	ctx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	var calls sync.WaitGroup
	turns := make(chan struct{}, unprotectors)
	for _, n := range some {
		turns <- struct{}{}
		calls.Go(func() {
			defer func() { <-turns }()
			errs[n] = driver.Recover(ctx, "unprotect", func() error {
				return r.limiter.Do(ctx, r.cloud.LimitScope(in), driver.CallModify, func(ctx context.Context) error {
					return unprotector.Unprotect(ctx, in, handles[n])
				})
			})
		})
	}
	calls.Wait()
	var ready []int
	for _, n := range some {
		if driver.IgnoreNotFound(errs[n]) == nil {
			ready = append(ready, n)
		}
	}
	return ready
}
