package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// What keeps a run from beginning is said before anything is made, so that whoever reads it knows what to change.
func TestRunsThatCannotBegin(t *testing.T) {
	good, from := file(t, "kubeconfig", string(env.Kubeconfig)), file(t, "sample.yaml", sample)
	notFound := httptest.NewServer(http.NotFoundHandler())
	defer notFound.Close()
	ends := terminating(t)
	for name, test := range map[string]struct {
		kubeconfig, words string
		args              []string
	}{
		"no sample":             {good, "set --sample", nil},
		"no rights":             {nobody(t), "lacks rights that the suite needs: create namespaces, delete namespaces, get clusters.cluster.x-k8s.io", []string{"--sample", from}},
		"a hanging API server":  {hanging(t), "does not respond: ", []string{"--sample", from}},
		"no such file":          {good, "--sample: open /nowhere", []string{"--sample", "/nowhere"}},
		"no kubeconfig":         {"/nowhere", "--kubeconfig: ", []string{"--sample", from}},
		"a probe of no machine": {good, "--probe: the probe at", []string{"--sample", from, "--probe", notFound.URL}},
		"a probe without host":  {good, "--probe: \"nowhere\" is not an HTTP URL", []string{"--sample", from, "--probe", "nowhere"}},
		"a field of nobody":     {good, `unknown field "spec.instanceTyp"`, []string{"--sample", file(t, "aws.yaml", wrong)}},
		"a field of no Machine": {good, `unknown field "failuredomain"`, []string{"--sample", file(t, "m.yaml", strings.Replace(sample, "failureD", "failured", 1))}},
		"a kind of nobody":      {good, "reading the CRD of NowhereMachine", []string{"--sample", file(t, "n.yaml", nowhere)}},
		"not of this profile":   {good, "--target-kubeconfig is not a flag for profile inframachine", []string{"--sample", from, "--target-kubeconfig", good}},
		"a sample for a core":   {good, "--sample is not a flag for profile core", []string{"--profile", "core", "--sample", from}},
		"a probe for a core":    {good, "--probe is not a flag for profile core", []string{"--profile", "core", "--probe", notFound.URL}},
		"a restart for a core":  {good, "--restart is not a flag for profile core", []string{"--profile", "core", "--restart", "true"}},
		"a probe for a config":  {good, "--probe is not a flag for profile bootstrapconfig", []string{"--profile", "bootstrapconfig", "--sample", from, "--probe", notFound.URL}},
		"stdin twice":           {good, "standard input is used more than once", []string{"--sample", "-", "--timeouts", "-"}},
		"stdin for two samples": {good, "standard input is used more than once", []string{"--sample", "-", "--sample", "-"}},
		"a namespace of nobody": {good, `--namespace: there is no namespace "nowhere"`, []string{"--sample", from, "--namespace", "nowhere"}},
		"a namespace that ends": {good, `--namespace: "` + ends + `" is being deleted`, []string{"--sample", from, "--namespace", ends}},
		"one that ends, a core": {good, `--namespace: "` + ends + `" is being deleted`, []string{"--profile", "core", "--namespace", ends}},
		"no suite":              {good, `--profile: "provider" has no suite on a cluster`, []string{"--sample", from, "--profile", "provider"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a hanging API server" {
				shortTimeout(t)
			}
			code, stdout, stderr := command(t, test.kubeconfig, test.args...)
			if code != exitUsage || stdout != "" || !strings.Contains(stderr, test.words) {
				t.Errorf("exit code %d, want %d; %q does not say %q; stdout %q", code, exitUsage, stderr, test.words, stdout)
			}
		})
	}
	nothingLeft(t)
}

// terminating is a namespace that is being deleted.
func terminating(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{}
	namespace.GenerateName = "ends-"
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

const (
	wrong = `
apiVersion: infrastructure.millwright.dev/v1alpha1
kind: AWSMachineTemplate
metadata: {name: any}
spec: {template: {spec: {region: us-east-1, instanceTyp: m5.large}}}
`
	nowhere = "apiVersion: nowhere.example/v1\nkind: NowhereMachine\nmetadata: {name: any}\n"
)

// nobody is the kubeconfig of a user without rights.
func nobody(t *testing.T) string {
	t.Helper()
	return as(t, "nobody")
}

func as(t *testing.T, name string) string {
	t.Helper()
	config, err := clientcmd.Load(env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = name, []string{"system:authenticated"}
	}
	return written(t, config)
}

// shortTimeout has the test's requests end soon. One that answers takes longer than that on a computer that is busy.
func shortTimeout(t *testing.T) {
	t.Helper()
	limit := requestLimit
	requestLimit = 200 * time.Millisecond
	t.Cleanup(func() { requestLimit = limit })
}

// hanging is the kubeconfig of a server that takes requests and answers none.
func hanging(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	config := clientcmdapi.NewConfig()
	config.Clusters["hanging"] = &clientcmdapi.Cluster{Server: "http://" + listener.Addr().String()}
	config.Contexts["hanging"] = &clientcmdapi.Context{Cluster: "hanging"}
	config.CurrentContext = "hanging"
	return written(t, config)
}

func written(t *testing.T, config *clientcmdapi.Config) string {
	t.Helper()
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, "kubeconfig", string(content))
}

// An API server that hangs after its first answers ends a request and not the run; watches are not ended, and a write has the time that
// the API server gives it itself: given up before, it would be done when nobody looks any more.
func TestRequestsAreLimited(t *testing.T) {
	var hang sync.WaitGroup
	hang.Add(1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			hang.Wait()
		}
	}))
	defer server.Close()
	client := func(reads, changes time.Duration) *http.Client {
		c, err := rest.HTTPClientFor(limited(&rest.Config{Host: server.URL}, reads, changes))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	patient := client(100*time.Millisecond, time.Hour)
	written := make(chan error, 1)
	go func() { written <- send(patient, http.MethodPost, server.URL) }()
	for query, ends := range map[string]bool{"": true, "?watch=true": false} {
		err := send(patient, http.MethodGet, server.URL+query)
		if ends != (err != nil) || ends && !strings.Contains(err.Error(), "no response within 100ms") {
			t.Errorf("%q: %v", query, err)
		}
	}
	err := send(client(time.Hour, 100*time.Millisecond), http.MethodDelete, server.URL)
	if err == nil || !strings.Contains(err.Error(), "no response within 100ms") {
		t.Errorf("a write that hangs: %v", err)
	}
	hang.Done()
	if err := <-written; err != nil {
		t.Errorf("a write that lasts longer than a read may: %v", err)
	}
}

func send(c *http.Client, method, url string) error {
	request, err := http.NewRequest(method, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}
