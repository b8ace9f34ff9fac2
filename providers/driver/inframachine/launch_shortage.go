package inframachine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/shortage"
)

// retriedSlowly ends the message about an exceeded quota.
const retriedSlowly = "Retried slowly; raise the quota or free some of it"

// shortageError is a shortage of one of the offerings that the spec allows, with what the others lack and what happens next.
type shortageError struct {
	err error
	// others says which other types are over quota.
	others string
	// remedy is what happens next, and what a user can do.
	remedy string
	// left is true if an offering is left that is not known to be short; offerings is how many the spec allows.
	left      bool
	offerings int
}

// Error returns what lacks.
func (e *shortageError) Error() string { return withoutStop(e.err) + e.others }

// Unwrap returns the cause.
func (e *shortageError) Unwrap() error { return e.err }

// reportShortage remembers that a launch lacked capacity or quota, and returns the error with what was asked for, where it lacked lately,
// and what comes next. released is true if the next attempt may go elsewhere.
func (r *Reconciler[M]) reportShortage(ctx context.Context, s *scope[M], err error, released bool) error {
	if s.allowed == nil { // The launch was decided on before.
		s.completeRequest()
		s.allowed, _ = r.allowedPlaces(ctx, s) // Else its terms and its subnet are not known.
	}
	in, candidate := r.cloud.LimitScope(s.handle.Scope), driver.Candidate{Placement: s.launched.placement()}
	for _, c := range s.allowed {
		if c.ID == candidate.ID && c.InstanceType == candidate.InstanceType && c.Market == candidate.Market {
			candidate.Terms, candidate.Subnet = c.Terms, c.Subnet
		}
	}
	r.shortages.Report(in, candidate, err)
	e := &shortageError{err: r.shortages.Explain(in, candidate, err)}
	if len(s.allowed) == 0 {
		return e.err
	}
	choices := r.offerings(s, s.allowed)
	e.offerings = len(choices)
	e.left = released && slices.ContainsFunc(choices, func(c driver.Candidate) bool { return c.ShortSince.IsZero() })
	e.others = othersOverQuota(candidate.InstanceType, driver.IsQuota(err), r.shortages.OverQuota(in, choices))
	e.remedy = quotaRemedy(e.left, typesOf(choices))
	return e
}

// othersOverQuota names the other types that are over quota; while this one lacks capacity, the first of them in the cloud's words.
func othersOverQuota(instanceType string, isQuota bool, over []shortage.TypeOverQuota) string {
	var names []string
	for _, other := range over {
		switch {
		case other.InstanceType == instanceType:
		case len(names) == 0 && !isQuota:
			names = append(names, other.InstanceType+" ("+withoutStopText(other.Words)+")")
		default:
			names = append(names, other.InstanceType)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ". Over quota as well: " + strings.Join(names, ", ")
}

// quotaRemedy says what happens after a launch that was over a quota.
func quotaRemedy(left bool, types []string) string {
	switch {
	case left && len(types) > 1:
		return "Now the other instance types that the spec allows are tried"
	case left:
		return "Tried again elsewhere"
	case len(types) > 1:
		return "All instance types that the spec allows were tried: " + strings.Join(types, ", ") + ". " + retriedSlowly
	}
	return retriedSlowly + ", or allow other instance types"
}

// remedyOf returns what happens after a call that was over a quota; one other than a launch, and one on all types, is retried slowly.
func remedyOf(err error) string {
	var short *shortageError
	if errors.As(err, &short) {
		return short.remedy
	}
	return retriedSlowly
}

// typesOf returns the instance types of the candidates in their order.
func typesOf(candidates []driver.Candidate) (types []string) {
	for _, c := range candidates {
		if !slices.Contains(types, c.InstanceType) {
			types = append(types, c.InstanceType)
		}
	}
	return types
}

// failLaunch returns when a failed launch is retried: soon after a shortage if another offering is left, else by its class and as the
// n-th failure in a row at least.
func (r *Reconciler[M]) failLaunch(s *scope[M], err error, n int) time.Duration {
	var short *shortageError
	if errors.As(err, &short) && short.left {
		return r.backoff.failNext(s.Key(), err, short.offerings)
	}
	return r.backoff.failTimes(s.Key(), err, n)
}
