package lifecycle

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/scale/standin"
)

// leftovers counts, in the API server itself, what should be gone with the MachineDeployment.
func (l *life) leftovers(ctx context.Context) (map[string]int, error) {
	kinds := map[string]schema.GroupVersionKind{
		"machinedeployments":      clusterv1.GroupVersion.WithKind("MachineDeployment"),
		"machinesets":             clusterv1.GroupVersion.WithKind("MachineSet"),
		"machines":                clusterv1.GroupVersion.WithKind("Machine"),
		"infrastructure machines": standin.Machine,
		"bootstrap configs":       standin.Config,
		"secrets":                 corev1.SchemeGroupVersion.WithKind("Secret"),
		"nodes":                   corev1.SchemeGroupVersion.WithKind("Node"),
		"pods":                    corev1.SchemeGroupVersion.WithKind("Pod"),
	}
	counts := map[string]int{}
	for name, gvk := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		var options []client.ListOption
		if name != "nodes" && name != "pods" {
			options = append(options, client.InNamespace(namespace))
		}
		if err := l.providers.Reader().List(ctx, list, options...); err != nil {
			return nil, errors.Wrapf(err, "counting %s", name)
		}
		n := len(list.Items)
		if name == "secrets" {
			// The kubeconfig of the Cluster stays with the Cluster.
			n--
		}
		if n != 0 {
			counts[name] = n
		}
	}
	return counts, nil
}
