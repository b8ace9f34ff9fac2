package core

import (
	rbacv1 "k8s.io/api/rbac/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance/standin"
)

// Rights are what the suite's user must be allowed to do: in the namespace of the run, and everywhere. A run that makes its namespace
// itself needs the right to create and delete that, too.
func Rights() (namespaced, clusterWide []rbacv1.PolicyRule) {
	// It removes finalizers of what stays too long, of each kind.
	made := []string{"get", "list", "create", "patch", "delete"}
	rule := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	namespaced = []rbacv1.PolicyRule{
		rule(clusterv1.GroupVersion.Group, []string{"clusters", "machines", "machinedeployments", "machinesets"}, made...),
		rule("", []string{"secrets", "pods"}, made...),
		rule("", []string{"pods/status"}, "patch"),
		rule("coordination.k8s.io", []string{"leases"}, "create", "patch", "delete"),
	}
	clusterWide = []rbacv1.PolicyRule{
		rule("", []string{"nodes"}, append([]string{"watch", "update"}, made...)...),
		rule("", []string{"nodes/status"}, "patch"),
		rule("storage.k8s.io", []string{"volumeattachments"}, made...),
		rule("apiextensions.k8s.io", []string{"customresourcedefinitions"}, "get", "create", "patch", "delete"),
		rule("rbac.authorization.k8s.io", []string{"clusterroles"}, "get", "create", "patch", "delete"),
		rule("coordination.k8s.io", []string{"leases"}, "list"),
		rule("admissionregistration.k8s.io", []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
			"list", "create", "delete"),
	}
	for _, group := range []string{standin.Group, OlderGroup} {
		// Who gives rights to a core must have them.
		clusterWide = append(clusterWide, rule(group, []string{"*"}, Role().Rules[0].Verbs...))
	}
	return namespaced, clusterWide
}
