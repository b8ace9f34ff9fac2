package session

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

const (
	testKey    = "AKIAIOSFODNN7EXAMPLE"
	testSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY=EXAMPLEKEY"
)

func TestCredentialsOfASecret(t *testing.T) {
	file := func(lines ...string) map[string]string {
		return map[string]string{"credentials": strings.Join(lines, "\n")}
	}
	good := []string{"[default]", "aws_access_key_id = " + testKey, "aws_secret_access_key=" + testSecret}
	for name, test := range map[string]struct {
		data map[string]string
		// token is expected beside the keys; reason if the Secret is refused, with a message that has says.
		token, reason, says string
	}{
		"as in the environment":     {data: map[string]string{"AWS_ACCESS_KEY_ID": testKey, "AWS_SECRET_ACCESS_KEY": testSecret + "\n"}},
		"with a region":             {data: map[string]string{"AWS_ACCESS_KEY_ID": testKey, "AWS_SECRET_ACCESS_KEY": testSecret, "AWS_REGION": "eu-central-1"}},
		"a session":                 {data: map[string]string{"AWS_ACCESS_KEY_ID": testKey, "AWS_SECRET_ACCESS_KEY": testSecret, "AWS_SESSION_TOKEN": "token"}, token: "token"},
		"as Cluster API's own":      {data: map[string]string{"AccessKeyID": testKey, "SecretAccessKey": testSecret, "SessionToken": "token"}, token: "token"},
		"a file":                    {data: file(good...)},
		"a file with a comment":     {data: file(append([]string{"# of the team", "; and more", ""}, good...)...)},
		"a file without a profile":  {data: file(good[1:]...)},
		"a file of a session":       {data: file(append(good, "aws_session_token = token")...), token: "token"},
		"nothing":                   {data: nil, reason: driverv1.CredentialsInvalidReason, says: "AWS_ACCESS_KEY_ID"},
		"no secret key":             {data: map[string]string{"AWS_ACCESS_KEY_ID": testKey}, reason: driverv1.CredentialsInvalidReason, says: "secret access key"},
		"encoded twice":             {data: map[string]string{"AWS_ACCESS_KEY_ID": "QUtJQQ==", "AWS_SECRET_ACCESS_KEY": testSecret}, reason: driverv1.CredentialsInvalidReason, says: "encoded twice"},
		"two lines":                 {data: map[string]string{"AWS_ACCESS_KEY_ID": testKey, "AWS_SECRET_ACCESS_KEY": testSecret + "\nx"}, reason: driverv1.CredentialsInvalidReason, says: "secret access key"},
		"both forms":                {data: map[string]string{"AWS_ACCESS_KEY_ID": testKey, "AccessKeyID": testKey, "AWS_SECRET_ACCESS_KEY": testSecret}, reason: driverv1.CredentialsInvalidReason, says: "twice"},
		"a file and keys":           {data: map[string]string{"AWS_ACCESS_KEY_ID": testKey, "credentials": "x"}, reason: driverv1.CredentialsInvalidReason, says: "remove one"},
		"an endpoint beside":        {data: map[string]string{"AWS_ACCESS_KEY_ID": testKey, "AWS_SECRET_ACCESS_KEY": testSecret, "AWS_ENDPOINT_URL": "https://thief"}, reason: driverv1.CredentialsNotAllowedReason, says: `"AWS_ENDPOINT_URL"`},
		"a second profile":          {data: file(append(good, "[other]")...), reason: driverv1.CredentialsNotAllowedReason, says: "line 4"},
		"a key that is given twice": {data: file(append(good, good[1])...), reason: driverv1.CredentialsInvalidReason, says: "a second time"},
		"a secret without a name":   {data: file("[default]", testSecret), reason: driverv1.CredentialsNotAllowedReason, says: "line 2"},
		"a very long line":          {data: file(strings.Repeat("x", 2<<20)), reason: driverv1.CredentialsInvalidReason, says: "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fromSecret(secretOf(test.data))
			checkCredentials(t, got, err, test.token, test.reason, test.says)
		})
	}
}

// Each of these makes the SDK read files, run programs or call addresses of the provider's process.
func TestSettingsThatAFileMayNotHave(t *testing.T) {
	for setting := range dangerous {
		for _, line := range []string{setting + " = /hidden-value", strings.ToUpper(setting) + "=/hidden-value",
			"  " + setting + "\t=\t/hidden-value"} {
			data := map[string]string{
				"credentials": "[default]\naws_access_key_id=" + testKey + "\naws_secret_access_key=" + testSecret + "\n" + line,
			}
			got, err := fromSecret(secretOf(data))
			checkCredentials(t, got, err, "", driverv1.CredentialsNotAllowedReason, setting)
		}
	}
}

func secretOf(data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, Data: map[string][]byte{}}
	for k, v := range data {
		secret.Data[k] = []byte(v)
	}
	return secret
}

func checkCredentials(t *testing.T, got aws.Credentials, err error, token, reason, says string) {
	t.Helper()
	g := NewWithT(t)
	if reason == "" {
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(And(HaveField("AccessKeyID", testKey), HaveField("SecretAccessKey", testSecret), HaveField("SessionToken", token)))
		return
	}
	g.Expect(got.HasKeys()).To(BeFalse())
	g.Expect(identity.AsInvalid(err)).To(HaveField("Reason", reason))
	g.Expect(err.Error()).To(And(ContainSubstring("keys"), ContainSubstring(says)))
	for _, value := range []string{testKey, testSecret, "wJalr", "hidden-value", "thief"} {
		g.Expect(err.Error()).NotTo(ContainSubstring(value), "nothing of the values is shown")
	}
}
