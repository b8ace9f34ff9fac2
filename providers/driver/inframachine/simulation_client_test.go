package inframachine

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// simClient reads from the cache of an incarnation and writes to its API server.
type simClient struct {
	client.Client
	p *simProcess
}

func (c *simClient) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetName(key.Name)
	id := simIDOf(obj)
	c.p.mu.Lock()
	found, ok := c.p.cache[id]
	c.p.mu.Unlock()
	if !ok {
		return apierrors.NewNotFound(id.resource(), id.name)
	}
	copyInto(found, obj)
	return nil
}

func (c *simClient) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	if o.LabelSelector == nil {
		o.LabelSelector = labels.Everything()
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	for _, obj := range c.p.cache {
		if !o.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
			continue
		}
		switch list := list.(type) {
		case *examplev1.ExampleMachineList:
			if m, ok := obj.(*examplev1.ExampleMachine); ok {
				list.Items = append(list.Items, *m.DeepCopy())
			}
		case *clusterv1.MachineList:
			if m, ok := obj.(*clusterv1.Machine); ok {
				list.Items = append(list.Items, *m.DeepCopy())
			}
		}
	}
	return nil
}

func (c *simClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.p.request(ctx, "patch", obj, func() error { return c.p.server.patch(obj, patch, false) })
}

func (c *simClient) Status() client.SubResourceWriter { return simStatus{p: c.p} }

type simStatus struct {
	client.SubResourceWriter
	p *simProcess
}

func (s simStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.p.request(ctx, "patch status", obj, func() error { return s.p.server.patch(obj, patch, true) })
}

// simReader reads from the API server itself.
type simReader struct {
	client.Reader
	p *simProcess
}

func (r *simReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetName(key.Name)
	return r.p.request(ctx, "get", obj, func() error {
		found := r.p.server.get(simIDOf(obj))
		if found == nil {
			return apierrors.NewNotFound(simIDOf(obj).resource(), key.Name)
		}
		copyInto(found, obj)
		return nil
	})
}

// errLost is what a client has of a request whose answer is lost.
var errLost = errors.New("the connection to the API server was lost")

// request sends a request to the API server, with what goes wrong with it.
func (p *simProcess) request(ctx context.Context, verb string, obj client.Object, effect func() error) error {
	id := simIDOf(obj)
	what := verb + " " + id.kind
	if p.dead() {
		return context.Canceled
	}
	p.w.count(what)
	d := p.w.random.draw(p.name + what)
	fate := p.w.chaos.ofRequest(p.w, verb, d)
	before, after := latency(d), latency(d)
	if fate == "slow" {
		before += time.Duration(d.Int64N(int64(40 * time.Second)))
	}
	crash := p.w.crashes(d)
	if takesOver := d.Float64() < p.w.chaos.takeOver; takesOver && verb == "patch" && p.w.chaos.on() {
		p.w.fault("another process takes over at a write")
		p.w.takeOver(d)
	}
	if crash == "before" {
		p.crash("before " + what)
		return context.Canceled
	}
	if !wait(ctx, before) && d.IntN(2) == 0 {
		return ctx.Err() // The request is lost with the process, else it has left it.
	}
	if err := refusalOf(fate, id); err != nil {
		p.w.log("%s: %s is refused: %v", p.name, what, err)
		return err
	}
	if fate == "lostRequest" {
		return errLost
	}
	copied := copyOf(obj)
	err := effect()
	if verb != "get" {
		p.w.log("%s: %s: %v", p.name, what, err)
	}
	if crash == "after" {
		p.crash("after " + what)
	}
	if !wait(ctx, after) || fate == "lostAnswer" {
		copyInto(copied, obj)
		p.w.log("%s: the answer to %s is lost", p.name, what)
		return errLost
	}
	return err
}

// refusalOf is the error of a request that is refused.
func refusalOf(fate string, id simID) error {
	switch fate {
	case "forbidden":
		return apierrors.NewForbidden(id.resource(), id.name, errors.New("by a policy"))
	case "conflict":
		return apierrors.NewConflict(id.resource(), id.name, errors.New("made up"))
	case "invalid":
		return apierrors.NewInvalid(schema.GroupKind{Kind: id.kind}, id.name, nil)
	case "internal":
		return apierrors.NewInternalError(errors.New("failed calling webhook"))
	case "busy":
		return apierrors.NewTooManyRequests("later", 1)
	}
	return nil
}

// wait returns false if the context ends before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
