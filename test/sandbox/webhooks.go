package sandbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/testenv"
)

// The two variants of the core that a sandbox can have.
const (
	coreManifest                = "out/core/core-components.yaml"
	coreManifestWithoutWebhooks = "out/core-without-webhooks/core-components.yaml"
)

// coreVariant is the manifest to install.
func (o *Options) coreVariant() string {
	if o.WithoutWebhooks {
		return coreManifestWithoutWebhooks
	}
	return coreManifest
}

// Webhooks reports whether the core has its webhooks.
func (s *Sandbox) Webhooks() bool { return !s.options.WithoutWebhooks }

// serveWebhooksOn has API servers find the core's webhooks by URL: no Service leads to a process on loopback.
func serveWebhooksOn(address string, objects []*unstructured.Unstructured) error {
	_, text, _ := strings.Cut(address, ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		return errors.Wrapf(err, "reading the port of %s", address)
	}
	for _, object := range objects {
		testenv.ByURL(object.Object, port)
	}
	return nil
}

// webhooksTrusted waits until the core has published its certificate authority: before, API servers would refuse
// everything that is sent to the webhooks.
func (s *Sandbox) webhooksTrusted(ctx context.Context) error {
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, configuration := range []client.Object{mutating, validating} {
		if err := s.Control.Client.Get(ctx, client.ObjectKey{Name: "millwright-core"}, configuration); err != nil {
			return err
		}
	}
	for _, hook := range mutating.Webhooks {
		if len(hook.ClientConfig.CABundle) == 0 {
			return fmt.Errorf("webhook %s has no certificate authority", hook.Name)
		}
	}
	for _, hook := range validating.Webhooks {
		if len(hook.ClientConfig.CABundle) == 0 {
			return fmt.Errorf("webhook %s has no certificate authority", hook.Name)
		}
	}
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := s.Control.Client.List(ctx, crds); err != nil {
		return err
	}
	for _, crd := range crds.Items {
		if conversion := crd.Spec.Conversion; conversion != nil && conversion.Webhook != nil &&
			len(conversion.Webhook.ClientConfig.CABundle) == 0 {
			return fmt.Errorf("the conversion of %s has no certificate authority", crd.Name)
		}
	}
	return nil
}
