package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/sandbox"
	"millwright.dev/test/sandbox/scenario"
)

const (
	// waitFor is how long something may take that depends on several processes. Five machines that are replaced one after the other took
	// a second more than 90 s at a load of 20.
	waitFor = 4 * time.Minute
	// lookEvery is how often it is checked.
	lookEvery = 200 * time.Millisecond
)

// world is the fixture of a test: a sandbox and a namespace of its own.
type world struct {
	*WithT
	t         *testing.T
	ctx       context.Context
	namespace string
	sandbox   *sandbox.Sandbox
	scenario  *scenario.Scenario
	// control holds the Machines, target the Nodes.
	control, target sandbox.Client
}

// sharedWorld is a namespace in the sandbox whose machines boot; everything in it is deleted when the test ends.
func sharedWorld(t *testing.T, namespace string) *world {
	t.Helper()
	return newWorld(t, booting.start(t, sandbox.Options{
		LogDir: filepath.Join(suite.logs, "shared"),
		ManagerArgs: map[string][]string{"core": {
			"--machine-safety-apiserver-statuscheck-timeout=10s",
			// The test ends it, whatever the load of the machine.
			"--machine-safety-recovery-grace=1h",
		}},
	}), namespace)
}

func newWorld(t *testing.T, s *sandbox.Sandbox, namespace string) *world {
	t.Helper()
	return newWorldWithin(t, s, namespace, waitFor)
}

// newWorldWithin is for tests whose steps take longer than others'.
func newWorldWithin(t *testing.T, s *sandbox.Sandbox, namespace string, timeout time.Duration) *world {
	t.Helper()
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(suite.ctx)
	w := &world{
		WithT: g, t: t, ctx: ctx, namespace: namespace, sandbox: s,
		control: s.Control.Client, target: s.Target.Client,
	}
	g.SetDefaultEventuallyTimeout(timeout)
	g.SetDefaultEventuallyPollingInterval(lookEvery)
	t.Cleanup(cancel)
	err := w.control.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	g.Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
	w.scenario, err = scenario.New(ctx, s, scenario.Options{Namespace: namespace, Timeout: timeout})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.leave)
	return w
}

// leave deletes everything that the test has created and checks that nothing is left.
func (w *world) leave() {
	w.t.Helper()
	if w.t.Failed() {
		for _, m := range w.scenario.Watch.Machines() {
			w.t.Log(m)
		}
		// A test that ended early has not deleted the Machines of its own, and the next one would wait for them without end.
		w.Expect(w.control.DeleteAllOf(w.ctx, &clusterv1.Machine{}, client.InNamespace(w.namespace))).To(Succeed())
	}
	w.Expect(w.sandbox.EC2.ClearFaults(w.ctx)).To(Succeed())
	w.Expect(w.scenario.DeleteWorkload(w.ctx)).To(Succeed())
	w.Expect(w.scenario.DeleteMachines(w.ctx)).To(Succeed())
	w.Expect(w.scenario.DeleteRest(w.ctx)).To(Succeed())
	w.Expect(w.scenario.AwaitNothingLeft(w.ctx)).To(Succeed())
	w.Expect(w.sandbox.Forbidden()).To(BeEmpty(), "no manager lacks a right")
}

// replicas edits the sample MachineDeployment.
func replicas(count int64) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		if object.GetKind() == "MachineDeployment" {
			_ = unstructured.SetNestedField(object.Object, count, "spec", "replicas")
		}
	}
}

// machines reads all Machines of the namespace.
func (w *world) machines() []clusterv1.Machine {
	w.t.Helper()
	list := &clusterv1.MachineList{}
	w.Expect(w.control.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	return list.Items
}

// live are the instances that cost money, by their ID.
func (w *world) live() map[string]simapi.Instance {
	w.t.Helper()
	instances, err := w.sandbox.EC2.LiveInstances(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	byID := map[string]simapi.Instance{}
	for _, i := range instances {
		byID[i.ID] = i
	}
	return byID
}

// identities must stay the same when nothing is replaced: by the UID of each Machine its
// instance and the UID of its Node.
func (w *world) identities() map[string]string {
	w.t.Helper()
	nodes := &corev1.NodeList{}
	w.Expect(w.target.List(w.ctx, nodes)).To(Succeed())
	uids := map[string]string{}
	for _, node := range nodes.Items {
		uids[node.Name] = string(node.UID)
	}
	identities := map[string]string{}
	for _, m := range w.machines() {
		identities[string(m.UID)] = m.Spec.ProviderID + " " + uids[m.Status.NodeRef.Name]
	}
	return identities
}

// awaitCondition reads the object until one of its conditions matches.
func (w *world) awaitCondition(
	object client.Object,
	conditions func() []metav1.Condition,
	name string,
	match func(*metav1.Condition) error,
) {
	w.t.Helper()
	w.Eventually(func() error {
		if err := w.control.Get(w.ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		for _, c := range conditions() {
			if c.Type == name {
				return match(&c)
			}
		}
		return errors.Errorf("%s has no condition %s", object.GetName(), name)
	}).Should(Succeed())
}

// reports matches a condition that is not true and has all texts in its reason and message.
func reports(texts ...string) func(*metav1.Condition) error {
	return func(c *metav1.Condition) error {
		reported := c.Reason + ": " + c.Message
		if c.Status == metav1.ConditionTrue {
			return errors.Errorf("%s is true", c.Type)
		}
		for _, text := range texts {
			if !strings.Contains(reported, text) {
				return errors.Errorf("%s says %q, without %q", c.Type, reported, text)
			}
		}
		return nil
	}
}

func forbidden(err error) bool { return apierrors.IsForbidden(err) }
