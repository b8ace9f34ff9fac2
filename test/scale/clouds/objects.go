package clouds

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of what the benchmark creates.
const (
	namespace   = "clouds"
	clusterName = "clouds"
	account     = "provider"
)

// kubeletVersion is that of the machines.
const kubeletVersion = "v1.36.3"

// finalizer is the core's: a Machine stays until its instance is gone.
const finalizer = clusterv1.MachineFinalizer

func accountUser(p *Provider) string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", p.Namespace, account)
}

// foundations are the namespaces, and the identity of the provider with every right.
func foundations(p *Provider) []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: account}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.Namespace, Name: account}},
		},
	}
}

// cluster is one whose infrastructure and control plane have been there before.
func cluster(p *Provider) *clusterv1.Cluster {
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}},
	}
	if gvk := p.Infrastructure; gvk != nil {
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: gvk.Group, Kind: gvk.Kind, Name: clusterName}
	}
	return c
}

func clusterStatus() clusterv1.ClusterStatus {
	return clusterv1.ClusterStatus{
		Phase: string(clusterv1.ClusterPhaseProvisioned),
		Initialization: clusterv1.ClusterInitializationStatus{
			InfrastructureProvisioned: ptr.To(true),
			ControlPlaneInitialized:   ptr.To(true),
		},
	}
}

// machineName is the name of the i-th Machine, of its Secret and of its infrastructure machine.
func machineName(i int) string { return fmt.Sprintf("worker-%04d", i) }

func bootstrapSecret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: clusterName}},
		Type:       clusterv1.ClusterSecretType,
		Data:       map[string][]byte{"value": []byte("#cloud-config\nhostname: " + name + "\n"), "format": []byte("cloud-config")},
	}
}

// machine is a Machine as a core leaves it once the bootstrap data are there.
func machine(p *Provider, name string) *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Finalizers: []string{finalizer},
			Labels: map[string]string{clusterv1.ClusterNameLabel: clusterName, clusterv1.MachineDeploymentNameLabel: "workers"},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName:       clusterName,
			Version:           kubeletVersion,
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To(name)},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: p.Machine.Group, Kind: p.Machine.Kind, Name: name},
		},
	}
}
