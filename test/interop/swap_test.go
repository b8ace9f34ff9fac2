package interop

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/sandbox"
	"millwright.dev/test/scale/cores"
)

// TestSwapTheCore: upstream's core takes the place of this one and gives it back, while machines on a simulated EC2 run; each scales the
// MachineDeployment, and neither replaces a machine. Webhooks are left out, as in the benchmark.
func TestSwapTheCore(t *testing.T) {
	if !*upstreamFlag {
		t.Skip("takes minutes of building: make interop")
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	w := &world{WithT: NewWithT(t), ctx: ctx}
	w.SetDefaultEventuallyTimeout(waitFor)
	w.SetDefaultEventuallyPollingInterval(lookEvery)
	root, err := controlplane.Root()
	w.Expect(err).NotTo(HaveOccurred())
	upstream, err := cores.BuildUpstream(ctx, root, t.Output())
	w.Expect(err).NotTo(HaveOccurred())
	dir := *logsFlag
	if dir == "" {
		dir = t.TempDir()
	}
	w.sandbox, err = sandbox.Start(ctx, sandbox.Options{LogDir: dir})
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(w.sandbox.Stop()).To(Succeed()) })
	w.client = w.sandbox.Control.Client
	w.furtherCRDs(root)

	w.Expect(w.sandbox.ApplySamples(ctx, corev1.NamespaceDefault)).To(Succeed())
	before := w.workers(3)

	w.sandbox.Core.Stop()
	began := time.Now()
	other, err := cores.Start(ctx, upstream, cores.Options{Kubeconfig: w.kubeconfig(t), Dir: t.TempDir(), OwnLimits: true})
	w.Expect(err).NotTo(HaveOccurred())
	w.scaleWorkers(4)
	after := w.workers(4)
	w.Expect(kept(before, after)).To(HaveLen(3), "upstream's core replaced nothing")
	t.Logf("upstream's core had a machine more after %s", time.Since(began).Round(time.Second))

	w.Expect(other.Alive()).To(Succeed())
	other.Stop()
	began = time.Now()
	w.Expect(w.sandbox.Core.Start(ctx)).To(Succeed())
	w.scaleWorkers(5)
	w.Expect(kept(after, w.workers(5))).To(HaveLen(4), "and neither did ours")
	t.Logf("our core had a machine more after %s", time.Since(began).Round(time.Second))
	calls, err := w.sandbox.EC2.Calls(ctx, "RunInstances")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(calls).To(HaveLen(5))

	w.Expect(w.client.Delete(ctx, &clusterv1.Cluster{ObjectMeta: inDefault(sandbox.SampleCluster)})).To(Succeed())
	w.Eventually(func() ([]string, error) {
		live, err := w.sandbox.EC2.LiveInstances(ctx)
		ids := make([]string, len(live))
		for i := range live {
			ids[i] = live[i].ID
		}
		return ids, err
	}).Should(BeEmpty())
}

// furtherCRDs are those that upstream's core watches and ours does not have.
func (w *world) furtherCRDs(root string) {
	module, err := cores.ModuleDirectory(w.ctx, root, providers[0].Tool)
	w.Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob(filepath.Join(module, "core", "config", "crd", "bases", "*.yaml"))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		w.Expect(sandbox.CreateFrom(w.ctx, w.client, file, inContract)).To(Succeed())
	}
	w.Eventually(func() error { return established(w.ctx, w.client) }).Should(Succeed())
}

func (w *world) kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	w.Expect(os.WriteFile(path, w.sandbox.Control.Kubeconfig(), 0o600)).To(Succeed())
	return path
}

func (w *world) scaleWorkers(replicas int32) {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: inDefault(sandbox.SampleDeployment)}
	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = ptr.To(replicas)
	w.Expect(w.client.Patch(w.ctx, deployment, patch)).To(Succeed())
}

// workers waits until so many Machines are Running with a Node, and returns the UID of the Node by that of the Machine.
func (w *world) workers(count int) map[string]string {
	nodes := map[string]string{}
	w.Eventually(func(g Gomega) {
		clear(nodes)
		list := &clusterv1.MachineList{}
		g.Expect(w.client.List(w.ctx, list, client.InNamespace(corev1.NamespaceDefault))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(count))
		for _, machine := range list.Items {
			g.Expect(machine.Status.Phase).To(Equal("Running"))
			node := &corev1.Node{}
			g.Expect(w.sandbox.Target.Client.Get(w.ctx, client.ObjectKey{Name: machine.Status.NodeRef.Name}, node)).To(Succeed())
			nodes[string(machine.UID)] = string(node.UID)
		}
	}).Should(Succeed())
	return nodes
}

// kept are the Machines that are in both, with the same Node.
func kept(before, after map[string]string) []string {
	var same []string
	for machine, node := range before {
		if after[machine] == node {
			same = append(same, machine)
		}
	}
	return same
}

func inDefault(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: name}
}
