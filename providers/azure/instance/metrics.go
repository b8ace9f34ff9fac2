package instance

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"millwright.dev/providers/driver/calls"
)

// measured counts and times all calls of a subscription. It is one of policy.ClientOptions.PerCallPolicies.
type measured struct{ subscription string }

// Do makes the call.
func (m measured) Do(request *policy.Request) (*http.Response, error) {
	began := time.Now()
	response, err := request.Next()
	failure := err
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		failure = runtime.NewResponseError(response) // It keeps the body for those that read it next.
	}
	action := actionOf(request)
	if failure != nil {
		failure = classify(action, failure)
	}
	calls.Record("azure", m.subscription, action, time.Since(began), failure)
	return response, err
}

// actionOf is the name of the call in Azure's references, such as VirtualMachines_Delete.
func actionOf(request *policy.Request) string {
	name, _ := request.Raw().Context().Value(runtime.CtxAPINameKey{}).(string)
	if name == "" {
		return request.Raw().Method
	}
	resource, operation, _ := strings.Cut(name, "Client.")
	for _, prefix := range []string{"Begin", "New"} {
		operation = strings.TrimPrefix(operation, prefix)
	}
	return resource + "_" + strings.TrimSuffix(operation, "Pager")
}

// named names the calls of a context as the SDK's clients do.
func named(ctx context.Context, kind, operation string) context.Context {
	return context.WithValue(ctx, runtime.CtxAPINameKey{}, strings.ToUpper(kind[:1])+kind[1:]+"Client."+operation)
}
