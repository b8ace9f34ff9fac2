package main

import (
	"context"
	"strings"
	"time"

	"github.com/pkg/errors"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/core"
	"millwright.dev/contracts/version"
)

// requestLimit bounds each read except watches, so that a hanging API server ends a run. A write has writes.Limit: the API server may
// still carry out a write that was canceled.
var requestLimit = 30 * time.Second

// permitted checks, before anything is created, that the API server responds and that the user has the rights that the suite needs.
func permitted(ctx context.Context, config *rest.Config, profile string, o conformance.RunOptions) error {
	rights, err := needs(profile, o.Namespace == "", o.Sample)
	if err != nil {
		return err
	}
	if err := answers(config); err != nil {
		return err
	}
	if err := allowed(ctx, config, o.Namespace, rights); err != nil || o.Namespace == "" {
		return err
	}
	return usable(ctx, config, o.Namespace)
}

// need is what a suite does with a resource.
type need struct {
	group, resource, subresource, verbs string
	clusterWide                         bool
}

// needs returns the rights that a profile requires.
func needs(profile string, ownNamespace bool, sample []byte) ([]need, error) {
	var found []need
	if ownNamespace {
		found = append(found, need{"", "namespaces", "", "create delete", true})
	}
	if profile == conformance.CoreProfile.Name {
		namespaced, clusterWide := core.Rights()
		return append(append(found, needsOf(namespaced, false)...), needsOf(clusterWide, true)...), nil
	}
	suffix := map[string]string{conformance.InfraMachineProfile.Name: "Machine", conformance.BootstrapConfigProfile.Name: "Config"}[profile]
	parsed, err := behaviour.ParseSample(sample, suffix)
	if err != nil {
		return nil, errors.Wrap(err, "--sample")
	}
	subject := parsed.Subject.GroupVersionKind().GroupKind()
	template := schema.GroupKind{Group: subject.Group, Kind: subject.Kind + clusterv1.TemplateSuffix}
	capi := clusterv1.GroupVersion.Group
	found = append(found,
		need{capi, "clusters", "", "get list create update delete deletecollection", false},
		need{capi, "clusters", "status", "update", false},
		need{capi, "machines", "", "get list create update patch delete deletecollection", false},
		need{capi, "machines", "status", "update", false},
		need{"", "secrets", "", "get list create update delete deletecollection", false},
		need{"", "events", "", "list", false},
		need{"coordination.k8s.io", "leases", "", "create patch delete", false},
		need{"coordination.k8s.io", "leases", "", "list", ownNamespace},
		need{"apiextensions.k8s.io", "customresourcedefinitions", "", "get", true},
		need{subject.Group, plural(subject), "", "get list watch create update patch delete", false},
		need{template.Group, plural(template), "", "get create update patch deletecollection", false})
	for _, beside := range parsed.Beside() {
		if secret := (schema.GroupKind{Kind: "Secret"}); beside != secret {
			found = append(found, need{beside.Group, plural(beside), "", "get list create update patch delete", false})
		}
	}
	return found, nil
}

func plural(of schema.GroupKind) string {
	name, _, _ := strings.Cut(version.CRDName(of), ".")
	return name
}

func needsOf(policies []rbacv1.PolicyRule, clusterWide bool) []need {
	var found []need
	for _, rule := range policies {
		for _, name := range rule.Resources {
			resource, subresource, _ := strings.Cut(name, "/")
			found = append(found, need{rule.APIGroups[0], resource, subresource, strings.Join(rule.Verbs, " "), clusterWide})
		}
	}
	return found
}

// allowed checks with the API server that the user has the rights, and returns an error that names all missing ones.
func allowed(ctx context.Context, config *rest.Config, namespace string, needs []need) error {
	config = rest.CopyConfig(config)
	// These are dozens of small requests: with a controller's rate limit, users would wait for them and see nothing.
	config.QPS = -1
	reviews, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return errors.Wrap(err, "--kubeconfig")
	}
	var missing []string
	for _, n := range needs {
		for verb := range strings.FieldsSeq(n.verbs) {
			attributes := &authorizationv1.ResourceAttributes{Verb: verb, Group: n.group, Resource: n.resource, Subresource: n.subresource}
			if !n.clusterWide {
				attributes.Namespace = namespace
			}
			review := &authorizationv1.SelfSubjectAccessReview{}
			review.Spec.ResourceAttributes = attributes
			answer, err := reviews.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return errors.Wrap(err, "checking the rights of the kubeconfig's user")
			}
			if !answer.Status.Allowed {
				missing = append(missing, n.name(verb))
			}
		}
	}
	if len(missing) > 0 {
		return errors.Errorf("--kubeconfig: its user lacks rights that the suite needs: %s", strings.Join(missing, ", "))
	}
	return nil
}

func (n need) name(verb string) string {
	resource := schema.GroupResource{Group: n.group, Resource: n.resource}.String()
	if n.subresource != "" {
		resource = n.resource + "/" + n.subresource + "." + n.group
	}
	return verb + " " + resource
}

// usable checks by a dry run that objects can be created in a namespace: the user need not have the right to read namespaces.
func usable(ctx context.Context, config *rest.Config, namespace string) error {
	c, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return errors.Wrap(err, "--kubeconfig")
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"}}
	_, err = c.Leases(namespace).Create(ctx, lease, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsNotFound(err):
		return errors.Errorf("--namespace: there is no namespace %q: create it, or omit the flag and the suite creates one", namespace)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return errors.Errorf("--namespace: %q is being deleted: set another one, or omit the flag and the suite creates one", namespace)
	}
	return errors.Wrapf(err, "--namespace: no object can be created in %q", namespace)
}

// answers checks that the API server responds.
func answers(config *rest.Config) error {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return errors.Wrap(err, "--kubeconfig")
	}
	_, err = c.ServerVersion()
	return errors.Wrapf(err, "--kubeconfig: the API server at %s does not respond", config.Host)
}
