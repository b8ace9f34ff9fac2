package session

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestSessionNames(t *testing.T) {
	g := NewWithT(t)
	g.Expect(sessionName("team-a")).To(Equal("millwright-team-a"))
	long := sessionName(strings.Repeat("a", 253))
	g.Expect(long).To(And(HaveLen(64), MatchRegexp(`^[a-zA-Z0-9_+=,.@-]{2,64}$`)))
	g.Expect(sessionName(strings.Repeat("a", 252))).NotTo(Equal(long), "two identities have two names")
}
