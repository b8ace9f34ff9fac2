package freeze

import (
	"context"
	"time"

	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rechecks is how often an API server that does not answer is asked within the timeout.
const rechecks = 5

// Probe checks that the API server of the management cluster answers, by a read that goes through to etcd. It runs on standby, too: a
// process that has waited for the lease knows what has happened meanwhile.
type Probe struct {
	Freezer *Freezer
	// Reader reads from the API server itself.
	Reader client.Reader
	// Lease is the one that the cores compete for. It is what is read, since nothing else changes as often: its version shows that the
	// API server still counts on from where it was.
	Lease client.ObjectKey
	// Writer writes to the lease that no core was at work, if that turns out late; nil for not at all.
	Writer client.Writer
	// Clock has the time and timers.
	Clock clock.Clock

	// seen is the lease as it was read last; nil while it never was.
	seen *coordinationv1.Lease
}

// NeedLeaderElection returns false.
func (p *Probe) NeedLeaderElection() bool { return false }

// Start checks until ctx ends.
func (p *Probe) Start(ctx context.Context) error {
	for {
		pause := p.round(ctx)
		if pause == 0 {
			return nil
		}
		timer := p.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// round reads the lease if the start of the process could not, and checks the API server. It returns when the next one
// is due, zero for never.
func (p *Probe) round(ctx context.Context) (pause time.Duration) {
	o := p.Freezer.options
	if p.Freezer.leaseAwaited() {
		p.readLease(ctx)
	}
	if o.Period > 0 {
		pause = p.check(ctx)
	}
	if soon := o.Timeout / rechecks; p.Freezer.leaseAwaited() && (pause == 0 || pause > soon) {
		pause = soon
	}
	return pause
}

// readLease reads the lease again: without it, it is not known whether a backup was restored.
func (p *Probe) readLease(ctx context.Context) {
	log := ctrl.LoggerFrom(ctx)
	if err := p.Freezer.ReadLease(ctx, p.Reader, p.Lease); err != nil {
		log.Error(err, "The lease cannot be read yet, so it is not known when a core was last running")
		return
	}
	if p.Writer == nil {
		return
	}
	if err := p.Freezer.RecordAbsence(ctx, p.Writer, p.Lease); err != nil {
		log.Error(err, "It cannot be recorded that no core was running; it is forgotten if this process exits soon")
	}
}

// check asks the API server once, and returns when to ask again.
func (p *Probe) check(ctx context.Context) time.Duration {
	o := p.Freezer.options
	asked := p.Clock.Now()
	lease, err := p.ask(ctx, o.Timeout)
	if ctx.Err() != nil {
		return o.Period
	}
	if err != nil {
		p.Freezer.controlFailed(ctx, asked, err)
		return min(o.Timeout/rechecks, o.Period)
	}
	p.Freezer.controlAnswered(ctx)
	p.compare(ctx, lease)
	return o.Period
}

// ask reads the lease from etcd. That there is none, or that it may not be read, is an answer, too, and returns nil.
func (p *Probe) ask(ctx context.Context, timeout time.Duration) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	lease := &coordinationv1.Lease{}
	err := p.Reader.Get(ctx, p.Lease, lease)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	return lease, errors.Wrap(err, "reading the lease of the core")
}

// compare notices that the management cluster is at an earlier time than before.
func (p *Probe) compare(ctx context.Context, lease *coordinationv1.Lease) {
	before := p.seen
	if lease == nil {
		return
	}
	p.seen = lease
	if before == nil {
		return
	}
	if signs := setBack(before, lease, p.Freezer.trustsClock()); signs != "" {
		ctrl.LoggerFrom(ctx).Info("The management cluster is at an earlier time than before: it was restored from a backup", "signs", signs)
		p.Freezer.setBack(signs)
	}
}

// controlFailed takes in that the API server of the management cluster has not answered.
func (f *Freezer) controlFailed(ctx context.Context, since time.Time, err error) {
	f.turn(ctx, func() { f.control.failed(since, err.Error()) })
}

// controlAnswered takes in that it answers.
func (f *Freezer) controlAnswered(ctx context.Context) {
	f.turn(ctx, func() { f.control.answered(f.clock.Now(), f.options.Timeout) })
}

// turn changes what is known of the management cluster and of the clock, and has all look again if that freezes replacements or
// ends it.
func (f *Freezer) turn(ctx context.Context, change func()) {
	f.mutex.Lock()
	now := f.clock.Now()
	change()
	jumped := f.jumps.observe(now)
	after := f.control.state(now, f.options)
	same := f.notified == after.Reason
	f.notified = after.Reason
	f.mutex.Unlock()
	if same && !jumped {
		return
	}
	ctrl.LoggerFrom(ctx).Info("The reason not to replace Machines has changed",
		"reason", after.Reason, "message", after.Message, "clockJumped", jumped)
	f.changed(client.ObjectKey{})
}

// setBack takes in that the management cluster was restored while this process ran.
func (f *Freezer) setBack(signs string) {
	f.mutex.Lock()
	f.restored = suspicion{since: f.clock.Now(), signs: signs}
	f.mutex.Unlock()
	f.changed(client.ObjectKey{})
}
