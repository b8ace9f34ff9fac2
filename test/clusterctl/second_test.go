package clusterctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/sandbox"
)

// TestSecondCore runs a core from the overlay beside one that is bound to another namespace: with the rights and the lease of its own
// manifest it creates and deletes a Machine with its instance, also when everything of the first one is gone but its kinds.
func TestSecondCore(t *testing.T) {
	l := newLife(t, sandbox.Options{Images: true, Clouds: []string{"aws"}})
	root, err := controlplane.Root()
	l.Expect(err).NotTo(HaveOccurred())
	l.export("CONFIG", filepath.Join(root, "config"))
	l.run(`kubectl create namespace millwright-aws-system && kubectl create namespace team-b`)
	l.run(`kubectl -n millwright-aws-system create secret generic millwright-aws-credentials --from-env-file=aws.env`)
	l.run(`kubectl apply --server-side -k "$CONFIG/core" && kubectl apply --server-side -k "$CONFIG/providers/aws"`)
	l.run(`kubectl -n millwright-system patch deployment millwright-core --type json \
		-p '[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--namespace=default"}]'`)
	l.run(`kubectl -n millwright-system rollout status deployment millwright-core --timeout=4m`)
	l.run(`kubectl apply --server-side -k "$CONFIG/overlays/second-core"`)
	l.run(`kubectl -n millwright-second rollout status deployment millwright-core-second --timeout=4m`)
	l.run(`kubectl --kubeconfig "$TARGET" apply -f "` + root + `/out/target/target-components.yaml"`)
	kubeconfig, err := l.sandbox.TargetKubeconfig(l.ctx)
	l.Expect(err).NotTo(HaveOccurred())
	l.write("target.kubeconfig", string(kubeconfig))
	for cluster, namespace := range map[string]string{"name": "team-b", "elsewhere": "default"} {
		l.run(
			`kubectl -n ` + namespace + ` create secret generic ` + cluster +
				`-kubeconfig --type cluster.x-k8s.io/secret --from-file=value=target.kubeconfig
			kubectl -n ` + namespace + ` label secret ` + cluster + `-kubeconfig cluster.x-k8s.io/cluster-name=` + cluster,
		)
	}
	l.write("workers.yaml", strings.ReplaceAll(shootWorkers, shoot, "team-b"))
	l.run(`kubectl apply -f workers.yaml`)
	l.run(`kubectl -n team-b wait cluster name --for=condition=Available --timeout=4m`)
	l.run(`kubectl wait cluster elsewhere --for=condition=Available --timeout=4m`)
	l.Eventually(l.live).Should(HaveLen(1))
	for core, others := range map[string]string{"millwright-core": "team-b", "millwright-core-second": "elsewhere"} {
		log, err := os.ReadFile(filepath.Join(l.sandbox.LogDir(), "control-"+core+".log"))
		l.Expect(err).NotTo(HaveOccurred())
		l.Expect(string(log)).NotTo(ContainSubstring("is forbidden"), core)
		l.Expect(string(log)).NotTo(ContainSubstring(others), "what %s has in common with the other", core)
	}
	lease := `get lease millwright-core -o jsonpath='{.spec.holderIdentity}'`
	l.Expect(l.run(`kubectl -n millwright-second ` + lease)).NotTo(Equal(l.run(`kubectl -n millwright-system ` + lease)))

	// As uninstall.md deletes the first one, without its kinds.
	l.run(`kubectl delete cluster elsewhere --timeout=4m`)
	l.run(`for kind in validatingwebhookconfigurations mutatingwebhookconfigurations namespaces clusterrolebindings clusterroles; do
		kubectl delete "$kind" -l clusterctl.cluster.x-k8s.io,cluster.x-k8s.io/provider=cluster-api --timeout=4m; done`)
	l.run(`kubectl -n team-b delete cluster name --timeout=4m`)
	l.Eventually(l.live).Should(BeEmpty())
}
