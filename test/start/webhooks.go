package main

import (
	"context"

	"github.com/pkg/errors"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/testenv"
)

// The values beside an address.
const (
	noWebhooks = "none"
	localhost  = "localhost"
)

// Names in config/core/webhook.
const (
	coreNamespace        = "millwright-system"
	webhookService       = "millwright-core-webhook"
	webhookConfiguration = "millwright-core"
	// webhookSlice is where a Service leads to this computer.
	webhookSlice = webhookService + "-start"
)

// leadWebhooks has API servers find the webhooks in this process: by URL on the same computer, else by a Service without Pods. The
// certificate that the core creates is valid for both names. Beside an installed core its Service leads here, whose Pods are gone. Those of
// another start are served there.
func (o *options) leadWebhooks(ctx context.Context, control *cluster, objects []*unstructured.Unstructured, port int, beside bool) error {
	if o.guest {
		return nil
	}
	if beside && (o.webhooks == noWebhooks || o.webhooks == localhost) {
		return refuseUnanswered(ctx, control)
	}
	switch o.webhooks {
	case noWebhooks:
		return nil
	case localhost:
		for _, object := range objects {
			testenv.ByURL(object.Object, port)
		}
		return nil
	}
	service := named("v1", "Service", coreNamespace, webhookService)
	service.Object["spec"] = map[string]any{
		"ports": []any{map[string]any{"name": "webhook", "port": int64(443), "targetPort": int64(port)}},
	}
	namespace := named("v1", "Namespace", "", coreNamespace)
	leading := []*unstructured.Unstructured{namespace, service}
	if beside {
		var err error
		if leading, err = missing(ctx, control, leading); err != nil {
			return err
		}
	}
	if err := apply(ctx, control, leading); err != nil {
		return errors.Wrap(err, "leading webhooks here")
	}
	portName, err := servicePort(ctx, control)
	if err != nil {
		return err
	}
	slice := named("discovery.k8s.io/v1", "EndpointSlice", coreNamespace, webhookSlice)
	slice.SetLabels(map[string]string{"kubernetes.io/service-name": webhookService, "endpointslice.kubernetes.io/managed-by": fieldOwner})
	slice.Object["addressType"] = "IPv4"
	slice.Object["endpoints"] = []any{map[string]any{"addresses": []any{o.webhooks}}}
	slice.Object["ports"] = []any{map[string]any{"name": portName, "port": int64(port), "protocol": "TCP"}}
	return errors.Wrap(apply(ctx, control, []*unstructured.Unstructured{slice}), "leading webhooks here")
}

func named(version, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// servicePort is the name by which a slice says which of the Service's ports it is for.
func servicePort(ctx context.Context, control *cluster) (string, error) {
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: coreNamespace, Name: webhookService}
	if err := control.client.Get(ctx, key, service); err != nil || len(service.Spec.Ports) == 0 {
		return "", errors.Wrapf(err, "reading the port of Service %s", key)
	}
	return service.Spec.Ports[0].Name, nil
}

// refuseUnanswered: API servers call the webhooks of an installed core, whose Pods are gone, and would refuse everything.
func refuseUnanswered(ctx context.Context, control *cluster) error {
	for _, object := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		err := control.client.Get(ctx, client.ObjectKey{Name: webhookConfiguration}, object)
		if err == nil {
			return errors.Errorf("the control cluster has the webhooks of an installed core, which nothing answers without its Pods: "+
				"give WEBHOOKS=… the address at which API servers reach this computer, or remove them, with kubectl delete "+
				"mutatingwebhookconfiguration,validatingwebhookconfiguration %s: applying the release again restores them", webhookConfiguration)
		}
		if !gone(err) {
			return errors.Wrap(err, "looking for webhooks in the control cluster")
		}
	}
	return nil
}

// noConversion removes the webhook from a definition, with the authority that the core has written.
const noConversion = `[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`

// removeWebhooks removes what would have API servers call a process that has exited: they would refuse everything.
func (o *options) removeWebhooks(ctx context.Context, control *cluster) error {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: coreNamespace, Name: webhookSlice}}
	if err := control.client.Delete(ctx, slice); err != nil && !gone(err) {
		return errors.Wrap(err, "removing the EndpointSlice of the webhooks' Service")
	}
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

// convertNothing has the API server call no webhook for a definition's versions.
func convertNothing(ctx context.Context, control *cluster, name string) error {
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := control.client.Patch(ctx, definition, client.RawPatch(types.JSONPatchType, []byte(noConversion)), client.FieldOwner(fieldOwner))
	return errors.Wrapf(err, "removing the conversion webhook from %s", name)
}
