package admission_test

import (
	"math/rand/v2"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// generated is one request.
type generated struct {
	kind     string
	old, obj client.Object
	// steps are what was done to a plain object, that of the old one included.
	steps []string
	// oldRefused means that the old object would be refused by Cluster API, were it created.
	oldRefused bool
}

// change is one thing that may be done to an object.
type change[T client.Object] struct {
	name string
	do   func(T)
}

func generate(r *rand.Rand) *generated {
	switch r.IntN(6) {
	case 0:
		return of(r, "Machine", plainMachine, machineChanges())
	case 1:
		return of(r, "MachineSet", plainSet, setChanges())
	case 2, 3:
		return of(r, "MachineDeployment", plainDeployment, deploymentChanges())
	case 4:
		if r.IntN(2) == 0 {
			return of(
				r,
				"MachineDrainRule",
				func() *clusterv1.MachineDrainRule { return &clusterv1.MachineDrainRule{ObjectMeta: named("ns", "r")} },
				ruleChanges(),
			)
		}
		return of(r, "MachineHealthCheck", plainCheck, checkChanges())
	default:
		return of(r, "Cluster", plainCluster, clusterChanges())
	}
}

// of makes a creation, or an update of an object with some changes to one with some more.
func of[T client.Object](r *rand.Rand, kind string, plain func() T, changes []change[T]) *generated {
	c := &generated{kind: kind}
	obj := plain()
	take := func(n int) {
		for range n {
			ch := changes[r.IntN(len(changes))]
			ch.do(obj)
			c.steps = append(c.steps, ch.name)
		}
	}
	take(r.IntN(4))
	if r.IntN(2) == 0 {
		return c.with(obj)
	}
	old, ok := obj.DeepCopyObject().(T)
	if !ok {
		panic("a copy is of another type")
	}
	c.old = old
	take(1 + r.IntN(3))
	return c.with(obj)
}

func (c *generated) with(obj client.Object) *generated {
	c.obj = obj
	return c
}

func plainMachine() *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: named("ns", "m"), Spec: machineSpec()}
}

func plainSet() *clusterv1.MachineSet {
	return &clusterv1.MachineSet{ObjectMeta: named("ns", "s"), Spec: clusterv1.MachineSetSpec{ClusterName: "c", Template: templateSpec()}}
}

func plainDeployment() *clusterv1.MachineDeployment {
	return &clusterv1.MachineDeployment{
		ObjectMeta: named("ns", "d"),
		Spec:       clusterv1.MachineDeploymentSpec{ClusterName: "c", Template: templateSpec()},
	}
}

func plainCheck() *clusterv1.MachineHealthCheck {
	return &clusterv1.MachineHealthCheck{ObjectMeta: named("ns", "h"), Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
}

func plainCluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: named("ns", "c"),
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: ref("XCluster"), ControlPlaneRef: ref("XControlPlane")},
	}
}

var badSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}

func annotate[T client.Object](key, value string) func(T) {
	return func(obj T) {
		all := obj.GetAnnotations()
		if all == nil {
			all = map[string]string{}
		}
		all[key] = value
		obj.SetAnnotations(all)
	}
}

// both are limits of the cluster autoscaler.
func both[T client.Object](low, high string) func(T) {
	return func(obj T) {
		annotate[T](clusterv1.AutoscalerMinSizeAnnotation, low)(obj)
		annotate[T](clusterv1.AutoscalerMaxSizeAnnotation, high)(obj)
	}
}

// specChanges are changes of a Machine's spec, of its own or in a template.
func specChanges[T client.Object](spec func(T) *clusterv1.MachineSpec) []change[T] {
	taint := func(key string) func(T) {
		return func(obj T) {
			spec(obj).Taints = append(spec(obj).Taints, clusterv1.MachineTaint{Key: key, Effect: "NoSchedule", Propagation: "Always"})
		}
	}
	version := func(v string) func(T) { return func(obj T) { spec(obj).Version = v } }
	return []change[T]{
		{"no bootstrap", func(obj T) { spec(obj).Bootstrap = clusterv1.Bootstrap{} }},
		{"bootstrap config", func(obj T) { spec(obj).Bootstrap = clusterv1.Bootstrap{ConfigRef: ref("XConfigTemplate")} }},
		{"version", version("v1.36.3")}, {"version without v", version("1.36.3")},
		{"half a version", version("v1.36")}, {"no version at all", version("latest")}, {"leading zeros", version("v1.036.0")},
		{"pre-release", version("v1.36.0-rc.1+x")},
		{"taint", taint("a.b/c")}, {"control plane taint", taint("node-role.kubernetes.io/control-plane")},
		{"master taint", taint("node-role.kubernetes.io/master")}, {"not ready taint", taint("node.kubernetes.io/not-ready")},
		{"out of service taint", taint("node.kubernetes.io/out-of-service")}, {"cloud taint", taint("node.cloudprovider.kubernetes.io/x")},
		{"own taint", taint("node.cluster.x-k8s.io/uninitialized")}, {"own other taint", taint("node.cluster.x-k8s.io/outdated-revision")},
		{"taint that is none", taint("a b")},
		{"node deletion timeout", func(obj T) { spec(obj).Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0) }},
		{"drain timeout", func(obj T) { spec(obj).Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](5) }},
	}
}

func machineChanges() []change[*clusterv1.Machine] {
	return append(specChanges(func(m *clusterv1.Machine) *clusterv1.MachineSpec { return &m.Spec }),
		change[*clusterv1.Machine]{"other Cluster", func(m *clusterv1.Machine) { m.Spec.ClusterName = "other" }},
		change[*clusterv1.Machine]{
			"control plane",
			func(m *clusterv1.Machine) { m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""} },
		},
		change[*clusterv1.Machine]{"of a pool", func(m *clusterv1.Machine) { m.Labels = map[string]string{clusterv1.MachinePoolNameLabel: "p"} }},
		change[*clusterv1.Machine]{"owned by a pool", func(m *clusterv1.Machine) {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "p", UID: "u"}}
		}},
		change[*clusterv1.Machine]{"no labels", func(m *clusterv1.Machine) { m.Labels = nil }},
		change[*clusterv1.Machine]{"force deletion", annotate[*clusterv1.Machine]("machine.millwright.dev/force-deletion", "true")},
		change[*clusterv1.Machine]{"bad force deletion", annotate[*clusterv1.Machine]("machine.millwright.dev/force-deletion", "yes")},
		change[*clusterv1.Machine]{"bad priority", annotate[*clusterv1.Machine]("machinepriority.machine.sapcloud.io", "x")},
	)
}

// templateChanges are changes of what MachineSets and MachineDeployments have in common.
func templateChanges[T client.Object](template func(T) *clusterv1.MachineTemplateSpec, selector func(T) *metav1.LabelSelector,
	naming func(T) *clusterv1.MachineNamingSpec, replicas func(T) **int32) []change[T] {
	nameBy := func(text string) func(T) { return func(obj T) { naming(obj).Template = text } }
	amount := func(n *int32) func(T) { return func(obj T) { *replicas(obj) = n } }
	const skip = clusterv1.MachineSetSkipPreflightChecksAnnotation
	return append(specChanges(func(obj T) *clusterv1.MachineSpec { return &template(obj).Spec }), []change[T]{
		{"no replicas", amount(nil)}, {"three", amount(ptr.To[int32](3))}, {"twenty", amount(ptr.To[int32](20))}, {"negative replicas", amount(ptr.To[int32](-1))},
		{"limits", both[T]("2", "9")}, {"turned limits", both[T]("9", "2")}, {"bad limits", both[T]("few", "9")}, {"bad upper limit", both[T]("2", "")},
		{"negative limit", both[T]("-1", "9")}, {"one limit", annotate[T](clusterv1.AutoscalerMinSizeAnnotation, "4")},
		{"selector", func(obj T) {
			*selector(obj) = metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			template(obj).Labels = map[string]string{"a": "b"}
		}},
		{"expression", func(obj T) {
			*selector(obj) = metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}},
			}
			template(obj).Labels = map[string]string{"a": "b"}
		}},
		{"selector of a set", func(obj T) {
			*selector(obj) = metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineSetNameLabel: "other"}}
			template(obj).Labels = map[string]string{clusterv1.MachineSetNameLabel: "other"}
		}},
		{"selector of others", func(obj T) { *selector(obj) = metav1.LabelSelector{MatchLabels: map[string]string{"a": "other"}} }},
		{"bad selector", func(obj T) { *selector(obj) = *badSelector }},
		{"no selector", func(obj T) { *selector(obj) = metav1.LabelSelector{} }},
		{"other Cluster in the template", func(obj T) { template(obj).Spec.ClusterName = "other" }},
		{"bad label", func(obj T) { template(obj).Labels = map[string]string{"a": "/"} }},
		{"bad annotation", func(obj T) { template(obj).Annotations = map[string]string{"a b": ""} }},
		{"priority", func(obj T) { template(obj).Annotations = map[string]string{"machinepriority.machine.sapcloud.io": "1"} }},
		{"bad priority", func(obj T) { template(obj).Annotations = map[string]string{"machinepriority.machine.sapcloud.io": "x"} }},
		{"infrastructure is no template", func(obj T) { template(obj).Spec.InfrastructureRef = ref("XMachine") }},
		{"bootstrap is no template", func(obj T) { template(obj).Spec.Bootstrap.ConfigRef = ref("XConfig") }},
		{"naming", nameBy("{{ .cluster.name }}-{{ .machineSet.name }}-{{ .random }}")},
		{"long naming", nameBy("{{ .random }}-" + strings.Repeat("x", 80))},
		{"random without spaces", nameBy("x-{{.random}}")}, {"random in a comment", nameBy("x{{/* {{ .random }} */}}")},
		{"names alike", nameBy("{{ .machineSet.name }}")}, {"unknown name", nameBy("{{ .machine.name }}-{{ .random }}")},
		{"no template", nameBy("{{ .random }}{{")}, {"capitals", nameBy("X-{{ .random }}")},
		{"skipped checks", annotate[T](skip, "All, KubeadmVersionSkew")}, {"bad skipped checks", annotate[T](skip, "All,x")}, {"empty skipped check", annotate[T](skip, "All,")},
	}...)
}

func setChanges() []change[*clusterv1.MachineSet] {
	return append(templateChanges(
		func(s *clusterv1.MachineSet) *clusterv1.MachineTemplateSpec { return &s.Spec.Template },
		func(s *clusterv1.MachineSet) *metav1.LabelSelector { return &s.Spec.Selector },
		func(s *clusterv1.MachineSet) *clusterv1.MachineNamingSpec { return &s.Spec.MachineNaming },
		func(s *clusterv1.MachineSet) **int32 { return &s.Spec.Replicas },
	),
		change[*clusterv1.MachineSet]{"long name", func(s *clusterv1.MachineSet) { s.Name = strings.Repeat("s", 70) }},
		change[*clusterv1.MachineSet]{
			"other Cluster",
			func(s *clusterv1.MachineSet) { s.Spec.ClusterName, s.Spec.Template.Spec.ClusterName = "other", "other" },
		},
	)
}

func deploymentChanges() []change[*clusterv1.MachineDeployment] {
	type deployment = *clusterv1.MachineDeployment
	rolling := func(d deployment) *clusterv1.MachineDeploymentRolloutStrategyRollingUpdate {
		return &d.Spec.Rollout.Strategy.RollingUpdate
	}
	surge := func(v intstr.IntOrString) func(deployment) { return func(d deployment) { rolling(d).MaxSurge = &v } }
	unavailable := func(v intstr.IntOrString) func(deployment) {
		return func(d deployment) { rolling(d).MaxUnavailable = &v }
	}
	inFlight := func(v intstr.IntOrString) func(deployment) {
		return func(d deployment) { d.Spec.Remediation.MaxInFlight = &v }
	}
	number, words := intstr.FromInt32, intstr.FromString
	return append(templateChanges(
		func(d deployment) *clusterv1.MachineTemplateSpec { return &d.Spec.Template },
		func(d deployment) *metav1.LabelSelector { return &d.Spec.Selector },
		func(d deployment) *clusterv1.MachineNamingSpec { return &d.Spec.MachineNaming },
		func(d deployment) **int32 { return &d.Spec.Replicas },
	), []change[deployment]{
		{"long name", func(d deployment) { d.Name = strings.Repeat("d", 70) }},
		{"other Cluster", func(d deployment) { d.Spec.ClusterName, d.Spec.Template.Spec.ClusterName = "other", "other" }},
		{"on delete", func(d deployment) {
			d.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
		}},
		{"surge", surge(number(3))}, {"surge percent", surge(words("25%"))}, {"no surge", surge(number(0))}, {"no surge percent", surge(words("0%"))},
		{"bad surge", surge(words("3"))}, {"negative surge", surge(number(-1))},
		{"unavailable", unavailable(number(3))}, {"unavailable percent", unavailable(words("150%"))}, {"none unavailable", unavailable(number(0))},
		{"bad unavailable", unavailable(words("x%"))}, {"negative unavailable", unavailable(words("-5%"))},
		{"in flight", inFlight(words("20%"))}, {"bad in flight", inFlight(words("few"))}, {"negative in flight", inFlight(number(-2))},
		{"rollback", annotate[deployment]("machinedeployment.millwright.dev/rollback-to", "0")}, {"bad rollback", annotate[deployment]("machinedeployment.millwright.dev/rollback-to", "last")},
		{"bad deadline", annotate[deployment]("machinedeployment.millwright.dev/progress-deadline", "15")},
		{"bad history", annotate[deployment]("machinedeployment.millwright.dev/revision-history-limit", "-1")},
	}...)
}

func checkChanges() []change[*clusterv1.MachineHealthCheck] {
	type check = *clusterv1.MachineHealthCheck
	startup := func(n *int32) func(check) { return func(c check) { c.Spec.Checks.NodeStartupTimeoutSeconds = n } }
	share := func(v intstr.IntOrString) func(check) {
		return func(c check) { c.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = &v }
	}
	return []change[check]{
		{"no selector", func(c check) { c.Spec.Selector = metav1.LabelSelector{} }}, {"bad selector", func(c check) { c.Spec.Selector = *badSelector }},
		{"own Cluster", func(c check) {
			c.Spec.Selector.MatchLabels = map[string]string{clusterv1.ClusterNameLabel: c.Spec.ClusterName}
		}},
		{"selector of another Cluster", func(c check) { c.Spec.Selector.MatchLabels = map[string]string{clusterv1.ClusterNameLabel: "x"} }},
		{"other Cluster", func(c check) { c.Spec.ClusterName = "other" }},
		{"no startup", startup(nil)}, {"endless startup", startup(ptr.To[int32](0))}, {"short startup", startup(ptr.To[int32](29))}, {"startup", startup(ptr.To[int32](30))},
		{"share", share(intstr.FromString("40%"))}, {"bad share", share(intstr.FromString("some"))}, {"negative unhealthy", share(intstr.FromInt32(-1))},
	}
}

func ruleChanges() []change[*clusterv1.MachineDrainRule] {
	type rule = *clusterv1.MachineDrainRule
	behave := func(b clusterv1.MachineDrainRuleDrainBehavior, order *int32) func(rule) {
		return func(r rule) { r.Spec.Drain = clusterv1.MachineDrainRuleDrainConfig{Behavior: b, Order: order} }
	}
	return []change[rule]{
		{"drain", behave("Drain", ptr.To[int32](1))}, {"skip", behave("Skip", nil)}, {"skip in order", behave("Skip", ptr.To[int32](1))},
		{"wait", behave("WaitCompleted", nil)}, {"wait in order", behave("WaitCompleted", ptr.To[int32](0))},
		{"bad Machines", func(r rule) { r.Spec.Machines = []clusterv1.MachineDrainRuleMachineSelector{{Selector: badSelector}} }},
		{"bad Clusters", func(r rule) {
			r.Spec.Machines = []clusterv1.MachineDrainRuleMachineSelector{{}, {ClusterSelector: badSelector}}
		}},
		{"bad Pods", func(r rule) { r.Spec.Pods = []clusterv1.MachineDrainRulePodSelector{{Selector: badSelector}} }},
		{"bad Namespaces", func(r rule) { r.Spec.Pods = []clusterv1.MachineDrainRulePodSelector{{NamespaceSelector: badSelector}} }},
		{"all", func(r rule) { r.Spec.Machines, r.Spec.Pods = nil, nil }},
	}
}

func clusterChanges() []change[*clusterv1.Cluster] {
	type cluster = *clusterv1.Cluster
	return []change[cluster]{
		{"long name", func(c cluster) { c.Name = strings.Repeat("c", 70) }},
		{"no infrastructure", func(c cluster) { c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{} }},
		{"no control plane", func(c cluster) { c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{} }},
		{"no references", func(c cluster) {
			c.Spec.InfrastructureRef, c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{},
				clusterv1.ContractVersionedObjectReference{}
		}},
		{"references", func(c cluster) { c.Spec = plainCluster().Spec }},
		{"topology", func(c cluster) {
			c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: "v1.36.3"}
		}},
		{"topology given up", func(c cluster) { c.Spec.Topology = clusterv1.Topology{} }},
		{"network", func(c cluster) { c.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.0.0.0/8", "fd00::/64"} }},
		{"bad network", func(c cluster) { c.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.0.0.0/8", "10.0.0.0"} }},
		{"bad services", func(c cluster) { c.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"x"} }},
	}
}
