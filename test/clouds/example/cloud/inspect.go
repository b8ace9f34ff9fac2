package cloud

import (
	"maps"
	"slices"
)

// history counts what was requested, by label.
type history struct {
	creates map[label]int
	live    map[label]int
	most    map[label]int
}

type label struct{ key, value string }

func newHistory() history {
	return history{creates: map[label]int{}, live: map[label]int{}, most: map[label]int{}}
}

// began counts a machine that is being created, for each of its labels.
func (h *history) began(labels map[string]string) {
	for k, v := range labels {
		l := label{k, v}
		h.creates[l]++
		h.live[l]++
		h.most[l] = max(h.most[l], h.live[l])
	}
}

func (h *history) ended(labels map[string]string) {
	for k, v := range labels {
		h.live[label{k, v}]--
	}
}

// Count is what was counted of the machines with one label.
type Count struct {
	// Creates is how many creations were accepted.
	Creates int
	// Live is how many there are now, and Most how many there were at a time.
	Live, Most int
}

// Count returns what was counted of the machines of an account with a label, whatever their state; a machine counts from the
// acceptance of its creation until it is gone.
func (c *Cloud) Count(account, key, value string) Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	h, l := c.accounts[account].history, label{key, value}
	return Count{Creates: h.creates[l], Live: h.live[l], Most: h.most[l]}
}

// Machines returns the machines of an account that have the labels.
func (c *Cloud) Machines(account string, labels map[string]string) []Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	var found []Machine
	for _, k := range slices.Sorted(maps.Keys(c.accounts[account].machines)) {
		if m := c.accounts[account].machines[k]; has(m.Labels, labels) {
			found = append(found, m.Machine)
		}
	}
	return found
}

// Resources returns the kind, zone and name of everything in an account that has the labels: machines, disks, interfaces and
// addresses. Once a life is over, there must be none of its owner's.
func (c *Cloud) Resources(account string, labels map[string]string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	a := c.accounts[account]
	var found []string
	for k, m := range a.machines {
		if has(m.Labels, labels) {
			found = append(found, "machines/"+k)
		}
	}
	for kind, parts := range a.parts {
		for k, p := range parts {
			if has(p.Labels, labels) {
				found = append(found, kind+"/"+k)
			}
		}
	}
	slices.Sort(found)
	return found
}

func has(labels, wanted map[string]string) bool {
	for k, v := range wanted {
		if value, ok := labels[k]; !ok || value != v {
			return false
		}
	}
	return true
}

// Calls returns how many calls there were, by their names; also those that were refused, throttled or lost.
func (c *Cloud) Calls() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// Interrupt reclaims a spot machine: it is stopped, and stays.
func (c *Cloud) Interrupt(in, zone, name string) bool {
	return c.switchOff(in, zone, name, func(m *machine) {
		m.State, m.Interrupted, m.poweredOn = StateStopped, true, false
		m.Failure = &Failure{Code: CodeSpotReclaimed, Message: "the cloud needs the capacity of the spot machine"}
	})
}

// PowerOff switches a machine off, as a shutdown within it does: only ListPower shows it.
func (c *Cloud) PowerOff(in, zone, name string) bool {
	return c.switchOff(in, zone, name, func(m *machine) {
		m.poweredOn, m.powerFailure = false, &Failure{Code: CodePoweredOff, Message: "the machine has switched itself off"}
	})
}

// Stop stops a machine, as a user does.
func (c *Cloud) Stop(in, zone, name string) bool {
	return c.switchOff(in, zone, name, func(m *machine) { m.State, m.poweredOn = StateStopped, false })
}

// Start starts a stopped machine again.
func (c *Cloud) Start(in, zone, name string) bool {
	return c.changeIf(in, zone, name, []string{StateStopped, StateRunning}, func(_ *account, m *machine) {
		m.State, m.poweredOn, m.Failure, m.powerFailure, m.Interrupted = StateRunning, true, nil, nil, false
	})
}

// Vanish removes a machine at once, with its disk.
func (c *Cloud) Vanish(in, zone, name string) bool {
	return c.changeIf(in, zone, name, nil, func(a *account, m *machine) {
		c.end(a, m.create, c.now(), &Failure{Code: CodeCancelled, Message: "the machine was deleted"})
		c.remove(a, m)
	})
}

// Protect sets whether a machine is protected against deletion.
func (c *Cloud) Protect(in, zone, name string, protected bool) bool {
	return c.changeIf(in, zone, name, nil, func(_ *account, m *machine) { m.protected = protected })
}

// switchOff does something to a machine that exists and is to run.
func (c *Cloud) switchOff(in, zone, name string, do func(*machine)) bool {
	return c.changeIf(in, zone, name, []string{StateStarting, StateRunning}, func(_ *account, m *machine) { do(m) })
}

// changeIf does something to a machine in one of the states, or in any if none is named; it returns whether it did.
func (c *Cloud) changeIf(in, zone, name string, states []string, do func(*account, *machine)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	a := c.accounts[in]
	m, ok := a.machines[key(zone, name)]
	if !ok || len(states) > 0 && !slices.Contains(states, m.State) {
		return false
	}
	do(a, m)
	return true
}
