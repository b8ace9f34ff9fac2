package arm_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"github.com/pkg/errors"
	clocktesting "k8s.io/utils/clock/testing"

	simulated "millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

const (
	create = 30 * time.Second
	secret = "#cloud-config\n# a secret\n"
)

// token is a credential with one token.
type token string

func (t token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(t), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// tenant is a simulated tenant with clients of the real SDK.
type tenant struct {
	*WithT
	ctx      context.Context
	clock    *clocktesting.FakeClock
	server   *simulated.Server
	sim      *simulator.Client
	url      string
	machines *armcompute.VirtualMachinesClient
	disks    *armcompute.DisksClient
}

func newTenant(t *testing.T, options simulated.Options) *tenant {
	t.Helper()
	a := &tenant{WithT: NewWithT(t), ctx: t.Context(), clock: clocktesting.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))}
	options.Clock, options.Seed = a.clock, 1
	options.Delays = simulated.Delays{Create: create, Delete: 20 * time.Second, Power: 10 * time.Second}
	a.server = simulated.New(options)
	front := httptest.NewServer(a.server)
	t.Cleanup(front.Close)
	t.Cleanup(a.server.Close)
	a.url, a.sim = front.URL, simulator.NewClient(front.URL)
	factory, err := armcompute.NewClientFactory(simulated.DefaultSubscription, token("a-user"), &arm.ClientOptions{
		ClientOptions: policy.ClientOptions{
			Cloud: cloud.Configuration{Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
				cloud.ResourceManager: {Endpoint: front.URL, Audience: "https://management.azure.com"},
			}},
			Retry: policy.RetryOptions{MaxRetries: -1}, InsecureAllowCredentialWithHTTP: true,
		},
		DisableRPRegistration: true,
	})
	a.Expect(err).NotTo(HaveOccurred())
	a.machines, a.disks = factory.NewVirtualMachinesClient(), factory.NewDisksClient()
	return a
}

func ptr[T any](v T) *T { return &v }

// body is a launch that is right, with changes.
func body(changes ...func(*armcompute.VirtualMachine)) armcompute.VirtualMachine {
	vm := armcompute.VirtualMachine{
		Location: ptr(simulated.DefaultLocation), Tags: map[string]*string{"team": ptr("blue")}, Zones: []*string{ptr("1")},
		Properties: &armcompute.VirtualMachineProperties{
			HardwareProfile: &armcompute.HardwareProfile{VMSize: ptr(armcompute.VirtualMachineSizeTypes("Standard_D2s_v5"))},
			StorageProfile: &armcompute.StorageProfile{
				ImageReference: &armcompute.ImageReference{ID: ptr(simulated.DefaultImage)},
				OSDisk: &armcompute.OSDisk{
					CreateOption: ptr(armcompute.DiskCreateOptionTypesFromImage), DeleteOption: ptr(armcompute.DiskDeleteOptionTypesDelete),
				},
				DataDisks: []*armcompute.DataDisk{{
					Lun: ptr(int32(0)), CreateOption: ptr(armcompute.DiskCreateOptionTypesEmpty), DiskSizeGB: ptr(int32(10)),
				}},
			},
			OSProfile: &armcompute.OSProfile{
				ComputerName: ptr("m1"), AdminUsername: ptr("azureuser"), CustomData: ptr(base64.StdEncoding.EncodeToString([]byte(secret))),
				LinuxConfiguration: &armcompute.LinuxConfiguration{
					DisablePasswordAuthentication: ptr(true),
					SSH: &armcompute.SSHConfiguration{PublicKeys: []*armcompute.SSHPublicKey{{
						KeyData: ptr("ssh-ed25519 AAAA"), Path: ptr("/home/azureuser/.ssh/authorized_keys"),
					}}},
				},
			},
			NetworkProfile: &armcompute.NetworkProfile{
				NetworkAPIVersion: ptr(armcompute.NetworkAPIVersionTwoThousandTwenty1101),
				NetworkInterfaceConfigurations: []*armcompute.VirtualMachineNetworkInterfaceConfiguration{{
					Name: ptr("m1"), Tags: map[string]*string{"team": ptr("blue")},
					Properties: &armcompute.VirtualMachineNetworkInterfaceConfigurationProperties{
						Primary: ptr(true), DeleteOption: ptr(armcompute.DeleteOptionsDelete),
						IPConfigurations: []*armcompute.VirtualMachineNetworkInterfaceIPConfiguration{{
							Name: ptr("primary"), Properties: &armcompute.VirtualMachineNetworkInterfaceIPConfigurationProperties{
								Subnet: &armcompute.SubResource{ID: ptr(simulated.DefaultSubnet)},
							},
						}},
					},
				}},
			},
		},
	}
	for _, change := range changes {
		change(&vm)
	}
	return vm
}

func spot(policyName armcompute.VirtualMachineEvictionPolicyTypes) func(*armcompute.VirtualMachine) {
	return func(vm *armcompute.VirtualMachine) {
		vm.Properties.Priority, vm.Properties.EvictionPolicy = ptr(armcompute.VirtualMachinePriorityTypesSpot), &policyName
	}
}

func (a *tenant) put(
	name string,
	vm armcompute.VirtualMachine,
) (*runtime.Poller[armcompute.VirtualMachinesClientCreateOrUpdateResponse], error) {
	return a.machines.BeginCreateOrUpdate(a.ctx, simulated.DefaultGroup, name, vm,
		&armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{IfNoneMatch: ptr("*")})
}

func (a *tenant) running(name string, changes ...func(*armcompute.VirtualMachine)) {
	_, err := a.put(name, body(changes...))
	a.Expect(err).NotTo(HaveOccurred())
	a.clock.Step(create)
	a.Expect(a.power(name)).To(Equal([]string{"ProvisioningState/succeeded", "PowerState/running"}))
}

// power are the codes of the run time status.
func (a *tenant) power(name string) []string {
	out, err := a.machines.Get(a.ctx, simulated.DefaultGroup, name,
		&armcompute.VirtualMachinesClientGetOptions{Expand: ptr(armcompute.InstanceViewTypesInstanceView)})
	a.Expect(err).NotTo(HaveOccurred())
	var codes []string
	for _, s := range out.Properties.InstanceView.Statuses {
		codes = append(codes, *s.Code)
	}
	return codes
}

// kinds counts the resources that there are.
func (a *tenant) kinds() map[string]int {
	found := map[string]int{}
	for _, r := range a.server.Resources() {
		found[r.Kind]++
	}
	return found
}

func (a *tenant) id(name string) string {
	return "/subscriptions/" + simulated.DefaultSubscription + "/resourceGroups/" + simulated.DefaultGroup +
		"/providers/Microsoft.Compute/virtualMachines/" + name
}

func haveCode(status int, code string) gomegatypes.GomegaMatcher {
	return WithTransform(func(err error) any {
		var answer *azcore.ResponseError
		errors.As(err, &answer)
		if answer == nil {
			return err
		}
		return []any{answer.StatusCode, answer.ErrorCode}
	}, Equal([]any{status, code}))
}

// callAs is call by another user, without the header.
func (a *tenant) callAs(caller, method, path string, out any) int {
	status, _ := a.callBy(caller, method, path, out)
	return status
}

// call makes a call without the SDK; out takes the answer's body.
func (a *tenant) call(method, path string, out any) (int, http.Header) {
	return a.callBy("a-user", method, path, out)
}

func (a *tenant) callBy(caller, method, path string, out any) (int, http.Header) {
	request, err := http.NewRequestWithContext(a.ctx, method, a.url+path, http.NoBody)
	a.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+caller)
	response, err := http.DefaultClient.Do(request)
	a.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	if out != nil {
		a.Expect(json.NewDecoder(response.Body).Decode(out)).To(Succeed())
	}
	return response.StatusCode, response.Header
}
