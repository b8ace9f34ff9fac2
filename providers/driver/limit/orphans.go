package limit

import (
	"context"
	"slices"

	"millwright.dev/providers/driver"
)

// Remarker returns the driver's Remarker, which keeps to the limits as Driver does; nil if it has none.
func Remarker[M driver.Object](d driver.Driver[M], l *Limiter) driver.Remarker {
	if remarker, ok := d.(driver.Remarker); ok {
		return limitedRemarker{remarker: remarker, limiter: l, limitScope: d.LimitScope}
	}
	return nil
}

type limitedRemarker struct {
	remarker   driver.Remarker
	limiter    *Limiter
	limitScope func(driver.Scope) string
}

func (r limitedRemarker) Remark(ctx context.Context, scope driver.Scope, handles []driver.Handle, lineage string) []error {
	limitScope := r.limitScope(scope)
	began, err := r.limiter.turn(ctx, limitScope, driver.CallModify)
	if err != nil {
		return slices.Repeat([]error{err}, len(handles))
	}
	errs := r.remarker.Remark(ctx, scope, handles, lineage)
	r.limiter.report(limitScope, driver.CallModify, began, errs...)
	return errs
}

// LeftoverLister returns the driver's LeftoverLister, which keeps to the limits as Driver does; nil if it has none.
func LeftoverLister[M driver.Object](d driver.Driver[M], l *Limiter) driver.LeftoverLister {
	if lister, ok := d.(driver.LeftoverLister); ok {
		return limitedLeftoverLister{lister: lister, limiter: l, limitScope: d.LimitScope}
	}
	return nil
}

type limitedLeftoverLister struct {
	lister     driver.LeftoverLister
	limiter    *Limiter
	limitScope func(driver.Scope) string
}

func (r limitedLeftoverLister) ListLeftovers(ctx context.Context, scope driver.Scope) (found []driver.Leftover, err error) {
	err = r.limiter.Do(ctx, r.limitScope(scope), driver.CallList, func(ctx context.Context) (err error) {
		found, err = r.lister.ListLeftovers(ctx, scope)
		return err
	})
	return found, err
}
