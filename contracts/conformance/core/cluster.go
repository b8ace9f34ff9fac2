package core

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
)

func clusterCases() []conformance.Case[*Env] {
	return []conformance.Case[*Env]{
		scenario("Cluster/Owners", []rules.ID{"CO-035", "CO-036", "CO-037"}, clusterOwners),
		scenario("Cluster/Provisioning", []rules.ID{"CO-038", "CO-039", "CO-040", "CO-041"}, clusterProvisioning),
		scenario("Cluster/Conditions", []rules.ID{"CO-042", "CO-043"}, clusterConditions),
		scenario("Cluster/Replicas", []rules.ID{"CO-044"}, clusterReplicas),
		scenario("Cluster/Failure", []rules.ID{"CO-057"}, clusterFailure),
		scenario("Cluster/Deletion", []rules.ID{"CO-045"}, clusterDeletion),
		scenario("Cluster/Kubeconfig", []rules.ID{"CO-047"}, clusterKubeconfig),
	}
}

func clusterOwners(w *world) {
	s := w.declare()
	w.check("CO-035", "the Cluster is an owner of the infrastructure cluster", w.soon(func() string { return w.belongs(s.infra, s.cluster) }))
	w.check("CO-036", "the Cluster is an owner of the control plane", w.soon(func() string { return w.belongs(s.plane, s.cluster) }))
	w.check("CO-037", "both have the label with the name of the Cluster", w.soon(func() string {
		if deviation := w.labelled(s.infra); deviation != "" {
			return "infrastructure cluster: " + deviation
		}
		if deviation := w.labelled(s.plane); deviation != "" {
			return "control plane: " + deviation
		}
		return ""
	}))
}

func clusterProvisioning(w *world) {
	s := w.declare()
	w.need(w.soon(func() string { return w.belongs(s.infra, s.cluster) }))
	provisioned := func() bool { return ptr.Deref(w.readCluster().Status.Initialization.InfrastructureProvisioned, false) }
	initialized := func() bool { return ptr.Deref(w.readCluster().Status.Initialization.ControlPlaneInitialized, false) }
	infra := w.quiet(func() string { return when(provisioned(), "it reports so before the provider does") })
	w.settle(s.infra, fields{"controlPlaneEndpoint": fields{"host": "192.0.2.1", "port": int64(6443)}})
	w.report(s.infra, fields{"failureDomains": w.domains()})
	w.report(s.infra, w.provisioned(true))
	infra += w.soon(func() string { return when(!provisioned(), "it does not report so") })
	w.check("CO-038", "the Cluster reports provisioned infrastructure once the provider does, and not before", infra)
	w.check("CO-039", "the Cluster has the endpoint", w.soon(func() string {
		got := w.readCluster().Spec.ControlPlaneEndpoint
		return when(got.Host != "192.0.2.1" || got.Port != 6443, fmt.Sprintf("spec.controlPlaneEndpoint is %v", got))
	}))
	w.check("CO-040", "the Cluster has the failure domains", w.soon(func() string {
		got := w.readCluster().Status.FailureDomains
		return when(len(got) != 2 || got[0].Name != "zone-a" || !ptr.Deref(got[0].ControlPlane, false) || got[1].Name != "zone-b",
			fmt.Sprintf("status.failureDomains are %v", got))
	}))
	plane := w.quiet(func() string { return when(initialized(), "it reports so before the provider does") })
	w.report(s.plane, w.initialized())
	plane += w.soon(func() string {
		if deviation := mirrored(w.readCluster().Status.Conditions, "ControlPlaneInitialized", metav1.ConditionTrue, ""); deviation != "" {
			return deviation
		}
		return when(!initialized(), "it does not report so")
	})
	w.check("CO-041", "the Cluster reports an initialized control plane once the provider does, and not before", plane)
}

func when(deviates bool, deviation string) string {
	if deviates {
		return deviation
	}
	return ""
}

// domains returns two failure domains in the format of the contract.
func (w *world) domains() any {
	if w.Contract == version.V1Beta1 {
		return fields{"zone-a": fields{"controlPlane": true}, "zone-b": fields{"controlPlane": false}}
	}
	return []any{fields{"name": "zone-a", "controlPlane": true}, fields{"name": "zone-b", "controlPlane": false}}
}

func clusterConditions(w *world) {
	s := w.open()
	w.report(s.infra, w.condition("Ready", "False", "NoNetwork", "there is no network"))
	w.report(s.plane, w.condition("Available", "False", "NoQuorum", "there is no quorum"))
	infra := w.soon(func() string {
		return mirrored(w.readCluster().Status.Conditions, "InfrastructureReady", metav1.ConditionFalse, "there is no network")
	})
	plane := w.soon(func() string {
		return mirrored(w.readCluster().Status.Conditions, "ControlPlaneAvailable", metav1.ConditionFalse, "there is no quorum")
	})
	w.report(s.infra, w.condition("Ready", "True", "Created", ""))
	w.report(s.plane, w.condition("Available", "True", "Quorum", ""))
	infra += w.soon(func() string {
		return mirrored(w.readCluster().Status.Conditions, "InfrastructureReady", metav1.ConditionTrue, "")
	})
	plane += w.soon(func() string {
		return mirrored(w.readCluster().Status.Conditions, "ControlPlaneAvailable", metav1.ConditionTrue, "")
	})
	w.check("CO-042", "InfrastructureReady mirrors Ready of the infrastructure cluster, False and True", infra)
	w.check("CO-043", "ControlPlaneAvailable mirrors Available of the control plane, False and True", plane)
}

func clusterReplicas(w *world) {
	s := w.open()
	counters := fields{"replicas": int64(3), "readyReplicas": int64(2)}
	if w.Contract == version.V1Beta1 {
		counters["updatedReplicas"], counters["unavailableReplicas"] = int64(3), int64(1)
	} else {
		counters["upToDateReplicas"], counters["availableReplicas"] = int64(3), int64(2)
	}
	w.report(s.plane, counters)
	w.check("CO-044", "status.controlPlane has the counters of the control plane", w.soon(func() string {
		got := w.readCluster().Status.ControlPlane
		if got == nil {
			return "there is no status.controlPlane"
		}
		same := ptr.Deref(got.Replicas, -1) == 3 && ptr.Deref(got.ReadyReplicas, -1) == 2
		return when(!same, fmt.Sprintf("it has replicas %d, readyReplicas %d", ptr.Deref(got.Replicas, -1), ptr.Deref(got.ReadyReplicas, -1)))
	}))
}

func clusterFailure(w *world) {
	if w.Contract != version.V1Beta1 {
		w.stop("only contract v1beta1 has terminal failures")
	}
	s := w.declare()
	w.report(s.infra, fields{"failureReason": "CreateError", "failureMessage": "there is no network"})
	shown := w.soon(func() string {
		deprecated := w.readCluster().Status.Deprecated
		//nolint:staticcheck // it is what the rule is about
		missing := deprecated == nil || deprecated.V1Beta1 == nil || ptr.Deref(deprecated.V1Beta1.FailureMessage, "") == ""
		return when(missing, "status.deprecated.v1beta1 has no failureMessage")
	})
	w.settle(s.infra, fields{"controlPlaneEndpoint": fields{"host": "192.0.2.1", "port": int64(6443)}})
	w.report(s.infra, w.provisioned(true))
	continues := w.soon(func() string {
		return when(!ptr.Deref(w.readCluster().Status.Initialization.InfrastructureProvisioned, false), "the Cluster does not continue")
	})
	w.check("CO-057", "the failure is reported, and the Cluster continues when the provider does", shown+continues)
}

func clusterDeletion(w *world) {
	s := w.open()
	p := w.machine(w.id)
	w.boot(p)
	w.need(w.soon(func() string { return w.running(p) }))
	w.remove(s.cluster)
	deviation := w.within(w.Timeouts.Delete.Duration, func() string { return w.deleted(p.infra) })
	deviation += w.quiet(func() string { return w.staying(s.plane) + w.staying(s.infra) })
	w.release(p.infra)
	w.release(p.config)
	deviation += w.within(w.Timeouts.Delete.Duration, func() string { return w.deleted(s.plane) })
	deviation += w.quiet(func() string { return w.staying(s.infra) })
	w.release(s.plane)
	deviation += w.within(w.Timeouts.Delete.Duration, func() string { return w.deleted(s.infra) })
	deviation += w.quiet(func() string {
		return when(w.gone(s.cluster) == "", "the Cluster is gone while its infrastructure exists")
	})
	w.release(s.infra)
	deviation += w.within(w.Timeouts.Delete.Duration, func() string { return w.gone(s.cluster) })
	w.check("CO-045", "workers are deleted first, then the control plane, the infrastructure cluster, and the Cluster itself", deviation)
}

func clusterKubeconfig(w *world) {
	cluster := &clusterv1.Cluster{ObjectMeta: w.meta(w.id)}
	cluster.Spec.InfrastructureRef = w.ref(infraKind, w.id)
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}
	infra := w.standIn(infraKind, w.id, fields{"controlPlaneEndpoint": fields{"host": "192.0.2.1", "port": int64(6443)}})
	certificate, key, err := authority()
	w.must(err, "to create a certificate authority")
	secret := &corev1.Secret{ObjectMeta: w.meta(w.id + "-ca"), Type: clusterv1.ClusterSecretType}
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: w.id}
	secret.Data = map[string][]byte{"tls.crt": certificate, "tls.key": key}
	w.create(infra)
	w.create(secret)
	w.create(cluster)
	w.report(infra, w.provisioned(true))
	w.check("CO-047", "there is a Secret with a kubeconfig, of Cluster API's type and owned by the Cluster", w.soon(func() string {
		found := &corev1.Secret{}
		if err := w.Client.Get(w.ctx, w.key(w.id+"-kubeconfig"), found); err != nil {
			return err.Error()
		}
		belongs := slices.ContainsFunc(found.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == cluster.UID })
		return when(found.Labels[clusterv1.ClusterNameLabel] != w.id, "it lacks the label with the name of the Cluster; ") +
			when(found.Type != clusterv1.ClusterSecretType, fmt.Sprintf("its type is %q; ", found.Type)) +
			when(!belongs, fmt.Sprintf("its owners are %v; ", found.OwnerReferences)) + leads(found.Data["value"], "https://192.0.2.1:6443")
	}))
}

// leads returns a deviation if a kubeconfig has another server than the Cluster, or no client certificate.
func leads(kubeconfig []byte, server string) string {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return "it has no kubeconfig: " + err.Error()
	}
	return when(config.Host != server || len(config.CertData) == 0,
		fmt.Sprintf("its kubeconfig has server %q, and a client certificate of %d bytes", config.Host, len(config.CertData)))
}

func authority() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), nil
}
