package machine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/core/machine"
)

// TestDrain_PodsReturn_IsForcedAtTheTimeout: pods of a Deployment that tolerates everything are placed on the cordoned Node as
// soon as the ones before are gone. The drain evicts them again and again, and ends with its timeout.
func TestDrain_PodsReturn_IsForcedAtTheTimeout(t *testing.T) {
	t.Parallel()
	const replicas = 3
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.patchMachine(func(m *clusterv1.Machine) { m.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](20) })
	made, stop := f.keepUp(replicas, node.Name)
	defer stop()
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.draining("since they have returned to the cordoned Node: pods " + f.namespace + "/web-5d9c-")
	f.eventuallyGone(f.machine)
	f.recorded(machine.DrainForcedEvent, "spec.deletion.nodeDrainTimeoutSeconds")
	// Here pods that have returned are evicted after a second.
	f.Expect(made()).To(BeNumerically("<=", 25*replicas), "each replica at first, once in each interval, and once by force")
}

// keepUp stands in for a ReplicaSet, whose pods tolerate everything and are placed on one Node. It reports how many it has created.
func (f *fixture) keepUp(replicas int, node string) (made func() int, stop func()) {
	f.t.Helper()
	number, ended := 0, make(chan struct{})
	fill := func(ctx context.Context) error {
		list := &corev1.PodList{}
		if err := core.Client.List(ctx, list, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		var going []*corev1.Pod
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp != nil {
				going = append(going, &list.Items[i])
			}
		}
		for range replicas - len(list.Items) + len(going) {
			number++
			if err := core.Client.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: f.namespace,
					Name:      fmt.Sprintf("web-5d9c-%d", number),
					Labels:    map[string]string{"pod-template-hash": "5d9c"},
					OwnerReferences: []metav1.OwnerReference{
						{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d9c", UID: "web", Controller: ptr.To(true)},
					},
				},
				Spec: corev1.PodSpec{
					NodeName:    node,
					Containers:  []corev1.Container{{Name: "c", Image: "i"}},
					Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				},
			}); err != nil {
				return err
			}
		}
		// As their kubelet would, but not before the Node has others, so that it is never empty.
		for _, pod := range going {
			if err := core.Client.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	}
	f.Expect(fill(f.t.Context())).To(Succeed())
	ctx, cancel := context.WithCancel(f.t.Context())
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := fill(ctx); err != nil && ctx.Err() == nil {
				f.t.Error(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	stop = func() { cancel(); <-ended }
	return func() int { stop(); return number }, stop
}
