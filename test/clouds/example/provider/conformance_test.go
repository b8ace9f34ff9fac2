package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/probe"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/test/clouds/example/cloud"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

const (
	conformanceAccount = "conformance"
	conformanceSample  = `
apiVersion: infrastructure.example.com/v1alpha1
kind: ExampleMachine
metadata: {name: any}
spec: {account: conformance, zones: [a, b], machineType: small, image: node-v1}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: any}
spec: {clusterName: any, failureDomain: b}
`
	conformanceTimeouts = `
apiVersion: conformance.millwright.dev/v1alpha1
kind: Timeouts
provision: 30s
delete: 30s
react: 10s
quiet: 1s
poll: 50ms
cleanup: 60s
`
)

// inspected is the cloud, read without its API.
type inspected struct{}

func (inspected) Machines(context.Context) ([]probe.Machine, error) {
	var machines []probe.Machine
	for _, m := range sim.Machines(conformanceAccount, nil) {
		marks := []string{m.Name}
		for _, label := range m.Labels {
			marks = append(marks, label)
		}
		machines = append(machines, probe.Machine{
			ID: m.ID, ProviderID: "example:///" + conformanceAccount + "/" + m.Zone + "/" + m.Name, FailureDomain: m.Zone, Marks: marks,
			Running: m.State == cloud.StateRunning,
		})
	}
	return machines, nil
}

// The provider keeps every rule of the contract that its behaviour shows.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	g := NewWithT(t)
	sim.AddAccount(conformanceAccount, testToken)
	policies, err := os.ReadFile("config/templates_policy.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	for _, document := range strings.Split(string(policies), "\n---\n") {
		object := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal([]byte(document), object)).To(Succeed())
		g.Expect(c.Create(t.Context(), object)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), object) })
	}
	awaitPolicy(t, g)
	results, err := behaviour.InfraMachine(t.Context(), config, conformance.RunOptions{
		Selection: conformance.Selection{Profile: conformance.InfraMachineProfile, Level: conformance.Extended},
		Sample:    []byte(conformanceSample), Timeouts: []byte(conformanceTimeouts), Probe: inspected{}, Log: t.Output(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results).NotTo(BeEmpty())
	for _, r := range results {
		// The provider is a part of this process, and cannot be killed.
		if r.Rule == "IM-024" && r.Status == report.Skip {
			continue
		}
		if r.Status != report.Pass {
			t.Errorf("%s %s under contract %s: %s %s %+v", r.Rule, r.Status, r.ContractVersion, r.Text, r.Reason, r.Failures)
		}
	}
}

// awaitPolicy waits until the API server applies the policy for templates.
func awaitPolicy(t *testing.T, g *WithT) {
	template := &examplev1.ExampleMachineTemplate{}
	template.Name, template.Namespace = "guarded", "default"
	template.Spec.Template.Spec = examplev1.ExampleMachineSpec{
		Account: "a", Zones: []string{"a"}, MachineType: "small", Image: "node-v1",
	}
	g.Expect(c.Create(t.Context(), template)).To(Succeed())
	g.Eventually(func() error {
		changed := template.DeepCopy()
		changed.Spec.Template.Spec.Image = "node-v2"
		return c.Update(t.Context(), changed, client.DryRunAll)
	}).WithTimeout(time.Minute).Should(HaveOccurred())
	g.Expect(c.Delete(t.Context(), template)).To(Succeed())
}
