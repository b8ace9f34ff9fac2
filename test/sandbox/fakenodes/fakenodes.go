// Package fakenodes simulates the inside of machines, where a test needs more machines than can boot on one
// computer: the Node of an instance joins as soon as the instance runs, its pods run at once and end when their
// grace is over. Everything outside of the machine is what it is elsewhere in the sandbox.
package fakenodes

import (
	"context"
	"path"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/clouds/aws/simapi"
)

const (
	// period is how often the stand-in looks at what has changed.
	period = 200 * time.Millisecond
	// heartbeat is how often a Node reports; it counts as dead after 40 seconds.
	heartbeat = 10 * time.Second
)

// Options say what the machines are part of.
type Options struct {
	// Control has the Machines, Target the Nodes and their pods.
	Control, Target *rest.Config
	// Scheme knows the kinds of both.
	Scheme *runtime.Scheme
	// Instances are those of the account that cost money.
	Instances func(context.Context) ([]simapi.Instance, error)
}

// standIn is the inside of all machines.
type standIn struct {
	Options

	machines, nodes client.Reader
	client          client.Client
	// joined are the machines that have joined, by provider ID: a kubelet whose Node is deleted does not come back.
	joined map[string]string
	beaten time.Time
}

// Start lets machines join until the context is done, and returns when the caches of the stand-in are filled.
func Start(ctx context.Context, options Options) error {
	s := &standIn{Options: options, joined: map[string]string{}}
	var err error
	if s.client, err = client.New(options.Target, client.Options{Scheme: options.Scheme}); err != nil {
		return errors.Wrap(err, "creating a client for the Nodes of unbooted machines")
	}
	if s.machines, err = follow(ctx, options.Control, options.Scheme, &clusterv1.Machine{}); err != nil {
		return err
	}
	if s.nodes, err = follow(ctx, options.Target, options.Scheme, &corev1.Node{}, &corev1.Pod{}); err != nil {
		return err
	}
	go s.run(ctx)
	return nil
}

// follow reads kinds through watches.
func follow(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, kinds ...client.Object) (client.Reader, error) {
	informers, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		return nil, errors.Wrap(err, "creating the caches of unbooted machines")
	}
	go func() { _ = informers.Start(ctx) }()
	for _, kind := range kinds {
		if _, err := informers.GetInformer(ctx, kind); err != nil {
			return nil, errors.Wrapf(err, "watching %T", kind)
		}
	}
	return informers, nil
}

// run does what is due periodically. What fails, as while a test has stopped an API server, is due again.
func (s *standIn) run(ctx context.Context) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		running, err := s.running(ctx)
		if err != nil {
			continue
		}
		_ = s.join(ctx, running)
		_ = s.beat(ctx, running)
		_ = s.runPods(ctx, running)
	}
}

// running are the IDs of the instances that run.
func (s *standIn) running(ctx context.Context) (map[string]bool, error) {
	instances, err := s.Instances(ctx)
	if err != nil {
		return nil, err
	}
	running := map[string]bool{}
	for _, instance := range instances {
		if instance.State == "running" {
			running[instance.ID] = true
		}
	}
	return running, nil
}

// join creates the Nodes of machines that run and have none yet.
func (s *standIn) join(ctx context.Context, running map[string]bool) error {
	machines := &clusterv1.MachineList{}
	if err := s.machines.List(ctx, machines); err != nil {
		return err
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		id := machine.Spec.ProviderID
		if _, joined := s.joined[id]; joined || !running[path.Base(id)] || !machine.DeletionTimestamp.IsZero() {
			continue
		}
		if err := s.client.Create(ctx, node(machine.Name, id)); err != nil {
			return err
		}
		s.joined[id] = machine.Name
	}
	return nil
}

// alive are the names of the Nodes whose machines run.
func (s *standIn) alive(running map[string]bool) map[string]bool {
	alive := map[string]bool{}
	for id, name := range s.joined {
		if running[path.Base(id)] {
			alive[name] = true
		}
	}
	return alive
}
