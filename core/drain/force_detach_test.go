package drain

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestStep_Forced_LeavesVolumesAttached: the machine still runs.
func TestStep_Forced_LeavesVolumesAttached(t *testing.T) {
	w := newWorld(t, realClock)
	va := w.volume("v", w.node.Name)
	w.pod("a")
	force := func(r *Request) { r.Mode = Forced }
	w.eventually(func(g Gomega) {
		result := w.step(force)
		g.Expect(result.Done).To(BeTrue(), result.Message)
		g.Expect(result.Volumes).To(HaveLen(1), "they are reported as attached")
	})
	w.g.Expect(direct.Get(t.Context(), client.ObjectKeyFromObject(va), va)).To(Succeed())
	w.g.Expect(va.DeletionTimestamp).To(BeNil())
	w.g.Expect(w.requests.count()).NotTo(HaveKey("delete volumeattachment"))
}

// TestStep_Detach_DeletesVolumeAttachmentsOfItsNodeAlone reads no pods, and leaves other Nodes' volumes.
func TestStep_Detach_DeletesVolumeAttachmentsOfItsNodeAlone(t *testing.T) {
	w := newWorld(t, realClock)
	va, other := w.volume("v", w.node.Name), w.volume("w", w.node.Name+"-other")
	detach := func(r *Request) { r.Mode = Detach }
	w.eventually(func(g Gomega) { g.Expect(w.step(detach).Done).To(BeTrue()) })
	w.g.Expect(direct.Get(t.Context(), client.ObjectKeyFromObject(va), va)).To(Succeed())
	w.g.Expect(va.DeletionTimestamp).NotTo(BeNil())
	w.g.Expect(direct.Get(t.Context(), client.ObjectKeyFromObject(other), other)).To(Succeed())
	w.g.Expect(other.DeletionTimestamp).To(BeNil())
	w.g.Expect(w.requests.count()).To(Equal(map[string]int{"watch volumeattachments": 1, "delete volumeattachment": 1}))
}

// TestStep_DetachRefused_ReportsAndEnds: in the words of who refuses it.
func TestStep_DetachRefused_ReportsAndEnds(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	va := w.volume("v", w.node.Name)
	w.requests.setAnswer(func(r *http.Request) *http.Response {
		if r.Method == http.MethodGet {
			return nil
		}
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"the policy says no","code":403}`
		return &http.Response{
			StatusCode: http.StatusForbidden,
			Request:    r,
			Body:       io.NopCloser(bytes.NewBufferString(body)),
			Header:     http.Header{"Content-Type": {"application/json"}},
		}
	})
	detach := func(r *Request) { r.Mode = Detach }
	w.eventually(func(g Gomega) {
		g.Expect(w.step(detach).Message).To(ContainSubstring("cannot delete VolumeAttachment " + va.Name + ": the policy says no"))
	})
	fake.Step(time.Minute)
	w.eventually(func(g Gomega) { g.Expect(w.step(detach).Done).To(BeTrue()) })
}
