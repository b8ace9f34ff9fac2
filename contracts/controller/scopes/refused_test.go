package scopes_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
)

// TestSave_StatusRefused_RecordsWarning: only a status that the API server refuses is reported by an event; everything else is reported by
// the status, or passes.
func TestSave_StatusRefused_RecordsWarning(t *testing.T) {
	for name, test := range map[string]struct {
		object, status error
		recorded       bool
	}{
		"the status is refused":    {status: forbidden, recorded: true},
		"a webhook denies it":      {status: deniedAsNotFound, recorded: true},
		"a lost race":              {status: conflict},
		"the object is gone":       {status: notFound},
		"a lost connection":        {status: errors.New("connection reset")},
		"the metadata are refused": {object: forbidden},
		"nothing is refused":       {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, recorder := newServer(g, stored()), events.NewFakeRecorder(1)
			s.object, s.status = test.object, test.status
			b := s.begin(g, writer{Recorder: recorder})
			b.Object.Spec.ProviderID, b.Object.Status.Phase = "p", "Running"
			_, _ = b.Save(t.Context(), func(error) bool { return true })
			if !test.recorded {
				g.Expect(recorder.Events).To(BeEmpty())
				return
			}
			g.Expect(recorder.Events).To(Receive(And(HavePrefix("Warning StatusRefused "), HaveSuffix(test.status.Error()))))
		})
	}
}
