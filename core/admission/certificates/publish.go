package certificates

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/pkg/errors"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/version"
)

// fieldOwner owns the trusted authorities, so that another apply of the manifests does not remove them.
const fieldOwner = client.FieldOwner("millwright-core-certificates")

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// publisher writes trusted authorities into targets. It needs no cache.
type publisher struct {
	client client.Client
	live   client.Reader
}

// publish writes the trusted authorities into all targets, and reports whether one of them had others.
func (p publisher) publish(ctx context.Context, targets []target, trusted []byte) (bool, error) {
	changed := false
	for _, t := range targets {
		operations, err := p.operations(ctx, t, trusted)
		if err != nil {
			return changed, err
		}
		if len(operations) == 0 {
			continue
		}
		patch, err := json.Marshal(operations)
		if err != nil {
			return changed, errors.Wrapf(err, "creating the patch of %s %s", t.kind, t.name)
		}
		object := metadata(t.kind)
		object.Name = t.name
		err = p.client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), fieldOwner)
		switch {
		case persist.Gone(err):
		case t.kind == version.CRDKind.Kind && apierrors.IsInvalid(err) && !persist.Denied(err):
			// Marked, but not converted by webhook, or by that of another core: the tests of the patch fail then.
			ctrl.LoggerFrom(ctx).
				Info("A CRD with the annotation is not converted by a webhook of this core", "crd", t.name, "annotation", Annotation)
		case err != nil:
			return changed, errors.Wrapf(err, "publishing the CA bundle in %s %s", t.kind, t.name)
		case object.Generation != t.generation:
			changed = true
		}
	}
	return changed, nil
}

// operations are what is to be patched. A CRD is large, so it is not read: a patch that changes nothing is not
// written by the API server.
func (p publisher) operations(ctx context.Context, t target, trusted []byte) ([]operation, error) {
	switch t.kind {
	case version.CRDKind.Kind:
		operations := []operation{{"test", "/spec/conversion/strategy", apiextensionsv1.WebhookConverter}}
		if t.beside != "" {
			operations = append(operations, operation{"test", "/spec/conversion/webhook/clientConfig/service/namespace", t.beside})
		}
		return append(operations, operation{"add", "/spec/conversion/webhook/clientConfig/caBundle", trusted}), nil
	case "MutatingWebhookConfiguration":
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		err := p.live.Get(ctx, client.ObjectKey{Name: t.name}, configuration)
		var operations []operation
		for i := range configuration.Webhooks {
			operations = append(operations, t.of(i, configuration.Webhooks[i].Name, &configuration.Webhooks[i].ClientConfig, trusted)...)
		}
		return operations, errors.Wrapf(client.IgnoreNotFound(err), "reading %s %s", t.kind, t.name)
	default:
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		err := p.live.Get(ctx, client.ObjectKey{Name: t.name}, configuration)
		var operations []operation
		for i := range configuration.Webhooks {
			operations = append(operations, t.of(i, configuration.Webhooks[i].Name, &configuration.Webhooks[i].ClientConfig, trusted)...)
		}
		return operations, errors.Wrapf(client.IgnoreNotFound(err), "reading %s %s", t.kind, t.name)
	}
}

// of are the operations for one webhook of a configuration, none if it has the authorities, or is another core's. The test
// keeps the patch from hitting another webhook that took its place meanwhile.
func (t *target) of(i int, name string, config *admissionregistrationv1.WebhookClientConfig, trusted []byte) []operation {
	if bytes.Equal(config.CABundle, trusted) || t.beside != "" && (config.Service == nil || config.Service.Namespace != t.beside) {
		return nil
	}
	return []operation{
		{"test", fmt.Sprintf("/webhooks/%d/name", i), name},
		{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), trusted},
	}
}
