package main_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/clouds/simulator"
	"millwright.dev/test/testinputs"
)

var binaries string

func TestMain(m *testing.M) {
	os.Exit(childprocess.Run(m.Run, &binaries, map[string]string{"compute-simulator": ".", "sim-machine": "../vm"}))
}

const userData = `#cloud-config
write_files:
- path: /run/up
  content: up
runcmd:
- echo hello from the console
`

// TestAMachineFollowsItsInstance boots one from user data that was compressed, and so has to be in base64, and deletes it.
func TestAMachineFollowsItsInstance(t *testing.T) {
	testinputs.Repository(t) // TestMain has built the programs.
	g := NewWithT(t)
	state, ready := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "ready")
	process, err := childprocess.Start(context.Background(), childprocess.Spec{
		Name: "compute-simulator", Path: filepath.Join(binaries, "compute-simulator"), Log: filepath.Join(t.TempDir(), "log"),
		Args: []string{
			"--ready-file=" + ready, "--state-dir=" + state, "--boot", "--machine-binary=" + filepath.Join(binaries, "sim-machine"), "--project=p",
			"--provisioning-delay=50ms", "--staging-delay=50ms", "--stopping-delay=50ms", "--throttle",
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { process.Stop(10 * time.Second) })
	g.Eventually(func() ([]byte, error) { return os.ReadFile(ready) }, "30s").ShouldNot(BeEmpty())
	endpoint, err := os.ReadFile(ready)
	g.Expect(err).NotTo(HaveOccurred())
	call := func(method, path string, body any) {
		raw, err := json.Marshal(body)
		g.Expect(err).NotTo(HaveOccurred())
		r, err := http.NewRequestWithContext(
			t.Context(),
			method,
			string(endpoint)+"/compute/v1/projects/p/zones/us-central1-a/"+path,
			bytes.NewReader(raw),
		)
		g.Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Authorization", "Bearer token")
		answer, err := http.DefaultClient.Do(r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Body.Close()).To(Succeed())
		g.Expect(answer.StatusCode).To(Equal(http.StatusOK))
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(userData))
	g.Expect(w.Close()).To(Succeed())
	type object = map[string]any
	call("POST", "instances", object{
		"name": "one", "machineType": "zones/us-central1-a/machineTypes/e2-micro", "networkInterfaces": []any{object{}},
		"disks": []any{object{"boot": true, "autoDelete": true, "initializeParams": object{"sourceImage": "projects/images/global/images/family/node"}}},
		"metadata": object{"items": []any{object{"key": "user-data", "value": base64.StdEncoding.EncodeToString(packed.Bytes())},
			object{"key": "user-data-encoding", "value": "base64"}}},
	})
	var up []string
	g.Eventually(func() []string {
		up, _ = filepath.Glob(filepath.Join(state, "*", "root", "run", "up"))
		return up
	}, "30s").Should(HaveLen(1))
	root := filepath.Dir(filepath.Dir(up[0]))
	client := simulator.NewClient(string(endpoint))
	console := func() (out string) {
		_ = client.Do(t.Context(), http.MethodGet, "projects/p/zones/us-central1-a/instances/one/console", nil, &out)
		return out
	}
	g.Eventually(console, "30s").Should(And(ContainSubstring("boot: instance one"), ContainSubstring("hello from the console")))
	call("DELETE", "instances/one", object{})
	g.Eventually(root, "30s").ShouldNot(BeAnExistingFile())
	calls, err := client.Calls(t.Context(), "instances.insert")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(calls).To(HaveLen(1))
}
