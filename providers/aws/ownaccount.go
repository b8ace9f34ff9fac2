package main

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/aws/session"
)

// askAgain is when the account of the process is asked for again after that has failed.
const askAgain = 10 * time.Minute

// ownAccount finds out which account the process's own credentials are of, as soon as there is an AWSIdentity, which may be of the same
// account: EC2 counts the calls of both together. Until it is known they are paced apart. Nothing waits for it.
type ownAccount struct {
	driver  *instance.Driver
	load    session.Load
	clock   clock.PassiveClock
	timeout time.Duration

	mu    sync.Mutex
	known bool
	asked time.Time
}

// learn asks in the background, unless that is known, being asked, or failed a moment ago.
func (o *ownAccount) learn(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known || !o.asked.IsZero() && o.clock.Since(o.asked) < askAgain {
		return
	}
	o.asked = o.clock.Now()
	go o.ask(context.WithoutCancel(ctx))
}

func (o *ownAccount) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	account, err := session.OwnAccount(ctx, o.load)
	if err != nil || account == "" {
		ctrl.LoggerFrom(ctx).V(1).Info("The account of the provider's own credentials is not known; its calls are paced apart from those of AWSIdentities",
			"error", err)
		return
	}
	o.driver.SetOwnAccount(account)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known = true
}
