// Package scenario is the life of machines that the demo shows and the e2e tests assert: samples are
// applied, three machines arrive, a workload with a disruption budget is deployed, the machines are
// scaled and replaced by others, and everything is deleted without a trace. Each step waits for events
// and reports what is missing when it times out.
package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/sandbox"
)

// Options of a scenario.
type Options struct {
	// Namespace that the samples are applied to; "default" when empty.
	Namespace string
	// Timeout of each step; two minutes when unset.
	Timeout time.Duration
	// OnChange is called whenever something watched has changed; it must not block.
	OnChange func()
}

// Scenario runs in one namespace of a sandbox.
type Scenario struct {
	// Sandbox is what the scenario runs in.
	Sandbox *sandbox.Sandbox
	// Watch observes the Machines, the Nodes and the disruption budget.
	Watch *Watch

	namespace string
	timeout   time.Duration
}

// New starts to watch; the watches end with ctx.
func New(ctx context.Context, s *sandbox.Sandbox, options Options) (*Scenario, error) {
	if options.Namespace == "" {
		options.Namespace = "default"
	}
	if options.Timeout == 0 {
		options.Timeout = 2 * time.Minute
	}
	watch, err := newWatch(ctx, s, options.Namespace, options.OnChange)
	if err != nil {
		return nil, err
	}
	return &Scenario{Sandbox: s, Watch: watch, namespace: options.Namespace, timeout: options.Timeout}, nil
}

// ApplySamples applies the samples of all clouds.
func (s *Scenario) ApplySamples(ctx context.Context) error {
	return s.Sandbox.ApplySamples(ctx, s.namespace)
}

// AwaitRunning waits until there are exactly so many Machines, all Running on Ready Nodes.
func (s *Scenario) AwaitRunning(ctx context.Context, count int) error {
	return s.await(ctx, fmt.Sprintf("%d Machines are Running and their Nodes Ready", count), func() []string {
		return s.missingRunning(count)
	})
}

func (s *Scenario) missingRunning(count int) []string {
	var missing []string
	machines := s.Watch.Machines()
	for _, m := range machines {
		if !m.Running() {
			missing = append(missing, m.String())
		}
	}
	if len(machines) != count {
		missing = append(missing, fmt.Sprintf("there are %d Machines, not %d", len(machines), count))
	}
	return missing
}

// Deploy sets the number of Machines in each cloud in the samples before they are applied.
func (s *Scenario) Deploy(ctx context.Context, replicas int) error {
	return s.Sandbox.ApplySamples(ctx, s.namespace, func(object *unstructured.Unstructured) {
		if spec, ok := object.Object["spec"].(map[string]any); ok && object.GetKind() == "MachineDeployment" {
			spec["replicas"] = int64(replicas)
		}
	})
}

// Scale sets the number of Machines in each cloud.
func (s *Scenario) Scale(ctx context.Context, replicas int32) error {
	for _, c := range s.Sandbox.Clouds {
		err := s.patchDeployment(ctx, c.Deployment, func(md *clusterv1.MachineDeployment) { md.Spec.Replicas = &replicas })
		if err != nil {
			return err
		}
	}
	return nil
}

// Roll replaces the machines of each cloud by ones of another size, through a new template.
func (s *Scenario) Roll(ctx context.Context) error {
	for _, c := range s.Sandbox.Clouds {
		if err := s.roll(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scenario) roll(ctx context.Context, c *sandbox.Cloud) error {
	template, err := s.Sandbox.SampleTemplate(c, s.namespace)
	if err != nil {
		return err
	}
	name := "workers-" + strings.ToLower(strings.NewReplacer(".", "-", "_", "-").Replace(c.OtherSize))
	template.SetName(name)
	if err := unstructured.SetNestedField(template.Object, c.OtherSize, "spec", "template", "spec", c.SizeField); err != nil {
		return errors.Wrapf(err, "changing the sample %s", c.Template())
	}
	if err := s.Sandbox.Control.Client.Create(ctx, template); err != nil {
		return errors.Wrapf(err, "creating %s %s", c.Template(), name)
	}
	return s.patchDeployment(ctx, c.Deployment, func(md *clusterv1.MachineDeployment) {
		md.Spec.Template.Spec.InfrastructureRef.Name = name
	})
}

// AwaitRolled waits until none of the Machines with these UIDs is left and so many others are Running.
func (s *Scenario) AwaitRolled(ctx context.Context, old map[string]bool, count int) error {
	return s.await(ctx, fmt.Sprintf("the Machines are replaced by %d others", count), func() []string {
		var missing []string
		for _, m := range s.Watch.Machines() {
			if old[m.UID] {
				missing = append(missing, m.Name+" is not replaced yet")
			}
		}
		return append(missing, s.missingRunning(count)...)
	})
}

func (s *Scenario) patchDeployment(ctx context.Context, name string, edit func(*clusterv1.MachineDeployment)) error {
	c := s.Sandbox.Control.Client
	md := &clusterv1.MachineDeployment{}
	key := client.ObjectKey{Namespace: s.namespace, Name: name}
	if err := c.Get(ctx, key, md); err != nil {
		return errors.Wrapf(err, "reading MachineDeployment %s", name)
	}
	before := md.DeepCopy()
	edit(md)
	return errors.Wrapf(c.Patch(ctx, md, client.MergeFrom(before)), "changing MachineDeployment %s", name)
}

// await checks what is missing after each event, until nothing is. A process that has exited by itself,
// or a violated disruption budget, ends the wait.
func (s *Scenario) await(ctx context.Context, what string, missing func() []string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		changed := s.Watch.Changed()
		left := missing()
		if err := s.Watch.Violation(); err != nil {
			return err
		}
		if len(left) == 0 {
			return nil
		}
		if err := s.Sandbox.Check(); err != nil {
			return errors.Wrapf(err, "while waiting until %s", what)
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Wrapf(context.Cause(ctx), "waiting until %s; missing is\n  %s\nwhen the wait ended", what, strings.Join(left, "\n  "))
		}
	}
}
