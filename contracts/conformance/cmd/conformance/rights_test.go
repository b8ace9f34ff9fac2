package main

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/test/testenv"
)

// policies are the rules of roles for rights.
func policies(rights []need) (found []rbacv1.PolicyRule) {
	for _, right := range rights {
		resource := right.resource
		if right.subresource != "" {
			resource += "/" + right.subresource
		}
		found = append(found, rbacv1.PolicyRule{
			APIGroups: []string{right.group}, Resources: []string{resource}, Verbs: strings.Fields(right.verbs),
		})
	}
	return found
}

// exactly is the kubeconfig of a user who has rights everywhere and no others.
func exactly(t *testing.T, rights []need) string {
	t.Helper()
	return as(t, testenv.User(t, admin, policies(rights)))
}

// A user who has rights in one namespace alone, and may read the provider's definition, can run the suite there.
func TestRunInOneNamespace(t *testing.T) {
	_, machines := provide(t, standin.Switches{})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "mine-"}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	rights, err := needs("inframachine", false, []byte(sample+beside))
	if err != nil {
		t.Fatal(err)
	}
	everywhere := slices.DeleteFunc(slices.Clone(rights), func(n need) bool { return !n.clusterWide })
	if len(everywhere) != 1 || everywhere[0].resource != "customresourcedefinitions" {
		t.Errorf("rights everywhere: %v", everywhere)
	}
	name := testenv.User(t, admin, policies(everywhere))
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "mine"}}
	role.Rules = policies(slices.DeleteFunc(slices.Clone(rights), func(n need) bool { return n.clusterWide }))
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta,
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
	for _, err := range []error{admin.Create(t.Context(), role), admin.Create(t.Context(), binding)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := command(t, as(t, name), "--contract", "v1beta2", "--namespace", namespace.Name, "--probe", machines,
		"--sample", file(t, "sample.yaml", sample+beside), "--case", "^(Lifecycle|FailureDomain|Move)$")
	decoded, err := report.Decode([]byte(stdout))
	if err != nil || code != exitPartial || decoded.Summary.Failed > 0 || decoded.Summary.Passed < 15 ||
		strings.Contains(stderr, "forbidden") {
		t.Errorf("exit code %d, %v\n%s\n%s", code, err, stdout, stderr)
	}
	nothingLeft(t)
}
