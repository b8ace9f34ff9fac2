package orphans

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// fakeCloud is an account: instances by scope. What it deletes is gone at once.
type fakeCloud struct {
	mu        sync.Mutex
	clock     *clocktesting.FakeClock
	instances map[driver.Scope]map[string]driver.Instance
	deleted   []string
	// leftovers are what outlives instances, by ID; cleaned is what was ended of them.
	leftovers map[string]driver.Leftover
	cleaned   []string
	// remarking is called before each mark that is rewritten.
	remarking func(driver.Handle) error
	// listing is called before each list; deleting before each deletion. Their errors are the calls'.
	listing  func(context.Context, driver.Scope) error
	deleting func(driver.Handle) error
	// silent are failure domains that lists lack.
	silent []string
	// observing is called before each observation.
	observing func()
}

func newFakeCloud(clk *clocktesting.FakeClock) *fakeCloud {
	return &fakeCloud{clock: clk, instances: map[driver.Scope]map[string]driver.Instance{}}
}

func (c *fakeCloud) add(in driver.Scope, i driver.Instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.instances[in] == nil {
		c.instances[in] = map[string]driver.Instance{}
	}
	if i.State == "" {
		i.State = driverv1.InstanceRunning
	}
	i.ProviderID, i.LaunchTime = "fake:///"+in.Location+"/"+i.ID, c.clock.Now()
	c.instances[in][i.ProviderID] = i
}

func (c *fakeCloud) change(in driver.Scope, id string, change func(*driver.Instance)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := "fake:///" + in.Location + "/" + id
	i := c.instances[in][key]
	change(&i)
	c.instances[in][key] = i
}

// live are the IDs of what was not deleted.
func (c *fakeCloud) live() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for _, some := range c.instances {
		for _, i := range some {
			ids = append(ids, i.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func (c *fakeCloud) Traits() driver.Traits { return driver.Traits{BatchSize: 3} }

func (c *fakeCloud) List(ctx context.Context, in driver.Scope) ([]driver.Instance, error) {
	if c.listing != nil {
		if err := c.listing(ctx, in); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.silent) == 0 {
		return slices.Collect(maps.Values(c.instances[in])), nil
	}
	var found []driver.Instance
	for _, i := range c.instances[in] {
		if !slices.Contains(c.silent, i.FailureDomain) {
			found = append(found, i)
		}
	}
	return found, driver.NewIncomplete(c.silent, errors.New("some zones do not answer"))
}

func (c *fakeCloud) Observe(_ context.Context, in driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	if c.observing != nil {
		c.observing()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answers := make([]driver.Answer[driver.Instance], len(handles))
	for n, h := range handles {
		i, ok := c.instances[in][h.ProviderID]
		if answers[n].Value = i; !ok {
			answers[n].Err = driver.NewNotFoundError("Observe", "", errors.New("none"))
		}
	}
	return answers
}

func (c *fakeCloud) Delete(_ context.Context, in driver.Scope, handles []driver.Handle) []error {
	errs := make([]error, len(handles))
	for n, h := range handles {
		if c.deleting != nil {
			if errs[n] = c.deleting(h); errs[n] != nil {
				continue
			}
		}
		c.mu.Lock()
		c.deleted = append(c.deleted, c.instances[in][h.ProviderID].ID)
		delete(c.instances[in], h.ProviderID)
		c.mu.Unlock()
	}
	return errs
}

func (c *fakeCloud) Cleanup(_ context.Context, _ driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	c.mu.Lock()
	defer c.mu.Unlock()
	answers := make([]driver.Answer[[]string], len(handles))
	for n, h := range handles {
		for id, l := range c.leftovers {
			if !h.Owns(driver.Instance{OwnerUID: l.OwnerUID, Owner: l.Owner}) {
				continue
			}
			if c.deleting != nil {
				if answers[n].Err = c.deleting(h); answers[n].Err != nil {
					continue
				}
			}
			answers[n].Value = append(answers[n].Value, id)
			c.cleaned = append(c.cleaned, id)
			delete(c.leftovers, id)
		}
	}
	return answers
}

func (c *fakeCloud) ListLeftovers(_ context.Context, in driver.Scope) ([]driver.Leftover, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in != testScope {
		return nil, nil
	}
	return slices.Collect(maps.Values(c.leftovers)), nil
}

func (c *fakeCloud) Remark(_ context.Context, in driver.Scope, handles []driver.Handle, lineage string) []error {
	errs := make([]error, len(handles))
	for n, h := range handles {
		if c.remarking != nil {
			if errs[n] = c.remarking(h); errs[n] != nil {
				continue
			}
		}
		c.mu.Lock()
		i := c.instances[in][h.ProviderID]
		i.Lineage = lineage
		c.instances[in][h.ProviderID] = i
		c.mu.Unlock()
	}
	return errs
}

// leave makes a volume with the mark of an instance.
func (c *fakeCloud) leave(id string, of driver.Instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leftovers == nil {
		c.leftovers = map[string]driver.Leftover{}
	}
	c.leftovers[id] = driver.Leftover{
		Kind:     "volume",
		ID:       id,
		OwnerUID: of.OwnerUID,
		Owner:    of.Owner,
		Lineage:  of.Lineage,
		Created:  c.clock.Now(),
	}
}

// get returns an instance.
func (c *fakeCloud) get(id string) driver.Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instances[testScope]["fake:///"+testScope.Location+"/"+id]
}

// vanish ends an instance by itself.
func (c *fakeCloud) vanish(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.instances[testScope], "fake:///"+testScope.Location+"/"+id)
}
