package limit

import (
	"context"
	"slices"

	"millwright.dev/providers/driver"
)

// Driver returns a driver that keeps to the limits:
//
//   - Create does not wait, since its turn was waited for by Admit, before the launch was recorded. While CallCreate is
//     closed it returns an error of class Throttle, and nothing was called.
//   - Delete, of kind CallDelete, Observe, Places and Cleanup, of CallRead, and List, of CallList, are calls as of Do. If
//     the Limiter makes none, those for many handles answer so for each.
//
// It implements driver.StatusLister if d does; ListStatus is of CallList. It implements no other interface that d may
// implement beside Driver.
func Driver[M driver.Object](d driver.Driver[M], l *Limiter) driver.Driver[M] {
	limited := limitedDriver[M]{driver: d, limiter: l}
	if lister, ok := d.(driver.StatusLister); ok {
		return limitedStatusDriver[M]{limitedDriver: limited, lister: lister}
	}
	return limited
}

// limitedDriver names each method of Driver, so that a new one is not passed on without a limit.
type limitedDriver[M driver.Object] struct {
	driver  driver.Driver[M]
	limiter *Limiter
}

// limitedStatusDriver is a limitedDriver that implements driver.StatusLister.
type limitedStatusDriver[M driver.Object] struct {
	limitedDriver[M]
	lister driver.StatusLister
}

func (d limitedDriver[M]) Traits() driver.Traits { return d.driver.Traits() }

func (d limitedDriver[M]) Scope(obj M) driver.Scope { return d.driver.Scope(obj) }

func (d limitedDriver[M]) LimitScope(scope driver.Scope) string { return d.driver.LimitScope(scope) }

func (d limitedDriver[M]) Mark(handle driver.Handle) string { return d.driver.Mark(handle) }

func (d limitedDriver[M]) Create(ctx context.Context, launch driver.Launch[M]) (driver.Accepted, error) {
	limitScope := d.driver.LimitScope(launch.Scope)
	began, err := d.limiter.refuse(pair{limitScope, driver.CallCreate})
	if err != nil {
		return driver.Accepted{}, err
	}
	accepted, err := d.driver.Create(ctx, launch)
	d.limiter.report(limitScope, driver.CallCreate, began, err)
	return accepted, err
}

func (d limitedDriver[M]) Places(ctx context.Context, launch driver.Launch[M]) (places []driver.Candidate, err error) {
	err = d.limiter.Do(ctx, d.driver.LimitScope(launch.Scope), driver.CallRead, func(ctx context.Context) (err error) {
		places, err = d.driver.Places(ctx, launch)
		return err
	})
	return places, err
}

func (d limitedDriver[M]) Observe(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	return about(ctx, d.limiter, d.driver.LimitScope(scope), len(handles), func(ctx context.Context) []driver.Answer[driver.Instance] {
		return d.driver.Observe(ctx, scope, handles)
	})
}

func (d limitedDriver[M]) Cleanup(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	return about(ctx, d.limiter, d.driver.LimitScope(scope), len(handles), func(ctx context.Context) []driver.Answer[[]string] {
		return d.driver.Cleanup(ctx, scope, handles)
	})
}

// about makes a call of CallRead for n handles.
func about[T any](
	ctx context.Context, l *Limiter, limitScope string, n int, call func(context.Context) []driver.Answer[T],
) []driver.Answer[T] {
	began, err := l.turn(ctx, limitScope, driver.CallRead)
	if err != nil {
		return driver.Failed[T](n, err)
	}
	answers := call(ctx)
	errs := make([]error, 0, len(answers))
	for _, a := range answers {
		errs = append(errs, a.Err)
	}
	l.report(limitScope, driver.CallRead, began, errs...)
	return answers
}

func (d limitedDriver[M]) Delete(ctx context.Context, scope driver.Scope, handles []driver.Handle) []error {
	limitScope := d.driver.LimitScope(scope)
	began, err := d.limiter.turn(ctx, limitScope, driver.CallDelete)
	if err != nil {
		return slices.Repeat([]error{err}, len(handles))
	}
	errs := d.driver.Delete(ctx, scope, handles)
	d.limiter.report(limitScope, driver.CallDelete, began, errs...)
	return errs
}

func (d limitedDriver[M]) List(ctx context.Context, scope driver.Scope) (instances []driver.Instance, err error) {
	err = d.limiter.Do(ctx, d.driver.LimitScope(scope), driver.CallList, func(ctx context.Context) (err error) {
		instances, err = d.driver.List(ctx, scope)
		return err
	})
	return instances, err
}

// ListStatus implements driver.StatusLister.
func (d limitedStatusDriver[M]) ListStatus(ctx context.Context, scope driver.Scope) (status map[string]driver.Status, err error) {
	err = d.limiter.Do(ctx, d.driver.LimitScope(scope), driver.CallList, func(ctx context.Context) (err error) {
		status, err = d.lister.ListStatus(ctx, scope)
		return err
	})
	return status, err
}
