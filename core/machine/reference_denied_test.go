package machine

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestADenialSaysWhyAnObjectCannotBeUsed, also where the webhook calls it a conflict; a race that was lost says nothing about the object.
func TestADenialSaysWhyAnObjectCannotBeUsed(t *testing.T) {
	g := NewWithT(t)
	r := &reference{}
	lost := errors.Wrap(apierrors.NewConflict(schema.GroupResource{}, "m", nil), "owning Infra m")
	g.Expect(r.failed(lost).Err()).To(MatchError(lost))
	g.Expect(r.err).NotTo(HaveOccurred())
	denied := errors.Wrap(&apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: `admission webhook "x.example.com" denied the request: no`,
	}}, "owning Infra m")
	g.Expect(r.failed(denied).Err()).To(MatchError(denied))
	g.Expect(r.err).To(MatchError(denied))
}
