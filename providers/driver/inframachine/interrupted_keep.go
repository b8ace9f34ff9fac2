package inframachine

import (
	"context"
	"strings"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/paused"
	"millwright.dev/providers/driver"
)

// keeping is why a Machine is not deleted although its instance is taken back.
type keeping struct {
	// why, for people.
	why string
	// ends is the result, if that does not change while there is time; empty if it may.
	ends string
}

func keptFor(why string) *keeping { return &keeping{why: "Its Machine is not deleted: " + why} }

func keptForGood(why string) *keeping {
	k := keptFor(why)
	k.ends = resultKept
	return k
}

// toReplace returns the Machine that is to be deleted, or why it is kept. Users may just have changed what decides that, so it is
// read from the API server itself. Its error is NotFound if object or Machine no longer exist.
func (r *Reconciler[M]) toReplace(ctx context.Context, s *scope[M]) (*clusterv1.Machine, *keeping, error) {
	if keep := r.keepByCloud(s); keep != nil {
		return nil, keep, nil
	}
	obj, machine, cluster := r.New(), &clusterv1.Machine{}, &clusterv1.Cluster{}
	if err := r.APIReader.Get(ctx, s.Key(), obj); err != nil {
		return nil, nil, errors.Wrapf(err, "reading %s %s", r.Kind, s.Key())
	}
	ref := ownerMachineRef(obj)
	if ref == nil {
		return nil, keptForGood("none controls the object"), nil
	}
	key := client.ObjectKey{Namespace: s.Key().Namespace, Name: ref.Name}
	if err := r.APIReader.Get(ctx, key, machine); err != nil {
		return nil, nil, errors.Wrapf(err, "reading Machine %s", key)
	}
	key.Name = machine.Spec.ClusterName
	if err := r.APIReader.Get(ctx, key, cluster); client.IgnoreNotFound(err) != nil {
		return nil, nil, errors.Wrapf(err, "reading Cluster %s", key)
	}
	if obj.GetUID() != s.Object.GetUID() || obj.CommonSpec().ProviderID != s.handle.ProviderID {
		return nil, keptFor("the object has just been changed"), nil
	}
	if machine.UID != ref.UID {
		return nil, keptFor("it is not the one that controls the object"), nil
	}
	if keep := r.keepMachine(obj, machine, cluster); keep != nil {
		return nil, keep, nil
	}
	return machine, nil, nil
}

// keepByCloud returns why the Machine is kept by what the cloud shows of the instance: whose it is, and that it can be taken back.
func (r *Reconciler[M]) keepByCloud(s *scope[M]) *keeping {
	switch i := s.view.Instance; {
	case !s.view.Known || !s.handle.Owns(i):
		return keptFor("the cloud does not show that the instance carries the mark of the object")
	case !i.Interruptible:
		return keptForGood("the cloud does not show the instance as one that it may take back")
	}
	return nil
}

// keepMachine returns why the Machine of the object is kept; nil if it is to be deleted. What it reads was just read.
func (r *Reconciler[M]) keepMachine(obj M, machine *clusterv1.Machine, cluster *clusterv1.Cluster) *keeping {
	infra := machine.Spec.InfrastructureRef
	switch {
	case !machine.DeletionTimestamp.IsZero() || !obj.GetDeletionTimestamp().IsZero():
		return &keeping{why: "Its Machine is being deleted already", ends: resultGone}
	case infra.Kind != r.Kind || infra.APIGroup != r.group || infra.Name != obj.GetName():
		return keptFor("it refers to another infrastructure machine")
	case machine.Spec.ProviderID != "" && machine.Spec.ProviderID != obj.CommonSpec().ProviderID:
		return keptFor("it has another instance, " + machine.Spec.ProviderID)
	case !isOfMachineSet(machine):
		return keptForGood("no MachineSet controls it, which would create another")
	case cluster.Name == "":
		return keptFor("its Cluster " + machine.Spec.ClusterName + " does not exist")
	}
	if by := pausedBy(obj, machine, cluster); by != "" {
		return keptFor(by)
	}
	return nil
}

// pausedBy reports what pauses the object, its Machine or their Cluster; empty if nothing does.
func pausedBy(obj driver.Object, machine *clusterv1.Machine, cluster *clusterv1.Cluster) string {
	if by := paused.By(obj, cluster); len(by) > 0 {
		return strings.Join(by, ", and ")
	}
	if by := paused.By(machine, nil); len(by) > 0 {
		return "it is paused: " + strings.Join(by, ", and ")
	}
	return ""
}

// isOfMachineSet is true if a MachineSet of Cluster API controls the Machine, in whatever version of the API that was written. Control
// planes replace their Machines themselves, in an order of their own.
func isOfMachineSet(machine *clusterv1.Machine) bool {
	ref := metav1.GetControllerOf(machine)
	if ref == nil || ref.Kind != "MachineSet" {
		return false
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == clusterv1.GroupVersion.Group
}
