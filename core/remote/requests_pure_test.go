package remote

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shared "millwright.dev/contracts/remote"
)

func TestErrorsOfAnotherUID(t *testing.T) {
	invalid := func(path *field.Path) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "n", field.ErrorList{field.Invalid(path, "u", "field is immutable")})
	}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"another UID":       {invalid(field.NewPath("metadata", "uid")), true},
		"wrapped":           {fmt.Errorf("patching: %w", invalid(field.NewPath("metadata", "uid"))), true},
		"another field":     {invalid(field.NewPath("spec", "providerID")), false},
		"without details":   {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500}}, false},
		"no answer":         {context.DeadlineExceeded, false},
		"a missing Node":    {apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "n"), false},
		"a conflicting one": {apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n", errors.New("changed")), false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(isOfAnotherUID(test.err)).To(Equal(test.want)) })
	}
}

// TestErrorsOfTime: an API server that reports that its time has run out has answered.
func TestErrorsOfTime(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"our deadline":        {fmt.Errorf("getting: %w", context.DeadlineExceeded), true},
		"that of the network": {&url.Error{Op: "Get", Err: late{}}, true},
		"a network's error":   {&url.Error{Op: "Get", Err: errors.New("refused")}, false},
		"the API server's":    {apierrors.NewTimeoutError("later", 1), false},
		"none":                {nil, false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(isTimeout(test.err)).To(Equal(test.want)) })
	}
}

type late struct{}

func (late) Error() string   { return "late" }
func (late) Timeout() bool   { return true }
func (late) Temporary() bool { return false }

// TestLaneCounts: only timeouts in a row have it count as one that is not answered, since the first of them was sent.
func TestLaneCounts(t *testing.T) {
	g := NewWithT(t)
	l := &lane{options: &shared.Options{RequestTimeout: time.Second}}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	steps := []struct{ late, turned, unanswered bool }{
		{true, false, false}, {true, false, false}, {false, false, false},
		{true, false, false}, {true, false, false}, {true, true, true}, {true, false, true},
		{false, true, false}, {false, false, false}, {true, false, false}, {true, false, false}, {false, false, false},
	}
	for i, step := range steps {
		now = now.Add(time.Minute)
		g.Expect(l.count(step.late, now)).To(Equal(step.turned), "%d", i)
		since := time.Time{}
		if step.unanswered {
			since = time.Date(2026, 11, 20, 12, 3, 59, 0, time.UTC)
		}
		g.Expect(l.unansweredSince()).To(Equal(since), "%d", i)
		g.Expect(l.pending(&call{}).Unanswered).To(Equal(step.unanswered), "%d", i)
	}
	g.Expect(l.load().TimedOut).To(BeEquivalentTo(8))
	for _, ends := range []func() bool{func() bool { return l.count(false, now) }, l.rest} {
		for range unansweredLimit {
			l.count(true, now)
		}
		g.Expect(ends()).To(BeTrue(), "just as many as there must be")
		g.Expect(ends()).To(BeFalse())
	}
}

// TestLaneForgetsAnswers that no caller reads, and no request that is under way or waits.
func TestLaneForgetsAnswers(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	l := &lane{options: &shared.Options{Clock: clocktesting.NewFakeClock(now)}, ctx: t.Context(), running: 2}
	l.calls = map[types.NamespacedName]*call{
		owner("old"): {done: now.Add(-answerLife - 1)}, owner("young"): {done: now.Add(-answerLife)}, owner("sent"): {sent: true},
	}
	ended := &call{owner: asking("ended")}
	l.finish(ended, nil, nil, false)
	g.Expect(l.calls).To(HaveLen(2))
	g.Expect(l.calls).To(And(HaveKey(owner("young")), HaveKey(owner("sent"))))
}

// TestLookupsForget: an owner that withdraws is woken by nothing, and answers that no caller reads are dropped; a connection that has
// ended reads nothing.
func TestLookupsForget(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakeClock(time.Now())
	l := &lookups{options: &shared.Options{Clock: now}, running: true}
	_, err := l.ask(asking("a"), "id")
	g.Expect(err).To(BeAssignableToTypeOf(&shared.NotConnectedError{}), "it has not begun")
	ctx, cancel := context.WithCancel(t.Context())
	l.begin(ctx)
	for _, name := range []string{"a", "b", "c"} {
		_, err = l.ask(asking(name), "id")
		g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}))
	}
	l.withdraw(owner("b"))
	g.Expect(l.take(ctx)).To(BeTrue())
	_, _ = l.ask(asking("late"), "id")
	refused := errors.New("refused")
	g.Expect(l.answer(nil, context.DeadlineExceeded)).To(BeEmpty())
	g.Expect([]bool{l.known[owner("a")].late, l.known[owner("late")].late}).To(Equal([]bool{true, false}), "it was not asked for that one")
	delete(l.known, owner("late"))
	l.take(ctx)
	_, _ = l.ask(asking("late"), "id")
	g.Expect(l.answer(nil, refused)).To(ConsistOf(owner("a"), owner("c")), "who came late has to wait")
	l.running = true
	_, err = l.ask(asking("a"), "id")
	g.Expect(err).To(MatchError(refused))
	_, err = l.ask(asking("a"), "id")
	g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}), "an error is handed out once")
	_, err = l.ask(asking("a"), "another")
	g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}))
	g.Expect(l.known[owner("a")].id).To(Equal("another"))

	now.Step(answerLife)
	l.answer(nil, nil)
	g.Expect(l.known).To(HaveKey(owner("c")))
	now.Step(1)
	l.answer(nil, nil)
	g.Expect(l.known).NotTo(HaveKey(owner("c")))
	cancel()
	_, err = l.ask(asking("a"), "id")
	g.Expect(err).To(BeAssignableToTypeOf(&shared.NotConnectedError{}))
	g.Expect(l.take(ctx)).To(BeFalse())
}

// TestDirectRequests: a patch has what has changed, is for the Node that was read and is judged by what the API server answers.
func TestDirectRequests(t *testing.T) {
	before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "1"}}}
	after := before.DeepCopy()
	after.Labels["b"] = "2"
	refusal := errors.New("not before Monday")
	const sent = `{"metadata":{"labels":{"b":"2"},"uid":"u"}}`
	judge := func(err error) func(*corev1.Node) error { return func(*corev1.Node) error { return err } }
	isOther := apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "n",
		field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "u", "")})
	for name, test := range map[string]struct {
		patch  NodePatch
		answer error
		sent   string
		want   error
	}{
		"a change": {NodePatch{Before: before, After: after}, nil, sent, nil},
		"one with a lock": {
			NodePatch{Before: before, After: after, Lock: true}, nil, `{"metadata":{"labels":{"b":"2"},"resourceVersion":"7","uid":"u"}}`, nil,
		},
		"it is refused":     {NodePatch{Before: before, After: after}, refusal, sent, refusal},
		"what came of it":   {NodePatch{Before: before, After: after, Verify: judge(refusal)}, nil, sent, refusal},
		"it is judged well": {NodePatch{Before: before, After: after, Verify: judge(nil)}, nil, sent, nil},
		"another Node now":  {NodePatch{Before: before, After: after}, isOther, sent, &ReplacedError{Node: "n", UID: "u"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, got := NewWithT(t), ""
			c := DirectConnection(interceptor.NewClient(fake.NewClientBuilder().WithObjects(before.DeepCopy()).Build(), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
					data, err := p.Data(o)
					g.Expect(err).NotTo(HaveOccurred())
					if got = string(data); test.answer != nil {
						return test.answer
					}
					return c.Patch(ctx, o, p, options...)
				},
			}))
			node, err := c.PatchNode(asking("m"), test.patch)
			g.Expect(got).To(MatchJSON(test.sent))
			if test.want != nil {
				g.Expect(err).To(MatchError(test.want))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(node.Labels).To(Equal(after.Labels))
			}
			g.Expect(c.written.newest(before).Labels).To(HaveLen(map[bool]int{true: 2, false: 1}[test.answer == nil]), "what was written counts")
		})
	}
}

// TestWhatWasWrittenGoes with its Node, and says nothing of another one.
func TestWhatWasWrittenGoes(t *testing.T) {
	g := NewWithT(t)
	node := func(name, version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: version}}
	}
	w := &written{}
	w.add(node("a", "10"), "9")
	w.add(node("b", "20"), "9")
	g.Expect(w.newest(node("a", "9")).ResourceVersion).To(Equal("10"))
	g.Expect(w.newest(node("b", "9")).ResourceVersion).To(Equal("20"))
	w.drop("a")
	g.Expect(w.newest(node("a", "9")).ResourceVersion).To(Equal("9"))
	w.newest(node("b", "20"))
	g.Expect(w.nodes).To(BeEmpty(), "the cache has it")
}

// TestChangesOfOddPatches: labels and annotations are those of metadata.
func TestChangesOfOddPatches(t *testing.T) {
	g := NewWithT(t)
	keys := func(patch string) (found []string) {
		changes, err := changesOf([]byte(patch))
		g.Expect(err).NotTo(HaveOccurred())
		for _, change := range changes {
			found = append(found, change.key()+" "+change.String())
		}
		return found
	}
	g.Expect(keys(`{"metadata":{"annotations":{"a":"b"}}}`)).To(ConsistOf(`metadata/annotations/a="b" annotation a`))
	g.Expect(keys(`{"metadata":{"finalizers":["f"]}}`)).To(ConsistOf(`metadata/finalizers=["f"] finalizers`))
	g.Expect(keys(`{"spec":{"labels":{"a":"b"},"uid":"x"}}`)).To(ConsistOf(`spec/labels={"a":"b"} labels`, `spec/uid="x" uid`))
	for _, wrong := range []string{`[]`, `{"metadata":{"labels":["a"]}}`} {
		_, err := changesOf([]byte(wrong))
		g.Expect(err).To(HaveOccurred(), wrong)
	}
}
