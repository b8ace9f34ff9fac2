package machineset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
)

// claimPage bounds how many objects one answer of the API server has while it is asked who has a provider ID.
const claimPage = 500

// holdersOf names what else has the provider ID of each adoption, or is about to have it. The API server is asked, in all
// namespaces that may be read: an instance must not get two Machines. A MachineSet first records the adoption on
// its Machine and then asks, before it creates the infrastructure machine. So of two MachineSets that adopt at the same time at least one
// sees the other, and gives way.
func (r *Reconciler) holdersOf(ctx context.Context, s *scope, listed []adoption) (map[adoption]string, error) {
	by := map[adoption]string{}
	if len(listed) == 0 {
		return by, nil
	}
	err := r.everyMachine(ctx, s, func(machine *clusterv1.Machine) { noteHolders(s, machine, listed, by) })
	if err != nil || len(by) == len(listed) || s.infrastructure == nil {
		return by, err
	}
	gvk := s.infrastructure.GroupVersionKind()
	gvk.Kind = strings.TrimSuffix(gvk.Kind, clusterv1.TemplateSuffix)
	err = r.everyInfrastructure(ctx, s, gvk, func(object *unstructured.Unstructured) {
		id, _, _ := unstructured.NestedString(object.Object, "spec", "providerID")
		key := client.ObjectKeyFromObject(object)
		for _, a := range listed {
			if by[a] == "" && key != s.keyOf(a) && id == a.providerID {
				by[a] = gvk.Kind + " " + key.String()
			}
		}
	})
	return by, err
}

// noteHolders notes what of the instances a Machine has, or its infrastructure machine is to get.
func noteHolders(s *scope, machine *clusterv1.Machine, listed []adoption, by map[adoption]string) {
	key := client.ObjectKeyFromObject(machine)
	for _, a := range listed {
		if by[a] == "" && key != s.keyOf(a) && hasProviderID(machine, a.providerID) {
			by[a] = "Machine " + key.String()
		}
	}
}

// keyOf is the key of the Machine of an adoption, which its infrastructure machine has, too.
func (s *scope) keyOf(a adoption) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Object.Namespace, Name: a.machine}
}

// hasProviderID reports whether a Machine has a provider ID, or its infrastructure machine is to get it.
func hasProviderID(machine *clusterv1.Machine, providerID string) bool {
	return machine.Spec.ProviderID == providerID || machine.Annotations[ProviderIDAnnotation] == providerID
}

func (r *Reconciler) everyMachine(ctx context.Context, s *scope, each func(*clusterv1.Machine)) error {
	list := &clusterv1.MachineList{}
	return r.everyPage(ctx, s, list, func() {
		for i := range list.Items {
			each(&list.Items[i])
		}
	})
}

func (r *Reconciler) everyInfrastructure(
	ctx context.Context, s *scope, gvk schema.GroupVersionKind, each func(*unstructured.Unstructured),
) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return r.everyPage(ctx, s, list, func() {
		for i := range list.Items {
			each(&list.Items[i])
		}
	})
}

// everyPage reads a list page by page: of all namespaces, or of the set's own where the core may read no other.
func (r *Reconciler) everyPage(ctx context.Context, s *scope, list client.ObjectList, page func()) error {
	options := &client.ListOptions{Limit: claimPage}
	for {
		err := r.APIReader.List(ctx, list, options)
		if apierrors.IsForbidden(err) && options.Namespace == "" {
			options = &client.ListOptions{Limit: claimPage, Namespace: s.Object.Namespace}
			continue
		}
		if err != nil {
			return errors.Wrap(err, "asking which object has the provider ID of an instance that is to be adopted")
		}
		page()
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// refuseAdoption notes that an instance has another object, and records an event.
func (r *Reconciler) refuseAdoption(s *scope, a adoption, by string) {
	s.claimError(a, by)
	r.warn(s, adoptionRefusedEvent, "Adopt", "%s", claimMessage(a, by))
}

func (s *scope) claimError(a adoption, by string) { s.machineError(claimMessage(a, by)) }

func claimMessage(a adoption, by string) string {
	return fmt.Sprintf("Annotation %s gives Machine %s the provider ID %s, which %s has: remove it from the annotation, or delete the other",
		AdoptAnnotation, a.machine, a.providerID, by)
}

// askHolders asks who has the instances of adoptions, and notes it: the condition reports it for as long as that is so. What the API
// server has answered lately counts, since it is asked once more before an infrastructure machine is created. There is no event when an
// instance becomes free, so the set is requeued.
func (r *Reconciler) askHolders(ctx context.Context, s *scope, listed []adoption) outcome.Outcome {
	by, err := r.rivals(ctx, s, listed)
	if err != nil {
		return outcome.FromError(err)
	}
	var unknown []adoption
	for _, a := range listed {
		if by[a] != "" {
			continue
		}
		if known, ok := r.holders.known(s.Key(), a, s.Now); ok {
			by[a] = known
			continue
		}
		unknown = append(unknown, a)
	}
	found, err := r.holdersOf(ctx, s, unknown)
	if err != nil {
		return outcome.FromError(err)
	}
	for _, a := range unknown {
		by[a] = found[a]
		r.holders.note(s.Key(), a, by[a], s.Now)
	}
	r.holders.keep(s.Key(), listed)
	s.holders = map[adoption]string{}
	end := outcome.Continue()
	for _, a := range listed {
		s.holders[a] = by[a]
		if by[a] != "" {
			s.claimError(a, by[a])
			end = end.And(outcome.ContinueAfter(askAgain))
		}
	}
	return end
}

// rivals names, from the cache, what else has the provider IDs of adoptions, or has an annotation to adopt them: of two sets with such
// an annotation neither adopts before one of them is corrected.
func (r *Reconciler) rivals(ctx context.Context, s *scope, listed []adoption) (map[adoption]string, error) {
	by := map[adoption]string{}
	all := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrap(err, "listing Machines")
	}
	for i := range all.Items {
		noteHolders(s, &all.Items[i], listed, by)
	}
	sets := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrap(err, "listing MachineSets")
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		if set.UID == s.Object.UID {
			continue
		}
		others, _ := parseAdoptions(set.Annotations[AdoptAnnotation])
		for _, a := range listed {
			if by[a] == "" && slices.ContainsFunc(others, func(other adoption) bool { return other.providerID == a.providerID }) {
				by[a] = "the same annotation of MachineSet " + client.ObjectKeyFromObject(set).String()
			}
		}
	}
	return by, nil
}

// mayLaunch reports whether a Machine may get its infrastructure machine. One that adopts an instance that something else has is deleted
// before it has any: else a provider would use one instance twice.
func (r *Reconciler) mayLaunch(ctx context.Context, s *scope, machine *clusterv1.Machine, child *child) (bool, error) {
	id := machine.Annotations[ProviderIDAnnotation]
	if id == "" || child.condition != clusterv1.MachineInfrastructureReadyCondition {
		return true, nil
	}
	a := adoption{machine: machine.Name, providerID: id}
	found, err := r.holdersOf(ctx, s, []adoption{a})
	by := found[a]
	if err != nil || by == "" {
		return by == "" && err == nil, err
	}
	// Otherwise the Machine would be created again by what was known before.
	r.holders.note(s.Key(), a, by, s.Now)
	r.refuseAdoption(s, a, by)
	err = r.Client.Delete(ctx, machine.DeepCopy(), client.Preconditions{UID: ptr.To(machine.UID)})
	return false, errors.Wrapf(persist.IgnoreGone(err), "deleting Machine %s, whose instance something else has", machine.Name)
}
