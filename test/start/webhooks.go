package main

import (
	"context"

	"github.com/pkg/errors"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/testenv"
)

// What can be chosen but an address.
const (
	noWebhooks = "none"
	localhost  = "localhost"
)

// Names in config/core/webhook.
const (
	coreNamespace        = "millwright-system"
	webhookService       = "millwright-core-webhook"
	webhookConfiguration = "millwright-core"
)

// leadWebhooks has API servers find the webhooks in this process: by URL on the same computer, else by a Service without Pods. The
// certificate that the core makes is good for both names.
func (o *options) leadWebhooks(ctx context.Context, control *cluster, objects []*unstructured.Unstructured, port int) error {
	switch o.webhooks {
	case noWebhooks:
		return nil
	case localhost:
		for _, object := range objects {
			testenv.ByURL(object.Object, port)
		}
		return nil
	}
	name := map[string]any{"name": webhookService, "namespace": coreNamespace}
	service := map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": name,
		"spec": map[string]any{"ports": []any{map[string]any{"name": "webhook", "port": int64(443), "targetPort": int64(port)}}},
	}
	slice := map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
		"metadata": map[string]any{
			"name": webhookService + "-start", "namespace": coreNamespace,
			"labels": map[string]any{"kubernetes.io/service-name": webhookService, "endpointslice.kubernetes.io/managed-by": fieldOwner},
		},
		"endpoints": []any{map[string]any{"addresses": []any{o.webhooks}}},
		"ports":     []any{map[string]any{"name": "webhook", "port": int64(port), "protocol": "TCP"}},
	}
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": coreNamespace}}
	objects = []*unstructured.Unstructured{{Object: namespace}, {Object: service}, {Object: slice}}
	return errors.Wrap(apply(ctx, control, objects), "leading webhooks here")
}

// noConversion takes the webhook out of a definition, with the authority that the core has written.
const noConversion = `[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`

// removeWebhooks takes away what would have API servers ask a process that has ended: they refuse everything then.
func (o *options) removeWebhooks(ctx context.Context, control *cluster) error {
	meta := metav1.ObjectMeta{Name: webhookConfiguration}
	for _, object := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta},
	} {
		err := control.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil && ours(object) {
			err = control.client.Delete(ctx, object)
		}
		if err != nil && !gone(err) {
			return errors.Wrap(err, "removing the webhooks' configuration")
		}
	}
	return nil
}

// withoutWebhooks leaves the cluster as a start without webhooks has it.
func (o *options) withoutWebhooks(ctx context.Context, control *cluster) error {
	if err := o.removeWebhooks(ctx, control); err != nil {
		return err
	}
	without := *o
	without.webhooks = noWebhooks
	objects, err := without.read(without.manifests()[0])
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" || !isOurs(ctx, control, object) {
			continue
		}
		if err := convertNothing(ctx, control, object.GetName()); err != nil {
			return err
		}
		if err := apply(ctx, control, []*unstructured.Unstructured{object}); err != nil {
			return err
		}
	}
	return nil
}

// convertNothing has the API server ask no webhook about a definition's versions.
func convertNothing(ctx context.Context, control *cluster, name string) error {
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := control.client.Patch(ctx, definition, client.RawPatch(types.JSONPatchType, []byte(noConversion)), client.FieldOwner(fieldOwner))
	return errors.Wrapf(err, "taking the conversion webhook out of %s", name)
}
