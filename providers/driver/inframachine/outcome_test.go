package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestOutcomes(t *testing.T) {
	refused := errors.New("refused")
	conflict := errors.Wrap(apierrors.NewConflict(schema.GroupResource{}, "m", refused), "writing")
	for name, test := range map[string]struct {
		outcome outcome
		result  ctrl.Result
		err     error
	}{
		"proceed":        {proceed(), ctrl.Result{}, nil},
		"done":           {done(), ctrl.Result{}, nil},
		"until an event": {untilEvent(), ctrl.Result{}, nil},
		"until later":    {untilDeadline(time.Minute), ctrl.Result{RequeueAfter: time.Minute}, nil},
		"until just now": {untilDeadline(-time.Minute), ctrl.Result{RequeueAfter: time.Millisecond}, nil},
		"failed":         {failed(refused), ctrl.Result{}, refused},
		"lost a race":    {failed(conflict), ctrl.Result{RequeueAfter: conflictRetry}, nil},
	} {
		result, err := test.outcome.result()
		g := NewWithT(t)
		g.Expect(result).To(Equal(test.result), name)
		if test.err == nil {
			g.Expect(err).NotTo(HaveOccurred(), name)
		} else {
			g.Expect(err).To(MatchError(test.err), name)
		}
	}
	NewWithT(t).Expect(proceed().proceed).To(BeTrue())
}
