package machineset

import (
	"context"
	"sync"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxBatch bounds how many Machines of a set are created at once.
const maxBatch = 32

// create makes n Machines, with what belongs to them: one, then two, then four and so on, so that a template
// that cannot work costs one failed request and not a hundred. It stops at the first batch with an error, and
// returns the Machines that exist now.
func (r *Reconciler) create(ctx context.Context, s *scope, n int) ([]*clusterv1.Machine, error) {
	var made []*clusterv1.Machine
	for batch := 1; n > 0; batch = min(2*batch, maxBatch) {
		size := min(batch, n)
		machines, err := r.createBatch(ctx, s, size)
		made = append(made, machines...)
		if err != nil || len(s.obstacles) > 0 {
			return made, err
		}
		n -= size
	}
	return made, nil
}

func (r *Reconciler) createBatch(ctx context.Context, s *scope, size int) ([]*clusterv1.Machine, error) {
	machines := make([]*clusterv1.Machine, size)
	failures := make([]error, size)
	var running sync.WaitGroup
	for i := range size {
		running.Go(func() { machines[i], failures[i] = r.createOne(ctx, s) })
	}
	running.Wait()
	var made []*clusterv1.Machine
	for _, machine := range machines {
		if machine != nil {
			made = append(made, machine)
		}
	}
	return made, kerrors.NewAggregate(failures)
}

// createOne makes a Machine, then its bootstrap config, then its infrastructure machine. When it is interrupted
// in between, complete goes on with the same Machine. It returns the Machine whenever that exists.
func (r *Reconciler) createOne(ctx context.Context, s *scope) (*clusterv1.Machine, error) {
	name := r.ledger.takeDoubtful(s.set.UID)
	again := name != ""
	if !again {
		var err error
		if name, err = r.newName(s.set); err != nil {
			return nil, err
		}
	}
	machine := desiredMachine(s.set, name)
	if err := r.Client.Create(ctx, machine); err != nil {
		switch {
		case again && apierrors.IsAlreadyExists(err):
			// The creation before has taken effect by now: the API server is asked for it.
			r.ledger.doubt(s.set.UID)
		case again || !definitelyNot(err):
			// A refusal says nothing about the creation before.
			r.ledger.doubtName(s.set.UID, name)
		}
		return nil, errors.Wrapf(err, "creating Machine %s", client.ObjectKeyFromObject(machine))
	}
	r.ledger.created(s.set.UID, machine, s.now)
	return machine, r.completeNew(ctx, s, machine)
}

// completeNew is completeOne for a Machine that was created a moment ago: nothing needs to be looked up.
func (r *Reconciler) completeNew(ctx context.Context, s *scope, machine *clusterv1.Machine) error {
	complete := true
	for _, child := range childrenOf(machine, s) {
		made, err := r.createChild(ctx, s, machine, &child)
		if err != nil {
			return err
		}
		complete = complete && made
	}
	if complete {
		r.ledger.completed(s.set.UID, machine.UID)
	}
	return nil
}

// definitelyNot says whether an error is the API server's refusal, so that nothing was written. After any other
// error, such as a connection that was cut, the write may have taken effect.
func definitelyNot(err error) bool {
	switch apierrors.ReasonForError(err) {
	case "", "Unknown", "Timeout", "ServerTimeout", "InternalError", "ServiceUnavailable":
		return false
	}
	return true
}
