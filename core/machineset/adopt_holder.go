package machineset

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claimPage bounds how many objects one answer of the API server has while it is asked who has a provider ID.
const claimPage = 500

// holderOf names what else has the provider ID of an adoption, or is about to have it; "" for nothing. The API server is asked, in all
// namespaces that may be read: an instance must not get two Machines. Whoever adopts writes that on its Machine first and asks then, before
// it creates the infrastructure machine, so that of two that do so at once one sees the other at least, and gives way.
func (r *Reconciler) holderOf(ctx context.Context, s *scope, a adoption) (string, error) {
	own := client.ObjectKey{Namespace: s.Object.Namespace, Name: a.machine}
	by := ""
	err := r.everyMachine(ctx, s, func(machine *clusterv1.Machine) {
		if key := client.ObjectKeyFromObject(machine); key != own && hasProviderID(machine, a.providerID) {
			by = "Machine " + key.String()
		}
	})
	if err != nil || by != "" || s.infrastructure == nil {
		return by, err
	}
	gvk := s.infrastructure.GroupVersionKind()
	gvk.Kind = strings.TrimSuffix(gvk.Kind, clusterv1.TemplateSuffix)
	err = r.everyInfrastructure(ctx, s, gvk, func(object *unstructured.Unstructured) {
		id, _, _ := unstructured.NestedString(object.Object, "spec", "providerID")
		if key := client.ObjectKeyFromObject(object); key != own && id == a.providerID {
			by = gvk.Kind + " " + key.String()
		}
	})
	return by, err
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

// refuseAdoption notes that an instance has another object, and says so by an event.
func (r *Reconciler) refuseAdoption(s *scope, a adoption, by string) {
	s.claimError(a, by)
	r.warn(s, adoptionRefusedEvent, "Adopt", "%s", claimMessage(a, by))
}

func (s *scope) claimError(a adoption, by string) { s.machineError(claimMessage(a, by)) }

func claimMessage(a adoption, by string) string {
	return fmt.Sprintf("Annotation %s gives Machine %s the provider ID %s, which %s has: take it out of the annotation, or delete the other",
		AdoptAnnotation, a.machine, a.providerID, by)
}

// askHolder asks who has the instance of an adoption, and notes it: the condition says so for as long as that is so.
func (r *Reconciler) askHolder(ctx context.Context, s *scope, a adoption) error {
	by, err := r.rivals(ctx, s, a)
	if by == "" && err == nil {
		by, err = r.holderOf(ctx, s, a)
	}
	if err != nil {
		return err
	}
	if by != "" {
		s.claimError(a, by)
	}
	if s.holders == nil {
		s.holders = map[adoption]string{}
	}
	s.holders[a] = by
	return nil
}

// rivals names, from the cache, who else has the provider ID of an adoption, or is told to adopt it: of two sets that are, none does
// before one of them is corrected.
func (r *Reconciler) rivals(ctx context.Context, s *scope, a adoption) (string, error) {
	own := client.ObjectKey{Namespace: s.Object.Namespace, Name: a.machine}
	all := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return "", errors.Wrap(err, "listing Machines")
	}
	for i := range all.Items {
		if key := client.ObjectKeyFromObject(&all.Items[i]); key != own && hasProviderID(&all.Items[i], a.providerID) {
			return "Machine " + key.String(), nil
		}
	}
	sets := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		return "", errors.Wrap(err, "listing MachineSets")
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		listed, _ := parseAdoptions(set.Annotations[AdoptAnnotation])
		for _, other := range listed {
			if other.providerID == a.providerID && set.UID != s.Object.UID {
				return "the same annotation of MachineSet " + client.ObjectKeyFromObject(set).String(), nil
			}
		}
	}
	return "", nil
}

// mayLaunch reports whether a Machine may get its infrastructure machine. One that adopts an instance that something else has is deleted
// before it has any: else a provider would use one instance twice.
func (r *Reconciler) mayLaunch(ctx context.Context, s *scope, machine *clusterv1.Machine, child *child) (bool, error) {
	id := machine.Annotations[ProviderIDAnnotation]
	if id == "" || child.condition != clusterv1.MachineInfrastructureReadyCondition {
		return true, nil
	}
	a := adoption{machine: machine.Name, providerID: id}
	by, err := r.holderOf(ctx, s, a)
	if err != nil || by == "" {
		return by == "" && err == nil, err
	}
	r.refuseAdoption(s, a, by)
	err = r.Client.Delete(ctx, machine.DeepCopy(), client.Preconditions{UID: ptr.To(machine.UID)})
	return false, errors.Wrapf(client.IgnoreNotFound(err), "deleting Machine %s, whose instance something else has", machine.Name)
}
