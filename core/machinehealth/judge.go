package machinehealth

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/core/health"
)

// judge judges each Machine by the policies that are for it. It sends nothing.
func (s *round) judge(r *Reconciler) {
	histories := r.memory.begin(s.key)
	s.histories = histories
	health.ObserveCluster(health.Facts{Cluster: s.cluster, ClusterHistory: histories.cluster, Now: s.now})
	for _, machine := range s.machines {
		by, policies, selected := s.policiesFor(r, machine)
		history := histories.of(machine.UID)
		if len(policies) == 0 {
			if !selected && abandonable(machine) && predicates.MatchesWatchLabel(r.WatchFilter, machine) {
				s.abandoned = append(s.abandoned, machine)
			}
			continue
		}
		facts := s.facts(machine)
		facts.History, facts.ClusterHistory = history, histories.cluster
		health.Observe(facts, policies...)
		t := &target{Machine: machine, by: by}
		for _, policy := range policies {
			t.judgements = append(t.judgements, health.Judgement{Policy: policy.Name, Assessment: health.Judge(policy, facts)})
		}
		t.Assessment = health.Combine(t.judgements)
		s.wakeAt(t.Next)
		if t.State == health.Exempt && abandonable(machine) {
			s.abandoned = append(s.abandoned, machine)
		}
		s.targets = append(s.targets, t)
	}
	r.memory.end(s.key, histories)
}

// policiesFor are the policies that are for a Machine: those of all MachineHealthChecks that select it, or the default policy.
// selected reports whether there is a MachineHealthCheck, be it one that rests.
func (s *round) policiesFor(r *Reconciler, machine *clusterv1.Machine) (by []*check, policies []health.Policy, selected bool) {
	acts := false
	for _, c := range s.checks {
		if !c.selects(machine) {
			continue
		}
		selected = true
		if c.paused {
			continue
		}
		acts = acts || c.own
		by, policies = append(by, c), append(policies, c.policy)
	}
	switch {
	case selected && !acts:
		return nil, nil, true
	case selected:
		return by, policies, true
	case r.Options.Defaults.Judges(machine) && predicates.MatchesWatchLabel(r.WatchFilter, machine):
		deployment := s.deployments[machine.Labels[clusterv1.MachineDeploymentNameLabel]]
		return nil, []health.Policy{r.Options.Defaults.For(machine, deployment)}, false
	}
	return nil, nil, false
}

// facts are what is known of a Machine, but for what was seen before.
func (s *round) facts(machine *clusterv1.Machine) health.Facts {
	f := health.Facts{Machine: machine, Cluster: s.cluster, Unreadable: s.unreadable, NotBefore: s.notBefore, Now: s.now}
	if s.connection == nil {
		return f
	}
	if name := machine.Status.NodeRef.Name; name != "" {
		node, err := s.connection.Node(name)
		if err != nil {
			f.Unreadable = err.Error()
			return f
		}
		f.Node = node
	}
	f.Contested = s.contested(f)
	return f
}

// contested is why it is not known whose a Node is. The Machine controller, which looks for evidence, says more in the condition
// NodeReady.
func (s *round) contested(f health.Facts) string {
	name, id := f.Machine.Status.NodeRef.Name, f.Machine.Spec.ProviderID
	if name != "" && s.linked[name] > 1 {
		return fmt.Sprintf("Node %s is linked with %d Machines", name, s.linked[name])
	}
	if f.Node != nil && f.Node.Spec.ProviderID != "" && id != "" && f.Node.Spec.ProviderID != id {
		return fmt.Sprintf("Node %s has the provider ID of another machine, %s", name, f.Node.Spec.ProviderID)
	}
	if id == "" {
		return ""
	}
	nodes, err := s.connection.NodesWithProviderID(id)
	if err != nil || len(nodes) < 2 {
		return ""
	}
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	slices.Sort(names)
	return fmt.Sprintf("Nodes %s have the same provider ID %s", strings.Join(names[:min(len(names), 5)], ", "), id)
}

// ours reports whether a Machine has a condition HealthCheckSucceeded, or OwnerRemediated alone, that this controller has written, of this
// process or an earlier one: reason and message are both what it says. Others may write that condition to Machines that no policy is for:
// theirs stays.
func ours(machine *clusterv1.Machine) bool {
	c := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	switch {
	case c == nil:
		// Both are written at once: another client has removed that one, as from a Machine that was paused.
		asked := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
		return asked != nil && asked.Status == metav1.ConditionFalse && asked.Message == askedMessage
	case c.Status == metav1.ConditionTrue:
		return c.Reason == clusterv1.MachineHealthCheckSucceededReason && c.Message == healthyMessage
	}
	return c.Status == metav1.ConditionFalse && slices.Contains(health.Reasons, c.Reason) && isPolicyMessage(c.Message)
}

// abandonable reports whether what a policy has concluded is to be taken from a Machine that none is for any more. One that is paused
// or being deleted is left alone.
func abandonable(machine *clusterv1.Machine) bool {
	return ours(machine) && machine.DeletionTimestamp.IsZero() && len(paused.By(machine, nil)) == 0
}

// isPolicyMessage reports whether a message begins with the name of a policy.
func isPolicyMessage(message string) bool {
	if name, ok := strings.CutPrefix(message, checkPrefix); ok {
		name, _, ok = strings.Cut(name, ": ")
		return ok && len(validation.IsDNS1123Subdomain(name)) == 0
	}
	return strings.HasPrefix(message, health.DefaultName+": ")
}
