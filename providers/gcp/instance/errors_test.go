package instance_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/instance"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

// TestRefusedCalls: each reason that a call may be refused with, by what it means.
func TestRefusedCalls(t *testing.T) {
	for name, c := range map[string]struct {
		refusal simulator.APIError
		create  driver.Class
		deletes driver.Class
	}{
		"rate":           {simulator.APIError{Code: "rateLimitExceeded"}, driver.ClassThrottle, driver.ClassThrottle},
		"429":            {simulator.APIError{Code: "whatever", Status: 429, RetryAfter: 7 * time.Second}, driver.ClassThrottle, driver.ClassThrottle},
		"quota":          {simulator.APIError{Code: "quotaExceeded"}, driver.ClassQuota, driver.ClassQuota},
		"401":            {simulator.APIError{Code: "authError"}, driver.ClassAuth, driver.ClassAuth},
		"403":            {simulator.APIError{Code: "forbidden"}, driver.ClassAuth, driver.ClassAuth},
		"new 403":        {simulator.APIError{Code: "somethingNew", Status: 403}, driver.ClassAuth, driver.ClassAuth},
		"404":            {simulator.APIError{Code: "notFound"}, driver.ClassUnresolved, driver.ClassNotFound},
		"409":            {simulator.APIError{Code: "alreadyExists"}, driver.ClassConflict, driver.ClassConflict},
		"412":            {simulator.APIError{Code: "conditionNotMet"}, driver.ClassUnresolved, driver.ClassUnresolved},
		"invalid":        {simulator.APIError{Code: "invalid", Message: "Invalid value"}, driver.ClassTerminal, driver.ClassTerminal},
		"no such thing":  {simulator.APIError{Code: "invalid", Message: "The referenced subnetwork resource cannot be found."}, driver.ClassUnresolved, driver.ClassUnresolved},
		"type in zone":   {simulator.APIError{Code: "invalid", Message: "Machine type with name 'x' does not exist in zone 'y'."}, driver.ClassCapacity, driver.ClassCapacity},
		"not ready":      {simulator.APIError{Code: "resourceNotReady"}, driver.ClassRefused, driver.ClassRefused},
		"new 400":        {simulator.APIError{Code: "somethingNew"}, driver.ClassRefused, driver.ClassRefused},
		"408":            {simulator.APIError{Code: "invalid", Status: 408}, driver.ClassUnknown, driver.ClassUnknown},
		"500":            {simulator.APIError{Code: "internalError"}, driver.ClassUnknown, driver.ClassUnknown},
		"503":            {simulator.APIError{Code: "backendError"}, driver.ClassUnknown, driver.ClassUnknown},
		"503 for a type": {simulator.APIError{Code: "ZONE_RESOURCE_POOL_EXHAUSTED", Status: 503}, driver.ClassCapacity, driver.ClassCapacity},
	} {
		f := newFixture(t, compute.Options{})
		h := f.running(launch(zoneA, "one", 1))
		f.fault(simulator.Fault{Action: "instances.insert", Error: &c.refusal})
		f.fault(simulator.Fault{Action: "instances.delete", Error: &c.refusal})
		_, err := f.Create(f.ctx, launch(zoneB, "two", 1))
		f.Expect(driver.ClassOf(err)).To(Equal(c.create), name)
		f.Expect(driver.RetryAfterOf(err)).To(Equal(c.refusal.RetryAfter), name)
		f.Expect(driver.ClassOf(f.Delete(f.ctx, scope, []driver.Handle{h})[0])).To(Equal(c.deletes), name)
	}
}

// TestRefusalsOfTheSimulator are those that a real request gets.
func TestRefusalsOfTheSimulator(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*gcpLaunch)
		expected driver.Class
	}{
		"image":         {func(l *gcpLaunch) { l.Object.Spec.Image.Family = "none" }, driver.ClassUnresolved},
		"subnetwork":    {func(l *gcpLaunch) { l.Object.Spec.Subnetwork = "projects/p/regions/us-central1/subnetworks/x" }, driver.ClassUnresolved},
		"type in zone":  {func(l *gcpLaunch) { l.Placement.InstanceType = "a4-highgpu-8g" }, driver.ClassCapacity},
		"type":          {func(l *gcpLaunch) { l.Placement.InstanceType = "x9" }, driver.ClassTerminal},
		"zone":          {func(l *gcpLaunch) { l.Placement.ID = "us-central1-z" }, driver.ClassUnresolved},
		"project":       {func(l *gcpLaunch) { l.Scope.Location = "nobodys" }, driver.ClassUnresolved},
		"disk type":     {func(l *gcpLaunch) { l.Object.Spec.BootDisk = &infrav1.Disk{Type: "floppy"} }, driver.ClassUnresolved},
		"no disk label": {func(l *gcpLaunch) { l.Object.Spec.Labels = map[string]infrav1.LabelValue{"A": "b"} }, driver.ClassTerminal},
		"path":          {func(l *gcpLaunch) { l.Placement.ID = "../../x" }, driver.ClassTerminal},
	} {
		f := newFixture(t, compute.Options{})
		l := launch(zoneA, "one", 1)
		c.change(&l)
		_, err := f.Create(f.ctx, l)
		f.Expect(driver.ClassOf(err)).To(Equal(c.expected), "%s: %v", name, err)
		f.Expect(f.cloud.Instances(project)).To(BeEmpty(), name)
	}
	f := newFixture(t, compute.Options{})
	f.token = "expired"
	_, err := f.Create(f.ctx, launch(zoneA, "one", 1))
	f.class(err, driver.ClassAuth)
	f.Expect(f.refused).To(Equal(1), "it is not used again")
}

// TestFailuresOfOperations: each code of an operation, by what it means. None is unknown, since the operation has ended.
func TestFailuresOfOperations(t *testing.T) {
	for code, expected := range map[string]driver.Class{
		"ZONE_RESOURCE_POOL_EXHAUSTED": driver.ClassCapacity, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": driver.ClassCapacity,
		"IP_SPACE_EXHAUSTED": driver.ClassCapacity, "QUOTA_EXCEEDED": driver.ClassQuota, "RESOURCE_NOT_FOUND": driver.ClassUnresolved,
		"PERMISSIONS_ERROR": driver.ClassAuth, "SERVICE_ACCOUNT_ACCESS_DENIED": driver.ClassAuth, "INVALID_FIELD_VALUE": driver.ClassTerminal, "INTERNAL_ERROR": driver.ClassRefused,
		"SOMETHING_NEW": driver.ClassRefused, "RESOURCE_ALREADY_EXISTS": driver.ClassRefused, "RATE_LIMIT_EXCEEDED": driver.ClassThrottle,
		"CONDITION_NOT_MET": driver.ClassUnresolved,
	} {
		f := newFixture(t, compute.Options{})
		f.fault(simulator.Fault{Action: "instances.insert", LaunchFailure: &simulator.Failure{Code: code, Message: "why"}})
		h := f.accepted(launch(zoneA, "one", 1))
		f.settle()
		i := f.observe(h)
		f.Expect(i.Err).NotTo(HaveOccurred(), code)
		f.Expect(i.Value).To(And(HaveField("State", driverv1.InstanceFailed), HaveField("Refused", expected), HaveField("ProviderID", ""),
			HaveField("StateCode", code), HaveField("StateMessage", "why"), HaveField("RefusedOnlyPlace", code == "IP_SPACE_EXHAUSTED")), code)
		f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0]).To(Equal(driver.Answer[[]string]{}), code)
		// The next attempt is another request of the same name.
		f.cloud.ClearFaults()
		f.running(launch(zoneA, "one", 2))
	}
}

// TestOperationsAndInstances: what is answered about an accepted launch, by what there is of its operation and of an instance of its
// name.
func TestOperationsAndInstances(t *testing.T) {
	f := newFixture(t, compute.Options{Delays: compute.Delays{Forget: time.Hour}})
	h := f.accepted(launch(zoneA, "one", 1))
	f.settle()
	f.Expect(f.cloud.Vanish(project, zoneA, "one")).To(Succeed())
	f.class(f.observe(h).Err, driver.ClassNotFound) // Done, and gone since.
	other := launch(zoneA, "one", 7)
	other.OwnerUID, other.Owner = "uid-other", "other/one"
	f.running(other)
	f.class(f.observe(h).Err, driver.ClassNotFound) // What has the name is of another launch.
	h.Operation = ""
	f.Expect(f.observe(h).Value.OwnerUID).
		To(BeEquivalentTo("uid-other"), "of a launch whose operation is not known, what has the name is shown")
	gone := handle(launch(zoneA, "none", 1), "operation-of-long-ago")
	f.class(f.observe(gone).Err, driver.ClassNotFound)
	gone.Operation = ""
	f.class(f.observe(gone).Err, driver.ClassNotFound)
}

// answering is a driver whose cloud answers each call alike.
func answering(status int, body string) *instance.Driver {
	cloud := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	return instance.New("http://cloud/compute/v1", direct{cloud}, fixedToken{token: token})
}

// TestStrangeAnswers prove nothing about the effect, unless the status does.
func TestStrangeAnswers(t *testing.T) {
	g := NewWithT(t)
	for status, expected := range map[int]driver.Class{
		200: driver.ClassUnknown, 302: driver.ClassUnknown, 400: driver.ClassRefused, 403: driver.ClassAuth, 429: driver.ClassThrottle,
		502: driver.ClassUnknown,
	} {
		_, err := answering(status, "<html>proxy</html>").Create(t.Context(), launch(zoneA, "one", 1))
		g.Expect(driver.ClassOf(err)).To(Equal(expected), "%d", status)
		g.Expect(err.Error()).NotTo(ContainSubstring("proxy"))
	}
	unreachable := instance.New("http://cloud", failing{&net.OpError{Op: "dial", Err: errors.New("refused")}}, fixedToken{token: token})
	_, err := unreachable.Create(t.Context(), launch(zoneA, "one", 1))
	g.Expect(driver.ClassOf(err)).To(Equal(driver.ClassRefused), "it got no connection")
	tokenless := instance.New("http://cloud", failing{}, fixedToken{err: identity.NewInvalid("x", "no key")})
	_, err = tokenless.Create(t.Context(), launch(zoneA, "one", 1))
	g.Expect(driver.ClassOf(err)).To(Equal(driver.ClassAuth))
	waiting := instance.New("http://cloud", failing{}, fixedToken{err: errors.New("no answer")})
	_, err = waiting.Create(t.Context(), launch(zoneA, "one", 1))
	g.Expect(driver.ClassOf(err)).To(Equal(driver.ClassRefused), "nothing was sent, and no user has to act")
	_, err = unreachable.List(t.Context(), driver.Scope{Identity: "a", Location: project})
	g.Expect(driver.ClassOf(err)).To(Equal(driver.ClassAuth), "never with the process's own credentials")
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// TestACloudThatHangs, from the first byte or in the middle of its answer: every method returns by its deadline.
func TestACloudThatHangs(t *testing.T) {
	hanging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path[len(r.URL.Path)-1] == 's' { // Lists and insertions hang in the middle, the rest from the beginning.
			_, _ = w.Write([]byte(`{"items":`))
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}))
	defer hanging.Close()
	defer hanging.CloseClientConnections()
	d := instance.New(hanging.URL, http.DefaultTransport, fixedToken{token: token})
	l := launch(zoneA, "one", 1)
	h := handle(l, "operation-1")
	h.ProviderID = "gce://" + project + "/" + zoneA + "/one"
	for name, call := range map[string]func(context.Context) error{
		"Create":        func(ctx context.Context) error { _, err := d.Create(ctx, l); return err },
		"Observe":       func(ctx context.Context) error { return d.Observe(ctx, scope, []driver.Handle{h})[0].Err },
		"Delete":        func(ctx context.Context) error { return d.Delete(ctx, scope, []driver.Handle{h})[0] },
		"Cleanup":       func(ctx context.Context) error { return d.Cleanup(ctx, scope, []driver.Handle{h})[0].Err },
		"List":          func(ctx context.Context) error { _, err := d.List(ctx, scope); return err },
		"ListLeftovers": func(ctx context.Context) error { _, err := d.ListLeftovers(ctx, scope); return err },
		"Remark":        func(ctx context.Context) error { return d.Remark(ctx, scope, []driver.Handle{h}, "x")[0] },
		"Unprotect":     func(ctx context.Context) error { return d.Unprotect(ctx, scope, h) },
	} {
		// On a computer that is busy the time may be over before anything was sent.
		var err error
		for limit := 50 * time.Millisecond; limit < time.Minute && driver.ClassOf(err) != driver.ClassUnknown; limit *= 4 {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			err = call(ctx)
			cancel()
		}
		NewWithT(t).Expect(driver.ClassOf(err)).To(Equal(driver.ClassUnknown), name)
	}
}
