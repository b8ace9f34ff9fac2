package instance

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
)

// terminateCalls bounds the calls of one Delete. One refused instance among a hundred that EC2's message does not name takes
// 15 to find, so two are found in one go; EC2 grants 100 calls at once and 5 per second.
const terminateCalls = 32

// Delete terminates the instances. EC2 takes the repetition for a termination that is under way.
func (d *Driver) Delete(ctx context.Context, scope driver.Scope, handles []driver.Handle) []error {
	results := make([]error, len(handles))
	r, err := d.in(ctx, scope)
	ids := make([]string, 0, len(handles))
	for i, h := range handles {
		results[i] = err
		ids = append(ids, instanceID(h.ProviderID))
	}
	if err != nil {
		return results
	}
	failed := isolate("TerminateInstances", distinct(ids), terminateCalls, func(some []string) error {
		_, err := r.api.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: some}, once)
		return classify("TerminateInstances", err)
	})
	for i, h := range handles {
		results[i] = failed[instanceID(h.ProviderID)]
	}
	return results
}

// deniedBefore is how many instances are refused for lack of permission before one of the others is asked for alone, to find out
// whether the permission lacks for all. Halving would take all calls of each batch for that.
const deniedBefore = 2

// isolate calls for all IDs at once. If the call is refused because of some of them, those that the refusal names are taken
// out, or else the IDs are halved, and so on with the rest, in a bounded number of calls. It returns the errors by ID. With n
// IDs, k of which are refused, it takes at most 1+2k·log2(n) calls, 1+k if refusals name them, and one more if permissions lack; what is
// left when the calls are used up gets an error of class Unknown. The IDs found first are the first of the list, so repeated
// calls come to an end even then.
func isolate(operation string, ids []string, calls int, call func(ids []string) error) map[string]error {
	s := &search{operation: operation, calls: calls, call: call, failed: map[string]error{}, groups: [][]string{ids}}
	for len(s.groups) > 0 {
		group := s.groups[len(s.groups)-1]
		s.groups = s.groups[:len(s.groups)-1]
		switch {
		case len(group) == 0:
		case s.calls == 0:
			s.blame(group, driver.NewUnknownError(s.operation, "", errors.New(
				"too many instances of one call are refused; the others are asked for again")))
		case s.denied >= deniedBefore && !s.granted:
			s.groups = append(s.groups, group)
			s.probe()
		default:
			s.split(group)
		}
	}
	return s.failed
}

// search is for the instances that EC2 refuses a call for.
type search struct {
	// operation is what is called.
	operation string

	calls  int
	call   func(ids []string) error
	failed map[string]error
	// groups have not been called for, or were refused as a whole; the next one is the last.
	groups [][]string
	// denied is the number of instances refused for lack of permission; granted is true if it does not lack for all.
	denied  int
	granted bool
}

func (s *search) blame(ids []string, err error) {
	for _, id := range ids {
		s.failed[id] = err
	}
	if isDenied(err) {
		s.denied += len(ids)
	}
}

// split calls for a group and, if it is refused because of some of it, puts back what is left of it.
func (s *search) split(group []string) {
	s.calls--
	err := s.call(group)
	switch named := namedBy(err, group); {
	case err == nil:
		s.granted = true
	case len(group) == 1:
		s.blame(group, err)
	case !isOfSome(err): // Nor would EC2 do the others now.
		s.blame(slices.Concat(append(s.groups, group)...), err)
		s.groups = nil
	case len(named) > 0:
		s.blame(named, alone(err, named))
		s.groups = append(s.groups, without(group, s.failed))
	default:
		half := len(group) / 2
		s.groups = append(s.groups, group[half:], group[:half])
	}
}

// probe calls for one instance of those that are left, a random one, so that in repeated calls each is one time the one. If it is
// denied too, all are.
func (s *search) probe() {
	left := slices.Concat(s.groups...)
	s.calls--
	one := left[rand.IntN(len(left))]
	err := s.call([]string{one})
	if isDenied(err) {
		s.blame(left, driver.NewAuthError(s.operation, unauthorizedOperation, errors.New(
			"EC2 denies it for one instance after the other: allow ec2:"+s.operation)))
		s.groups = nil
		return
	}
	s.granted = true // What is terminated now is asked for once more with its group, which does no harm.
}

const unauthorizedOperation = "UnauthorizedOperation"

func isDenied(err error) bool {
	code, _ := codeOf(err)
	return code == unauthorizedOperation
}

// isOfSome returns whether EC2 refuses a call as a whole because of some of its instances: it does not know them, they are
// protected, or a policy with a condition on tags excepts them.
func isOfSome(err error) bool {
	code, _ := codeOf(err)
	return driver.IsNotFound(err) || driver.IsTerminal(err) || isDenied(err) ||
		driver.IsRefused(err) && code != "" // Without a code the call has not reached EC2.
}

// namedBy returns those of the IDs that stand in the message of the error.
func namedBy(err error, ids []string) []string {
	if err == nil {
		return nil
	}
	words := strings.FieldsFunc(err.Error(), func(c rune) bool { return !strings.ContainsRune(idCharacters, c) })
	var named []string
	for _, id := range ids {
		if slices.Contains(words, id) {
			named = append(named, id)
		}
	}
	return named
}

const idCharacters = "-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// alone is the error about one of several named IDs: it must not show the others, which may be of other tenants.
func alone(err error, named []string) error {
	var e *driver.Error
	if len(named) == 1 || !errors.As(err, &e) {
		return err
	}
	one := *e
	one.Err = errors.New("EC2 refuses the call because of this instance and others")
	return &one
}

func without(ids []string, failed map[string]error) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return failed[id] != nil })
}
