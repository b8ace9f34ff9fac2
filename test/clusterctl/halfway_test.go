package clusterctl

import (
	"strings"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/test/doccheck"
)

// refusal has an API server refuse to delete one Machine, as a webhook may.
const refusal = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refusal}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [cluster.x-k8s.io], apiVersions: ["*"], operations: [DELETE], resources: [machines]}]
  validations: [{expression: "request.name != 'NAME'", message: this one stays}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refusal}
spec: {policyName: refusal, validationActions: [Deny]}
`

// moveInterrupted begins the move of the page, has the source refuse a deletion, and kills clusterctl, which tries it again for minutes.
// Everything is at the target then, and the source has Machines whose infrastructure objects it no longer has.
func (l *life) moveInterrupted() {
	refused := l.machines(l.from)[0].Name
	l.write("refusal.yaml", strings.ReplaceAll(refusal, "NAME", refused))
	l.run(`kubectl apply -f refusal.yaml`)
	l.Eventually(func() string {
		said, _ := l.try(`kubectl delete machines --all --dry-run=server`)
		return said
	}).Should(ContainSubstring("this one stays"))
	move := doccheck.Read(l.t, "docs/guides/move.md").Commands(l.t, "The move")
	l.write("move.sh", "set -eu\n"+move)
	// Only leaveInDeletion leaves an object between its deletion and the end of its finalizers.
	deletion := `"verb":"delete".*"userAgent":"clusterctl/.*"resource":"machines".*"name":"` + refused + `".*"status":"Failure"`
	l.run(`setsid bash move.sh & mover=$!
	for i in $(seq 1200); do ! grep -q '` + deletion + `' "` + l.from.AuditLog() + `" || break; kill -0 "$mover" || break; sleep 0.1; done
	kill -9 -- "-$mover"; wait || true
	kubectl delete -f refusal.yaml`)
	l.Expect(l.machines(l.from)).NotTo(BeEmpty())
	l.Expect(l.run(`kubectl get awsmachines -o name`)).To(BeEmpty())
	l.leaveInDeletion()
	said, err := l.try(`clusterctl move --to-kubeconfig "$TO"`)
	l.Expect(err).To(HaveOccurred())
	l.Expect(said).To(ContainSubstring("Clusters are paused: default/my-cluster"))
}

// leaveInDeletion has the source look as if clusterctl had been killed just before it removed the finalizers of what it deletes: an
// infrastructure machine and a Machine are in deletion. A provider that takes the first one for its own terminates the instance.
func (l *life) leaveInDeletion() {
	machine := l.machines(l.from)[0]
	name := machine.Spec.InfrastructureRef.Name
	l.Eventually(func() error {
		_, err := l.try(`kubectl delete machines --all --dry-run=server`)
		return err
	}).Should(Succeed(), "the policy should be gone")
	l.run(`kubectl --kubeconfig "$TO" get awsmachine ` + name + ` -o yaml |
		sed '/^  uid:/d; /^  resourceVersion:/d; s/^    uid: .*/    uid: ` + string(machine.UID) + `/' | kubectl create -f -
	kubectl delete --wait=false awsmachine ` + name + `
	kubectl delete --wait=false machine ` + machine.Name)
	l.Expect(l.run(`kubectl get awsmachines,machines -o jsonpath='{.items[?(@.metadata.deletionTimestamp)].kind}'`)).
		To(Equal("AWSMachine Machine"))
}

// pausedOnes are the objects of the Cluster with the annotation that the page sets for the time of a repeated move.
func (l *life) pausedOnes() string {
	return l.run(
		`kubectl --kubeconfig "$TO" get machinedeployments,machinesets,machines,machinehealthchecks -o yaml | grep ` +
			clusterv1.PausedAnnotation + `: || true`,
	)
}
