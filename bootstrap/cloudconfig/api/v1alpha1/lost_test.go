package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/contracts/bootstrapconfig"
)

// TestLostReasons: lost bootstrap data are reported by the reason of the contract.
func TestLostReasons(t *testing.T) {
	g := NewWithT(t)
	g.Expect(bootstrapconfig.LostReasons).To(HaveKey(v1alpha1.DataSecretLostReason))
	g.Expect(bootstrapconfig.LostReasons).To(HaveLen(1))
}
