package clusterctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/sandbox"
)

const (
	// shoot is the namespace of the overlay.
	shoot = "shoot--project--name"
	// shootWorkers are a user's objects in it. What creates the user data makes the machine a Node.
	shootWorkers = `
apiVersion: v1
kind: Secret
metadata: {name: user-data, namespace: shoot--project--name, labels: {cluster.x-k8s.io/cluster-name: name}}
stringData: {value: "#!/bin/sh\ntrue\n"}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: name, namespace: shoot--project--name}
spec: {clusterNetwork: {serviceDomain: cluster.local}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: elsewhere, namespace: default}
spec: {clusterNetwork: {serviceDomain: cluster.local}}
---
apiVersion: infrastructure.millwright.dev/v1alpha1
kind: AWSMachineTemplate
metadata: {name: workers, namespace: shoot--project--name}
spec:
  template:
    spec:
      region: us-east-1
      instanceType: m5.large
      ami: {id: ami-0a000000000000001}
      subnets: [{id: subnet-0a000000000000001}]
      securityGroupIDs: [sg-0a000000000000001]
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineSet
metadata: {name: workers, namespace: shoot--project--name}
spec:
  clusterName: name
  replicas: 1
  selector: {matchLabels: {pool: workers}}
  template:
    metadata: {labels: {pool: workers}}
    spec:
      clusterName: name
      version: v1.36.3
      bootstrap: {dataSecretName: user-data}
      infrastructureRef: {apiGroup: infrastructure.millwright.dev, kind: AWSMachineTemplate, name: workers}
`
)

// TestShoot runs the managers in the structure of the Machine Controller Manager: two containers of one Pod, in the namespace of a shoot,
// with rights only in that, and with the shoot's own kubeconfig.
func TestShoot(t *testing.T) {
	l := newLife(t, sandbox.Options{Images: true, Clouds: []string{"aws", "azure", "gcp"}})
	root, err := controlplane.Root()
	l.Expect(err).NotTo(HaveOccurred())
	l.export("OVERLAYS", filepath.Join(root, "config", "overlays"))
	l.run(`kubectl apply --server-side -k "$OVERLAYS/mcm/seed/aws"`)
	l.run(`kubectl apply -f "$OVERLAYS/mcm/shoot/aws/namespace.yaml"`)
	l.run(`kubectl --kubeconfig "$TARGET" apply -f "` + root + `/out/target/target-components.yaml"`)
	kubeconfig, err := l.sandbox.TargetKubeconfig(l.ctx)
	l.Expect(err).NotTo(HaveOccurred())
	l.write("shoot.kubeconfig", string(kubeconfig))
	l.run(`kubectl -n ` + shoot + ` create secret generic cloudprovider --from-env-file=aws.env`)
	l.run(`kubectl -n ` + shoot + ` create secret generic millwright-target --from-file=kubeconfig=shoot.kubeconfig`)
	l.run(`kubectl apply --server-side -k "$OVERLAYS/mcm/shoot/aws"`)
	l.run(`kubectl -n ` + shoot + ` rollout status deployment millwright --timeout=4m`)

	l.write("workers.yaml", shootWorkers)
	l.run(`kubectl apply -f workers.yaml`)
	l.run(`kubectl -n ` + shoot + ` wait cluster name --for=condition=Available --timeout=4m`)
	l.Eventually(func(g Gomega) {
		machines := l.machines(l.from)
		g.Expect(machines).To(HaveLen(1))
		g.Expect(machines[0].Spec.ProviderID).NotTo(BeEmpty())
		g.Expect(machines[0].Status.Initialization.InfrastructureProvisioned).To(HaveValue(BeTrue()))
	}).Should(Succeed())
	elsewhere := &clusterv1.Cluster{}
	l.Expect(l.from.Client.Get(l.ctx, client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: "elsewhere"}, elsewhere)).To(Succeed())
	l.Expect(elsewhere.Finalizers).To(BeEmpty(), "another namespace is left alone")

	l.identitiesAreNotUsed()

	l.run(`kubectl -n ` + shoot + ` delete cluster name --timeout=4m`)
	l.Eventually(l.live).Should(BeEmpty())

	for cloud, spec := range shootSpecs {
		l.shootOf(cloud, spec)
	}
	l.noRightIsMissing("core", "aws", "azure", "gcp")

	l.run(`kubectl delete -k "$OVERLAYS/mcm/shoot/aws" --wait=false`)
	l.run(`kubectl get clusterrole millwright-shoot`) // The rights of all other shoots.
}

// shootSpecs are machines of the other clouds: kind and spec.
var shootSpecs = map[string][2]string{
	"azure": {"AzureMachine", `
      subscriptionID: ` + values["azure"]["AZURE_SUBSCRIPTION_ID"] + `
      resourceGroup: nodes
      location: westeurope
      vmSize: Standard_D4s_v5
      image: {id: ` + values["azure"]["AZURE_IMAGE_ID"] + `}
      subnetID: ` + values["azure"]["AZURE_SUBNET_ID"]},
	"gcp": {"GCPMachine", `
      project: my-project
      zones: [us-central1-a]
      machineType: e2-standard-4
      image: {project: my-images, family: millwright-node-v1-36}
      subnetwork: ` + values["gcp"]["GCP_SUBNETWORK"]},
}

// shootOf runs a shoot of another cloud in the same seed, in a namespace whose name is changed in the two files that install.md names.
func (l *life) shootOf(cloud string, machine [2]string) {
	namespace := "shoot--project--" + cloud
	l.run(`cp -r "$OVERLAYS/mcm" ` + cloud + ` && sed -i 's/` + shoot + `/` + namespace + `/' ` + cloud + `/shoot/` + cloud + `/*.yaml`)
	l.run(`kubectl apply --server-side -k "$OVERLAYS/mcm/seed/` + cloud + `"`)
	l.run(`kubectl apply -f ` + cloud + `/shoot/` + cloud + `/namespace.yaml`)
	l.run(`kubectl -n ` + namespace + ` create secret generic millwright-target --from-file=kubeconfig=shoot.kubeconfig`)
	l.run(`kubectl apply --server-side -k ` + cloud + `/shoot/` + cloud)
	l.run(`kubectl -n ` + namespace + ` rollout status deployment millwright --timeout=4m`)
	workers := strings.NewReplacer(shoot, namespace, "AWSMachine", machine[0]).Replace(shootWorkers)
	i, j := strings.Index(workers, "\n      region:"), strings.Index(workers, "\n---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineSet")
	l.Expect([]int{i, j}).To(HaveEach(BeNumerically(">", 0)))
	l.write(cloud+".yaml", workers[:i]+machine[1]+workers[j:])
	l.run(`kubectl apply -f ` + cloud + `.yaml`)
	l.Eventually(func() string {
		return l.run(`kubectl -n ` + namespace + ` get machines -o jsonpath='{.items[*].status.initialization.infrastructureProvisioned}'`)
	}).Should(Equal("true"))
	l.run(`kubectl -n ` + namespace + ` delete cluster name --timeout=4m`)
	l.Eventually(func() ([]string, error) { return l.sandbox.Cloud(cloud).Left(l.ctx) }).Should(BeEmpty())
}

// noRightIsMissing expects managers that have not exited and had no request forbidden.
func (l *life) noRightIsMissing(containers ...string) {
	restarts, failures := l.hosts[l.from].Restarts()
	l.Expect(restarts).To(BeZero(), "%v", failures)
	for _, container := range containers {
		log, err := os.ReadFile(filepath.Join(l.sandbox.LogDir(), "control-millwright-"+container+".log"))
		l.Expect(err).NotTo(HaveOccurred())
		l.Expect(string(log)).NotTo(ContainSubstring("is forbidden"), "a right is missing in the overlay")
	}
}

// identityOfTheSeed allows the shoot, and a MachineSet names it.
const identityOfTheSeed = `
apiVersion: infrastructure.millwright.dev/v1alpha1
kind: AWSIdentity
metadata: {name: seed}
spec: {allowedNamespaces: {}, secret: {name: keys}}
`

// identitiesAreNotUsed: nothing is launched for a machine that names one, which reports that, and the identity is left as it is.
func (l *life) identitiesAreNotUsed() {
	launched := l.launches()
	_, workers, found := strings.Cut(shootWorkers, "---\napiVersion: infrastructure.millwright.dev/v1alpha1\nkind: AWSMachineTemplate")
	l.Expect(found).To(BeTrue())
	workers = "apiVersion: infrastructure.millwright.dev/v1alpha1\nkind: AWSMachineTemplate" + workers
	workers = strings.NewReplacer("name: workers", "name: tenants", "pool: workers", "pool: tenants",
		"region: us-east-1", "region: us-east-1\n      identityRef: {name: seed}").Replace(workers)
	l.write("tenants.yaml", identityOfTheSeed+"---\n"+workers)
	l.run(`kubectl apply -f tenants.yaml`)
	l.Eventually(func() string {
		return l.run(
			`kubectl -n ` + shoot + ` get awsmachines -l pool=tenants -o jsonpath='{.items[*].status.conditions[?(@.type=="Ready")].message}'`,
		)
	}).Should(ContainSubstring("this provider uses none (--without-identities)"))
	l.Expect(l.launches()).To(Equal(launched))
	l.Expect(l.run(`kubectl get awsidentity seed -o jsonpath='{.metadata.finalizers}{.status}'`)).To(BeEmpty())
}
