package arm_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	. "github.com/onsi/gomega"

	simulated "millwright.dev/test/clouds/azure/arm"
)

// TestParts: those that are not to be deleted with a machine outlive it, and are deleted one by one.
func TestParts(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	a.running("m1")
	disk := ""
	for _, r := range a.server.Resources() {
		if r.Kind == "networkInterfaces" {
			var refused struct{ Error struct{ Code string } }
			status, _ := a.call(http.MethodDelete, r.ID+"?api-version=1", &refused)
			a.Expect([]any{status, refused.Error.Code}).To(Equal([]any{400, "NicInUse"}))
		}
		if r.Kind == "disks" {
			disk = r.Name
		}
	}
	_, err := a.disks.BeginDelete(a.ctx, simulated.DefaultGroup, disk, nil)
	a.Expect(err).To(haveCode(409, "OperationNotAllowed"))
	a.Expect(a.server.Vanish(a.id("m1"))).To(Succeed())
	a.Expect(a.kinds()).To(Equal(map[string]int{"disks": 1}))
	_, err = a.disks.BeginDelete(a.ctx, simulated.DefaultGroup, disk, nil)
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(a.kinds()).To(BeEmpty())
	_, err = a.disks.BeginDelete(a.ctx, simulated.DefaultGroup, disk, nil)
	a.Expect(err).NotTo(HaveOccurred(), "204: there is none")
}

// TestMetadata: IMDS has user data and no custom data, which is on the provisioning medium.
func TestMetadata(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	a.running("m1", func(vm *armcompute.VirtualMachine) { vm.Properties.UserData = ptr("aGVsbG8=") })
	service := httptest.NewServer(a.server.Metadata(a.server.Resources()[0].VMID))
	defer service.Close()
	get := func(path, header string) (int, string) {
		request, err := http.NewRequestWithContext(a.ctx, http.MethodGet, service.URL+path, http.NoBody)
		a.Expect(err).NotTo(HaveOccurred())
		if header != "" {
			request.Header.Set("Metadata", header)
		}
		response, err := http.DefaultClient.Do(request)
		a.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = response.Body.Close() }()
		raw, err := io.ReadAll(response.Body)
		a.Expect(err).NotTo(HaveOccurred())
		return response.StatusCode, string(raw)
	}
	status, _ := get("/metadata/instance?api-version=2021-02-01", "")
	a.Expect(status).To(Equal(http.StatusBadRequest))
	_, text := get("/metadata/instance/compute/userData?api-version=2021-02-01&format=text", "true")
	a.Expect(text).To(Equal("aGVsbG8="))
	_, text = get("/metadata/instance?api-version=2021-02-01", "true")
	var document struct {
		Compute struct{ Name, CustomData, Zone string }
	}
	a.Expect(json.Unmarshal([]byte(text), &document)).To(Succeed())
	a.Expect(document.Compute.Name + document.Compute.CustomData + document.Compute.Zone).To(Equal("m11"))
	status, _ = get("/ovf-env.xml?api-version=2021-02-01", "true")
	a.Expect(status).To(Equal(http.StatusNotFound), "no program in the machine can ask for it later")
	media := a.server.Metadata(a.server.Resources()[0].VMID).Media()
	a.Expect(string(media["ovf-env.xml"])).To(ContainSubstring("<CustomData>" + *body().Properties.OSProfile.CustomData + "</CustomData>"))
	a.Expect(a.server.Metadata("another").Media()).To(BeEmpty())
}
