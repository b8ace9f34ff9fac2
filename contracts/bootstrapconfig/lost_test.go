package bootstrapconfig_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/contracts/bootstrapconfig"
)

// TestLostReasons covers BC-008.
func TestLostReasons(t *testing.T) {
	NewWithT(t).Expect(bootstrapconfig.LostReasons).To(Equal(map[string]time.Duration{"DataSecretLost": 10 * time.Minute}))
}
