package machineset

import (
	"context"
	"sync"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/remediation"
)

// maxBatch bounds how many Machines of a set are created at once.
const maxBatch = 32

// create makes n Machines, with what belongs to them: one, then two, then four and so on, so that a template
// that cannot work costs one failed request and not a hundred. It stops at the first batch with an error, and
// returns the Machines that exist now. The names are reserved before.
func (r *Reconciler) create(ctx context.Context, s *scope, n int) ([]*clusterv1.Machine, error) {
	made, err := r.adopt(ctx, s, n)
	if n -= len(made); err != nil || s.blocked() {
		return made, err
	}
	var names []string
	for batch := 1; n > 0; batch = min(2*batch, maxBatch) {
		if len(names) == 0 {
			var err error
			if names, err = r.reserve(ctx, s, n); err != nil {
				return made, err
			}
		}
		size := min(batch, len(names))
		machines, err := r.createBatch(ctx, s, names[:size])
		made = append(made, machines...)
		if err != nil || s.blocked() {
			return made, err
		}
		names, n = names[size:], n-size
	}
	return made, nil
}

func (r *Reconciler) createBatch(ctx context.Context, s *scope, names []string) ([]*clusterv1.Machine, error) {
	machines := make([]*clusterv1.Machine, len(names))
	failures := make([]error, len(names))
	var running sync.WaitGroup
	for i, name := range names {
		running.Go(func() { machines[i], failures[i] = r.createOne(ctx, s, name, "") })
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

// createOne creates a Machine, then its bootstrap config, then its infrastructure machine. When it is interrupted
// in between, complete continues with the same Machine. It returns the Machine whenever that exists. providerID is that of the
// instance that it takes back; empty for a new one.
func (r *Reconciler) createOne(ctx context.Context, s *scope, name, providerID string) (*clusterv1.Machine, error) {
	machine := desiredMachine(s.Object, name)
	if providerID != "" {
		machine.Annotations = cloned(machine.Annotations)
		machine.Annotations[ProviderIDAnnotation] = providerID
	}
	if record := s.nextOwed(); record != "" {
		machine.Annotations = cloned(machine.Annotations)
		machine.Annotations[remediation.ReplacesAnnotation] = record
	}
	sent := machine.DeepCopy()
	if err := r.Client.Create(ctx, machine); err != nil {
		switch {
		case persist.NameTaken(err):
			// A creation before has taken effect by now, or another core has created it: the API server is asked.
			r.expectations.taken(s.Object.UID, name)
		case !persist.NotDone(err):
			r.expectations.invalidate(s.Object.UID)
		}
		return nil, errors.Wrapf(err, "creating Machine %s", client.ObjectKeyFromObject(machine))
	}
	if !r.checkCreated(ctx, s, sent, machine) && !metav1.IsControlledBy(machine, s.Object) {
		// Nothing is created for a Machine that is not the set's.
		return nil, nil
	}
	r.expectations.created(s.Object.UID, machine, s.Now)
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
		r.expectations.completed(s.Object.UID, machine.UID)
	}
	return nil
}
