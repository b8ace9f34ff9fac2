package rights

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/testenv"
)

// ways are the known ways to cluster-admin: verbs on these resources, in these groups.
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
	{"impersonation of others", "", []string{"users", "groups", "serviceaccounts"}, []string{"impersonate"}, nil},
	{"tokens of accounts", "", []string{"serviceaccounts/token"}, []string{"create"}, nil},
	{"Secrets, where accounts are powerful", "", []string{"secrets"}, []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"}, nil},
	{"pods, where accounts are powerful", "", []string{"pods", "pods/ephemeralcontainers"}, []string{"create", "update", "patch"}, nil},
	{"commands in pods", "", []string{"pods/exec", "pods/attach"}, []string{"create", "get"}, nil},
	{"pods of controllers", "apps", []string{"deployments", "daemonsets", "statefulsets", "replicasets"}, []string{"create", "update", "patch"}, nil},
	{"pods of jobs", "batch", []string{"jobs", "cronjobs"}, []string{"create", "update", "patch"}, nil},
	{"the kubelet's API", "", []string{"nodes/proxy"}, []string{"get", "create"}, nil},
	{
		"what every request passes",
		"admissionregistration.k8s.io",
		[]string{
			"mutatingwebhookconfigurations",
			"validatingwebhookconfigurations",
			"mutatingadmissionpolicies",
			"validatingadmissionpolicies",
			"validatingadmissionpolicybindings",
		},
		[]string{"create", "update", "patch", "delete"},
		nil,
	},
	{
		"certificates",
		"certificates.k8s.io",
		[]string{"signers"},
		[]string{"approve", "sign"},
		[]string{"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"},
	},
	{"API servers of others", "apiregistration.k8s.io", []string{"apiservices"}, []string{"create", "update", "patch"}, nil},
}

// ownNamespaces hold no account that is more powerful than the one whose rights are checked.
var ownNamespaces = []string{
	"millwright-nodes",
	"millwright-system",
	"millwright-aws-system",
	"millwright-azure-system",
	"millwright-gcp-system",
	"millwright-cloudconfig-system",
}

// accepted are the ways that are open on purpose, by role. Where to close them is in docs/security.md. They are in the management
// cluster, but for the rights on tokens in target clusters, which a policy closes: see TestAPolicyHoldsTheRightsOnTokens.
var accepted = map[string][]string{
	"millwright-system-core-manager":        {"Secrets, where accounts are powerful"},
	"millwright-aws-system-manager":         {"Secrets, where accounts are powerful"},
	"millwright-azure-system-manager":       {"Secrets, where accounts are powerful"},
	"millwright-gcp-system-manager":         {"Secrets, where accounts are powerful"},
	"millwright-cloudconfig-system-manager": {"Secrets, where accounts are powerful"},
	"millwright-system-core-webhook":        {"what every request passes"},
	"millwright-target-tokens":              {"Secrets, where accounts are powerful"},
}

// rolesOfOthers are the roles that our manifests bind and do not define.
var rolesOfOthers = []string{"ClusterRole system:node-bootstrapper"}

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

// TestNoIdentityIsBoundToRolesOfOthers: a binding to cluster-admin needs no role of ours.
func TestNoIdentityIsBoundToRolesOfOthers(t *testing.T) {
	g := NewWithT(t)
	ours := map[string]bool{}
	for _, role := range roles(t) {
		ours[role.Kind+" "+role.Name] = true
	}
	var foreign []string
	for _, binding := range bindings(t) {
		if role := binding.RoleRef.Kind + " " + binding.RoleRef.Name; !ours[role] && !slices.Contains(foreign, role) {
			foreign = append(foreign, role)
		}
	}
	g.Expect(foreign).To(Equal(rolesOfOthers))
}

// TestAPolicyHoldsTheRightsOnTokens: the role alone would grant every Secret of kube-system. What the policy refuses is tested in
// bootstrap/cloudconfig, TestTheTargetIdentityIsNoClusterAdmin.
func TestAPolicyHoldsTheRightsOnTokens(t *testing.T) {
	g := NewWithT(t)
	directory := filepath.Join(testenv.Root(), "config/target-cluster")
	var install struct{ Resources []string }
	content, err := os.ReadFile(filepath.Join(directory, "kustomization.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Unmarshal(content, &install)).To(Succeed())
	policyAt, roleAt := slices.Index(install.Resources, "tokens_policy.yaml"), slices.Index(install.Resources, "role.yaml")
	g.Expect(policyAt).To(BeNumerically(">=", 0), "the policy is not installed")
	g.Expect(policyAt).To(BeNumerically("<", roleAt), "the policy comes before the rights that it restricts")

	policy, held := admissionv1.ValidatingAdmissionPolicy{}, admissionv1.ValidatingAdmissionPolicyBinding{}
	content, err = os.ReadFile(filepath.Join(directory, "tokens_policy.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	parts := bytes.Split(content, []byte("\n---\n"))
	g.Expect(parts).To(HaveLen(2))
	g.Expect(yaml.UnmarshalStrict(parts[0], &policy)).To(Succeed())
	g.Expect(yaml.UnmarshalStrict(parts[1], &held)).To(Succeed())
	g.Expect(held.Spec.PolicyName).To(Equal(policy.Name))
	g.Expect(held.Spec.ValidationActions).To(ConsistOf(admissionv1.Deny))
	g.Expect(policy.Spec.FailurePolicy).To(HaveValue(Equal(admissionv1.Fail)))
	g.Expect(policy.Spec.MatchConditions).To(HaveLen(1))
	holders := 0
	for _, binding := range bindings(t) {
		if binding.RoleRef.Name != "millwright-target-tokens" {
			continue
		}
		for _, subject := range binding.Subjects {
			holders++
			g.Expect(subject.Kind).To(Equal(rbacv1.ServiceAccountKind))
			g.Expect(policy.Spec.MatchConditions[0].Expression).To(Equal(
				fmt.Sprintf("request.userInfo.username == 'system:serviceaccount:%s:%s'", subject.Namespace, subject.Name)))
		}
	}
	g.Expect(holders).To(Equal(1))
}

// TestKnownWaysAreFound: wildcards and lists are resolved.
func TestKnownWaysAreFound(t *testing.T) {
	g := NewWithT(t)
	g.Expect(open(rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})).To(HaveLen(len(ways)))
	g.Expect(open(rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"secrets"}, Verbs: []string{"get"}})).To(HaveLen(1))
	g.Expect(open(rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, Verbs: []string{"approve"}})).
		To(HaveLen(1))
	g.Expect(open(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}})).To(HaveLen(1))
	g.Expect(open(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "pods/exec"}, Verbs: []string{"get"}})).To(HaveLen(1))
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
		if len(rule.ResourceNames) > 0 &&
			!slices.ContainsFunc(rule.ResourceNames, func(n string) bool { return !slices.Contains(way.except, n) }) {
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
func roles(t *testing.T) []rbacv1.Role { return read[rbacv1.Role](t, "Role", "ClusterRole") }

// bindings reads the RoleBindings and ClusterRoleBindings of the same manifests.
func bindings(t *testing.T) []rbacv1.RoleBinding {
	return read[rbacv1.RoleBinding](t, "RoleBinding", "ClusterRoleBinding")
}

// read returns the objects of two kinds that have the same fields.
func read[T any](t *testing.T, kinds ...string) []T {
	t.Helper()
	var all []T
	err := filepath.WalkDir(filepath.Join(testenv.Root(), "out"), func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "release" {
			return filepath.SkipDir // The same manifests, of any version.
		}
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range bytes.Split(content, []byte("\n---\n")) {
			meta := metav1.TypeMeta{}
			if yaml.Unmarshal(document, &meta) != nil || meta.GroupVersionKind().Group != rbacv1.GroupName || !slices.Contains(kinds, meta.Kind) {
				continue
			}
			var object T
			if err := yaml.Unmarshal(document, &object); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			all = append(all, object)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("run `make manifests`: %v", err)
	}
	return all
}

// TestWhoMayDeleteMachines: that deletes machines of any cloud. The core does so for its sets, and a provider before the cloud does.
func TestWhoMayDeleteMachines(t *testing.T) {
	g := NewWithT(t)
	var found []string
	for _, role := range roles(t) {
		for _, rule := range role.Rules {
			if holds(rule.APIGroups, "cluster.x-k8s.io") && holds(rule.Resources, "machines") && holds(rule.Verbs, "delete") &&
				!slices.Contains(found, role.Name) {
				found = append(found, role.Name)
			}
		}
	}
	g.Expect(found).To(ConsistOf("millwright-system-core-manager", "millwright-aws-system-manager"))
	for _, role := range roles(t) {
		for _, rule := range role.Rules {
			if role.Name == "millwright-aws-system-manager" && holds(rule.APIGroups, "cluster.x-k8s.io") && holds(rule.Verbs, "delete") {
				g.Expect(rule.Resources).To(ConsistOf("machines"))
				g.Expect(rule.Verbs).NotTo(ContainElement("deletecollection"))
			}
		}
	}
}
