package identity

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
)

// Credentials of another account are refused before they are used; while no account is known the cloud is not asked.
func TestVerifyAccount(t *testing.T) {
	unreachable, moved := errors.New("unreachable"), errors.New("moved")
	for name, tc := range map[string]struct {
		known, is string
		verify    error
		asked     bool
		want      error
	}{
		"no account is known yet":          {is: "a"},
		"the same account":                 {known: "a", is: "a", asked: true},
		"another account":                  {known: "a", is: "b", asked: true, want: moved},
		"the cloud does not answer":        {known: "a", verify: unreachable, asked: true, want: unreachable},
		"an answer with no account at all": {known: "a", asked: true, want: moved},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			asked := false
			err := VerifyAccount(t.Context(), tc.known,
				func(context.Context) (Holder, error) { asked = true; return Holder{Account: tc.is}, tc.verify },
				func(was, is string) error {
					g.Expect([]string{was, is}).To(Equal([]string{tc.known, tc.is}))
					return moved
				})
			g.Expect(asked).To(Equal(tc.asked))
			if tc.want == nil {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(tc.want))
		})
	}
}
