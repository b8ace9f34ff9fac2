package chaos

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/scale/standin"
)

const (
	clusterName = "chaos"
	// checkName is the MachineHealthCheck's.
	checkName = "half"
	// configTemplate is the bootstrap template of all, machineTemplates are those that rollouts change between.
	configTemplate = "any"
	// waveLabel goes from a template to its Machines and from there to their Nodes, without a rollout.
	waveLabel = "node.cluster.x-k8s.io/wave"
	// markLabel is put on single Machines manually.
	markLabel = "node.cluster.x-k8s.io/mark"
	// illFor is how long a Node may be ill until its Machine is unhealthy, startupFor how long a Machine may take to become a Node: a few
	// times as long as it does without faults.
	illFor     = time.Second
	startupFor = 10 * time.Second
	// checkLabel is on the Machines that the health check is for; the default policy of the core is for the others.
	checkLabel = "chaos.millwright.dev/check"
	// stopAbove, of a Cluster, and checkedStopAbove, of what the health check is for, are the shares of unhealthy Machines above which
	// nothing is replaced.
	stopAbove, checkedStopAbove = "50%", "55%"
	// setLabelKey has the name of the MachineSet that no deployment owns.
	setLabelKey = "chaos.millwright.dev/set"
)

var (
	// machineTemplates differ in their instance types: those of the cloud, in this order.
	machineTemplates = []string{"first", "second", "third"}
)

// shape is what there is at the beginning.
type shape struct {
	deployments []group
	sets        []group
	// single are Machines without an owner.
	single int
}

// group is a MachineDeployment or a MachineSet.
type group struct {
	name     string
	replicas int
	// checked means that the health check is for its Machines.
	checked bool
	// surge and unavailable are those of a deployment's rollouts.
	surge, unavailable intstr.IntOrString
}

// shapeOf distributes about n Machines.
func shapeOf(n int) shape {
	part := func(percent int) int { return max(n*percent/100, 2) }
	return shape{
		deployments: []group{
			{"surging", part(28), true, intstr.FromString("30%"), intstr.FromInt32(0)},
			{"shrinking", part(22), false, intstr.FromInt32(0), intstr.FromString("25%")},
			{"steady", part(15), true, intstr.FromInt32(1), intstr.FromInt32(1)},
			{"doomed", part(10), false, intstr.FromInt32(1), intstr.FromInt32(0)},
		},
		sets:   []group{{name: "set-a", replicas: part(10), checked: true}, {name: "set-b", replicas: part(8)}},
		single: part(7),
	}
}

// foundations are what Machines need.
func (r *run) foundations() []client.Object {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}},
		&clusterv1.Cluster{ObjectMeta: r.meta(clusterName), Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)}},
		r.standIn(standin.ConfigTemplate, configTemplate),
		r.healthCheck(),
	}
	for i, name := range machineTemplates {
		objects = append(objects, r.cloud.template(r.meta(name), r.cloud.types[i]))
	}
	return objects
}

// healthCheck is for about half of the Machines. Those of its conditions but Ready are the ones that the default policy goes by as well.
func (r *run) healthCheck() *clusterv1.MachineHealthCheck {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) clusterv1.UnhealthyNodeCondition {
		return clusterv1.UnhealthyNodeCondition{Type: kind, Status: status, TimeoutSeconds: ptr.To(int32(illFor.Seconds()))}
	}
	unhealthy := []clusterv1.UnhealthyNodeCondition{
		condition(corev1.NodeReady, corev1.ConditionUnknown), condition(corev1.NodeReady, corev1.ConditionFalse),
	}
	for _, kind := range nodeConditions {
		unhealthy = append(unhealthy, condition(kind, corev1.ConditionTrue))
	}
	return &clusterv1.MachineHealthCheck{ObjectMeta: r.meta(checkName), Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: clusterName,
		Selector:    metav1.LabelSelector{MatchLabels: map[string]string{checkLabel: "yes"}},
		Checks: clusterv1.MachineHealthCheckChecks{
			NodeStartupTimeoutSeconds: ptr.To(int32(startupFor.Seconds())),
			UnhealthyNodeConditions:   unhealthy,
		},
		Remediation: clusterv1.MachineHealthCheckRemediation{TriggerIf: clusterv1.MachineHealthCheckRemediationTriggerIf{
			UnhealthyLessThanOrEqualTo: ptr.To(intstr.FromString(checkedStopAbove)),
		}},
	}}
}

func (r *run) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: clusterName}}
}

func (r *run) standIn(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(gvk)
	object.SetNamespace(r.namespace)
	object.SetName(name)
	object.SetLabels(map[string]string{clusterv1.ClusterNameLabel: clusterName})
	object.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"size": "any"}}}
	return object
}

func machineSpec(config, infra schema.GroupVersionKind, configName, infraName string) clusterv1.MachineSpec {
	return clusterv1.MachineSpec{
		ClusterName:       clusterName,
		Version:           "v1.36.3",
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: reference(config, configName)},
		InfrastructureRef: reference(infra, infraName),
		// Nodes must go, however long the target cluster is out.
		Deletion: clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: ptr.To[int32](0)},
	}
}

func reference(gvk schema.GroupVersionKind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: gvk.Group, Kind: gvk.Kind, Name: name}
}

func (r *run) templateSpec(labels map[string]string, template string) clusterv1.MachineTemplateSpec {
	return clusterv1.MachineTemplateSpec{
		ObjectMeta: clusterv1.ObjectMeta{Labels: labels},
		Spec:       machineSpec(standin.ConfigTemplate, r.cloud.version.WithKind(r.cloud.kind+"Template"), configTemplate, template),
	}
}

func (r *run) deployment(g group) *clusterv1.MachineDeployment {
	labels := map[string]string{clusterv1.ClusterNameLabel: clusterName, clusterv1.MachineDeploymentNameLabel: g.name}
	return &clusterv1.MachineDeployment{
		ObjectMeta: r.meta(g.name),
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: clusterName, Replicas: ptr.To(int32(g.replicas)), Selector: metav1.LabelSelector{MatchLabels: labels},
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				Type:          clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: &g.surge, MaxUnavailable: &g.unavailable},
			}},
			Template: r.templateSpec(g.machineLabels(labels), machineTemplates[0]),
		},
	}
}

// machineLabels are those of its Machines, by which it selects them and the health check may.
func (g group) machineLabels(selector map[string]string) map[string]string {
	labels := maps.Clone(selector)
	if g.checked {
		labels[checkLabel] = "yes"
	}
	return labels
}

func (r *run) machineSet(g group) *clusterv1.MachineSet {
	labels := map[string]string{clusterv1.ClusterNameLabel: clusterName, setLabelKey: g.name}
	return &clusterv1.MachineSet{
		ObjectMeta: r.meta(g.name),
		Spec: clusterv1.MachineSetSpec{
			ClusterName: clusterName, Replicas: ptr.To(int32(g.replicas)), Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: r.templateSpec(g.machineLabels(labels), machineTemplates[0]),
		},
	}
}

// singleMachine is a Machine with all that belongs to it, created manually.
func (r *run) singleMachine(name string) []client.Object {
	config := r.standIn(standin.Config, name)
	config.Object["spec"] = map[string]any{"size": "any"}
	infra := r.cloud.machine(r.meta(name), r.cloud.types[0])
	machine := &clusterv1.Machine{ObjectMeta: r.meta(name)}
	machine.Spec = machineSpec(standin.Config, r.cloud.version.WithKind(r.cloud.kind), name, name)
	return []client.Object{config, infra, machine}
}

func (r *run) kubeconfigSecret(content []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: r.meta(clusterName + "-kubeconfig"), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": content},
	}
}
