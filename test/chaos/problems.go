package chaos

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/safety/overshoot"
)

// problems lists everything that is not yet as it must be without faults.
func (r *run) problems(s *state) []string {
	var p list
	r.checkMachines(s, &p)
	r.checkOwners(s, &p)
	r.checkRest(s, &p)
	slices.Sort(p)
	return p
}

// list collects problems.
type list []string

func (l *list) add(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

// checkMachines: each Machine is Running, with its instance, its one Node and all of its own objects.
func (r *run) checkMachines(s *state, p *list) {
	nodes := s.byProviderID()
	infra, configs, secrets, running := map[string]string{}, sets.New[string](), sets.New[string](), sets.New[string]()
	for _, m := range s.infra {
		infra[m.GetName()] = m.CommonSpec().ProviderID
	}
	for _, c := range s.configs.Items {
		configs.Insert(c.Name)
	}
	for _, secret := range s.secrets.Items {
		secrets.Insert(secret.Name)
	}
	for _, i := range s.instances {
		if i.running {
			running.Insert(i.providerID)
		}
	}
	missing := sets.KeySet(r.single)
	for i := range s.machines.Items {
		m := &s.machines.Items[i]
		missing.Delete(m.Name)
		if !m.DeletionTimestamp.IsZero() {
			p.add("Machine %s is being deleted: %s", m.Name, textOf(m, clusterv1.MachineDeletingCondition))
			continue
		}
		if preserved(m) {
			// It is of no set, and stays as it is until it is released.
			continue
		}
		id := m.Spec.ProviderID
		switch {
		case id == "" || infra[m.Name] != id:
			p.add(
				"Machine %s has provider ID %q, its %s %q: %s",
				m.Name,
				id,
				r.cloud.kind,
				infra[m.Name],
				textOf(m, clusterv1.MachineInfrastructureReadyCondition),
			)
		case !running.Has(id):
			p.add("Machine %s has no running instance %s", m.Name, id)
		case len(nodes[id]) != 1:
			p.add("Machine %s has %d Nodes", m.Name, len(nodes[id]))
		case m.Status.Phase != string(clusterv1.MachinePhaseRunning):
			p.add("Machine %s is %s: %s", m.Name, m.Status.Phase, textOf(m, clusterv1.MachineReadyCondition))
		default:
			checkNode(m, nodes[id][0], p)
		}
		if !configs.Has(m.Name) || !secrets.Has(m.Name) {
			p.add("Machine %s lacks its bootstrap config or Secret", m.Name)
		}
	}
	for name := range missing {
		p.add("Machine %s is missing", name)
	}
}

func checkNode(m *clusterv1.Machine, node *corev1.Node, p *list) {
	if m.Status.NodeRef.Name != node.Name {
		p.add("Machine %s refers to Node %q instead of %s", m.Name, m.Status.NodeRef.Name, node.Name)
	}
	for _, condition := range []string{
		clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition, clusterv1.MachineNodeReadyCondition,
	} {
		if !isTrue(m.Status.Conditions, condition) {
			p.add("Machine %s: %s", m.Name, textOf(m, condition))
		}
	}
	for _, key := range []string{waveLabel, markLabel} {
		if m.Labels[key] != node.Labels[key] {
			p.add("Machine %s has label %s=%q, its Node %q", m.Name, key, m.Labels[key], node.Labels[key])
		}
	}
	if node.Spec.Unschedulable {
		p.add("Node %s of Machine %s is cordoned", node.Name, m.Name)
	}
	for _, taint := range node.Spec.Taints {
		if taint.MatchTaint(&clusterv1.NodeUninitializedTaint) {
			p.add("Node %s of Machine %s is still uninitialized", node.Name, m.Name)
		}
	}
}

// checkOwners: numbers are exact, and Machines as their templates say.
func (r *run) checkOwners(s *state, p *list) {
	owned := s.ownedBy()
	templates := map[string]string{}
	for _, m := range s.infra {
		templates[m.GetName()] = m.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]
	}
	ofDeployment := map[types.UID][]*clusterv1.Machine{}
	for i := range s.sets.Items {
		set := &s.sets.Items[i]
		machines := owned[set.UID]
		if value := set.Labels[overshoot.FrozenLabel]; value != "" {
			p.add("MachineSet %s is frozen: %s", set.Name, value)
		}
		if !set.DeletionTimestamp.IsZero() {
			p.add("MachineSet %s is being deleted", set.Name)
		}
		if owner := metav1.GetControllerOf(set); owner != nil {
			ofDeployment[owner.UID] = append(ofDeployment[owner.UID], machines...)
		}
		wanted := ptr.Deref(set.Spec.Replicas, 1)
		p.numbers("MachineSet "+set.Name, wanted, len(machines), set.Status.Replicas, set.Status.ReadyReplicas, set.Status.AvailableReplicas)
		if set.Status.ObservedGeneration != set.Generation {
			p.add("MachineSet %s: generation %d of %d observed", set.Name, set.Status.ObservedGeneration, set.Generation)
		}
		p.templates("MachineSet "+set.Name, machines, &set.Spec.Template, templates)
	}
	for i := range s.deployments.Items {
		d := &s.deployments.Items[i]
		machines := ofDeployment[d.UID]
		if value := d.Labels[overshoot.FrozenLabel]; value != "" {
			p.add("MachineDeployment %s is frozen: %s", d.Name, value)
		}
		if !d.DeletionTimestamp.IsZero() {
			p.add("MachineDeployment %s is being deleted", d.Name)
		}
		wanted := ptr.Deref(d.Spec.Replicas, 1)
		p.numbers("MachineDeployment "+d.Name, wanted, len(machines),
			d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UpToDateReplicas)
		if d.Status.ObservedGeneration != d.Generation {
			p.add("MachineDeployment %s: generation %d of %d observed", d.Name, d.Status.ObservedGeneration, d.Generation)
		}
		p.templates("MachineDeployment "+d.Name, machines, &d.Spec.Template, templates)
	}
}

func (l *list) numbers(of string, wanted int32, have int, status ...*int32) {
	if int(wanted) != have {
		l.add("%s has %d Machines instead of %d", of, have, wanted)
	}
	for _, count := range status {
		if ptr.Deref(count, -1) != wanted {
			l.add("%s has %d replicas in its spec and counts %d (replicas, ready, available, up to date: %s)", of, wanted, ptr.Deref(count, -1), counts(status))
			return
		}
	}
}

func counts(numbers []*int32) string {
	text := ""
	for _, n := range numbers {
		text += fmt.Sprint(ptr.Deref(n, -1), " ")
	}
	return text
}

func (l *list) templates(of string, machines []*clusterv1.Machine, template *clusterv1.MachineTemplateSpec, clonedFrom map[string]string) {
	for _, m := range machines {
		if got, want := clonedFrom[m.Name], template.Spec.InfrastructureRef.Name; got != want {
			l.add("%s: Machine %s was created from template %q instead of %q", of, m.Name, got, want)
		}
		if got, want := m.Labels[waveLabel], template.Labels[waveLabel]; got != want {
			l.add("%s: Machine %s has wave %q instead of %q", of, m.Name, got, want)
		}
	}
}

// checkRest: there is nothing that belongs to no Machine.
func (r *run) checkRest(s *state, p *list) {
	machines, ids := sets.New[string](), sets.New[string]()
	for _, m := range s.machines.Items {
		machines.Insert(m.Name)
		ids.Insert(m.Spec.ProviderID)
	}
	for _, m := range s.infra {
		if !machines.Has(m.GetName()) {
			p.add("%s %s has no Machine", r.cloud.kind, m.GetName())
		}
	}
	for _, c := range s.configs.Items {
		if !machines.Has(c.Name) {
			p.add("bootstrap config %s has no Machine", c.Name)
		}
	}
	for _, secret := range s.secrets.Items {
		if !machines.Has(secret.Name) && secret.Name != clusterName+"-kubeconfig" {
			p.add("Secret %s has no Machine", secret.Name)
		}
	}
	r.checkNodes(s, ids, p)
	r.checkCloud(s, ids, p)
}

// checkNodes: there is no Node without a Machine, and no Pod that was left on a Node.
func (r *run) checkNodes(s *state, ids sets.Set[string], p *list) {
	names := sets.New[string]()
	for _, node := range s.nodes.Items {
		names.Insert(node.Name)
		if !ids.Has(node.Spec.ProviderID) {
			p.add("Node %s (%s) has no Machine", node.Name, node.Spec.ProviderID)
		}
	}
	for _, pod := range s.pods.Items {
		if !names.Has(pod.Spec.NodeName) && !r.deletedNodes[pod.Spec.NodeName] {
			p.add("Pod %s was not drained from Node %s, which is gone", pod.Name, pod.Spec.NodeName)
		}
	}
}

// checkCloud: there is nothing in the cloud without a Machine.
func (r *run) checkCloud(s *state, ids sets.Set[string], p *list) {
	for owner, launched := range s.launched {
		if launched > 1 {
			p.add("%s %s has had %d instances", r.cloud.kind, owner, launched)
		}
	}
	live := sets.New[string]()
	for _, i := range s.instances {
		live.Insert(i.id)
		if !ids.Has(i.providerID) {
			p.add("instance %s (%s) has no Machine", i.id, i.name)
		}
	}
	for _, part := range s.parts {
		if !live.Has(part.machine) {
			p.add("%s %s has no instance", part.kind, part.id)
		}
	}
}

func isTrue(conditions []metav1.Condition, kind string) bool {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// textOf is what a condition of a Machine says.
func textOf(m *clusterv1.Machine, kind string) string {
	for _, c := range m.Status.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return "no condition " + kind
}
