package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	// fieldOwner is the field manager of installed objects.
	fieldOwner = "millwright-start"
	// establishedTimeout is how long an API server may take to serve a definition.
	establishedTimeout = time.Minute
)

// installed are the kinds of the managers' manifests that processes on this computer need. Their order is that of installing.
var installed = []string{
	"Namespace", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

// manifests are the files of the managers, as `make manifests` renders them.
func (o *options) manifests() []string {
	core := "core-without-webhooks"
	if o.webhooks != noWebhooks {
		core = "core"
	}
	files := []string{core + "/core-components.yaml"}
	for _, p := range o.providers {
		files = append(files, "infrastructure-"+p+"/infrastructure-components.yaml")
	}
	return append(files, "bootstrap-cloudconfig/bootstrap-components.yaml")
}

// install applies what the managers and the machines need.
func (o *options) install(ctx context.Context, control, target *cluster, webhookPort int) error {
	for _, file := range o.manifests() {
		objects, err := o.read(file)
		if err != nil {
			return err
		}
		beside, err := besideInstalled(ctx, control, objects)
		if err != nil {
			return err
		}
		objects = slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool { return !slices.Contains(installed, u.GetKind()) })
		slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
			return slices.Index(installed, a.GetKind()) - slices.Index(installed, b.GetKind())
		})
		if beside != "" {
			if objects, err = missing(ctx, control, objects); err != nil {
				return err
			}
			fmt.Fprintf(o.out, "Deployment %s is installed, with no replicas: what came with it stays as it is\n", beside)
		}
		isCore := file == o.manifests()[0]
		if isCore && o.guest {
			if objects, err = missing(ctx, control, objects); err != nil {
				return err
			}
		}
		if isCore {
			if err := o.leadWebhooks(ctx, control, objects, webhookPort, beside != ""); err != nil {
				return err
			}
		}
		if err := apply(ctx, control, objects); err != nil {
			return errors.Wrapf(err, "installing %s in the control cluster", file)
		}
	}
	objects, err := o.read("target/target-components.yaml")
	if err != nil {
		return err
	}
	if err := apply(ctx, target, objects); err != nil {
		return errors.Wrap(err, "installing target/target-components.yaml in the target cluster")
	}
	return established(ctx, control)
}

// read reads the objects of a file in out.
func (o *options) read(file string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(filepath.Join(o.root, "out", filepath.FromSlash(file)))
	if err != nil {
		return nil, errors.Wrap(err, "run `make manifests`")
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var objects []*unstructured.Unstructured
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, errors.Wrapf(err, "reading %s", file)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, errors.Wrapf(err, "reading %s", file)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// besideInstalled returns the Deployment of the same manager that the cluster has without replicas, or nothing. One that runs is refused:
// it would work on the same objects, or, while it holds the lease, this one would do nothing and not report why.
func besideInstalled(ctx context.Context, c *cluster, objects []*unstructured.Unstructured) (string, error) {
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		there := &appsv1.Deployment{}
		key := client.ObjectKeyFromObject(object)
		if err := c.client.Get(ctx, key, there); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return "", errors.Wrapf(err, "looking for Deployment %s in the control cluster", key)
		}
		if there.Spec.Replicas == nil || *there.Spec.Replicas > 0 {
			return "", errors.Errorf("the control cluster runs Deployment %s: end it first, with kubectl -n %s scale deployment %s --replicas=0",
				key, key.Namespace, key.Name)
		}
		return key.String(), nil
	}
	return "", nil
}

// missing are the objects that the cluster does not have. Those of an installed release are not applied: this program would become a
// manager of their fields as well, and remove them at the end.
func missing(ctx context.Context, c *cluster, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var missing []*unstructured.Unstructured
	for _, object := range objects {
		there := &metav1.PartialObjectMetadata{}
		there.SetGroupVersionKind(object.GroupVersionKind())
		err := c.client.Get(ctx, client.ObjectKeyFromObject(object), there)
		if apierrors.IsNotFound(err) {
			missing = append(missing, object)
		} else if err != nil {
			return nil, errors.Wrapf(err, "looking for %s %s in the control cluster", object.GetKind(), object.GetName())
		}
	}
	return missing, nil
}

// apply does not take over fields: what another manager has set otherwise, such as Cluster API's own definitions, is a conflict that
// names it. What this program has installed is its own, with what the core has written into it.
func apply(ctx context.Context, c *cluster, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		configuration := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
		err := c.client.Apply(ctx, configuration, client.FieldOwner(fieldOwner))
		if apierrors.IsConflict(err) && isOurs(ctx, c, object) {
			configuration = client.ApplyConfigurationFromUnstructured(object.DeepCopy())
			err = c.client.Apply(ctx, configuration, client.FieldOwner(fieldOwner), client.ForceOwnership)
		}
		if err != nil {
			return errors.Wrapf(err, "%s %s", object.GetKind(), object.GetName())
		}
	}
	return nil
}

// isOurs reports whether this program has installed the existing object.
func isOurs(ctx context.Context, c *cluster, object *unstructured.Unstructured) bool {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(object.GroupVersionKind())
	return c.client.Get(ctx, client.ObjectKeyFromObject(object), there) == nil && ours(there)
}

// established waits until all definitions of ours are served.
func established(ctx context.Context, c *cluster) error {
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, establishedTimeout, true, func(ctx context.Context) (bool, error) {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := c.client.List(ctx, list); err != nil {
			return false, errors.Wrap(err, "listing definitions")
		}
		missing = ""
		for i := range list.Items {
			if crd := &list.Items[i]; ours(crd) && !isEstablished(crd) {
				missing = "CustomResourceDefinition " + crd.Name + " is not established"
			}
		}
		return missing == "", nil
	})
	if err != nil && missing != "" {
		return fmt.Errorf("%s: %w", missing, err)
	}
	return err
}

// ours reports whether this program has installed the object.
func ours(object client.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == fieldOwner })
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// gone reports whether an error says that there is no such object, or no such kind.
func gone(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
