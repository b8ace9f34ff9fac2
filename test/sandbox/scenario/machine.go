package scenario

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Machine is a line of the table.
type Machine struct {
	// Name, UID and Namespace of the Machine.
	Name, UID string
	// Phase as the Machine's status has it; Deleting as soon as it is being deleted.
	Phase string
	// Instance is the instance ID, empty before the launch.
	Instance string
	// Node is the name of its Node, empty before it has joined.
	Node string
	// NodeReady reports whether the Node is Ready and takes pods.
	NodeReady bool
	// Created is when the Machine was created.
	Created time.Time
	// Deleting reports whether the Machine is being deleted.
	Deleting bool
	// Deployment is the name of the MachineDeployment that it belongs to, empty for none.
	Deployment string
	// Template is the name of the infrastructure template that the Machine was created from.
	Template string
	// Awaited is what the Machine waits for, empty when it waits for nothing.
	Awaited string
}

// Running reports whether the Machine is in use: Running, on a Ready Node, and not being deleted.
func (m Machine) Running() bool {
	return m.Phase == string(clusterv1.MachinePhaseRunning) && m.NodeReady && !m.Deleting
}

// String describes the progress of the Machine.
func (m Machine) String() string {
	s := fmt.Sprintf("%s is %s", m.Name, m.Phase)
	if m.Node != "" && !m.NodeReady {
		s += ", its Node not Ready"
	}
	if m.Awaited != "" {
		s += ": " + m.Awaited
	}
	return s
}

// summarize reads a Machine and its Node, which may be nil.
func summarize(machine *clusterv1.Machine, node *corev1.Node) Machine {
	m := Machine{
		Name:       machine.Name,
		Deployment: machine.Labels[clusterv1.MachineDeploymentNameLabel],
		UID:        string(machine.UID),
		Phase:      machine.Status.Phase,
		Instance:   instanceID(machine.Spec.ProviderID),
		Node:       machine.Status.NodeRef.Name,
		Created:    machine.CreationTimestamp.Time,
		Deleting:   !machine.DeletionTimestamp.IsZero(),
	}
	if m.Phase == "" {
		m.Phase = string(clusterv1.MachinePhasePending)
	}
	if m.Deleting {
		m.Phase = string(clusterv1.MachinePhaseDeleting)
	}
	m.NodeReady = node != nil && nodeReady(node)
	m.Awaited = awaited(machine, m.Phase)
	return m
}

// instanceID is the last part of a provider ID such as aws:///us-east-1a/i-0123.
func instanceID(providerID string) string {
	if providerID == "" {
		return ""
	}
	return path.Base(providerID)
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && !node.Spec.Unschedulable && !uninitialized(node)
		}
	}
	return false
}

func uninitialized(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.MatchTaint(&clusterv1.NodeUninitializedTaint)
	})
}

// next is the condition that leads on from each phase. A bootstrap config is not Ready before it knows
// the provider ID, so the first condition that is not true would be the wrong one to look at.
var next = map[string]string{
	string(clusterv1.MachinePhasePending):      clusterv1.MachineBootstrapConfigReadyCondition,
	string(clusterv1.MachinePhaseProvisioning): clusterv1.MachineInfrastructureReadyCondition,
	string(clusterv1.MachinePhaseProvisioned):  clusterv1.MachineNodeReadyCondition,
	string(clusterv1.MachinePhaseRunning):      clusterv1.MachineNodeReadyCondition,
	string(clusterv1.MachinePhaseDeleting):     clusterv1.MachineDeletingCondition,
}

// awaited is what the condition that leads on from the phase says while it is not true; for the
// deletion, while it is.
func awaited(machine *clusterv1.Machine, phase string) string {
	c := condition(machine, next[phase])
	deleting := phase == string(clusterv1.MachinePhaseDeleting)
	switch {
	case c != nil && (c.Status == metav1.ConditionTrue) == deleting:
		return describe(c)
	case deleting:
		return "deletion to begin"
	default:
		return ""
	}
}

func condition(machine *clusterv1.Machine, name string) *metav1.Condition {
	for i := range machine.Status.Conditions {
		if machine.Status.Conditions[i].Type == name {
			return &machine.Status.Conditions[i]
		}
	}
	return nil
}

// describe is a condition in one line.
func describe(c *metav1.Condition) string {
	message := strings.Join(strings.Fields(c.Message), " ")
	if message == "" {
		return c.Type + ": " + c.Reason
	}
	return c.Reason + ": " + message
}
