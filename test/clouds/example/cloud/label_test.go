package cloud

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

// Labels are set one resource at a time: a machine and its parts begin with the same. The others stay, and a machine counts as what it was
// created with.
func TestLabelsAreSetOneResourceAtATime(t *testing.T) {
	g := NewWithT(t)
	begin := map[string]string{"owner": "m", "lineage": "a"}
	m, p := begin, begin
	g.Expect(relabel(&m, request{body: []byte(`{"labels":{"lineage":"b"}}`)})).To(BeNil())
	g.Expect(m).To(Equal(map[string]string{"owner": "m", "lineage": "b"}))
	g.Expect(p).To(Equal(map[string]string{"owner": "m", "lineage": "a"}))
	var none map[string]string
	g.Expect(relabel(&none, request{body: []byte(`{"labels":{"lineage":"b"}}`)})).To(BeNil())
	g.Expect(none).To(HaveLen(1))
	for _, body := range []string{"", "{", `{"labels":{"":"b"}}`, `{"labels":{"lineage":"B/"}}`} {
		refused := relabel(&m, request{body: []byte(body)})
		g.Expect(refused).NotTo(BeNil(), body)
		g.Expect(refused.status).To(Equal(http.StatusBadRequest))
	}
	g.Expect(m).To(HaveKeyWithValue("lineage", "b"))
}
