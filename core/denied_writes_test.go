package main

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest"
)

// TestDeniedWrites_AreReportedAndBackOff: a policy denies one write of one controller in each row. The object that a user looks at has the
// policy's words, and the write is not retried at a constant rate.
func TestDeniedWrites_AreReportedAndBackOff(t *testing.T) {
	w := newDeniedWrites(t)
	var rows []*row
	for _, write := range deniedWriteRows() {
		rows = append(rows, w.newRow(write))
	}
	for _, r := range rows {
		if r.act != nil {
			r.settled()
			r.deny()
			r.act(r)
		}
	}
	w.deadline = time.Now().Add(reporting)
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			for _, report := range r.reported {
				kind, in, _ := strings.Cut(report, " ")
				r.isReported(t, kind, in)
			}
		})
	}
	before := map[*row]int{}
	for _, r := range rows {
		before[r] = r.attempts()
		w.Expect(before[r]).To(BeNumerically(">", 0), "%s was never tried", r.name)
	}
	w.Consistently(func(g Gomega) {
		for _, r := range rows {
			g.Expect(r.attempts()-before[r]).To(BeNumerically("<=", attemptsAllowed), "%s does not back off", r.name)
		}
	}).WithTimeout(10 * time.Second).WithPolling(time.Second).Should(Succeed())
}

func deniedWriteRows() (rows []deniedWrite) {
	for _, of := range [][]deniedWrite{clusterWrites, machineWrites, setWrites, deploymentWrites, healthWrites} {
		rows = append(rows, of...)
	}
	return rows
}

var clusterWrites = []deniedWrite{
	{name: "Cluster: finalizer", denied: "UPDATE clusters", reported: []string{"Cluster Available"}},
	{name: "Cluster: status", denied: "UPDATE clusters/status", reported: []string{"Cluster StatusRefused"}},
	{name: "Cluster: owner of its infrastructure", denied: "UPDATE " + plural(infraKind), with: referenced,
		reported: []string{"Cluster InfrastructureReady"}},
	{name: "Cluster: owner of its control plane", denied: "UPDATE " + plural(planeKind), with: referenced,
		reported: []string{"Cluster ControlPlaneAvailable"}},
	{name: "Cluster: deletion of MachineDeployments", denied: "DELETE machinedeployments", act: removeCluster,
		reported: []string{"Cluster Deleting"}},
	{name: "Cluster: deletion of MachineSets", denied: "DELETE machinesets", with: aloneSet, act: removeCluster,
		reported: []string{"Cluster Deleting"}},
	{name: "Cluster: deletion of Machines", denied: "DELETE machines", with: aloneMachine, act: removeCluster,
		reported: []string{"Cluster Deleting"}},
	{name: "Cluster: deletion of its infrastructure", denied: "DELETE " + plural(infraKind), with: referenced, act: removeCluster,
		reported: []string{"Cluster Deleting"}},
	{name: "Cluster: deletion of its control plane", denied: "DELETE " + plural(planeKind), with: referenced, act: removeCluster,
		reported: []string{"Cluster Deleting"}},
	{name: "Cluster: removal of the finalizer", denied: "UPDATE clusters", act: removeCluster, reported: []string{"Cluster Deleting"}},
}

var machineWrites = []deniedWrite{
	{name: "Machine: finalizer", denied: "UPDATE machines", with: aloneMachine, reported: []string{"Machine Ready"}},
	{name: "Machine: status", denied: "UPDATE machines/status", reported: []string{"Machine StatusRefused"}},
	{name: "Machine: owner of the bootstrap config", denied: "UPDATE " + plural(configKind), with: aloneMachine,
		reported: []string{"Machine BootstrapConfigReady", "Machine Ready"}},
	{name: "Machine: owner of the infrastructure machine", denied: "UPDATE " + plural(machineKind), with: aloneMachine,
		reported: []string{"Machine InfrastructureReady", "Machine Ready"}},
	{name: "Machine: deletion of the bootstrap config", denied: "DELETE " + plural(configKind), act: removeMachine,
		reported: []string{"Machine Deleting"}},
	{name: "Machine: deletion of the infrastructure machine", denied: "DELETE " + plural(machineKind), act: removeMachine,
		reported: []string{"Machine Deleting"}},
	{name: "Machine: removal of the finalizer", denied: "UPDATE machines", act: removeMachine, reported: []string{"Machine Deleting"}},
	{name: "Machine: labels of the Node", denied: "UPDATE nodes", act: relabel, reported: []string{"Machine NodeHealthy", "Machine NodeSyncFailed"}},
	{name: "Machine: cordon", denied: "UPDATE nodes", act: removeMachine, reported: []string{"Machine Deleting"}},
	{name: "Machine: eviction", denied: "CREATE pods/eviction", act: func(r *row) {
		r.pod()
		removeMachine(r)
	}, reported: []string{"Machine Deleting"}},
	{name: "Machine: deletion of the Node", denied: "DELETE nodes", with: func(r *row) {
		r.deployment.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0) // No timeout.
	}, act: removeMachine, reported: []string{"Machine Deleting"}},
}

var setWrites = []deniedWrite{
	{name: "MachineSet: finalizer", denied: "UPDATE machinesets", with: aloneSet, reported: []string{"MachineSet ScalingUp"}},
	{name: "MachineSet: status", denied: "UPDATE machinesets/status", reported: []string{"MachineSet StatusRefused"}},
	{name: "MachineSet: owner of the bootstrap template", denied: "UPDATE " + plural(configKind+"Template"),
		reported: []string{"MachineSet ScalingUp", "MachineDeployment ScalingUp"}},
	{name: "MachineSet: owner of the infrastructure template", denied: "UPDATE " + plural(machineKind+"Template"),
		reported: []string{"MachineSet ScalingUp", "MachineDeployment ScalingUp"}},
	{name: "MachineSet: creation of Machines", denied: "CREATE machines",
		reported: []string{"MachineSet ScalingUp", "MachineDeployment ScalingUp"}},
	{name: "MachineSet: creation of bootstrap configs", denied: "CREATE " + plural(configKind),
		reported: []string{"MachineSet ScalingUp", "MachineDeployment ScalingUp"}},
	{name: "MachineSet: creation of infrastructure machines", denied: "CREATE " + plural(machineKind),
		reported: []string{"MachineSet ScalingUp", "MachineDeployment ScalingUp"}},
	{name: "MachineSet: scale-down", denied: "DELETE machines", act: func(r *row) { r.patch(r.deployment, `{"spec":{"replicas":0}}`) },
		reported: []string{"MachineSet ScalingDown", "MachineSet DeletionRejected", "MachineDeployment ScalingDown"}},
	{name: "MachineSet: deletion of all Machines", denied: "DELETE machines", act: func(r *row) { r.remove(r.set()) },
		reported: []string{"MachineSet Deleting"}},
	{name: "MachineSet: removal of the finalizer", denied: "UPDATE machinesets", with: aloneSet,
		act: func(r *row) { r.remove(r.set()) }, reported: []string{"MachineSet Deleting"}},
	{name: "MachineSet: update of Machines", denied: "UPDATE machines", act: relabel,
		reported: []string{"MachineSet ScalingUp", "MachineDeployment ScalingUp"}},
	{name: "MachineSet: update of bootstrap configs", denied: "UPDATE " + plural(configKind), act: relabel,
		reported: []string{"MachineSet ScalingUp", "MachineDeployment ScalingUp"}},
	{name: "MachineSet: update of infrastructure machines", denied: "UPDATE " + plural(machineKind), act: relabel,
		reported: []string{"MachineSet ScalingUp", "MachineDeployment ScalingUp"}},
	{name: "MachineSet: adoption", denied: "UPDATE machines", act: func(r *row) { r.patch(r.machine(), `{"metadata":{"ownerReferences":null}}`) },
		reported: []string{"MachineSet ScalingUp"}},
	{name: "MachineSet: release", denied: "UPDATE machines", act: func(r *row) { r.patch(r.machine(), `{"metadata":{"labels":{"pool":"x"}}}`) },
		reported: []string{"MachineSet ScalingUp"}},
}

var deploymentWrites = []deniedWrite{
	{name: "MachineDeployment: finalizer", denied: "UPDATE machinedeployments", reported: []string{"MachineDeployment RollingOut"}},
	{name: "MachineDeployment: status", denied: "UPDATE machinedeployments/status", reported: []string{"MachineDeployment StatusRefused"}},
	{name: "MachineDeployment: creation of MachineSets", denied: "CREATE machinesets", reported: []string{"MachineDeployment ScalingUp"}},
	{name: "MachineDeployment: scale of MachineSets", denied: "UPDATE machinesets",
		act: func(r *row) { r.patch(r.deployment, `{"spec":{"replicas":2}}`) }, reported: []string{"MachineDeployment ScalingUp"}},
	{name: "MachineDeployment: labels of MachineSets", denied: "UPDATE machinesets", act: relabel,
		reported: []string{"MachineDeployment RollingOut"}},
	{name: "MachineDeployment: adoption", denied: "UPDATE machinesets",
		act:      func(r *row) { r.patch(r.set(), `{"metadata":{"ownerReferences":null}}`) },
		reported: []string{"MachineDeployment RollingOut"}},
	{name: "MachineDeployment: deletion of MachineSets", denied: "DELETE machinesets", act: func(r *row) { r.remove(r.deployment) },
		reported: []string{"MachineDeployment Deleting"}},
	{name: "MachineDeployment: removal of the finalizer", denied: "UPDATE machinedeployments",
		act: func(r *row) { r.remove(r.deployment) }, reported: []string{"MachineDeployment Deleting"}},
}

var healthWrites = []deniedWrite{
	{name: "MachineHealthCheck: owner", denied: "UPDATE machinehealthchecks", with: func(r *row) { r.more = append(r.more, r.check()) },
		reported: []string{"MachineHealthCheck MachinesUpdated"}},
	{name: "MachineHealthCheck: status", denied: "UPDATE machinehealthchecks/status", with: func(r *row) { r.more = append(r.more, r.check()) },
		reported: []string{"MachineHealthCheck StatusRefused"}},
	{name: "MachineHealthCheck: conditions of Machines", denied: "UPDATE machines/status", act: func(r *row) { r.create(r.check()) },
		reported: []string{"MachineHealthCheck MachinesUpdated"}},
	{name: "MachineHealthCheck: request of external remediation", denied: "CREATE " + plural(infraKind), act: func(r *row) {
		r.create(coretest.Template(infraKind, r.namespace, "t"), r.remediated())
		r.unready()
	}, reported: []string{"MachineHealthCheck MachinesUpdated"}},
}

// referenced gives the Cluster an infrastructure cluster and a control plane. Both are ready.
func referenced(r *row) {
	r.cluster.Spec.InfrastructureRef = coretest.Ref(infraKind, "c")
	r.cluster.Spec.ControlPlaneRef = coretest.Ref(planeKind, "c")
	r.more = append(r.more, coretest.Object(infraKind, r.namespace, "c"), coretest.Object(planeKind, r.namespace, "c"))
}

// aloneSet has a MachineSet without a MachineDeployment.
func aloneSet(r *row) {
	r.more = append(r.more, &clusterv1.MachineSet{
		ObjectMeta: r.deployment.ObjectMeta,
		Spec: clusterv1.MachineSetSpec{
			ClusterName: r.namespace, Replicas: ptr.To[int32](1), Selector: r.deployment.Spec.Selector, Template: r.deployment.Spec.Template,
		},
	})
	r.deployment = nil
}

// aloneMachine has a Machine without a MachineSet, and its objects without an owner.
func aloneMachine(r *row) {
	machine := &clusterv1.Machine{ObjectMeta: r.deployment.ObjectMeta, Spec: r.deployment.Spec.Template.Spec}
	name := machine.Name
	machine.Spec.InfrastructureRef, machine.Spec.Bootstrap.ConfigRef = coretest.Ref(machineKind, name), coretest.Ref(configKind, name)
	r.more = append(r.more, coretest.Object(configKind, r.namespace, name), coretest.Object(machineKind, r.namespace, name), machine)
	r.deployment = nil
}

func removeCluster(r *row) { r.remove(r.cluster) }

func removeMachine(r *row) { r.remove(r.machine()) }

// relabel changes a label that goes from the deployment to its Machines, their objects and Nodes.
func relabel(r *row) {
	r.patch(r.deployment, `{"spec":{"template":{"metadata":{"labels":{"`+syncedLabel+`":"b"}}}}}`)
}

// pod puts a pod on the Node.
func (r *row) pod() {
	r.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "p"},
		Spec:       corev1.PodSpec{NodeName: r.machine().Name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	})
}

// check is a MachineHealthCheck of all Machines.
func (r *row) check() *clusterv1.MachineHealthCheck {
	return &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "check"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: r.namespace, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "d"}},
		},
	}
}

// remediated is a check that finds a Machine unhealthy as soon as its Node is not ready, and requests external remediation.
func (r *row) remediated() *clusterv1.MachineHealthCheck {
	check := r.check()
	check.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, TimeoutSeconds: ptr.To[int32](0),
	}}
	check.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{
		APIVersion: coretest.Group + "/v1", Kind: infraKind + "Template", Name: "t",
	}
	return check
}

// unready has the kubelet report that the Node is not ready.
func (r *row) unready() {
	node := &corev1.Node{}
	r.Expect(r.Get(r.t.Context(), client.ObjectKey{Name: r.machine().Name}, node)).To(Succeed())
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			node.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	r.Expect(r.Status().Update(r.t.Context(), node)).To(Succeed())
}

// plural is the resource of a stand-in kind.
func plural(kind string) string {
	name, _, _ := strings.Cut(coretest.CRD(kind).Name, ".")
	return name
}
