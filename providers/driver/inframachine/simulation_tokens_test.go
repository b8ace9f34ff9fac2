package inframachine_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

// simTokenDriver makes of the example cloud one like EC2: instances are found by tokens and IDs that the cloud makes up, a launch is
// answered with its instance, one that failed late or was deleted is listed as Terminated, and what lists and reads show may be old.
type simTokenDriver struct {
	example  *instance.Driver
	replicas *simReplicas
}

var _ driver.Driver[*examplev1.ExampleMachine] = (*simTokenDriver)(nil)

// simReplicas is what was true at some time, which reads may show for a while. They do not agree: a later read may show older things.
type simReplicas struct {
	w    *simWorld
	most time.Duration

	mu    sync.Mutex
	known []simReplica
	// ending are instances that are being terminated, or have been.
	ending map[string]driver.Instance
}

type simReplica struct {
	at        time.Time
	instances []driver.Instance
}

// newSimTokenWorld prepares a life in a cloud of tokens. Old reads are at most as old as the kit allows, see settleGrace.
func newSimTokenWorld(seed uint64) *simWorld {
	w := newSimWorld(seed)
	w.useTokens()
	return w
}

// useTokens makes of the world one with a cloud of tokens.
func (w *simWorld) useTokens() {
	most := simulation.One(w.Random.Draw("replicas"), time.Second, 10*time.Second, 50*time.Second)
	w.replicas = &simReplicas{w: w, most: most, ending: map[string]driver.Instance{}}
	w.driver = func(d *instance.Driver) driver.Driver[*examplev1.ExampleMachine] {
		return &simTokenDriver{example: d, replicas: w.replicas}
	}
}

// add notes what is true, as read from the cloud just now, and returns what the read shows.
func (s *simReplicas) add(instances []driver.Instance) []driver.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	listed := map[string]bool{}
	for _, i := range instances {
		listed[i.ProviderID] = true
		if i.State == driverv1.InstanceTerminating {
			s.ending[i.ProviderID] = i
		} else {
			delete(s.ending, i.ProviderID) // The deletion has failed.
		}
	}
	for id, i := range s.ending {
		if !listed[id] {
			i.State = driverv1.InstanceTerminated
			instances = append(instances, i)
		}
	}
	s.known = slices.DeleteFunc(append(s.known, simReplica{now, instances}), func(r simReplica) bool { return now.Sub(r.at) > s.most })
	d := s.w.Random.Draw("replica")
	if d.IntN(2) == 0 {
		return instances
	}
	return s.since(now.Add(-time.Duration(d.Int64N(int64(s.most)))))
}

// since returns what was last read before that time, or else now, without what has been launched since. s.mu is held.
func (s *simReplicas) since(then time.Time) (shown []driver.Instance) {
	of := len(s.known) - 1
	for n, r := range s.known {
		if !r.at.After(then) {
			of = n
		}
	}
	for _, i := range s.known[of].instances {
		if !i.LaunchTime.After(then) {
			shown = append(shown, i)
		}
	}
	return shown
}

func (d *simTokenDriver) Traits() driver.Traits {
	return driver.Traits{UserDataLimit: 16 * 1024, CleanRefusals: true, Rates: d.example.Traits().Rates}
}

func (d *simTokenDriver) Scope(m *examplev1.ExampleMachine) driver.Scope { return d.example.Scope(m) }

func (d *simTokenDriver) LimitScope(scope driver.Scope) string { return d.example.LimitScope(scope) }

func (d *simTokenDriver) Places(ctx context.Context, l driver.Launch[*examplev1.ExampleMachine]) ([]driver.Candidate, error) {
	return d.example.Places(ctx, l)
}

func (d *simTokenDriver) Mark(h driver.Handle) string { return d.example.Mark(h) }

// Create makes an instance of an ID that follows from the token. Its answer is that of the cloud itself, and as such never old.
func (d *simTokenDriver) Create(ctx context.Context, l driver.Launch[*examplev1.ExampleMachine]) (driver.Accepted, error) {
	l.Name = simIDOfToken(l.Token)
	if _, err := d.example.Create(ctx, l); err != nil {
		return driver.Accepted{}, err
	}
	return driver.Accepted{Instance: driver.Instance{
		ID:            l.Name,
		ProviderID:    simProviderID(l.Placement.ID, l.Name),
		Token:         l.Token,
		OwnerUID:      l.OwnerUID,
		Owner:         driver.OwnerDigest(l.Owner),
		State:         driverv1.InstancePending,
		FailureDomain: l.Placement.FailureDomain,
		InstanceType:  l.Placement.InstanceType,
		Market:        l.Placement.Market,
	}}, nil
}

func simIDOfToken(token string) string { return fmt.Sprintf("i-%x", sha256.Sum256([]byte(token)))[:20] }

func simProviderID(zone, name string) string {
	return "example:///" + simAccount + "/" + zone + "/" + name
}

// List shows launches that failed late and have left no machine as terminated, since EC2 does so for an hour.
func (d *simTokenDriver) List(ctx context.Context, scope driver.Scope) ([]driver.Instance, error) {
	all, err := d.example.List(ctx, scope)
	if err != nil {
		return nil, err
	}
	for n := range all {
		i := &all[n]
		if i.ProviderID == "" && i.State == driverv1.InstanceFailed {
			i.State = driverv1.InstanceTerminated
		}
		i.ProviderID = simProviderID(i.FailureDomain, i.ID)
		i.Name = ""
	}
	return d.replicas.add(all), nil
}

// Observe is as old as a list.
func (d *simTokenDriver) Observe(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	all, err := d.List(ctx, scope)
	if err != nil {
		return driver.Failed[driver.Instance](len(handles), err)
	}
	answers := make([]driver.Answer[driver.Instance], len(handles))
	for n, h := range handles {
		i := slices.IndexFunc(all, h.Matches)
		if i < 0 {
			answers[n].Err = driver.NewNotFoundError("List machines", "", fmt.Errorf("there is no instance"))
			continue
		}
		answers[n].Value = all[i]
	}
	return answers
}

func (d *simTokenDriver) Delete(ctx context.Context, scope driver.Scope, handles []driver.Handle) []error {
	return d.example.Delete(ctx, scope, handles)
}

// Cleanup is never old: it is what EC2 deletes with an instance.
func (d *simTokenDriver) Cleanup(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	return d.example.Cleanup(ctx, scope, handles)
}
