package machine

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// TestANodeIsGone: when the API server says so, and not when a webhook denies its deletion with the same code.
func TestANodeIsGone(t *testing.T) {
	held := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"example.com/held"}}}
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: `admission webhook "x.example.com" denied the request: no`,
	}}
	for name, test := range map[string]struct {
		node   *corev1.Node
		answer error
		gone   bool
	}{
		"deleted":               {&corev1.Node{}, nil, true},
		"held by others":        {held, nil, false},
		"gone before":           {held, apierrors.NewNotFound(nodeResource, "n"), true},
		"denied":                {&corev1.Node{}, denied, false},
		"no answer":             {&corev1.Node{}, context.DeadlineExceeded, false},
		"of another Node by it": {&corev1.Node{}, apierrors.NewConflict(nodeResource, "n", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(nodeIsGone(test.node, test.answer)).To(Equal(test.gone))
		})
	}
}
