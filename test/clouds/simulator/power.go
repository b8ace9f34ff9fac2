package simulator

import (
	"net/http"
	"sync"
)

// Machines runs the operating systems of simulated machines. Its methods are called one after the other, in
// the order of the events, by a goroutine of Power.
type Machines interface {
	// Start is called when a machine runs. metadata is its metadata service; it answers for as long as the machine exists.
	Start(id string, metadata http.Handler)
	// Stop is called when a machine shuts down or has vanished: the power is cut.
	Stop(id string)
	// Console is what the machine has written to its console; empty for an unknown one.
	Console(id string) string
	// Close stops all machines and waits until they are gone.
	Close()
}

// Media is implemented by the metadata service of a cloud that also hands a machine files on a provisioning medium, a virtual DVD, as
// Azure does. A machine has the medium at its start.
type Media interface {
	// Media are the files by their names; none if the machine has no medium.
	Media() map[string][]byte
}

// Power hands events to Machines, so that no simulator holds its lock meanwhile. Close it after use.
type Power struct {
	machines Machines
	mu       sync.Mutex
	wake     *sync.Cond
	events   []func()
	closed   bool
	done     chan struct{}
}

// NewPower returns the power of machines; with nil nothing is switched.
func NewPower(m Machines) *Power {
	p := &Power{machines: m, done: make(chan struct{})}
	p.wake = sync.NewCond(&p.mu)
	go p.run()
	return p
}

func (p *Power) run() {
	defer close(p.done)
	for {
		p.mu.Lock()
		for len(p.events) == 0 && !p.closed {
			p.wake.Wait()
		}
		if p.closed {
			p.mu.Unlock()
			return
		}
		event := p.events[0]
		p.events = p.events[1:]
		p.mu.Unlock()
		event()
	}
}

func (p *Power) add(event func()) {
	if p.machines == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, event)
	p.wake.Signal()
}

// Start has a machine switched on.
func (p *Power) Start(id string, metadata http.Handler) {
	p.add(func() { p.machines.Start(id, metadata) })
}

// Stop has a machine switched off.
func (p *Power) Stop(id string) { p.add(func() { p.machines.Stop(id) }) }

// Console is what a machine has written; empty when it never booted.
func (p *Power) Console(id string) string {
	if p.machines == nil {
		return ""
	}
	return p.machines.Console(id)
}

// Close drops the events that wait and stops all machines.
func (p *Power) Close() {
	p.mu.Lock()
	p.closed = true
	p.wake.Signal()
	p.mu.Unlock()
	<-p.done
	if p.machines != nil {
		p.machines.Close()
	}
}
