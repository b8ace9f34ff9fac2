package instance_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/example/cloud"
	"millwright.dev/test/clouds/example/provider/instance"
	"millwright.dev/test/doccheck"
)

// codes are the class of each code of the cloud, with the status that it comes with; late is its class for an operation, where
// that differs. spot_reclaimed and powered_off are of machines, not of calls.
var codes = map[string]struct {
	status int
	class  driver.Class
	late   driver.Class
}{
	cloud.CodeInvalidArgument:    {status: 400, class: driver.ClassTerminal},
	cloud.CodeUnauthenticated:    {status: 401, class: driver.ClassAuth},
	cloud.CodeTokenExpired:       {status: 401, class: driver.ClassAuth},
	cloud.CodePermissionDenied:   {status: 403, class: driver.ClassAuth},
	cloud.CodeNotFound:           {status: 404, class: driver.ClassNotFound},
	cloud.CodeZoneNotFound:       {status: 404, class: driver.ClassTerminal},
	cloud.CodeTypeNotFound:       {status: 400, class: driver.ClassTerminal},
	cloud.CodeImageNotFound:      {status: 404, class: driver.ClassUnresolved},
	cloud.CodeNameTaken:          {status: 409, class: driver.ClassConflict},
	cloud.CodeRequestIDReused:    {status: 409, class: driver.ClassConflict},
	cloud.CodeResourceInUse:      {status: 409, class: driver.ClassRefused},
	cloud.CodeDeletionProtected:  {status: 409, class: driver.ClassTerminal},
	cloud.CodeQuotaExceeded:      {status: 403, class: driver.ClassQuota},
	cloud.CodeTypeNotInZone:      {status: 400, class: driver.ClassCapacity},
	cloud.CodeZoneExhausted:      {status: 503, class: driver.ClassCapacity},
	cloud.CodeAddressesExhausted: {status: 503, class: driver.ClassCapacity},
	cloud.CodeUserDataTooLarge:   {status: 400, class: driver.ClassTerminal},
	cloud.CodeRateLimited:        {status: 429, class: driver.ClassThrottle},
	cloud.CodeCancelled:          {status: 409, class: driver.ClassRefused},
	cloud.CodeInternal:           {status: 500, class: driver.ClassUnknown, late: driver.ClassRefused},
	cloud.CodeUnavailable:        {status: 503, class: driver.ClassUnknown, late: driver.ClassRefused},
	cloud.CodeSpotReclaimed:      {status: 400, class: driver.ClassRefused},
	cloud.CodePoweredOff:         {status: 400, class: driver.ClassRefused},
	"a_new_code":                 {status: 422, class: driver.ClassRefused},
	"a_new_failure":              {status: 502, class: driver.ClassUnknown, late: driver.ClassRefused},
	"timeout":                    {status: 408, class: driver.ClassUnknown, late: driver.ClassRefused},
	"":                           {status: 404, class: driver.ClassRefused},
}

func TestEveryCodeHasAClass(t *testing.T) {
	g := NewWithT(t)
	for _, code := range doccheck.Constants(t, doccheck.Named("Code"), "test/clouds/example/cloud") {
		g.Expect(codes).To(HaveKey(code))
	}
	for code, want := range codes {
		t.Run("call "+code, func(t *testing.T) {
			f := newFixture(t, cloud.Options{})
			f.cloud.AddFault(cloud.Fault{Status: want.status, Failure: cloud.Failure{Code: code, Message: "why"}, RetryAfter: 7 * time.Second})
			_, err := f.Create(f.ctx, launch("a", "m1", 1))
			f.class(err, want.class)
			var e *driver.Error
			f.Expect(errors.As(err, &e)).To(BeTrue())
			f.Expect(e).To(And(HaveField("Code", code), HaveField("Operation", "CreateMachine"), HaveField("RetryAfter", 7*time.Second),
				HaveField("OnlyPlace", code == cloud.CodeAddressesExhausted)))
			f.Expect(err.Error()).To(HaveSuffix("why"))
			h := handle(launch("a", "m1", 1), "")
			f.class(f.observe(h).Err, want.class)
			f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], want.class)
			f.class(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0].Err, want.class)
			_, err = f.List(f.ctx, scope)
			f.class(err, want.class)
			_, err = f.ListStatus(f.ctx, scope)
			f.class(err, want.class)
		})
		t.Run("operation "+code, func(t *testing.T) {
			f := newFixture(t, cloud.Options{})
			f.cloud.AddFault(cloud.Fault{Operation: cloud.OperationFault{Fail: &cloud.Failure{Code: code, Message: "why"}, Parts: 2}})
			h := f.accepted(launch("a", "m1", 1))
			f.settle()
			late := want.class
			if want.late != "" {
				late = want.late
			}
			f.Expect(f.observe(h)).To(And(HaveField("Err", BeNil()), HaveField("Value", And(
				HaveField("State", driverv1.InstanceFailed), HaveField("Refused", late), HaveField("StateCode", code),
				HaveField("StateMessage", "why"), HaveField("ProviderID", ""), HaveField("FailureDomain", "a"), HaveField("InstanceType", "small"),
			))))
			f.Expect(h.Owns(f.observe(h).Value)).To(BeTrue())
		})
	}
}

// TestStrangeAnswers are not of the API, as from a proxy: whether the call had an effect depends on the status.
func TestStrangeAnswers(t *testing.T) {
	for body, want := range map[int]driver.Class{
		http.StatusOK: driver.ClassUnknown, http.StatusFound: driver.ClassUnknown, http.StatusBadGateway: driver.ClassUnknown,
		http.StatusTooManyRequests: driver.ClassThrottle, http.StatusTeapot: driver.ClassRefused,
	} {
		f := newFixture(t, cloud.Options{})
		asked := 0
		f.Driver = instance.New("http://cloud", answering(func(r *http.Request) *http.Response {
			asked++
			return &http.Response{StatusCode: body, Header: http.Header{"Location": {"http://elsewhere/"}}, Body: http.NoBody, Request: r}
		}), func(context.Context, driver.Scope) (string, error) { return token, nil })
		_, err := f.Create(f.ctx, launch("a", "m1", 1))
		f.class(err, want)
		f.Expect(asked).To(Equal(1), "neither repeated nor redirected")
	}
}

type answering func(*http.Request) *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// TestFaultsOfTheCloudAreUnknown, whatever the code, unless it is one of a shortage.
func TestFaultsOfTheCloudAreUnknown(t *testing.T) {
	for code, want := range map[string]driver.Class{cloud.CodeInvalidArgument: driver.ClassUnknown,
		cloud.CodeZoneExhausted: driver.ClassCapacity} {
		f := newFixture(t, cloud.Options{})
		f.cloud.AddFault(cloud.Fault{Status: http.StatusInternalServerError, Failure: cloud.Failure{Code: code, Message: "why"}})
		_, err := f.Create(f.ctx, launch("a", "m1", 1))
		f.class(err, want)
	}
}

// TestLostAnswersAreUnknown, unless there was no connection; without a token nothing is called.
func TestLostAnswersAreUnknown(t *testing.T) {
	for _, broken := range []cloud.Break{cloud.LoseRequest, cloud.LoseAnswer} {
		f := newFixture(t, cloud.Options{})
		f.cloud.AddFault(cloud.Fault{Break: broken})
		_, err := f.Create(f.ctx, launch("a", "m1", 1))
		f.class(err, driver.ClassUnknown)
		f.Expect(err.Error()).To(Equal("CreateMachine: the connection to the cloud broke before its answer was complete"))
		f.class(f.Delete(f.ctx, scope, []driver.Handle{handle(launch("a", "m1", 1), "")})[0], driver.ClassUnknown)
	}
	f := newFixture(t, cloud.Options{})
	f.Driver = instance.New(
		"http://127.0.0.1:1",
		http.DefaultTransport,
		func(context.Context, driver.Scope) (string, error) { return token, nil },
	)
	_, err := f.Create(f.ctx, launch("a", "m1", 1))
	f.class(err, driver.ClassRefused)
	f.Driver = instance.New("no address:", http.DefaultTransport, func(context.Context, driver.Scope) (string, error) { return token, nil })
	_, err = f.Create(f.ctx, launch("a", "m1", 1))
	f.class(err, driver.ClassRefused)
	f.Driver = instance.New(
		"http://cloud",
		failing{&net.OpError{Op: "read", Err: errors.New("reset")}},
		func(context.Context, driver.Scope) (string, error) {
			return token, nil
		},
	)
	_, err = f.Create(f.ctx, launch("a", "m1", 1))
	f.class(err, driver.ClassUnknown)
	f.Driver = instance.New("http://cloud", f.cloud.Transport(), func(context.Context, driver.Scope) (string, error) {
		return "", errors.New("no such file")
	})
	_, err = f.Create(f.ctx, launch("a", "m1", 1))
	f.class(err, driver.ClassAuth)
	f.Expect(f.cloud.Calls()).To(BeEmpty())
}

// TestHangsEndByTheDeadline: every method returns by then, from whichever byte on the cloud hangs, with class Unknown for all handles.
func TestHangsEndByTheDeadline(t *testing.T) {
	for _, broken := range []cloud.Break{cloud.HangRequest, cloud.HangAnswer, cloud.HangBody} {
		for name, call := range map[string]func(f *fixture, handles []driver.Handle) []error{
			"Create": func(f *fixture, _ []driver.Handle) []error {
				_, err := f.Create(f.ctx, launch("a", "m9", 1))
				return []error{err}
			},
			"Observe": func(f *fixture, handles []driver.Handle) []error { return errorsOf(f.Observe(f.ctx, scope, handles)) },
			"Delete":  func(f *fixture, handles []driver.Handle) []error { return f.Delete(f.ctx, scope, handles) },
			"Cleanup": func(f *fixture, handles []driver.Handle) []error { return errorsOf(f.Cleanup(f.ctx, scope, handles)) },
			"Remark":  func(f *fixture, handles []driver.Handle) []error { return f.Remark(f.ctx, scope, handles, "u_f_2") },
			"List": func(f *fixture, _ []driver.Handle) []error {
				_, err := f.List(f.ctx, scope)
				return []error{err}
			},
			"ListStatus": func(f *fixture, _ []driver.Handle) []error {
				_, err := f.ListStatus(f.ctx, scope)
				return []error{err}
			},
		} {
			t.Run(name+" "+string(broken), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, cloud.Options{})
					handles := []driver.Handle{f.running(launch("a", "m1", 1)), f.running(launch("b", "m2", 1))}
					f.cloud.AddFault(cloud.Fault{Break: broken})
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					f.ctx = ctx
					began := time.Now()
					for _, err := range call(f, handles) {
						f.class(err, driver.ClassUnknown)
						f.Expect(err.Error()).To(HaveSuffix("no answer within the time limit"))
					}
					f.Expect(time.Since(began)).To(Equal(30*time.Second), "by the clock of the bubble")
				})
			})
		}
	}
}

func errorsOf[T any](answers []driver.Answer[T]) []error {
	var found []error
	for _, a := range answers {
		found = append(found, a.Err)
	}
	return found
}

// TestCredentialsAreReadAtEachCall: a rotated token is used at once, an expired one is class Auth.
func TestCredentialsAreReadAtEachCall(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	h := f.running(launch("a", "m1", 1))
	f.cloud.ExpireToken(account, token, 0)
	f.class(f.observe(h).Err, driver.ClassAuth)
	f.cloud.AddToken(account, "rotated")
	f.class(f.observe(h).Err, driver.ClassAuth)
	f.token = "rotated"
	f.Expect(f.observe(h).Err).NotTo(HaveOccurred())
	f.cloud.RevokeToken(account, "rotated")
	f.class(f.observe(h).Err, driver.ClassAuth)
}
