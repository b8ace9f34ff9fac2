package main

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
)

// machine makes a Cluster, a bootstrap Secret, a Machine and the AWSMachine that it owns.
func (f *fixture) machine(name string, adjust ...func(*infrav1.AWSMachine)) *infrav1.AWSMachine {
	f.t.Helper()
	f.cluster(true)
	f.secret(name)
	owner := f.ownerMachine(name, name, true)
	return f.awsMachine(name, owner, adjust...)
}

func (f *fixture) cluster(provisioned bool) *clusterv1.Cluster {
	f.t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "green"},
		Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}}}
	if err := f.client.Create(f.ctx, cluster); client.IgnoreAlreadyExists(err) != nil {
		f.t.Fatal(err)
	}
	f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
	base := cluster.DeepCopy()
	cluster.Status.Initialization.InfrastructureProvisioned = &provisioned
	f.Expect(f.client.Status().Patch(f.ctx, cluster, client.MergeFrom(base))).To(Succeed())
	return cluster
}

func (f *fixture) secret(name string) {
	f.t.Helper()
	f.Expect(f.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Data:       map[string][]byte{"value": []byte("#cloud-config\n"), "format": []byte("cloud-config")},
	})).To(Succeed())
}

func (f *fixture) ownerMachine(name, infraName string, withData bool, adjust ...func(*clusterv1.Machine)) *clusterv1.Machine {
	f.t.Helper()
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: clusterv1.MachineSpec{
			ClusterName: "green",
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "bootstrap.millwright.dev", Kind: "CloudConfig", Name: name}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: infrav1.GroupVersion.Group, Kind: "AWSMachine", Name: infraName},
		},
	}
	if withData {
		m.Spec.Bootstrap.DataSecretName = &m.Name
	}
	for _, a := range adjust {
		a(m)
	}
	f.Expect(f.client.Create(f.ctx, m)).To(Succeed())
	return m
}

func (f *fixture) awsMachine(name string, owner *clusterv1.Machine, adjust ...func(*infrav1.AWSMachine)) *infrav1.AWSMachine {
	f.t.Helper()
	m := &infrav1.AWSMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name,
			Labels: map[string]string{clusterv1.ClusterNameLabel: "green"}},
		Spec: infrav1.AWSMachineSpec{
			Region: testRegion, InstanceType: "m5.large", AMI: infrav1.AMIReference{ID: testImage},
			Subnets: []infrav1.SubnetReference{{ID: subnetA}}, SecurityGroupIDs: []string{testGroup},
		},
	}
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine"))}
	}
	for _, a := range adjust {
		a(m)
	}
	f.Expect(f.client.Create(f.ctx, m)).To(Succeed())
	return m
}

// nameData lets the Machine name its bootstrap data.
func (f *fixture) nameData(name, secret string) {
	f.t.Helper()
	owner := &clusterv1.Machine{}
	f.Expect(f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, owner)).To(Succeed())
	base := owner.DeepCopy()
	owner.Spec.Bootstrap.DataSecretName = &secret
	f.Expect(f.client.Patch(f.ctx, owner, client.MergeFrom(base))).To(Succeed())
}

func ownedByBootstrapConfig() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "bootstrap.millwright.dev/v1alpha1", Kind: "CloudConfig", Name: "m", UID: "u"}
}

// machineWithData makes what machine makes, with bootstrap data and their format; no format where it is empty.
func (f *fixture) machineWithData(name string, data []byte, format string, adjust ...func(*infrav1.AWSMachine)) {
	f.t.Helper()
	f.cluster(true)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Data:       map[string][]byte{"value": data},
	}
	if format != "" {
		secret.Data["format"] = []byte(format)
	}
	f.Expect(f.client.Create(f.ctx, secret)).To(Succeed())
	f.awsMachine(name, f.ownerMachine(name, name, true), adjust...)
}
