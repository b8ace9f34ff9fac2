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
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
	"millwright.dev/test/testinputs"
)

var binaries string

func TestMain(m *testing.M) {
	os.Exit(childprocess.Run(m.Run, &binaries, map[string]string{"azure-simulator": ".", "sim-machine": "../vm"}))
}

const customData = `#cloud-config
write_files:
- path: /run/up
  content: up
runcmd:
- echo hello from the console
`

const group = "/subscriptions/" + arm.DefaultSubscription + "/resourceGroups/" + arm.DefaultGroup

// launch is a valid virtual machine with the data.
func launch(key, data string) map[string]any {
	type object = map[string]any
	properties := object{
		"hardwareProfile": object{"vmSize": "Standard_D2s_v5"},
		"storageProfile": object{
			"imageReference": object{"id": arm.DefaultImage},
			"osDisk":         object{"createOption": "FromImage", "deleteOption": "Delete"},
		},
		"osProfile": object{
			"computerName": "one", "adminUsername": "azureuser",
			"linuxConfiguration": object{"disablePasswordAuthentication": true, "ssh": object{"publicKeys": []any{
				object{"keyData": "ssh-ed25519 AAAA", "path": "/home/azureuser/.ssh/authorized_keys"},
			}}},
		},
		"networkProfile": object{"networkApiVersion": "2020-11-01", "networkInterfaceConfigurations": []any{object{
			"name": "one", "properties": object{"primary": true, "deleteOption": "Delete", "ipConfigurations": []any{object{
				"name": "primary", "properties": object{"subnet": object{"id": arm.DefaultSubnet}},
			}}},
		}}},
	}
	if key == "customData" {
		properties["osProfile"].(object)[key] = data
	} else {
		properties[key] = data
	}
	return object{"location": arm.DefaultLocation, "zones": []string{"1"}, "properties": properties}
}

// TestAMachineFollowsItsVirtualMachine boots one from custom data that was compressed, and one from user data, and deletes them.
func TestAMachineFollowsItsVirtualMachine(t *testing.T) {
	testinputs.Repository(t) // TestMain has built the programs.
	g := NewWithT(t)
	state, ready := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "ready")
	process, err := childprocess.Start(context.Background(), childprocess.Spec{
		Name: "azure-simulator", Path: filepath.Join(binaries, "azure-simulator"), Log: filepath.Join(t.TempDir(), "log"),
		Args: []string{
			"--ready-file=" + ready, "--state-dir=" + state, "--boot", "--machine-binary=" + filepath.Join(binaries, "sim-machine"),
			"--create-delay=50ms", "--delete-delay=50ms", "--throttle",
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { process.Stop(10 * time.Second) })
	g.Eventually(func() ([]byte, error) { return os.ReadFile(ready) }, "30s").ShouldNot(BeEmpty())
	endpoint, err := os.ReadFile(ready)
	g.Expect(err).NotTo(HaveOccurred())
	call := func(method, name string, body, out any) int {
		raw, err := json.Marshal(body)
		g.Expect(err).NotTo(HaveOccurred())
		r, err := http.NewRequestWithContext(t.Context(), method,
			string(endpoint)+group+"/providers/Microsoft.Compute/virtualMachines/"+name+"?api-version=2026-04-01", bytes.NewReader(raw))
		g.Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Authorization", "Bearer token")
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		g.Expect(err).NotTo(HaveOccurred())
		if out != nil {
			g.Expect(json.NewDecoder(answer.Body).Decode(out)).To(Succeed())
		}
		g.Expect(answer.Body.Close()).To(Succeed())
		return answer.StatusCode
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(customData))
	g.Expect(w.Close()).To(Succeed())
	client := simulator.NewClient(string(endpoint))
	for name, body := range map[string]map[string]any{
		"custom": launch("customData", base64.StdEncoding.EncodeToString(packed.Bytes())),
		"user":   launch("userData", base64.StdEncoding.EncodeToString([]byte(customData))),
	} {
		g.Expect(call(http.MethodPut, name, body, nil)).To(Equal(http.StatusCreated))
		var vm struct{ Properties struct{ VMID string } }
		g.Expect(call(http.MethodGet, name, nil, &vm)).To(Equal(http.StatusOK))
		directory := filepath.Join(state, vm.Properties.VMID)
		g.Eventually(filepath.Join(directory, "root/run/up"), "30s").Should(BeARegularFile())
		console := func() (out string) {
			_ = client.Do(t.Context(), http.MethodGet, "machines/"+vm.Properties.VMID+"/console", nil, &out)
			return out
		}
		g.Eventually(console, "30s").Should(And(ContainSubstring("boot: instance "+name), ContainSubstring("hello from the console")))
		g.Expect(filepath.Join(directory, "media")).NotTo(BeAnExistingFile(), "the medium is ejected: it has the custom data")
		g.Expect(call(http.MethodDelete, name, nil, nil)).To(Equal(http.StatusAccepted))
		g.Eventually(filepath.Join(directory, "root"), "30s").ShouldNot(BeAnExistingFile())
	}
	calls, err := client.Calls(t.Context(), "VirtualMachines_CreateOrUpdate")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(calls).To(HaveLen(2))
	process.Stop(time.Minute)
	g.Expect(process.Err()).NotTo(HaveOccurred())
}
