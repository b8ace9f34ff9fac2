package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/core/remediation"
	"millwright.dev/test/coretest"
)

// TestATemplateThatNeverComesUp: its Machines get no Node. The whole core replaces each until the retries are used up, with the pause
// between two, also across a restart; then the MachineDeployment says how often it failed, and nothing is bought any more until a user asks
// for it.
func TestATemplateThatNeverComesUp(t *testing.T) {
	g := NewWithT(t)
	const retries, pause = 2, 4 * time.Second
	env, c := startServer(t)
	arguments := []string{
		"--webhook-port=0", "--namespace=never", "--machine-safety-recovery-grace=0s", "--machine-creation-timeout=1s",
		"--remediation-max-in-flight=1", "--remediation-max-retry=2", "--remediation-retry-period=" + pause.String(),
	}
	n := neverUp{Client: c, WithT: g, t: t, seen: map[types.UID]clusterv1.Machine{}}
	n.deploy(kubeconfigOf(t, &coretest.Requests{}, env, "target"))
	start := func() func() { return runCore(t, c, kubeconfigOf(t, &coretest.Requests{}, env, "core"), arguments...) }
	stop := start()
	n.replaced(0, "")
	stop()
	stop = start()
	defer func() { stop() }()
	n.bought(retries+2, remediation.MaxRetryReachedReason,
		"Gave up after 3 failed replacements (max-retry is 2)")
	last := n.current()
	record := remediation.RecordOf(&last)
	g.Expect(record).To(HaveValue(HaveField("Retry", retries)))
	for record != nil && record.Retry > 0 {
		var before clusterv1.Machine
		for _, machine := range n.seen {
			if machine.Name == record.Machine {
				before = machine
			}
		}
		former := remediation.RecordOf(&before)
		g.Expect(former).NotTo(BeNil())
		g.Expect(record.Since.Sub(former.Since)).To(BeNumerically(">=", pause-time.Second), "times are in whole seconds")
		record = former
	}
	g.Consistently(func(g Gomega) { g.Expect(n.current().UID).To(Equal(last.UID)) }).WithTimeout(pause).Should(Succeed())

	// A user asks for another try, which begins a new count.
	before := last.DeepCopy()
	last.Annotations[clusterv1.RemediateMachineAnnotation] = ""
	g.Expect(c.Patch(t.Context(), &last, client.MergeFrom(before))).To(Succeed())
	n.replaced(0, last.Name)
}

// neverUp is a MachineDeployment with one Machine, whose provider does nothing.
type neverUp struct {
	client.Client
	*WithT
	t *testing.T
	// seen are Machines that there were; those that they replace are in their records.
	seen map[types.UID]clusterv1.Machine
}

func (n *neverUp) deploy(kubeconfig []byte) {
	n.t.Helper()
	const namespace, name = "never", "d"
	config, machine := coretest.Kind(coretest.Config, version.V1Beta2), coretest.Kind(coretest.Machine, version.V1Beta2)
	named := metav1.ObjectMeta{Namespace: namespace, Name: name}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-kubeconfig",
		Labels: map[string]string{clusterv1.ClusterNameLabel: name}}, Data: map[string][]byte{"value": kubeconfig}}
	labels := map[string]string{"pool": name}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, secret,
		&clusterv1.Cluster{ObjectMeta: named, Spec: clusterv1.ClusterSpec{Paused: new(bool)}},
		coretest.Template(config, namespace, name), coretest.Template(machine, namespace, name),
		&clusterv1.MachineDeployment{ObjectMeta: named, Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: name, Replicas: ptr.To[int32](1), Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: labels}, Spec: clusterv1.MachineSpec{
				ClusterName: name, InfrastructureRef: coretest.Ref(machine+"Template", name),
				Bootstrap: clusterv1.Bootstrap{ConfigRef: coretest.Ref(config+"Template", name)},
			}},
		}},
	} {
		n.Expect(n.Create(n.t.Context(), object)).To(Succeed())
	}
}

// current is the one Machine that is not being deleted.
func (n *neverUp) current() clusterv1.Machine {
	list := &clusterv1.MachineList{}
	n.Expect(n.List(n.t.Context(), list, client.InNamespace("never"))).To(Succeed())
	var living []clusterv1.Machine
	for _, machine := range list.Items {
		n.seen[machine.UID] = machine
		if machine.DeletionTimestamp.IsZero() {
			living = append(living, machine)
		}
	}
	if len(living) != 1 {
		return clusterv1.Machine{}
	}
	return living[0]
}

// replaced waits until the Machine is a replacement, of that one if it has a name, which so many retries came before.
func (n *neverUp) replaced(retry int, name string) {
	n.t.Helper()
	n.Eventually(func(g Gomega) {
		machine := n.current()
		record := remediation.RecordOf(&machine)
		g.Expect(record).To(HaveValue(HaveField("Retry", retry)))
		g.Expect(name).To(BeElementOf("", record.Machine))
	}).WithTimeout(timeout).WithPolling(50 * time.Millisecond).Should(Succeed())
}

// bought waits until the MachineDeployment says why nothing is replaced now, and looks how many Machines it took.
func (n *neverUp) bought(machines int, reason, message string) {
	n.t.Helper()
	n.Eventually(func(g Gomega) {
		n.current()
		d := &clusterv1.MachineDeployment{}
		g.Expect(n.Get(n.t.Context(), client.ObjectKey{Namespace: "never", Name: "d"}, d)).To(Succeed())
		found := meta.FindStatusCondition(d.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
		g.Expect(found).
			To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", reason),
				HaveField("Message", ContainSubstring(message)))))
	}).WithTimeout(2 * timeout).WithPolling(50 * time.Millisecond).Should(Succeed())
	names := map[string]bool{}
	for _, machine := range n.seen {
		names[machine.Name] = true
		if record := remediation.RecordOf(&machine); record != nil {
			names[record.Machine] = true
		}
	}
	n.Expect(names).To(HaveLen(machines))
}
