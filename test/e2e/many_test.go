package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/sandbox"
)

// manyGrace is how long nothing is replaced there after an API server answers again.
const manyGrace = 10 * time.Second

// manyWait is how long a step that replaces many machines may take.
const manyWait = 5 * time.Minute

// manyWorld is a namespace in a sandbox whose instances do not boot, for scenarios about numbers of machines: a stand-in joins their Nodes
// and runs their pods. Everything in it is deleted when the test ends. Those about rollouts and scaling are in one row, those about
// failures in another.
func manyWorld(t *testing.T, r *row, namespace string) *world {
	t.Helper()
	name, args := "rolling", []string{"--remote-connection-grace-period=5s"} // TestTargetCluster has it reported soon.
	if r == &failing {
		name, args = "failing", nil
	}
	s := r.start(t, sandbox.Options{
		LogDir: filepath.Join(suite.logs, name), Unbooted: true, InterruptionQueue: true,
		WithoutWebhooks: r == &failing, // Those tests write while the core is down.
		ManagerArgs: map[string][]string{"core": append(args,
			"--machine-safety-apiserver-statuscheck-timeout=10s", fmt.Sprintf("--machine-safety-recovery-grace=%s", manyGrace),
		)},
	})
	return newWorldWithin(t, s, namespace, manyWait)
}

// surge edits the rolling update of the sample MachineDeployment; each is a number or a percentage.
func surge(maxSurge, maxUnavailable any) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		if object.GetKind() == "MachineDeployment" {
			_ = unstructured.SetNestedMap(object.Object, map[string]any{"maxSurge": maxSurge, "maxUnavailable": maxUnavailable},
				"spec", "rollout", "strategy", "rollingUpdate")
		}
	}
}

// deployment reads the sample MachineDeployment.
func (w *world) deployment() *clusterv1.MachineDeployment {
	w.t.Helper()
	md := &clusterv1.MachineDeployment{}
	w.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: sandbox.SampleDeployment}, md)).To(Succeed())
	return md
}

// change patches the sample MachineDeployment.
func (w *world) change(edit func(*clusterv1.MachineDeployment)) {
	w.t.Helper()
	md := w.deployment()
	before := md.DeepCopy()
	edit(md)
	w.Expect(w.control.Patch(w.ctx, md, client.MergeFrom(before))).To(Succeed())
}

// start creates so many machines of the samples.
func (w *world) start(count int, edits ...func(*unstructured.Unstructured)) {
	w.t.Helper()
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, append(edits, replicas(int64(count)))...)).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, count)).To(Succeed())
}

// ofTemplate are the UIDs of the Machines that were created from an infrastructure template and are not being deleted.
func (w *world) ofTemplate(name string) map[string]clusterv1.Machine {
	w.t.Helper()
	found := map[string]clusterv1.Machine{}
	for _, machine := range w.machines() {
		if w.templateOf(&machine) == name && machine.DeletionTimestamp.IsZero() {
			found[string(machine.UID)] = machine
		}
	}
	return found
}

// templateOf is the infrastructure template of the set of a Machine.
func (w *world) templateOf(machine *clusterv1.Machine) string {
	w.t.Helper()
	set := &clusterv1.MachineSet{}
	key := client.ObjectKey{Namespace: w.namespace, Name: machine.Labels[clusterv1.MachineSetNameLabel]}
	if err := w.control.Get(w.ctx, key, set); err != nil {
		return ""
	}
	return set.Spec.Template.Spec.InfrastructureRef.Name
}

// nodes are all Nodes, by name.
func (w *world) nodes() map[string]*corev1.Node {
	w.t.Helper()
	list := &corev1.NodeList{}
	w.Expect(w.target.List(w.ctx, list)).To(Succeed())
	nodes := map[string]*corev1.Node{}
	for i := range list.Items {
		nodes[list.Items[i].Name] = &list.Items[i]
	}
	return nodes
}

// running are the Machines that run, by UID.
func (w *world) running() map[string]bool {
	uids := map[string]bool{}
	for _, machine := range w.scenario.Watch.Machines() {
		if machine.Running() {
			uids[machine.UID] = true
		}
	}
	return uids
}

// marked reports whether a Node has the marks of an outdated revision.
func marked(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.MatchTaint(&clusterv1.NodeOutdatedRevisionTaint) {
			return node.Annotations[scaleDownDisabled] == "true"
		}
	}
	return false
}

// scaleDownDisabled is the annotation by which the cluster autoscaler leaves a Node alone.
const scaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
