package inframachine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

// simFinishing is the example's driver where launches cannot ask for everything: a setting is asked for afterwards, as a check of source
// addresses is of EC2.
type simFinishing struct {
	*instance.Driver
	*simSetting
}

var _ driver.Finisher[*examplev1.ExampleMachine] = simFinishing{}

// simSetting is what has become of it.
type simSetting struct {
	mu    sync.Mutex
	on    bool
	asked int
	// refuse is what the cloud answers; shows is when lists show it.
	refuse error
	shows  time.Time
}

func (s *simSetting) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

func (s *simSetting) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// shown is what a list or a look shows of it.
func (s *simSetting) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on && !time.Now().Before(s.shows) {
		return "on"
	}
	return "off"
}

func (d simFinishing) List(ctx context.Context, in driver.Scope) ([]driver.Instance, error) {
	all, err := d.Driver.List(ctx, in)
	for n := range all {
		all[n].Settings = d.shown()
	}
	return all, err
}

func (d simFinishing) Observe(ctx context.Context, in driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	answers := d.Driver.Observe(ctx, in, handles)
	for n := range answers {
		answers[n].Value.Settings = d.shown()
	}
	return answers
}

func (d simFinishing) Unfinished(_ *examplev1.ExampleMachine, i driver.Instance) string {
	if i.Settings == "on" {
		return ""
	}
	return "the setting is off"
}

func (d simFinishing) Finish(context.Context, *examplev1.ExampleMachine, driver.Instance) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if d.refuse == nil && !d.on {
		d.on, d.shows = true, time.Now().Add(time.Minute)
	}
	return d.refuse
}

// finishing simulates a scripted life with such a driver.
func finishing(t *testing.T, life func(*WithT, *simWorld, *simSetting)) {
	t.Helper()
	scripted(t, func(g *WithT, w *simWorld) {
		setting := &simSetting{}
		w.driver = func(d *instance.Driver) driver.Driver[*examplev1.ExampleMachine] { return simFinishing{d, setting} }
		life(g, w, setting)
	})
}

// TestWhatALaunchLeavesUnfinished is asked for once, and believed until lists show it.
func TestWhatALaunchLeavesUnfinished(t *testing.T) {
	finishing(t, func(g *WithT, w *simWorld, setting *simSetting) {
		w.Start(w.Server())
		w.becomesReady(g, 5*time.Minute)
		g.Expect(setting.calls()).To(Equal(1))
		time.Sleep(30 * time.Minute)
		g.Expect(setting.calls()).To(Equal(1))
		g.Expect(w.message(driverv1.ReadyCondition)).To(HavePrefix("True "))
		w.remove()
	})
}

// TestWhatIsRefusedToBeFinished: the machine runs and is not ready, in the cloud's words, it costs few calls, and once it is granted, or
// was done by another user, all is well by itself. What others switch off later is asked for again.
func TestWhatIsRefusedToBeFinished(t *testing.T) {
	for name, err := range map[string]error{
		"not allowed": driver.NewAuthError("Set", "Denied", errors.New("not you")), "permanently": driver.NewTerminalError("Set", "Never", errors.New("not you")),
		"not found": driver.NewNotFoundError("Set", "None", errors.New("not you")),
	} {
		t.Run(name, func(t *testing.T) {
			finishing(t, func(g *WithT, w *simWorld, setting *simSetting) {
				setting.set(err)
				w.Start(w.Server())
				time.Sleep(30 * time.Minute)
				g.Expect(w.message(driverv1.ReadyCondition)).To(And(
					HavePrefix("False "+driverv1.InstanceNotConfiguredReason+": The instance runs. the setting is off: "), ContainSubstring("not you")))
				g.Expect(w.message(driverv1.InstanceConfiguredCondition)).To(HavePrefix("False "))
				g.Expect(w.Server().Machine(simName).Status.IsProvisioned()).To(BeTrue())
				g.Expect(setting.calls()).To(BeNumerically("~", 12, 10))
				setting.set(nil)
				w.becomesReady(g, 15*time.Minute)
				g.Expect(w.message(driverv1.InstanceConfiguredCondition)).To(HavePrefix("True "))
				before := setting.calls()
				time.Sleep(20 * time.Minute)
				g.Expect(setting.calls()).To(Equal(before))
				setting.mu.Lock()
				setting.on = false
				setting.mu.Unlock()
				time.Sleep(20 * time.Minute)
				g.Expect(setting.calls()).To(Equal(before + 1))
				g.Expect(w.message(driverv1.ReadyCondition)).To(HavePrefix("True "))
				w.remove()
			})
		})
	}
}
