package ec2

import (
	"net/http"
	"sync"
)

// Machines runs the operating systems of instances. Its methods are called one after the other, in
// the order of the events, by a goroutine of the server's own.
type Machines interface {
	// Start is called when an instance has come to the state running. metadata is its instance
	// metadata service; it answers for as long as the instance exists.
	Start(instanceID string, metadata http.Handler)
	// Stop is called when an instance is shutting down or has vanished: the power is cut.
	Stop(instanceID string)
	// Console is what the machine has written to its console; empty for an unknown one.
	Console(instanceID string) string
	// Close stops all machines and waits until they are gone.
	Close()
}

// power hands the events to Machines without holding the server's lock.
type power struct {
	machines Machines
	mu       sync.Mutex
	wake     *sync.Cond
	events   []func()
	closed   bool
	done     chan struct{}
}

func newPower(m Machines) *power {
	p := &power{machines: m, done: make(chan struct{})}
	p.wake = sync.NewCond(&p.mu)
	go p.run()
	return p
}

func (p *power) run() {
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

func (p *power) add(event func()) {
	if p.machines == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, event)
	p.wake.Signal()
}

func (p *power) start(id string, metadata http.Handler) {
	p.add(func() { p.machines.Start(id, metadata) })
}

func (p *power) stop(id string) { p.add(func() { p.machines.Stop(id) }) }

// close drops the events that wait and stops all machines.
func (p *power) close() {
	p.mu.Lock()
	p.closed = true
	p.wake.Signal()
	p.mu.Unlock()
	<-p.done
	if p.machines != nil {
		p.machines.Close()
	}
}
