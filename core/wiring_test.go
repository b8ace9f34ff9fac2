package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestMachineOptions: what the Machine controller gets from flags, and by which rule it calls a Machine up to date.
func TestMachineOptions(t *testing.T) {
	g := NewWithT(t)
	o := newOptions()
	g.Expect(o.parse(pflag.NewFlagSet("core", pflag.ContinueOnError), nil)).To(Succeed())
	options := o.machineOptions()
	g.Expect(options.PropagateTaints).To(BeTrue(), "the gate is on by default")
	g.Expect(options.KeepOutdatedFromScaleDown).To(BeTrue())

	set, deployment := &clusterv1.MachineSet{}, &clusterv1.MachineDeployment{}
	deployment.Spec.Template.Labels = map[string]string{"a": "b"}
	upToDate, _ := options.UpToDate(set, deployment, time.Now())
	g.Expect(upToDate).To(BeTrue(), "labels reach Machines that exist")
	deployment.Spec.Template.Spec.Version = "v1.36.3"
	upToDate, because := options.UpToDate(set, deployment, time.Now())
	g.Expect(upToDate).To(BeFalse())
	g.Expect(because).To(ContainSubstring("v1.36.3 required"))
}
