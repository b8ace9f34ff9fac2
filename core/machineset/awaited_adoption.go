package machineset

import (
	"context"
	"fmt"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// awaitAdoption stops the creation of Machines in a set that a MachineDeployment is about to adopt: a copy of one of its sets would create
// as many Machines as there are already, only for the MachineDeployment to delete them.
func (r *Reconciler) awaitAdoption(ctx context.Context, s *scope) error {
	name := s.Object.Labels[clusterv1.MachineDeploymentNameLabel]
	if name == "" || metav1.GetControllerOf(s.Object) != nil {
		return nil
	}
	deployment := &clusterv1.MachineDeployment{}
	switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: name}, deployment); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return errors.Wrapf(err, "reading MachineDeployment %s", name)
	}
	selector, err := metav1.LabelSelectorAsSelector(&deployment.Spec.Selector)
	if err == nil && !selector.Empty() && selector.Matches(labels.Set(s.Object.Labels)) &&
		deployment.DeletionTimestamp.IsZero() && deployment.Spec.ClusterName == s.Object.Spec.ClusterName {
		s.block(fmt.Sprintf("MachineDeployment %s is to adopt this MachineSet, since its spec.selector matches; if it does not, "+
			"its condition RollingOut says why. To keep the MachineSet without an owner, remove its label %s",
			name, clusterv1.MachineDeploymentNameLabel))
	}
	return nil
}
