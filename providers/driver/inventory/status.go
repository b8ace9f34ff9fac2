package inventory

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/providers/driver"
)

// start lists the instances of the scope and, if there are such, their statuses, until ctx is done.
func (s *scope) start(ctx context.Context) {
	go s.run(ctx)
	if lister, ok := s.lister.(driver.StatusLister); ok {
		go s.runStatuses(ctx, lister)
	}
}

// runStatuses lists the statuses whenever the interval has passed, until ctx is done. The first list comes after a tenth of it: nothing is
// urgent about it, and a process that has just started has enough to ask.
func (s *scope) runStatuses(ctx context.Context, lister driver.StatusLister) {
	interval := s.opts.StatusInterval
	if interval == 0 {
		interval = driver.DefaultStatusInterval
	}
	wait := interval / 10
	for {
		timer := s.opts.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		s.listStatuses(ctx, lister)
		wait = interval - interval/20 + s.opts.Random(max(interval/10, 1))
	}
}

// listStatuses asks the cloud and wakes the machines whose View has changed. What was known stays if the list fails: that is logged, and
// the lists of instances report an outage.
func (s *scope) listStatuses(ctx context.Context, lister driver.StatusLister) {
	if s.idle() {
		return
	}
	callCtx, cancel := context.WithTimeout(ctx, s.statusTimeout())
	defer cancel()
	var statuses map[string]driver.Status
	err := driver.Recover(ctx, "ListStatus", func() (err error) {
		statuses, err = lister.ListStatus(callCtx, s.name)
		return err
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the statuses of instances failed", "scope", s.name.String())
		return
	}
	for _, key := range s.enterStatuses(statuses) {
		s.wake.Enqueue(key)
	}
}

// statusTimeout is that of any list, but never unlimited.
func (s *scope) statusTimeout() time.Duration {
	if s.opts.Timeout > 0 {
		return s.opts.Timeout
	}
	return driver.DefaultStatusInterval
}

func (s *scope) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tracked) == 0
}

// enterStatuses takes the result of a list of statuses in, and returns the machines to wake.
func (s *scope) enterStatuses(statuses map[string]driver.Status) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statuses = statuses
	now := s.opts.Clock.Now()
	var changed []types.NamespacedName
	for key, t := range s.tracked {
		view := s.viewOf(t)
		if !t.seen.shows(view) {
			changed = append(changed, key)
			t.since = now
		}
		t.seen = view
	}
	return changed
}
