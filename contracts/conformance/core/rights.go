package core

import (
	rbacv1 "k8s.io/api/rbac/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance/standin"
)

// Rights returns the rights that the suite's user needs: in the namespace of the run, and everywhere. A run that creates its namespace
// itself needs the right to create and delete that, too.
func Rights() (namespaced, clusterWide []rbacv1.PolicyRule) {
	// It removes finalizers that block too long, of each kind.
	managed := []string{"get", "list", "create", "patch", "delete"}
	rule := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	namespaced = []rbacv1.PolicyRule{
		rule(clusterv1.GroupVersion.Group, []string{"clusters", "machines", "machinedeployments", "machinesets"}, managed...),
		rule("", []string{"secrets", "pods"}, managed...),
		rule("", []string{"pods/status"}, "patch"),
		rule("coordination.k8s.io", []string{"leases"}, "create", "patch", "delete"),
	}
	clusterWide = []rbacv1.PolicyRule{
		rule("", []string{"nodes"}, append([]string{"watch", "update"}, managed...)...),
		rule("", []string{"nodes/status"}, "patch"),
		rule("storage.k8s.io", []string{"volumeattachments"}, managed...),
		rule("apiextensions.k8s.io", []string{"customresourcedefinitions"}, "get", "create", "patch", "delete"),
		rule("rbac.authorization.k8s.io", []string{"clusterroles"}, "get", "create", "patch", "delete"),
		rule("coordination.k8s.io", []string{"leases"}, "list"),
		rule("admissionregistration.k8s.io", []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
			"list", "create", "delete"),
	}
	for _, group := range []string{standin.Group, OlderGroup} {
		// RBAC requires a user to have the rights that it grants.
		clusterWide = append(clusterWide, rule(group, []string{"*"}, Role().Rules[0].Verbs...))
	}
	return namespaced, clusterWide
}
