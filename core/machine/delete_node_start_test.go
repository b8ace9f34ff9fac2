package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestNodeDeletionStart: how long the Machine has been deleted before does not count. A time to come would hold it until then, and
// is none that the core has recorded.
func TestNodeDeletionStart(t *testing.T) {
	for name, test := range map[string]struct {
		recorded string
		want     time.Time
	}{
		"not tried yet":   {"", noon},
		"tried before":    {"2026-11-20T11:59:00Z", noon.Add(-time.Minute)},
		"a time to come":  {"2099-01-01T00:00:00Z", noon},
		"no time at all":  {"yesterday", noon},
		"of another zone": {"2026-11-20T12:59:00+01:00", noon.Add(-time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{Base: base{Now: noon, Object: &clusterv1.Machine{}}}
			s.Object.DeletionTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
			if test.recorded != "" {
				s.Object.Annotations = map[string]string{NodeDeletionStartAnnotation: test.recorded}
			}
			NewWithT(t).Expect(s.nodeDeletionStart()).To(BeTemporally("==", test.want))
		})
	}
}
