package main

import (
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/aws/simapi"
)

// get returns the AWSMachine as the API server has it.
func (f *fixture) get(name string) (*infrav1.AWSMachine, error) {
	m := &infrav1.AWSMachine{}
	err := f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, m)
	return m, err
}

// touch enqueues an object, as a change by another client would.
func (f *fixture) touch(name string) {
	f.t.Helper()
	m, err := f.get(name)
	f.Expect(err).NotTo(HaveOccurred())
	base := m.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations["test/touched"] = time.Now().Format(time.RFC3339Nano)
	f.Expect(f.client.Patch(f.ctx, m, client.MergeFrom(base))).To(Succeed())
}

// ready returns "status reason" of the condition Ready.
func (f *fixture) ready(name string) func() string { return f.condition(name, driverv1.ReadyCondition) }

func (f *fixture) condition(name, conditionType string) func() string {
	return func() string {
		m, err := f.get(name)
		if err != nil {
			return err.Error()
		}
		for _, c := range m.Status.Conditions {
			if c.Type == conditionType {
				f.messages[name] = c.Message
				return fmt.Sprintf("%s %s", c.Status, c.Reason)
			}
		}
		return "none"
	}
}

func (f *fixture) becomesReady(name string) *infrav1.AWSMachine {
	f.t.Helper()
	f.Eventually(f.ready(name)).Should(Equal("True InstanceRunning"), func() string { return f.messages[name] })
	m, err := f.get(name)
	f.Expect(err).NotTo(HaveOccurred())
	return m
}

// calls counts the calls of an action.
func (f *fixture) calls(action string) int {
	n := 0
	for _, c := range f.sim.Calls() {
		if c.Action == action {
			n++
		}
	}
	return n
}

// instances returns all instances ever created.
func (f *fixture) instances() []simapi.Instance { return f.sim.Instances() }
