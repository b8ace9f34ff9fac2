package machineset

import (
	"context"
	"fmt"
	"slices"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/template"

	"millwright.dev/core/naming"
)

var machineKind = clusterv1.GroupVersion.WithKind("Machine")

// child is one of the two objects that are created for a Machine.
type child struct {
	// ref is the Machine's reference to it.
	ref clusterv1.ContractVersionedObjectReference
	// from is its template; nil when that is missing.
	from *unstructured.Unstructured
	// ready reports whether the Machine has taken from it what it needs.
	ready bool
	// condition is the Machine's condition that records whether it existed before.
	condition string
}

// childrenOf lists what has to exist for a Machine, in the order of creation.
func childrenOf(machine *clusterv1.Machine, s *scope) []child {
	var children []child
	if machine.Spec.Bootstrap.ConfigRef.IsDefined() {
		children = append(children, child{
			ref: machine.Spec.Bootstrap.ConfigRef, from: s.bootstrap,
			ready:     ptr.Deref(machine.Status.Initialization.BootstrapDataSecretCreated, false),
			condition: clusterv1.MachineBootstrapConfigReadyCondition,
		})
	}
	return append(children, child{
		ref: machine.Spec.InfrastructureRef, from: s.infrastructure,
		// The provider ID is written first, and by itself says that there has been an instance.
		ready:     machine.Spec.ProviderID != "" || ptr.Deref(machine.Status.Initialization.InfrastructureProvisioned, false),
		condition: clusterv1.MachineInfrastructureReadyCondition,
	})
}

// mayCreate reports whether a child that is missing may be created: its Machine must not be known to have had it
// before. What others have deleted is reported, not silently recreated.
func (c *child) mayCreate(machine *clusterv1.Machine) bool {
	if c.ready {
		return false
	}
	condition := meta.FindStatusCondition(machine.Status.Conditions, c.condition)
	return condition == nil || condition.Reason != clusterv1.ObjectDeletedReason
}

// complete creates what an interruption – a crash, an error – has left out for Machines that exist.
func (r *Reconciler) complete(ctx context.Context, s *scope) outcome.Outcome {
	end := outcome.Continue()
	for _, machine := range s.machines {
		if !machine.DeletionTimestamp.IsZero() || metadataOnly(machine) || wasAdopted(machine) ||
			r.expectations.isComplete(s.Object.UID, machine.UID) {
			continue
		}
		if err := r.completeOne(ctx, s, machine); err != nil {
			end = end.And(outcome.FromError(err))
		}
	}
	return end
}

func wasAdopted(machine *clusterv1.Machine) bool {
	_, ok := machine.Annotations[AdoptedAnnotation]
	return ok
}

func (r *Reconciler) completeOne(ctx context.Context, s *scope, machine *clusterv1.Machine) error {
	complete := true
	for _, child := range childrenOf(machine, s) {
		if !child.mayCreate(machine) {
			continue
		}
		object, known, err := r.read(ctx, s, &child)
		switch {
		case err != nil:
			return err
		case object != nil:
			complete = s.mayKeep(machine, object) && complete
		case !known, child.from == nil:
			// The blocker is recorded already.
			complete = false
		default:
			made, err := r.createMissing(ctx, s, machine, &child)
			if err != nil {
				return err
			}
			complete = complete && made
		}
	}
	if complete {
		r.expectations.completed(s.Object.UID, machine.UID)
	}
	return nil
}

// createMissing is createChild for a Machine that may have had the child since the cache read it: the API server is asked for the Machine
// first. It happens after an interruption alone. It returns whether the child exists now.
func (r *Reconciler) createMissing(ctx context.Context, s *scope, cached *clusterv1.Machine, missing *child) (bool, error) {
	machine := &clusterv1.Machine{}
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(cached), machine)
	if apierrors.IsNotFound(err) || err == nil && (machine.UID != cached.UID || !machine.DeletionTimestamp.IsZero()) {
		return false, nil // The cache will say so.
	}
	if err != nil {
		return false, errors.Wrapf(err, "reading Machine %s, which lacks its %s", client.ObjectKeyFromObject(cached), missing.ref.Kind)
	}
	for _, child := range childrenOf(machine, s) {
		if child.condition == missing.condition && child.mayCreate(machine) {
			return r.createChild(ctx, s, machine, &child)
		}
	}
	return false, nil
}

// read reads the child of a Machine from the cache; nil when there is none. When the cache is behind, the
// creation is refused, which does no harm. known is false until its kind has been read.
func (r *Reconciler) read(ctx context.Context, s *scope, child *child) (object *unstructured.Unstructured, known bool, err error) {
	found, err := r.kinds.Get(ctx, child.ref, s.Object.Namespace, s.Request())
	switch {
	case err == nil:
		return found.Unstructured, true, nil
	case apierrors.IsNotFound(err):
		return nil, true, nil
	default:
		return nil, false, s.awaited(err, child.ref)
	}
}

// createChild makes the bootstrap config or infrastructure machine of a Machine, owned by it from the start. It returns
// whether that exists now; what is in the way otherwise is noted.
func (r *Reconciler) createChild(ctx context.Context, s *scope, machine *clusterv1.Machine, child *child) (bool, error) {
	made, err := template.Clone(child.from, template.Options{
		Name:        child.ref.Name,
		ClusterName: s.Object.Spec.ClusterName,
		Labels:      naming.MachineLabels(s.Object),
		Annotations: templateAnnotations(s.Object),
		Owner:       *metav1.NewControllerRef(machine, machineKind),
	})
	var shape *template.ShapeError
	if errors.As(err, &shape) {
		s.block(err.Error())
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := child.giveProviderID(machine, made); err != nil {
		return false, err
	}
	if made.GetKind() != child.ref.Kind {
		s.machineError(fmt.Sprintf("Machine %s refers to a %s, but the template in use creates a %s: delete the Machine",
			machine.Name, child.ref.Kind, made.GetKind()))
		return false, nil
	}
	if ok, err := r.mayLaunch(ctx, s, machine, child); !ok {
		return false, err
	}
	err = r.Client.Create(ctx, made)
	if persist.NameTaken(err) {
		return r.checkOwner(ctx, s, machine, made)
	}
	if err != nil {
		err = errors.Wrapf(err, "creating %s %s for its Machine", made.GetKind(), client.ObjectKeyFromObject(made))
		// What this Machine is refused another would be refused too: one is completed before the next is created.
		s.note(&s.refusals, err.Error())
	}
	return err == nil, err
}

// checkOwner distinguishes an object that was created before from one that belongs to something else.
func (r *Reconciler) checkOwner(ctx context.Context, s *scope, machine *clusterv1.Machine, made *unstructured.Unstructured) (bool, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(made.GroupVersionKind())
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(made), found); err != nil {
		return false, errors.Wrapf(err, "reading %s %s", made.GetKind(), client.ObjectKeyFromObject(made))
	}
	return s.mayKeep(machine, found), nil
}

// mayKeep reports whether an object with the name of what a Machine needs is the Machine's, or will be: one that
// has no controller is adopted by the Machine controller. One that belongs to something else is noted.
func (s *scope) mayKeep(machine *clusterv1.Machine, object client.Object) bool {
	if s.isOf(machine, object) {
		return true
	}
	owner := metav1.GetControllerOf(object)
	s.machineError(fmt.Sprintf("%s %s exists and belongs to %s %s, not to the Machine of that name: delete one of them",
		object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), owner.Kind, owner.Name))
	return false
}

// isOf reports whether nothing but the Machine, or its set, controls an object.
func (s *scope) isOf(machine *clusterv1.Machine, object client.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner == nil || owner.UID == machine.UID || owner.UID == s.Object.UID
}

// block records why no Machine can be created or completed, once.
func (s *scope) block(why string) { s.note(&s.blockers, why) }

// machineError records why one Machine cannot be completed, once. Others are created all the same.
func (s *scope) machineError(why string) { s.note(&s.machineErrors, why) }

func (s *scope) note(list *[]string, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(*list, why) {
		*list = append(*list, why)
	}
}
