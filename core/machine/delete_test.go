package machine_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/core/machine"
	"millwright.dev/test/coretest"
)

const providerFinalizer = "standin.example.com/provider"

// TestDeletionGoesInOrder walks through each step of a deletion and holds it there.
func TestDeletionGoesInOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.setFinalizers(f.infra, providerFinalizer)
	f.setFinalizers(f.config, providerFinalizer)
	pod := f.pod("held", node.Name)
	core.Create(t, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "budget"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		},
	})
	f.annotate(f.machine, preDrainHook, ptr.To(""))
	f.annotate(f.machine, preTerminateHook, ptr.To(""))

	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Phase).To(Equal("Deleting"))
		g.Expect(condition(m, "Deleting")).To(Equal("True/WaitingForPreDrainHook"))
		g.Expect(message(m, "Deleting")).To(ContainSubstring(preDrainHook))
		g.Expect(m.Status.Deletion.WaitForPreDrainHookStartTime.IsZero()).To(BeFalse())
	})
	f.refresh(node)
	f.Expect(node.Spec.Unschedulable).To(BeFalse(), "nothing is drained before the hooks")

	f.annotate(f.machine, preDrainHook, nil)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/DrainingNode"))
		g.Expect(message(m, "Deleting")).To(And(ContainSubstring("held"), ContainSubstring("budget")))
		g.Expect(m.Status.Deletion.NodeDrainStartTime.IsZero()).To(BeFalse())
		g.Expect(message(m, "Ready")).NotTo(ContainSubstring("held"), "the summary names no pods")
	})
	f.refresh(node)
	f.Expect(node.Spec.Unschedulable).To(BeTrue())
	f.refresh(f.infra)
	f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil(), "the machine is kept while it is drained")

	f.Expect(core.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0))).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/WaitingForPreTerminateHook"))
	})
	f.annotate(f.machine, preTerminateHook, nil)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/WaitingForInfrastructureDeletion"))
	})
	f.refresh(f.config)
	f.Expect(f.config.GetDeletionTimestamp()).To(BeNil(), "bootstrap data after infrastructure")

	f.setFinalizers(f.infra)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/WaitingForBootstrapDeletion"))
	})
	f.refresh(node)
	f.setFinalizers(f.config)
	f.eventuallyGone(node)
	f.eventuallyGone(f.machine)
}

// TestDeletionBudget holds the deletion of a Machine without pods to what the benchmark allows.
func TestDeletionBudget(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.setFinalizers(f.infra, providerFinalizer)
	f.awaitsNothing()
	before, reconciles := len(core.Requests.Writes("/"+f.machine.Name)), core.Reconciles(f.namespace)

	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventuallyDeleting(f.infra)
	f.setFinalizers(f.infra)
	f.eventuallyGone(f.machine)
	f.eventuallyGone(node)

	// Two deletions, the finalizer and the conditions; cordon, pods and the Node itself go to the target cluster.
	f.Expect(len(core.Requests.Writes("/"+f.machine.Name))-before).
		To(BeNumerically("<=", 6), "%v", core.Requests.Writes("/" + f.machine.Name)[before:])
	f.Expect(core.Reconciles(f.namespace) - reconciles).To(BeNumerically("<=", 16))
}

func (f *fixture) eventuallyDeleting(obj client.Object) {
	f.t.Helper()
	f.Eventually(func() bool {
		f.refresh(obj)
		return obj.GetDeletionTimestamp() != nil
	}).WithTimeout(timeout).Should(BeTrue())
}

// TestDeletionFromEveryStage enters the deletion at each stage of a Machine's life, and leaves nothing.
func TestDeletionFromEveryStage(t *testing.T) {
	t.Parallel()
	for _, stage := range stages {
		t.Run(stage.name, func(t *testing.T) {
			f := newFixture(t, version.V1Beta1)
			f.eventuallyConnected()
			stage.reach(f)
			if stage.during != nil {
				f.setFinalizers(f.infra, providerFinalizer)
			}
			f.Expect(client.IgnoreNotFound(core.Client.Delete(t.Context(), f.machine))).To(Succeed())
			if stage.during != nil {
				f.eventuallyDeleting(f.infra)
				stage.during(f)
				f.setFinalizers(f.infra)
			}
			f.leavesNothing()
		})
	}
}

func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](1)
	node := f.run()
	pod := f.pod("stuck", node.Name)
	f.setFinalizers(pod, providerFinalizer)
	defer f.setFinalizers(pod)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventuallyGone(f.machine)
	f.eventuallyGone(node)
}

func TestDrainCanBeSkipped(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	pod := f.pod("stuck", node.Name)
	f.setFinalizers(pod, providerFinalizer)
	defer f.setFinalizers(pod)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/DrainingNode"))
	})
	f.annotate(f.machine, clusterv1.ExcludeNodeDrainingAnnotation, ptr.To(""))
	f.eventuallyGone(f.machine)
}

func TestVolumesAreAwaited(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	attached := func(volumes ...corev1.AttachedVolume) {
		f.refresh(node)
		before := node.DeepCopy()
		node.Status.VolumesAttached = volumes
		f.Expect(core.Client.Status().Patch(t.Context(), node, client.MergeFrom(before))).To(Succeed())
	}
	attached(corev1.AttachedVolume{Name: "v", DevicePath: "/dev/v"})
	f.awaitsNothing()
	watches := podWatches(t)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/WaitingForVolumeDetach"))
		g.Expect(message(m, "Deleting")).To(ContainSubstring("1 volume"))
	})
	// Whatever enqueues the Machine meanwhile, its pods have been read and are not read again.
	for _, value := range []string{"a", "b", "c"} {
		f.annotate(f.machine, clusterv1.PreTerminateDeleteHookAnnotationPrefix+"/test", ptr.To(value))
		f.awaitsNothing()
	}
	f.annotate(f.machine, clusterv1.PreTerminateDeleteHookAnnotationPrefix+"/test", nil)
	attached()
	f.eventuallyGone(f.machine)
	f.Eventually(func() int { return podWatches(t) - watches }).WithTimeout(timeout).Should(Equal(1))
}

// podWatches counts the watches of pods that the API server has ended.
func podWatches(t *testing.T) int {
	t.Helper()
	g := NewWithT(t)
	metrics, err := kubernetes.NewForConfigOrDie(core.Env.Config).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	count := 0
	for _, line := range strings.Split(string(metrics), "\n") {
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `resource="pods"`) &&
			strings.Contains(line, `verb="WATCH"`) {
			n, err := strconv.Atoi(line[strings.LastIndex(line, " ")+1:])
			g.Expect(err).NotTo(HaveOccurred())
			count += n
		}
	}
	return count
}

// TestNodeDeletionTimeoutStartsWithTheNode covers what upstream gets wrong: what came before does not count.
func TestNodeDeletionTimeoutStartsWithTheNode(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](600)
	node := f.run()
	f.setFinalizers(f.infra, providerFinalizer)
	f.setFinalizers(node, providerFinalizer)
	defer f.setFinalizers(node)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventuallyDeleting(f.infra)
	f.refresh(f.machine)
	f.Expect(f.machine.Annotations).NotTo(HaveKey(machine.NodeDeletionStartAnnotation), "nothing is tried before the infrastructure has gone")
	released := time.Now().Truncate(time.Second)
	f.setFinalizers(f.infra)

	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/DeletingNode"))
		start, err := time.Parse(time.RFC3339, m.Annotations[machine.NodeDeletionStartAnnotation])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(start).To(BeTemporally(">=", released))
	})
	f.patchMachine(func(m *clusterv1.Machine) { m.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](1) })
	f.eventuallyGone(f.machine)
	f.refresh(node)
	f.Expect(node.DeletionTimestamp).NotTo(BeNil(), "the Node was deleted, and its finalizer is another controller's")
}

func TestForeignObjectsAreNotDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	other := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Other", Name: "o", UID: "u", Controller: ptr.To(true)}
	f.createObjects(other)
	f.createMachine()
	core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "of-another"))
	f.provision()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/OwnedElsewhere"))
		g.Expect(condition(m, "BootstrapConfigReady")).To(Equal("False/OwnedElsewhere"))
	})
	f.awaitsNothing()
	f.refresh(f.machine)
	f.Expect(f.machine.Spec.Bootstrap.DataSecretName).To(BeNil(), "nor is the Secret of another used")
	f.Expect(f.machine.Spec.ProviderID).To(BeEmpty())
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventuallyGone(f.machine)
	for _, object := range []client.Object{f.infra, f.config} {
		f.refresh(object)
		f.Expect(object.GetDeletionTimestamp()).To(BeNil())
	}
}

func TestDeletionWithoutCluster(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.ClusterName = "gone"
	f.machine.Finalizers = []string{clusterv1.MachineFinalizer}
	f.createObjects()
	f.createMachine()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Ready")).To(Equal("Unknown/" + machine.ClusterMissingReason))
	})
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventuallyGone(f.machine)
	f.eventuallyGone(f.infra)
}
