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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/version"
)

// Annotation marks the objects into which the authority is written: webhook configurations, and CRDs that are converted by webhook.
// Its value is the name of the Secret in the core's own namespace, and only webhooks whose Service is in that namespace get the
// authority: of two cores in one cluster each has its own. With the value namespace/name the Service may be anywhere.
// Without the annotation an object is left alone: its authority comes from elsewhere, for example from cert-manager.
const Annotation = "webhooks.millwright.dev/trust-from"

// fieldOwner owns the authority in the objects, so that another apply of the manifests does not remove it.
const fieldOwner = client.FieldOwner("millwright-core-certificates")

// configurationKinds are the kinds of webhook configurations.
var configurationKinds = []schema.GroupVersionKind{
	admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
}

// target is an object by which API servers find the webhooks.
type target struct {
	// object is the metadata of a CRD, which is large, or a whole configuration.
	object client.Object
	// namespace is where the Service of the object must be; anywhere if empty.
	namespace string
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func metadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// marks reports whether the value of the annotation names the Secret, and in which namespace the Service must be.
func (s *Settings) marks(value string) (marked bool, namespace string) {
	switch value {
	case s.Secret.String():
		return true, ""
	case s.Secret.Name:
		return true, s.Secret.Namespace
	}
	return false, ""
}

// targets reads the objects that are installed and marked.
func (r *Reconciler) targets(ctx context.Context) ([]target, error) {
	var objects []client.Object
	for _, kind := range configurationKinds {
		configuration := &unstructured.Unstructured{}
		configuration.SetGroupVersionKind(kind)
		configuration.SetName(r.settings.Configuration)
		objects = append(objects, configuration)
	}
	for _, name := range r.settings.CRDs {
		crd := metadata(version.CRDKind)
		crd.Name = name
		objects = append(objects, crd)
	}
	var found []target
	for _, object := range objects {
		err := r.live.Get(ctx, client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			return nil, errors.Wrapf(err, "reading %s %s", object.GetObjectKind().GroupVersionKind().Kind, object.GetName())
		}
		if marked, namespace := r.settings.marks(object.GetAnnotations()[Annotation]); err == nil && marked {
			found = append(found, target{object, namespace})
		}
	}
	return found, nil
}

// publish writes the authority into the targets that have another one.
func (r *Reconciler) publish(ctx context.Context, targets []target, authority []byte) error {
	for _, t := range targets {
		operations, err := t.operations(authority)
		if err != nil {
			return err
		}
		if len(operations) == 0 {
			continue
		}
		patch, err := json.Marshal(operations)
		if err != nil {
			return errors.Wrap(err, "encoding the patch with the CA bundle")
		}
		kind, name := t.object.GetObjectKind().GroupVersionKind(), t.object.GetName()
		err = r.client.Patch(ctx, t.object, client.RawPatch(types.JSONPatchType, patch), fieldOwner)
		if kind == version.CRDKind && apierrors.IsInvalid(err) && !persist.Denied(err) {
			// The tests of the patch have failed: the CRD is marked, but not converted by a webhook, or by that of another core.
			ctrl.LoggerFrom(ctx).
				Info("A CRD with the annotation is not converted by a webhook of this core", "crd", name, "annotation", Annotation)
			continue
		}
		if persist.IgnoreGone(err) != nil {
			return errors.Wrapf(err, "publishing the CA bundle in %s %s", kind.Kind, name)
		}
	}
	return nil
}

// operations returns the patch that writes the authority; for a configuration, only into webhooks that have another one. A CRD is patched
// blindly: the API server does not write it if nothing changes. Tests keep a patch from hitting another webhook that took the place.
func (t target) operations(authority []byte) (operations []operation, err error) {
	configuration, ok := t.object.(*unstructured.Unstructured)
	if !ok {
		operations = []operation{{"test", "/spec/conversion/strategy", apiextensionsv1.WebhookConverter}}
		if t.namespace != "" {
			operations = append(operations, operation{"test", "/spec/conversion/webhook/clientConfig/service/namespace", t.namespace})
		}
		return append(operations, operation{"add", "/spec/conversion/webhook/clientConfig/caBundle", authority}), nil
	}
	// Both kinds have this in common.
	content := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(configuration.Object, content); err != nil {
		return nil, errors.Wrapf(err, "decoding %s %s", configuration.GetKind(), configuration.GetName())
	}
	for i := range content.Webhooks {
		name, config := content.Webhooks[i].Name, &content.Webhooks[i].ClientConfig
		if bytes.Equal(config.CABundle, authority) || t.namespace != "" && (config.Service == nil || config.Service.Namespace != t.namespace) {
			continue
		}
		operations = append(operations,
			operation{"test", fmt.Sprintf("/webhooks/%d/name", i), name},
			operation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), authority})
	}
	return operations, nil
}
