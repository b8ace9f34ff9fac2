package instance

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/pkg/errors"
)

// network calls the few operations of Microsoft.Network that machines need. The SDK's module for it takes 1.8 GB of memory and a minute of
// a processor to compile, more than all the rest of the program; authentication, errors and user agent are the SDK's all the same.
type network struct {
	client       *arm.Client
	subscription string
}

// networkVersion is the API version of Microsoft.Network, also for the interfaces that launches describe.
const networkVersion = "2024-05-01"

// The kinds of resources that are called for.
const (
	kindInterfaces = "networkInterfaces"
	kindAddresses  = "publicIPAddresses"
)

// networkPart is an interface or a public address, as far as it is needed.
type networkPart struct {
	ID         string             `json:"id"`
	Name       string             `json:"name"`
	Tags       map[string]*string `json:"tags"`
	Properties struct {
		ProvisioningState string       `json:"provisioningState"`
		VirtualMachine    *reference   `json:"virtualMachine"`
		Primary           bool         `json:"primary"`
		IPConfiguration   *reference   `json:"ipConfiguration"`
		IPAddress         string       `json:"ipAddress"`
		IPConfigurations  []ipSettings `json:"ipConfigurations"`
	} `json:"properties"`
}

type reference struct {
	ID string `json:"id"`
}

type ipSettings struct {
	Properties struct {
		Primary          bool       `json:"primary"`
		PrivateIPAddress string     `json:"privateIPAddress"`
		PublicIPAddress  *reference `json:"publicIPAddress"`
	} `json:"properties"`
}

// used is true if it belongs to another one.
func (r *networkPart) used() bool {
	return r.Properties.VirtualMachine != nil || r.Properties.IPConfiguration != nil
}

// failed is true if Azure could not make, or change, it.
func (r *networkPart) failed() bool {
	return strings.EqualFold(r.Properties.ProvisioningState, "Failed")
}

func (n *network) path(group, kind, name string) string {
	elements := []string{n.client.Endpoint(), "subscriptions", url.PathEscape(n.subscription), "resourceGroups", url.PathEscape(group),
		"providers/Microsoft.Network", kind}
	if name != "" {
		elements = append(elements, url.PathEscape(name))
	}
	return strings.Join(elements, "/")
}

// list returns all of a kind in a resource group.
func (n *network) list(ctx context.Context, group, kind string) ([]networkPart, error) {
	ctx = named(ctx, kind, "List")
	var all []networkPart
	for next := n.path(group, kind, "") + "?api-version=" + networkVersion; next != ""; {
		if !n.isOwn(next) {
			return nil, errors.New("the next page of a list is at another address than Azure Resource Manager")
		}
		request, err := runtime.NewRequest(ctx, http.MethodGet, next)
		if err != nil {
			return nil, err
		}
		var page struct {
			Value    []networkPart `json:"value"`
			NextLink string        `json:"nextLink"`
		}
		response, err := n.client.Pipeline().Do(request)
		if err != nil {
			return nil, err
		}
		if !runtime.HasStatusCode(response, http.StatusOK) {
			return nil, runtime.NewResponseError(response)
		}
		if err := runtime.UnmarshalAsJSON(response, &page); err != nil {
			return nil, err
		}
		all, next = append(all, page.Value...), page.NextLink
	}
	return all, nil
}

// get returns one.
func (n *network) get(ctx context.Context, group, kind, name string) (networkPart, error) {
	var part networkPart
	err := n.do(named(ctx, kind, "Get"), http.MethodGet, group, kind, name, nil, &part, http.StatusOK)
	return part, err
}

// put creates or replaces one.
func (n *network) put(ctx context.Context, group, kind, name string, body any) (networkPart, error) {
	var part networkPart
	err := n.do(named(ctx, kind, "CreateOrUpdate"), http.MethodPut, group, kind, name, body, &part, http.StatusOK, http.StatusCreated)
	return part, err
}

// end asks for the end of one.
func (n *network) end(ctx context.Context, group, kind, name string) error {
	ctx = named(ctx, kind, "Delete")
	return n.do(ctx, http.MethodDelete, group, kind, name, nil, nil, http.StatusOK, http.StatusAccepted, http.StatusNoContent)
}

// tag replaces the tags of one.
func (n *network) tag(ctx context.Context, group, kind, name string, tags map[string]*string) error {
	return n.do(named(ctx, kind, "UpdateTags"), http.MethodPatch, group, kind, name, map[string]any{"tags": tags}, nil, http.StatusOK)
}

// do makes a call; out takes the answer if it is not nil.
func (n *network) do(ctx context.Context, method, group, kind, name string, body, out any, success ...int) error {
	request, err := runtime.NewRequest(ctx, method, n.path(group, kind, name))
	if err != nil {
		return err
	}
	request.Raw().URL.RawQuery = "api-version=" + networkVersion
	if body != nil {
		if err := runtime.MarshalAsJSON(request, body); err != nil {
			return err
		}
	}
	response, err := n.client.Pipeline().Do(request)
	if err != nil {
		return err
	}
	defer runtime.Drain(response)
	if !runtime.HasStatusCode(response, success...) {
		return runtime.NewResponseError(response)
	}
	if out == nil {
		return nil
	}
	return runtime.UnmarshalAsJSON(response, out)
}
