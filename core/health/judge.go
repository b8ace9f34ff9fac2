package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/paused"
)

// settle is how long a Node must be missing that this process has never seen: the list that it was started with may come from a
// cache of the API server that is behind.
const settle = 30 * time.Second

// Judge judges a Machine by a policy. In this order: who is not to be judged; the annotation that asks for remediation; what to wait
// for; the Machine's conditions; its Node. All that is found is in the message, and the first of it is the reason.
func Judge(p Policy, f Facts) Assessment {
	if why := exemption(f); why != "" {
		return Assessment{State: Exempt, Message: why}
	}
	if !f.Machine.DeletionTimestamp.IsZero() {
		return Assessment{State: Pending, Message: "The Machine is being deleted"}
	}
	if _, demanded := f.Machine.Annotations[clusterv1.RemediateMachineAnnotation]; demanded {
		return Assessment{
			State: Unhealthy, Reason: clusterv1.MachineHealthCheckHasRemediateAnnotationReason, Since: f.Now,
			Message: "The annotation " + clusterv1.RemediateMachineAnnotation + " asks for remediation",
		}
	}
	if awaited := awaited(f); awaited != "" {
		return Assessment{State: Pending, Message: awaited}
	}
	var found findings
	found.lost(f)
	found.machine(p, f)
	found.node(p, f)
	return found.conclude(f)
}

// exemption is why a Machine is not to be judged.
func exemption(f Facts) string {
	if by := paused.By(f.Machine, f.Cluster); len(by) > 0 {
		return "Paused: " + strings.Join(by, ", and ")
	}
	if _, skip := f.Machine.Annotations[clusterv1.MachineSkipRemediationAnnotation]; skip {
		return "The annotation " + clusterv1.MachineSkipRemediationAnnotation + " is set"
	}
	return ""
}

// awaited is what the Cluster lacks before its Machines are judged. Machines of the control plane do not wait for themselves.
func awaited(f Facts) string {
	if f.Cluster == nil {
		return "Waiting for Cluster " + f.Machine.Spec.ClusterName
	}
	for _, kind := range clusterConditions {
		if kind == clusterv1.ClusterControlPlaneInitializedCondition && f.controlPlane() {
			continue
		}
		if c := condition(f.Cluster.Status.Conditions, kind); c == nil || c.Status != "True" {
			return "Waiting for condition " + kind + " of Cluster " + f.Cluster.Name
		}
	}
	return ""
}

// findings are what speaks against a Machine.
type findings struct {
	reason   string
	messages []string
	since    time.Time
	// next is when more does.
	next time.Time
	// early are those that freeze or grace forbid to conclude yet.
	early bool
	// unknown is why the Node says nothing; pending what else is awaited.
	unknown, pending string
}

func (s *findings) add(reason, message string, since time.Time) {
	if s.reason == "" {
		s.reason = reason
	}
	s.messages, s.since = append(s.messages, message), earlier(s.since, since)
}

// timed adds what has been so for too long, or when it will have been. Before NotBefore nothing is concluded from the passing of time.
func (s *findings) timed(f Facts, reason, message string, since time.Time, timeout time.Duration) {
	switch until := since.Add(timeout); {
	case f.Now.Before(until):
		s.next = earlier(s.next, until)
	case f.Now.Before(f.NotBefore):
		s.early = true
	default:
		s.add(reason, message, since)
	}
}

func (s *findings) machine(p Policy, f Facts) {
	for _, rule := range p.MachineConditions {
		c := condition(f.Machine.Status.Conditions, rule.Type)
		if c == nil || !rule.matches(string(c.Status)) {
			continue
		}
		if f.Unreadable != "" && slices.Contains(nodeConditions, rule.Type) {
			s.unknown = f.Unreadable
			continue
		}
		s.timed(f, clusterv1.MachineHealthCheckUnhealthyMachineReason,
			fmt.Sprintf("Condition %s of the Machine has been %s (%s) for more than %s", c.Type, c.Status, c.Reason, rule.Timeout),
			f.History.since(ofMachine, rule.Type, c.LastTransitionTime.Time, f.Now), rule.Timeout)
	}
}

func (s *findings) node(p Policy, f Facts) {
	switch {
	case f.Unreadable != "":
		s.unknown = "The Nodes cannot be read: " + f.Unreadable
	case f.Contested != "":
		s.unknown = f.Contested
	case f.Node != nil:
		s.conditions(p, f)
	case f.Machine.Status.NodeRef.IsDefined():
		s.gone(p, f)
	default:
		s.startup(p, f)
	}
}

func (s *findings) conditions(p Policy, f Facts) {
	for _, rule := range p.NodeConditions {
		c := nodeCondition(f.Node, rule.Type)
		if c == nil || !rule.matches(string(c.Status)) {
			continue
		}
		s.timed(f, clusterv1.MachineHealthCheckUnhealthyNodeReason,
			fmt.Sprintf("Condition %s of Node %s has been %s (%s) for more than %s", c.Type, f.Node.Name, c.Status, c.Reason, rule.Timeout),
			f.History.since(ofNode, rule.Type, c.LastTransitionTime.Time, f.Now), rule.Timeout)
	}
}

// gone judges a Machine whose Node is not there any more.
func (s *findings) gone(p Policy, f Facts) {
	s.pending = "Node " + f.Machine.Status.NodeRef.Name + " is not there"
	if p.NodeGone == nil {
		return
	}
	timeout, since := *p.NodeGone, f.Now
	known := f.History.find(nodeExistence, "")
	if known != nil {
		since = known.seen
	}
	if known == nil || !known.live {
		timeout = max(timeout, settle)
	}
	s.timed(f, clusterv1.MachineHealthCheckNodeDeletedReason, "Node "+f.Machine.Status.NodeRef.Name+" has been deleted", since, timeout)
}

// startup judges a Machine that has had no Node: since the latest of its creation and of what it cannot have a Node without.
func (s *findings) startup(p Policy, f Facts) {
	s.pending = "Waiting for the Node"
	if p.NodeStartup == 0 {
		return
	}
	// It was launched before it came to this API server without its status, as by a move. How long its provider is away here says nothing
	// of the machine, which runs.
	if f.Machine.Spec.ProviderID != "" && !ptr.Deref(f.Machine.Status.Initialization.InfrastructureProvisioned, false) {
		s.pending = "Waiting for the infrastructure provider to observe " + f.Machine.Spec.ProviderID + ", which was launched before"
		return
	}
	since := f.History.since(machineExistence, "", f.Machine.CreationTimestamp.Time, f.Now)
	for _, kind := range clusterConditions {
		if c := condition(f.Cluster.Status.Conditions, kind); c != nil && c.Status == "True" {
			since = later(since, f.ClusterHistory.since(ofCluster, kind, c.LastTransitionTime.Time, f.Now))
		}
	}
	const infrastructure = clusterv1.MachineInfrastructureReadyCondition
	if c := condition(f.Machine.Status.Conditions, infrastructure); c != nil && c.Status == "True" {
		since = later(since, f.History.since(ofMachine, infrastructure, c.LastTransitionTime.Time, f.Now))
	}
	s.timed(f, clusterv1.MachineHealthCheckNodeStartupTimeoutReason,
		fmt.Sprintf("No Node has appeared within %s", p.NodeStartup), since, p.NodeStartup)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// conclude makes an assessment of what was found.
func (s *findings) conclude(f Facts) Assessment {
	if s.early {
		s.next = earlier(s.next, f.NotBefore)
	}
	switch {
	case s.reason != "":
		return Assessment{State: Unhealthy, Reason: s.reason, Message: strings.Join(s.messages, "; "), Since: s.since}
	case s.early:
		return Assessment{State: Undetermined, Message: "Not judged before the end of a grace period", Next: s.next}
	case s.unknown != "":
		return Assessment{State: Undetermined, Message: s.unknown, Next: s.next}
	case s.pending == "" && !s.next.IsZero():
		return Assessment{State: Pending, Message: "Unhealthy for less than its timeout", Next: s.next}
	case s.pending != "":
		return Assessment{State: Pending, Message: s.pending, Next: s.next}
	}
	return Assessment{State: Healthy}
}
