package limit

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

type machine struct{ client.Object }

func (machine) CommonSpec() *driverv1.MachineSpec     { return nil }
func (machine) CommonStatus() *driverv1.MachineStatus { return nil }

var (
	aScope  = driver.Scope{Identity: "i", Location: "l"}
	handles = []driver.Handle{{Token: "1"}, {Token: "2"}, {Token: "3"}}
	launch  = driver.Launch[machine]{Scope: aScope, Token: "t"}
)

// fake is a driver that counts its calls and answers all of them with err, the second of many handles only.
type fake struct {
	calls []string
	err   error
}

func (f *fake) call(name string, expected bool) error {
	if !expected {
		panic("wrong arguments of " + name)
	}
	f.calls = append(f.calls, name)
	return f.err
}

func (f *fake) Traits() driver.Traits            { return driver.Traits{NameLimit: 7} }
func (f *fake) Scope(machine) driver.Scope       { return aScope }
func (f *fake) LimitScope(s driver.Scope) string { return "limits of " + s.String() }
func (f *fake) Mark(h driver.Handle) string      { return "mark of " + h.Token }
func (f *fake) same(s driver.Scope, h []driver.Handle) bool {
	return s == aScope && reflect.DeepEqual(h, handles)
}

func (f *fake) Places(_ context.Context, l driver.Launch[machine]) ([]driver.Candidate, error) {
	return []driver.Candidate{{Rank: 3}}, f.call("Places", reflect.DeepEqual(l, launch))
}

func (f *fake) Create(_ context.Context, l driver.Launch[machine]) (driver.Accepted, error) {
	return driver.Accepted{Operation: "op"}, f.call("Create", reflect.DeepEqual(l, launch))
}

func (f *fake) Observe(_ context.Context, s driver.Scope, h []driver.Handle) []driver.Answer[driver.Instance] {
	err := f.call("Observe", f.same(s, h))
	return []driver.Answer[driver.Instance]{{Value: driver.Instance{ID: "1"}}, {Err: err}, {}}
}

func (f *fake) Delete(_ context.Context, s driver.Scope, h []driver.Handle) []error {
	return []error{nil, f.call("Delete", f.same(s, h)), nil}
}

func (f *fake) Cleanup(_ context.Context, s driver.Scope, h []driver.Handle) []driver.Answer[[]string] {
	err := f.call("Cleanup", f.same(s, h))
	return []driver.Answer[[]string]{{Value: []string{"disk"}}, {Err: err}, {}}
}

func (f *fake) List(_ context.Context, s driver.Scope) ([]driver.Instance, error) {
	return []driver.Instance{{ID: "1"}}, f.call("List", s == aScope)
}

// statusFake is one that lists more.
type statusFake struct{ fake }

func (f *statusFake) ListStatus(_ context.Context, s driver.Scope) (map[string]driver.Status, error) {
	return map[string]driver.Status{"p": {}}, f.call("ListStatus", s == aScope)
}

// method is a call of a driver, which returns all that it returns, and the errors among that.
type method struct {
	kind driver.CallKind
	call func(driver.Driver[machine]) (any, []error)
}

func answers[T any](all []driver.Answer[T]) (any, []error) {
	var errs []error
	for _, a := range all {
		errs = append(errs, a.Err)
	}
	return all, errs
}

var methods = map[string]method{
	"Create": {driver.CallCreate, func(d driver.Driver[machine]) (any, []error) {
		a, err := d.Create(context.Background(), launch)
		return a, []error{err}
	}},
	"Places": {driver.CallRead, func(d driver.Driver[machine]) (any, []error) {
		p, err := d.Places(context.Background(), launch)
		return p, []error{err}
	}},
	"Observe": {driver.CallRead, func(d driver.Driver[machine]) (any, []error) {
		return answers(d.Observe(context.Background(), aScope, handles))
	}},
	"Cleanup": {driver.CallRead, func(d driver.Driver[machine]) (any, []error) {
		return answers(d.Cleanup(context.Background(), aScope, handles))
	}},
	"Delete": {driver.CallDelete, func(d driver.Driver[machine]) (any, []error) {
		errs := d.Delete(context.Background(), aScope, handles)
		return len(errs), errs
	}},
	"List": {driver.CallList, func(d driver.Driver[machine]) (any, []error) {
		i, err := d.List(context.Background(), aScope)
		return i, []error{err}
	}},
	"ListStatus": {driver.CallList, func(d driver.Driver[machine]) (any, []error) {
		s, err := d.(driver.StatusLister).ListStatus(context.Background(), aScope)
		return s, []error{err}
	}},
}

// Each method passes on what it gets and returns, and a throttle of any answer closes its kind, and no other, for all methods of the kind.
func TestEachMethodKeepsToTheLimits(t *testing.T) {
	for name, m := range methods {
		for _, err := range []error{nil, errors.New("x"), throttle(time.Minute)} {
			r := newRig(t, nil)
			f := &statusFake{fake{err: err}}
			d := Driver[machine](f, r.Limiter)
			value, errs := m.call(d)
			wantValue, wantErrs := m.call(f)
			r.Expect(reflect.DeepEqual(value, wantValue)).To(BeTrue(), name)
			r.Expect(errs).To(Equal(wantErrs), name)
			r.Expect(f.calls).To(Equal([]string{name, name}))
			f.calls, f.err = nil, nil
			for other, o := range methods {
				_, errs := o.call(d)
				if refused := driver.IsThrottle(err) && o.kind == m.kind; refused {
					want := 1
					if slices.Contains([]string{"Observe", "Cleanup", "Delete"}, other) {
						want = len(handles)
					}
					r.Expect(errs).To(HaveLen(want), "%s about each", other)
					for _, err := range errs {
						r.Expect(driver.RetryAfterOf(err)).To(Equal(time.Minute), other)
						r.Expect(err.Error()).To(HavePrefix(string(o.kind) + ": calls are paused"))
					}
					r.Expect(f.calls).NotTo(ContainElement(other))
				} else {
					r.Expect(f.calls).To(ContainElement(other), "after %s with %v", name, err)
				}
			}
			if driver.IsThrottle(err) {
				r.Expect(slices.Collect(maps.Keys(r.labels))).To(ConsistOf("limits of i/l"))
			}
		}
	}
}

// The calls of a kind take from the same tokens; Create takes none, since Admit has.
func TestWhichMethodsTakeTokens(t *testing.T) {
	for name, m := range methods {
		r := newRig(t, map[driver.CallKind]driver.Rate{m.kind: {PerSecond: 1e-3, Burst: 1}})
		d := Driver[machine](&statusFake{}, r.Limiter)
		m.call(d)
		taken := r.Admit("limits of i/l", m.kind, key("a")) > 0
		r.Expect(taken).To(Equal(name != "Create"), name)
	}
}

// Success of each method ends the doubling of pauses.
func TestEachMethodReportsSuccess(t *testing.T) {
	for name, m := range methods {
		r := newRig(t, nil)
		d := Driver[machine](&statusFake{}, r.Limiter)
		r.Report("limits of i/l", m.kind, throttle(0))
		r.passes(time.Second)
		m.call(d)
		r.Expect(r.buckets[pair{"limits of i/l", m.kind}].refusals).To(BeZero(), name)
	}
}

func TestWhatIsPassedOn(t *testing.T) {
	r := newRig(t, nil)
	d := Driver[machine](&fake{}, r.Limiter)
	r.Expect(d.Traits()).To(Equal(driver.Traits{NameLimit: 7}))
	r.Expect(d.Scope(machine{})).To(Equal(aScope))
	r.Expect(d.LimitScope(aScope)).To(Equal("limits of i/l"))
	r.Expect(d.Mark(handles[0])).To(Equal("mark of 1"))
	_, lists := d.(driver.StatusLister)
	r.Expect(lists).To(BeFalse(), "it cannot")
	d = Driver[machine](&statusFake{}, r.Limiter)
	_, lists = d.(driver.StatusLister)
	r.Expect(lists).To(BeTrue())
	r.Expect(d.Traits()).To(Equal(driver.Traits{NameLimit: 7}))
}
