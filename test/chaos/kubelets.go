package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	kubeletPeriod = 150 * time.Millisecond
	// maxJoin is how long a kubelet takes to register its Node, at first and when the Node was deleted under it.
	maxJoin = 800 * time.Millisecond
)

// kubelets register a Node with a Pod for each running instance, and again when the Node is deleted. They never
// delete Nodes, as real ones do not: the core does.
type kubelets struct {
	account account
	// cached reads Nodes from a cache, direct does not; both bypass all faults.
	cached, direct client.Client
	note           func(format string, args ...any)

	mu  sync.Mutex
	ill illness
	// alike says that Nodes are named after their Machines, as Millwright's own bootstrap provider does it; otherwise they have the host
	// names that the cloud gives their instances, as a kubelet takes them by default.
	alike  bool
	due    map[string]time.Time
	random *rand.Rand
	// scheduled are the Nodes that have got their Pod.
	scheduled sets.Set[types.UID]
}

func newKubelets(account account, cached, direct client.Client, note func(string, ...any), seed uint64) *kubelets {
	return &kubelets{
		account:   account,
		cached:    cached,
		direct:    direct,
		note:      note,
		ill:       newIllness(),
		due:       map[string]time.Time{},
		scheduled: sets.New[types.UID](),
		alike:     seed/2%2 == 0,
		random:    rand.New(rand.NewPCG(seed, 7)), // Chaos, not secrets.
	}
}

func (k *kubelets) run(ctx context.Context) {
	ticker := time.NewTicker(kubeletPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if err := k.look(ctx, now); err != nil && ctx.Err() == nil {
				k.note("kubelets: %v", err)
			}
		}
	}
}

func (k *kubelets) look(ctx context.Context, now time.Time) error {
	nodes := &corev1.NodeList{}
	if err := k.cached.List(ctx, nodes); err != nil {
		return err
	}
	joined := map[string]*corev1.Node{}
	for i := range nodes.Items {
		joined[nodes.Items[i].Spec.ProviderID] = &nodes.Items[i]
	}
	for _, instance := range k.account.machines() {
		node := joined[instance.providerID]
		if !instance.running || node != nil {
			delete(k.due, instance.id)
			if node != nil && instance.running {
				if err := k.schedule(ctx, node); err != nil {
					return err
				}
			}
			continue
		}
		due, waiting := k.due[instance.id]
		if !waiting {
			k.due[instance.id] = now.Add(time.Duration(k.random.Int64N(int64(maxJoin))))
			continue
		}
		if now.Before(due) {
			continue
		}
		if k.fails(instance.id) {
			continue
		}
		delete(k.due, instance.id)
		if err := k.join(ctx, instance); err != nil {
			return err
		}
	}
	return k.report(ctx, joined)
}

// join registers a Node. A kubelet whose machine has ended meanwhile would not have.
func (k *kubelets) join(ctx context.Context, instance machine) error {
	node := k.newNode(instance)
	if err := k.cached.Create(ctx, node); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	for _, now := range k.account.machines() {
		if now.id == instance.id && now.running {
			return nil
		}
	}
	return client.IgnoreNotFound(k.cached.Delete(ctx, node))
}

// schedule puts a Pod on a Node, as a scheduler would: not before the core has removed its taint.
func (k *kubelets) schedule(ctx context.Context, node *corev1.Node) error {
	untouched := func(t corev1.Taint) bool { return t.Key == clusterv1.NodeUninitializedTaint.Key }
	if k.scheduled.Has(node.UID) || node.Spec.Unschedulable || node.DeletionTimestamp != nil ||
		slices.ContainsFunc(node.Spec.Taints, untouched) {
		return nil
	}
	k.scheduled.Insert(node.UID)
	pod := newPod(node.Name)
	if err := k.cached.Create(ctx, pod); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	// What was read may be old: nothing evicts a Pod that comes to a cordoned Node after its drain has listed the Pods.
	err := k.direct.Get(ctx, client.ObjectKeyFromObject(node), node)
	if err == nil && !node.Spec.Unschedulable && node.DeletionTimestamp == nil {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	return client.IgnoreNotFound(k.cached.Delete(ctx, pod, client.GracePeriodSeconds(0)))
}

// newNode is a Node as a kubelet registers it.
func (k *kubelets) newNode(instance machine) *corev1.Node {
	now := metav1.Now()
	name := instance.host
	if k.alike {
		name = instance.name
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{ProviderID: instance.providerID, Taints: []corev1.Taint{clusterv1.NodeUninitializedTaint}},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", BootID: instance.id}},
	}
	for kind, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
		corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
	} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: status, Reason: "Kubelet", LastHeartbeatTime: now, LastTransitionTime: now,
		})
	}
	return node
}

// newPod is a Pod on a Node that may be evicted: a ReplicaSet would recreate it elsewhere.
func newPod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workloads,
			Name:      fmt.Sprintf("on-%s", node),
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "workload", UID: types.UID("workload"), Controller: ptr.To(true)},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: "workload", Image: "registry.example.com/workload:v1"}},
		},
	}
}
