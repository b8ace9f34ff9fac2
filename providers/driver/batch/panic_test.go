package batch

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

// TestACallThatPanicsIsAnErrorOfAll: nothing but this package could recover from it, so the process would end. The next call is
// made as ever.
func TestACallThatPanicsIsAnErrorOfAll(t *testing.T) {
	r := newRig(t)
	r.answers(func(driver.Handle) driver.Answer[string] { panic("broken") })
	r.start(t.Context())
	r.ask("r", "a", "b")
	r.passes(100 * time.Millisecond)
	for _, name := range []string{"a", "b"} {
		err := r.take("r", name).Err
		r.Expect(err).To(MatchError(ContainSubstring("panicked")))
		r.Expect(err.Error()).NotTo(ContainSubstring("broken"), "the text of a panic is for the log")
		r.Expect(driver.ClassOf(err)).To(Equal(driver.ClassUnknown), "it may have taken effect")
	}

	r.answers(nil)
	r.ask("r", "c")
	r.passes(time.Second)
	r.Expect(r.take("r", "c").Value).To(Equal("of c"))
}
