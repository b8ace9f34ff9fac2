package remediation_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

// TestAnAttemptThatDiesBeforeItBegins keeps no place for longer than any other decision that was not recorded: the API server is asked, and shows
// nothing. To end an attempt twice ends no other one.
func TestAnAttemptThatDiesBeforeItBegins(t *testing.T) {
	g := NewWithT(t)
	slots, clock := &remediation.Slots{}, testingclock.NewFakeClock(Epoch)
	view := seen(map[types.UID][]remediation.Set{"d": {{Replicas: 2}}})
	verify(slots, view, Epoch)
	over := func() {}
	die := func() {
		defer func() { g.Expect(recover()).To(Equal("dies")) }()
		decision := slots.Decide(inCluster, "d", view, asking(1, 9, Epoch, "a"))
		g.Expect(allowed(decision)).To(Equal([]string{"a"}))
		over = slots.Attempt(inCluster, "d", decision, clock)
		defer over()
		panic("dies")
	}
	die()
	g.Expect(allowed(decide(slots, "d", view, asking(1, 9, Epoch.Add(time.Second), "b")))).To(BeEmpty(), "it may be recorded for all that is known")
	later := Epoch.Add(remediation.UnseenTimeout)
	verify(slots, view, later)
	g.Expect(allowed(slots.Decide(inCluster, "d", view, asking(1, 9, later, "a")))).To(Equal([]string{"a"}))
	over()
	g.Expect(slots.Doubt(inCluster, view, later.Add(remediation.UnseenTimeout)).Any()).To(BeFalse(), "the second attempt goes on")
}
