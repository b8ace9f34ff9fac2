package rights

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/testenv"
)

// ways are the known ways to cluster-admin: what may be done with these resources, in these groups.
var ways = []struct {
	name, group string
	resources   []string
	verbs       []string
	// names of objects for which it is no way.
	except []string
}{
	{"roles that give more than one has", rbacv1.GroupName, []string{"clusterroles", "roles"}, []string{"escalate", "bind"}, nil},
	{"bindings of the whole cluster", rbacv1.GroupName, []string{"clusterrolebindings"}, []string{"create", "update", "patch", "delete"}, nil},
	{"ClusterRoles", rbacv1.GroupName, []string{"clusterroles"}, []string{"create", "update", "patch", "delete"}, nil},
	{"to be somebody else", "", []string{"users", "groups", "serviceaccounts"}, []string{"impersonate"}, nil},
	{"tokens of accounts", "", []string{"serviceaccounts/token"}, []string{"create"}, nil},
	{"Secrets, where accounts are powerful", "", []string{"secrets"}, []string{"get", "list", "watch", "update"}, nil},
	{"pods, where accounts are powerful", "", []string{"pods", "pods/exec", "pods/ephemeralcontainers"}, []string{"create", "update", "patch"}, nil},
	{"pods of controllers", "apps", []string{"deployments", "daemonsets", "statefulsets", "replicasets"}, []string{"create", "update", "patch"}, nil},
	{"pods of jobs", "batch", []string{"jobs", "cronjobs"}, []string{"create", "update", "patch"}, nil},
	{"the kubelet's API", "", []string{"nodes/proxy"}, []string{"get", "create"}, nil},
	{"what every request passes", "admissionregistration.k8s.io", []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations",
		"mutatingadmissionpolicies", "validatingadmissionpolicies", "validatingadmissionpolicybindings"}, []string{"create", "update", "patch", "delete"}, nil},
	{"certificates", "certificates.k8s.io", []string{"signers"}, []string{"approve", "sign"}, []string{"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"}},
	{"API servers of others", "apiregistration.k8s.io", []string{"apiservices"}, []string{"create", "update", "patch"}, nil},
}

// ownNamespaces hold no account that is more powerful than the one whose rights are looked at.
var ownNamespaces = []string{"millwright-nodes", "millwright-system", "millwright-aws-system", "millwright-cloudconfig-system"}

// accepted are the ways that are open on purpose, by role. Where to close them is in docs/security.md. They are in the management
// cluster: nothing is accepted in target clusters.
var accepted = map[string][]string{
	"millwright-core-manager":        {"Secrets, where accounts are powerful"},
	"millwright-aws-manager":         {"Secrets, where accounts are powerful"},
	"millwright-cloudconfig-manager": {"Secrets, where accounts are powerful"},
	"millwright-core-webhook":        {"what every request passes"},
}

// TestNoIdentityHasAKnownWayToClusterAdmin reads every role that is installed.
func TestNoIdentityHasAKnownWayToClusterAdmin(t *testing.T) {
	g := NewWithT(t)
	found := map[string][]string{}
	seen := 0
	for _, role := range roles(t) {
		seen++
		for _, rule := range role.Rules {
			for _, way := range open(rule) {
				if role.Kind == "ClusterRole" || !slices.Contains(ownNamespaces, role.Namespace) {
					if !slices.Contains(found[role.Name], way) {
						found[role.Name] = append(found[role.Name], way)
					}
				}
			}
		}
	}
	g.Expect(seen).To(BeNumerically(">", 8))
	g.Expect(found).To(Equal(accepted))
}

// TestKnownWaysAreFound: wildcards and lists are seen through.
func TestKnownWaysAreFound(t *testing.T) {
	g := NewWithT(t)
	g.Expect(open(rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})).To(HaveLen(len(ways)))
	g.Expect(open(rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"secrets"}, Verbs: []string{"get"}})).To(HaveLen(1))
	g.Expect(open(rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, Verbs: []string{"approve"}})).To(HaveLen(1))
	g.Expect(open(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}})).To(BeEmpty())
}

// open returns the names of the ways that a rule opens. A name of an object makes no difference but for the exceptions.
func open(rule rbacv1.PolicyRule) []string {
	var names []string
	for _, way := range ways {
		if !holds(rule.APIGroups, way.group) || !slices.ContainsFunc(way.resources, func(r string) bool { return holds(rule.Resources, r) }) ||
			!slices.ContainsFunc(way.verbs, func(v string) bool { return holds(rule.Verbs, v) }) {
			continue
		}
		if len(rule.ResourceNames) > 0 && !slices.ContainsFunc(rule.ResourceNames, func(n string) bool { return !slices.Contains(way.except, n) }) {
			continue
		}
		names = append(names, way.name)
	}
	return names
}

func holds(list []string, want string) bool {
	return slices.Contains(list, want) || slices.Contains(list, "*")
}

// roles reads the Roles and ClusterRoles of all manifests that are rendered into out/.
func roles(t *testing.T) []rbacv1.Role {
	t.Helper()
	var all []rbacv1.Role
	err := filepath.WalkDir(filepath.Join(testenv.Root(), "config"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range bytes.Split(content, []byte("\n---\n")) {
			role := rbacv1.Role{}
			if !strings.Contains(string(document), "Role\n") || yaml.Unmarshal(document, &role) != nil {
				continue
			}
			if role.Kind == "Role" || role.Kind == "ClusterRole" {
				all = append(all, role)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
