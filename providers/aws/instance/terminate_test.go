package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

// account refuses to end some instances, as EC2 does: the call as a whole.
type account struct {
	refused map[string]bool
	// named is true if refusals name the instances, else they name none; first that they name only one.
	named, first bool
	ended        map[string]bool
	calls        int
	broken       func(call int) error
	// code of refusals; OperationNotPermitted if empty.
	code string
}

func (a *account) terminate(ids []string) error {
	a.calls++
	if a.broken != nil {
		if err := a.broken(a.calls); err != nil {
			return err
		}
	}
	var bad []string
	for _, id := range ids {
		if a.refused[id] {
			bad = append(bad, id)
		}
	}
	switch {
	case len(bad) == 0:
		for _, id := range ids {
			a.ended[id] = true
		}
		return nil
	case !a.named:
		bad = nil
	case a.first:
		bad = bad[:1]
	}
	return classify("TerminateInstances", &smithy.GenericAPIError{
		Code: cmp.Or(a.code, "OperationNotPermitted"), Message: fmt.Sprintf("The instances '%s' may not be terminated", strings.Join(bad, ", ")),
	})
}

func newAccount(n, refused int) (*account, []string) {
	a := &account{refused: map[string]bool{}, ended: map[string]bool{}}
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("i-%03x", i))
	}
	for _, i := range rand.Perm(n)[:refused] {
		a.refused[ids[i]] = true
	}
	return a, ids
}

// With as many calls as it takes, exactly the refused ones fail, in k·log n calls, and fewer if EC2 names them.
func TestRefusedInstancesDoNotHoldUpOthers(t *testing.T) {
	for range 500 {
		g := NewWithT(t)
		n := 1 + rand.IntN(100)
		k := rand.IntN(min(n, 8) + 1)
		a, ids := newAccount(n, k)
		a.named, a.first = rand.IntN(2) == 0, rand.IntN(2) == 0
		failed := isolate("TerminateInstances", ids, math.MaxInt, a.terminate)
		for _, id := range ids {
			g.Expect(a.ended[id]).To(Equal(!a.refused[id]), id)
			g.Expect(driver.IsTerminal(failed[id])).To(Equal(a.refused[id]), id)
		}
		limit := 1 + 2*k*int(math.Ceil(math.Log2(float64(n))))
		if a.named {
			limit = 1 + k
		}
		g.Expect(a.calls).To(BeNumerically("<=", limit), "%d of %d refused, named %v", k, n, a.named)
	}
}

// However many are refused, the calls are bounded, and to ask again for those that are left comes to an end.
func TestCallsAreBounded(t *testing.T) {
	for range 100 {
		g := NewWithT(t)
		n := 1 + rand.IntN(100)
		a, ids := newAccount(n, rand.IntN(n+1))
		rounds := 0
		for left := ids; len(left) > 0; rounds++ {
			a.calls = 0
			failed := isolate("TerminateInstances", left, terminateCalls, a.terminate)
			g.Expect(a.calls).To(BeNumerically("<=", terminateCalls))
			var again []string
			for _, id := range left {
				if driver.IsUnknown(failed[id]) {
					again = append(again, id)
					continue
				}
				g.Expect(failed[id] != nil).To(Equal(a.refused[id]), id)
			}
			g.Expect(len(again)).To(BeNumerically("<", len(left)), "some are settled each time")
			left = again
		}
		for _, id := range ids {
			g.Expect(a.ended[id]).To(Equal(!a.refused[id]), id)
		}
	}
}

// What is not about some of the instances ends the search: EC2 would do no more of it now.
func TestOtherErrorsAreOfAll(t *testing.T) {
	for name, err := range map[string]error{
		"throttled": &smithy.GenericAPIError{Code: "RequestLimitExceeded"},
		"lost":      errors.New("connection reset"),
		"expired":   &smithy.GenericAPIError{Code: "ExpiredToken"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a, ids := newAccount(8, 1)
			a.broken = func(call int) error {
				if call == 2 {
					return classify("TerminateInstances", err)
				}
				return nil
			}
			failed := isolate("TerminateInstances", ids, terminateCalls, a.terminate)
			g.Expect(a.calls).To(Equal(2))
			g.Expect(failed).To(HaveLen(8))
			for _, id := range ids {
				g.Expect(failed[id]).To(MatchError(classify("TerminateInstances", err)))
			}
		})
	}
}

// TestMissingPermissionIsOfAll: credentials that may end nothing cost three or four calls for a batch, whether refusals name an
// instance or not; instances that a policy excepts do not hold up the others in the end.
func TestMissingPermissionIsOfAll(t *testing.T) {
	for range 100 {
		g := NewWithT(t)
		n := 4 + rand.IntN(97)
		k := n
		if rand.IntN(2) == 0 {
			k = rand.IntN(n)
		}
		a, ids := newAccount(n, k)
		a.code, a.named, a.first = "UnauthorizedOperation", rand.IntN(2) == 0, true
		for rounds := 0; len(a.ended) < n-k || rounds == 0; rounds++ {
			a.calls = 0
			failed := isolate("TerminateInstances", ids, terminateCalls, a.terminate)
			for _, id := range ids {
				g.Expect(a.ended[id] && a.refused[id]).To(BeFalse(), id)
				g.Expect(a.ended[id] || failed[id] != nil).To(BeTrue(), id)
			}
			if k == n {
				g.Expect(a.calls).To(BeNumerically("<=", 2+2*int(math.Ceil(math.Log2(float64(n))))))
				g.Expect(failed).To(HaveEach(MatchError(driver.IsAuth, "is of class Auth")))
			}
			g.Expect(rounds).To(BeNumerically("<", 10*n), "%d of %d are excepted", k, n)
			// The next batch has those that are left, in another order.
			ids = slices.DeleteFunc(ids, func(id string) bool { return a.ended[id] })
			rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		}
	}
}

// A policy with a condition on tags refuses a call for one instance.
func TestOneInstanceExceptedByAPolicy(t *testing.T) {
	g := NewWithT(t)
	api := &terminating{refuse: "i-2", err: &smithy.GenericAPIError{Code: "UnauthorizedOperation",
		Message: "not authorized to perform: ec2:TerminateInstances on resource: arn:aws:ec2:us-east-1:000000000000:instance/i-2"}}
	d := New(func(context.Context, string) (API, error) { return api, nil }, nil)
	errs := d.Delete(t.Context(), driver.Scope{Location: "us-east-1"}, handlesOf("i-1", "i-2", "i-20", "i-1"))
	g.Expect(driver.IsAuth(errs[1])).To(BeTrue())
	g.Expect([]error{errs[0], errs[2], errs[3]}).To(HaveEach(BeNil()))
	g.Expect(api.calls).To(Equal([]string{"i-1 i-2 i-20", "i-1 i-20"}))
}

// An error in the conditions of one object does not name the other instances that it was about.
func TestAnErrorAboutSeveralShowsNoOthers(t *testing.T) {
	g := NewWithT(t)
	api := &terminating{refuse: "i-2", err: &smithy.GenericAPIError{Code: "InvalidInstanceID.NotFound",
		Message: "The instance IDs 'i-1, i-2' do not exist"}}
	d := New(func(context.Context, string) (API, error) { return api, nil }, nil)
	errs := d.Delete(t.Context(), driver.Scope{Location: "us-east-1"}, handlesOf("i-1", "i-2", "i-3"))
	g.Expect(driver.IsNotFound(errs[0])).To(BeTrue())
	g.Expect(errs[0]).NotTo(MatchError(ContainSubstring("i-2")))
	g.Expect(errs[2]).NotTo(HaveOccurred())
}

// What is about one instance alone is reported in EC2's words.
func TestAnErrorAboutOneIsShown(t *testing.T) {
	g := NewWithT(t)
	api := &terminating{
		refuse: "i-2",
		err:    &smithy.GenericAPIError{Code: "InvalidInstanceID.NotFound", Message: "The instance ID 'i-2' does not exist"},
	}
	d := New(func(context.Context, string) (API, error) { return api, nil }, nil)
	g.Expect(d.Delete(t.Context(), driver.Scope{Location: "us-east-1"}, handlesOf("i-1", "i-2"))[1]).
		To(MatchError(ContainSubstring("'i-2' does not exist")))
	unclassified := errors.New("x")
	g.Expect(alone(unclassified, []string{"i-1", "i-2"})).To(Equal(unclassified))
}

func TestWhenAllAreRefusedThereIsNothingToAskForAgain(t *testing.T) {
	g := NewWithT(t)
	api := &terminating{refuse: "i-2", err: &smithy.GenericAPIError{Code: "InvalidInstanceID.NotFound",
		Message: "The instance IDs 'i-1, i-2' do not exist"}}
	d := New(func(context.Context, string) (API, error) { return api, nil }, nil)
	d.Delete(t.Context(), driver.Scope{Location: "us-east-1"}, handlesOf("i-1", "i-2"))
	g.Expect(api.calls).To(Equal([]string{"i-1 i-2"}))
}

func TestWithoutAClientNothingIsTerminated(t *testing.T) {
	g := NewWithT(t)
	d := New(func(context.Context, string) (API, error) { return nil, errors.New("no client") }, nil)
	errs := d.Delete(t.Context(), driver.Scope{Location: "us-east-1"}, handlesOf("i-1", "i-2"))
	g.Expect(errs).To(HaveLen(2))
	g.Expect(errs).To(HaveEach(HaveOccurred()))
}

func TestErrorsAboutSomeOfTheInstances(t *testing.T) {
	answer := func(code string) error { return classify("T", &smithy.GenericAPIError{Code: code}) }
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"not known":            {answer("InvalidInstanceID.NotFound"), true},
		"protected":            {answer("OperationNotPermitted"), true},
		"excepted by a policy": {answer("UnauthorizedOperation"), true},
		"refused, unknown why": {&driver.Error{Class: driver.ClassRefused, Err: &smithy.GenericAPIError{Code: "SomethingNew"}}, true},
		"never sent":           {&driver.Error{Class: driver.ClassRefused, Err: errors.New("connection refused")}, false},
		"expired":              {answer("ExpiredToken"), false},
		"fault of the server":  {answer("InternalError"), false},
	} {
		NewWithT(t).Expect(isOfSome(test.err)).To(Equal(test.want), name)
	}
}

func handlesOf(ids ...string) []driver.Handle {
	var handles []driver.Handle
	for _, id := range ids {
		handles = append(handles, driver.Handle{Scope: driver.Scope{Location: "us-east-1"}, ProviderID: providerID("us-east-1a", id)})
	}
	return handles
}

// terminating refuses calls about one instance.
type terminating struct {
	API
	refuse string
	err    error
	calls  []string
}

func (a *terminating) TerminateInstances(
	_ context.Context,
	in *ec2.TerminateInstancesInput,
	_ ...func(*ec2.Options),
) (*ec2.TerminateInstancesOutput, error) {
	a.calls = append(a.calls, strings.Join(in.InstanceIds, " "))
	if slices.Contains(in.InstanceIds, a.refuse) {
		return nil, a.err
	}
	return &ec2.TerminateInstancesOutput{}, nil
}
