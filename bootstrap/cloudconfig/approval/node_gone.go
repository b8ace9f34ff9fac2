package approval

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// minNodeRetry is the shortest time after which a request is checked again that a Node of the same name holds up.
const minNodeRetry = 30 * time.Second

// nodeRetry returns when to requeue a request that was not approved because there is a Node of the name, and for no
// other reason; 0 for any other request. Nodes of target clusters are not watched, and a kubelet without rotation does not ask again.
// The pauses grow with the age of the request, so that a Node that stays costs little.
func nodeRetry(csr *certificatesv1.CertificateSigningRequest, observed Observation, now time.Time) time.Duration {
	if observed.Node == nil {
		return 0
	}
	observed.Node = nil
	if approve, _ := decide(csr, observed); !approve {
		return 0
	}
	return max(minNodeRetry, now.Sub(csr.CreationTimestamp.Time)/2)
}
