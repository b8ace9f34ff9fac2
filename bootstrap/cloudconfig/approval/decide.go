package approval

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
)

// Observation is what was read about the Machine whose token, or whose Node, has made a request.
type Observation struct {
	// NodeName is the name that the Machine's Node has or will have.
	NodeName string
	// ProviderID is the Machine's, once its own infrastructure has reported it; empty before. What only the spec has is whatever
	// its writer has chosen.
	ProviderID string
	// Joined is true when the Machine is linked to its Node.
	Joined bool
	// Deleting is true when the Machine is being deleted.
	Deleting bool
	// JoinTokenIDs are the ids of the tokens that the machine was given, also of those that have expired since: a kubelet does not
	// make its request again when its token is replaced. In the order in which they were given.
	JoinTokenIDs []string
	// JoinGroup is the group of those tokens and of no other.
	JoinGroup string
	// Approved names the request that was approved for the Machine before it joined, and its token: see ApprovedAnnotation. Empty
	// for none.
	Approved string
	// Outstanding is that request when it is another one and the approval was recorded but not given; nil otherwise.
	Outstanding *certificatesv1.CertificateSigningRequest
	// Node is the Node of that name; nil when there is none.
	Node *ObservedNode
}

// ObservedNode is what was read about a Node that has the name which a Machine's Node would have.
type ObservedNode struct {
	// ProviderID is what its kubelet, or anyone who may write Nodes, has set.
	ProviderID string
	// Older is true when it was there before the Machine.
	Older bool
	// OfAnother names the Machine that a core has written on it, if that is not this one.
	OfAnother string
}

// decide returns whether to approve a request, and why not. It is called for requests of the signer
// kubernetes.io/kube-apiserver-client-kubelet that one of our Machines has made; see Observation. All rules
// have to be met:
//
//	1 the signer is kubernetes.io/kube-apiserver-client-kubelet
//	2 the request is well-formed, of at most 16 KiB, and signed with its own key
//	3 its subject is O=system:nodes and CN=system:node:<name of the Machine's Node>, and nothing else
//	4 it names no DNS names, IP addresses, e-mail addresses or URIs
//	5 its usages are those of a client: digital signature, client auth and perhaps key encipherment
//
// and for the first certificate, asked for with the join token:
//
//	6 the user is system:bootstrap:<id of a token that this machine was given>, in the group of its tokens
//	7 the Machine is not being deleted and not linked to a Node
//	8 there is no Node of that name; or it is younger than the Machine, its provider ID is the one that the Machine's
//	  infrastructure has reported, and no core has written another Machine on it
//	9 no other request was approved that was made with this token or one given later; one whose approval was not given, because the
//	  write was refused, counts only against requests that are not later
//
// and for a renewal, asked for with the certificate of before:
//
//	10 the user is the Node that the request is for, in group system:nodes, and the Machine is linked to it
func decide(csr *certificatesv1.CertificateSigningRequest, observed Observation) (approve bool, reason string) {
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return false, "it is for another signer"
	}
	if reason := refuseContent(csr, observed.NodeName); reason != "" {
		return false, reason
	}
	if strings.HasPrefix(csr.Spec.Username, nodeUserPrefix) {
		reason = refuseRenewal(csr, observed)
	} else {
		reason = refuseFirst(csr, observed)
	}
	return reason == "", reason
}

// unreadable is the reason for a request that parse does not take, or that the cache has not kept for its size.
const unreadable = "it is not one PEM block of at most 16 KiB with a certificate request that is signed with its own key"

// refuseContent applies rules 2 to 5.
func refuseContent(csr *certificatesv1.CertificateSigningRequest, nodeName string) string {
	request, ok := parse(csr.Spec.Request)
	if !ok {
		return unreadable
	}
	subject := request.Subject
	if nodeName == "" || subject.CommonName != nodeUserPrefix+nodeName {
		return fmt.Sprintf("it asks for %q, but the Node of this Machine is %q", subject.CommonName, nodeUserPrefix+nodeName)
	}
	if !slices.Equal(subject.Organization, []string{nodesGroup}) || len(subject.Names) != 2 {
		return "its subject must be O=" + nodesGroup + " and the common name, and nothing else"
	}
	if len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 {
		return "a kubelet's client certificate must not name hosts, addresses or URIs"
	}
	if !clientUsages(csr.Spec.Usages) {
		return "its usages must be those of a client: digital signature, client auth and perhaps key encipherment"
	}
	return ""
}

func parse(raw []byte) (*x509.CertificateRequest, bool) {
	if len(raw) > maxRequest {
		return nil, false
	}
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, false
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || request.CheckSignature() != nil {
		return nil, false
	}
	return request, true
}

func clientUsages(usages []certificatesv1.KeyUsage) bool {
	for _, usage := range usages {
		switch usage {
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth, certificatesv1.UsageKeyEncipherment:
		default:
			return false
		}
	}
	return slices.Contains(usages, certificatesv1.UsageDigitalSignature) && slices.Contains(usages, certificatesv1.UsageClientAuth)
}

// refuseFirst applies rules 6 to 9.
func refuseFirst(csr *certificatesv1.CertificateSigningRequest, observed Observation) string {
	id, ok := nodeaccess.UserOf(csr.Spec.Username)
	switch {
	case !ok || !slices.Contains(observed.JoinTokenIDs, id) || !slices.Contains(csr.Spec.Groups, observed.JoinGroup):
		return "it was not made with a join token of this Machine"
	case observed.Deleting:
		return "the Machine is being deleted"
	case observed.Joined:
		return "the Machine has a Node already"
	case observed.Node != nil && !rejoins(observed):
		return fmt.Sprintf("a Node %s exists that is not of this Machine%s", observed.NodeName, observed.Node.why())
	case !approvable(csr, id, observed):
		return "another request was approved for this Machine before; replace the Machine if its kubelet has lost that certificate"
	}
	return ""
}

// approvable applies rule 9. A kubelet asks with a new key at each start, and starts again while it waits, hence an approval that
// was not given is worth nothing to it then, nor is one that it could not fetch because its token had expired.
func approvable(csr *certificatesv1.CertificateSigningRequest, tokenID string, observed Observation) bool {
	approved, withToken := parseApproval(observed.Approved)
	switch {
	case approved == "" || approved == requestID(csr):
		return true
	case observed.Outstanding != nil:
		return observed.Outstanding.CreationTimestamp.Before(&csr.CreationTimestamp)
	}
	return withToken != "" && slices.Index(observed.JoinTokenIDs, tokenID) > slices.Index(observed.JoinTokenIDs, withToken)
}

// rejoins reports whether the Node that exists is the Machine's own, by rule 8. A Node that is older is not, also where it is: of a
// Machine that was moved or restored. No other Node is taken over in return.
func rejoins(observed Observation) bool {
	n := observed.Node
	return observed.ProviderID != "" && n.ProviderID == observed.ProviderID && !n.Older && n.OfAnother == ""
}

// why adds to the message what is not visible at the Machine.
func (n *ObservedNode) why() string {
	switch {
	case n.OfAnother != "":
		return ": it is of Machine " + n.OfAnother
	case n.Older:
		return ": it is older than the Machine; if it is a leftover, delete it"
	}
	return ""
}

// refuseRenewal applies rule 10.
func refuseRenewal(csr *certificatesv1.CertificateSigningRequest, observed Observation) string {
	switch {
	case csr.Spec.Username != nodeUserPrefix+observed.NodeName || !slices.Contains(csr.Spec.Groups, nodesGroup):
		return "a Node may ask for its own certificate only"
	case !observed.Joined:
		return "the Machine is not linked to this Node"
	}
	return ""
}

// requestID distinguishes requests, also those that have one name one after the other.
func requestID(csr *certificatesv1.CertificateSigningRequest) string {
	return csr.Name + "/" + string(csr.UID)
}

// approvalOf is the value of ApprovedAnnotation for a first request.
func approvalOf(csr *certificatesv1.CertificateSigningRequest) string {
	id, _ := nodeaccess.UserOf(csr.Spec.Username)
	return requestID(csr) + "/" + id
}

// parseApproval is the inverse: the request and the id of its token. Values of earlier versions have no token.
func parseApproval(value string) (request, tokenID string) {
	last := strings.LastIndex(value, "/")
	if last < 0 || !bootstraputil.IsValidBootstrapTokenID(value[last+1:]) {
		return value, ""
	}
	return value[:last], value[last+1:]
}
