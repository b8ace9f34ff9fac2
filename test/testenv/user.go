package testenv

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// User creates a user with only these rights, in all namespaces, by a ClusterRole, and returns the name.
func User(t testing.TB, admin client.Client, rights []rbacv1.PolicyRule) string {
	t.Helper()
	role, binding := &rbacv1.ClusterRole{Rules: rights}, &rbacv1.ClusterRoleBinding{}
	role.GenerateName = "test-user-"
	if err := admin.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	binding.Name = role.Name
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: role.Name}}
	if err := admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	return role.Name
}
