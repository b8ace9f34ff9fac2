package instance

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// TestAllTypes_QuotaThatNoOtherSizeHelps_IsTrue: those on addresses, disks and machines, and not those on cores.
func TestAllTypes_QuotaThatNoOtherSizeHelps_IsTrue(t *testing.T) {
	const approved = "Operation could not be completed as it results in exceeding approved "
	for _, row := range []struct {
		code, message string
		expected      bool
	}{
		{"PublicIPCountLimitReached", "Cannot create more than 20 public IP addresses for this subscription in this region.", true},
		{"StaticPublicIPCountLimitReached", "", true},
		{"OperationNotAllowed", approved + "PremiumDiskCount quota.", true},
		{"QuotaExceeded", approved + "StandardSSDDiskCount quota.", true},
		{"OperationNotAllowed", approved + "Virtual Machines quota.", true},
		{"OperationNotAllowed", approved + "standardDSv5Family Cores quota.", false},
		{"OperationNotAllowed", approved + "Total Regional Cores quota.", false},
		{"QuotaExceeded", "", false},
		{"AllocationFailed", "", false},
	} {
		early := &azcore.ResponseError{StatusCode: http.StatusConflict, ErrorCode: row.code, RawResponse: &http.Response{
			StatusCode: http.StatusConflict, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"error": {"code": %q, "message": %q}}`, row.code, row.message))),
		}}
		NewWithT(t).Expect(classify("VirtualMachines_CreateOrUpdate", early)).To(HaveField("AllTypes", row.expected), "%v", row)
		late := withView(driver.Instance{State: driverv1.InstanceFailed}, view{code: row.code, message: row.message})
		NewWithT(t).Expect(late).To(HaveField("RefusedAllTypes", row.expected), "%v, late", row)
	}
}
