package clusterctl

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The names of what the next release has changed.
const (
	changedDefinition = "awsmachines.infrastructure.millwright.dev"
	changedRole       = "millwright-aws-system-manager"
	changedManager    = "millwright-aws"
	droppedBinding    = "millwright-aws-templates"
)

// nextRelease builds a release whose AWS provider differs from that of this checkout: its definition has another field and column, its
// role another rule, its manager another variable, and it lacks a binding.
func (l *life) nextRelease(version string) {
	l.Expect(l.releaseManifests(version, filepath.Join(l.dir, "out", "release"))).To(Succeed())
	path := filepath.Join(l.dir, "out", "release", "infrastructure-millwright-aws", version, "infrastructure-components.yaml")
	content, err := os.ReadFile(path)
	l.Expect(err).NotTo(HaveOccurred())
	changes := map[string]func(document string) string{
		"CustomResourceDefinition " + changedDefinition: func(document string) string {
			document = strings.Replace(document, "  - additionalPrinterColumns:\n",
				"  - additionalPrinterColumns:\n    - {name: Next, type: string, jsonPath: .spec.next}\n", 1)
			head, spec, _ := strings.Cut(document, "\n          spec:\n")
			return head + "\n          spec:\n" +
				strings.Replace(spec, "\n            properties:\n", "\n            properties:\n              next: {type: string}\n", 1)
		},
		"ClusterRole " + changedRole: func(document string) string {
			return strings.Replace(document, "\nrules:\n", "\nrules:\n- {apiGroups: [next.example.com], resources: [things], verbs: [get]}\n", 1)
		},
		"Deployment " + changedManager: func(document string) string {
			return strings.Replace(document, "        env:\n", "        env:\n        - {name: NEXT, value: \"1\"}\n", 1)
		},
		"ValidatingAdmissionPolicyBinding " + droppedBinding: func(string) string { return "" },
	}
	var documents []string
	for _, document := range strings.Split(string(content), "\n---\n") {
		for of, change := range changes {
			kind, name, _ := strings.Cut(of, " ")
			if strings.Contains("\n"+document, "\nkind: "+kind+"\n") && strings.Contains(document, "\n  name: "+name+"\n") {
				changed := change(document)
				l.Expect(changed).NotTo(Equal(document), of)
				document = changed
				delete(changes, of)
			}
		}
		documents = append(documents, document)
	}
	l.Expect(changes).To(BeEmpty(), "the release has none of these")
	l.Expect(os.WriteFile(path, []byte(strings.Join(documents, "\n---\n")), 0o600)).To(Succeed())
}

// expectNext expects what the next release has, or what the previous one had.
func (l *life) expectNext(next bool) {
	l.t.Helper()
	get := func(name, namespace string, object client.Object) {
		l.Expect(l.from.Client.Get(l.ctx, client.ObjectKey{Name: name, Namespace: namespace}, object)).To(Succeed())
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	get(changedDefinition, "", definition)
	var columns []string
	for _, column := range definition.Spec.Versions[0].AdditionalPrinterColumns {
		columns = append(columns, column.Name)
	}
	role, manager := &rbacv1.ClusterRole{}, &appsv1.Deployment{}
	get(changedRole, "", role)
	get(changedManager, "millwright-aws-system", manager)
	var groups, variables []string
	for _, rule := range role.Rules {
		groups = append(groups, rule.APIGroups...)
	}
	for _, variable := range manager.Spec.Template.Spec.Containers[0].Env {
		variables = append(variables, variable.Name)
	}
	bindings := &admissionv1.ValidatingAdmissionPolicyBindingList{}
	l.Expect(l.from.Client.List(l.ctx, bindings)).To(Succeed())
	var bound []string
	for _, binding := range bindings.Items {
		bound = append(bound, binding.Name)
	}
	has := func(list []string, element string, expected bool) {
		l.t.Helper()
		if expected {
			l.Expect(list).To(ContainElement(element))
		} else {
			l.Expect(list).NotTo(ContainElement(element))
		}
	}
	has(columns, "Next", next)
	has(groups, "next.example.com", next)
	has(variables, "NEXT", next)
	has(bound, droppedBinding, !next)
}

// setsNext writes the field that only the next release has, and returns what the API server has kept.
func (l *life) setsNext() string {
	return l.run(`kubectl create --dry-run=server -o jsonpath='{.spec.next}' -f - <<END
apiVersion: infrastructure.millwright.dev/v1alpha1
kind: AWSMachine
metadata: {name: next, namespace: default}
spec:
  {region: us-east-1, instanceType: m5.large, ami: {id: ami-0a000000000000001}, subnets: [{id: subnet-0a000000000000001}],
  securityGroupIDs: [sg-0a000000000000001], next: kept}
END`)
}
