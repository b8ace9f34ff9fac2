package external_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/field"
	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

// TestWhatIsSaidOfAnObjectThatCannotBeUsed: of what an event ends, and of a failure.
func TestWhatIsSaidOfAnObjectThatCannotBeUsed(t *testing.T) {
	const isFalse, unknown = metav1.ConditionFalse, metav1.ConditionUnknown
	kind := schema.GroupKind{Group: group, Kind: "Thing"}
	for name, test := range map[string]struct {
		err       error
		status    metav1.ConditionStatus
		reason    string
		message   string
		expected  bool
		notSynced bool
	}{
		"no kind": {
			err:    &version.NoCRDError{GroupKind: kind, CRD: things},
			status: isFalse, reason: external.CRDMissingReason, message: things, expected: true,
		},
		"no contract": {
			err:    &version.NoContractError{GroupKind: kind, CRD: things},
			status: isFalse, reason: external.CRDMissingReason, message: things, expected: true,
		},
		"not served": {
			err:    &version.NotServedError{GroupKind: kind, CRD: things, Version: "v7"},
			status: unknown, reason: external.CRDMissingReason, message: "v7", expected: true,
		},
		"owned elsewhere": {
			err: &external.OwnedElsewhereError{Object: "Thing ns/t"}, status: isFalse, reason: external.OwnedElsewhereReason, message: "Thing ns/t",
			expected: true,
		},
		"being read": {
			err: &external.NotSyncedError{}, status: unknown, reason: clusterv1.InternalErrorReason, message: "cannot be read yet",
			expected: true, notSynced: true,
		},
		"being read for long": {
			err: &external.NotSyncedError{Overdue: true}, status: unknown, reason: clusterv1.InternalErrorReason, message: "cannot be read yet",
			expected: true,
		},
		"a field of another type": {
			err: &field.TypeError{Object: "Thing ns/t"}, status: unknown, reason: clusterv1.InvalidConditionReportedReason, message: "Thing ns/t",
			expected: true,
		},
		"a condition of another shape": {
			err:    &field.ConditionError{Message: "is no list"},
			status: unknown, reason: clusterv1.InvalidConditionReportedReason, message: "is no list",
			expected: true,
		},
		"no object": {
			err:    apierrors.NewNotFound(schema.GroupResource{}, "t"),
			status: isFalse, reason: clusterv1.ObjectDoesNotExistReason, message: "Thing t does not exist", expected: true,
		},
		"a failure": {
			err: errors.New("refused"), status: unknown, reason: clusterv1.InternalErrorReason, message: "Thing t cannot be read or owned: refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := errors.Wrap(test.err, "reading")
			ref := clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: "Thing", Name: "t"}
			got := external.UnusableCondition("InfrastructureReady", ref, test.err)
			g.Expect([]string{got.Type, string(got.Status), got.Reason}).To(Equal([]string{"InfrastructureReady", string(test.status), test.reason}))
			g.Expect(got.Message).To(ContainSubstring(test.message))
			g.Expect(strings.Contains(got.Message, "cannot be read or owned")).To(Equal(!test.expected))
			g.Expect(external.UnusableCondition("InfrastructureReady", ref, err).Reason).To(Equal(test.reason), "also when it is wrapped")
			g.Expect(external.Expected(err)).To(Equal(test.expected))
			g.Expect(external.NotSynced(err)).To(Equal(test.notSynced))
		})
	}
}

func TestWithMessage(t *testing.T) {
	for _, test := range []struct{ has, more, want string }{
		{"a", "b", "b\na"}, {"a", "", "a"}, {"", "b", "b"}, {"", "", ""},
	} {
		NewWithT(t).Expect(external.WithMessage(metav1.Condition{Message: test.has}, test.more).Message).To(Equal(test.want))
	}
}

func TestReasonOr(t *testing.T) {
	g, longest := NewWithT(t), strings.Repeat("a", 1024)
	g.Expect(external.ReasonOr("Reason", "Otherwise")).To(Equal("Reason"))
	g.Expect(external.ReasonOr(longest, "Otherwise")).To(Equal(longest))
	g.Expect(external.ReasonOr(longest+"a", "Otherwise")).To(Equal("Otherwise"), "the API refuses it")
	g.Expect(external.ReasonOr("", "Otherwise")).To(Equal("Otherwise"))
}
