package health

import (
	"cmp"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// DefaultName is what messages call the policy of the flags.
const DefaultName = "The default policy of the core"

const (
	// CreationTimeoutAnnotation is --machine-creation-timeout for a Machine, or for those of a MachineDeployment; a duration, 0 for
	// no limit. That of the Machine counts first.
	CreationTimeoutAnnotation = "machine.millwright.dev/creation-timeout"
	// HealthTimeoutAnnotation is --machine-health-timeout for them.
	HealthTimeoutAnnotation = "machine.millwright.dev/health-timeout"
	// MCMCreationTimeoutAnnotation is what the Machine Controller Manager has for CreationTimeoutAnnotation on a MachineDeployment.
	MCMCreationTimeoutAnnotation = "node.machine.sapcloud.io/effective-creation-timeout"
)

// Defaults is the policy for Machines that no MachineHealthCheck selects, as flags set it. With neither timeout there is none.
type Defaults struct {
	// CreationTimeout is how long a Machine may be without a Node; 0 means no limit.
	CreationTimeout time.Duration
	// HealthTimeout is how long a Node may be gone, not Ready, or have one of NodeConditions; 0 means no limit.
	HealthTimeout time.Duration
	// NodeConditions are the types that must not be True.
	NodeConditions []string
}

// Enabled reports whether there is a default policy at all.
func (d Defaults) Enabled() bool { return d.CreationTimeout > 0 || d.HealthTimeout > 0 }

// Judges reports whether the policy is for that Machine: not for control planes, whose provider replaces their Machines in an order
// of its own and has not asked for it.
func (d Defaults) Judges(machine *clusterv1.Machine) bool {
	_, controlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]
	return d.Enabled() && !controlPlane
}

// For is the Policy for a Machine of a MachineDeployment, which is nil for others, with what their annotations say instead.
func (d Defaults) For(machine *clusterv1.Machine, deployment *clusterv1.MachineDeployment) Policy {
	var above map[string]string
	if deployment != nil {
		above = deployment.Annotations
	}
	creation := override(d.CreationTimeout, above[MCMCreationTimeoutAnnotation], above[CreationTimeoutAnnotation],
		machine.Annotations[MCMCreationTimeoutAnnotation], machine.Annotations[CreationTimeoutAnnotation])
	health := override(d.HealthTimeout, above[HealthTimeoutAnnotation], machine.Annotations[HealthTimeoutAnnotation])
	p := Policy{Name: DefaultName, NodeStartup: creation}
	if health == 0 {
		return p
	}
	p.NodeGone = ptr.To(health)
	p.NodeConditions = append(p.NodeConditions, Rule{Type: "Ready", Timeout: health})
	for _, conditionType := range d.NodeConditions {
		p.NodeConditions = append(p.NodeConditions, Rule{conditionType, "True", health})
	}
	return p
}

// override is the last of the texts that is a duration, and else the value. What is none is ignored: where it is ours, admission
// refuses it.
func override(value time.Duration, texts ...string) time.Duration {
	for _, text := range texts {
		if parsed, err := time.ParseDuration(cmp.Or(text, "x")); err == nil && parsed >= 0 {
			value = parsed
		}
	}
	return value
}
