package approval

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxRequest is the size, in bytes, up to which a certificate request is kept in the cache and looked at. Kubelets' have less than one KiB.
const maxRequest = 16 << 10

// CacheOptions keep in the cache of a target cluster what matters here of requests. Those of the two signers of kubelets are
// kept until they are decided, unless they are too large to be a kubelet's; a watch cannot select two, hence of all else a shell is kept.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&certificatesv1.CertificateSigningRequest{}: {Transform: trim}}
}

// trim removes from a request what nothing is decided upon.
func trim(object any) (any, error) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return object, nil
	}
	csr.ManagedFields, csr.Spec.Extra = nil, nil
	shell := !ofKubelet(csr) || !undecided(csr)
	if shell || len(csr.Spec.Request) > maxRequest {
		csr.Spec.Request = nil
	}
	if shell || sizeOf(csr.Annotations) > maxRequest {
		csr.Annotations = nil
	}
	if len(csr.Status.Certificate) > 0 {
		// That there is one matters, not which one.
		csr.Status.Certificate = []byte("-")
	}
	return csr, nil
}

func sizeOf(annotations map[string]string) int {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}

func ofKubelet(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName ||
		csr.Spec.SignerName == certificatesv1.KubeletServingSignerName
}
