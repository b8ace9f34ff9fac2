package machineset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
)

// AdoptAnnotation lists, on a MachineSet, instances that are there already: machine=provider ID, with commas between. The Machines that
// the set creates next have these names, and their infrastructure machines these provider IDs, so that a provider takes the instances
// back instead of launching others: see docs/guides/restore.md. What has its Machine is taken out of the list.
const AdoptAnnotation = "machineset.millwright.dev/adopt"

// ProviderIDAnnotation is, on a Machine that was created so, the provider ID that its infrastructure machine is created with.
const ProviderIDAnnotation = "machineset.millwright.dev/provider-id"

// adoption is an entry of AdoptAnnotation.
type adoption struct{ machine, providerID string }

// parseAdoptions reads the annotation. wrong are the entries that are none.
func parseAdoptions(text string) (listed []adoption, wrong []string) {
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		name, id, ok := strings.Cut(entry, "=")
		named := func(a adoption) bool { return a.machine == name || a.providerID == id }
		if !ok || id == "" || len(id) > 512 || len(validation.IsDNS1123Subdomain(name)) > 0 || slices.ContainsFunc(listed, named) {
			wrong = append(wrong, entry)
			continue
		}
		listed = append(listed, adoption{name, id})
	}
	return listed, wrong
}

// adopt creates Machines for instances that are listed and have none, at most n. One that is refused holds up no other of the list; no
// new Machine is created in its place, as the error ends that.
func (r *Reconciler) adopt(ctx context.Context, s *scope, n int) ([]*clusterv1.Machine, error) {
	listed, _ := parseAdoptions(s.Object.Annotations[AdoptAnnotation])
	var made []*clusterv1.Machine
	var refused []error
	for _, a := range listed {
		if len(made)+len(refused) >= n || s.has(a) {
			continue
		}
		machine, err := r.adoptOne(ctx, s, a)
		if machine != nil {
			made = append(made, machine)
		}
		switch {
		case err != nil && machine == nil && persist.Refusal(err) != "":
			refused = append(refused, err)
		case err != nil:
			return made, kerrors.NewAggregate(append(refused, err))
		}
	}
	return made, kerrors.NewAggregate(refused)
}

// has reports whether the set has the Machine of an entry.
func (s *scope) has(a adoption) bool {
	return slices.ContainsFunc(s.machines, func(m *clusterv1.Machine) bool { return m.Name == a.machine })
}

// adoptOne creates the Machine of an entry; nil if another owner's Machine has its name, or its instance, which is noted.
func (r *Reconciler) adoptOne(ctx context.Context, s *scope, a adoption) (*clusterv1.Machine, error) {
	by, asked := s.holders[a]
	if !asked {
		// The step that asks has failed, and the set is reconciled again.
		return nil, errors.Errorf("it is not known whether the instance of Machine %s is free", a.machine)
	}
	if by != "" {
		r.refuseAdoption(s, a, by)
		return nil, nil
	}
	machine, err := r.createOne(ctx, s, a.machine, a.providerID)
	if machine != nil || !persist.NameTaken(err) {
		return machine, err
	}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(machineKind)
	if err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: a.machine}, found); err != nil {
		return nil, errors.Wrapf(err, "reading Machine %s", a.machine)
	}
	if owner := metav1.GetControllerOf(found); owner != nil && owner.UID == s.Object.UID {
		return nil, err // The cache will show it.
	}
	s.strangerError(a)
	return nil, nil
}

func (s *scope) strangerError(a adoption) {
	s.machineError(fmt.Sprintf("Annotation %s names Machine %s, which exists and does not belong to this MachineSet: remove it from the annotation",
		AdoptAnnotation, a.machine))
}

// reviewAdoptions notes what cannot be adopted, and takes out of the list what has its Machine: whenever that was created, so that an
// entry does not outlive it, and is not used again when it is gone.
func (r *Reconciler) reviewAdoptions(ctx context.Context, s *scope) outcome.Outcome {
	text, ok := s.Object.Annotations[AdoptAnnotation]
	if !ok {
		r.holders.keep(s.Key(), nil)
		return outcome.Continue()
	}
	listed, left := parseAdoptions(text)
	for _, entry := range left {
		s.machineError(fmt.Sprintf("Annotation %s has %q: give <machine>=<provider ID>, each Machine and each ID once", AdoptAnnotation, entry))
	}
	var lacking []adoption
	for _, a := range listed {
		if s.has(a) {
			continue
		}
		left, lacking = append(left, a.machine+"="+a.providerID), append(lacking, a)
		found := &clusterv1.Machine{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: a.machine}, found)
		if client.IgnoreNotFound(err) != nil {
			return outcome.FromError(errors.Wrapf(err, "reading Machine %s", a.machine))
		}
		if err == nil && !metav1.IsControlledBy(found, s.Object) {
			s.strangerError(a)
		}
	}
	end := r.askHolders(ctx, s, lacking)
	if end.Err() != nil {
		return end
	}
	return end.And(outcome.FromError(errors.WithMessage(s.writeAdoptions(ctx, text, left), "removing adopted Machines from the list")))
}

// writeAdoptions writes what is left of the list, if that has changed.
func (s *scope) writeAdoptions(ctx context.Context, text string, left []string) error {
	now := strings.Join(left, ",")
	if now == text {
		return nil
	}
	return s.Patch(ctx, func(set *clusterv1.MachineSet) {
		set.Annotations = cloned(set.Annotations)
		set.Annotations[AdoptAnnotation] = now
		if now == "" {
			delete(set.Annotations, AdoptAnnotation)
		}
	})
}

// giveProviderID sets the provider ID of an infrastructure machine that is to take an instance back.
func (c *child) giveProviderID(machine *clusterv1.Machine, made *unstructured.Unstructured) error {
	id := machine.Annotations[ProviderIDAnnotation]
	if id == "" || c.condition != clusterv1.MachineInfrastructureReadyCondition {
		return nil
	}
	return errors.Wrap(unstructured.SetNestedField(made.Object, id, "spec", "providerID"), "setting spec.providerID")
}
