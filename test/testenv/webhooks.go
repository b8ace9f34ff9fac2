package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/pkg/errors"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"millwright.dev/config"
)

// webhookManifests are those that are installed with the core.
const webhookManifests = "core/webhook"

// coreNamespace is where the core is installed, and webhookSecret the one with the certificate of its webhooks.
const (
	coreNamespace = "millwright-system"
	webhookSecret = "millwright-core-webhook-certificate"
)

// convertedCRDs are the CRDs that the core converts, by the manifest with the patch that turns the conversion on.
var convertedCRDs = map[string][]string{
	"crd_conversion.yaml": {
		"clusters.cluster.x-k8s.io",
		"machines.cluster.x-k8s.io",
		"machinesets.cluster.x-k8s.io",
		"machinedeployments.cluster.x-k8s.io",
		"machinehealthchecks.cluster.x-k8s.io",
		"machinedrainrules.cluster.x-k8s.io",
		"machinepools.cluster.x-k8s.io",
	},
	"ipam_conversion.yaml": {"ipaddresses.ipam.cluster.x-k8s.io", "ipaddressclaims.ipam.cluster.x-k8s.io"},
}

// InstallWebhooks installs the core's webhooks as its manifests say, except for their address: a port of this
// machine. It returns at once; the API server trusts the webhooks when the core has published its authority.
func (e *Env) InstallWebhooks(ctx context.Context, port int) error {
	all := scheme.Scheme
	if err := apiextensionsv1.AddToScheme(all); err != nil {
		return errors.Wrap(err, "adding CRDs to the scheme")
	}
	c, err := client.New(e.Config, client.Options{Scheme: all})
	if err != nil {
		return errors.Wrap(err, "creating a client")
	}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: coreNamespace}}}
	for _, file := range []struct {
		name   string
		object client.Object
	}{
		{"mutating.yaml", &admissionregistrationv1.MutatingWebhookConfiguration{}},
		{"validating.yaml", &admissionregistrationv1.ValidatingWebhookConfiguration{}},
	} {
		if err := readYAML(file.name, port, file.object); err != nil {
			return err
		}
		objects = append(objects, file.object)
	}
	for _, object := range objects {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, object)); err != nil {
			return errors.Wrapf(err, "creating %s", object.GetName())
		}
	}
	for file, names := range convertedCRDs {
		var patch []map[string]any
		if err := readYAML(file, port, &patch); err != nil {
			return err
		}
		content, err := json.Marshal(patch)
		if err != nil {
			return errors.Wrap(err, "encoding the patch of CRDs")
		}
		if err := patchCRDs(ctx, c, names, content); err != nil {
			return err
		}
	}
	return nil
}

func patchCRDs(ctx context.Context, c client.Client, names []string, patch []byte) error {
	for _, name := range names {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, patch)); err != nil {
			return errors.Wrapf(err, "patching %s", crd.Name)
		}
	}
	return nil
}

// RemoveWebhooks removes what InstallWebhooks installed, except the Secret of the core: the API server calls no webhooks
// any more, and v1beta1 is not served.
func (e *Env) RemoveWebhooks(ctx context.Context) error {
	c, err := client.New(e.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return errors.Wrap(err, "creating a client")
	}
	meta := metav1.ObjectMeta{Name: "millwright-core"}
	for _, object := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta},
	} {
		if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
			return errors.Wrapf(err, "deleting %T", object)
		}
	}
	const patch = `[{"op":"replace","path":"/spec/versions/0/served","value":false},` +
		`{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`
	for _, names := range convertedCRDs {
		if err := patchCRDs(ctx, c, names, []byte(patch)); err != nil {
			return err
		}
	}
	return nil
}

// readYAML reads a manifest, with the Service in it replaced by a URL.
func readYAML(name string, port int, into any) error {
	content, err := config.Manifests.ReadFile(webhookManifests + "/" + name)
	if err != nil {
		return errors.Wrap(err, "reading a manifest of the webhooks")
	}
	var document any
	if err := yaml.Unmarshal(content, &document); err != nil {
		return errors.Wrapf(err, "reading %s", name)
	}
	ByURL(document, port)
	if content, err = yaml.Marshal(document); err != nil {
		return errors.Wrapf(err, "encoding %s", name)
	}
	if !bytes.Contains(content, []byte("https://localhost")) {
		return errors.Errorf("%s has no service of a webhook", name)
	}
	return errors.Wrapf(yaml.UnmarshalStrict(content, into), "reading %s", name)
}

// ByURL replaces each Service of a webhook in a document by the same path on this machine. Where no Service says whose the webhook is, the
// annotation must: it gets the namespace.
func ByURL(document any, port int) {
	switch node := document.(type) {
	case []any:
		for _, child := range node {
			ByURL(child, port)
		}
	case map[string]any:
		for key, child := range node {
			if child == webhookSecret {
				node[key] = coreNamespace + "/" + webhookSecret
			}
			config, ok := child.(map[string]any)
			if service, has := config["service"].(map[string]any); ok && has && key == "clientConfig" {
				node[key] = map[string]any{"url": fmt.Sprintf("https://localhost:%d%v", port, service["path"])}
				continue
			}
			ByURL(child, port)
		}
	}
}
