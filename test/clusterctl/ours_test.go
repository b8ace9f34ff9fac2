package clusterctl

import (
	"strings"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"millwright.dev/test/sandbox"
)

// clusterWide are the kinds without a namespace that manifests of ours have.
var clusterWide = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Namespace"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
}

// ours is what is left of this project in a cluster: by name, by label, and by group. What is in a namespace is deleted with it, except in
// kube-system.
func (l *life) ours(cluster *sandbox.Cluster) []string {
	var left []string
	kinds := append([]schema.GroupVersionKind{{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}, {Version: "v1", Kind: "ServiceAccount"}}, clusterWide...)
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		l.Expect(cluster.Client.List(l.ctx, list)).To(Succeed())
		for i := range list.Items {
			item := &list.Items[i]
			_, labelled := item.Labels["cluster.x-k8s.io/provider"]
			named := strings.Contains(item.Name, "millwright") || strings.HasSuffix(item.Name, ".cluster.x-k8s.io") || item.Name == "machines"
			if (labelled || named) && item.Name != "providers.clusterctl.cluster.x-k8s.io" &&
				(kind.Kind != "ServiceAccount" || item.Namespace == "kube-system") {
				left = append(left, kind.Kind+" "+item.Namespace+"/"+item.Name)
			}
		}
	}
	return left
}
