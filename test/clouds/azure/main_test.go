package main_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

// TestProgram: the program serves Resource Manager and the control interface until it is told to end, and boots nothing.
func TestProgram(t *testing.T) {
	g := NewWithT(t)
	directory := t.TempDir()
	binary, ready := filepath.Join(directory, "azure-simulator"), filepath.Join(directory, "ready")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))

	process, err := childprocess.Start(context.Background(), childprocess.Spec{
		Name: "azure-simulator", Path: binary, Args: []string{"--ready-file=" + ready, "--throttle"}, Log: filepath.Join(directory, "log"),
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { process.Stop(10 * time.Second) })
	g.Eventually(func() ([]byte, error) { return os.ReadFile(ready) }, "30s").ShouldNot(BeEmpty())
	endpoint, err := os.ReadFile(ready)
	g.Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		string(endpoint)+"/subscriptions/"+arm.DefaultSubscription+"/resourceGroups?api-version=2021-04-01", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer somebody")
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	_ = response.Body.Close()
	g.Expect(response.StatusCode).To(Equal(http.StatusOK))
	calls, err := simulator.NewClient(string(endpoint)).Calls(t.Context(), "ResourceGroups_List")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(calls).To(HaveLen(1))
	process.Stop(10 * time.Second)
	g.Expect(process.Err()).NotTo(HaveOccurred())

	refused, err := exec.CommandContext(t.Context(), binary, "--boot").CombinedOutput()
	g.Expect(err).To(HaveOccurred())
	g.Expect(string(refused)).To(ContainSubstring("--boot is not supported"))
}
