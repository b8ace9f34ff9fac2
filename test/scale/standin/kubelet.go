package standin

import (
	"context"
	"sync/atomic"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubelet ends Pods at once, for the kubelets of all Nodes.
type kubelet struct {
	client client.Client
	ended  atomic.Int64
}

func (k *kubelet) setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).Named("kubelet").
		For(&corev1.Pod{}, builder.OnlyMetadata).
		Complete(k)
}

// Reconcile removes a terminating Pod.
func (k *kubelet) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := metadata(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := k.client.Get(ctx, request.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if pod.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err := k.client.Delete(ctx, target, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if err == nil {
		k.ended.Add(1)
	}
	return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "ending Pod %s", request)
}
