package instance

import (
	"context"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// imageVersions are the API versions of images by the kind in their resource IDs.
var imageVersions = []struct{ kind, action, version string }{
	{"/galleries/", "GalleryImageVersions", "2024-03-03"}, {"/images/", "Images", "2024-07-01"},
}

// imageSize is the size in GiB of the OS disk that the image makes. It is 0 if it cannot be read: the image is of the marketplace or of
// another tenant's gallery, its version is the latest, or the provider may not read it. Machines launch all the same.
func (d *Driver) imageSize(ctx context.Context, scope driver.Scope, spec *infrav1.AzureMachineSpec) int64 {
	id := spec.Image.ID
	if id == "" || strings.Contains(id, "/galleries/") && (!strings.Contains(id, "/versions/") || strings.HasSuffix(id, "/latest")) {
		return 0
	}
	key := scope.Identity + "/" + strings.ToLower(id)
	d.sizes.mu.Lock()
	known := d.sizes.images[key]
	d.sizes.mu.Unlock()
	if known > 0 {
		return known
	}
	s, _, err := d.in(ctx, scope)
	if err != nil {
		return 0
	}
	size, err := s.network.imageSize(ctx, id)
	if err != nil {
		return 0
	}
	d.sizes.mu.Lock()
	defer d.sizes.mu.Unlock()
	d.sizes.images[key] = size
	return size
}

// imageSize reads an image by its resource ID, which may be of another subscription.
func (n *network) imageSize(ctx context.Context, id string) (int64, error) {
	of := imageVersions[1]
	if strings.Contains(id, imageVersions[0].kind) {
		of = imageVersions[0]
	}
	address := strings.TrimSuffix(n.client.Endpoint(), "/") + id + "?api-version=" + of.version
	request, err := runtime.NewRequest(named(ctx, of.action, "Get"), http.MethodGet, address)
	if err != nil {
		return 0, err
	}
	response, err := n.client.Pipeline().Do(request)
	if err != nil {
		return 0, err
	}
	if !runtime.HasStatusCode(response, http.StatusOK) {
		return 0, runtime.NewResponseError(response)
	}
	var image struct {
		Properties struct {
			StorageProfile struct {
				OSDisk struct {
					SizeGB int64 `json:"diskSizeGB"`
				} `json:"osDisk"`
				OSDiskImage struct {
					SizeGB int64 `json:"sizeInGB"`
				} `json:"osDiskImage"`
			} `json:"storageProfile"`
		} `json:"properties"`
	}
	err = runtime.UnmarshalAsJSON(response, &image)
	p := image.Properties.StorageProfile
	return max(p.OSDisk.SizeGB, p.OSDiskImage.SizeGB), err
}
