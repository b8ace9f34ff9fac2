package session_test

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

func TestAmbientAndManagedIdentities(t *testing.T) {
	r := newRig(t, infrav1.AzureIdentitySpec{Ambient: &infrav1.AmbientCredentials{}})
	s, err := r.sessions.Get(r.ctx, "id")
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(s.GetToken(r.ctx, policy.TokenRequestOptions{})).To(HaveField("Token", "the process's own"))

	r = newRig(t, infrav1.AzureIdentitySpec{ManagedIdentity: &infrav1.ManagedIdentity{ClientID: clientID}})
	t.Setenv("IDENTITY_ENDPOINT", "http://"+login+"/msi/token")
	t.Setenv("IDENTITY_HEADER", "x")
	r.authority.SetManagedIdentity(r.app)
	r.Expect(r.verify()).To(Equal(identity.Holder{Account: tenantA, Principal: "object"}))
	r.Expect(r.authority.Calls()).To(ConsistOf(HaveField("By", "managedIdentity")))
}

// An identity whose source this version does not know must not get the process's own credentials.
func TestAnIdentityWithoutASourceGetsNone(t *testing.T) {
	r := newRig(t, infrav1.AzureIdentitySpec{})
	_, err := r.sessions.Get(r.ctx, "id")
	r.Expect(reason(err)).To(Equal(driverv1.CredentialsInvalidReason))
}
