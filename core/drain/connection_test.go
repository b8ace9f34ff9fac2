package drain

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestEveryPartOfAKubeconfigCounts: a drain continues through another connection as soon as any part of the kubeconfig
// has changed that says how the API server is reached, and as whom; and only then.
func TestEveryPartOfAKubeconfigCounts(t *testing.T) {
	g := NewWithT(t)
	config := func(cluster, user string) *rest.Config {
		made, err := clientcmd.RESTConfigFromKubeConfig(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x",
			"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],"clusters":[{"name":"x","cluster":{%s}}],
			"users":[{"name":"x","user":{%s}}]}`, cluster, user))
		g.Expect(err).NotTo(HaveOccurred())
		return made
	}
	const server, token = `"server":"https://h:6443"`, `"token":"t"`
	const proxied = server + `,"proxy-url":"http://p:1"`
	g.Expect(sameConnection(config(proxied, token), config(proxied, token))).To(BeTrue())
	variants := []*rest.Config{
		config(server, token),
		config(`"server":"https://other:6443"`, token),
		config(proxied, token),
		config(server+`,"proxy-url":"http://p:2"`, token),
		config(server+`,"tls-server-name":"n"`, token),
		config(server+`,"insecure-skip-tls-verify":true`, token),
		config(server+`,"certificate-authority-data":"Y2E="`, token),
		config(server+`,"certificate-authority":"/dev/null"`, token),
		config(server+`,"disable-compression":true`, token),
		config(server, `"token":"other"`),
		config(server, `"tokenFile":"/dev/null"`),
		config(server, `"username":"u","password":"p"`),
		config(server, `"client-certificate-data":"Y2E=","client-key-data":"a2V5"`),
		config(server, `"client-certificate":"/dev/null","client-key":"/dev/null"`),
		config(server, token+`,"as":"somebody"`),
		config(server, token+`,"as":"somebody","as-groups":["g"]`),
		config(server, `"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"c","interactiveMode":"Never"}`),
	}
	for i, a := range variants {
		for j, b := range variants {
			g.Expect(sameConnection(a, b)).To(Equal(i == j), "%d and %d", i, j)
		}
	}
}
