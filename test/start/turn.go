package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// turnLease is the Lease whose holder may change webhooks of the control cluster.
const turnLease = "millwright-start"

// pace is how a Lease is kept: one that is not renewed for lease is free, and a holder that could not renew for deadline gives up.
type pace struct{ lease, deadline, retry time.Duration }

var usualPace = pace{lease: 30 * time.Second, deadline: 20 * time.Second, retry: 2 * time.Second}

// turn is the right to change the webhooks of the control cluster, of which there is one set for all: from before they are
// changed until they are no longer called.
type turn struct {
	cancel context.CancelFunc
	// over is closed when the turn is.
	over chan struct{}
}

// noTurn is that of a start without webhooks.
func noTurn() *turn {
	t := &turn{cancel: func() {}, over: make(chan struct{})}
	close(t.over)
	return t
}

// end releases the turn.
func (t *turn) end() {
	t.cancel()
	<-t.over
}

// lost reports whether another process has the turn.
func (t *turn) lost() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

// heldError means that another running process has the turn.
type heldError struct{ holder string }

// Error names the holder and what can be done.
func (e *heldError) Error() string {
	return fmt.Sprintf("%s runs `make start` with webhooks on this control cluster, which has one set of them: have that ended, or give WEBHOOKS=none, "+
		"with which those of %s stay and answer for you as well", e.holder, e.holder)
}

// takeTurn waits for the turn until another process is seen to renew it. It does not wait for a holder that was killed on this
// computer.
func (o *options) takeTurn(ctx context.Context, control *cluster) (*turn, error) {
	if err := ensureNamespace(ctx, control); err != nil {
		return nil, err
	}
	if err := o.forgetKilled(ctx, control); err != nil {
		return nil, errors.Wrap(err, "reading who has the webhooks of the control cluster")
	}
	leases, err := coordination.NewForConfig(control.config)
	if err != nil {
		return nil, errors.Wrap(err, "creating a client of Leases")
	}
	held := make(chan struct{})
	var once sync.Once
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: coreNamespace, Name: turnLease}, Client: leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: o.identity},
		},
		LeaseDuration: o.pace.lease, RenewDeadline: o.pace.deadline, RetryPeriod: o.pace.retry, ReleaseOnCancel: true, Name: turnLease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { once.Do(func() { close(held) }) }, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, errors.Wrap(err, "taking turns")
	}
	// Its log would be mixed with the lines of managers.
	running, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	t := &turn{cancel: cancel, over: make(chan struct{})}
	go func() {
		defer close(t.over)
		elector.Run(running)
	}()
	if err := o.awaitTurn(ctx, control, held); err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// awaitTurn returns when the turn is held, or an error when another is seen to renew theirs.
func (o *options) awaitTurn(ctx context.Context, control *cluster, held <-chan struct{}) error {
	ticker := time.NewTicker(o.pace.retry / 2)
	defer ticker.Stop()
	var first *coordinationv1.Lease
	for {
		select {
		case <-held:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		lease, err := readTurn(ctx, control)
		if err != nil || holderOf(lease) == "" || holderOf(lease) == o.identity {
			continue // The leader election tries again.
		}
		switch {
		case first == nil || holderOf(first) != holderOf(lease):
			first = lease
			fmt.Fprintf(o.out, "%s has the webhooks of the control cluster: waiting up to %s to see whether that still runs\n", holderOf(lease), o.pace.lease)
		case !lease.Spec.RenewTime.Equal(first.Spec.RenewTime):
			return &heldError{holderOf(lease)}
		}
	}
}

// forgetKilled takes the turn from a process of this computer that has ended without giving it back.
func (o *options) forgetKilled(ctx context.Context, control *cluster) error {
	lease, err := readTurn(ctx, control)
	if apierrors.IsNotFound(err) || err == nil && !hasEnded(o.identity, holderOf(lease)) {
		return nil
	}
	if err != nil {
		return err
	}
	lease.Spec.HolderIdentity = ptr.To("")
	if err := control.client.Update(ctx, lease); !apierrors.IsConflict(err) {
		return err
	}
	return nil
}

func readTurn(ctx context.Context, control *cluster) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	return lease, control.client.Get(ctx, client.ObjectKey{Namespace: coreNamespace, Name: turnLease}, lease)
}

func holderOf(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }

// ensureNamespace creates the core's namespace, if there is none yet. Its labels are applied with the rest.
func ensureNamespace(ctx context.Context, control *cluster) error {
	err := control.client.Get(ctx, client.ObjectKey{Name: coreNamespace}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		err = apply(ctx, control, []*unstructured.Unstructured{named("v1", "Namespace", "", coreNamespace)})
	}
	return errors.Wrapf(err, "creating namespace %s in the control cluster", coreNamespace)
}

// identify names this process: user, computer, boot ID and process ID.
func identify() string {
	name, host, boot := "unknown", "unknown", ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		boot, _, _ = strings.Cut(string(id), "-")
	}
	return fmt.Sprintf("%s@%s/%s/%d", name, host, boot, os.Getpid())
}

// hasEnded reports whether other names a process that ran on the computer of own and does not any more. For another computer, or
// one without boot IDs, it is false.
func hasEnded(own, other string) bool {
	_, ownPlace, _ := strings.Cut(own, "@")
	_, otherPlace, _ := strings.Cut(other, "@")
	mine, theirs := strings.Split(ownPlace, "/"), strings.Split(otherPlace, "/")
	if len(mine) != 3 || len(theirs) != 3 || mine[1] == "" || mine[0] != theirs[0] || mine[1] != theirs[1] {
		return false
	}
	pid, err := strconv.Atoi(theirs[2])
	return err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
