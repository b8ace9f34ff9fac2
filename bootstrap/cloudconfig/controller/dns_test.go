package controller

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
)

func TestClusterDNS(t *testing.T) {
	for block, want := range map[string]string{
		"10.96.0.0/12": "10.96.0.10", "10.43.0.7/16": "10.43.0.10", "fd00:10:96::/112": "fd00:10:96::a", "10.0.0.0/29": "", "nothing": "", "": "",
	} {
		cluster := &clusterv1.Cluster{}
		if block != "" {
			cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{block, "fd00::/112"}
		}
		if got := clusterDNS(cluster); got != want {
			t.Errorf("%q: %q, want %q", block, got, want)
		}
	}
}

// What the Cluster declares about its services reaches the kubelet, and a kubelet that is open to everyone does not reach the machine.
func TestTheKubeletsConfiguration(t *testing.T) {
	f := configured(t)
	f.update(f.cluster, func() {
		f.cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"10.32.0.0/16"}
		f.cluster.Spec.ClusterNetwork.ServiceDomain = "cluster.example"
	})
	f.reconcile()
	f.provisioned()
	f.reconcile()
	f.condition(bootstrapv1.NodeSecretSyncedCondition, metav1.ConditionTrue, bootstrapv1.SyncedReason)
	archive := f.archive()
	f.Expect(archive).
		To(And(ContainSubstring("clusterDomain: cluster.example"), ContainSubstring("- 10.32.0.10"), ContainSubstring("mode: Webhook")))

	f.update(f.machine, func() { f.machine.Spec.Version = "v1.36.3" })
	f.update(f.config, func() {
		f.config.Spec.Kubelet.Config = &runtime.RawExtension{Raw: []byte(`{"featureGates":{"AnyVolumeDataSource":false}}`)}
	})
	f.reconcile()
	f.Expect(f.condition(bootstrapv1.NodeSecretSyncedCondition, metav1.ConditionFalse, bootstrapv1.ContentInvalidReason)).
		To(ContainSubstring("featureGates.AnyVolumeDataSource cannot be false: version 1.36 has it locked"))
	f.Expect(f.archive()).To(Equal(archive), "nothing of it reaches the machine")

	f.update(f.config, func() {
		f.config.Spec.Kubelet.Config = &runtime.RawExtension{Raw: []byte(`{"maxPods":42,"evictionHard":{"memory.available":"5%"}}`)}
	})
	f.reconcile()
	f.condition(bootstrapv1.NodeSecretSyncedCondition, metav1.ConditionTrue, bootstrapv1.SyncedReason)
	f.Expect(f.archive()).To(And(ContainSubstring("maxPods: 42"), ContainSubstring("memory.available: 5%")))
}

// archive is what the machine downloads, all files of it in a row.
func (f *fixture) archive() string {
	f.t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(f.nodeSecret().Data[node.PayloadKey]))
	f.Expect(err).NotTo(HaveOccurred())
	var all bytes.Buffer
	for files := tar.NewReader(reader); ; {
		_, err := files.Next()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		f.Expect(err).NotTo(HaveOccurred())
		_, err = io.Copy(&all, files)
		f.Expect(err).NotTo(HaveOccurred())
	}
}
