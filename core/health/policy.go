package health

import (
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Policy reports what an unhealthy Machine is. Whatever it says, a Machine is unhealthy that carries the annotation
// cluster.x-k8s.io/remediate-machine, and one whose instance or bootstrap data are lost (see Lost).
type Policy struct {
	// Name is what messages call the policy, such as "MachineHealthCheck workers".
	Name string
	// NodeStartup is how long a Machine may be without a Node; 0 means no limit.
	NodeStartup time.Duration
	// NodeGone is how long the Node of a Machine may be deleted; nil is for ever, 0 not at all.
	NodeGone *time.Duration
	// MachineConditions and NodeConditions are what makes a Machine unhealthy, each by itself.
	MachineConditions, NodeConditions []Rule
}

// Rule is a condition that makes a Machine unhealthy when it has had a status for too long.
type Rule struct {
	// Type is the type of the condition.
	Type string
	// Status is the status; "" is any but True.
	Status string
	// Timeout is for how long.
	Timeout time.Duration
}

// matches reports whether a condition with that status is one that the rule is about.
func (r Rule) matches(status string) bool {
	if r.Status == "" {
		return status != "" && status != "True"
	}
	return status == r.Status
}

// OfCheck is the Policy of a MachineHealthCheck.
func OfCheck(check *clusterv1.MachineHealthCheck) Policy {
	checks := check.Spec.Checks
	p := Policy{
		Name:        "MachineHealthCheck " + check.Name,
		NodeStartup: seconds(ptr.To(ptr.Deref(checks.NodeStartupTimeoutSeconds, clusterv1.DefaultNodeStartupTimeoutSeconds))),
		NodeGone:    ptr.To(time.Duration(0)),
	}
	for _, c := range checks.UnhealthyMachineConditions {
		p.MachineConditions = append(p.MachineConditions, Rule{c.Type, string(c.Status), seconds(c.TimeoutSeconds)})
	}
	for _, c := range checks.UnhealthyNodeConditions {
		p.NodeConditions = append(p.NodeConditions, Rule{string(c.Type), string(c.Status), seconds(c.TimeoutSeconds)})
	}
	return p
}

func seconds(value *int32) time.Duration { return time.Duration(ptr.Deref(value, 0)) * time.Second }
